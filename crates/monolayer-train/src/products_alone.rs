//! The matrix products of a training step alone, forward and backward: a lower bound on its time, which
//! `monolayer bench train` measures beside a run.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use std::time::Instant;

use monolayer::arithmetic::kernels;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rayon::prelude::*;

use crate::architecture::Architecture;
use crate::feed_forward::{Gradients, Weights, backward};
use crate::product::product;
use crate::times::Watch;

/// Runs at least this often and this long; the fastest run counts.
const RUNS: usize = 3;
const SECONDS: f64 = 0.5;

/// The fastest of several runs, in seconds.
pub fn fastest(mut run: impl FnMut()) -> f64 {
    let (mut best, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
    while runs < RUNS || total < SECONDS {
        let start = Instant::now();
        run();
        let seconds = start.elapsed().as_secs_f64();
        best = best.min(seconds);
        total += seconds;
        runs += 1;
    }
    best
}

/// The linear maps of a model, as (inputs, outputs).
fn linear_maps(a: &Architecture) -> Vec<(usize, usize)> {
    let (d, q) = (a.dim, a.hidden);
    let layer = [(d, a.projections()), (a.mixed(), d), (d, q), (q, d)];
    let mut maps: Vec<(usize, usize)> = std::iter::repeat_n(layer, a.layers).flatten().collect();
    maps.extend(a.labels.map(|labels| (d, labels)));
    maps.retain(|&(inputs, outputs)| inputs * outputs > 0);
    maps
}

/// Operations for a token, forward and back: each entry of a map is multiplied and added three times, for the output, for the
/// gradient of the input and for that of the entry.
pub fn operations(a: &Architecture) -> f64 {
    linear_maps(a).iter().map(|&(inputs, outputs)| 6.0 * (inputs * outputs) as f64).sum()
}

/// Seconds that the products take for a token on all threads, in f32 and in chunks of `chunk` tokens, with nothing between them.
pub fn seconds_per_token(a: &Architecture, chunk: usize) -> f64 {
    let maps = linear_maps(a);
    let widest = maps.iter().map(|&(inputs, outputs)| inputs.max(outputs)).max().unwrap_or(0);
    let largest = maps.iter().map(|&(inputs, outputs)| inputs * outputs).max().unwrap_or(0);
    let chunks = 16 * rayon::current_num_threads();
    let weights = vec![0.5_f32; largest];
    let seconds = fastest(|| {
        (0..chunks).into_par_iter().with_max_len(1).for_each_init(
            || (vec![0.5_f32; chunk * widest], vec![0.5; chunk * widest], vec![0.0; largest]),
            |(x, y, gradient), _| {
                for &(inputs, outputs) in &maps {
                    let (w, wide) = (&weights[..inputs * outputs], chunk * outputs);
                    product((chunk, outputs, inputs), (x, (inputs, 1)), (w, (1, inputs)), &mut y[..wide], false);
                    product((outputs, inputs, chunk), (&y[..wide], (1, outputs)), (x, (inputs, 1)), gradient, false);
                    let x = &mut x[..chunk * inputs];
                    product((chunk, inputs, outputs), (&y[..wide], (outputs, 1)), (w, (inputs, 1)), x, false);
                    // Numbers stay of one size, however many products follow each other.
                    x.fill(0.5);
                }
            },
        );
    });
    seconds / (chunks * chunk) as f64
}

/// Seconds for a token of the feed-forward block's gradient in f32 on one thread, where a share of the hidden units is above zero:
/// with whole products, as the trainer does it, and unit by unit without those at zero.
pub fn skipping_zeros(a: &Architecture, chunk: usize, firing: f64) -> [f64; 2] {
    let block = Block::new(a.dim, a.hidden, chunk, firing);
    let mut buffers = block.buffers();
    let whole = fastest(|| block.whole(&mut buffers));
    let skipping = fastest(|| block.skipping(&mut buffers));
    [whole, skipping].map(|seconds| seconds / chunk as f64)
}

/// A feed-forward block at made-up tokens.
struct Block {
    d: usize,
    h: Vec<f32>,
    hidden: Vec<f32>,
    dy: Vec<f32>,
    w1: Vec<f32>,
    w2: Vec<f32>,
    /// W2 with a row for each unit.
    w2_rows: Vec<f32>,
    zeros: Vec<f32>,
}

/// Gradients: of the input, of W1, of W2 (with a row for each unit where units are skipped), of b1 and b2; and of the hidden units.
#[derive(Clone)]
struct Buffers {
    dh: Vec<f32>,
    w1: Vec<f32>,
    w2: Vec<f32>,
    b1: Vec<f32>,
    b2: Vec<f32>,
    d_hidden: Vec<f32>,
}

impl Block {
    fn new(d: usize, q: usize, tokens: usize, firing: f64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut numbers = |len: usize| (0..len).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>();
        let (h, dy, w1, w2) = (numbers(tokens * d), numbers(tokens * d), numbers(q * d), numbers(d * q));
        let low = 1.0 - 2.0 * firing as f32;
        let hidden = numbers(tokens * q).into_iter().map(|x| if x > low { x - low } else { 0.0 }).collect();
        let w2_rows = (0..q * d).map(|i| w2[i % d * q + i / d]).collect();
        Self { d, h, hidden, dy, w1, w2, w2_rows, zeros: vec![0.0; q.max(d)] }
    }

    fn buffers(&self) -> Buffers {
        let (d, q) = (self.d, self.w1.len() / self.d);
        let zeros = |len: usize| vec![0.0; len];
        Buffers {
            dh: self.dy.clone(),
            w1: zeros(q * d),
            w2: zeros(q * d),
            b1: zeros(q),
            b2: zeros(d),
            d_hidden: zeros(self.hidden.len()),
        }
    }

    fn whole(&self, buffers: &mut Buffers) {
        let (d, q) = (self.d, buffers.b1.len());
        let weights = Weights { w1: &self.w1, b1: &self.zeros[..q], w2: &self.w2, b2: &self.zeros[..d] };
        let Buffers { dh, w1, w2, b1, b2, d_hidden } = buffers;
        dh.copy_from_slice(&self.dy);
        b2.fill(0.0);
        backward(
            weights,
            &mut Gradients { w1, b1, w2, b2 },
            d,
            (&self.h, &self.hidden),
            d_hidden,
            dh,
            &mut Watch::default(),
        );
    }

    fn skipping(&self, buffers: &mut Buffers) {
        let (d, q) = (self.d, buffers.b1.len());
        buffers.dh.copy_from_slice(&self.dy);
        [&mut buffers.w1, &mut buffers.w2, &mut buffers.b1, &mut buffers.b2]
            .into_iter()
            .for_each(|list| list.fill(0.0));
        kernels::vectorized(
            #[inline(always)]
            || {
                let rows = self.h.chunks_exact(d).zip(self.dy.chunks_exact(d)).zip(buffers.dh.chunks_exact_mut(d));
                for (((h, dy), dh), hidden) in rows.zip(self.hidden.chunks_exact(q)) {
                    add(1.0, dy, &mut buffers.b2);
                    for (j, &r) in hidden.iter().enumerate().filter(|&(_, &r)| r > 0.0) {
                        let unit = j * d..(j + 1) * d;
                        let da = kernels::dot(&self.w2_rows[unit.clone()], dy);
                        buffers.b1[j] += da;
                        add(da, &self.w1[unit.clone()], dh);
                        add(da, h, &mut buffers.w1[unit.clone()]);
                        add(r, dy, &mut buffers.w2[unit]);
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn add(factor: f32, x: &[f32], sum: &mut [f32]) {
    sum.iter_mut().zip(x).for_each(|(sum, &x)| *sum += factor * x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn skipped_units_change_no_gradient() {
        let block = Block::new(8, 24, 10, 0.3);
        let (mut whole, mut skipping) = (block.buffers(), block.buffers());
        block.whole(&mut whole);
        block.skipping(&mut skipping);
        let w2: Vec<f32> = (0..24 * 8).map(|i| whole.w2[i % 8 * 24 + i / 8]).collect();
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(near(&whole.dh, &skipping.dh) && near(&whole.w1, &skipping.w1) && near(&w2, &skipping.w2));
        assert!(near(&whole.b1, &skipping.b1) && near(&whole.b2, &skipping.b2));
        assert!(whole.w1.iter().any(|x| x.abs() > 0.1) && whole.b2.iter().any(|x| x.abs() > 0.1));
    }

    #[test]
    fn operations_of_the_reference() {
        let a = Options::default().architecture(Some(100), None, Some(8), 50).unwrap();
        // d = 64, q = 256: two projections and one column for attention, two matrices, a head of 8 labels.
        assert_eq!(operations(&a), 6.0 * f64::from(2 * 64 + 64 + 2 * 64 * 256 + 64 * 8));
        assert!(seconds_per_token(&Architecture { dim: 8, hidden: 8, ..a }, 16) > 0.0);
    }
}
