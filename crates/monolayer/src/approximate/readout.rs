//! F2, the read-out: around each id the output is the level of its cell, with ramps between ids where levels differ.
//!
//! Levels are whole multiples of `2^-bits`, ramps are `2^k` quanta wide, and a quantum is `2^-(bits + k)`. So the bend of a ramp is a
//! whole number, a hinge's value is a whole number of quanta, and all terms of the output are whole numbers of quanta: while
//! they add up to less than 2^53 quanta nothing is rounded, in any order of summation. Hinges face left, so that beyond
//! the last id, where sequences outside the cube go, all are silent and the output is 0, exactly.

use super::ids::CellIds;
use super::layout::{FIRST, Layout, RAMP, ROOM, SMALLEST_QUANTUM};
use crate::arithmetic::float_model::{DOUBLE, Up};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::paper::feed_forward::FeedForward;

/// What the terms of an output may add up to, in quanta, beside an id.
const EXACT: f64 = FIRST - 2.0 * ROOM;
/// Bits after the point of levels where sums are rounded.
const ROUNDED_BITS: i32 = 24;

/// The read-out.
#[derive(Debug, Clone)]
pub struct CellReadout {
    /// Output coordinates.
    d: usize,
    /// Where ramps start, in quanta, increasing.
    from: Vec<f64>,
    /// What the output falls by from the left to the right of each ramp, in steps of levels, row-major `[ramps, d]`.
    falls: Vec<f64>,
    /// The width of a ramp in quanta.
    pub width: f64,
    /// Levels are multiples of `2^-bits`.
    pub bits: i32,
    /// The levels of cells as they are, row-major `[M, d]`, in the order of cells.
    pub levels: Vec<f64>,
    /// How far an output can be from the level, in any order of summation; 0 where sums are exact.
    pub rounding: f64,
}

/// Why there is no read-out.
#[derive(Debug, Clone, PartialEq)]
pub struct TooClose {
    /// The distance of neighboring ids, less what is not known of them, in quanta.
    pub gap: f64,
    /// What a computed id can be off, in quanta.
    pub error: f64,
}

impl CellReadout {
    /// The read-out of the given levels; computed ids are within `error` quanta of the true ones.
    pub fn new(ids: &CellIds, layout: &Layout, error: f64, levels: &[f64], d: usize) -> Result<Self, TooClose> {
        let width = (RAMP * ids.gap).log2().floor().exp2();
        // A ramp starts at a whole number.
        if !(width >= 1.0 && 2.0 * error + width + 2.0 <= ids.gap) {
            return Err(TooClose { gap: ids.gap, error });
        }
        let first = layout.first();
        let middle = |j: usize| match ids.at.get(j + 1) {
            Some(next) => 0.5 * ids.at[j] + 0.5 * next,
            None => ids.at[j] + ids.radius + 0.5 * ids.gap,
        };
        let starts: Vec<f64> = parallel::map(ids.at.len(), |j| (first + middle(j) - 0.5 * width).round());
        let lowest = first - error - 1.0;
        let all = All { ids, starts: &starts, width, lowest, d };
        let exact = all.exact(levels);
        let rounded = all.rounded(levels);
        let error = |readout: &Self| readout.rounding + 0.5 * (-f64::from(readout.bits)).exp2();
        Ok(match exact {
            Some(exact) if error(&exact) <= error(&rounded) => exact,
            _ => rounded,
        })
    }

    /// The size of a quantum.
    pub fn quantum(&self) -> f64 {
        (-f64::from(self.bits)).exp2() / self.width
    }

    /// Hidden units.
    pub fn units(&self) -> usize {
        1 + 2 * self.from.len()
    }

    /// The block (3).
    pub fn block(&self) -> FeedForward<f64> {
        let (d, q, quantum) = (self.d, self.units(), self.quantum());
        let mut block = FeedForward {
            w1: Matrix::new(q, d, vec![0.0; q * d]),
            b1: vec![0.0; q],
            w2: Matrix::new(d, q, vec![0.0; q * d]),
            b2: vec![0.0; d],
        };
        // The id takes itself out of the skip; other coordinates are 0.
        block.w1.data[0] = 1.0;
        block.w2.data[0] = -1.0;
        for (j, from) in self.from.iter().enumerate() {
            for (unit, at, sign) in [(1 + 2 * j, from + self.width, 1.0), (2 + 2 * j, *from, -1.0)] {
                block.w1.data[unit * d] = -1.0;
                block.b1[unit] = at * quantum;
                for i in 0..d {
                    block.w2.data[i * q + unit] = sign * self.falls[j * d + i];
                }
            }
        }
        block
    }

    /// For each output coordinate, the lowest and the highest level, that of the outside (0) not counted.
    pub fn range(&self, i: usize) -> (f64, f64) {
        let of = self.levels.iter().skip(i).step_by(self.d);
        of.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), &x| (lo.min(x), hi.max(x)))
    }
}

/// All ids with the ramps that may stand after them.
struct All<'a> {
    ids: &'a CellIds,
    starts: &'a [f64],
    width: f64,
    /// No computed id is lower.
    lowest: f64,
    d: usize,
}

impl All<'_> {
    /// Levels in steps of `2^-bits`.
    fn steps(levels: &[f64], bits: i32) -> Vec<f64> {
        let scale = f64::from(bits).exp2();
        parallel::map_slice(levels, |x| (x * scale).round())
    }

    /// The largest sum of absolute values of an output's terms, in units of levels as given.
    fn size(&self, levels: &[f64]) -> f64 {
        let of = |i: usize| -> f64 {
            let level = |j: usize| self.ids.order.get(j).map_or(0.0, |&cell| levels[cell as usize * self.d + i]);
            let term = |j: usize| (level(j) - level(j + 1)).abs() * (self.starts[j] + self.width - self.lowest);
            (0..self.starts.len()).map(term).sum::<f64>() / self.width
        };
        parallel::map(self.d, of).into_iter().fold(0.0, f64::max)
    }

    /// The read-out whose sums are exact, with levels as fine as that allows.
    fn exact(&self, levels: &[f64]) -> Option<CellReadout> {
        let largest = levels.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let size = self.size(levels).max(f64::MIN_POSITIVE);
        let finest = -(SMALLEST_QUANTUM * self.width).log2() as i32;
        let bits = (EXACT / (size * self.width)).log2().floor().min(f64::from(finest)) as i32;
        (bits.saturating_sub(4)..=bits).rev().find_map(|bits| {
            let steps = Self::steps(levels, bits);
            let fits = self.size(&steps) * self.width * 1.000_001 <= EXACT && largest * f64::from(bits).exp2() < EXACT;
            fits.then(|| self.build(&steps, bits, 0.0))
        })
    }

    /// The read-out with fine levels, whose sums are rounded.
    fn rounded(&self, levels: &[f64]) -> CellReadout {
        let largest = levels.iter().fold(f64::MIN_POSITIVE, |m: f64, x| m.max(x.abs()));
        let finest = -(SMALLEST_QUANTUM * self.width).log2() as i32;
        let bits = (ROUNDED_BITS - largest.log2().ceil() as i32).min(finest);
        let steps = Self::steps(levels, bits);
        let step = (-f64::from(bits)).exp2();
        let readout = self.build(&steps, bits, 0.0);
        // Both hinges of every ramp, the id and what takes it out.
        let size = Up::new(self.size(&steps)).over(DOUBLE.gamma(self.starts.len() + 8).below_one());
        let size = Up::new(2.0 * step) * size + Up::new(4.0 * FIRST) * Up::new(readout.quantum());
        let rounding = (DOUBLE.gamma(readout.units() + 4) * size).get();
        CellReadout { rounding, ..readout }
    }

    fn build(&self, steps: &[f64], bits: i32, rounding: f64) -> CellReadout {
        let level = |j: usize, i: usize| self.ids.order.get(j).map_or(0.0, |&cell| steps[cell as usize * self.d + i]);
        let (mut from, mut falls) = (Vec::new(), Vec::new());
        for (j, &start) in self.starts.iter().enumerate() {
            let fall: Vec<f64> = (0..self.d).map(|i| level(j, i) - level(j + 1, i)).collect();
            if fall.iter().any(|&x| x != 0.0) {
                from.push(start);
                falls.extend(fall);
            }
        }
        let step = (-f64::from(bits)).exp2();
        let levels = steps.iter().map(|x| x * step).collect();
        CellReadout { d: self.d, from, falls, width: self.width, bits, levels, rounding }
    }
}
