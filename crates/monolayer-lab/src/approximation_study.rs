//! Proposition 1 in numbers: error, ids, hidden units and parameters against the grid, and the open question of section 6.

mod quantizerless;

pub use quantizerless::{Quantizerless, without_quantizer};

use monolayer::Result;
use monolayer::approximate::cells::Grid;
use monolayer::approximate::function::Function;
use monolayer::approximate::measured_distance::{Evaluate, Measured, distance};
use monolayer::approximate::{Approximation, Approximator, ModelSize};
use monolayer::arithmetic::Interval;

/// One grid: our construction beside the plain one, which has f of a cell's center as the level and a ramp between any two ids.
#[derive(Debug, Clone)]
pub struct Row {
    /// Parts of each coordinate.
    pub grid: Vec<usize>,
    /// What our model takes.
    pub size: ModelSize,
    /// What the plain construction takes on the same grid.
    pub plain: ModelSize,
    /// The certified bound on d_p.
    pub bound: f64,
    /// Whether that holds in double precision; else in real arithmetic.
    pub floats: bool,
    /// d_p of our model, measured.
    pub measured: Measured,
    /// d_p of the plain construction without its ramps, measured on the same points.
    pub plain_measured: Measured,
}

impl Row {
    /// Measures an approximation of f with about `points` sequences.
    pub fn new(f: &dyn Function, g: &Approximation, p: f64, points: usize) -> Self {
        let measure = |g: &Evaluate| distance(&|x, y| f.values(x, y), g, f.dim() * f.length(), p, points, 1);
        Self {
            grid: g.grid.parts(),
            size: g.size(),
            plain: g.plain(),
            bound: g.certified(),
            floats: g.floats,
            measured: measure(&|x, y| g.evaluate(x, y)),
            plain_measured: measure(&|x, y| f.values(&centers(&g.grid, x), y)),
        }
    }
}

/// A sequence with every token in the center of its cell.
fn centers(grid: &Grid, sequence: &[f64]) -> Vec<f64> {
    let tokens = sequence.chunks_exact(grid.edges.len());
    tokens.flat_map(|token| grid.token_box(grid.token_cell(token))).map(Interval::center).collect()
}

/// The error against the grid, for grids of equal parts.
pub fn series(approximator: &Approximator, f: &dyn Function, grids: &[usize], points: usize) -> Result<Vec<Row>> {
    let row = |&grid: &usize| Ok(Row::new(f, &approximator.compile(f, grid)?, approximator.exponent(), points));
    grids.iter().map(row).collect()
}

/// The slope of log(error) over log(grid), by least squares: about -1 for Lipschitz functions.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(x.ln(), y.ln())).sum::<f64>() / count;
    let (x, y) = (mean(&|x, _| x), mean(&|_, y| y));
    mean(&|a, b| (a - x) * (b - y)) / mean(&|a, _| (a - x) * (a - x))
}

/// The variance of the outputs over the cube, mean of all entries, from about `points` sequences.
pub fn variance(f: &dyn Function, points: usize) -> f64 {
    let entries = f.dim() * f.length();
    let zero = |_: &[f64], y: &mut [f64]| y.fill(0.0);
    let square = distance(&|x, y| f.values(x, y), &zero, entries, 2.0, points, 2).distance.powi(2);
    // E f = (E (f + 1)^2 - E f^2 - 1) / 2.
    let lifted = |x: &[f64], y: &mut [f64]| {
        f.values(x, y);
        y.iter_mut().for_each(|y| *y += 1.0);
    };
    let lifted = distance(&lifted, &zero, entries, 2.0, points, 2).distance.powi(2);
    let (square, lifted) = (square / entries as f64, lifted / entries as f64);
    let mean = (lifted - square - 1.0) / 2.0;
    square - mean * mean
}
