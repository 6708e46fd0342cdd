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

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::forward::{key_moments, middle, place_key, place_query, tables, used_panels};
use super::grading::Grading;
use super::limits::Limits;
use super::moments::{BLOCK, BinnedTokens, moments};
use super::panels::{Bins, Chebyshev, polynomial};
use super::plan::{Extent, Plan, bits, exponential, positive, widest};
use super::{Gradients, HeadInputs};

/// Tokens of a chunk: a thread takes one after another.
const CHUNK: usize = 8192;
/// Nodes of a panel of keys.
const NODES: usize = 16;
/// By how much finer than forward everything is cut: derivatives lose some digits.
pub(super) const FINER: f64 = 256.0;

/// Of a panel: the polynomials of g, of its derivative and of 1 / D.
type Row<const M: usize> = [[f64; M]; 3];

/// What the pass over the queries finds: dy, and for each query `G / D` and g.
struct Queries {
    weights: Vec<f64>,
    means: Vec<f64>,
}

/// The gradients of keys, values and queries.
pub(super) fn backward<R: Real>(
    plan: &Plan,
    extent: &Extent,
    inputs: HeadInputs<R>,
    upstream: &[R],
    limits: Limits<R>,
    gradients: &mut Gradients<R>,
) {
    let middle = middle(limits);
    let bins = key_moments(plan, extent, inputs.keys, inputs.values, middle);
    let queries = match plan.nodes {
        8 => query_pass::<8, R>(plan, &bins, inputs.queries, upstream, &mut gradients.queries),
        12 => query_pass::<12, R>(plan, &bins, inputs.queries, upstream, &mut gradients.queries),
        _ => query_pass::<16, R>(plan, &bins, inputs.queries, upstream, &mut gradients.queries),
    };
    let (grading, bins) = query_bins(plan, extent, inputs.queries, &queries);
    debug_assert!(grading.count > 0);
    key_pass(plan, extent, &bins, inputs, middle, gradients);
}

fn query_pass<const M: usize, R: Real>(
    plan: &Plan,
    bins: &Bins,
    queries: &[R],
    upstream: &[R],
    dy: &mut [R],
) -> Queries {
    let used = used_panels(plan, queries);
    let rows: Vec<Row<M>> = tables::<M, _>(
        plan,
        &used,
        bins.seen[0].len(),
        [[0.0; M]; 3],
        #[inline(always)]
        |chebyshev, y, least, side| {
            let [[total, sum], [far, moved]] = bins.slopes::<M, 2>(side, &y, least, plan.reach);
            let mut values = [[0.0; M]; 3];
            for j in 0..M {
                let mean = sum[j] / total[j];
                let slope = mean * (far[j] / total[j]) - moved[j] / total[j];
                values[0][j] = mean;
                values[1][j] = if side == 1 { slope } else { -slope };
                values[2][j] = 1.0 / total[j];
            }
            values.map(
                #[inline(always)]
                |values| chebyshev.coefficients(&values),
            )
        },
    );
    let mut found = Queries { weights: vec![0.0; queries.len()], means: vec![0.0; queries.len()] };
    let of_queries = queries.par_chunks(CHUNK).zip(upstream.par_chunks(CHUNK)).zip(dy.par_chunks_mut(CHUNK));
    let of_found = found.weights.par_chunks_mut(CHUNK).zip(found.means.par_chunks_mut(CHUNK));
    of_queries.zip(of_found).for_each(|(((queries, upstream), dy), (weights, means))| {
        kernels::vectorized(
            #[inline(always)]
            || {
                for i in 0..queries.len() {
                    let (number, x) = place_query(&plan.panels, queries[i].to_f64());
                    let [mean, slope, inverse] = &rows[number as usize];
                    let upstream = upstream[i].to_f64();
                    means[i] = polynomial(mean, x);
                    weights[i] = upstream * polynomial(inverse, x);
                    dy[i] = R::from_f64(upstream * polynomial(slope, x));
                }
            },
        );
    });
    found
}

/// The queries in bins, with weights `G / D`, `y G / D` and `y g G / D`.
fn query_bins<R: Real>(plan: &Plan, extent: &Extent, queries: &[R], found: &Queries) -> (Grading, Bins) {
    let width = extent.high - extent.low;
    let half = (plan.delta / positive(width)).min(positive(extent.largest));
    let grading = Grading::new(half, bits(2.0 * plan.reach / plan.delta), extent.largest);
    let sums = moments(
        plan.terms,
        queries.len(),
        2 * grading.count,
        #[inline(always)]
        |range, placed: &mut BinnedTokens<3>| {
            let cut = grading;
            let (weights, means) = (&found.weights[range.clone()], &found.means[range.clone()]);
            for (i, y) in queries[range].iter().enumerate().take(BLOCK) {
                let y = y.to_f64();
                (placed.numbers[i], placed.places[i]) = place_query(&cut, y);
                placed.weights[0][i] = weights[i];
                placed.weights[1][i] = weights[i] * y;
                placed.weights[2][i] = weights[i] * y * means[i];
            }
        },
    );
    (grading, Bins::apart(&grading, sums, &exponential(plan.terms, plan.delta)))
}

/// dv and dk from panels of keys.
fn key_pass<R: Real>(
    plan: &Plan,
    extent: &Extent,
    bins: &Bins,
    HeadInputs { keys, values, .. }: HeadInputs<R>,
    middle: f64,
    gradients: &mut Gradients<R>,
) {
    let (width, chebyshev) = (extent.high - extent.low, Chebyshev::<NODES>::new());
    let delta = widest(NODES, plan.tolerance / 64.0);
    let half = (delta / positive(extent.largest)).min(positive(width) / 2.0);
    let panels = Grading::new(half, bits(2.0 * plan.reach / delta), width / 2.0);
    let panel = |number: usize| {
        let (side, number) = (number / panels.count, number % panels.count);
        let (center, half) = (panels.center(number), panels.half_width(number));
        let own = chebyshev.nodes.map(|x| center + half * x);
        let other = own.map(|d| (width - d).max(0.0));
        // Keys near the high end weigh most for queries above zero.
        let least = (center - half, (width - center - half).max(0.0));
        kernels::vectorized(
            #[inline(always)]
            || {
                let near = bins.sums::<NODES, 3>(side, &own, least.0, plan.reach);
                let far = bins.sums::<NODES, 3>(1 - side, &other, least.1, plan.reach);
                let mut rows = [[0.0; NODES]; 3];
                for c in 0..3 {
                    let mut sum = [0.0; NODES];
                    for j in 0..NODES {
                        sum[j] = near[c][j] + far[c][j];
                    }
                    rows[c] = chebyshev.coefficients(&sum);
                }
                rows
            },
        )
    };
    let rows: Vec<Row<NODES>> = (0..2 * panels.count).into_par_iter().map(panel).collect();
    let of_keys = keys.par_chunks(CHUNK).zip(values.par_chunks(CHUNK));
    let out = gradients.keys.par_chunks_mut(CHUNK).zip(gradients.values.par_chunks_mut(CHUNK));
    of_keys.zip(out).for_each(|((keys, values), (dk, dv))| {
        kernels::vectorized(
            #[inline(always)]
            || {
                for i in 0..keys.len() {
                    let (number, t) = place_key(&panels, extent, keys[i].to_f64());
                    let [value, key, mean] = &rows[number as usize];
                    dv[i] = R::from_f64(polynomial(value, t));
                    let centered = values[i].to_f64() - middle;
                    dk[i] = R::from_f64(centered * polynomial(key, t) - polynomial(mean, t));
                }
            },
        );
    });
}
