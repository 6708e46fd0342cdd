//! Real arithmetic, exactly or to any number of bits: big integers, intervals, whole models, expressions and distances, ranks.
//!
//! - [`big`]: integers of any size.
//! - [`real`]: intervals of big floats, and fractions as files have them.
//! - [`functions`]: e^x, sine and the like of intervals.
//! - [`forward`]: models in real arithmetic.
//! - [`expression`]: the functions of distance claims, over boxes.
//! - [`distance`]: d_p between a model and a function; `hinges` are its feed-forward blocks.

#![allow(clippy::return_self_not_must_use)]

pub mod big;
pub mod distance;
pub mod expression;
pub mod forward;
pub mod functions;
mod hinges;
pub mod real;
