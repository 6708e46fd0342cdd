//! Codes of cells: the levels of the quantizer (58), which are free, chosen so that ids are far apart.
//!
//! Each part of each coordinate has a code, and a cell of a token has the sum A of the codes of its parts: that is all one
//! hidden layer can give it. The id of an output token is `U A + n mean(A_i)`, with the mean that softmax takes over the
//! sequence; where softmax is almost even this is `U A + S` for the sum S of all codes.

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

use super::distinct_sums::distinct_sums;
use crate::approximate::cells::{Cell, Cells, Grid};
use crate::arithmetic::parallel;

/// Whole numbers for the parts of every coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct CellCodes {
    /// For each coordinate and each place (one, for equivariant functions), the codes of the parts.
    pub parts: Vec<Vec<Vec<u64>>>,
    /// The largest code of a cell: R.
    pub largest: u64,
    /// What the token's own code counts more, a power of two: U.
    pub own: u64,
    /// How uneven softmax is: scores differ by at most this. 0 stands for as little as needed.
    pub contrast: f64,
    /// The distance of two ids, at least.
    pub gap: f64,
}

/// Codes where the sum tells all: ids are whole numbers, and different.
pub fn exact_codes(grid: &Grid, cells: &Cells) -> Option<CellCodes> {
    if cells.symmetric { equivariant(grid, cells) } else { by_place(grid, cells) }
}

/// One coordinate, or one other token: the codes of tokens are any set with distinct sums of n - 1.
fn equivariant(grid: &Grid, cells: &Cells) -> Option<CellCodes> {
    let (d, others) = (grid.edges.len(), cells.length - 1);
    if d > 1 && others > 1 && cells.token_cells > 1 {
        return None;
    }
    let parts: Vec<Vec<Vec<u64>>> = if d == 1 {
        vec![vec![distinct_sums(cells.token_cells as usize, others)?]]
    } else {
        mixed_radix(grid).into_iter().map(|codes| vec![codes]).collect()
    };
    let largest = parts.iter().map(|places| places[0].last().copied().unwrap_or(0)).sum::<u64>();
    // The sum of the others must not reach the next multiple of U + 1.
    let own = (others as u64 * largest + 1).max(16 * cells.length as u64).checked_next_power_of_two()?;
    Some(CellCodes { parts, largest, own, contrast: 0.0, gap: 1.0 })
}

/// The number of a cell, as a sum over coordinates; coordinate 0 counts most.
fn mixed_radix(grid: &Grid) -> Vec<Vec<u64>> {
    let mut stride = grid.token_cells();
    let codes = |edges: &Vec<f64>| {
        let parts = edges.len() as u64 - 1;
        stride /= parts;
        (0..parts).map(|c| c * stride).collect()
    };
    grid.edges.iter().map(codes).collect()
}

/// With positions: cell a at place k has the code `a r^k + k r^n`, r = 2 m. The sum of all is the sequence as a number to
/// the base r; the own code, once more, doubles a digit that has room for it, and tells the place.
fn by_place(grid: &Grid, cells: &Cells) -> Option<CellCodes> {
    let (m, n) = (cells.token_cells, cells.length as u64);
    let base = 2 * m;
    let whole = base.checked_pow(cells.length as u32).filter(|whole| whole.checked_mul(4 * n).is_some())?;
    let mut parts: Vec<Vec<Vec<u64>>> = Vec::new();
    for (t, codes) in mixed_radix(grid).iter().enumerate() {
        let of_place = |k: u64| {
            let first = if t == 0 { k * whole } else { 0 };
            codes.iter().map(|c| c * base.pow(k as u32) + first).collect()
        };
        parts.push((0..n).map(of_place).collect());
    }
    let largest = parts.iter().map(|places| places[places.len() - 1].last().copied().unwrap_or(0)).sum();
    Some(CellCodes { parts, largest, own: 1, contrast: 0.0, gap: 1.0 })
}

/// Codes where sums are not enough (several coordinates and several other tokens: sums do not see which part of one
/// coordinate goes with which of another), so softmax has to be uneven: the best of some.
///
/// The first candidate are plain numbers, with a contrast so small that to first order the id is still the sum S, and the
/// variance, which softmax adds to second order, orders the contexts of one sum: two other tokens are known by their sum and
/// the sum of their squares. The others are at random.
pub fn searched_codes(
    grid: &Grid,
    cells: &Cells,
    seed: u64,
    candidates: usize,
    on_progress: &dyn Fn(usize),
) -> CellCodes {
    /// Codes are this much finer than the parts they count.
    const FINE: f64 = 4096.0;
    let (m, n) = (cells.token_cells as f64, cells.length as f64);
    let attempt = |number: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number as u64 + 1);
        let jitter = if number == 0 { 0.0 } else { [0.0, 0.2, 0.45][rng.random_range(0..3)] };
        let mut code = |c: u64| ((c as f64 + jitter * rng.random_range(-1.0..1.0)) * FINE).max(0.0) as u64;
        let parts: Vec<Vec<Vec<u64>>> =
            mixed_radix(grid).iter().map(|codes| vec![codes.iter().map(|&c| code(c)).collect()]).collect();
        let largest = parts.iter().map(|places: &Vec<Vec<u64>>| places[0].iter().max().copied().unwrap_or(0)).sum();
        // The variances of a sequence add to n times the mean at most contrast n m / 4, and 1 leads to the next sum.
        let even = 3.0 / (n * m);
        let separate = (n * m + 1.0).log2().ceil() as u32;
        let (contrast, own) = if number == 0 {
            (even, separate)
        } else {
            (even * (4.0 / even).powf(rng.random_range(0.0..1.0)), rng.random_range(0..=separate))
        };
        let mut codes = CellCodes { parts, largest, own: 1 << own, contrast, gap: 0.0 };
        codes.gap = codes.smallest_gap(cells);
        codes
    };
    let relative = |codes: &CellCodes| codes.gap / (codes.own * codes.largest) as f64;
    let mut best: Option<CellCodes> = None;
    // In order, so that the number of threads does not matter.
    for start in (0..candidates.max(1)).step_by(8) {
        let round = (candidates.max(1) - start).min(8);
        for codes in parallel::map(round, |i| attempt(start + i)) {
            if best.as_ref().is_none_or(|best| relative(&codes) > relative(best)) {
                best = Some(codes);
            }
        }
        on_progress(round);
    }
    best.expect("at least one candidate")
}

impl CellCodes {
    /// The code of a token's cell, at a place where that matters.
    pub fn of(&self, cell: u32, place: usize) -> u64 {
        let mut rest = cell as usize;
        let mut code = 0;
        for places in self.parts.iter().rev() {
            let parts = &places[place.min(places.len() - 1)];
            code += parts[rest % parts.len()];
            rest /= parts.len();
        }
        code
    }

    /// The codes of a cell of sequences, and the place of its output token among them.
    pub fn of_cell(&self, cell: &Cell) -> (Vec<u64>, usize) {
        (cell.tokens.iter().enumerate().map(|(place, &token)| self.of(token, place)).collect(), cell.token)
    }

    /// The id of a cell, to double precision; a whole number where softmax is even.
    pub fn id(&self, cell: &Cell) -> f64 {
        let (codes, own) = self.of_cell(cell);
        let sum = if self.contrast == 0.0 {
            codes.iter().sum::<u64>() as f64
        } else {
            let top = self.largest as f64;
            let weight = |a: &u64| (self.contrast * (*a as f64 - top) / top).exp();
            let total: f64 = codes.iter().map(weight).sum();
            codes.len() as f64 * codes.iter().map(|a| weight(a) * *a as f64).sum::<f64>() / total
        };
        (self.own * codes[own]) as f64 + sum
    }

    fn smallest_gap(&self, cells: &Cells) -> f64 {
        let mut ids: Vec<f64> = (0..cells.count().unwrap_or(0)).map(|i| self.id(&cells.cell(i))).collect();
        ids.sort_unstable_by(f64::total_cmp);
        ids.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min)
    }
}
