//! The gradient, without a mask, at the cost of a few forward passes.
//!
//! With weights `p_ij = e^(y_j k_i) / D(y_j)` and an upstream gradient G:
//!
//! `dy_j = G_j g'(y_j)`, `dv_i = sum_j G_j p_ij`, `dk_i = v_i sum_j G_j y_j p_ij - sum_j G_j y_j g(y_j) p_ij`.
//!
//! The first is a function of the query, like g itself. The others are functions of the key: sums of exponentials over the
//! queries, so that keys and queries change places.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use std::ops::Range;

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::forward::{Panel, key_moments, middle, place_key, place_query, tables, used_panels};
use super::grading::Grading;
use super::limits::Limits;
use super::moments::{BLOCK, BinnedTokens, moments};
use super::panels::{Bins, Chebyshev, Evaluate, polynomials};
use super::plan::{Extent, Plan, bits, exponential, positive, widest};
use super::powers_of_two::{Power, exponent};
use super::{Gradients, HeadInputs};

/// Tokens of a chunk: a thread takes one after another.
const CHUNK: usize = 8192;
/// Nodes of a panel of keys.
const NODES: usize = 16;
/// By how much finer than forward everything is cut: derivatives lose some digits.
pub(super) const FINER: f64 = 256.0;

/// What the pass over the queries finds for each: `G / D` and g.
struct Queries {
    weights: Vec<f64>,
    means: Vec<f64>,
}

/// Whether products of values with keys and queries stay clear of overflow and underflow.
pub(super) fn is_moderate<R: Real>(extent: &Extent, limits: Limits<R>) -> bool {
    let spread = (limits.high.to_f64() * 0.5 - limits.low.to_f64() * 0.5).abs();
    let limits = 2.0_f64.powi(-600)..2.0_f64.powi(600);
    spread == 0.0 || limits.contains(&spread) && extent.is_moderate()
}

/// The gradients of keys, values and queries.
pub(super) fn backward<R: Real>(
    plan: &Plan,
    extent: &Extent,
    (inputs, upstream): (HeadInputs<R>, &[R]),
    (limits, largest): (Limits<R>, f64),
    gradients: &mut Gradients<R>,
) {
    let middle = middle(limits);
    // Upstream gradients are divided by a power of two, and the result is multiplied by it.
    let power = exponent(largest);
    let bins = key_moments(plan, extent, inputs.keys, inputs.values, middle);
    let used = used_panels(plan, inputs.queries);
    let tables = match plan.nodes {
        8 => (query_tables::<8>(plan, &bins, &used), polynomials::<8> as Evaluate),
        12 => (query_tables::<12>(plan, &bins, &used), polynomials::<12> as Evaluate),
        _ => (query_tables::<16>(plan, &bins, &used), polynomials::<16> as Evaluate),
    };
    let tables = (&tables.0[..], tables.1);
    let queries = query_pass(&plan.panels, tables, inputs.queries, (upstream, power), &mut gradients.queries);
    let bins = query_bins(plan, extent, inputs.queries, &queries);
    key_pass((plan, extent), (&bins, power), inputs, middle, gradients);
}

/// Of each panel: the polynomials of g, of its derivative and of 1 / D.
fn query_tables<const M: usize>(plan: &Plan, bins: &Bins, used: &[bool]) -> Vec<f64> {
    let chebyshev = Chebyshev::<M>::new();
    let row = |panel: Panel, out: &mut [f64]| {
        let y = chebyshev.nodes.map(|x| panel.center + panel.half * x);
        kernels::vectorized(
            #[inline(always)]
            || {
                let [[total, sum], [far, moved]] = bins.slopes::<M, 2>(panel.side, &y, panel.least(), plan.reach);
                let mut values = [[0.0; M]; 3];
                for j in 0..M {
                    let mean = sum[j] / total[j];
                    let slope = mean * (far[j] / total[j]) - moved[j] / total[j];
                    values[0][j] = mean;
                    values[1][j] = if panel.side == 1 { slope } else { -slope };
                    values[2][j] = 1.0 / total[j];
                }
                for (out, values) in out.chunks_exact_mut(M).zip(&values) {
                    out.copy_from_slice(&chebyshev.coefficients(values));
                }
            },
        );
    };
    tables(&plan.panels, used, (bins.seen[0].len(), 3 * M), &row)
}

fn query_pass<R: Real>(
    panels: &Grading,
    (rows, evaluate): (&[f64], Evaluate),
    queries: &[R],
    (upstream, power): (&[R], i32),
    dy: &mut [R],
) -> Queries {
    let (shrink, back) = (Power::new(-power), Power::new(power));
    let mut found = Queries { weights: vec![0.0; queries.len()], means: vec![0.0; queries.len()] };
    let of_queries = queries.par_chunks(CHUNK).zip(upstream.par_chunks(CHUNK)).zip(dy.par_chunks_mut(CHUNK));
    let of_found = found.weights.par_chunks_mut(CHUNK).zip(found.means.par_chunks_mut(CHUNK));
    of_queries.zip(of_found).for_each(|(((queries, upstream), dy), (weights, means))| {
        kernels::vectorized(
            #[inline(always)]
            || {
                let (mut numbers, mut places, mut values) = ([0; BLOCK], [0.0; BLOCK], [[0.0; BLOCK]; 3]);
                for start in (0..queries.len()).step_by(BLOCK) {
                    let block = start..(start + BLOCK).min(queries.len());
                    for (i, y) in queries[block.clone()].iter().enumerate().take(BLOCK) {
                        (numbers[i], places[i]) = place_query(panels, y.to_f64());
                    }
                    for (f, values) in values.iter_mut().enumerate() {
                        evaluate(rows, (3, f), &numbers[..block.len()], &places, values);
                    }
                    for (i, at) in block.enumerate().take(BLOCK) {
                        let upstream = shrink.times(upstream[at].to_f64());
                        means[at] = values[0][i];
                        weights[at] = upstream * values[2][i];
                        dy[at] = R::from_f64(back.times(upstream * values[1][i]));
                    }
                }
            },
        );
    });
    found
}

/// The queries in bins, with weights `G / D`, `y G / D` and `y g G / D`.
fn query_bins<R: Real>(plan: &Plan, extent: &Extent, queries: &[R], found: &Queries) -> Bins {
    let width = extent.high - extent.low;
    let half = (plan.delta / positive(width)).min(positive(extent.largest));
    let grading = Grading::new(half, bits(2.0 * plan.reach / plan.delta), extent.largest);
    let place = |range: Range<usize>, placed: &mut BinnedTokens| {
        let (weights, means) = (&found.weights[range.clone()], &found.means[range.clone()]);
        let queries = &queries[range];
        kernels::vectorized(
            #[inline(always)]
            || {
                let cut = grading;
                for (i, y) in queries.iter().enumerate().take(BLOCK) {
                    let y = y.to_f64();
                    (placed.numbers[i], placed.places[i]) = place_query(&cut, y);
                    placed.weights[0][i] = weights[i];
                    placed.weights[1][i] = weights[i] * y;
                    placed.weights[2][i] = weights[i] * y * means[i];
                }
            },
        );
    };
    let sums = moments((3, plan.terms), queries.len(), 2 * grading.count, &place);
    Bins::apart(&grading, sums, &exponential(plan.terms, plan.delta))
}

/// Of each panel of keys: the polynomials of the three sums over queries.
fn key_tables(plan: &Plan, width: f64, panels: &Grading, bins: &Bins) -> Vec<f64> {
    let chebyshev = Chebyshev::<NODES>::new();
    let row = |panel: Panel, out: &mut [f64]| {
        let own = chebyshev.nodes.map(|x| panel.center + panel.half * x);
        let other = own.map(|d| (width - d).max(0.0));
        // Keys near the high end weigh most for queries above zero.
        let least = (panel.least(), (width - panel.center - panel.half).max(0.0));
        kernels::vectorized(
            #[inline(always)]
            || {
                let mut sums = [[0.0; NODES]; 3];
                for (side, y, least) in [(panel.side, &own, least.0), (1 - panel.side, &other, least.1)] {
                    let more = bins.sums::<NODES, 3>(side, y, least, plan.reach);
                    for c in 0..3 {
                        for j in 0..NODES {
                            sums[c][j] += more[c][j];
                        }
                    }
                }
                for (out, sums) in out.chunks_exact_mut(NODES).zip(&sums) {
                    out.copy_from_slice(&chebyshev.coefficients(sums));
                }
            },
        );
    };
    let bins = bins.seen[0].len() + bins.seen[1].len();
    tables(panels, &vec![true; 2 * panels.count], (bins, 3 * NODES), &row)
}

/// dv and dk from panels of keys.
fn key_pass<R: Real>(
    (plan, extent): (&Plan, &Extent),
    (bins, power): (&Bins, i32),
    HeadInputs { keys, values, .. }: HeadInputs<R>,
    middle: f64,
    gradients: &mut Gradients<R>,
) {
    let width = extent.high - extent.low;
    let delta = widest(NODES, plan.tolerance / 64.0);
    let half = (delta / positive(extent.largest)).min(positive(width) / 2.0);
    let panels = Grading::new(half, bits(2.0 * plan.reach / delta), width / 2.0);
    let rows = key_tables(plan, width, &panels, bins);
    let back = Power::new(power);
    let of_keys = keys.par_chunks(CHUNK).zip(values.par_chunks(CHUNK));
    let out = gradients.keys.par_chunks_mut(CHUNK).zip(gradients.values.par_chunks_mut(CHUNK));
    of_keys.zip(out).for_each(|((keys, values), (dk, dv))| {
        kernels::vectorized(
            #[inline(always)]
            || {
                let (mut numbers, mut places, mut found) = ([0; BLOCK], [0.0; BLOCK], [[0.0; BLOCK]; 3]);
                for start in (0..keys.len()).step_by(BLOCK) {
                    let block = start..(start + BLOCK).min(keys.len());
                    for (i, k) in keys[block.clone()].iter().enumerate().take(BLOCK) {
                        (numbers[i], places[i]) = place_key(&panels, extent, k.to_f64());
                    }
                    for (f, found) in found.iter_mut().enumerate() {
                        polynomials::<NODES>(&rows, (3, f), &numbers[..block.len()], &places, found);
                    }
                    for (i, at) in block.enumerate().take(BLOCK) {
                        dv[at] = R::from_f64(back.times(found[0][i]));
                        let centered = values[at].to_f64() - middle;
                        dk[at] = R::from_f64(back.times(centered * found[1][i] - found[2][i]));
                    }
                }
            },
        );
    });
}
