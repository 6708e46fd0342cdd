//! Cells of the cube as an output token sees them, up to symmetry (Proposition 1).
//!
//! A grid cuts the cube `[0, 1]^d` of tokens into m cells. For an equivariant function a cell of sequences is the cell
//! of the output token with the multiset of the cells of the other tokens: M = m C(m + n - 2, n - 1) of them.

mod adapt;
mod box_moments;
mod cell_bound;
mod grid_search;
mod levels;

pub use adapt::{Adapted, Parts};
pub use grid_search::{GridSearch, search_grid};
pub use levels::{Levels, OnCells, levels};

use crate::arithmetic::Interval;

/// Cell edges per coordinate, from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// For each coordinate, increasing edges, the first 0 and the last 1.
    pub edges: Vec<Vec<f64>>,
}

/// Edges are multiples of 2^-31, so that differences with numbers of the same kind are exact.
fn rounded(edge: f64) -> f64 {
    const UNITS: f64 = (1_u64 << 31) as f64;
    (edge * UNITS).round() / UNITS
}

impl Grid {
    /// The parts of each coordinate.
    pub fn parts(&self) -> Vec<usize> {
        self.edges.iter().map(|edges| edges.len() - 1).collect()
    }

    /// The same number of equal parts in each of `dim` coordinates, their edges rounded to multiples of 2^-31.
    pub fn uniform(dim: usize, parts: usize) -> Self {
        let edges: Vec<f64> = (0..=parts).map(|c| rounded(c as f64 / parts as f64)).collect();
        Self { edges: vec![edges; dim] }
    }

    /// Cells of a token: m.
    pub fn token_cells(&self) -> u64 {
        self.edges.iter().map(|edges| edges.len() as u64 - 1).fold(1, u64::saturating_mul)
    }

    /// The box of a token's cell: one interval per coordinate. Coordinate 0 varies slowest.
    pub fn token_box(&self, cell: u32) -> Vec<Interval> {
        let mut rest = cell as usize;
        let mut sides: Vec<Interval> = Vec::with_capacity(self.edges.len());
        for edges in self.edges.iter().rev() {
            let parts = edges.len() - 1;
            sides.push(Interval::new(edges[rest % parts], edges[rest % parts + 1]));
            rest /= parts;
        }
        sides.reverse();
        sides
    }

    /// The cell of a token in the cube; a token on an edge belongs to the cell above it.
    pub fn token_cell(&self, token: &[f64]) -> u32 {
        self.edges.iter().zip(token).fold(0, |cell, (edges, x)| {
            let parts = edges.len() - 1;
            let part = edges.partition_point(|edge| edge <= x).clamp(1, parts) - 1;
            cell * parts as u32 + part as u32
        })
    }

    /// The box of a cell of sequences, row-major.
    pub fn sequence_box(&self, cell: &Cell) -> Vec<Interval> {
        cell.tokens.iter().flat_map(|token| self.token_box(*token)).collect()
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

/// The number of multisets of `size` out of `kinds`: C(kinds + size - 1, size); `None` beyond 2^63.
fn multisets(kinds: u64, size: u64) -> Option<u64> {
    let count =
        (0..size).try_fold(1_u128, |count, i| Some(count.checked_mul(u128::from(kinds + i))? / u128::from(i + 1)))?;
    u64::try_from(count).ok().filter(|count| *count < 1 << 63)
}

impl Cells {
    /// How many: M = m C(m + n - 2, n - 1) up to symmetry, n m^n otherwise; `None` beyond 2^63.
    pub fn count(&self) -> Option<u64> {
        let (m, n) = (self.token_cells, self.length as u64);
        let count = if self.symmetric {
            multisets(m, n - 1)?.checked_mul(m)
        } else {
            m.checked_pow(self.length as u32)?.checked_mul(n)
        };
        count.filter(|count| *count < 1 << 63)
    }

    /// Cell number `index`; there must be fewer than 2^63.
    pub fn cell(&self, index: u64) -> Cell {
        let m = self.token_cells;
        let others = self.length as u64 - 1;
        let count = |kinds, size| multisets(kinds, size).expect("fewer than 2^63 cells");
        if !self.symmetric {
            let (token, mut rest) = (index / m.pow(self.length as u32), index);
            let mut tokens = vec![0; self.length];
            for cell in tokens.iter_mut().rev() {
                *cell = (rest % m) as u32;
                rest /= m;
            }
            return Cell { token: token as usize, tokens };
        }
        let all = count(m, others);
        let (mut tokens, mut rest, mut least) = (vec![(index / all) as u32], index % all, 0);
        for left in (0..others).rev() {
            // Multisets of `left + 1` cells from `c` on come before those that start later: the last start not after `rest`.
            let before = |c: u64| count(m - least, left + 1) - count(m - c, left + 1);
            let (mut below, mut above) = (least, m);
            while above - below > 1 {
                let middle = u64::midpoint(below, above);
                if before(middle) <= rest { below = middle } else { above = middle }
            }
            rest -= before(below);
            least = below;
            tokens.push(least as u32);
        }
        Cell { token: 0, tokens }
    }

    /// The number of a cell.
    pub fn index(&self, cell: &Cell) -> u64 {
        let m = self.token_cells;
        let count = |kinds, size| multisets(kinds, size).expect("fewer than 2^63 cells");
        if !self.symmetric {
            return cell.tokens.iter().fold(cell.token as u64, |index, token| index * m + u64::from(*token));
        }
        let others = self.length as u64 - 1;
        let (mut index, mut least) = (u64::from(cell.tokens[0]) * count(m, others), 0);
        for (left, token) in (0..others).rev().zip(&cell.tokens[1..]) {
            let start = u64::from(*token);
            index += count(m - least, left + 1) - count(m - start, left + 1);
            least = start;
        }
        index
    }

    /// How many ordered arrangements of tokens a cell stands for: over all cells and their arrangements, boxes fill the
    /// cube once for each place of the output token.
    pub fn multiplicity(&self, cell: &Cell) -> f64 {
        if !self.symmetric {
            return 1.0;
        }
        // (n - 1)! over the factorials of how often each cell occurs.
        let (mut arrangements, mut run) = (1.0, 0);
        for i in 1..cell.tokens.len() {
            run = if i > 1 && cell.tokens[i] == cell.tokens[i - 1] { run + 1 } else { 1 };
            arrangements *= i as f64 / f64::from(run);
        }
        arrangements.round()
    }
}
