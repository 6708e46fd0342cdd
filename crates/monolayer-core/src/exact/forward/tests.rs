use super::*;
use crate::exact::big::tests::Random;
use crate::exact::real::tests::float;
use crate::model::{Dtype, Head, Layer, Tensor};
use crate::number::{Format, Stored};

pub(crate) fn tensor(shape: &[usize], data: &[f64]) -> Numbers {
    let bytes = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    Numbers::Floats(Tensor::dense(shape.to_vec(), Stored::F64, bytes))
}

fn texts(shape: &[usize], data: &[&str]) -> Numbers {
    Numbers::Exact(shape.to_vec(), data.iter().map(|x| (*x).to_owned()).collect())
}

pub(crate) fn bare(d: usize) -> Model {
    Model {
        d,
        dtype: Dtype::Float(Format::F64),
        max_length: None,
        vocabulary: None,
        start: None,
        embedding: None,
        positions: None,
        pre_feed_forward: None,
        layers: vec![],
        head: None,
    }
}

fn numbers(all: &Numbers) -> Vec<f64> {
    let Numbers::Floats(tensor) = all else { panic!("floats") };
    tensor.bytes.chunks_exact(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect()
}

fn block(h: &[f64], part: &FeedForward) -> Vec<f64> {
    let (d, q) = (h.len(), part.hidden);
    let (w1, b1, w2, b2) = (numbers(&part.w1), numbers(&part.b1), numbers(&part.w2), numbers(&part.b2));
    let unit = |j: usize| ((0..d).map(|c| w1[j * d + c] * h[c]).sum::<f64>() + b1[j]).max(0.0);
    (0..d).map(|c| h[c] + b2[c] + (0..q).map(|j| w2[c * q + j] * unit(j)).sum::<f64>()).collect()
}

/// A plain forward pass; `sees` has i and j with the start token as -1.
fn plain(model: &Model, rows: &[usize], sees: &dyn Fn(i64, i64) -> bool) -> Vec<Vec<f64>> {
    let (d, embedding, positions) =
        (model.d, numbers(model.embedding.as_ref().unwrap()), model.positions.as_ref().map(numbers));
    let rows: Vec<usize> = model.start.into_iter().chain(rows.iter().copied()).collect();
    let start = i64::from(model.start.is_some());
    let entry = |k: usize, c: usize| embedding[rows[k] * d + c] + positions.as_ref().map_or(0.0, |p| p[k * d + c]);
    let mut x: Vec<Vec<f64>> = (0..rows.len()).map(|k| (0..d).map(|c| entry(k, c)).collect()).collect();
    if let Some(part) = &model.pre_feed_forward {
        x = x.iter().map(|x| block(x, part)).collect();
    }
    for layer in &model.layers {
        if let Some(a) = &layer.attention {
            let [q, k, v, o] = [&a.w_q, &a.w_k, &a.w_v, &a.w_o].map(numbers);
            let dot = |w: &[f64], row: usize, x: &[f64]| (0..d).map(|c| w[row * d + c] * x[c]).sum::<f64>();
            let mut after = x.clone();
            for i in 0..x.len() {
                for h in 0..a.heads {
                    let rows: Vec<usize> = (h * a.size..(h + 1) * a.size).collect();
                    let seen: Vec<usize> = (0..x.len()).filter(|&j| sees(i as i64 - start, j as i64 - start)).collect();
                    let score = |j: usize| rows.iter().map(|&r| dot(&k, r, &x[j]) * dot(&q, r, &x[i])).sum::<f64>();
                    let top = seen.iter().map(|&j| score(j)).fold(f64::MIN, f64::max);
                    let weight =
                        |j: usize| if a.hard { f64::from(u8::from(score(j) == top)) } else { (score(j) - top).exp() };
                    let total: f64 = seen.iter().map(|&j| weight(j)).sum();
                    for (s, &r) in rows.iter().enumerate() {
                        let g = seen.iter().map(|&j| weight(j) * dot(&v, r, &x[j])).sum::<f64>() / total;
                        (0..d).for_each(|c| after[i][c] += o[(h * d + c) * a.size + s] * g);
                    }
                }
            }
            x = after;
        }
        if let Some(part) = &layer.feed_forward {
            x = x.iter().map(|x| block(x, part)).collect();
        }
    }
    x.split_off(start as usize)
}

struct Draw(Random);

impl Draw {
    fn small(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| (self.0.next() % 33) as f64 / 16.0 - 1.0).collect()
    }

    fn tensor(&mut self, shape: &[usize]) -> Numbers {
        let data = self.small(shape.iter().product());
        tensor(shape, &data)
    }

    fn part(&mut self, d: usize) -> FeedForward {
        let q = 3;
        FeedForward {
            hidden: q,
            w1: self.tensor(&[q, d]),
            b1: self.tensor(&[q]),
            w2: self.tensor(&[d, q]),
            b2: self.tensor(&[d]),
        }
    }

    fn model(&mut self, mask: &Mask) -> Model {
        let d = 2;
        let mut model = bare(d);
        model.embedding = Some(self.tensor(&[4, d]));
        model.start = self.0.next().is_multiple_of(2).then_some(3);
        if self.0.next().is_multiple_of(2) {
            model.positions = Some(self.tensor(&[6, d]));
            model.max_length = Some(6);
        }
        model.pre_feed_forward = self.0.next().is_multiple_of(3).then(|| self.part(d));
        for _ in 0..2 {
            let (heads, size) = (2, 1 + self.0.next() as usize % 2);
            let attention = Attention {
                hard: self.0.next().is_multiple_of(2),
                heads,
                size,
                mask: mask.clone(),
                w_q: self.tensor(&[heads, size, d]),
                w_k: self.tensor(&[heads, size, d]),
                w_v: self.tensor(&[heads, size, d]),
                w_o: self.tensor(&[heads, d, size]),
            };
            let attention = (!self.0.next().is_multiple_of(4)).then_some(attention);
            let feed_forward = (!self.0.next().is_multiple_of(4)).then(|| self.part(d));
            model.layers.push(Layer { attention, feed_forward });
        }
        model
    }
}

type Sees = Box<dyn Fn(i64, i64) -> bool>;

#[test]
fn enclosures_hold_plain_evaluations() {
    let matrix: Vec<u8> = vec![1, 0, 1, 0, 1, 1, 1, 1, 1];
    let shown = matrix.clone();
    let masks: Vec<(Mask, Sees)> = vec![
        (Mask::None, Box::new(|_, _| true)),
        (Mask::Causal, Box::new(|i, j| j <= i)),
        (Mask::Prefix(1), Box::new(|i, j| j < 1 || j <= i)),
        (Mask::Band(1, 0), Box::new(|i, j| j == -1 || (i - 1 <= j && j <= i))),
        (
            Mask::Matrix(3, matrix),
            Box::new(move |i, j| j == -1 || i == j || (i >= 0 && shown[(i * 3 + j) as usize] == 1)),
        ),
    ];
    let mut draw = Draw(Random(21));
    for round in 0..100 {
        let (mask, sees) = &masks[round % masks.len()];
        let model = draw.model(mask);
        let rows: Vec<usize> = (0..3).map(|_| draw.0.next() as usize % 3).collect();
        let tokens: Vec<Token> = rows.iter().map(|&row| Token::Row(row)).collect();
        let exact = Exact::new(&model).unwrap();
        let expected = plain(&model, &rows, sees);
        for (i, expected) in expected.iter().enumerate() {
            let found = exact.outputs(&tokens, &[i], 128).unwrap().remove(0);
            for (c, (found, y)) in found.iter().zip(expected).enumerate() {
                let slack = float(1e-9 * (1.0 + y.abs()));
                let Some((lo, hi)) = found.ends() else { panic!("bounded") };
                assert!(
                    lo.plus(&slack.negated()) <= float(*y) && float(*y) <= hi.plus(&slack),
                    "{round} {i} {c} {found:?} {y}"
                );
                // Hardmax ties behind a softmax may stay open; all else is known well.
                let open = model.layers.iter().filter(|l| l.attention.as_ref().is_some_and(|a| a.hard)).count() > 0;
                assert!(open || hi.plus(&lo.negated()) < float(1e-20), "{round}");
            }
            let finer = exact.outputs(&tokens, &[i], 512).unwrap().remove(0);
            assert!(finer.iter().zip(&found).all(|(a, b)| a.meet(b) == *a));
        }
        assert!(exact.outputs(&tokens, &[3], 128).is_none());
        assert!(exact.outputs(&[Token::Row(4)], &[0], 128).is_none());
    }
}

/// Scores of labels are W x + b; the model is its head alone.
fn labelled(weight: Numbers, bias: Numbers) -> Model {
    let mut model = bare(2);
    model.head = Some(Head { labels: None, weight, bias });
    model
}

#[test]
fn ties_are_decided_exactly() {
    let x = [Dyadic::new(3, -1074), Dyadic::new(1, 1023)];
    let tokens = [Token::Vector(&x)];
    let label = |model: &Model, label: usize| {
        Exact::new(model).unwrap().decide(&tokens, &[(0, Wanted::Label(label))], 8192).remove(0)
    };
    let model = labelled(tensor(&[3, 2], &[1.0, 1.0, 1.0, 1.0, 1.0, 1.0 - f64::EPSILON]), tensor(&[3], &[0.0; 3]));
    assert_eq!(label(&model, 0), Decision::Right);
    assert_eq!(label(&model, 1), Decision::Wrong(0));
    assert!(matches!(label(&model, 2), Decision::Wrong(_)));
    assert_eq!(label(&model, 3), Decision::Unknown);
    // Only the subnormal entry tells: 2^-1074 beside 2^1023.
    let model = labelled(tensor(&[2, 2], &[1.0, 1.0, 2.0, 1.0]), tensor(&[2], &[0.0; 2]));
    assert_eq!((label(&model, 0), label(&model, 1)), (Decision::Wrong(1), Decision::Right));
    let model = labelled(texts(&[2, 2], &["1/3", "0.1", "1/3", "0.1"]), texts(&[2], &["1e-400", "1e-400"]));
    assert_eq!((label(&model, 0), label(&model, 1)), (Decision::Right, Decision::Wrong(0)));
    // Equal, but written otherwise.
    let model = labelled(texts(&[2, 2], &["1/3", "0.1", "2/6", "0.1"]), texts(&[2], &["0", "0"]));
    assert_eq!((label(&model, 0), label(&model, 1)), (Decision::Right, Decision::Wrong(0)));
    let model = labelled(texts(&[2, 2], &["1/3", "0.1", "1/3", "0.1"]), texts(&[2], &["0", "1e-2000"]));
    assert_eq!((label(&model, 0), label(&model, 1)), (Decision::Wrong(1), Decision::Right));
}

#[test]
fn outputs_within_a_tolerance() {
    let model = bare(2);
    let exact = Exact::new(&model).unwrap();
    let x = [Dyadic::new(1, -1), Dyadic::new(-1, -1074)];
    let near = |target: &[Dyadic], tolerance: &str| {
        let tolerance = Rational::parse(tolerance, &mut 1_000_000).unwrap();
        exact.decide(&[Token::Vector(&x)], &[(0, Wanted::Near(target, &tolerance))], 8192).remove(0)
    };
    let zero = Dyadic::ZERO;
    assert_eq!(near(&[zero, zero], "0.5"), Decision::Right);
    assert_eq!(near(&[zero, zero], "0.49999999999999999999"), Decision::Wrong(0));
    assert_eq!(near(&[Dyadic::new(1, -1), zero], "0"), Decision::Wrong(1));
    assert_eq!(near(&[Dyadic::new(1, -1), zero], "1e-323"), Decision::Right);
    assert_eq!(near(&x, "0"), Decision::Right);
    assert_eq!(near(&[zero], "1"), Decision::Unknown);
}

/// Scores that differ by 2^-1100 only, and that are equal: the product of the first tokens underflows in floats.
#[test]
fn hardmax_sees_every_bit() {
    let mut model = bare(1);
    let one = || tensor(&[1, 1, 1], &[1.0]);
    let attention =
        Attention { hard: true, heads: 1, size: 1, mask: Mask::None, w_q: one(), w_k: one(), w_v: one(), w_o: one() };
    model.layers.push(Layer { attention: Some(attention), feed_forward: None });
    let exact = Exact::new(&model).unwrap();
    let tiny = [Dyadic::new(1, -600)];
    let more = [Dyadic::new(3, -600)];
    let output = |tokens: &[Token]| exact.outputs(tokens, &[0], 128).unwrap().remove(0).remove(0);
    let of = |m: i64| Real::point(Scaled::from(Dyadic::new(m, -600)));
    assert_eq!(output(&[Token::Vector(&tiny), Token::Vector(&more)]), of(4));
    assert_eq!(output(&[Token::Vector(&tiny), Token::Vector(&tiny)]), of(2));
}

#[test]
fn models_that_do_not_fit_are_refused() {
    let broken = labelled(tensor(&[2, 2], &[1.0; 4]), tensor(&[3], &[0.0; 3]));
    assert!(Exact::new(&broken).is_none());
    let long = "9".repeat(60_000);
    let huge = labelled(texts(&[2, 2], &[long.as_str(); 4]), texts(&[2], &["0", "0"]));
    assert!(Exact::new(&huge).is_some());
    let many = vec![long.as_str(); 40];
    let start = std::time::Instant::now();
    assert!(Exact::new(&labelled(texts(&[20, 2], &many), texts(&[20], &["0"; 20]))).is_none());
    assert!(start.elapsed().as_secs() < 30);
    assert!(Exact::new(&labelled(texts(&[1, 2], &["1e999999999", "1"]), texts(&[1], &["0"]))).is_none());
    assert!(Exact::new(&labelled(texts(&[1, 2], &["1/0", "1"]), texts(&[1], &["0"]))).is_none());
}

#[test]
fn norms_against_powers_of_two() {
    let ratio = |text: &str| Rational::parse(text, &mut 1_000_000).unwrap();
    let v = [Real::whole(3), Real::whole(-4)];
    assert_eq!(compare_norm(&v, &ratio("2"), 128), Some(Ordering::Greater));
    assert_eq!(compare_norm(&v, &ratio("2.321"), 128), Some(Ordering::Greater));
    assert_eq!(compare_norm(&v, &ratio("2.322"), 128), Some(Ordering::Less));
    assert_eq!(compare_norm(&v, &ratio("1e30"), 128), None);
    let tiny = [Real::point(Scaled::from(Dyadic::new(1, -1074)))];
    assert_eq!(compare_norm(&tiny, &ratio("-1074.5"), 128), Some(Ordering::Greater));
    assert_eq!(compare_norm(&tiny, &ratio("-1073.5"), 128), Some(Ordering::Less));
}
