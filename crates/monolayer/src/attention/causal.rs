//! Causal attention: each query sees the keys up to its own, and a prefix.
//!
//! The moments of all keys before a block of queries give the sums over those keys; keys within the block are added
//! directly. Chunks of blocks are independent once the moments of each chunk are known, and added up in order.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use std::ops::Range;

use crate::arithmetic::kernels::{self, Real as _};

use super::grading::short;
use super::plan::{Extent, U, truncation, widest, widest_slope};
use super::running::{Running, half_width};
use super::scan::{CHUNK, TokenSums, chunks, scan, total};

/// Queries of a block, side by side.
pub(super) const BLOCK: usize = 16;

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
    fn new(extent: &Extent, terms: usize, delta: f64, half: f64, left: f64) -> Self {
        let n = extent.keys as f64;
        // Bin numbers must be exact.
        let exact = extent.high.abs().max(extent.low.abs()) / half < 2.0_f64.powi(48);
        let bins = if exact { (extent.high - extent.low) / (2.0 * half) + 2.0 } else { 1e18 };
        let additions = (CHUNK + extent.keys / CHUNK + BLOCK + 2 * terms + 12) as f64 + bins;
        let relative = left + (2.0 * delta).exp() * additions * U + 4.0 * n * f64::MIN_POSITIVE;
        let bound = 2.0 * relative / (1.0 - relative) + 2.0 * U * (5.0 * n.max(1.0).ln() + 3.0 * delta + 4.0);
        let cost = n * (20e-9 + bins * (0.9e-9 + 0.15e-9 * terms as f64));
        Self { terms, delta, half, bins: bins as usize, cost, bound }
    }

    /// The cheaper of two.
    pub fn best(extent: &Extent, tolerance: f64) -> Self {
        let plan = |terms| {
            let delta = widest(terms, tolerance.max(f64::EPSILON) / 4.0);
            Self::new(extent, terms, delta, half_width(delta, extent.largest), truncation(terms, delta))
        };
        let (a, b) = (plan(12), plan(16));
        if a.cost <= b.cost { a } else { b }
    }

    /// The plan for gradients: the derivative of the polynomial must be as exact as itself, and no bin wider than all keys.
    pub fn for_gradients(extent: &Extent, tolerance: f64) -> Self {
        let terms = 16;
        let (delta, left) = widest_slope(terms, tolerance.max(f64::EPSILON) / 32.0);
        let (half, width) = (half_width(delta, extent.largest), extent.high - extent.low);
        let half = if width > 0.0 { half.min(short(width / 2.0)) } else { half };
        let plan = Self::new(extent, terms, delta, half, left);
        Self { cost: 4.0 * plan.cost, bound: 4.0 * plan.bound + 16.0 * U, ..plan }
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
pub(super) struct PrefixState<const Q: usize> {
    pub running: Running<Q>,
    low: f64,
    high: f64,
}

impl<const Q: usize> PrefixState<Q> {
    /// No keys yet.
    pub fn new(plan: &CausalPlan, extent: &Extent) -> Self {
        let running = Running::<Q>::new(plan.delta, plan.half, extent.low, extent.high);
        Self { running, low: f64::INFINITY, high: f64::NEG_INFINITY }
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.running.bins() * size_of::<[[f64; Q]; 2]>()
    }

    #[inline(always)]
    pub fn add(&mut self, k: f64, v: f64) {
        self.running.add(k, v);
        (self.low, self.high) = (if k < self.low { k } else { self.low }, if k > self.high { k } else { self.high });
    }

    /// The key of the top score of each query of a block, whose first token is `first`; keys of the block are not added yet.
    #[inline(always)]
    pub fn tops(&self, [k, _, y]: &TokenBlock, count: usize, first: usize, prefix: usize) -> [f64; BLOCK] {
        let mut top = [0.0; BLOCK];
        let (mut low, mut high) = (self.low, self.high);
        for i in 0..count {
            (low, high) = (low.min(k[i]), high.max(k[i]));
            top[i] = if y[i] < 0.0 { low } else { high };
            if first + i < prefix {
                top[i] = if y[i] < 0.0 { self.low } else { self.high };
            }
        }
        top
    }
}

impl<const Q: usize> TokenSums for PrefixState<Q> {
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
    let visit = |range: Range<usize>, mut state: PrefixState<Q>| {
        let (mut means, mut tokens) = ([0.0; CHUNK], [[0.0; BLOCK]; 3]);
        for first in range.clone().step_by(BLOCK) {
            let length = BLOCK.min(range.end - first);
            (all.load)(first..first + length, &mut tokens);
            let found = kernels::vectorized(
                #[inline(always)]
                || block(&mut state, &tokens, length, first, all.prefix),
            );
            means[first - range.start..][..length].copy_from_slice(&found[..length]);
        }
        (all.store)(range.start / CHUNK, &means[..range.len()]);
    };
    prefix_scan::<Q>(plan, extent, (all.tokens, all.prefix), all.load, visit);
}

/// Shows `visit` each chunk of tokens with the keys that all its queries see: the prefix, and those of the chunks before.
pub(super) fn prefix_scan<const Q: usize>(
    plan: &CausalPlan,
    extent: &Extent,
    (tokens, prefix): (usize, usize),
    load: &(dyn Fn(Range<usize>, &mut TokenBlock) + Sync),
    visit: impl Fn(Range<usize>, PrefixState<Q>) + Sync,
) {
    let empty = PrefixState::<Q>::new(plan, extent);
    let sum = |range: Range<usize>| {
        let (mut state, mut block) = (empty.clone(), [[0.0; BLOCK]; 3]);
        for start in range.clone().step_by(BLOCK) {
            let length = BLOCK.min(range.end - start);
            load(start..start + length, &mut block);
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
    let prefix = prefix.min(tokens);
    let state = total(&chunks(0..prefix), empty.bytes(), empty.clone(), sum);
    let after = |range: Range<usize>| sum(range.start.max(prefix)..range.end.max(prefix));
    scan(&chunks(0..tokens), empty.bytes(), state, after, visit);
}

/// The means of the queries of a block, whose first token is `first`. Adds their keys to the state.
#[inline(always)]
fn block<const Q: usize>(
    state: &mut PrefixState<Q>,
    tokens: &TokenBlock,
    count: usize,
    first: usize,
    prefix: usize,
) -> [f64; BLOCK] {
    let top = state.tops(tokens, count, first, prefix);
    let [k, v, y] = tokens;
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
