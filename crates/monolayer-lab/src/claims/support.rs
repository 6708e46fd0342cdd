//! Helpers that several claims share.

use monolayer::arithmetic::{Ball, Interval, Number as _};
use monolayer::data::Format;
use monolayer::paper::attention::{Attention, AttentionKind, Mask};
use monolayer::paper::lemmas::Inequality;
use monolayer::{Dataset, Matrix, Result};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use super::Finding;

/// A source of random numbers.
pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Random vectors of dimension d with entries between -1 and 1, one after another.
pub fn vectors(rng: &mut ChaCha8Rng, count: usize, d: usize) -> Vec<f64> {
    (0..count * d).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// One-dimensional attention with `W_K = W_V = 1`: `w_o` times the mixture of the tokens, scores `query * key`.
pub fn line(kind: AttentionKind, mask: Mask, query: f64, w_o: f64) -> Attention<Interval> {
    let one = |x: f64| [Interval::point(x)];
    Attention { kind, ..Attention::rank_one(mask, &one(1.0), &one(query), &one(w_o)) }
}

/// What [`line`] makes of numbers.
pub fn outputs(attention: &Attention<Interval>, tokens: &[f64]) -> Result<Vec<Interval>> {
    let z = Matrix::new(tokens.len(), 1, tokens.iter().map(|&x| Interval::point(x)).collect());
    Ok(attention.apply(&z)?.data)
}

/// Whether two enclosures have no number in common.
pub fn apart(a: Interval, b: Interval) -> bool {
    a.hi() < b.lo() || b.hi() < a.lo()
}

/// A dataset of vectors: tokens, and a label for each.
pub fn dataset(sequences: &[(Vec<Vec<f64>>, Vec<Value>)]) -> Result<Dataset> {
    let line =
        |(tokens, labels): &(Vec<Vec<f64>>, Vec<Value>)| json!({ "tokens": tokens, "labels": labels }).to_string();
    let lines: Vec<String> = sequences.iter().map(line).collect();
    Dataset::read("made up", Format::JsonLines, lines.join("\n").as_bytes())
}

/// All pairs of `words` random vectors of dimension d as sequences, each token with one of `outputs` random vectors as its
/// label. A word alone says little about its label.
pub fn pairs(words: usize, d: usize, outputs: usize, seed: u64) -> Result<Dataset> {
    let rng = &mut rng(seed);
    let rows = |data: Vec<f64>| data.chunks_exact(d).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let vocabulary = rows(vectors(rng, words, d));
    let targets = rows(vectors(rng, outputs, d));
    let mut label = || json!(targets[rng.random_range(0..outputs)]);
    let pair = |(i, j): (usize, usize)| (vec![vocabulary[i].clone(), vocabulary[j].clone()], vec![label(), label()]);
    let sequences: Vec<_> = (0..words).flat_map(|i| (0..i).map(move |j| (i, j))).map(pair).collect();
    dataset(&sequences)
}

/// Decreasing numbers from `top`, each at least `gap` below the last, some by just that, some by more.
pub fn ladder(rng: &mut ChaCha8Rng, top: f64, gap: f64, rungs: usize) -> Vec<f64> {
    let mut x = top;
    let mut next = || {
        let now = x;
        let stretch = [0.0, 0.0, 0.0, 0.1, 1.0, 10.0][rng.random_range(0..6)] * rng.random::<f64>();
        // Rounding must not close the gap.
        x -= gap * (1.0 + stretch) + 1e-12;
        now
    };
    (0..rungs).map(|_| next()).collect()
}

/// `count` of the numbers, at random, in their order.
pub fn some(rng: &mut ChaCha8Rng, numbers: &[f64], count: usize) -> Vec<f64> {
    let mut indices: Vec<usize> = (0..numbers.len()).collect();
    while indices.len() > count {
        indices.remove(rng.random_range(0..indices.len()));
    }
    indices.into_iter().map(|i| numbers[i]).collect()
}

/// The center of a ball, as a float.
pub fn float(x: &Ball) -> f64 {
    x.to_interval().center()
}

/// All pairs `j < i` of numbers below `count`.
pub fn pairs_below(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(|i| (0..i).map(move |j| (i, j)))
}

/// Whether two numbers agree to within a relative error of 1e-9.
pub fn near(x: f64, y: f64) -> bool {
    (x - y).abs() <= 1e-9 * x.abs().max(y.abs())
}

/// Whether each of some numbers is certainly above the next.
pub fn falls(chain: &[&Ball]) -> bool {
    chain.windows(2).all(|pair| pair[1].certainly_less(pair[0]))
}

/// Inequalities tried, and how they fared.
pub struct Tally {
    tried: usize,
    held: usize,
    /// The smallest left side over its right side, as a binary logarithm.
    log2_ratio: f64,
}

impl Tally {
    /// Nothing tried yet.
    pub fn new() -> Self {
        Self { tried: 0, held: 0, log2_ratio: f64::INFINITY }
    }

    /// One more.
    pub fn add(&mut self, statement: &Inequality) {
        self.tried += 1;
        self.held += usize::from(statement.holds());
        let ratio = statement.left.log2_abs().lo() - statement.right.log2_abs().hi();
        self.log2_ratio = self.log2_ratio.min(ratio);
    }

    /// Whether something was tried and all held.
    pub fn all(&self) -> bool {
        self.tried > 0 && self.held == self.tried
    }

    /// The numbers.
    pub fn tell(&self, finding: Finding) -> Finding {
        finding
            .count("inequalities", self.tried)
            .count("that hold", self.held)
            .number("smallest side against side, log2", self.log2_ratio)
    }
}

/// An exact number.
pub fn ball(x: f64) -> Ball {
    Ball::new(x, 192)
}

/// The gap that the lemmas ask for.
pub fn gap(n: usize) -> f64 {
    2.0 * (n as f64).ln() + 3.0
}

/// Two different sets of n numbers with gaps just above `2 log n + 3`.
pub fn two_sets(rng: &mut ChaCha8Rng) -> (Vec<f64>, Vec<f64>) {
    loop {
        let n = rng.random_range(2..8);
        let rungs = rng.random_range(n + 1..=2 * n);
        let top = rng.random_range(-50.0..50.0);
        let numbers = ladder(rng, top, gap(n), rungs);
        let (a, b) = (some(rng, &numbers, n), some(rng, &numbers, n));
        if a != b {
            return (a, b);
        }
    }
}
