//! Moments of tokens in bins: one pass, no exponential.
//!
//! A token in a bin has a place t in it, from -1 to 1. The moments of a bin are the sums of `w t^l` over its tokens, for
//! each of the weights w that a token has, and l below some Q.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use std::ops::Range;

use rayon::prelude::*;

use crate::arithmetic::kernels;

/// Tokens that are placed side by side before they are added to their bins.
pub(super) const BLOCK: usize = 64;
/// Tokens of a chunk, at least: a thread takes one chunk after another.
const CHUNK: usize = 4096;
/// Chunks at most.
const CHUNKS: usize = 32;

/// Tokens that are summed one after another, at least, before their sums are added to those of the chunk.
const RUN: usize = 256;

/// The sums of how many chunks of how many runs of how many tokens: how long the longest chain of additions is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    /// Tokens in a chunk.
    pub chunk: usize,
    /// Tokens in a run.
    pub run: usize,
    /// Roundings that a term goes through when it is added up.
    pub additions: usize,
}

impl Chunks {
    /// How so many tokens are added up, with so many numbers for each partial sum.
    pub fn new(tokens: usize, numbers: usize) -> Self {
        let run = RUN.max(numbers / 16).next_multiple_of(BLOCK);
        // Partial sums take 128 MB at most.
        let most = ((1 << 24) / numbers.max(1)).clamp(1, CHUNKS);
        let chunks = (tokens / CHUNK.max(4 * run)).clamp(1, most);
        let chunk = tokens.div_ceil(chunks).next_multiple_of(BLOCK).max(BLOCK);
        let runs = chunk.min(tokens).div_ceil(run);
        let additions = run.min(tokens) + runs + tokens.div_ceil(chunk);
        Self { chunk, run, additions }
    }
}

/// The powers 1, t, t^2, ... of a number, by squaring: lanes that differ in the bits of their exponent.
#[inline(always)]
pub(super) fn powers<const Q: usize>(t: f64) -> [f64; Q] {
    let mut powers = [1.0; Q];
    let mut square = t;
    let mut bit = 0;
    while (Q - 1) >> bit > 0 {
        for (l, power) in powers.iter_mut().enumerate() {
            *power *= if l >> bit & 1 == 1 { square } else { 1.0 };
        }
        square *= square;
        bit += 1;
    }
    powers
}

/// Some tokens: their bins, their places in them, and their weights.
pub(super) struct BinnedTokens<const C: usize> {
    pub numbers: [u32; BLOCK],
    pub places: [f64; BLOCK],
    pub weights: [[f64; BLOCK]; C],
}

/// The moments of the tokens `0..tokens` in `bins` bins: `C * terms` numbers for each, those of the first weight first.
/// `place` says where the tokens of a range, at most
/// [`BLOCK`] of them, lie, and must be `#[inline(always)]`.
pub(super) fn moments<const C: usize>(
    terms: usize,
    tokens: usize,
    bins: usize,
    place: impl Fn(Range<usize>, &mut BinnedTokens<C>) + Sync,
) -> Vec<f64> {
    match terms {
        4 => moments_below::<4, C>(tokens, bins, place),
        8 => moments_below::<8, C>(tokens, bins, place),
        12 => moments_below::<12, C>(tokens, bins, place),
        _ => moments_below::<16, C>(tokens, bins, place),
    }
}

fn moments_below<const Q: usize, const C: usize>(
    tokens: usize,
    bins: usize,
    place: impl Fn(Range<usize>, &mut BinnedTokens<C>) + Sync,
) -> Vec<f64> {
    let plan = Chunks::new(tokens, bins * C * Q);
    let chunk = |first: usize| {
        let range = first..(first + plan.chunk).min(tokens);
        let mut part = vec![[[0.0; Q]; C]; bins];
        let mut sums = vec![[[0.0; Q]; C]; bins];
        for start in range.clone().step_by(plan.run) {
            kernels::vectorized(
                #[inline(always)]
                || {
                    add(start..(start + plan.run).min(range.end), &place, &mut part);
                    for (sum, part) in sums
                        .as_flattened_mut()
                        .as_flattened_mut()
                        .iter_mut()
                        .zip(part.as_flattened_mut().as_flattened_mut())
                    {
                        *sum += *part;
                        *part = 0.0;
                    }
                },
            );
        }
        sums
    };
    let parts: Vec<_> = if tokens <= plan.chunk {
        vec![chunk(0)]
    } else {
        (0..tokens.div_ceil(plan.chunk)).into_par_iter().map(|i| chunk(i * plan.chunk)).collect()
    };
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_default();
    for part in parts {
        sums.iter_mut().flatten().flatten().zip(part.iter().flatten().flatten()).for_each(|(sum, part)| *sum += part);
    }
    sums.into_flattened().into_flattened()
}

/// Adds the tokens of a range to their bins.
#[inline(always)]
fn add<const Q: usize, const C: usize>(
    range: Range<usize>,
    place: &impl Fn(Range<usize>, &mut BinnedTokens<C>),
    bins: &mut [[[f64; Q]; C]],
) {
    let mut placed = BinnedTokens { numbers: [0; BLOCK], places: [0.0; BLOCK], weights: [[1.0; BLOCK]; C] };
    let mut start = range.start;
    while start < range.end {
        let length = BLOCK.min(range.end - start);
        place(start..start + length, &mut placed);
        for i in 0..length {
            let powers = powers::<Q>(placed.places[i]);
            let sums = &mut bins[placed.numbers[i] as usize];
            for c in 0..C {
                for l in 0..Q {
                    sums[c][l] += placed.weights[c][i] * powers[l];
                }
            }
        }
        start += length;
    }
}
