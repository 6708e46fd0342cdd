//! Theorems A and B on random layers.

use dashu_ratio::RBig;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, StandardNormal};

use super::{Instance, collision, plus_identity, product, times, twin};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::rational;
use crate::error::Result;
use crate::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};

/// What was seen on random layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollisionTally {
    /// Layers drawn.
    pub layers: usize,
    /// Layers with the two sequences of Theorem A.
    pub colliding: usize,
    /// Layers for which `I + sum_i W_O,i W_V,i` is singular.
    pub singular: usize,
    /// The smallest distance of the function's values.
    pub distance: RBig,
}

/// Draws layers and finds the two sequences for each; calls `on_layer` after each.
pub fn collisions(layers: usize, length: usize, seed: u64, on_layer: impl Fn() + Sync) -> Result<CollisionTally> {
    let one = |number: usize| -> Result<CollisionTally> {
        let found = collision(&draw_layer(seed, number as u64), length)?;
        on_layer();
        Ok(CollisionTally {
            layers: 1,
            colliding: usize::from(found.holds()),
            singular: usize::from(found.singular),
            distance: found.distance(),
        })
    };
    let both = |a: CollisionTally, b: CollisionTally| CollisionTally {
        layers: a.layers + b.layers,
        colliding: a.colliding + b.colliding,
        singular: a.singular + b.singular,
        distance: if a.layers > 0 && (b.layers == 0 || a.distance < b.distance) { a.distance } else { b.distance },
    };
    let none = CollisionTally { layers: 0, colliding: 0, singular: 0, distance: RBig::ZERO };
    Ok(parallel::try_map(layers, one)?.into_iter().fold(none, both))
}

/// What was seen of Theorem B on random layers.
#[derive(Debug, Clone, PartialEq)]
pub struct TwinTally {
    /// Layers drawn.
    pub layers: usize,
    /// Layers with a sequence and a constant one in `[1, 2]^d` that collide, f twice the bound apart but for 2^-20.
    pub colliding: usize,
    /// Layers that give both sequences of the instance the same scores, exactly.
    pub same_scores: usize,
    /// A lower bound on all distances of the function's values.
    pub distance: f64,
}

/// Draws the layers of [`collisions`] and finds the sequences of Theorem B for each; calls `on_layer` after each.
pub fn twins(
    instance: &Instance,
    layers: usize,
    length: usize,
    seed: u64,
    on_layer: impl Fn() + Sync,
) -> Result<TwinTally> {
    let least = 2.0 * instance.bound().map_or(0.0, |bound| bound.to_f64().value()) - 2_f64.powi(-20);
    let one = |number: usize| -> Result<TwinTally> {
        let layer = draw_layer(seed, number as u64);
        let found = twin(instance, &layer, length)?;
        let distance = found.distance();
        on_layer();
        Ok(TwinTally {
            layers: 1,
            colliding: usize::from(found.inside() && distance >= least),
            same_scores: usize::from(instance.same_scores(&layer, length)),
            distance,
        })
    };
    let both = |a: TwinTally, b: TwinTally| TwinTally {
        layers: a.layers + b.layers,
        colliding: a.colliding + b.colliding,
        same_scores: a.same_scores + b.same_scores,
        distance: a.distance.min(b.distance),
    };
    let none = TwinTally { layers: 0, colliding: 0, same_scores: 0, distance: f64::INFINITY };
    Ok(parallel::try_map(layers, one)?.into_iter().fold(none, both))
}

/// A layer of 1 to 8 heads of size 1 to 8 on tokens of dimension 1 to 8: that of a number under a seed. Weights are normal, of
/// sizes between 2^-60 and 2^60, near 2^-400, small integers or all 0. About a third of the layers are singular.
pub fn draw_layer(seed: u64, number: u64) -> Attention<RBig> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    let (d, s, kind) = (rng.random_range(1..=8), rng.random_range(1..=8), rng.random_range(0..5));
    let singular = rng.random_range(0..3) == 0;
    let heads = rng.random_range(1..=8 - usize::from(singular));
    let mut weight = || match kind {
        0 => rational(StandardNormal.sample(rng)),
        1 => RBig::from(rng.random_range(-2..=2_i64)),
        2 => rational(scaled(StandardNormal.sample(rng), rng.random_range(-60..=60))),
        3 => rational(scaled(StandardNormal.sample(rng), -400)),
        _ => RBig::ZERO,
    };
    let mut matrix = |rows, cols| Matrix::from_fn(rows, cols, |_, _| weight());
    let head = |_| AttentionHead { w_q: matrix(s, d), w_k: matrix(s, d), w_v: matrix(s, d), w_o: matrix(d, s) };
    let mut heads: Vec<AttentionHead<RBig>> = (0..heads).map(head).collect();
    if singular {
        let e: Vec<RBig> = (0..d).map(|c| RBig::from(if c == 0 { 1 } else { rng.random_range(-3..=3_i64) })).collect();
        heads.push(cancelling(&heads, &e, s));
    }
    let mask = if rng.random() { Mask::Causal } else { Mask::None };
    Attention { kind: AttentionKind::Softmax, mask, heads }
}

fn scaled(x: f64, exponent: i32) -> f64 {
    x * f64::from(exponent).exp2()
}

/// A head after which `(I + M) e = 0`, for an e that begins with 1: `W_O W_V = -((I + M) e) e_1^T`.
fn cancelling(heads: &[AttentionHead<RBig>], e: &[RBig], s: usize) -> AttentionHead<RBig> {
    let d = e.len();
    let zero = Matrix::from_fn(d, d, |_, _| RBig::ZERO);
    let m = heads.iter().fold(zero, |m, head| {
        let more = product(&head.w_o, &head.w_v);
        Matrix::from_fn(d, d, |r, c| &m.row(r)[c] + &more.row(r)[c])
    });
    let image = times(&plus_identity(&m), e);
    AttentionHead {
        w_q: heads[0].w_q.clone(),
        w_k: heads[0].w_k.clone(),
        w_v: Matrix::from_fn(s, d, |r, c| if (r, c) == (0, 0) { RBig::ONE } else { RBig::ZERO }),
        w_o: Matrix::from_fn(d, s, |r, c| if c == 0 { -&image[r] } else { RBig::ZERO }),
    }
}
