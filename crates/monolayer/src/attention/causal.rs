//! Causal attention: each query sees the keys up to its own, and a prefix.
//!
//! The moments of all keys before a block of queries give the sums over those keys; keys within the block are added
//! directly. Chunks of blocks are independent once the moments of each chunk are known, and added up in order.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::forward::middle;
use super::limits::Limits;
use super::plan::{Extent, U, truncation, widest};
use super::running::{Running, half_width};

/// Queries of a block, side by side.
const BLOCK: usize = 16;
/// Tokens of a chunk: a thread takes one after another.
const CHUNK: usize = 2048;

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

/// Keys, values and queries of one sequence, as many of each, and the tokens that every query sees.
#[derive(Clone, Copy)]
pub(super) struct Masked<'a, R> {
    pub keys: &'a [R],
    pub values: &'a [R],
    pub queries: &'a [R],
    pub prefix: usize,
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

/// The output of all queries.
pub(super) fn causal<R: Real>(plan: &CausalPlan, extent: &Extent, all: Masked<R>, limits: Limits<R>, out: &mut [R]) {
    match plan.terms {
        12 => run::<12, R>(plan, extent, all, limits, out),
        _ => run::<16, R>(plan, extent, all, limits, out),
    }
}

fn run<const Q: usize, R: Real>(plan: &CausalPlan, extent: &Extent, all: Masked<R>, limits: Limits<R>, out: &mut [R]) {
    let (n, prefix) = (all.keys.len(), all.prefix.min(all.keys.len()));
    let running = Running::<Q>::new(plan.delta, plan.half, extent.low, extent.high);
    let empty = PrefixState { running, low: f64::INFINITY, high: f64::NEG_INFINITY };
    let middle = middle(limits);
    let sum = |range: std::ops::Range<usize>| {
        let mut state = empty.clone();
        kernels::vectorized(
            #[inline(always)]
            || {
                for (k, v) in all.keys[range.clone()].iter().zip(&all.values[range]) {
                    state.add(k.to_f64(), v.to_f64() - middle);
                }
            },
        );
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
    let (low, high) = (limits.low.to_f64(), limits.high.to_f64());
    out.par_chunks_mut(CHUNK).zip(before).enumerate().for_each(|(i, (out, mut state))| {
        for (j, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = i * CHUNK + j * BLOCK;
            let means = kernels::vectorized(
                #[inline(always)]
                || block(&mut state, all, prefix, middle, first),
            );
            for (out, mean) in out.iter_mut().zip(means) {
                *out = R::from_f64((mean + middle).max(low).min(high));
            }
        }
    });
}

/// The means of the queries from `first` on, less the middle of the values. Adds their keys to the state.
#[inline(always)]
fn block<const Q: usize, R: Real>(
    state: &mut PrefixState<Q>,
    all: Masked<R>,
    prefix: usize,
    middle: f64,
    first: usize,
) -> [f64; BLOCK] {
    let count = BLOCK.min(all.keys.len() - first);
    let (mut y, mut k, mut v, mut top) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
    let (mut low, mut high) = (state.low, state.high);
    for i in 0..count {
        (y[i], k[i]) = (all.queries[first + i].to_f64(), all.keys[first + i].to_f64());
        v[i] = all.values[first + i].to_f64() - middle;
        (low, high) = (low.min(k[i]), high.max(k[i]));
        top[i] = if y[i] < 0.0 { low } else { high };
        if first + i < prefix {
            top[i] = if y[i] < 0.0 { state.low } else { state.high };
        }
    }
    let [mut total, mut sum] = state.running.sums(&y, &top);
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
