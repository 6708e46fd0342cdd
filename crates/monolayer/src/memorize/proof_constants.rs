//! Corollary 1 as printed, on toys: the constants of Theorem 2, and the interpolating block on top, in big floats.
//!
//! The attention weights are floats, chosen not below what the proof asks for; ids so close together that no float tells them
//! apart (2^-1000 and far less) are computed with as many bits as it takes. The feed-forward weights are big floats.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use super::compiled::Right;
use super::vectors::free_labels::with_label;
use super::vectors::map_search::first_tokens;
use super::vectors::outputs::labels_and_outputs;
use super::vectors::{assemble, exact_heads, token_vectors};
use super::{Compiled, Details, Memorizer, Method};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::rational;
use crate::arithmetic::{Ball, Interval, Magnitude, Number as _};
use crate::context_map::View;
use crate::data::Dataset;
use crate::data::positions::Positions;
use crate::data::separation::separation;
use crate::error::{Error, Result};
use crate::model::Storage;
use crate::model::certificate::CertifiedData;
use crate::model::exact::{center, map_attention, map_block};
use crate::paper::attention::{Attention, Mask, dot};
use crate::paper::feed_forward::FeedForward;
use crate::paper::transformer::Layer;

/// Bits to begin with; doubled until everything is told apart.
const BITS: usize = 256;
/// `|F(X) - Y|` must be below `2^-TOLERANCE`.
const TOLERANCE: i64 = 64;
/// Random directions to try; each is good with probability `1 - 2 / pi` at least (Lemma 2).
const DIRECTIONS: usize = 100;

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
    let mut rng = ChaCha8Rng::seed_from_u64(memorizer.seed);
    let v = constants.direction(&vectors.words, &mut rng)?;
    let a = constants.direction(&vectors.words, &mut rng)?;
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
                    let log2_delta = constants.log2_delta().lo();
                    let attention = self.attention.clone();
                    return Ok(PaperProof { attention, block, log2_delta, log2_gap, bits, log2_error });
                }
            }
            bits *= 2;
        }
        let promised = -constants.log2_delta().lo();
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

/// What the constants of the paper are made of, each enclosed, or on the side that the proof allows.
struct Constants {
    /// `|V| + 1`.
    words: Interval,
    d: Interval,
    r_min: Interval,
    r_max: Interval,
    epsilon: Interval,
    log_n: Interval,
}

impl Constants {
    fn new(words: &Matrix<f64>, longest: usize) -> Self {
        let s = separation(words.cols, &words.data);
        // The inequalities of Definition 1 are strict, and norms are rounded. A single word is as far from others as one likes.
        let epsilon = if s.epsilon.is_finite() { s.epsilon } else { s.r_min };
        Self {
            words: Interval::point(words.rows as f64 + 1.0),
            d: Interval::point(words.cols as f64),
            r_min: Interval::point(s.r_min * (1.0 - SLACK)),
            r_max: Interval::point(s.r_max * (1.0 + SLACK)),
            epsilon: Interval::point(epsilon * (1.0 - SLACK)),
            log_n: Interval::point(longest as f64).ln(),
        }
    }

    /// `2 log n + 3`, the gap that Lemma 1 asks of scores.
    fn score_gap(&self) -> Interval {
        Interval::point(2.0) * self.log_n + Interval::point(3.0)
    }

    /// (29): `|u^T u'| = (|V| + 1)^4 (pi d / 8) (2 log n + 3) / (epsilon r_min)`.
    fn scale(&self) -> Interval {
        let words = self.words.powi(4) * Interval::pi() * self.d / Interval::point(8.0);
        words * self.score_gap() / (self.epsilon * self.r_min)
    }

    /// (32): `||W_O u''|| = epsilon / (4 r_max)`.
    fn output_norm(&self) -> Interval {
        self.epsilon / (Interval::point(4.0) * self.r_max)
    }

    /// The logarithm of (8): `2 (log n)^2 epsilon^2 r_min / (r_max^2 (|V|+1)^4 (2 log n + 3) pi d) e^(-2 r_max^2 |u^T u'|)`.
    fn log2_delta(&self) -> Interval {
        let two = Interval::point(2.0);
        let top = two * self.log_n.square() * self.epsilon.square() * self.r_min;
        let bottom = self.r_max.square() * self.words.powi(4) * self.score_gap() * Interval::pi() * self.d;
        let exponent = two * self.r_max.square() * self.scale();
        ((top / bottom).ln() - exponent) / two.ln()
    }

    /// Lemma 2: a unit vector v with `|v.(x - x')| >= sqrt(8 / (pi d)) |x - x'| / (|V| + 1)^2` for all words and 0.
    fn direction(&self, words: &Matrix<f64>, rng: &mut ChaCha8Rng) -> Result<Vec<f64>> {
        let zero = vec![0.0; words.cols];
        let points: Vec<&[f64]> = words.iter_rows().chain([&zero[..]]).collect();
        let share = (Interval::point(8.0) / (Interval::pi() * self.d)).sqrt() / self.words.square();
        let good = |v: &[f64]| {
            (0..points.len()).flat_map(|i| (0..i).map(move |j| (i, j))).all(|(i, j)| {
                let pair = points[i].iter().zip(points[j]);
                let difference: Vec<Interval> = pair.map(|(x, y)| Interval::point(*x) - Interval::point(*y)).collect();
                let v: Vec<Interval> = v.iter().map(|&v| Interval::point(v)).collect();
                let norm = dot(&difference, &difference).sqrt();
                (share * norm).certainly_less(&dot(&v, &difference).abs())
            })
        };
        for _ in 0..DIRECTIONS {
            let v: Vec<f64> = (0..words.cols).map(|_| StandardNormal.sample(rng)).collect();
            let norm = v.iter().map(|x: &f64| x * x).sum::<f64>().sqrt();
            let v: Vec<f64> = v.iter().map(|x| x / norm).collect();
            if good(&v) {
                return Ok(v);
            }
        }
        Err(Error::too_close(
            format!("no direction of {DIRECTIONS} keeps the tokens apart as Lemma 2 says"),
            "some are too close together for floats; use another `method`",
        ))
    }

    /// Eq. 20 with `W_K = W_V = v^T`, `W_Q` that times (29), and `W_O` along `a`.
    fn attention(&self, v: &[f64], a: &[f64]) -> Attention<f64> {
        let queries: Vec<f64> = v.iter().map(|x| x * self.scale().hi() * (1.0 + SLACK)).collect();
        let w: Vec<f64> = a.iter().map(|x| x * self.output_norm().lo()).collect();
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
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by(|&i, &j| {
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
