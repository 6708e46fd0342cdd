//! Cells of the cube as an output token sees them, up to symmetry, and their levels (Proposition 1).
//!
//! A grid cuts the cube `[0, 1]^d` of tokens into m cells. For an equivariant function a cell of sequences is the cell
//! of the output token with the multiset of the cells of the other tokens: M = m C(m + n - 2, n - 1) of them.

use crate::arithmetic::Interval;
use crate::error::Result;
use crate::function::Function;

/// Cell edges per coordinate, from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// For each coordinate, increasing edges, the first 0 and the last 1.
    pub edges: Vec<Vec<f64>>,
}

impl Grid {
    /// The same number of equal parts in each of `dim` coordinates.
    pub fn uniform(dim: usize, parts: usize) -> Self {
        let edges: Vec<f64> = (0..=parts).map(|c| c as f64 / parts as f64).collect();
        Self { edges: vec![edges; dim] }
    }

    /// Cells of a token: m.
    pub fn token_cells(&self) -> u64 {
        todo!()
    }

    /// The box of a token's cell: one interval per coordinate. Coordinate 0 varies slowest.
    pub fn token_box(&self, cell: u32) -> Vec<Interval> {
        todo!("{cell}")
    }

    /// The cell of a token in the cube; a token on an edge belongs to the cell above it.
    pub fn token_cell(&self, token: &[f64]) -> u32 {
        todo!("{token:?}")
    }
}

/// All cells of sequences of n tokens over m token cells, numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cells {
    /// Cells of a token: m.
    pub token_cells: u64,
    /// Tokens of a sequence: n.
    pub length: usize,
    /// Up to permutations of the other tokens, for equivariant functions; otherwise place by place.
    pub symmetric: bool,
}

/// A cell of sequences as one of its tokens sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The place of the output token, from 0; always 0 up to symmetry.
    pub token: usize,
    /// The cells of all n tokens in order of place; up to symmetry, the output token's and then those of the others, ascending.
    pub tokens: Vec<u32>,
}

impl Cells {
    /// How many: M = m C(m + n - 2, n - 1) up to symmetry, n m^n otherwise; `None` beyond 2^63.
    pub fn count(&self) -> Option<u64> {
        todo!()
    }

    /// Cell number `index`.
    pub fn cell(&self, index: u64) -> Cell {
        todo!("{index}")
    }

    /// The number of a cell.
    pub fn index(&self, cell: &Cell) -> u64 {
        todo!("{cell:?}")
    }

    /// How many ordered arrangements of tokens a cell stands for: over all cells and their arrangements, boxes fill the
    /// cube once for each place of the output token.
    pub fn multiplicity(&self, cell: &Cell) -> u64 {
        todo!("{cell:?}")
    }
}

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
}

/// Levels for all cells of a grid; `effort` is the number of evaluations in a cell, at most.
pub fn levels(f: &dyn Function, grid: &Grid, p: f64, effort: usize) -> Result<Levels> {
    todo!("{} {grid:?} {p} {effort}", f.dim())
}
