//! binary32 and binary64 behind one name.

use std::ops::{Add, Div, Mul, Sub};

pub trait Float:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Send + Sync
{
    const ZERO: Self;
    const ONE: Self;
    /// Rounded to nearest even.
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    /// self * b + c with one rounding.
    fn fused(self, b: Self, c: Self) -> Self;
    /// The exponential, moved by so many steps where that stays within 4 units in the last place of the true value.
    fn exp_moved(self, steps: i64) -> Self;
}

impl Float for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn of(x: f64) -> Self {
        x as f32
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
    fn exp_moved(self, steps: i64) -> Self {
        let nearest = core_math::expf(self);
        if !nearest.is_finite() {
            return nearest;
        }
        let exact = core_math::exp(f64::from(self));
        // The unit in the last place of the binade that the true value lies in. The exponential in f64 is itself rounded:
        // hence a little less than 4.
        let binade = if exact > 0.0 { f64::from_bits(exact.to_bits() & 0x7FF0_0000_0000_0000) } else { 0.0 };
        let limit = 3.999_999 * (binade * 2_f64.powi(-23)).max(2_f64.powi(-149));
        let moved = |steps: i64| f32::from_bits((i64::from(nearest.to_bits()) + steps).max(0) as u32);
        let mut steps = steps;
        while steps != 0 && (f64::from(moved(steps)) - exact).abs() > limit {
            steps -= steps.signum();
        }
        moved(steps)
    }
}

impl Float for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn of(x: f64) -> Self {
        x
    }
    fn wide(self) -> f64 {
        self
    }
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
    fn exp_moved(self, steps: i64) -> Self {
        let nearest = core_math::exp(self);
        if !nearest.is_finite() {
            return nearest;
        }
        // The true value is within half a unit of the nearest one, and its unit is at least the step below that.
        let unit = if nearest > 0.0 { nearest - nearest.next_down() } else { f64::from_bits(1) };
        let moved = |steps: i64| f64::from_bits((nearest.to_bits() as i64 + steps).max(0) as u64);
        let mut steps = steps;
        while steps != 0 && (moved(steps) - nearest).abs() > 3.5 * unit {
            steps -= steps.signum();
        }
        moved(steps)
    }
}
