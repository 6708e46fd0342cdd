//! Radii of balls: nonnegative numbers of any size, rounded up.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul};

use dashu_base::BitTest;
use dashu_int::IBig;

use super::Interval;
use super::rounding::{add_down, add_up, div_up, mul_up};

/// `(top, excess)` with `top <= integer / 2^excess < top + 1`, and no excess where a float holds the integer.
pub(super) fn leading_bits(integer: &IBig) -> (f64, usize) {
    let bits = integer.bit_len();
    let excess = if bits <= 53 { 0 } else { bits - 52 };
    (i64::try_from(integer >> excess).expect("at most 53 bits") as f64, excess)
}

/// The number `fraction * 2^exponent`, with `fraction` 0, infinite, or in `[1, 2)`.
///
/// Operations round up unless their name says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Magnitude {
    fraction: f64,
    exponent: i64,
}

impl Magnitude {
    /// Zero.
    pub const ZERO: Self = Self { fraction: 0.0, exponent: 0 };
    /// Plus infinity.
    pub const INFINITE: Self = Self { fraction: f64::INFINITY, exponent: 0 };

    /// The number `x * 2^exponent`, for a normal `x > 0` or zero.
    pub fn new(x: f64, exponent: i64) -> Self {
        if x == 0.0 || x.is_infinite() {
            return Self { fraction: x, exponent: 0 };
        }
        let shift = (x.to_bits() >> 52) as i64 - 1023;
        let fraction = f64::from_bits(x.to_bits() & !(0x7ff << 52) | 1023 << 52);
        // Far too small is rounded up, far too large is infinite.
        match exponent.saturating_add(shift) {
            i64::MAX => Self::INFINITE,
            exponent => Self { fraction, exponent },
        }
    }

    /// The power `2^exponent`.
    pub fn power_of_two(exponent: i64) -> Self {
        Self::new(1.0, exponent)
    }

    /// A lower and an upper bound of `|integer| * 2^exponent`.
    pub fn bounds(integer: &IBig, exponent: i64) -> (Self, Self) {
        let (top, excess) = leading_bits(integer);
        let (top, exponent) = (top.abs(), exponent.saturating_add(excess as i64));
        if excess == 0 {
            return (Self::new(top, exponent), Self::new(top, exponent));
        }
        (Self::new(top - 1.0, exponent), Self::new(top + 1.0, exponent))
    }

    /// `(fraction, exponent)`: the number is `fraction * 2^exponent`.
    pub fn parts(self) -> (f64, i64) {
        (self.fraction, self.exponent)
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.fraction == 0.0
    }

    /// Whether it is finite.
    pub fn is_finite(self) -> bool {
        self.fraction.is_finite()
    }

    /// The larger one, and the smaller one's fraction at the larger one's exponent, unless that is negligible.
    fn align(self, other: Self) -> (Self, Option<f64>) {
        let (large, small) = if self >= other { (self, other) } else { (other, self) };
        let distance = large.exponent.abs_diff(small.exponent);
        if small.is_zero() {
            return (large, Some(0.0));
        }
        (large, (distance <= 60).then(|| small.fraction / (1_u64 << distance) as f64))
    }

    /// The difference rounded down; zero if it is not positive.
    #[must_use]
    pub fn sub_down(self, other: Self) -> Self {
        if self <= other {
            return Self::ZERO;
        }
        let (large, small) = self.align(other);
        if !large.is_finite() {
            return large;
        }
        let difference = small.map_or_else(|| large.fraction.next_down(), |small| add_down(large.fraction, -small));
        Self::new(difference, large.exponent)
    }

    /// An upper bound of `e^x - 1`.
    #[must_use]
    pub fn exp_minus_one(self) -> Self {
        let one = Self::power_of_two(0);
        if self <= one {
            // e^x - 1 <= x + x^2 on [0, 1].
            return self * (one + self);
        }
        if self.exponent >= 60 || !self.is_finite() {
            return Self::INFINITE;
        }
        // e^x < 2^(3x/2) for x > 0.
        let x = (self.fraction * 2_f64.powi(self.exponent as i32)).ceil() as i64;
        Self::power_of_two(x + x / 2 + 1)
    }

    /// An enclosure of the binary logarithm; the whole line for zero and infinity.
    pub fn log2(self) -> Interval {
        if self.is_zero() || !self.is_finite() {
            return Interval::WHOLE;
        }
        // An exponent of more than 53 bits is the sum of two floats.
        let (high, low) = (self.exponent >> 32 << 32, self.exponent & 0xffff_ffff);
        let fraction = Interval::point(self.fraction).ln() / Interval::point(2.0).ln();
        fraction + Interval::point(low as f64) + Interval::point(high as f64)
    }

    /// An upper bound as a float, infinite if it is larger than all of them.
    pub fn to_f64(self) -> f64 {
        if self.is_zero() || !self.is_finite() {
            return self.fraction;
        }
        let exponent = self.exponent.clamp(-2000, 2000) as i32;
        [exponent / 2, exponent - exponent / 2].iter().fold(self.fraction, |x, &e| mul_up(x, 2_f64.powi(e)))
    }
}

impl Add for Magnitude {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (large, small) = self.align(other);
        if !large.is_finite() || large.is_zero() {
            return large;
        }
        let sum = small.map_or_else(|| large.fraction.next_up(), |small| add_up(large.fraction, small));
        Self::new(sum, large.exponent)
    }
}

/// Zero times infinity is zero.
impl Mul for Magnitude {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::new(mul_up(self.fraction, other.fraction), self.exponent.saturating_add(other.exponent))
    }
}

/// The divisor is finite; over zero, everything is infinite.
impl Div for Magnitude {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        if other.is_zero() {
            return Self::INFINITE;
        }
        Self::new(div_up(self.fraction, other.fraction), self.exponent.saturating_sub(other.exponent))
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |m: &Self| match m.fraction {
            0.0 => (i64::MIN, 0.0),
            f64::INFINITY => (i64::MAX, f64::INFINITY),
            fraction => (m.exponent, fraction),
        };
        key(self).partial_cmp(&key(other))
    }
}
