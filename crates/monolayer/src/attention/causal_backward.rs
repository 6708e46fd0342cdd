//! The gradient under a causal mask, in two sweeps: forward over the keys for the queries' own numbers, and back over the
//! queries for those of the keys.
//!
//! With weights `p_ij = e^(y_j (k_i - top_j)) / D_j` of the keys i that query j sees, and an upstream gradient G:
//!
//! `dy_j = G_j sum_i p_ij (k_i - top_j) (v_i - g_j)`, `dv_i = sum_j G_j p_ij`, `dk_i = v_i sum_j G_j y_j p_ij - sum_j G_j y_j g_j p_ij`,
//!
//! the last two over the queries that see key i: those from its own on, all of them for a key of the prefix.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::causal::{BLOCK, CausalPlan, PrefixState, TokenBlock, prefix_scan};
use super::limits::Limits;
use super::plan::Extent;
use super::powers_of_two::{Power, exponent};
use super::query_sums::{QuerySums, WEIGHTS};
use super::scan::{CHUNK, chunks, scan};
use super::{Gradients, HeadInputs, forward};

/// Moments of a bin.
const TERMS: usize = 16;

/// What the first sweep finds for a query: its top key, `G / D`, and g.
type QueryNumbers = [f64; 3];

/// Tokens under a mask, with values and upstream gradients divided by powers of two.
struct Scaled<'a, R> {
    inputs: HeadInputs<'a, R>,
    upstream: &'a [R],
    prefix: usize,
    middle: f64,
    /// The exponents of those powers.
    value: i32,
    gradient: i32,
    /// No gradient of a query is larger, over that of its output.
    steepest: f64,
}

/// A part of a list for whoever computes it: each is written once.
type Parts<'a, T> = Vec<Mutex<&'a mut [T]>>;

fn parts<T>(list: &mut [T]) -> Parts<'_, T> {
    list.chunks_mut(CHUNK).map(Mutex::new).collect()
}

/// The gradients of keys, values and queries.
pub(super) fn backward<R: Real>(
    plan: &CausalPlan,
    extent: &Extent,
    (inputs, upstream, prefix): (HeadInputs<R>, &[R], usize),
    (limits, largest): (Limits<R>, f64),
    gradients: &mut Gradients<R>,
) {
    let middle = forward::middle(limits);
    let spread = (limits.high.to_f64() - middle).max(middle - limits.low.to_f64());
    let value = exponent(spread);
    let steepest = Power::new(-value).times(spread) * (extent.high - extent.low) * 0.5;
    let all = Scaled { inputs, upstream, prefix, middle, value, gradient: exponent(largest), steepest };
    let mut found = vec![[0.0; 3]; inputs.queries.len()];
    all.query_sweep(plan, extent, &mut gradients.queries, &mut found);
    all.key_sweep(plan, extent, &found, &mut gradients.keys, &mut gradients.values);
}

impl<R: Real> Scaled<'_, R> {
    /// Some tokens: keys, values less their middle, queries.
    fn load(&self, range: Range<usize>, [keys, values, queries]: &mut TokenBlock) {
        let scale = Power::new(-self.value);
        for (i, at) in range.enumerate().take(BLOCK) {
            (keys[i], queries[i]) = (self.inputs.keys[at].to_f64(), self.inputs.queries[at].to_f64());
            values[i] = scale.times(self.inputs.values[at].to_f64() - self.middle);
        }
    }

    /// The gradients of queries, and what the way back needs of each.
    fn query_sweep(&self, plan: &CausalPlan, extent: &Extent, dy: &mut [R], found: &mut [QueryNumbers]) {
        let (dy, found) = (parts(dy), parts(found));
        let (shrink, enlarge) = (Power::new(-self.gradient), Power::new(self.gradient + self.value));
        let visit = |range: Range<usize>, mut state: PrefixState<TERMS>| {
            let mut tokens = [[0.0; BLOCK]; 3];
            let mut dy = dy[range.start / CHUNK].lock().unwrap_or_else(PoisonError::into_inner);
            let mut found = found[range.start / CHUNK].lock().unwrap_or_else(PoisonError::into_inner);
            for first in range.clone().step_by(BLOCK) {
                let length = BLOCK.min(range.end - first);
                self.load(first..first + length, &mut tokens);
                let [top, total, mean, slope] = kernels::vectorized(
                    #[inline(always)]
                    || slopes(&mut state, &tokens, length, first, self.prefix),
                );
                for i in 0..length {
                    let upstream = shrink.times(self.upstream[first + i].to_f64());
                    let slope = slope[i].clamp(-self.steepest, self.steepest);
                    let at = first - range.start + i;
                    dy[at] = R::from_f64(enlarge.times(upstream * slope));
                    found[at] = [top[i], upstream / total[i], mean[i]];
                }
            }
        };
        let load = |range: Range<usize>, block: &mut TokenBlock| self.load(range, block);
        prefix_scan::<TERMS>(plan, extent, (self.inputs.keys.len(), self.prefix), &load, visit);
    }

    /// The gradients of keys and values.
    fn key_sweep(&self, plan: &CausalPlan, extent: &Extent, found: &[QueryNumbers], dk: &mut [R], dv: &mut [R]) {
        let empty = QuerySums::<TERMS>::new(plan.delta, plan.half, extent.low, extent.high);
        let n = self.inputs.keys.len();
        let bytes = plan.bins * size_of::<[[f64; TERMS]; WEIGHTS]>();
        let (dk, dv) = (parts(dk), parts(dv));
        let (of_values, of_keys) = (Power::new(self.gradient), Power::new(self.gradient + self.value));
        let store = |value: f64, sums: &[f64; WEIGHTS], dk: &mut R, dv: &mut R| {
            *dv = R::from_f64(of_values.times(sums[0]));
            *dk = R::from_f64(of_keys.times(value * sums[1] - sums[2]));
        };
        let sum = |range: Range<usize>| {
            let mut state = empty.clone();
            for first in blocks_back(&range) {
                let queries = QueryBlock::new(self, found, first, BLOCK.min(range.end - first));
                queries.add_to(&mut state);
            }
            state
        };
        let visit = |range: Range<usize>, mut state: QuerySums<TERMS>| {
            let mut tokens = [[0.0; BLOCK]; 3];
            let mut dk = dk[range.start / CHUNK].lock().unwrap_or_else(PoisonError::into_inner);
            let mut dv = dv[range.start / CHUNK].lock().unwrap_or_else(PoisonError::into_inner);
            for first in blocks_back(&range) {
                let length = BLOCK.min(range.end - first);
                self.load(first..first + length, &mut tokens);
                let queries = QueryBlock::new(self, found, first, length);
                let own = self.prefix.saturating_sub(first).min(length);
                let sums = kernels::vectorized(
                    #[inline(always)]
                    || queries.keys(&state, &tokens[0], own..length),
                );
                for i in own..length {
                    let at = first - range.start + i;
                    store(tokens[1][i], &sums[i], &mut dk[at], &mut dv[at]);
                }
                queries.add_to(&mut state);
            }
        };
        let mut back = chunks(0..n);
        back.reverse();
        let all = scan(&back, bytes, empty.clone(), sum, visit);
        // All queries see the keys of the prefix.
        let prefix = chunks(0..self.prefix.min(n));
        prefix.into_par_iter().for_each(|range| {
            let mut dk = dk[range.start / CHUNK].lock().unwrap_or_else(PoisonError::into_inner);
            let mut dv = dv[range.start / CHUNK].lock().unwrap_or_else(PoisonError::into_inner);
            let scale = Power::new(-self.value);
            for (i, at) in range.enumerate() {
                let value = scale.times(self.inputs.values[at].to_f64() - self.middle);
                store(value, &all.at(self.inputs.keys[at].to_f64()), &mut dk[i], &mut dv[i]);
            }
        });
    }
}

/// The first tokens of the blocks of a chunk, the last block first.
fn blocks_back(range: &Range<usize>) -> impl Iterator<Item = usize> + use<> {
    range.clone().step_by(BLOCK).collect::<Vec<_>>().into_iter().rev()
}

/// The top key, D, g and its slope for the queries of a block, whose first token is `first`. Adds their keys to the state.
#[inline(always)]
fn slopes<const Q: usize>(
    state: &mut PrefixState<Q>,
    tokens: &TokenBlock,
    count: usize,
    first: usize,
    prefix: usize,
) -> [[f64; BLOCK]; 4] {
    let top = state.tops(tokens, count, first, prefix);
    let [k, v, y] = tokens;
    let [[mut total, mut sum], [mut far, mut moved]] = state.running.slopes(y, &top);
    for j in prefix.saturating_sub(first)..count {
        for i in 0..BLOCK {
            let distance = k[j] - top[i];
            let weight = (y[i] * distance).exp_nonpositive();
            let weight = if i < j { 0.0 } else { weight };
            total[i] += weight;
            sum[i] += weight * v[j];
            far[i] += weight * distance;
            moved[i] += weight * distance * v[j];
        }
        state.add(k[j], v[j]);
    }
    let mut slope = [0.0; BLOCK];
    for i in 0..BLOCK {
        sum[i] /= total[i];
        slope[i] = moved[i] / total[i] - sum[i] * (far[i] / total[i]);
    }
    [top, total, sum, slope]
}

/// Queries of a block, their top keys, and the weights `G / D`, `y G / D` and `y g G / D`.
struct QueryBlock {
    y: [f64; BLOCK],
    top: [f64; BLOCK],
    weights: [[f64; BLOCK]; WEIGHTS],
}

impl QueryBlock {
    fn new<R: Real>(all: &Scaled<R>, found: &[QueryNumbers], first: usize, count: usize) -> Self {
        let mut new = Self { y: [0.0; BLOCK], top: [0.0; BLOCK], weights: [[0.0; BLOCK]; WEIGHTS] };
        for i in 0..count {
            let [top, weight, mean] = found[first + i];
            let y = all.inputs.queries[first + i].to_f64();
            (new.y[i], new.top[i]) = (y, top);
            (new.weights[0][i], new.weights[1][i], new.weights[2][i]) = (weight, weight * y, weight * y * mean);
        }
        new
    }

    fn add_to<const Q: usize>(&self, state: &mut QuerySums<Q>) {
        kernels::vectorized(
            #[inline(always)]
            || state.add(&self.y, &self.top, &self.weights),
        );
    }

    /// The sums of some keys of the block: over all queries after the block, and those of the block from the key's own on.
    #[inline(always)]
    fn keys<const Q: usize>(
        &self,
        state: &QuerySums<Q>,
        k: &[f64; BLOCK],
        own: Range<usize>,
    ) -> [[f64; WEIGHTS]; BLOCK] {
        let mut found = [[0.0; WEIGHTS]; BLOCK];
        for i in own {
            let mut lanes = [[0.0; BLOCK]; WEIGHTS];
            for j in 0..BLOCK {
                let weight = (self.y[j] * (k[i] - self.top[j])).exp_nonpositive();
                let weight = if j < i { 0.0 } else { weight };
                for c in 0..WEIGHTS {
                    lanes[c][j] = weight * self.weights[c][j];
                }
            }
            let after = state.at(k[i]);
            for c in 0..WEIGHTS {
                found[i][c] = after[c] + kernels::sum_of_lanes(lanes[c]);
            }
        }
        found
    }
}
