//! Interpolation (Corollary 1 after Zhang et al.): the skip is kept, and a piecewise-linear curve along one coordinate s of
//! the ids runs through `T_j = Y_j - H_j`, so that `F(X) = Y` as in (17).
//!
//! Hinges stand at `s_1 < ... < s_(M-1)`; the bend at `s_j` is the slope from there to `s_(j+1)` minus the slope before.

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Number as _};

use super::hinges::{Hinge, Readout};

/// Bits for the curve that the rounded bends make.
const PRECISION: usize = 256;

/// The block through given outputs, one row per id, ids told apart by a coordinate of their rows.
pub fn interpolate(rows: &Matrix<f64>, coordinate: usize, outputs: &Matrix<f64>) -> Readout {
    let s = |id: usize| rows.row(id)[coordinate];
    let order = sorting::order_by_key(rows.rows, s);
    let target = |id: usize, i: usize| outputs.row(id)[i] - rows.row(id)[i];
    let b2: Vec<f64> = (0..rows.cols).map(|i| target(order[0], i)).collect();
    let mut curves: Vec<TargetCurve> = b2.iter().map(|&y| TargetCurve::new(y)).collect();
    let mut hinges: Vec<Hinge> = order
        .windows(2)
        .map(|pair| {
            let (from, to) = (s(pair[0]), s(pair[1]));
            let bend = curves.iter_mut().enumerate().map(|(i, curve)| curve.bend(from, to, target(pair[1], i)));
            Hinge { coordinate, side: 1.0, at: from, bend: bend.collect() }
        })
        .collect();
    if hinges.is_empty() {
        // A block has at least one unit, or its bias would have no place.
        hinges.push(Hinge { coordinate, side: 1.0, at: s(0), bend: vec![0.0; rows.cols] });
    }
    Readout { hinges, b2, bound: None }
}

/// A curve made from left to right, as the rounded bends really make it: the error of one bend is mended by the next.
struct TargetCurve {
    value: Ball,
    slope: Ball,
}

impl TargetCurve {
    fn new(value: f64) -> Self {
        Self { value: Ball::new(value, PRECISION), slope: Ball::new(0.0, PRECISION) }
    }

    /// The bend at `from` that leads to `target` at `to`.
    fn bend(&mut self, from: f64, to: f64, target: f64) -> f64 {
        let step = Ball::new(to, PRECISION) - Ball::new(from, PRECISION);
        let wanted = (Ball::new(target, PRECISION) - &self.value) / &step;
        let bend = (wanted - &self.slope).to_interval().center();
        self.slope = (self.slope.clone() + Ball::new(bend, PRECISION)).midpoint();
        self.value = (self.value.clone() + self.slope.clone() * step).midpoint();
        bend
    }
}
