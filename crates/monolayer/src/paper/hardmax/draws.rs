//! Theorem 1 on random layers.

use dashu_ratio::RBig;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, StandardNormal};

use super::{HardmaxLayer, line, pair, printed_pair, witness};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::rational;
use crate::error::Result;
use crate::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};

/// What was seen on random layers.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Layers drawn.
    pub layers: usize,
    /// Layers that gave exactly equal outputs at every shared token.
    pub blind: usize,
    /// Heads drawn.
    pub heads: usize,
    /// Heads that attend to the largest multiple of v alone, from the last token.
    pub largest: usize,
    /// Heads that attend to the smallest.
    pub smallest: usize,
    /// Heads that attend to all tokens: `(W_K v) . (W_Q v) = 0`.
    pub mean: usize,
    /// Layers that tell the printed pair apart.
    pub separate_printed_pair: usize,
}

/// Draws layers of 1 to 8 heads of size 1 to 8 on tokens of dimension 1 to 16, and a direction for each. About a third of
/// the heads have `(W_K v) . (W_Q v) = 0`.
pub fn draws(layers: usize, length: usize, seed: u64) -> Result<Tally> {
    pair(length)?;
    let one = |stream: usize| -> Result<Tally> {
        let (attention, v) = draw(seed, stream as u64);
        look(&HardmaxLayer::new(&attention), &v, length)
    };
    Ok(parallel::try_map(layers, one)?.iter().fold(Tally::default(), |a, b| a.plus(b)))
}

/// Runs one layer on the pair and on the printed one.
fn look(layer: &HardmaxLayer, v: &[RBig], length: usize) -> Result<Tally> {
    let found = witness(layer, v, length)?;
    let sequence = &found.sequences[0];
    let attended = layer.attended(&line(sequence, v), length - 1);
    let count = |which: &dyn Fn(&Vec<usize>) -> bool| attended.iter().filter(|places| which(places)).count();
    let alone = |end: Option<&i64>| count(&|places| places.len() == 1 && Some(&sequence[places[0]]) == end);
    Ok(Tally {
        layers: 1,
        blind: usize::from(found.blind()),
        heads: attended.len(),
        largest: alone(sequence.iter().max()),
        smallest: alone(sequence.iter().min()),
        mean: count(&|places| places.len() == length),
        separate_printed_pair: usize::from(!printed_pair(layer, v)?.blind()),
    })
}

impl Tally {
    fn plus(&self, other: &Self) -> Self {
        Self {
            layers: self.layers + other.layers,
            blind: self.blind + other.blind,
            heads: self.heads + other.heads,
            largest: self.largest + other.largest,
            smallest: self.smallest + other.smallest,
            mean: self.mean + other.mean,
            separate_printed_pair: self.separate_printed_pair + other.separate_printed_pair,
        }
    }
}

/// A layer with standard normal weights, and a direction of small integers: those of a number under a seed.
pub fn draw(seed: u64, number: u64) -> (Attention<RBig>, Vec<RBig>) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    let (d, s, heads) = (rng.random_range(1..=16), rng.random_range(1..=8), rng.random_range(1..=8));
    let mut v: Vec<RBig> = (0..d).map(|_| RBig::from(rng.random_range(-3..=3_i64))).collect();
    if v.iter().all(RBig::is_zero) {
        v[0] = RBig::ONE;
    }
    let head = |_| {
        let mut normal = |rows, cols| Matrix::from_fn(rows, cols, |_, _| rational(StandardNormal.sample(rng)));
        let mut head = AttentionHead { w_q: normal(s, d), w_k: normal(s, d), w_v: normal(s, d), w_o: normal(d, s) };
        if rng.random_range(0..3) == 0 {
            head.w_q = orthogonal(&head, &v);
        }
        head
    };
    let heads = (0..heads).map(head).collect();
    (Attention { kind: AttentionKind::Hardmax, mask: Mask::None, heads }, v)
}

/// `(k . k) W_Q - k k^T W_Q` for `k = W_K v`: in the place of W_Q, it makes `(W_K v) . (W_Q v) = 0`, exactly.
fn orthogonal(head: &AttentionHead<RBig>, v: &[RBig]) -> Matrix<RBig> {
    let dot = |x: &[RBig], y: &[RBig]| x.iter().zip(y).fold(RBig::ZERO, |sum, (x, y)| sum + x * y);
    let k: Vec<RBig> = head.w_k.iter_rows().map(|row| dot(row, v)).collect();
    let square = dot(&k, &k);
    let (s, d) = (head.w_q.rows, head.w_q.cols);
    let along: Vec<RBig> =
        (0..d).map(|j| (0..s).fold(RBig::ZERO, |sum, i| sum + &k[i] * &head.w_q.row(i)[j])).collect();
    Matrix::from_fn(s, d, |i, j| &square * &head.w_q.row(i)[j] - &k[i] * &along[j])
}
