//! The certified bound on d_p(f, g): the error in the cells, the ramps of the quantizer, and rounding.
//!
//! Outside the ramps g is the level of the cell, up to rounding. On the ramps a computed id is anywhere between the first
//! and the last, so g is anywhere between the lowest and the highest level. Sums are rounded outward, and bounds are then
//! rounded up to four digits, so that the printed bound is the one that is claimed.

use super::readout::CellReadout;
use crate::approximate::cells::{Grid, Levels};
use crate::arithmetic::Interval;

/// A bound on d_p(f, g), and its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Over the cube, rounding included.
    pub inside: f64,
    /// Over the cube, in real arithmetic.
    pub real: f64,
    /// Over the whole space, f = 0 outside the cube, rounding included; infinite where nothing is known outside.
    pub everywhere: f64,
    /// What the levels cost: d_p of the staircase without ramps.
    pub cells: f64,
    /// What the ramps cost at most, had the levels no error.
    pub ramps: f64,
    /// What rounding costs at most.
    pub rounding: f64,
}

/// `x^e` for x >= 0.
fn power(x: Interval, e: Interval) -> Interval {
    if x.hi() <= 0.0 {
        return Interval::point(0.0);
    }
    let of = |x: f64| if x == 0.0 { Interval::point(0.0) } else { (Interval::point(x).ln() * e).exp() };
    if e == Interval::point(1.0) {
        x
    } else if e == Interval::point(2.0) {
        x.square()
    } else {
        Interval::new(of(x.lo().max(0.0)).lo(), of(x.hi()).hi())
    }
}

/// The next number of four digits that is not below x.
fn four_digits(x: f64) -> f64 {
    if !(x > 0.0 && x.is_finite()) {
        return x;
    }
    let unit = 10_f64.powi(x.log10().floor() as i32 - 3);
    let told: f64 = format!("{:.3e}", (x / unit).ceil() * unit).parse().expect("a number was written");
    if told >= x { told } else { x }
}

impl Bound {
    /// The bound for levels as rounded by the read-out and ramps of the given width.
    pub fn new(levels: &Levels, readout: &CellReadout, grid: &Grid, ramp: f64) -> Self {
        let point = Interval::point;
        let (d, n) = (grid.edges.len(), levels.cells.length);
        let p = point(levels.p);
        let root = |x: Interval| power(x, point(1.0) / p);
        // What is the same in all d n entries.
        let entries = root(point((d * n) as f64));

        let moved = levels.levels.iter().zip(&readout.levels).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let cells = root(point(levels.error)) + entries * point(moved.next_up());

        // The sum of a token and its place rounds, at either end of a ramp.
        let ramp = point(ramp) + point(4.0 * n as f64 * f64::EPSILON);
        let one = point(1.0);
        let mut free = one;
        for edges in &grid.edges {
            let plateau = one - ramp * point(edges.len() as f64 - 2.0);
            free = (0..n).fold(free, |free, _| free * plateau);
        }
        let on_ramps = (one - free).hi().max(0.0);
        let apart = |i: usize| {
            let (lo, hi) = readout.range(i);
            let range = levels.range[i];
            let far = (range - point(lo)).hi().max((point(hi) - range).hi()).max(0.0);
            power(point(far), p)
        };
        let apart = (0..d).map(apart).fold(point(0.0), |sum, x| sum + x);
        let ramps = point(on_ramps) * point(n as f64) * apart;

        let rounding = entries * point(readout.rounding);
        let real = root(power(cells, p) + ramps);
        let inside = real + rounding;

        let everywhere = if levels.cells.symmetric {
            let shell = (0..d * n).fold(one, |v, _| v * (one + ramp + ramp)) - one;
            let largest = |i: usize| {
                let (lo, hi) = readout.range(i);
                power(point(hi.max(-lo).max(0.0)), p)
            };
            let largest = (0..d).map(largest).fold(point(0.0), |sum, x| sum + x);
            let outside = power(inside, p) + shell * point(n as f64) * largest;
            four_digits(root(outside).hi())
        } else {
            f64::INFINITY
        };
        Self {
            inside: four_digits(inside.hi()),
            real: four_digits(real.hi()),
            everywhere,
            cells: cells.hi(),
            ramps: root(ramps).hi(),
            rounding: rounding.hi(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::four_digits;

    #[test]
    fn bounds_are_told_in_four_digits_and_never_below() {
        for (x, told) in
            [(0.288_675_1, 0.2887), (0.1, 0.1), (0.099_995, 0.1), (1.0, 1.0), (123_456.0, 123_500.0), (0.0, 0.0)]
        {
            assert_eq!(four_digits(x), told);
        }
        let mut x = 1e-250_f64;
        while x < 1e250 {
            assert!(four_digits(x) >= x && four_digits(x) <= 1.0011 * x, "{x}");
            x *= 1.37;
        }
    }
}
