//! Numbers that formulas can be evaluated with: plain floats, outward-rounded intervals, big-float balls.
//!
//! A formula written once over [`Number`] is a reference implementation with `f32` or `f64`, and a proof with
//! [`Interval`](super::Interval) or [`Ball`](super::Ball): their results are enclosures, sets that contain the exact result.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A real number as far as a computation knows it: a float, or an enclosure of the exact value.
///
/// Operators take the left operand by value and the right one by value or by reference: `a.clone() * b + c`.
pub trait Number:
    Clone
    + Debug
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + for<'a> Add<&'a Self, Output = Self>
    + for<'a> Sub<&'a Self, Output = Self>
    + for<'a> Mul<&'a Self, Output = Self>
    + for<'a> Div<&'a Self, Output = Self>
{
    /// The number `x`; exact for enclosures, rounded to nearest for `f32`.
    fn from_f64(x: f64) -> Self;

    /// Zero.
    fn zero() -> Self {
        Self::from_f64(0.0)
    }

    /// One.
    fn one() -> Self {
        Self::from_f64(1.0)
    }

    /// The exponential.
    #[must_use]
    fn exp(&self) -> Self;

    /// The natural logarithm.
    #[must_use]
    fn ln(&self) -> Self;

    /// The square root.
    #[must_use]
    fn sqrt(&self) -> Self;

    /// The absolute value.
    #[must_use]
    fn abs(&self) -> Self;

    /// The larger of two numbers; for enclosures, an enclosure of the larger of the two exact values.
    #[must_use]
    fn max(&self, other: &Self) -> Self;

    /// A point inside, as an exact number: shifting softmax scores by it widens nothing.
    #[must_use]
    fn midpoint(&self) -> Self;

    /// Whether the number is below the other one, whatever exact values the two enclose.
    fn certainly_less(&self, other: &Self) -> bool;

    /// Whether the two are the same number, whatever exact values they enclose.
    fn certainly_equal(&self, other: &Self) -> bool;
}

/// Floats compute as IEEE says; their functions are correctly rounded, hence the same on every machine.
macro_rules! plain_float {
    ($float:ident, $exp:path, $ln:path) => {
        impl Number for $float {
            fn from_f64(x: f64) -> Self {
                x as $float
            }

            fn exp(&self) -> Self {
                $exp(*self)
            }

            fn ln(&self) -> Self {
                $ln(*self)
            }

            fn sqrt(&self) -> Self {
                $float::sqrt(*self)
            }

            fn abs(&self) -> Self {
                $float::abs(*self)
            }

            fn max(&self, other: &Self) -> Self {
                $float::max(*self, *other)
            }

            fn midpoint(&self) -> Self {
                *self
            }

            fn certainly_less(&self, other: &Self) -> bool {
                self < other
            }

            fn certainly_equal(&self, other: &Self) -> bool {
                self == other
            }
        }
    };
}

plain_float!(f32, core_math::expf, core_math::logf);
plain_float!(f64, core_math::exp, core_math::log);

/// Operators on references and mixtures, from those on a pair of references.
macro_rules! forward_operators {
    ($type:ty: $($trait:ident $method:ident),+) => {$(
        impl std::ops::$trait for $type {
            type Output = $type;
            fn $method(self, other: $type) -> $type {
                std::ops::$trait::$method(&self, &other)
            }
        }

        impl std::ops::$trait<&$type> for $type {
            type Output = $type;
            fn $method(self, other: &$type) -> $type {
                std::ops::$trait::$method(&self, other)
            }
        }
    )+};
}
pub(crate) use forward_operators;
