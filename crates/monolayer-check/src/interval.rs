//! Intervals of f64, rounded outward: one unit in the last place, or none where the result is provably exact.

use std::f64::consts::PI;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::rounding::two_sum_error;

/// All reals from `lo` to `hi`; infinite ends are not members.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub lo: f64,
    /// The upper end.
    pub hi: f64,
}

/// Products and quotients above this have no error from underflow.
const SAFE: f64 = 1e-290;
/// Beyond this, sines and the like are not looked at closely.
const FAR: f64 = 1e9;

/// A result rounded to nearest, and whether it is exact, as an interval.
fn rounded(x: f64, exact: bool) -> Interval {
    if x.is_nan() {
        Interval::WHOLE
    } else if exact {
        Interval::point(x)
    } else {
        Interval { lo: x.next_down(), hi: x.next_up() }
    }
}

fn sum(a: f64, b: f64) -> Interval {
    rounded(a + b, two_sum_error(a, b) == 0.0)
}

/// The product of two ends; an infinite end stands for finite numbers, so 0 times it is 0.
fn product(a: f64, b: f64) -> Interval {
    if a == 0.0 || b == 0.0 {
        return Interval::point(0.0);
    }
    let x = a * b;
    rounded(x, x.abs() > SAFE && a.mul_add(b, -x) == 0.0)
}

fn quotient(a: f64, b: f64) -> Interval {
    if a == 0.0 {
        return Interval::point(0.0);
    }
    let x = a / b;
    rounded(x, a.abs() > SAFE && x.abs() > SAFE && x.mul_add(b, -a) == 0.0)
}

impl Interval {
    /// All reals.
    pub const WHOLE: Self = Self { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
    /// An enclosure of pi.
    pub const PI: Self = Self { lo: PI, hi: PI.next_up() };

    /// From one end to the other.
    pub fn new(lo: f64, hi: f64) -> Self {
        Self { lo, hi }
    }

    /// One number.
    pub fn point(x: f64) -> Self {
        Self { lo: x, hi: x }
    }

    /// Whether both ends are finite.
    pub fn is_bounded(self) -> bool {
        self.lo.is_finite() && self.hi.is_finite()
    }

    /// Whether a number is a member.
    pub fn contains(self, x: f64) -> bool {
        self.lo <= x && x <= self.hi
    }

    /// The largest absolute value.
    pub fn magnitude(self) -> f64 {
        self.lo.abs().max(self.hi.abs())
    }

    /// The smallest absolute value.
    pub fn mignitude(self) -> f64 {
        if self.contains(0.0) { 0.0 } else { self.lo.abs().min(self.hi.abs()) }
    }

    /// About the middle; a member.
    pub fn middle(self) -> f64 {
        if self.lo == self.hi { self.lo } else { f64::midpoint(self.lo, self.hi).clamp(self.lo, self.hi) }
    }

    /// The distance of the ends, from above.
    pub fn width(self) -> f64 {
        sum(self.hi, -self.lo).hi
    }

    /// The smallest interval with the members of both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The common members of two enclosures of the same set.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        // Two enclosures of something that is defined nowhere may have nothing in common.
        if lo <= hi { Self { lo, hi } } else { self }
    }

    /// The absolute values.
    #[must_use]
    pub fn abs(self) -> Self {
        Self { lo: self.mignitude(), hi: self.magnitude() }
    }

    /// x^2.
    #[must_use]
    pub fn square(self) -> Self {
        let (lo, hi) = (self.mignitude(), self.magnitude());
        Self { lo: product(lo, lo).lo.max(0.0), hi: product(hi, hi).hi }
    }

    /// x^k; the whole line for a negative k where x may be 0.
    #[must_use]
    pub fn powi(self, k: i32) -> Self {
        if k == 2 {
            return self.square();
        }
        if k == 0 {
            return Self::point(1.0);
        }
        if k < 0 {
            return if self.contains(0.0) { Self::WHOLE } else { Self::point(1.0) / self.powi(k.saturating_neg()) };
        }
        let power = |x: f64| {
            let y = core_math::pow(x, f64::from(k));
            rounded(y, x == 0.0 || x.abs() == 1.0 || k == 1)
        };
        if k % 2 == 0 {
            let (lo, hi) = (power(self.mignitude()), power(self.magnitude()));
            Self { lo: lo.lo.max(0.0), hi: hi.hi }
        } else {
            Self { lo: power(self.lo).lo, hi: power(self.hi).hi }
        }
    }

    /// x^y for x >= 0: monotone in either, so the corners tell; the whole line where 0 may have a negative power.
    #[must_use]
    pub fn pow(self, y: Self) -> Self {
        let base = Self { lo: self.lo.max(0.0), hi: self.hi.max(0.0) };
        if base.lo == 0.0 && y.lo < 0.0 || !base.is_bounded() || !y.is_bounded() {
            return Self::WHOLE;
        }
        let corner = |x: f64, y: f64| rounded(core_math::pow(x, y), y == 0.0 || x == 1.0 || x == 0.0);
        let all = corner(base.lo, y.lo).hull(corner(base.lo, y.hi)).hull(corner(base.hi, y.lo));
        let all = all.hull(corner(base.hi, y.hi));
        Self { lo: all.lo.max(0.0), hi: all.hi }
    }

    /// The square roots of the members that have one.
    #[must_use]
    pub fn sqrt(self) -> Self {
        let root = |x: f64| {
            let x = x.max(0.0);
            let y = x.sqrt();
            rounded(y, x == 0.0 || (x > SAFE && y.mul_add(y, -x) == 0.0))
        };
        Self { lo: root(self.lo).lo.max(0.0), hi: root(self.hi).hi }
    }

    /// An increasing function whose f64 version is correctly rounded, and exact at one point.
    fn increasing(self, f: fn(f64) -> f64, exact: f64) -> Self {
        Self { lo: rounded(f(self.lo), self.lo == exact).lo, hi: rounded(f(self.hi), self.hi == exact).hi }
    }

    /// e^x.
    #[must_use]
    pub fn exp(self) -> Self {
        let x = self.increasing(core_math::exp, 0.0);
        Self { lo: x.lo.max(0.0), hi: x.hi }
    }

    /// The natural logarithms of the members that have one.
    #[must_use]
    pub fn ln(self) -> Self {
        let positive = Self { lo: self.lo.max(0.0), hi: self.hi.max(0.0) };
        positive.increasing(core_math::log, 1.0)
    }

    /// tanh x.
    #[must_use]
    pub fn tanh(self) -> Self {
        let x = self.increasing(core_math::tanh, 0.0);
        Self { lo: x.lo.max(-1.0), hi: x.hi.min(1.0) }
    }

    /// The whole numbers k, as floats, for which (k + shift) pi may be a member.
    fn half_turns(self, shift: f64) -> (f64, f64) {
        let turns = self / Self::PI - Self::point(shift);
        (turns.lo.ceil(), turns.hi.floor())
    }

    /// A wave: its value at the ends, and (-1)^k at the crests (k + shift) pi.
    fn wave(self, f: fn(f64) -> f64, shift: f64) -> Self {
        let all = Self { lo: -1.0, hi: 1.0 };
        if self.magnitude() > FAR || self.hi - self.lo > 7.0 {
            return all;
        }
        let end = |x: f64| rounded(f(x), x == 0.0);
        let mut out = end(self.lo).hull(end(self.hi));
        let (first, last) = self.half_turns(shift);
        if first <= last {
            let (even, odd) = (first % 2.0 == 0.0 || last > first, first % 2.0 != 0.0 || last > first);
            out.hi = if even { 1.0 } else { out.hi };
            out.lo = if odd { -1.0 } else { out.lo };
        }
        out.meet(all)
    }

    /// sin x.
    #[must_use]
    pub fn sin(self) -> Self {
        self.wave(core_math::sin, 0.5)
    }

    /// cos x.
    #[must_use]
    pub fn cos(self) -> Self {
        self.wave(core_math::cos, 0.0)
    }

    /// tan x; the whole line where there may be a pole.
    #[must_use]
    pub fn tan(self) -> Self {
        if self.magnitude() > FAR {
            return Self::WHOLE;
        }
        let (first, last) = self.half_turns(0.5);
        if first <= last { Self::WHOLE } else { self.increasing(core_math::tan, 0.0) }
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    /// The larger of two.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }
}

impl Neg for Interval {
    type Output = Self;
    fn neg(self) -> Self {
        Self { lo: -self.hi, hi: -self.lo }
    }
}

impl Add for Interval {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { lo: sum(self.lo, other.lo).lo, hi: sum(self.hi, other.hi).hi }
    }
}

impl Sub for Interval {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Interval {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        if self == Self::point(0.0) || other == Self::point(0.0) {
            return Self::point(0.0);
        }
        let (a, b) = (product(self.lo, other.lo), product(self.lo, other.hi));
        let (c, d) = (product(self.hi, other.lo), product(self.hi, other.hi));
        a.hull(b).hull(c.hull(d))
    }
}

impl Div for Interval {
    type Output = Self;
    /// The whole line where the divisor may be 0.
    fn div(self, other: Self) -> Self {
        if other.contains(0.0) || !other.is_bounded() {
            return Self::WHOLE;
        }
        let (a, b) = (quotient(self.lo, other.lo), quotient(self.lo, other.hi));
        let (c, d) = (quotient(self.hi, other.lo), quotient(self.hi, other.hi));
        a.hull(b).hull(c.hull(d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lo: f64, hi: f64) -> Interval {
        Interval::new(lo, hi)
    }

    #[test]
    fn exact_results_stay_exact() {
        assert_eq!(of(0.5, 1.0) - Interval::point(0.5), of(0.0, 0.5));
        assert_eq!(of(-3.0, 2.0) * Interval::point(0.25), of(-0.75, 0.5));
        assert_eq!(of(-3.0, 2.0).square(), of(0.0, 9.0));
        assert_eq!(Interval::point(9.0).sqrt(), Interval::point(3.0));
        assert_eq!(Interval::point(0.0) * Interval::WHOLE, Interval::point(0.0));
    }

    #[test]
    fn rounded_results_are_widened() {
        let third = Interval::point(1.0) / Interval::point(3.0);
        assert!(third.lo < third.hi && third.hi.to_bits() - third.lo.to_bits() == 2);
        let overflow = Interval::point(f64::MAX) + Interval::point(f64::MAX);
        assert_eq!(overflow, of(f64::MAX, f64::INFINITY));
        let underflow = Interval::point(f64::MIN_POSITIVE) * Interval::point(f64::MIN_POSITIVE);
        assert!(underflow.lo <= 0.0 && underflow.hi > 0.0);
    }

    #[test]
    fn waves_have_their_crests() {
        assert_eq!(of(0.0, 2.0).sin().hi, 1.0);
        assert!(of(0.0, 1.5).sin().hi < 1.0);
        assert_eq!(of(-0.1, 0.1).cos().hi, 1.0);
        assert_eq!(of(3.0, 3.3).cos().lo, -1.0);
        assert_eq!(of(1.5, 1.6).tan(), Interval::WHOLE);
        assert_eq!(of(4.0, 5.0).sin().lo, -1.0);
        for i in -400..400 {
            let x = of(f64::from(i) * 0.037, f64::from(i) * 0.037 + 0.9);
            for k in 0..10 {
                let y = x.lo + (x.hi - x.lo) * f64::from(k) / 9.0;
                assert!(x.sin().contains(y.sin()) && x.cos().contains(y.cos()), "{x:?} {y}");
                assert!(x.tan().contains(y.tan()) && x.tanh().contains(y.tanh()));
            }
        }
    }
}
