//! Real arithmetic, exactly or to any number of bits: big integers, intervals, whole models, expressions and distances, ranks.
//!
//! - [`big`]: integers of any size.
//! - [`real`]: intervals of big floats, and fractions.
//! - [`functions`]: e^x, sine and the like of intervals.

pub mod big;
pub mod distance;
pub mod expression;
pub mod forward;
pub mod functions;
mod hinges;
pub mod rank;
pub mod real;
