//! The functions of the language, over floats and over intervals, and where they are not defined.

use super::parse::{Binary, Unary};
use crate::arithmetic::{Interval, Number};

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A quotient, or a negative power, of 0.
    DivisionByZero,
    /// A logarithm of a number that is not positive.
    Logarithm,
    /// A square root of a negative number.
    Root,
    /// A power, with an exponent that is not a constant integer, of a negative number.
    NegativeBase,
    /// A tangent at an odd multiple of pi/2.
    Pole,
    /// A result beyond the largest float.
    Overflow,
}

/// Something that goes wrong for some arguments, or for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trouble {
    /// What.
    pub wrong: Wrong,
    /// For all arguments.
    pub certain: bool,
}

impl Trouble {
    fn if_some(some: bool, all: bool, wrong: Wrong) -> Option<Self> {
        (some || all).then_some(Self { wrong, certain: all })
    }
}

fn is_zero(x: Interval) -> bool {
    x == Interval::point(0.0)
}

/// Whether a function of one number may be undefined for members of `x`.
pub(super) fn unary_trouble(function: Unary, x: Interval) -> Option<Trouble> {
    match function {
        Unary::Log => Trouble::if_some(x.lo() <= 0.0, x.hi() <= 0.0, Wrong::Logarithm),
        Unary::Sqrt => Trouble::if_some(x.lo() < 0.0, x.hi() < 0.0, Wrong::Root),
        Unary::Tan => Trouble::if_some(x.tan() == Interval::WHOLE, false, Wrong::Pole),
        _ => None,
    }
}

/// Whether a function of two numbers may be undefined for members of `x` and `y`.
pub(super) fn binary_trouble(function: Binary, x: Interval, y: Interval) -> Option<Trouble> {
    match function {
        Binary::Div => Trouble::if_some(y.contains(0.0), is_zero(y), Wrong::DivisionByZero),
        Binary::Pow if x.lo() < 0.0 => Trouble::if_some(true, x.hi() < 0.0, Wrong::NegativeBase),
        Binary::Pow => {
            Trouble::if_some(x.lo() == 0.0 && y.lo() < 0.0, is_zero(x) && y.hi() < 0.0, Wrong::DivisionByZero)
        }
        _ => None,
    }
}

/// Whether a power with an integer exponent may be undefined for members of `x`.
pub(super) fn power_trouble(x: Interval, exponent: i32) -> Option<Trouble> {
    Trouble::if_some(exponent < 0 && x.contains(0.0), exponent < 0 && is_zero(x), Wrong::DivisionByZero)
}

/// Whether a result may lie, or certainly lies, beyond all floats.
pub(super) fn overflow(result: Interval) -> Option<Trouble> {
    Trouble::if_some(!result.is_bounded(), result.mignitude() >= f64::MAX, Wrong::Overflow)
}

/// The members that are at least 0; 0 if there are none.
fn nonnegative(x: Interval) -> Interval {
    x.clamp(0.0, f64::INFINITY)
}

/// An enclosure of the values of a function of one number, where it is defined.
pub(super) fn unary(function: Unary, x: Interval) -> Interval {
    match function {
        Unary::Neg => -x,
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tan => x.tan(),
        Unary::Exp => x.exp(),
        Unary::Log => nonnegative(x).ln(),
        Unary::Sqrt => Number::sqrt(&nonnegative(x)),
        Unary::Abs => Number::abs(&x),
        Unary::Tanh => x.tanh(),
        Unary::Sign => x.sign(),
        Unary::Instruction => x.step(),
    }
}

/// An enclosure of the values of a function of two numbers, where it is defined.
pub(super) fn binary(function: Binary, x: Interval, y: Interval) -> Interval {
    match function {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Pow => nonnegative(x).powf(y),
        Binary::Min => x.min(y),
        Binary::Max => Number::max(&x, &y),
    }
}

/// A function of one float; NaN where it is undefined.
pub(super) fn unary_float(function: Unary, x: f64) -> f64 {
    match function {
        Unary::Neg => -x,
        Unary::Sin => core_math::sin(x),
        Unary::Cos => core_math::cos(x),
        Unary::Tan => core_math::tan(x),
        Unary::Exp => core_math::exp(x),
        Unary::Log => core_math::log(x),
        Unary::Sqrt => x.sqrt(),
        Unary::Abs => x.abs(),
        Unary::Tanh => core_math::tanh(x),
        Unary::Sign if x == 0.0 => 0.0,
        Unary::Sign => x.signum(),
        Unary::Instruction => f64::from(u8::from(x >= 0.0)),
    }
}

/// A function of two floats; NaN or infinite where it is undefined.
pub(super) fn binary_float(function: Binary, x: f64, y: f64) -> f64 {
    match function {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Pow if x < 0.0 => f64::NAN,
        Binary::Pow => core_math::pow(x, y),
        Binary::Min => x.min(y),
        Binary::Max => x.max(y),
    }
}

/// An integer power of a float.
pub(super) fn power_float(x: f64, exponent: i32) -> f64 {
    if exponent == 2 { x * x } else { core_math::pow(x, f64::from(exponent)) }
}
