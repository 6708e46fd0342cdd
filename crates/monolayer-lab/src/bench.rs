//! Runs for measuring speed, with made-up numbers of the real shapes.

use rayon::prelude::*;

use monolayer::arithmetic::kernels::{self, Parallelism};
use monolayer::arithmetic::matrix::Matrix;
use monolayer::model::forward;
use monolayer::paper::feed_forward::FeedForward;
use monolayer_train::products_alone::fastest;

/// Numbers between -0.5 and 0.5 with no pattern that would matter.
fn numbers(len: usize) -> Vec<f32> {
    (0..len as u64).map(|i| (i.wrapping_mul(6_364_136_223_846_793_005) >> 40) as f32 / (1 << 24) as f32 - 0.5).collect()
}

/// GFLOP/s of an `n x n` matrix product in single precision on all threads.
pub fn square_product(n: usize) -> f64 {
    let (a, b, mut out) = (numbers(n * n), numbers(n * n), vec![0.0; n * n]);
    let parallelism = Parallelism::Rayon(0);
    let seconds = fastest(|| kernels::product(&a, &b, n, &mut out, false, parallelism));
    2.0 * (n * n * n) as f64 / seconds / 1e9
}

/// GFLOP/s of the feed-forward block (3) in single precision on all threads.
pub fn feed_forward(tokens: usize, d: usize, q: usize) -> f64 {
    let block = FeedForward {
        w1: Matrix::new(q, d, numbers(q * d)),
        b1: numbers(q),
        w2: Matrix::new(d, q, numbers(q * d).iter().map(|x| x / q as f32).collect()),
        b2: numbers(d),
    };
    let mut h = numbers(tokens * d);
    let seconds =
        fastest(|| h.par_chunks_mut(forward::BLOCK * d).for_each(|rows| forward::feed_forward_single(&block, d, rows)));
    4.0 * (tokens * d * q) as f64 / seconds / 1e9
}
