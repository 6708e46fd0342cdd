//! The smallest grid that meets a bound, or how many ids it would need.

use super::cells::{self, Cells, GridSearch};
use super::{Approximation, Approximator, Blueprint, Progress};
use crate::approximate::function::Function;
use crate::error::{Error, Result};

/// A grid that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// Parts of each coordinate; empty where they are not told.
    pub grid: Vec<usize>,
    /// Ids.
    pub ids: u64,
    /// The bound on d_p.
    pub bound: f64,
}

/// Whether a bound was met.
#[derive(Debug)]
pub enum SmallestGrid {
    /// It was, by the smallest grid that does.
    Met(Box<Approximation>),
    /// It was not: too many ids. What was tried, the finest last, and what it would take.
    TooFine {
        /// Grids and their bounds.
        tried: Vec<Tried>,
        /// The grid that would do if the bound went on falling as it did; `None` if it did not fall.
        needed: Option<Needed>,
    },
}

/// A grid that is too fine.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// Parts of each coordinate.
    pub grid: Vec<u64>,
    /// Ids; `None` beyond 2^63.
    pub ids: Option<u64>,
}

/// Rounds of asking for less error in the cells, to make up for ramps and rounding.
const ROUNDS: usize = 4;

impl Approximator<'_> {
    /// Approximates f to within `epsilon` on the smallest grid that is found, its parts adapted to f or equal.
    pub fn compile_within(&self, f: &dyn Function, epsilon: f64) -> Result<SmallestGrid> {
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(Error::setting(format!("`epsilon` {epsilon}"), "use a finite number above 0"));
        }
        let adapted = if self.uniform { None } else { self.adapted_within(f, epsilon)? };
        adapted.map_or_else(|| self.uniform_within(f, epsilon), Ok)
    }

    /// With parts adapted to f; `None` if ramps and rounding spoil what the cells allow.
    fn adapted_within(&self, f: &dyn Function, epsilon: f64) -> Result<Option<SmallestGrid>> {
        let mut target = epsilon;
        for _ in 0..ROUNDS {
            let on_cells = |more: usize, of: usize| self.cells(more, of);
            let (grid, levels) = match cells::search_grid(f, self.p, target, self.most_ids, self.effort, &on_cells)? {
                GridSearch::Found { grid, levels } => (grid, levels),
                GridSearch::TooFine { parts, ids, reached } => {
                    let tried = reached.map(|(bound, ids)| Tried { grid: Vec::new(), ids, bound });
                    let needed = Some(Needed { grid: parts, ids });
                    return Ok(Some(SmallestGrid::TooFine { tried: tried.into_iter().collect(), needed }));
                }
            };
            let blueprint = self.blueprint_on(grid, &levels)?;
            self.report(&Progress::Grid(blueprint.tried()));
            if blueprint.bound.inside <= epsilon {
                return Ok(Some(SmallestGrid::Met(Box::new(self.assemble(f, blueprint)))));
            }
            target *= 0.998 * epsilon / blueprint.bound.inside;
        }
        Ok(None)
    }

    /// With equal parts.
    fn uniform_within(&self, f: &dyn Function, epsilon: f64) -> Result<SmallestGrid> {
        let mut tried: Vec<Tried> = Vec::new();
        let mut attempt = |grid: usize| -> Result<Option<Blueprint>> {
            if !self.fits(f, grid) {
                return Ok(None);
            }
            let blueprint = self.blueprint(f, grid)?;
            tried.push(blueprint.tried());
            self.report(&Progress::Grid(blueprint.tried()));
            Ok(Some(blueprint))
        };
        // Half as fine again until it is met.
        let (mut short, mut met) = (0, None);
        let mut grid = 1;
        while let Some(blueprint) = attempt(grid)? {
            if blueprint.bound.inside <= epsilon {
                met = Some((grid, blueprint));
                break;
            }
            short = grid;
            grid = if grid < 4 { grid + 1 } else { grid * 3 / 2 };
        }
        // Too many ids: the finest grid that is left may do.
        if met.is_none()
            && let Some(finest) = (short + 1..grid).rev().find(|&grid| self.fits(f, grid))
            && let Some(blueprint) = attempt(finest)?
            && blueprint.bound.inside <= epsilon
        {
            met = Some((finest, blueprint));
        }
        let Some((mut enough, mut best)) = met else {
            let needed =
                needed(&tried, epsilon).map(|grid| Needed { grid: vec![grid; f.dim()], ids: self.ids(f, grid) });
            return Ok(SmallestGrid::TooFine { tried, needed });
        };
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            let blueprint = attempt(middle)?.expect("fewer ids than before");
            if blueprint.bound.inside <= epsilon {
                (enough, best) = (middle, blueprint);
            } else {
                short = middle;
            }
        }
        Ok(SmallestGrid::Met(Box::new(self.assemble(f, best))))
    }

    /// Whether a grid makes no more ids than are allowed.
    fn fits(&self, f: &dyn Function, grid: usize) -> bool {
        self.ids(f, grid as u64).is_some_and(|ids| ids <= self.most_ids)
    }

    /// The ids of a grid; `None` beyond 2^63.
    pub fn ids(&self, f: &dyn Function, grid: u64) -> Option<u64> {
        let token_cells = grid.checked_pow(f.dim() as u32)?;
        Cells { token_cells, length: f.length(), symmetric: f.is_equivariant() }.count()
    }
}

impl Blueprint {
    fn tried(&self) -> Tried {
        Tried { grid: self.grid.parts(), ids: self.cells.count().unwrap_or(u64::MAX), bound: self.bound.inside }
    }
}

/// The grid that would do if the bound went on falling as it did over the last half of what was tried.
fn needed(tried: &[Tried], epsilon: f64) -> Option<u64> {
    let last = tried.iter().max_by_key(|tried| tried.grid[0])?;
    let half = tried.iter().filter(|tried| 2 * tried.grid[0] <= last.grid[0] + 1).max_by_key(|tried| tried.grid[0])?;
    let slope = (half.bound / last.bound).ln() / (last.grid[0] as f64 / half.grid[0] as f64).ln();
    let grid = last.grid[0] as f64 * (last.bound / epsilon).powf(1.0 / slope);
    (slope > 0.0 && grid < 1e18).then_some(grid.ceil() as u64)
}
