//! The level of each cell, and a certified bound on how far f is from it.
//!
//! The cost is the integral of |f - level|^p, not the largest |f - level|: a cell is cut into boxes until little of what is
//! known about it is due to loose enclosures. A jump inside a cell costs what it must, one along its face next to nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::box_moments::SLACK;
use super::cell_bound::{BoundedCell, CellBound, bound_all};
use super::{Cells, Grid};
use crate::approximate::function::Function;
use crate::arithmetic::Interval;
use crate::arithmetic::parallel;
use crate::error::{Error, Result};

/// The part of the whole error that may be due to loose enclosures.
const LOOSE: f64 = 0.04;

/// Pieces of a cell, for one output, at most, over the average.
const UNEVEN: usize = 16;

/// Enclosures for all cells and outputs together: few cells deserve more each, and many can do with less.
const LEAST: usize = 300_000;
const MOST: usize = 4_000_000;

/// A level per cell, and what is certain about them.
#[derive(Debug, Clone)]
pub struct Levels {
    /// The cells.
    pub cells: Cells,
    /// The exponent p of d_p.
    pub p: f64,
    /// Row-major `[M, d]`: the value that stands for f in each cell.
    pub levels: Vec<f64>,
    /// For each cell and output coordinate, an upper bound on |f - level|, row-major `[M, d]`.
    pub sup: Vec<f64>,
    /// An upper bound on the integral over the cube of |f - level|^p, summed over all d n entries: d_p^p of the
    /// staircase without ramps.
    pub error: f64,
    /// For each output coordinate, a range of f over the cube.
    pub range: Vec<Interval>,
    /// How often f was enclosed.
    pub evaluations: usize,
}

/// Hears how many more outputs of cells were bounded, of how many. All of them may be gone through several times.
pub type OnCells<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Progress is told in portions of so many.
const PORTION: usize = 256;

/// Levels for all cells of a grid; `effort` says into how many pieces cells are cut, on average, for each output.
///
/// The function must be defined on the cube.
pub fn levels(f: &dyn Function, grid: &Grid, p: f64, effort: usize, on_cells: OnCells) -> Result<Levels> {
    if !(p >= 1.0 && p.is_finite()) {
        return Err(Error::setting(format!("p = {p}"), "p is a number from 1 on"));
    }
    let cells = Cells { token_cells: grid.token_cells(), length: f.length(), symmetric: f.is_equivariant() };
    let count = cells.count().filter(|count| u32::try_from(*count).is_ok()).ok_or_else(|| {
        let what = format!("{} cells of a token make too many cells of sequences", cells.token_cells);
        Error::too_large(what, "use a coarser grid")
    })?;
    // One after the other the outputs of the first cell, of the second, and so on.
    let outputs = count as usize * f.dim();
    let look = |index: usize| {
        let cell = cells.cell((index / f.dim()) as u64);
        CellBound::new(&cell, index % f.dim(), p, cells.multiplicity(&cell), grid.sequence_box(&cell))
    };
    let tell = |index: usize| {
        if index.is_multiple_of(PORTION) {
            on_cells(PORTION.min(outputs - index), outputs);
        }
    };
    let together = f.together().max(1);
    let first = |start: usize| {
        let indices = start * together..outputs.min((start + 1) * together);
        indices.clone().for_each(tell);
        bound_all(f, indices.map(look).collect())
    };
    let mut known: Vec<BoundedCell> = parallel::map(outputs.div_ceil(together), first).into_iter().flatten().collect();
    let budget = (effort * outputs).clamp(LEAST, MOST);
    let mut evaluations = outputs;
    let mut pieces = 4;
    while pieces <= UNEVEN * effort {
        let affordable = budget.saturating_sub(evaluations) / (2 * pieces);
        let Some((enough, loose)) = thresholds(&known, affordable) else { break };
        let more = AtomicUsize::new(0);
        let again = |chunk: usize, known: &mut [BoundedCell]| {
            let index = |i: usize| chunk * together + i;
            (0..known.len()).map(index).for_each(tell);
            let some: Vec<usize> = (0..known.len()).filter(|i| known[*i].loose > loose).collect();
            let cells = some.iter().map(|i| look(index(*i)).cut_into(pieces, enough)).collect();
            for (i, bounded) in some.into_iter().zip(bound_all(f, cells)) {
                more.fetch_add(bounded.evaluations, Ordering::Relaxed);
                known[i] = bounded;
            }
        };
        parallel::for_each_chunk(&mut known, together, &again);
        evaluations += more.into_inner();
        pieces *= 4;
    }
    join(f, cells, p, &known, evaluations)
}

/// How little loose is good enough, and how loose cells must be for a new look at them, if `affordable` can have one; `None`
/// if that would change little.
fn thresholds(known: &[BoundedCell], affordable: usize) -> Option<(f64, f64)> {
    let whole: f64 = known.iter().map(|known| known.error).sum();
    let loose: f64 = known.iter().map(|known| known.loose).sum();
    if whole.is_infinite() {
        return Some((f64::MAX, f64::MAX));
    }
    if loose <= LOOSE * whole || affordable == 0 {
        return None;
    }
    let enough = LOOSE * whole / known.len() as f64;
    let mut sorted: Vec<f64> = known.iter().map(|known| known.loose).filter(|loose| *loose > enough).collect();
    if sorted.len() <= affordable {
        return Some((enough, enough));
    }
    Some((enough, *sorted.select_nth_unstable_by(affordable, |a, b| b.total_cmp(a)).1))
}

/// All cells together.
fn join(f: &dyn Function, cells: Cells, p: f64, known: &[BoundedCell], evaluations: usize) -> Result<Levels> {
    if let Some((index, _)) = known.iter().enumerate().find(|(_, known)| !known.error.is_finite()) {
        return Err(Error::undefined(
            format!("no bound on the function was found in cell {:?}", cells.cell((index / f.dim()) as u64).tokens),
            "use a finer grid, or a function that stays farther from where it is undefined",
        ));
    }
    let sum: f64 = known.iter().map(|known| known.error).sum();
    let places = if cells.symmetric { f.length() as f64 } else { 1.0 };
    let hull = |k: usize| {
        let ranges = known.iter().skip(k).step_by(f.dim()).map(|known| known.range);
        ranges.reduce(Interval::hull).expect("at least one cell")
    };
    Ok(Levels {
        cells,
        p,
        levels: known.iter().map(|known| known.level).collect(),
        sup: known.iter().map(|known| known.sup).collect(),
        // The sum has a relative error for each term; what underflows, here or in a checker, is far below the last number.
        error: sum * places * (SLACK + known.len() as f64 * f64::EPSILON) + 1e-240,
        range: (0..f.dim()).map(hull).collect(),
        evaluations,
    })
}
