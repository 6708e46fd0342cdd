//! Numbers and what is done with them: floats, outward-rounded intervals of f64 and big-float balls behind one trait,
//! row-major matrices, and the fast loops over floats.

mod ball;
mod ball_functions;
mod exact_numbers;
pub(crate) mod float_model;
mod interval;
mod interval_functions;
pub mod kernels;
mod magnitude;
pub mod matrix;
mod number;
pub(crate) mod parallel;
pub mod rounding;
pub mod sign_codes;
pub(crate) mod softmax_error;
pub(crate) mod sorting;

pub use ball::Ball;
pub use exact_numbers::{arg_max, rational};
pub(crate) use exact_numbers::{binary16, gcd, is_prime};
pub use interval::Interval;
pub use magnitude::Magnitude;
pub use matrix::Matrix;
pub use number::Number;
pub(crate) use number::forward_operators;
