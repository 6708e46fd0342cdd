//! Helpers that several claims share.

use monolayer::arithmetic::{Ball, Interval};
use monolayer::data::Format;
use monolayer::paper::attention::{Attention, AttentionKind, Mask};
use monolayer::{Dataset, Matrix, Result};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

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
