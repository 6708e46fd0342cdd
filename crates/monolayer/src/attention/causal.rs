//! Causal attention: each query sees the keys up to its own, and a prefix.
//!
//! The moments of all keys before a block of queries give the sums over those keys; keys within the block are added
//! directly. Chunks of blocks are independent once the moments of each chunk are known, and added up in order.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use std::ops::Range;

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real as _};

use super::plan::{Extent, U, truncation, widest};
use super::running::{Running, half_width};

/// Queries of a block, side by side.
pub(super) const BLOCK: usize = 16;
/// Tokens of a chunk: a thread takes one after another.
pub(super) const CHUNK: usize = 2048;

/// Which moments, of bins how wide.
#[derive(Debug, Clone, Copy)]
pub(super) struct CausalPlan {
    pub terms: usize,
    pub delta: f64,
    pub half: f64,
    pub bins: usize,
    pub cost: f64,
    pub bound: f64,
}

impl CausalPlan {
    fn new(extent: &Extent, tolerance: f64, terms: usize) -> Self {
        let n = extent.keys as f64;
        let delta = widest(terms, tolerance.max(f64::EPSILON) / 4.0);
        let half = half_width(delta, extent.largest);
        // Bin numbers must be exact.
        let exact = extent.high.abs().max(extent.low.abs()) / half < 2.0_f64.powi(48);
        let bins = if exact { (extent.high - extent.low) / (2.0 * half) + 2.0 } else { 1e18 };
        let additions = (CHUNK + extent.keys / CHUNK + BLOCK + 2 * terms + 12) as f64 + bins;
        let relative = truncation(terms, delta) + (2.0 * delta).exp() * additions * U + 4.0 * n * f64::MIN_POSITIVE;
        let bound = 2.0 * relative / (1.0 - relative) + 2.0 * U * (5.0 * n.max(1.0).ln() + 3.0 * delta + 4.0);
        let cost = n * (20e-9 + bins * (0.9e-9 + 0.15e-9 * terms as f64));
        Self { terms, delta, half, bins: bins as usize, cost, bound }
    }

    /// The cheaper of two.
    pub fn best(extent: &Extent, tolerance: f64) -> Self {
        let (a, b) = (Self::new(extent, tolerance, 12), Self::new(extent, tolerance, 16));
        if a.cost <= b.cost { a } else { b }
    }
}

/// Keys, values less their middle, and queries of some tokens.
pub(super) type TokenBlock = [[f64; BLOCK]; 3];

/// As many keys, values and queries, and the tokens that every query sees.
#[derive(Clone, Copy)]
pub(super) struct Masked<'a> {
    pub tokens: usize,
    pub prefix: usize,
    /// Gives the tokens of a range, at most [`BLOCK`] of them; what follows in the block is used by nobody.
    pub load: &'a (dyn Fn(Range<usize>, &mut TokenBlock) + Sync),
    /// Takes the means of a chunk, less the middle of the values.
    pub store: &'a (dyn Fn(usize, &[f64]) + Sync),
}

/// The keys so far: their moments, the smallest and the largest.
#[derive(Clone)]
struct PrefixState<const Q: usize> {
    running: Running<Q>,
    low: f64,
    high: f64,
}

impl<const Q: usize> PrefixState<Q> {
    #[inline(always)]
    fn add(&mut self, k: f64, v: f64) {
        self.running.add(k, v);
        (self.low, self.high) = (if k < self.low { k } else { self.low }, if k > self.high { k } else { self.high });
    }

    fn join(&mut self, other: &Self) {
        self.running.join(&other.running);
        (self.low, self.high) = (self.low.min(other.low), self.high.max(other.high));
    }
}

/// The means of all queries.
pub(super) fn causal(plan: &CausalPlan, extent: &Extent, all: Masked) {
    match plan.terms {
        12 => run::<12>(plan, extent, all),
        _ => run::<16>(plan, extent, all),
    }
}

fn run<const Q: usize>(plan: &CausalPlan, extent: &Extent, all: Masked) {
    let (n, prefix) = (all.tokens, all.prefix.min(all.tokens));
    let running = Running::<Q>::new(plan.delta, plan.half, extent.low, extent.high);
    let empty = PrefixState { running, low: f64::INFINITY, high: f64::NEG_INFINITY };
    let sum = |range: Range<usize>| {
        let (mut state, mut block) = (empty.clone(), [[0.0; BLOCK]; 3]);
        for start in range.clone().step_by(BLOCK) {
            let length = BLOCK.min(range.end - start);
            (all.load)(start..start + length, &mut block);
            kernels::vectorized(
                #[inline(always)]
                || {
                    for i in 0..length {
                        state.add(block[0][i], block[1][i]);
                    }
                },
            );
        }
        state
    };
    let chunks = (0..n).step_by(CHUNK).map(|start| start..(start + CHUNK).min(n));
    // The prefix in chunks of its own, then the chunks after it.
    let parts: Vec<_> = (0..prefix).step_by(CHUNK).map(|start| start..(start + CHUNK).min(prefix)).collect();
    let mut state = empty.clone();
    parts.into_par_iter().map(sum).collect::<Vec<_>>().iter().for_each(|part| state.join(part));
    let parts: Vec<_> = chunks.map(|range| range.start.max(prefix)..range.end.max(prefix)).collect();
    let mut before: Vec<PrefixState<Q>> = parts.into_par_iter().map(sum).collect();
    for part in &mut before {
        std::mem::swap(part, &mut state);
        state.join(part);
    }
    before.into_par_iter().enumerate().for_each(|(i, mut state)| {
        let (mut means, mut tokens) = ([0.0; CHUNK], [[0.0; BLOCK]; 3]);
        let count = CHUNK.min(n - i * CHUNK);
        for start in (0..count).step_by(BLOCK) {
            let (first, length) = (i * CHUNK + start, BLOCK.min(count - start));
            (all.load)(first..first + length, &mut tokens);
            let found = kernels::vectorized(
                #[inline(always)]
                || block(&mut state, &tokens, length, first, prefix),
            );
            means[start..start + length].copy_from_slice(&found[..length]);
        }
        (all.store)(i, &means[..count]);
    });
}

/// The means of the queries of a block, whose first token is `first`. Adds their keys to the state.
#[inline(always)]
fn block<const Q: usize>(
    state: &mut PrefixState<Q>,
    [k, v, y]: &TokenBlock,
    count: usize,
    first: usize,
    prefix: usize,
) -> [f64; BLOCK] {
    let mut top = [0.0; BLOCK];
    let (mut low, mut high) = (state.low, state.high);
    for i in 0..count {
        (low, high) = (low.min(k[i]), high.max(k[i]));
        top[i] = if y[i] < 0.0 { low } else { high };
        if first + i < prefix {
            top[i] = if y[i] < 0.0 { state.low } else { state.high };
        }
    }
    let [mut total, mut sum] = state.running.sums(y, &top);
    for j in prefix.saturating_sub(first)..count {
        for i in 0..BLOCK {
            let weight = (y[i] * (k[j] - top[i])).exp_nonpositive();
            let weight = if i < j { 0.0 } else { weight };
            total[i] += weight;
            sum[i] += weight * v[j];
        }
        state.add(k[j], v[j]);
    }
    for i in 0..BLOCK {
        sum[i] /= total[i];
    }
    sum
}
