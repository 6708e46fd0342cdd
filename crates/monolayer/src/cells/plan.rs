//! The smallest grid for a given error.

use super::{Adapted, Cells, Grid, Levels, levels};
use crate::error::Result;
use crate::function::Function;

/// Rounds of certifying a grid and correcting the estimate by what came out.
const ROUNDS: usize = 7;

/// A grid that is fine enough, or what it would take.
#[derive(Debug, Clone)]
pub enum Plan {
    /// The smallest grid found whose certified error, the p-th root of [`Levels::error`], is at most the target.
    Found {
        /// The grid.
        grid: Grid,
        /// Its levels.
        levels: Levels,
    },
    /// It would have too many cells.
    TooFine {
        /// About the parts of each coordinate it would take.
        parts: Vec<u64>,
        /// About the cells of sequences it would have; `None` beyond 2^63.
        ids: Option<u64>,
        /// The smallest error certified on the way, and the grid's cells.
        reached: Option<(f64, u64)>,
    },
}

/// The smallest grid, adapted to f, whose levels are certainly within `target` of f in d_p, with at most `most_ids` cells.
pub fn plan(f: &dyn Function, p: f64, target: f64, most_ids: u64, effort: usize) -> Result<Plan> {
    let adapted = Adapted::new(f, 0);
    let count = |token_cells: u64| Cells { token_cells, length: f.length(), symmetric: f.is_equivariant() }.count();
    let largest = largest(|m| count(m).is_some_and(|count| count <= most_ids));
    // The certified error over the sampled one; grids are certified, and the estimate corrected, until they agree.
    let mut ratio = 1.0;
    let mut best: Option<(u64, Grid, Levels)> = None;
    let mut failed = 0;
    let mut reached: Option<(f64, u64)> = None;
    for _ in 0..ROUNDS {
        let enough = |m: u64| ratio * adapted.parts(m).cost.sqrt() <= target;
        let upper = best.as_ref().map_or(largest, |(m, ..)| m - 1);
        let lower = failed + 1;
        if lower > upper {
            break;
        }
        let wanted = smallest(lower, upper, enough);
        let token_cells = wanted.unwrap_or(upper);
        if best.is_some() && wanted.is_none() {
            break;
        }
        let parts = adapted.parts(token_cells);
        let grid = adapted.grid(&parts);
        let found = levels(f, &grid, p, effort)?;
        let error = found.error.powf(1.0 / p);
        if reached.is_none_or(|(smallest, _)| error < smallest) {
            reached = Some((error, count(grid.token_cells()).unwrap_or(u64::MAX)));
        }
        if parts.cost > 0.0 && error > 0.0 {
            ratio = error / parts.cost.sqrt();
        }
        if error <= target {
            best = Some((grid.token_cells().min(token_cells), grid, found));
        } else if wanted.is_none() {
            break;
        } else {
            failed = token_cells;
        }
    }
    Ok(match best {
        Some((_, grid, levels)) => Plan::Found { grid, levels },
        None => too_fine(&adapted, target / ratio, count, reached),
    })
}

fn too_fine(adapted: &Adapted, sampled: f64, count: impl Fn(u64) -> Option<u64>, reached: Option<(f64, u64)>) -> Plan {
    let token_cells = (0..31).map(|e| 1 << e).find(|&m| adapted.parts(m).cost.sqrt() <= sampled);
    let above = token_cells.unwrap_or(1 << 31);
    let token_cells = smallest(above / 2 + 1, above, |m| adapted.parts(m).cost.sqrt() <= sampled).unwrap_or(above);
    let parts = adapted.parts(token_cells).counts();
    Plan::TooFine { ids: count(parts.iter().copied().fold(1, u64::saturating_mul)), parts, reached }
}

/// The smallest number from `lower` to `upper` that is enough, if more is always better.
fn smallest(lower: u64, upper: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    if !enough(upper) {
        return None;
    }
    let (mut below, mut above) = (lower - 1, upper);
    while above - below > 1 {
        let middle = u64::midpoint(below, above);
        if enough(middle) { above = middle } else { below = middle }
    }
    Some(above)
}

/// The largest number from 1 to 2^31 that fits, at least 1.
fn largest(fits: impl Fn(u64) -> bool) -> u64 {
    smallest(1, 1 << 31, |m| !fits(m)).map_or(1 << 31, |m| (m - 1).max(1))
}
