//! The ids of all cells along the line, in order.

use rayon::prelude::*;

use super::codes::CellCodes;
use super::layout::Layout;
use crate::approximate::cells::{Cell, Cells};
use crate::arithmetic::Interval;
use crate::arithmetic::parallel;

/// Ids in increasing order, in quanta after [`Layout::first`].
#[derive(Debug, Clone, PartialEq)]
pub struct CellIds {
    /// The cells in the order of their ids.
    pub order: Vec<u32>,
    /// The ids.
    pub at: Vec<f64>,
    /// True ids are this near, at most.
    pub radius: f64,
    /// The distance of two neighbors, at least; positive only if all ids are certainly different.
    pub gap: f64,
}

impl CellIds {
    /// The ids of all cells.
    pub fn new(cells: &Cells, codes: &CellCodes, layout: &Layout) -> Self {
        let count = cells.count().expect("cells that fit in memory") as usize;
        let id = |i: usize| {
            let cell = cells.cell(i as u64);
            let (at, radius) = if codes.contrast == 0.0 {
                (layout.unit * codes.id(&cell), layout.unit * layout.bend())
            } else {
                let id = enclosed_id(&cell, codes, layout);
                (id.center(), id.width())
            };
            (at, radius, i as u32)
        };
        let mut ids: Vec<(f64, f64, u32)> = parallel::map(count, id);
        ids.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        let radius = ids.iter().map(|id| id.1).fold(0.0, f64::max);
        let gap = ids.windows(2).map(|w| w[1].0 - w[0].0).fold(f64::INFINITY, f64::min) - 2.0 * radius;
        // Without neighbors, the gap is to the end of the ids.
        let gap = gap.min(layout.unit * codes.gap);
        Self { order: ids.iter().map(|id| id.2).collect(), at: ids.into_iter().map(|id| id.0).collect(), radius, gap }
    }
}

/// What attention gives a cell: `z_x + (n / U) sum_i w_i z_i` less the offset, with the weights of softmax.
fn enclosed_id(cell: &Cell, codes: &CellCodes, layout: &Layout) -> Interval {
    let (codes, own) = codes.of_cell(cell);
    let scale = layout.unit * layout.own;
    // Whole numbers below 2^53.
    let z: Vec<f64> = codes.iter().map(|&a| scale * a as f64).collect();
    let query = Interval::point(layout.kappa * layout.key)
        * Interval::point(layout.key)
        * (Interval::point(layout.offset) + Interval::point(z[own]));
    let top = z.iter().copied().fold(0.0, f64::max);
    let weights: Vec<Interval> = z.iter().map(|z| (query * Interval::point(z - top)).exp()).collect();
    let zero = Interval::point(0.0);
    let total = weights.iter().fold(zero, |sum, w| sum + w);
    let mixed = weights.iter().zip(&z).fold(zero, |sum, (w, &z)| sum + w * &Interval::point(z));
    Interval::point(z[own]) + mixed / total * Interval::point(layout.length as f64 / layout.own)
}
