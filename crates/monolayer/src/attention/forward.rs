//! Forward without a mask: moments of the keys, values at nodes, a polynomial for each panel of queries.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use std::ops::Range;

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::grading::Grading;
use super::limits::Limits;
use super::moments::{BLOCK, BinnedTokens, moments};
use super::panels::{Bins, Chebyshev, Evaluate, polynomials};
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
    let (grading, extent) = (plan.bins, *extent);
    let place = |range: Range<usize>, placed: &mut BinnedTokens| {
        let (keys, values) = (&keys[range.clone()], &values[range]);
        kernels::vectorized(
            #[inline(always)]
            || {
                // Copies, which nothing that is written here can change.
                let (grading, extent) = (grading, extent);
                for (i, (k, v)) in keys.iter().zip(values).enumerate().take(BLOCK) {
                    let (number, t) = place_key(&grading, &extent, k.to_f64());
                    placed.numbers[i] = number;
                    placed.places[i] = t;
                    placed.weights[1][i] = v.to_f64() - middle;
                }
            },
        );
    };
    let sums = moments((2, plan.terms), keys.len(), 2 * grading.count, &place);
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

/// A panel of queries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel {
    /// Half its width, and its center, which is not below zero.
    pub half: f64,
    pub center: f64,
    /// 1 where its queries are positive.
    pub side: usize,
}

impl Panel {
    /// The smallest |y|.
    pub fn least(&self) -> f64 {
        self.center - self.half
    }
}

/// Polynomials of all panels, the same number of coefficients for each: what `row` makes of those that are used.
pub(super) fn tables(
    panels: &Grading,
    used: &[bool],
    (bins, numbers): (usize, usize),
    row: &(dyn Fn(Panel, &mut [f64]) + Sync),
) -> Vec<f64> {
    let count = panels.count;
    let mut rows = vec![0.0; 2 * count * numbers];
    let fill = |first: usize, rows: &mut [f64]| {
        for (i, out) in rows.chunks_mut(numbers).enumerate() {
            if used[first + i] {
                let (side, number) = ((first + i) / count, (first + i) % count);
                row(Panel { half: panels.half_width(number), center: panels.center(number), side }, out);
            }
        }
    };
    if used.iter().filter(|&&used| used).count() * bins * numbers > PARALLEL {
        rows.par_chunks_mut(PANELS * numbers).enumerate().for_each(|(i, rows)| fill(i * PANELS, rows));
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
    let used = used_panels(plan, queries);
    let (rows, evaluate) = match plan.nodes {
        4 => (means::<4>(plan, &bins, &used), polynomials::<4> as Evaluate),
        8 => (means::<8>(plan, &bins, &used), polynomials::<8> as Evaluate),
        12 => (means::<12>(plan, &bins, &used), polynomials::<12> as Evaluate),
        _ => (means::<16>(plan, &bins, &used), polynomials::<16> as Evaluate),
    };
    let run = |queries: &[R], out: &mut [R]| read_off(&plan.panels, (&rows, evaluate), middle, limits, queries, out);
    if queries.len() > CHUNK {
        queries.par_chunks(CHUNK).zip(out.par_chunks_mut(CHUNK)).for_each(|(queries, out)| run(queries, out));
    } else {
        run(queries, out);
    }
}

/// The middle of the values.
pub(super) fn middle<R: Real>(limits: Limits<R>) -> f64 {
    limits.low.to_f64() * 0.5 + limits.high.to_f64() * 0.5
}

/// The polynomial of g on each panel.
fn means<const M: usize>(plan: &Plan, bins: &Bins, used: &[bool]) -> Vec<f64> {
    let chebyshev = Chebyshev::<M>::new();
    let row = |panel: Panel, out: &mut [f64]| {
        let y = chebyshev.nodes.map(|x| panel.center + panel.half * x);
        kernels::vectorized(
            #[inline(always)]
            || {
                let [total, sum] = bins.sums::<M, 2>(panel.side, &y, panel.least(), plan.reach);
                let mut values = [0.0; M];
                for j in 0..M {
                    values[j] = sum[j] / total[j];
                }
                out.copy_from_slice(&chebyshev.coefficients(&values));
            },
        );
    };
    tables(&plan.panels, used, (bins.seen[0].len(), M), &row)
}

/// The value of its panel's polynomial for each query.
fn read_off<R: Real>(
    panels: &Grading,
    (rows, evaluate): (&[f64], Evaluate),
    middle: f64,
    limits: Limits<R>,
    queries: &[R],
    out: &mut [R],
) {
    let (low, high) = (limits.low.to_f64(), limits.high.to_f64());
    kernels::vectorized(
        #[inline(always)]
        || {
            // A copy, which nothing that is written here can change.
            let panels = *panels;
            let (mut numbers, mut places, mut found) = ([0_u32; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
            for (queries, out) in queries.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
                for (i, y) in queries.iter().enumerate().take(BLOCK) {
                    (numbers[i], places[i]) = place_query(&panels, y.to_f64());
                }
                evaluate(rows, (1, 0), &numbers[..queries.len()], &places, &mut found);
                for (out, value) in out.iter_mut().zip(&found) {
                    let value = value + middle;
                    let value = if value < low { low } else { value };
                    *out = R::from_f64(if value > high { high } else { value });
                }
            }
        },
    );
}
