//! The search for scalars that need few hidden units: random ones, then the best of them improved step by step, a step that costs
//! units being taken now and then.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng};

use super::architecture::Gates;
use super::context_table::{ContextTable, UnitCount};
use super::scalars::Scalars;
use crate::arithmetic::parallel;

/// Chains of steps that run side by side; the same on any number of threads.
const CHAINS: usize = 8;

/// The best that was found.
#[derive(Debug, Clone)]
pub struct FoundScalars {
    /// The scalars.
    pub scalars: Scalars,
    /// Which tokens share their units.
    pub gates: Gates,
    /// The units they need.
    pub count: UnitCount,
}

/// How long to search.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Random scalars to start from.
    pub random: usize,
    /// Steps from the best of them.
    pub steps: usize,
}

impl Budget {
    /// As many as asked for, fewer where a table has many contexts.
    pub fn new(table: &ContextTable, random: usize, steps: usize) -> Self {
        /// Contexts that are evaluated in all.
        const MOST: usize = 40_000_000;
        let most = (MOST / table.contexts().max(1)).max(CHAINS);
        Self { random: random.min(most / 4), steps: steps.min(most) }
    }

    /// How many scalars are tried, nearly.
    pub fn total(self) -> usize {
        self.random + self.steps
    }
}

/// Searches a table; `allowed` are the gates that may be chosen.
pub fn search(
    table: &ContextTable,
    allowed: &[Gates],
    budget: Budget,
    seed: u64,
    on_tried: &(dyn Fn(usize) + Sync),
) -> FoundScalars {
    let chains = parallel::map(CHAINS, |chain| Chain::new(table, allowed, seed, chain).run(budget, on_tried));
    chains.into_iter().reduce(|best, next| if next.count.better(&best.count) { next } else { best }).expect("a chain")
}

struct Chain<'a> {
    table: &'a ContextTable,
    allowed: &'a [Gates],
    rng: ChaCha8Rng,
}

impl<'a> Chain<'a> {
    fn new(table: &'a ContextTable, allowed: &'a [Gates], seed: u64, chain: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(chain as u64 + 1);
        Self { table, allowed, rng }
    }

    fn run(mut self, budget: Budget, on_tried: &(dyn Fn(usize) + Sync)) -> FoundScalars {
        let mut best: Option<FoundScalars> = None;
        for _ in 0..budget.random.div_ceil(CHAINS).max(1) {
            let scalars = Scalars::random(self.table.shape(), &mut self.rng);
            let found = evaluate(self.table, self.allowed, scalars);
            if best.as_ref().is_none_or(|best| found.count.better(&best.count)) {
                best = Some(found);
            }
            on_tried(1);
        }
        let mut best = best.expect("one at least");
        let mut current = best.clone();
        let steps = budget.steps / CHAINS;
        for i in 0..steps {
            let scalars = current.scalars.changed(self.table.shape().2, &mut self.rng);
            let found = evaluate(self.table, &[current.gates], scalars);
            // How many more units a step may cost, about: less and less.
            let heat = 0.01 * current.count.cost() * (1.0 - 1.2 * i as f64 / steps as f64).max(0.0);
            let allowance = heat * -self.rng.random_range(f64::MIN_POSITIVE..1.0).ln();
            if found.count.cost() <= current.count.cost() + allowance {
                current = found;
                if current.count.better(&best.count) {
                    best = current.clone();
                }
            }
            on_tried(1);
        }
        best
    }
}

/// The best gates for some scalars; among equals the simplest.
fn evaluate(table: &ContextTable, allowed: &[Gates], scalars: Scalars) -> FoundScalars {
    let ids = table.ids(&scalars);
    let counts = allowed.iter().map(|&gates| (gates, table.units(&ids, gates)));
    let (gates, count) =
        counts.reduce(|best, next| if next.1.cost() < best.1.cost() { next } else { best }).expect("some gates");
    FoundScalars { scalars, gates, count }
}
