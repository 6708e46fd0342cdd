//! The smallest grid that meets a bound, or what it would take.

use super::{Approximation, Approximator, Plan, parts};
use crate::approximate::cells::{self, Cells};
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
pub enum Reached {
    /// It was, by the smallest grid that does.
    Met(Box<Approximation>),
    /// It was not: too many ids. What was tried, the finest last, and what it would take.
    Short {
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

impl Approximator {
    /// Approximates f to within `epsilon` on the smallest grid that is found, its parts adapted to f or equal. `tell` hears of
    /// every grid that was tried.
    pub fn reach(&self, f: &dyn Function, epsilon: f64, tell: &dyn Fn(&Tried)) -> Result<Reached> {
        check(epsilon)?;
        let mut target = epsilon;
        for _ in 0..ROUNDS {
            let (grid, levels) = match cells::plan(f, self.p, target, self.most_ids, self.effort)? {
                cells::Plan::Found { grid, levels } => (grid, levels),
                cells::Plan::TooFine { parts, ids, reached } => {
                    let tried = reached.map(|(bound, ids)| Tried { grid: Vec::new(), ids, bound });
                    let needed = Some(Needed { grid: parts, ids });
                    return Ok(Reached::Short { tried: tried.into_iter().collect(), needed });
                }
            };
            let plan = self.plan_levels(grid, &levels, &|_| ())?;
            tell(&plan.tried());
            if plan.bound.inside <= epsilon {
                return Ok(Reached::Met(Box::new(self.put_together(f, plan))));
            }
            target *= 0.998 * epsilon / plan.bound.inside;
        }
        self.reach_uniform(f, epsilon, tell)
    }

    /// The same with equal parts.
    pub fn reach_uniform(&self, f: &dyn Function, epsilon: f64, tell: &dyn Fn(&Tried)) -> Result<Reached> {
        check(epsilon)?;
        let mut tried: Vec<Tried> = Vec::new();
        let mut attempt = |grid: usize| -> Result<Option<Plan>> {
            let ids = self.ids(f, grid as u64);
            if ids.is_none_or(|ids| ids > self.most_ids) {
                return Ok(None);
            }
            let plan = self.plan(f, grid, &|_| ())?;
            tried.push(plan.tried());
            tell(&tried[tried.len() - 1]);
            Ok(Some(plan))
        };
        // Half as fine again until it is met.
        let (mut short, mut met) = (0, None);
        let mut grid = 1;
        while let Some(plan) = attempt(grid)? {
            if plan.bound.inside <= epsilon {
                met = Some((grid, plan));
                break;
            }
            short = grid;
            grid = if grid < 4 { grid + 1 } else { grid * 3 / 2 };
        }
        // Too many ids: the finest grid that is left may do.
        if met.is_none() {
            let finest = (short..grid).rev().find(|&g| self.ids(f, g as u64).is_some_and(|ids| ids <= self.most_ids));
            if let Some(finest) = finest.filter(|&finest| finest > short)
                && let Some(plan) = attempt(finest)?
                && plan.bound.inside <= epsilon
            {
                met = Some((finest, plan));
            }
        }
        let Some((mut enough, mut best)) = met else {
            let needed =
                needed(&tried, epsilon).map(|grid| Needed { grid: vec![grid; f.dim()], ids: self.ids(f, grid) });
            return Ok(Reached::Short { tried, needed });
        };
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            let plan = attempt(middle)?.expect("fewer ids than before");
            if plan.bound.inside <= epsilon {
                (enough, best) = (middle, plan);
            } else {
                short = middle;
            }
        }
        Ok(Reached::Met(Box::new(self.put_together(f, best))))
    }

    /// The ids of a grid; `None` beyond 2^63.
    pub fn ids(&self, f: &dyn Function, grid: u64) -> Option<u64> {
        let token_cells = grid.checked_pow(f.dim() as u32)?;
        Cells { token_cells, length: f.length(), symmetric: f.is_equivariant() }.count()
    }
}

fn check(epsilon: f64) -> Result<()> {
    if epsilon > 0.0 && epsilon.is_finite() {
        return Ok(());
    }
    Err(Error::request(format!("--epsilon {epsilon}"), "use a finite number above 0"))
}

impl Plan {
    fn tried(&self) -> Tried {
        Tried { grid: parts(&self.grid), ids: self.cells.count().unwrap_or(u64::MAX), bound: self.bound.inside }
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
