//! The smallest grid whose cells are certainly near enough to f.

use super::{Adapted, Cells, Grid, Levels, OnCells, levels};
use crate::approximate::function::Function;
use crate::error::Result;

/// Rounds of certifying a grid and correcting the estimate by what came out.
const ROUNDS: usize = 7;

/// A grid that is fine enough, or what it would take.
#[derive(Debug, Clone)]
pub enum GridSearch {
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

/// The smallest grid whose levels are certainly within `target` of f in d_p, with at most `most_ids` cells: one adapted to f,
/// unless equal parts do better.
pub fn search_grid(
    f: &dyn Function,
    p: f64,
    target: f64,
    most_ids: u64,
    effort: usize,
    on_cells: OnCells,
) -> Result<GridSearch> {
    let adapted = Adapted::new(f, 0);
    let mut search = Candidates { f, p, target, effort, on_cells, best: None, reached: None };
    let largest = largest(|m| search.count(m).is_some_and(|count| count <= most_ids));
    let ratio = search.adapted(&adapted, largest)?;
    search.uniform()?;
    Ok(match search.best {
        Some((grid, levels)) => GridSearch::Found { grid, levels },
        None => too_fine(&adapted, target / ratio, |m| search.count(m), search.reached),
    })
}

struct Candidates<'a> {
    f: &'a dyn Function,
    p: f64,
    target: f64,
    effort: usize,
    on_cells: OnCells<'a>,
    best: Option<(Grid, Levels)>,
    reached: Option<(f64, u64)>,
}

impl Candidates<'_> {
    /// Cells of sequences for m cells of a token.
    fn count(&self, token_cells: u64) -> Option<u64> {
        Cells { token_cells, length: self.f.length(), symmetric: self.f.is_equivariant() }.count()
    }

    /// Certifies a grid, and keeps it if it meets the target; its error.
    fn certify(&mut self, grid: Grid) -> Result<f64> {
        let found = levels(self.f, &grid, self.p, self.effort, self.on_cells)?;
        let error = found.error.powf(1.0 / self.p);
        if self.reached.is_none_or(|(smallest, _)| error < smallest) {
            self.reached = Some((error, found.cells.count().unwrap_or(u64::MAX)));
        }
        if error <= self.target {
            self.best = Some((grid, found));
        }
        Ok(error)
    }

    /// Grids adapted to the function, of at most `largest` cells of a token; the certified error over the sampled one, which
    /// corrects the estimate of how many cells it takes until the two agree.
    fn adapted(&mut self, adapted: &Adapted, largest: u64) -> Result<f64> {
        let mut ratio = 1.0;
        let (mut lower, mut upper) = (1, largest);
        for _ in 0..ROUNDS {
            if lower > upper {
                break;
            }
            let wanted = smallest(lower, upper, |m| ratio * adapted.parts(m).cost.sqrt() <= self.target);
            if wanted.is_none() && self.best.is_some() {
                break;
            }
            let parts = adapted.parts(wanted.unwrap_or(upper));
            let error = self.certify(adapted.grid(&parts))?;
            if parts.cost > 0.0 && error > 0.0 {
                ratio = error / parts.cost.sqrt();
            }
            if error <= self.target {
                upper = parts.token_cells() - 1;
            } else if let Some(wanted) = wanted {
                lower = wanted + 1;
            } else {
                break;
            }
        }
        Ok(ratio)
    }

    /// Equal parts, as long as they need fewer cells.
    fn uniform(&mut self) -> Result<()> {
        while let Some((grid, _)) = &self.best {
            let (cells, dim) = (grid.token_cells(), self.f.dim());
            let fewer = |parts: &usize| (*parts as u64).checked_pow(dim as u32).is_some_and(|equal| equal < cells);
            let Some(parts) = (1..cells as usize).take_while(fewer).last() else { break };
            if self.certify(Grid::uniform(dim, parts))? > self.target {
                break;
            }
        }
        Ok(())
    }
}

fn too_fine(
    adapted: &Adapted,
    sampled: f64,
    count: impl Fn(u64) -> Option<u64>,
    reached: Option<(f64, u64)>,
) -> GridSearch {
    let token_cells = (0..31).map(|e| 1 << e).find(|&m| adapted.parts(m).cost.sqrt() <= sampled);
    let above = token_cells.unwrap_or(1 << 31);
    let token_cells = smallest(above / 2 + 1, above, |m| adapted.parts(m).cost.sqrt() <= sampled).unwrap_or(above);
    let parts = adapted.parts(token_cells);
    GridSearch::TooFine { ids: count(parts.token_cells()), parts: parts.counts(), reached }
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
