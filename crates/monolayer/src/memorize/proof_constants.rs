//! Corollary 1 as printed, on toys: the constants of Theorem 2, and the interpolating block on top, in big floats.
//!
//! The attention weights are floats, chosen not below what the proof asks for; ids so close together that no float tells them
//! apart (2^-1000 and far less) are computed with as many bits as it takes. The feed-forward weights are big floats.

use super::compiled::Right;
use super::vectors::free_labels::with_label;
use super::vectors::map_search::first_tokens;
use super::vectors::outputs::labels_and_outputs;
use super::vectors::{assemble, exact_heads, token_vectors};
use super::{Compiled, Details, Memorizer, Method};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::rational;
use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Interval, Magnitude, Number as _};
use crate::context_map::View;
use crate::data::Dataset;
use crate::data::positions::Positions;
use crate::data::separation::{Separation, separation};
use crate::error::{Error, Result};
use crate::model::Storage;
use crate::model::certificate::CertifiedData;
use crate::model::exact::{center, map_attention, map_block};
use crate::paper::attention::{Attention, Mask, dot};
use crate::paper::feed_forward::FeedForward;
use crate::paper::projection::lemma_2;
use crate::paper::theorem_two::{log2_delta, output_norm, query_scale, score_gap};
use crate::paper::transformer::Layer;

/// Bits to begin with; doubled until everything is told apart.
const BITS: usize = 256;
/// `|F(X) - Y|` must be below `2^-TOLERANCE`.
const TOLERANCE: i64 = 64;
/// Constants are taken so much, relatively, to the safe side of their rounding: 2^-40.
const SLACK: f64 = 1.0 / (1_u64 << 40) as f64;

/// What was proved of the paper's model of a toy.
#[derive(Debug, Clone)]
pub struct PaperProof {
    /// Eq. 20, with the constants (29) and (32).
    pub attention: Attention<f64>,
    /// The interpolating block; its numbers have `bits` bits.
    pub block: FeedForward<Ball>,
    /// The binary logarithm of the delta (8) that Theorem 2 promises.
    pub log2_delta: f64,
    /// The binary logarithm of the smallest distance of two ids along the direction of the block.
    pub log2_gap: f64,
    /// Bits of the computation.
    pub bits: usize,
    /// The binary logarithm of a bound on `|F(X) - Y|` in real arithmetic, over all tokens and coordinates.
    pub log2_error: f64,
}

/// Memorizes a toy as Corollary 1 says. Sequences must have no duplicates, tokens must not be 0, labels must agree, and
/// `max_bits` must be enough.
pub(super) fn memorize_paper(data: &Dataset, memorizer: &Memorizer) -> Result<Compiled> {
    let (labels, outputs) = labels_and_outputs(data)?;
    let vectors = token_vectors(data, memorizer, &Positions::None, &outputs)?;
    let view = View::new(data, &vectors, Mask::None);
    check(data, &view)?;
    let agreement = view.contexts.agree(&labels);
    if let Some(&t) = agreement.impossible.first() {
        return Err(Error::data(data.location(t), "its context has another label elsewhere", "use another `method`"));
    }
    let constants = Constants::new(&vectors.words, data.longest());
    // Lemma 2 for all words and 0: along v for keys and queries, along a for the ids that the block reads.
    let d = vectors.words.cols;
    let words: Vec<f64> = vectors.words.data.iter().copied().chain(std::iter::repeat_n(0.0, d)).collect();
    let v = lemma_2(d, &words, memorizer.seed)?.v;
    let a = lemma_2(d, &words, memorizer.seed.wrapping_add(1))?.v;
    let points = outputs.points(vectors.d());
    let attention = constants.attention(&v, &a);
    let contexts = with_label(&agreement.label);
    let toy = Toy { view: &view, points: &points, label: &agreement.label, contexts, attention, a };
    let proof = toy.prove(&constants, memorizer.max_bits)?;
    let layer = Layer {
        attention: Some(map_attention(&toy.attention, |&x| rational(x))),
        feed_forward: Some(map_block(&proof.block, center)),
    };
    let certified = CertifiedData::new(data, 0);
    let source = memorizer.source(data, certified.hash(), Method::Paper);
    let heads = exact_heads(&outputs, &points);
    let mut proved = vec![true; data.tokens()];
    agreement.free.iter().for_each(|&t| proved[t] = false);
    Ok(Compiled {
        method: Method::Paper,
        model: assemble(data, &vectors, vec![layer], heads, source).into(),
        // That outputs are within 2^-64 is proved here, with more bits than a checker is asked for.
        claims: Vec::new(),
        data: certified,
        impossible: Vec::new(),
        right: Right::new(data, &proved),
        free: agreement.free,
        proved,
        gap: proof.log2_gap.exp2(),
        context_ids: view.contexts.count,
        details: Details::Paper(proof),
        storage: Storage::Auto,
        names: None,
    })
}

/// A toy with its attention, before the feed-forward block.
struct Toy<'a> {
    view: &'a View<'a>,
    /// The output of each label.
    points: &'a Matrix<f64>,
    /// The label of each context.
    label: &'a [Option<u32>],
    /// The contexts that the block is for: those with a label.
    contexts: Vec<usize>,
    attention: Attention<f64>,
    /// The direction of the block.
    a: Vec<f64>,
}

impl Toy<'_> {
    /// The block, with as many bits as it takes.
    fn prove(&self, constants: &Constants, max_bits: usize) -> Result<PaperProof> {
        let first = first_tokens(self.view);
        let first: Vec<usize> = self.contexts.iter().map(|&context| first[context]).collect();
        let target = |i: usize| self.target(i);
        let mut bits = BITS;
        while bits <= max_bits {
            let rows = enclose(self.view, &self.attention, &first, bits)?;
            if let Some((block, log2_gap)) = interpolate(&rows, &self.a, target, bits) {
                // The block is what it is; the ids are enclosed with twice the bits.
                let error = self.largest_error(&block, &first, bits)?;
                if error <= Magnitude::power_of_two(-TOLERANCE) {
                    let log2_error = if error.is_zero() { f64::NEG_INFINITY } else { error.log2().hi() };
                    let log2_delta = constants.log2_delta();
                    let attention = self.attention.clone();
                    return Ok(PaperProof { attention, block, log2_delta, log2_gap, bits, log2_error });
                }
            }
            bits *= 2;
        }
        let promised = -constants.log2_delta();
        Err(Error::too_close(
            format!("{max_bits} bits do not tell the ids apart; Theorem 2 promises a gap of 2^-{promised:.0} only"),
            "the paper's constants are for toys of a few different tokens; use another `method`",
        ))
    }

    /// The output of the i-th context.
    fn target(&self, i: usize) -> &[f64] {
        self.points.row(self.label[self.contexts[i]].unwrap_or(0) as usize)
    }

    /// A bound on the distance of all outputs from their targets.
    fn largest_error(&self, block: &FeedForward<Ball>, first: &[usize], bits: usize) -> Result<Magnitude> {
        let rows = enclose(self.view, &self.attention, first, 2 * bits)?;
        let mut largest = Magnitude::ZERO;
        for (i, h) in rows.iter().enumerate() {
            for (x, &y) in block.apply_token(h).into_iter().zip(self.target(i)) {
                let error = (x - Ball::new(y, bits)).absolute_bounds().1;
                if error > largest {
                    largest = error;
                }
            }
        }
        Ok(largest)
    }
}

/// What Theorem 2 assumes.
fn check(data: &Dataset, view: &View) -> Result<()> {
    for range in data.ranges() {
        for t in range.clone() {
            if view.vectors.words.row(view.token_ids[t] as usize).iter().all(|&x| x == 0.0) {
                return Err(Error::data(
                    data.location(t),
                    "a zero vector",
                    "Theorem 2 needs r_min > 0; use another `method`",
                ));
            }
            if view.token_ids[range.start..t].contains(&view.token_ids[t]) {
                let help = "Theorem 2 is about sequences without duplicates; use another `method`";
                return Err(Error::data(data.location(t), "the token stands in its sequence twice", help));
            }
        }
    }
    Ok(())
}

/// What the constants of the paper are made of, on the side that the proof allows.
struct Constants {
    vocabulary: usize,
    d: usize,
    n: usize,
    separation: Separation,
}

impl Constants {
    fn new(words: &Matrix<f64>, longest: usize) -> Self {
        let s = separation(words.cols, &words.data);
        // The inequalities of Definition 1 are strict, and norms are rounded. A single word is as far from others as one likes.
        let epsilon = if s.epsilon.is_finite() { s.epsilon } else { s.r_min };
        let separation = Separation {
            r_min: s.r_min * (1.0 - SLACK),
            r_max: s.r_max * (1.0 + SLACK),
            epsilon: epsilon * (1.0 - SLACK),
        };
        Self { vocabulary: words.rows, d: words.cols, n: longest, separation }
    }

    /// The logarithm of (8), at least.
    fn log2_delta(&self) -> f64 {
        let Separation { r_min, r_max, epsilon } = self.separation;
        let constants = [r_min, r_max, epsilon].map(Interval::point);
        log2_delta(self.vocabulary, self.n, self.d, constants, &Interval::pi()).lo()
    }

    /// Eq. 20 with `W_K = W_V = v^T`, `W_Q` that times (29), and `W_O` along `a` with the length (32).
    fn attention(&self, v: &[f64], a: &[f64]) -> Attention<f64> {
        let Separation { r_min, r_max, epsilon } = self.separation;
        let scale = query_scale(self.vocabulary, self.d, score_gap(self.n), epsilon, r_min).hi();
        let length = output_norm(epsilon, r_max).lo();
        let queries: Vec<f64> = v.iter().map(|x| x * scale * (1.0 + SLACK)).collect();
        let w: Vec<f64> = a.iter().map(|x| x * length).collect();
        Attention::rank_one(Mask::None, v, &queries, &w)
    }
}

/// The given tokens after attention.
fn enclose(view: &View, attention: &Attention<f64>, tokens: &[usize], bits: usize) -> Result<Vec<Vec<Ball>>> {
    let attention = map_attention(attention, |&x| Ball::new(x, bits));
    let row = |&t: &usize| {
        let (sequence, place) = view.place(t);
        let tokens = view.offsets[sequence]..view.offsets[sequence + 1];
        let vectors = tokens.clone().flat_map(|t| view.vectors.vector(view.token_ids[t], 0));
        let data: Vec<Ball> = vectors.map(|x| Ball::new(x, bits)).collect();
        let z = Matrix::new(tokens.len(), view.vectors.d(), data);
        Ok(attention.apply(&z)?.row(place).to_vec())
    };
    tokens.iter().map(row).collect()
}

/// The block through all targets (see [`super::vectors::interpolate`]) and the logarithm of the smallest gap; none where ids overlap.
fn interpolate<'a>(
    rows: &[Vec<Ball>],
    a: &[f64],
    target: impl Fn(usize) -> &'a [f64],
    bits: usize,
) -> Option<(FeedForward<Ball>, f64)> {
    let a: Vec<Ball> = a.iter().map(|&x| Ball::new(x, bits)).collect();
    let (d, ids) = (a.len(), rows.iter().map(|h| dot(&a, h)).collect::<Vec<Ball>>());
    let order = sorting::order_by(ids.len(), &|i, j| {
        let less = |i: usize, j: usize| ids[i].midpoint().certainly_less(&ids[j].midpoint());
        if less(i, j) { std::cmp::Ordering::Less } else { less(j, i).cmp(&false) }
    });
    let mut log2_gap = f64::INFINITY;
    for pair in order.windows(2) {
        if !ids[pair[0]].certainly_less(&ids[pair[1]]) {
            return None;
        }
        log2_gap = log2_gap.min((ids[pair[1]].clone() - &ids[pair[0]]).log2_abs().lo());
    }
    let wanted = |id: usize, i: usize| (Ball::new(target(id)[i], bits) - &rows[id][i]).midpoint();
    let hinges = order.len().max(2) - 1;
    let mut w2 = Matrix::from_fn(d, hinges, |_, _| Ball::new(0.0, bits));
    for i in 0..d {
        let mut before = Ball::new(0.0, bits);
        for (j, pair) in order.windows(2).enumerate() {
            let step = ids[pair[1]].midpoint() - ids[pair[0]].midpoint();
            let slope = ((wanted(pair[1], i) - wanted(pair[0], i)) / step).midpoint();
            w2.row_mut(i)[j] = (slope.clone() - before).midpoint();
            before = slope;
        }
    }
    let block = FeedForward {
        w1: Matrix::new(hinges, d, (0..hinges).flat_map(|_| a.clone()).collect()),
        b1: order[..hinges].iter().map(|&id| -ids[id].midpoint()).collect(),
        w2,
        b2: (0..d).map(|i| wanted(order[0], i)).collect(),
    };
    Some((block, log2_gap))
}
