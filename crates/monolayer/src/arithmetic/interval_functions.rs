//! The elementary functions of intervals.
//!
//! CORE-MATH returns the float nearest to the exact value, so the exact value lies strictly between that float's
//! neighbors; values known to be exact (e^0 = 1) are left alone.

use std::f64::consts::PI;

use super::{Interval, Number};

/// The interval between the neighbors of a correctly rounded value.
fn around(nearest: f64) -> Interval {
    if nearest.is_nan() {
        return Interval::WHOLE;
    }
    Interval::new(nearest.next_down(), nearest.next_up())
}

/// The value at `x` of a function with `f(0) = 0` and no other zero that is a float.
fn through_origin(f: fn(f64) -> f64, x: f64) -> Interval {
    if x == 0.0 { Interval::point(0.0) } else { around(f(x)) }
}

/// The enclosure of an increasing function from those of its values at the bounds.
fn increasing(x: Interval, f: impl Fn(f64) -> Interval) -> Interval {
    Interval::new(f(x.lo()).lo(), f(x.hi()).hi())
}

impl Interval {
    /// An enclosure of pi: the float `PI` lies below it.
    pub fn pi() -> Self {
        Self::new(PI, PI.next_up())
    }

    /// The exponential.
    #[must_use]
    pub fn exp(self) -> Self {
        let exp = |x| if x == 0.0 { Self::point(1.0) } else { around(core_math::exp(x)) };
        increasing(self, exp).clamp(0.0, f64::INFINITY)
    }

    /// The natural logarithm; the whole line unless all members are >= 0.
    #[must_use]
    pub fn ln(self) -> Self {
        if self.lo() < 0.0 || self.hi() == 0.0 {
            return Self::WHOLE;
        }
        increasing(self, |x| if x == 1.0 { Self::point(0.0) } else { around(core_math::log(x)) })
    }

    /// The hyperbolic tangent.
    #[must_use]
    pub fn tanh(self) -> Self {
        increasing(self, |x| through_origin(core_math::tanh, x)).clamp(-1.0, 1.0)
    }

    /// The sine.
    #[must_use]
    pub fn sin(self) -> Self {
        let quarter = Self::point(0.25);
        let turns = self / (Self::pi() * Self::point(2.0));
        self.wave(|x| through_origin(core_math::sin, x), turns - quarter, turns + quarter)
    }

    /// The cosine.
    #[must_use]
    pub fn cos(self) -> Self {
        let turns = self / (Self::pi() * Self::point(2.0));
        self.wave(|x| around(core_math::cos(x)), turns, turns + Self::point(0.5))
    }

    /// Sine or cosine `f`: monotone but for crests and troughs, where `crest` and `trough` are integers.
    fn wave(self, f: impl Fn(f64) -> Self, crest: Self, trough: Self) -> Self {
        if !self.is_bounded() {
            return Self::new(-1.0, 1.0);
        }
        let ends = f(self.lo()).hull(f(self.hi())).clamp(-1.0, 1.0);
        let lo = if trough.may_be_integer() { -1.0 } else { ends.lo() };
        let hi = if crest.may_be_integer() { 1.0 } else { ends.hi() };
        Self::new(lo, hi)
    }

    /// The tangent; the whole line where a pole may be inside.
    #[must_use]
    pub fn tan(self) -> Self {
        let half_turns = self / Self::pi() - Self::point(0.5);
        if !self.is_bounded() || half_turns.may_be_integer() {
            return Self::WHOLE;
        }
        increasing(self, |x| through_origin(core_math::tan, x))
    }

    /// The power with an integer exponent; the whole line for a negative one where 0 is inside.
    #[must_use]
    pub fn powi(self, exponent: i32) -> Self {
        if exponent < 0 {
            return Self::point(1.0) / self.power(exponent.unsigned_abs());
        }
        self.power(exponent.unsigned_abs())
    }

    /// The power with a natural exponent, by squaring from the highest bit down.
    fn power(self, exponent: u32) -> Self {
        if exponent.is_multiple_of(2) && self.lo() < 0.0 {
            return Number::abs(&self).power(exponent);
        }
        // Odd or of numbers >= 0: increasing, and each bound is a power of one number.
        let bound = |x: f64| {
            let x = Self::point(x);
            (0..32 - exponent.leading_zeros()).rev().fold(Self::point(1.0), |y, bit| {
                let y = y.square();
                if exponent >> bit & 1 == 1 { y * x } else { y }
            })
        };
        if !self.is_bounded() {
            return self.unbounded_power(exponent);
        }
        increasing(self, bound)
    }

    /// The power of a half line or the whole line, odd exponents or members >= 0 only.
    fn unbounded_power(self, exponent: u32) -> Self {
        if exponent == 0 {
            return Self::point(1.0);
        }
        let end = |x: f64| if x.is_infinite() { Self::WHOLE } else { Self::point(x).power(exponent) };
        Self::new(end(self.lo()).lo(), end(self.hi()).hi())
    }

    /// The power with a real exponent, with 0^0 = 1, for members >= 0; the whole line where it may be undefined.
    #[must_use]
    pub fn powf(self, exponent: Self) -> Self {
        if self.lo() < 0.0 || self.lo() == 0.0 && exponent.lo() < 0.0 {
            return Self::WHOLE;
        }
        // Monotone in the base and in the exponent, each for a fixed other one: the extremes are at the corners.
        let power = |x: f64, y: f64| match (x, y) {
            (1.0, _) | (_, 0.0) => Self::point(1.0),
            (0.0, _) => Self::point(0.0),
            _ => around(core_math::pow(x, y)),
        };
        let (low, high) = (exponent.lo(), exponent.hi());
        let ends = |x: f64| power(x, low).hull(power(x, high));
        ends(self.lo()).hull(ends(self.hi())).clamp(0.0, f64::INFINITY)
    }

    /// The smaller of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self::new(self.lo().min(other.lo()), self.hi().min(other.hi()))
    }

    /// The sign: -1, 0 or 1.
    #[must_use]
    pub fn sign(self) -> Self {
        let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
        Self::new(sign(self.lo()), sign(self.hi()))
    }

    /// The step: 0 below 0, and 1 from 0 on.
    #[must_use]
    pub fn step(self) -> Self {
        let step = |x: f64| if x >= 0.0 { 1.0 } else { 0.0 };
        Self::new(step(self.lo()), step(self.hi()))
    }

    /// The part between two bounds that the exact value is known to respect.
    #[must_use]
    pub fn clamp(self, lo: f64, hi: f64) -> Self {
        Self::new(self.lo().clamp(lo, hi), self.hi().clamp(lo, hi))
    }

    /// Whether an integer may be inside.
    fn may_be_integer(self) -> bool {
        self.hi().floor() >= self.lo().ceil()
    }
}
