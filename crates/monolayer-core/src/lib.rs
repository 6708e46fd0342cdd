//! The trusted core of the checker: it reads the files and judges claims about them in integer arithmetic.
//!
//! There are no floats in this crate, no unsafe code, and no dependency but a hash function. A number of a file is a
//! [`Dyadic`], an integer times a power of two, exactly. NaN, infinity and overflow do not exist here: what could
//! overflow in a covered program has no enclosure, and a token without an enclosure is unknown.
//!
//! - [`read`]: model directories, certificates, datasets.
//! - [`rules`]: one lemma per function: sums in any order, exponentials, softmax, hidden units; and the judge of tokens.
//! - [`claims`]: what is asked, what the architecture can see, and the verdict on every claim.
//! - [`exact`]: big integers, real arithmetic to any number of bits, exact models, expressions and distances.
#![forbid(unsafe_code)]
#![allow(clippy::return_self_not_must_use)]

pub mod claims;
pub mod enclosures;
pub mod exact;
pub mod model;
pub mod number;
pub mod parallel;
pub mod read;
pub mod rules;

pub use number::{Dyadic, Format, Stored};
