//! Runs for measuring speed, with made-up numbers of the real shapes.

use std::time::Instant;

use gemm::Parallelism;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::dataset::{Dataset, Labels, Tokens, Vocabulary, Written};
use crate::feed_forward::FeedForward;
use crate::forward;
use crate::kernels;
use crate::matrix::Matrix;

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
        fastest(|| h.par_chunks_mut(forward::BLOCK * d).for_each(|rows| forward::feed_forward(&block, d, rows)));
    4.0 * (tokens * d * q) as f64 / seconds / 1e9
}

/// A made-up corpus: Zipf's law over a vocabulary that grows like the square root of the tokens, sentences of 1 to 30 words, a
/// label fixed per word but for one token in twenty.
pub fn zipf_corpus(tokens: usize, seed: u64) -> Dataset {
    const LABELS: u32 = 8;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let words = (50.0 * (tokens as f64).sqrt()).ceil() as u32;
    // The word of rank r has probability proportional to 1 / r: ranks grow like e^x.
    let top = f64::from(words).ln();
    let mut vocabulary = Vocabulary::default();
    let mut names = Vocabulary::default();
    (0..LABELS).for_each(|label| {
        names.add(&format!("L{label}"));
    });
    // Seven words in ten have the first label, as most words have "O" in a corpus of names.
    let usual: Vec<u32> =
        (0..words).map(|_| if rng.random_range(0..10) < 7 { 0 } else { rng.random_range(1..LABELS) }).collect();
    let (mut ids, mut labels, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
    while ids.len() < tokens {
        for _ in 0..rng.random_range(1..=30).min(tokens - ids.len()) {
            let rank = ((rng.random::<f64>() * top).exp() as u32).min(words - 1);
            ids.push(vocabulary.add(&format!("w{rank}")));
            let exception = rng.random_range(0..20) == 0;
            labels.push(if exception { rng.random_range(0..LABELS) } else { usual[rank as usize] });
        }
        offsets.push(ids.len());
    }
    Dataset {
        name: format!("zipf:{tokens}"),
        tokens: Tokens::Words { ids, vocabulary },
        labels: Labels::Classes { ids: labels, names },
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
    }
}
