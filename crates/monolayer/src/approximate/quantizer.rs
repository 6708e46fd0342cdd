//! F1 (58), the quantizer: a token of a cell goes to the code of the cell, and a token outside the cube far away.
//!
//! The printed quantizer cannot be built: (59) has wrong signs and (60) sums over tokens inside a map of single tokens. Here
//! every coordinate has a ramp at each inner edge, whose rise goes to coordinate 1 of the output, and one hinge at each end
//! of the cube that lifts coordinate 1 beyond all codes; the skip is taken out by `relu(x) - relu(-x)`. Attention then
//! carries the lift of one token to all ids of its sequence.

use super::codes::CellCodes;
use super::layout::{Layout, SMALLEST_QUANTUM};
use crate::approximate::cells::Grid;
use crate::arithmetic::float_model::{DOUBLE, Up};
use crate::arithmetic::matrix::Matrix;
use crate::paper::feed_forward::FeedForward;

/// The quantizer, measured in quanta of [`Layout`].
#[derive(Debug, Clone, PartialEq)]
pub struct Quantizer {
    /// The width of a ramp.
    pub ramp: f64,
    /// For each coordinate, its ramps from left to right.
    steps: Vec<Vec<CodeRamp>>,
    /// For each coordinate, where the cube ends.
    end: Vec<f64>,
    /// The output between the ramps that face left and those that face right.
    base: f64,
    /// How steeply the output rises outside.
    outside: f64,
}

/// A ramp: the output rises by `rise` between `from` and `from + ramp`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CodeRamp {
    from: f64,
    rise: f64,
    /// Whether its hinges are silent to the left of it.
    faces_right: bool,
}

impl Quantizer {
    /// The quantizer for a grid with edges on multiples of half a ramp.
    pub fn new(grid: &Grid, codes: &CellCodes, layout: &Layout, ramp: f64) -> Self {
        let scale = layout.unit * layout.own;
        let mut base = layout.offset;
        let mut steps = Vec::new();
        let mut end = Vec::new();
        for (edges, places) in grid.edges.iter().zip(&codes.parts) {
            // Place k has the cube at 2 k.
            let inner = |k: usize| edges[1..edges.len() - 1].iter().map(move |e| e + 2.0 * k as f64 - ramp / 2.0);
            let mut at: Vec<f64> = Vec::new();
            for k in 0..places.len() {
                if k > 0 {
                    at.push(2.0 * k as f64 - 0.5);
                }
                at.extend(inner(k));
            }
            let code: Vec<f64> = places.iter().flatten().map(|&c| c as f64).collect();
            let middle = at.len() / 2;
            base += scale * code[middle];
            let step = |(i, &from): (usize, &f64)| CodeRamp {
                from,
                rise: scale * (code[i + 1] - code[i]),
                faces_right: i >= middle,
            };
            steps.push(at.iter().enumerate().map(step).collect());
            end.push(2.0 * places.len() as f64 - 1.0);
        }
        // A token one ramp outside lifts every id of its sequence beyond the last: by a U-th of this, at least.
        let outside = (4.0 * layout.own * layout.last()).log2().ceil().exp2() / ramp;
        Self { ramp, steps, end, base, outside }
    }

    /// The block (3), for a quantum of the given size.
    pub fn block(&self, quantum: f64) -> FeedForward<f64> {
        let d = self.steps.len();
        let mut units: Vec<(usize, f64, f64, Vec<f64>)> = Vec::new();
        let first = |x: f64| {
            let mut column = vec![0.0; d];
            column[0] = x;
            column
        };
        for (t, steps) in self.steps.iter().enumerate() {
            let outside = self.outside * quantum;
            let skip = |sign: f64, lift: f64| {
                let mut column = first(lift);
                column[t] += sign;
                column
            };
            units.push((t, 1.0, 0.0, skip(-1.0, 0.0)));
            units.push((t, -1.0, 0.0, skip(1.0, outside)));
            units.push((t, 1.0, -self.end[t], first(outside)));
            for step in steps {
                let slope = step.rise / self.ramp * quantum;
                let (side, near, far) = step.hinges(self.ramp);
                units.push((t, side, -side * near, first(side * slope)));
                units.push((t, side, -side * far, first(-side * slope)));
            }
        }
        let q = units.len();
        let mut base = vec![0.0; d];
        base[0] = self.base * quantum;
        FeedForward {
            w1: Matrix::from_fn(q, d, |j, t| if units[j].0 == t { units[j].1 } else { 0.0 }),
            b1: units.iter().map(|unit| unit.2).collect(),
            w2: Matrix::from_fn(d, q, |t, j| units[j].3[t]),
            b2: base,
        }
    }

    /// How many units.
    pub fn units(&self) -> usize {
        self.steps.iter().map(|steps| 3 + 2 * steps.len()).sum()
    }

    /// How far the computed output can be from the true one on a plateau, in quanta, in any order of summation.
    ///
    /// A unit's input rounds once, whatever its row, and its product with W2 once more; then each sum rounds. A sum that
    /// contains the base is at most `top` plus P, the sum of the absolute values of all other terms; there are as many such
    /// sums as terms, and as many again of P at most without the base.
    pub fn rounding(&self, top: Up) -> Up {
        // Two for the rounding of inputs and products, three for the skip and what takes it out.
        let mut terms = 5;
        let mut size = Up::size(2.0 * self.end[0] / SMALLEST_QUANTUM);
        for (steps, &end) in self.steps.iter().zip(&self.end) {
            // The units active at an end of the cube are most, and largest.
            let active = |right: bool| {
                let facing = steps.iter().filter(move |step| step.faces_right == right);
                let at = if right { end } else { 0.0 };
                let distance = move |step: &CodeRamp| Up::new((at - step.from).abs().next_up());
                let reach = |step: &CodeRamp| (Up::size(2.0 * step.rise) * distance(step)).over(self.ramp);
                (2 * facing.clone().count(), facing.map(reach).sum::<Up>())
            };
            let (left, right) = (active(false), active(true));
            terms += left.0.max(right.0);
            size = size + left.1.max(right.1);
        }
        DOUBLE.gamma(terms) * (top + size + size)
    }
}

impl CodeRamp {
    /// Which way its hinges face, where the near one stands, and the far one.
    fn hinges(&self, ramp: f64) -> (f64, f64, f64) {
        if self.faces_right { (1.0, self.from, self.from + ramp) } else { (-1.0, self.from + ramp, self.from) }
    }
}
