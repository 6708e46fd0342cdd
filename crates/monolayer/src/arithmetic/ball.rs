//! Balls: big floats with a radius, for gaps that no `f64` can hold.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

use dashu_base::{Abs, BitTest, DivRem, Signed, SquareRootRem, UnsignedAbs};
use dashu_int::IBig;

use super::magnitude::{Magnitude, leading_bits};
use super::{Interval, Number, forward_operators};

/// Bits of the constants that formulas make with [`Number::from_f64`]; a ball of more bits keeps its own.
const CONSTANT_PRECISION: usize = 64;

/// Exponents beyond this are not followed: the ball becomes the whole line.
const LARGEST_EXPONENT: i64 = 1 << 61;

/// The numbers at most `radius` away from the midpoint `mantissa * 2^exponent`.
///
/// The mantissa has at most `precision` bits. A result has the larger of its operands' precisions, and what rounding
/// cuts off goes to the radius. An undefined result (see [`Interval`]) has an infinite radius.
#[derive(Clone)]
pub struct Ball {
    pub(super) mantissa: IBig,
    pub(super) exponent: i64,
    pub(super) radius: Magnitude,
    pub(super) precision: usize,
}

impl Ball {
    /// The number `x` exactly, to be computed with at `precision` bits (at least 64).
    pub fn new(x: f64, precision: usize) -> Self {
        let precision = precision.max(CONSTANT_PRECISION);
        if !x.is_finite() {
            return Self::whole(precision);
        }
        let biased = (x.to_bits() >> 52 & 0x7ff) as i64;
        let stored = (x.to_bits() & ((1 << 52) - 1)) as i64;
        // Subnormal numbers have no hidden bit.
        let mantissa = if biased == 0 { stored } else { stored | 1 << 52 };
        let mantissa = if x < 0.0 { -mantissa } else { mantissa };
        Self::rounded(mantissa.into(), biased.max(1) - 1075, Magnitude::ZERO, precision)
    }

    /// The whole real line.
    pub fn whole(precision: usize) -> Self {
        Self { mantissa: IBig::ZERO, exponent: 0, radius: Magnitude::INFINITE, precision }
    }

    /// The ball around `mantissa * 2^exponent` rounded to `precision` bits, which may widen the radius.
    pub(super) fn rounded(mantissa: IBig, exponent: i64, radius: Magnitude, precision: usize) -> Self {
        let Some(zeros) = mantissa.trailing_zeros() else {
            let zero = Self { mantissa, exponent: 0, radius, precision };
            return zero.widened(Magnitude::ZERO);
        };
        let excess = mantissa.bit_len().saturating_sub(precision);
        let cut = if zeros >= excess { Magnitude::ZERO } else { Magnitude::power_of_two(exponent + excess as i64) };
        // Zeros at the end are dropped too: constants stay short.
        let shift = excess.max(zeros);
        let (mantissa, exponent) =
            if shift == 0 { (mantissa, exponent) } else { (mantissa >> shift, exponent + shift as i64) };
        let radius = radius + cut;
        if !radius.is_finite() || exponent.abs() > LARGEST_EXPONENT {
            return Self::whole(precision);
        }
        Self { mantissa, exponent, radius, precision }
    }

    /// The same ball, computed with at `precision` bits from here on.
    #[must_use]
    pub fn with_precision(self, precision: usize) -> Self {
        Self::rounded(self.mantissa, self.exponent, self.radius, precision.max(CONSTANT_PRECISION))
    }

    /// The bits that it is computed with.
    pub fn precision(&self) -> usize {
        self.precision
    }

    /// The midpoint as `(mantissa, exponent)`: `mantissa * 2^exponent`.
    pub fn midpoint_parts(&self) -> (&IBig, i64) {
        (&self.mantissa, self.exponent)
    }

    /// The radius.
    pub fn radius(&self) -> Magnitude {
        self.radius
    }

    /// The ball around the same midpoint with a radius larger by `more`.
    #[must_use]
    pub fn widened(mut self, more: Magnitude) -> Self {
        self.radius = self.radius + more;
        if self.is_bounded() { self } else { Self::whole(self.precision) }
    }

    /// Whether the ball is bounded.
    pub fn is_bounded(&self) -> bool {
        self.radius.is_finite()
    }

    /// A lower and an upper bound of the absolute values of the members.
    pub fn absolute_bounds(&self) -> (Magnitude, Magnitude) {
        let (lower, upper) = Magnitude::bounds(&self.mantissa, self.exponent);
        (lower.sub_down(self.radius), upper + self.radius)
    }

    /// Whether all members are above 0.
    pub fn is_certainly_positive(&self) -> bool {
        self.mantissa.is_positive() && !self.absolute_bounds().0.is_zero()
    }

    /// An enclosure of the binary logarithm of the absolute value; the whole line if 0 may be inside.
    pub fn log2_abs(&self) -> Interval {
        let (lower, upper) = self.absolute_bounds();
        if lower.is_zero() { Interval::WHOLE } else { lower.log2().hull(upper.log2()) }
    }

    /// The smallest interval around it, but for a few roundings.
    pub fn to_interval(&self) -> Interval {
        if !self.is_bounded() {
            return Interval::WHOLE;
        }
        let (top, excess) = leading_bits(&self.mantissa);
        let top = Interval::new(top, if excess == 0 { top } else { top + 1.0 });
        let exponent = (self.exponent + excess as i64).clamp(-4000, 4000);
        let midpoint =
            (0..4).fold(top, |x, step| x * Interval::point(2_f64.powi((exponent + step).div_euclid(4) as i32)));
        let radius = self.radius.to_f64();
        midpoint + Interval::new(-radius, radius)
    }

    /// The bit above the highest one of the midpoint: `|midpoint| < 2^top`.
    pub(super) fn top(&self) -> i64 {
        self.exponent + self.mantissa.bit_len() as i64
    }
}

impl fmt::Debug for Ball {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let radius = self.radius.log2().hi();
        let (sign, log2) = (if self.mantissa.is_negative() { "-" } else { "" }, self.midpoint().log2_abs());
        match (self.mantissa.is_zero(), self.radius.is_zero()) {
            (true, true) => write!(f, "0"),
            (true, false) => write!(f, "0 +- 2^{radius:.3}"),
            (false, true) => write!(f, "{sign}2^{:.3}", log2.center()),
            (false, false) => write!(f, "{sign}2^{:.3} +- 2^{radius:.3}", log2.center()),
        }
    }
}

impl Neg for Ball {
    type Output = Self;

    fn neg(self) -> Self {
        Self { mantissa: -self.mantissa, ..self }
    }
}

impl Add for &Ball {
    type Output = Ball;

    fn add(self, other: Self) -> Ball {
        let precision = self.precision.max(other.precision);
        let radius = self.radius + other.radius;
        let (large, small) = if self.top() >= other.top() { (self, other) } else { (other, self) };
        if large.mantissa.is_zero() || small.mantissa.is_zero() {
            let other = if large.mantissa.is_zero() { small } else { large };
            return Ball::rounded(other.mantissa.clone(), other.exponent, radius, precision);
        }
        if large.top() - small.top() > precision as i64 + 2 {
            let negligible = Magnitude::power_of_two(small.top());
            return Ball::rounded(large.mantissa.clone(), large.exponent, radius + negligible, precision);
        }
        let exponent = large.exponent.min(small.exponent);
        let aligned = |x: &Ball| &x.mantissa << (x.exponent - exponent) as usize;
        Ball::rounded(aligned(large) + aligned(small), exponent, radius, precision)
    }
}

impl Sub for &Ball {
    type Output = Ball;

    fn sub(self, other: Self) -> Ball {
        self + &-other.clone()
    }
}

impl Mul for &Ball {
    type Output = Ball;

    fn mul(self, other: Self) -> Ball {
        let precision = self.precision.max(other.precision);
        let mut radius = Magnitude::ZERO;
        if !self.radius.is_zero() || !other.radius.is_zero() {
            let magnitude = |x: &Ball| Magnitude::bounds(&x.mantissa, x.exponent).1;
            // |x y - m n| <= |m| s + (|n| + s) r for |x - m| <= r, |y - n| <= s.
            radius = magnitude(self) * other.radius + (magnitude(other) + other.radius) * self.radius;
        }
        Ball::rounded(&self.mantissa * &other.mantissa, self.exponent + other.exponent, radius, precision)
    }
}

impl Div for &Ball {
    type Output = Ball;

    fn div(self, other: Self) -> Ball {
        let precision = self.precision.max(other.precision);
        let smallest = other.absolute_bounds().0;
        if smallest.is_zero() || !self.is_bounded() {
            return Ball::whole(precision);
        }
        let shift = (precision + 1 + other.mantissa.bit_len()).saturating_sub(self.mantissa.bit_len());
        let (quotient, remainder) = (&self.mantissa << shift).div_rem(&other.mantissa);
        let exponent = self.exponent - other.exponent - shift as i64;
        let cut = if remainder.is_zero() { Magnitude::ZERO } else { Magnitude::power_of_two(exponent) };
        // |x / y - m / n| <= (r + |m / n| s) / |y| for |x - m| <= r, |y - n| <= s.
        let magnitude = Magnitude::bounds(&quotient, exponent).1 + cut;
        let radius = (self.radius + magnitude * other.radius) / smallest;
        Ball::rounded(quotient, exponent, radius + cut, precision)
    }
}

forward_operators!(Ball: Add add, Sub sub, Mul mul, Div div);

impl Number for Ball {
    fn from_f64(x: f64) -> Self {
        Self::new(x, CONSTANT_PRECISION)
    }

    fn exp(&self) -> Self {
        super::ball_functions::exp(self)
    }

    fn ln(&self) -> Self {
        super::ball_functions::ln(self)
    }

    fn sqrt(&self) -> Self {
        if self.mantissa.is_zero() && self.radius.is_zero() {
            return self.clone();
        }
        let (lower, _) = Magnitude::bounds(&self.mantissa, self.exponent);
        if !self.mantissa.is_positive() || lower < self.radius {
            return Self::whole(self.precision);
        }
        let shift = (2 * self.precision + 2).saturating_sub(self.mantissa.bit_len()) as i64;
        let shift = shift + (self.exponent - shift).rem_euclid(2);
        let (root, remainder) = (&self.mantissa << shift as usize).unsigned_abs().sqrt_rem();
        let exponent = (self.exponent - shift) / 2;
        let cut = if remainder.is_zero() { Magnitude::ZERO } else { Magnitude::power_of_two(exponent) };
        let root = IBig::from(root);
        // |sqrt x - sqrt m| = |x - m| / (sqrt x + sqrt m) <= r / sqrt m.
        let radius = self.radius / Magnitude::bounds(&root, exponent).0;
        Self::rounded(root, exponent, radius + cut, self.precision)
    }

    fn abs(&self) -> Self {
        Self { mantissa: (&self.mantissa).abs(), ..self.clone() }
    }

    fn max(&self, other: &Self) -> Self {
        let difference = self - other;
        let (larger, smaller) = if difference.mantissa.is_positive() { (self, other) } else { (other, self) };
        // |max(x, y) - max(m, n)| <= max(|x - m|, |y - n|); where one is certainly larger, the other's radius is idle.
        let radius =
            if smaller.certainly_less(larger) || larger.radius >= smaller.radius { larger } else { smaller }.radius;
        Self::rounded(larger.mantissa.clone(), larger.exponent, radius, self.precision.max(other.precision))
    }

    fn midpoint(&self) -> Self {
        Self { radius: Magnitude::ZERO, ..self.clone() }
    }

    fn certainly_less(&self, other: &Self) -> bool {
        (other - self).is_certainly_positive()
    }

    fn certainly_equal(&self, other: &Self) -> bool {
        // Trailing zeros are dropped, so a number has one form.
        let exact = self.radius.is_zero() && other.radius.is_zero();
        exact && self.mantissa == other.mantissa && self.exponent == other.exponent
    }
}
