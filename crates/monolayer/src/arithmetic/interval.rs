//! Intervals of `f64`, rounded outward once per operation.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::rounding::{add_down, add_up, div_down, div_up, mul_down, mul_up, sqrt_down, sqrt_up};
use super::{Number, forward_operators};

/// A closed interval `[lo, hi]` that contains the exact value.
///
/// Bounds are never NaN; `lo` may be minus and `hi` plus infinity. `+ - * / sqrt` of intervals are the tightest that
/// floats allow. Where an operation is undefined for some member (division by an interval that contains 0, logarithm
/// of a negative number) the result is [`Interval::WHOLE`], from which nothing can be concluded.
#[derive(Clone, Copy, PartialEq)]
pub struct Interval {
    lo: f64,
    hi: f64,
}

impl Interval {
    /// The whole real line.
    pub const WHOLE: Self = Self { lo: f64::NEG_INFINITY, hi: f64::INFINITY };

    /// The interval `[lo, hi]`; panics unless `lo <= hi`, `lo` is not plus infinity and `hi` not minus infinity.
    pub fn new(lo: f64, hi: f64) -> Self {
        assert!(lo <= hi && lo < f64::INFINITY && hi > f64::NEG_INFINITY, "not an interval: [{lo}, {hi}]");
        Self { lo, hi }
    }

    /// The interval `[x, x]`; the whole line if `x` is not finite.
    pub fn point(x: f64) -> Self {
        if x.is_finite() { Self { lo: x, hi: x } } else { Self::WHOLE }
    }

    /// The smallest interval that contains both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The lower bound.
    pub fn lo(self) -> f64 {
        self.lo
    }

    /// The upper bound.
    pub fn hi(self) -> f64 {
        self.hi
    }

    /// The difference of the bounds, rounded up.
    pub fn width(self) -> f64 {
        add_up(self.hi, -self.lo)
    }

    /// A finite float inside: half way for bounded intervals.
    pub fn center(self) -> f64 {
        match (self.lo.is_finite(), self.hi.is_finite()) {
            (true, true) => (0.5 * self.lo + 0.5 * self.hi).clamp(self.lo, self.hi),
            (true, false) => self.lo.max(0.0),
            (false, true) => self.hi.min(0.0),
            (false, false) => 0.0,
        }
    }

    /// The largest absolute value of a member.
    pub fn magnitude(self) -> f64 {
        self.hi.max(-self.lo)
    }

    /// The smallest absolute value of a member.
    pub fn mignitude(self) -> f64 {
        self.lo.max(-self.hi).max(0.0)
    }

    /// Whether `x` is a member.
    pub fn contains(self, x: f64) -> bool {
        self.lo <= x && x <= self.hi
    }

    /// Whether the interval is bounded on both sides.
    pub fn is_bounded(self) -> bool {
        self.lo.is_finite() && self.hi.is_finite()
    }

    /// The square: tighter than the product with itself, and never negative.
    #[must_use]
    pub fn square(self) -> Self {
        let (small, large) = (self.mignitude(), self.magnitude());
        Self { lo: mul_down(small, small), hi: mul_up(large, large) }
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:?}, {:?}]", self.lo, self.hi)
    }
}

impl Neg for Interval {
    type Output = Self;

    fn neg(self) -> Self {
        Self { lo: -self.hi, hi: -self.lo }
    }
}

impl Add for &Interval {
    type Output = Interval;

    fn add(self, other: Self) -> Interval {
        Interval { lo: add_down(self.lo, other.lo), hi: add_up(self.hi, other.hi) }
    }
}

impl Sub for &Interval {
    type Output = Interval;

    fn sub(self, other: Self) -> Interval {
        *self + -*other
    }
}

impl Mul for &Interval {
    type Output = Interval;

    fn mul(self, other: Self) -> Interval {
        let (a, b) = (self, other);
        // Monotone in each factor, in a direction that depends on the sign of the other one.
        let (lo, hi) = if a.lo >= 0.0 {
            let low = if b.lo >= 0.0 { a.lo } else { a.hi };
            let high = if b.hi >= 0.0 { a.hi } else { a.lo };
            (mul_down(low, b.lo), mul_up(high, b.hi))
        } else if a.hi <= 0.0 {
            let low = if b.hi >= 0.0 { a.lo } else { a.hi };
            let high = if b.lo >= 0.0 { a.hi } else { a.lo };
            (mul_down(low, b.hi), mul_up(high, b.lo))
        } else if b.lo >= 0.0 {
            (mul_down(a.lo, b.hi), mul_up(a.hi, b.hi))
        } else if b.hi <= 0.0 {
            (mul_down(a.hi, b.lo), mul_up(a.lo, b.lo))
        } else {
            (mul_down(a.lo, b.hi).min(mul_down(a.hi, b.lo)), mul_up(a.lo, b.lo).max(mul_up(a.hi, b.hi)))
        };
        Interval { lo, hi }
    }
}

impl Div for &Interval {
    type Output = Interval;

    fn div(self, other: Self) -> Interval {
        let (a, b) = (self, other);
        if b.contains(0.0) {
            return Interval::WHOLE;
        }
        if b.hi < 0.0 {
            return -*a / -*b;
        }
        // b > 0: the quotient grows with a, and is largest in absolute value at the smallest b.
        let below = if a.lo >= 0.0 { b.hi } else { b.lo };
        let above = if a.hi >= 0.0 { b.lo } else { b.hi };
        Interval { lo: div_down(a.lo, below), hi: div_up(a.hi, above) }
    }
}

forward_operators!(Interval: Add add, Sub sub, Mul mul, Div div);

impl Number for Interval {
    fn from_f64(x: f64) -> Self {
        Self::point(x)
    }

    fn exp(&self) -> Self {
        Interval::exp(*self)
    }

    fn ln(&self) -> Self {
        Interval::ln(*self)
    }

    fn sqrt(&self) -> Self {
        if self.lo < 0.0 {
            return Self::WHOLE;
        }
        Self { lo: sqrt_down(self.lo), hi: sqrt_up(self.hi) }
    }

    fn abs(&self) -> Self {
        Self { lo: self.mignitude(), hi: self.magnitude() }
    }

    fn max(&self, other: &Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    fn midpoint(&self) -> Self {
        Self::point(self.center())
    }

    fn certainly_less(&self, other: &Self) -> bool {
        self.hi < other.lo
    }

    fn certainly_equal(&self, other: &Self) -> bool {
        self.lo == self.hi && self == other
    }
}
