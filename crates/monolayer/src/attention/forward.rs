//! Forward without a mask: moments of the keys, values at nodes, a polynomial for each panel of queries.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::Range;
use super::grading::Grading;
use super::moments::{BLOCK, moments};
use super::panels::{Cells, Chebyshev, polynomial};
use super::plan::{Extent, Plan};

/// Queries of a chunk: a thread takes one after another.
const CHUNK: usize = 8192;
/// Panels of a chunk.
const PANELS: usize = 8;
/// Sums that are worth a thread of their own.
const PARALLEL: usize = 1 << 14;

/// Where a key lies: counted from the nearer end, those near the low end first.
#[inline(always)]
pub(super) fn place_key(grading: &Grading, extent: &Extent, k: f64) -> (usize, f64) {
    let (below, above) = (k - extent.low, extent.high - k);
    let upper = above < below;
    let (number, t) = grading.place(if upper { above } else { below });
    (number + if upper { grading.count } else { 0 }, t)
}

/// Where a query lies: those below zero first.
#[inline(always)]
pub(super) fn place_query(grading: &Grading, y: f64) -> (usize, f64) {
    let (number, x) = grading.place(y.abs());
    (number + if y < 0.0 { 0 } else { grading.count }, x)
}

/// The moments of keys with weights 1 and v.
pub(super) fn key_moments<R: Real>(plan: &Plan, extent: &Extent, keys: &[R], values: &[R], middle: f64) -> Cells {
    let grading = plan.cells;
    let sums = moments(
        plan.terms,
        keys.len(),
        2 * grading.count,
        #[inline(always)]
        |i: usize| {
            let (number, t) = place_key(&grading, extent, keys[i].to_f64());
            (number, t, [1.0, values[i].to_f64() - middle])
        },
    );
    Cells::new(&grading, extent.high - extent.low, sums, plan.terms, 2)
}

/// Which panels have queries, where there are so few queries that it matters.
pub(super) fn used_panels<R: Real>(plan: &Plan, queries: &[R]) -> Vec<bool> {
    let mut used = vec![2 * plan.panels.count * plan.nodes <= queries.len(); 2 * plan.panels.count];
    if !used[0] {
        queries.iter().for_each(|y| used[place_query(&plan.panels, y.to_f64()).0] = true);
    }
    used
}

/// For each panel, what `finish` makes of the sums at its nodes: given the nodes |y|, whether y is positive, and the sums.
pub(super) fn tables<const M: usize, const C: usize, T: Send + Sync + Copy>(
    plan: &Plan,
    cells: &Cells,
    used: &[bool],
    empty: T,
    finish: impl Fn(&Chebyshev<M>, [f64; M], bool, [[f64; M]; C]) -> T + Sync,
) -> Vec<T> {
    let (count, chebyshev) = (plan.panels.count, Chebyshev::<M>::new());
    let mut rows = vec![empty; 2 * count];
    let panel = |panel: usize| {
        let (side, number) = (panel / count, panel % count);
        let (center, half) = (plan.panels.center(number), plan.panels.half_width(number));
        let y = chebyshev.nodes.map(|x| center + half * x);
        kernels::vectorized(
            #[inline(always)]
            || {
                let sums = cells.sums::<M, C>(side, &y, center - half, plan.reach);
                finish(&chebyshev, y, side == 1, sums)
            },
        )
    };
    let fill = |first: usize, rows: &mut [T]| {
        for (i, row) in rows.iter_mut().enumerate() {
            if used[first + i] {
                *row = panel(first + i);
            }
        }
    };
    let work = used.iter().filter(|&&used| used).count() * cells.seen[0].len();
    if work * M > PARALLEL {
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
    limits: Range<R>,
    out: &mut [R],
) {
    let middle = middle(limits);
    let cells = key_moments(plan, extent, keys, values, middle);
    match plan.nodes {
        4 => evaluate::<4, R>(plan, &cells, middle, limits, queries, out),
        8 => evaluate::<8, R>(plan, &cells, middle, limits, queries, out),
        12 => evaluate::<12, R>(plan, &cells, middle, limits, queries, out),
        _ => evaluate::<16, R>(plan, &cells, middle, limits, queries, out),
    }
}

/// The middle of the values.
pub(super) fn middle<R: Real>(limits: Range<R>) -> f64 {
    limits.low.to_f64() * 0.5 + limits.high.to_f64() * 0.5
}

fn evaluate<const M: usize, R: Real>(
    plan: &Plan,
    cells: &Cells,
    middle: f64,
    limits: Range<R>,
    queries: &[R],
    out: &mut [R],
) {
    let used = used_panels(plan, queries);
    let rows = tables::<M, 2, _>(
        plan,
        cells,
        &used,
        [0.0; M],
        #[inline(always)]
        |chebyshev, _, _, [total, sum]| {
            let mut values = [0.0; M];
            for j in 0..M {
                values[j] = sum[j] / total[j];
            }
            chebyshev.coefficients(&values)
        },
    );
    let (low, high) = (limits.low.to_f64(), limits.high.to_f64());
    let block = |queries: &[R], out: &mut [R]| {
        let (mut numbers, mut places) = ([0_u32; BLOCK], [0.0; BLOCK]);
        for (queries, out) in queries.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            for (i, y) in queries.iter().enumerate() {
                let (number, x) = place_query(&plan.panels, y.to_f64());
                (numbers[i], places[i]) = (number as u32, x);
            }
            for (i, out) in out.iter_mut().enumerate() {
                places[i] = polynomial(&rows[numbers[i] as usize], places[i]);
                *out = R::from_f64((places[i] + middle).max(low).min(high));
            }
        }
    };
    let run = |queries: &[R], out: &mut [R]| {
        kernels::vectorized(
            #[inline(always)]
            || block(queries, out),
        );
    };
    if queries.len() > CHUNK {
        queries.par_chunks(CHUNK).zip(out.par_chunks_mut(CHUNK)).for_each(|(queries, out)| run(queries, out));
    } else {
        run(queries, out);
    }
}
