//! Long sequences and many labels: the rules that save work, against programs and against the rules that do not.

use monolayer_core::exact::big::Big;
use monolayer_core::exact::real::Scaled;
use monolayer_core::model::{Attention, Mask, Numbers, Tensor};
use monolayer_core::rules::attention::{Seen, project};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::matrix::Matrix;
use monolayer_core::rules::prefixes;
use monolayer_core::rules::rivals::ShortHead;
use monolayer_core::rules::sum::{Arithmetic, Sum, Term, sum};
use monolayer_core::{Dyadic, Format, Stored};

use crate::common::Random;

const F64: Arithmetic = Arithmetic::Float { format: Format::F64, exp_ulp: 4 };

/// A number below 2^scale in size, with all bits.
fn number(random: &mut Random, scale: i32) -> f64 {
    let x = (random.below(1 << 53) as f64 / 2_f64.powi(52) - 1.0) * 2_f64.powi(scale.max(-1000));
    x * 2_f64.powi(scale - scale.max(-1000))
}

fn dyadic(x: f64) -> Dyadic {
    Dyadic::from_bits(Format::F64, x.to_bits()).expect("finite")
}

fn matrix(rows: usize, entries: &[f64]) -> Matrix {
    let bytes = entries.iter().flat_map(|x| x.to_le_bytes()).collect();
    let shape = vec![rows, entries.len() / rows];
    Matrix::new(&Numbers::Floats(Tensor::dense(shape, Stored::F64, bytes)), F64).unwrap()
}

fn holds(ball: Ball, x: f64) -> bool {
    let (low, high, e) = ball.ends();
    let x = Scaled::from(dyadic(x));
    Scaled::new(Big::from(low), e.into()) <= x && x <= Scaled::new(Big::from(high), e.into())
}

/// What a program computes whose sums run in some order, with one of the ways to normalize.
fn program(keys: &[f64], values: &[f64], query: f64, random: &mut Random) -> f64 {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    match random.below(3) {
        0 => order.sort_by(|&a, &b| (query * keys[a]).total_cmp(&(query * keys[b]))),
        1 => (1..order.len()).for_each(|i| order.swap(i, random.below(i + 1))),
        _ => (),
    }
    let top = keys.iter().map(|k| query * k).fold(f64::NEG_INFINITY, f64::max);
    let slip = 1.0 + random.one_of(&[-3.0, 0.0, 3.0]) * f64::EPSILON / 2.0;
    let weight = |i: usize| (query * keys[i] - top).exp() * slip;
    let total: f64 = order.iter().map(|&i| weight(i)).sum();
    if random.below(2) == 0 {
        return order.iter().map(|&i| weight(i) * values[i]).sum::<f64>() / total;
    }
    order.iter().map(|&i| weight(i) / total * values[i]).sum()
}

#[test]
fn growing_sums_hold_every_program() {
    let mut random = Random(11);
    let (mut found_all, mut tokens_all, mut wide) = (0, 0, 0);
    for round in 0..600 {
        let n = 2 + random.below(if round % 40 == 0 { 600 } else { 60 });
        let scale = random.one_of(&[-1060, -500, -30, -3, 0, 1, 3, 8, 500]);
        // Scores of a few sizes, from equal to saturated; a key far above the others may come late.
        let score = random.one_of(&[-60, -10, 0, 2, 5, 9]);
        let words: Vec<f64> = (0..=random.below(n / 2 + 1)).map(|_| number(&mut random, scale)).collect();
        let mut ids: Vec<usize> = (0..n).map(|_| random.below(words.len())).collect();
        if random.below(3) == 0 {
            ids.sort_by(|a, b| words[*a].total_cmp(&words[*b]));
        }
        // Powers of two, so that keys and values are the tokens but for their sizes.
        let power = |e: i32| if e.abs() < 1000 { 2_f64.powi(e) } else { 1.0 };
        let (w_k, w_q, w_v) = (1.0, power(score - 2 * scale), random.one_of(&[1.0, -2.0, 0.0]));
        let mask = [Mask::None, Mask::Causal, Mask::Prefix(random.below(n) + 1)][random.below(3)].clone();
        let one = |w: f64| matrix(1, &[w]);
        let layer = Attention {
            hard: false,
            heads: 1,
            size: 1,
            mask,
            w_q: one(w_q),
            w_k: one(w_k),
            w_v: one(w_v),
            w_o: one(1.0),
        };
        let start = random.below(2) == 0;
        let tokens: Vec<Vec<Ball>> = ids.iter().map(|id| vec![Ball::exact(dyadic(words[*id]))]).collect();
        let Some(projected) = project(F64, &layer, &tokens) else { continue };
        let seen = |i: usize| Seen::new(&layer.mask, i, n, start);
        let Some(found) = prefixes::read(F64, &layer, &projected, &seen, (2, &|_| ())) else { continue };
        for (i, found) in found.iter().enumerate() {
            tokens_all += 1;
            let Some(found) = *found else { continue };
            found_all += 1;
            let of = |w: f64| seen(i).iter().map(|j| w * words[ids[j]]).collect::<Vec<f64>>();
            let (keys, values, query) = (of(w_k), of(w_v), w_q * words[ids[i]]);
            for _ in 0..3 {
                let computed = program(&keys, &values, query, &mut random);
                assert!(holds(found, computed), "round {round}, token {i} of {n}: {computed:e} is not in {found:?}");
            }
            let direct = projected.read(F64, &layer, i, &seen(i)).unwrap()[0];
            let size = |ball: Ball| ball.r as f64 * 2_f64.powi(ball.e.max(-1000));
            wide += usize::from(size(found) > 2.0 * size(direct));
        }
    }
    println!("{found_all} of {tokens_all} tokens by growing sums, {wide} of them twice as wide as one by one");
    assert!(2 * found_all > tokens_all && 20 * wide < found_all, "{found_all} of {tokens_all}, {wide}");
}

#[test]
fn labels_that_are_left_out_are_far() {
    let mut random = Random(12);
    let (mut left_out, mut all) = (0, 0);
    for _ in 0..1500 {
        let (labels, columns) = (64 + random.below(90), 1 + random.below(40));
        let scale = random.one_of(&[-1040, -300, -5, 0, 3, 300, 960]);
        let signs = random.below(2) == 0;
        let entry = |random: &mut Random| if signs { random.one_of(&[-1.0, 1.0]) } else { number(random, 2) };
        let weights: Vec<f64> = (0..labels * columns).map(|_| entry(&mut random)).collect();
        let biases: Vec<f64> =
            (0..labels).map(|_| random.one_of(&[0.0, 0.5, -1.0]) * 2_f64.powi(scale.max(-1000))).collect();
        let (weight, bias) = (matrix(labels, &weights), matrix(1, &biases));
        let wanted = random.below(labels);
        let wide = random.one_of(&[0, 1 << 10, 1 << 25]);
        // Like the row of the wanted label, more or less.
        let near = random.one_of(&[0.0, 1.0, 30.0]);
        let number = |c: usize, random: &mut Random| {
            let own = near * weights[wanted * columns + c] * 2_f64.powi(scale.max(-1000));
            let x = dyadic(if random.below(3) == 0 { own } else { own + number(random, scale) });
            let shift = x.m.leading_zeros().min(x.m.unsigned_abs().leading_zeros()).saturating_sub(3);
            if wide == 0 { Ball::exact(x) } else { Ball { m: x.m << shift, r: wide, e: x.e - shift as i32 } }
        };
        let y: Vec<Ball> = (0..columns).map(|c| number(c, &mut random)).collect();
        let score = |l: usize| {
            let terms = weight.weights(l).map(|(c, w)| Term::weighted(w, y[c]));
            sum(F64, terms.chain([Term::addend(Ball::exact(dyadic(biases[l])))])).map(Sum::computed)
        };
        let Some(short) = ShortHead::new(&weight, &bias).and_then(|head| head.scores(F64, &bias, &y)) else { continue };
        let own = score(wanted).expect("nothing overflows where there are bounds");
        let margin = |l: usize| own.plus(score(l).expect("nothing overflows where there are bounds").minus());
        let nearest = margin(short.nearest(wanted).unwrap());
        let rivals = short.rivals(wanted, nearest);
        all += labels - 1;
        left_out += labels - 1 - rivals.len();
        for l in (0..labels).filter(|l| *l != wanted && !rivals.contains(l)) {
            let margin = margin(l);
            assert!(margin.is_positive(), "label {l} may win over {wanted} and was left out");
            let (a, b) =
                (margin.middle().times(nearest.spread().size()), nearest.middle().times(margin.spread().size()));
            assert!(!a.is_below(b), "label {l} is nearer to {wanted} than the nearest");
        }
    }
    println!("{left_out} of {all} labels were left out");
    assert!(3 * left_out > all, "{left_out} of {all}");
}
