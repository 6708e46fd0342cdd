//! The independent checker of monolayer's certificates.
//!
//! It reads a model directory and a dataset, recomputes everything from the numbers, and decides for every token whether
//! its label wins in every program that the certificate's assumptions cover. It shares no code with the compiler.
//!
//! Tokens are rows in memory, row-major `[tokens, d]`; the paper writes them as columns.
//!
//! - [`read`], [`dataset`], [`model`], [`certificate`]: the files.
//! - [`rounding`], [`dot`]: midpoints and radii, and the any-order error bound of a dot product.
//! - [`attention`], [`feed_forward`], `dense`, [`forward`]: eqs. 2 and 3 in enclosures.
//! - [`interval`], [`expression`], [`hinges`], [`distance`]: how far a model is from a function.
//! - [`big`]: real arithmetic to as many bits as it takes.
//! - [`decide`], [`plan`], [`labels`], `numbers`, [`mapping`], [`rank`], [`mod@verify`]: from enclosures to verdicts.

pub mod attention;
pub mod big;
pub mod certificate;
pub mod context;
pub mod dataset;
pub mod decide;
mod dense;
pub mod distance;
pub mod dot;
pub mod error;
pub mod expression;
pub mod feed_forward;
pub mod forward;
pub mod hinges;
pub mod interval;
pub mod kernel;
pub mod labels;
pub mod mapping;
pub mod model;
mod numbers;
pub mod plan;
pub mod rank;
pub mod read;
pub mod readout;
pub mod report;
pub mod rounding;
pub mod verify;

pub use dataset::Format;
pub use report::{Report, Verdict};
pub use rounding::Precision;
pub use verify::{Options, verify};
