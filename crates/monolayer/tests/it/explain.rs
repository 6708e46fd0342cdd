//! Explanations: contributions sum to scores at every scale, and labels change along the id where it is said.

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::data::{Split, Vocabulary};
use monolayer::model::explain::Explanation;
use monolayer::model::explain::contributions::Part;
use monolayer::model::{LabelHead, Words};
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::transformer::{Layer, Transformer};
use monolayer::{Dataset, Mask, Memorizer, Method, Model, Source};
use proptest::prelude::*;

const WORDS: usize = 5;
const LABELS: usize = 4;

/// Numbers of one size, about as many of them 0 as `zeros` in 8, from a seed.
struct Draws(u64, f64, u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = self.0 >> 33;
        if bits % 8 < self.2 { 0.0 } else { self.1 * (bits as f64 / (1_u64 << 30) as f64 - 1.0) }
    }

    fn matrix<R: Real>(&mut self, rows: usize, cols: usize) -> Matrix<R> {
        Matrix::new(rows, cols, (0..rows * cols).map(|_| R::from_f64(self.next())).collect())
    }

    fn vector<R: Real>(&mut self, n: usize) -> Vec<R> {
        (0..n).map(|_| R::from_f64(self.next())).collect()
    }
}

/// A model of one layer with weights of the given sizes.
fn random<R: Real>(seed: u64, d: usize, hidden: usize, [inside, outside]: [f64; 2], heads: usize) -> Model<R> {
    let mut small = Draws(seed, 1.0, 3);
    let head = |draws: &mut Draws| AttentionHead {
        w_q: draws.matrix(1, d),
        w_k: draws.matrix(1, d),
        w_v: draws.matrix(1, d),
        w_o: draws.matrix(d, 1),
    };
    let heads = (0..heads).map(|_| head(&mut small)).collect();
    let attention = Attention { heads, kind: AttentionKind::Softmax, mask: Mask::None };
    let mut wide = Draws(seed.wrapping_add(77), inside, 2);
    let w1 = wide.matrix(hidden, d);
    let b1 = wide.vector(hidden);
    let mut out = Draws(seed.wrapping_add(99), outside, 2);
    let feed_forward = FeedForward { w1, b1, w2: out.matrix(d, hidden), b2: out.vector(d) };
    let mut vocabulary = Vocabulary::default();
    (0..WORDS).for_each(|i| {
        vocabulary.add(&format!("w{i}"));
    });
    let mut codes = Draws(seed.wrapping_add(11), 1.0, 1);
    Model {
        words: Some(Words { vocabulary, embedding: codes.matrix(WORDS, d), start: None }),
        positions: Some(codes.matrix(8, d)),
        transformer: Transformer {
            d,
            pre_feed_forward: None,
            layers: vec![Layer { attention: Some(attention), feed_forward: Some(feed_forward) }],
        },
        head: Some(LabelHead {
            labels: (0..LABELS).map(|l| format!("l{l}")).collect(),
            weight: out.matrix(LABELS, d),
            bias: out.vector(LABELS),
        }),
        outputs: None,
        source: Source::default(),
    }
}

fn sentence() -> Dataset {
    let words = ["w0", "w3", "w1", "w3", "w4", "w2"];
    Dataset::from_sequences(&[words], &[["l0"; 6]]).unwrap()
}

/// Whether contributions sum to scores; the largest bound on rounding that is finite.
fn sums_hold(explained: &[Explanation]) {
    for Explanation { trace, contributions, rounding, .. } in explained {
        for (l, (&score, &bound)) in trace.scores.iter().zip(rounding).enumerate() {
            let sum: f64 = contributions.iter().map(|part| part.adds[l]).sum();
            assert!(!bound.is_finite() || (sum - score).abs() <= bound, "{sum} {score} {bound}");
            assert!(
                !bound.is_nan() && (bound.is_finite() || !score.is_finite() || score.abs() > 1e30 || !sum.is_finite()),
                "{score} {sum}"
            );
        }
        assert_eq!(contributions.iter().filter(|part| matches!(part.part, Part::Unit(_))).count(), trace.firing.len());
    }
}

proptest! {
    /// Weights from subnormal numbers to those that overflow, in both precisions, with one head and with two.
    #[test]
    fn contributions_sum_to_scores_at_every_scale(
        seed in any::<u64>(),
        d in 1_usize..40,
        hidden in 1_usize..60,
        sizes in [-46_i32..38, -46_i32..38],
        heads in 1_usize..3,
    ) {
        let sizes = sizes.map(|e| 10_f64.powi(e));
        sums_hold(&random::<f32>(seed, d, hidden, sizes, heads).explain(&sentence(), 0).unwrap());
        let sizes = sizes.map(|x| x.powi(8));
        sums_hold(&random::<f64>(seed, d, hidden, sizes, heads).explain(&sentence(), 0).unwrap());
    }

    /// The id at which the label is said to end: the label stays just before it and is the one said just behind it, with the
    /// id moved through the value that attention adds.
    #[test]
    fn labels_end_where_it_is_said(seed in any::<u64>(), d in 2_usize..20, hidden in 1_usize..30) {
        let model = random::<f64>(seed, d, hidden, [1.0, 1.0], 1);
        let explained = model.explain(&sentence(), 0).unwrap();
        let trace_at = |t: usize, id: f64| {
            // The same model with the id itself as the only value of all tokens: W_V reads one coordinate that holds it.
            let mut moved = model.clone();
            let wide = |m: &Matrix<f64>, fill: f64| {
                let rows = m.iter_rows().flat_map(|row| row.iter().copied().chain([fill]));
                Matrix::new(m.rows, m.cols + 1, rows.collect())
            };
            moved.transformer.d += 1;
            let words = moved.words.as_mut().unwrap();
            words.embedding = wide(&words.embedding, id);
            moved.positions = moved.positions.as_ref().map(|positions| wide(positions, 0.0));
            let layer = &mut moved.transformer.layers[0];
            let head = &mut layer.attention.as_mut().unwrap().heads[0];
            (head.w_q, head.w_k) = (wide(&head.w_q, 0.0), wide(&head.w_k, 0.0));
            head.w_v = Matrix::new(1, d + 1, (0..=d).map(|i| if i == d { 1.0 } else { 0.0 }).collect());
            head.w_o = Matrix::new(d + 1, 1, head.w_o.data.iter().copied().chain([0.0]).collect());
            let block = layer.feed_forward.as_mut().unwrap();
            block.w1 = wide(&block.w1, 0.0);
            block.w2 = Matrix::new(d + 1, hidden, block.w2.data.iter().copied().chain(vec![0.0; hidden]).collect());
            block.b2.push(0.0);
            let head = moved.head.as_mut().unwrap();
            head.weight = wide(&head.weight, 0.0);
            let scores = moved.trace(&sentence(), 0).unwrap()[t].scores.clone();
            (1..LABELS).fold(0, |best, l| if scores[l] > scores[best] { l } else { best })
        };
        for (t, Explanation { trace, range, .. }) in explained.iter().enumerate() {
            let (Some(id), Some(range)) = (trace.id, range) else { continue };
            let own = trace_at(t, id);
            for (end, outward) in [(range.below, -1.0), (range.above, 1.0)] {
                let Some((at, label)) = end else {
                    // Nothing changes as far as ids can go.
                    let far = if outward < 0.0 { range.reach[0] } else { range.reach[1] };
                    prop_assert_eq!(trace_at(t, id + 0.999 * (far - id)), own);
                    continue;
                };
                let step = 1e-6 * (1.0 + at.abs());
                prop_assert!((at - id) * outward >= -1e-9, "{} {}", at, id);
                prop_assert_eq!(trace_at(t, at + outward * step), label);
                if (at - id).abs() > 2.0 * step {
                    prop_assert_eq!(trace_at(t, at - outward * step), own);
                    prop_assert_eq!(trace_at(t, f64::midpoint(at, id)), own);
                }
            }
        }
    }
}

/// Tokens of one word at one place have a label by their ids: what is said of one holds for all others of the data.
#[test]
fn what_is_said_of_one_context_holds_for_the_others() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/harbor.conll");
    let harbor = Dataset::open(corpus).unwrap();
    let text = Dataset::from_text(include_str!("../../../../LICENSE-MIT"), Split::Word).unwrap();
    let task = Dataset::open("task:sort:alphabet=3,length=1..4").unwrap();
    let small = || Memorizer::new().candidates(32);
    let cases = [
        (small(), &harbor),
        (small().method(Method::Plateau), &harbor),
        (small().text(Split::Word), &text),
        (small(), &task),
    ];
    let mut compared = 0;
    for (memorizer, data) in cases {
        let compiled = memorizer.compile(data).unwrap();
        let places = compiled.model().config().max_length.is_some();
        let mut seen: Vec<(u32, usize, Explanation)> = Vec::new();
        for (i, range) in data.ranges().enumerate() {
            let explained = compiled.model().explain(data, i).unwrap();
            sums_hold(&explained);
            let ids = data.token_ids();
            seen.extend(
                explained
                    .into_iter()
                    .enumerate()
                    .map(|(place, e)| (ids[range.start + place], if places { place } else { 0 }, e)),
            );
        }
        seen.sort_by_key(|(word, place, _)| (*word, *place));
        let label = |e: &Explanation| {
            let scores = &e.trace.scores;
            (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best })
        };
        for group in seen.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            for ((_, _, a), (_, _, b)) in group.iter().flat_map(|a| group.iter().map(move |b| (a, b))) {
                let (range, id) = (a.range.as_ref().unwrap(), b.trace.id.unwrap());
                let room = 1e-5 * (1.0 + id.abs());
                let above = range.above.is_none_or(|(end, _)| id < end - room);
                let below = range.below.is_none_or(|(end, _)| id > end + room);
                if above && below {
                    assert_eq!(label(a), label(b), "{} {id}", a.trace.id.unwrap());
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}
