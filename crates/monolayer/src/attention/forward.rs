//! Forward without a mask: moments of the keys, values at nodes, a polynomial for each panel of queries.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::grading::Grading;
use super::limits::Limits;
use super::moments::{BLOCK, BinnedTokens, moments};
use super::panels::{Bins, Chebyshev, polynomial};
use super::plan::{Extent, Plan, exponential};

/// Queries of a chunk: a thread takes one after another.
const CHUNK: usize = 8192;
/// Panels of a chunk.
const PANELS: usize = 8;
/// Sums that are worth a thread of their own.
const PARALLEL: usize = 1 << 14;

/// Where a key lies: counted from the nearer end, those near the low end first.
#[inline(always)]
pub(super) fn place_key(grading: &Grading, extent: &Extent, k: f64) -> (u32, f64) {
    let (below, above) = (k - extent.low, extent.high - k);
    let upper = above < below;
    let (number, t) = grading.place(if upper { above } else { below });
    (number as u32 + u32::from(upper) * grading.count as u32, t)
}

/// Where a query lies: those below zero first.
#[inline(always)]
pub(super) fn place_query(grading: &Grading, y: f64) -> (u32, f64) {
    let (number, x) = grading.place(y.abs());
    (number as u32 + u32::from(y >= 0.0) * grading.count as u32, x)
}

/// The moments of keys with weights 1 and v.
pub(super) fn key_moments<R: Real>(plan: &Plan, extent: &Extent, keys: &[R], values: &[R], middle: f64) -> Bins {
    let grading = plan.bins;
    let sums = moments(
        plan.terms,
        keys.len(),
        2 * grading.count,
        #[inline(always)]
        |range, placed: &mut BinnedTokens<2>| {
            // Copies, which nothing that is written here can change.
            let (grading, extent) = (grading, *extent);
            for (i, (k, v)) in keys[range.clone()].iter().zip(&values[range]).enumerate().take(BLOCK) {
                let (number, t) = place_key(&grading, &extent, k.to_f64());
                placed.numbers[i] = number;
                placed.places[i] = t;
                placed.weights[1][i] = v.to_f64() - middle;
            }
        },
    );
    Bins::new(&grading, extent.high - extent.low, sums, &exponential(plan.terms, plan.delta))
}

/// Which panels have queries, where there are so few queries that it matters.
pub(super) fn used_panels<R: Real>(plan: &Plan, queries: &[R]) -> Vec<bool> {
    let mut used = vec![2 * plan.panels.count * plan.nodes <= queries.len(); 2 * plan.panels.count];
    if !used[0] {
        queries.iter().for_each(|y| used[place_query(&plan.panels, y.to_f64()).0 as usize] = true);
    }
    used
}

/// For each panel, what `row` makes of it: of its nodes |y|, the least |y|, and its side, 1 where y is positive.
pub(super) fn tables<const M: usize, T: Send + Sync + Copy>(
    plan: &Plan,
    used: &[bool],
    bins: usize,
    empty: T,
    row: impl Fn(&Chebyshev<M>, [f64; M], f64, usize) -> T + Sync,
) -> Vec<T> {
    let (count, chebyshev) = (plan.panels.count, Chebyshev::<M>::new());
    let mut rows = vec![empty; 2 * count];
    let panel = |panel: usize| {
        let (side, number) = (panel / count, panel % count);
        let (center, half) = (plan.panels.center(number), plan.panels.half_width(number));
        let y = chebyshev.nodes.map(|x| center + half * x);
        kernels::vectorized(
            #[inline(always)]
            || row(&chebyshev, y, center - half, side),
        )
    };
    let fill = |first: usize, rows: &mut [T]| {
        for (i, row) in rows.iter_mut().enumerate() {
            if used[first + i] {
                *row = panel(first + i);
            }
        }
    };
    if used.iter().filter(|&&used| used).count() * bins * M > PARALLEL {
        rows.par_chunks_mut(PANELS).enumerate().for_each(|(i, rows)| fill(i * PANELS, rows));
    } else {
        fill(0, &mut rows);
    }
    rows
}

/// The output of all queries.
pub(super) fn forward<R: Real>(
    plan: &Plan,
    extent: &Extent,
    (keys, values, queries): (&[R], &[R], &[R]),
    limits: Limits<R>,
    out: &mut [R],
) {
    let middle = middle(limits);
    let bins = key_moments(plan, extent, keys, values, middle);
    match plan.nodes {
        4 => evaluate::<4, R>(plan, &bins, middle, limits, queries, out),
        8 => evaluate::<8, R>(plan, &bins, middle, limits, queries, out),
        12 => evaluate::<12, R>(plan, &bins, middle, limits, queries, out),
        _ => evaluate::<16, R>(plan, &bins, middle, limits, queries, out),
    }
}

/// The middle of the values.
pub(super) fn middle<R: Real>(limits: Limits<R>) -> f64 {
    limits.low.to_f64() * 0.5 + limits.high.to_f64() * 0.5
}

fn evaluate<const M: usize, R: Real>(
    plan: &Plan,
    bins: &Bins,
    middle: f64,
    limits: Limits<R>,
    queries: &[R],
    out: &mut [R],
) {
    let used = used_panels(plan, queries);
    let rows = tables::<M, _>(
        plan,
        &used,
        bins.seen[0].len(),
        [0.0; M],
        #[inline(always)]
        |chebyshev, y, least, side| {
            let [total, sum] = bins.sums::<M, 2>(side, &y, least, plan.reach);
            let mut values = [0.0; M];
            for j in 0..M {
                values[j] = sum[j] / total[j];
            }
            chebyshev.coefficients(&values)
        },
    );
    let run = |queries: &[R], out: &mut [R]| {
        kernels::vectorized(
            #[inline(always)]
            || read_off(&plan.panels, &rows, middle, limits, queries, out),
        );
    };
    if queries.len() > CHUNK {
        queries.par_chunks(CHUNK).zip(out.par_chunks_mut(CHUNK)).for_each(|(queries, out)| run(queries, out));
    } else {
        run(queries, out);
    }
}

/// The value of its panel's polynomial for each query.
#[inline(always)]
fn read_off<const M: usize, R: Real>(
    panels: &Grading,
    rows: &[[f64; M]],
    middle: f64,
    limits: Limits<R>,
    queries: &[R],
    out: &mut [R],
) {
    // A copy, which nothing that is written here can change.
    let panels = *panels;
    let (low, high) = (limits.low.to_f64(), limits.high.to_f64());
    let (mut numbers, mut places) = ([0_u32; BLOCK], [0.0; BLOCK]);
    for (queries, out) in queries.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        for (i, y) in queries.iter().enumerate().take(BLOCK) {
            (numbers[i], places[i]) = place_query(&panels, y.to_f64());
        }
        for i in 0..queries.len().min(BLOCK) {
            places[i] = polynomial(&rows[numbers[i] as usize], places[i]);
        }
        for (out, value) in out.iter_mut().zip(&places) {
            let value = value + middle;
            let value = if value < low { low } else { value };
            *out = R::from_f64(if value > high { high } else { value });
        }
    }
}
