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

/// Some tokens: their bins, their places in them, and their weights, of which the first is 1 unless it is changed.
pub(super) struct BinnedTokens {
    pub numbers: [u32; BLOCK],
    pub places: [f64; BLOCK],
    pub weights: [[f64; BLOCK]; 3],
}

/// Says where the tokens of a range, at most [`BLOCK`] of them, lie.
pub(super) type PlaceTokens<'a> = &'a (dyn Fn(Range<usize>, &mut BinnedTokens) + Sync);

/// Adds the tokens of a range to the moments of their bins.
type AddTokens = fn(Range<usize>, PlaceTokens, &mut [f64]);

/// The loop for so many weights of a token, 2 or 3, and so many moments of each. All else that takes part in moments, and the
/// type of the tokens, is not known to it, so that it is compiled once for each.
fn loop_for(weights: usize, terms: usize) -> AddTokens {
    match (weights, terms) {
        (2, 4) => add::<4, 2>,
        (2, 8) => add::<8, 2>,
        (2, 12) => add::<12, 2>,
        (2, _) => add::<16, 2>,
        (_, 4) => add::<4, 3>,
        (_, 8) => add::<8, 3>,
        (_, 12) => add::<12, 3>,
        (..) => add::<16, 3>,
    }
}

/// The moments of the tokens `0..tokens` in `bins` bins: `weights * terms` numbers for each, those of the first weight first.
pub(super) fn moments((weights, terms): (usize, usize), tokens: usize, bins: usize, place: PlaceTokens) -> Vec<f64> {
    let numbers = bins * weights * terms;
    let (plan, add) = (Chunks::new(tokens, numbers), loop_for(weights, terms));
    let chunk = |first: usize| {
        let range = first..(first + plan.chunk).min(tokens);
        let (mut part, mut sums) = (vec![0.0; numbers], vec![0.0; numbers]);
        for start in range.clone().step_by(plan.run) {
            add(start..(start + plan.run).min(range.end), place, &mut part);
            kernels::vectorized(
                #[inline(always)]
                || {
                    for (sum, part) in sums.iter_mut().zip(&mut part) {
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
        sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
    }
    sums
}

/// Adds the tokens of a range to their bins.
fn add<const Q: usize, const C: usize>(range: Range<usize>, place: PlaceTokens, bins: &mut [f64]) {
    let (rows, _) = bins.as_chunks_mut::<Q>();
    let (bins, _) = rows.as_chunks_mut::<C>();
    let mut placed = BinnedTokens { numbers: [0; BLOCK], places: [0.0; BLOCK], weights: [[1.0; BLOCK]; 3] };
    kernels::vectorized(
        #[inline(always)]
        || {
            let mut start = range.start;
            while start < range.end {
                let length = BLOCK.min(range.end - start);
                place(start..start + length, &mut placed);
                add_block(&placed, length, bins);
                start += length;
            }
        },
    );
}

/// Adds the first tokens of a block. A function, so that it is known that nothing here changes where tokens lie.
#[inline(always)]
fn add_block<const Q: usize, const C: usize>(placed: &BinnedTokens, length: usize, bins: &mut [[[f64; Q]; C]]) {
    for i in 0..length.min(BLOCK) {
        let powers = powers::<Q>(placed.places[i]);
        let sums = &mut bins[placed.numbers[i] as usize];
        for c in 0..C {
            for l in 0..Q {
                sums[c][l] += placed.weights[c][i] * powers[l];
            }
        }
    }
}
