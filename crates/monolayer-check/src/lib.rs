//! The independent checker of monolayer's certificates: what is around its trusted core.
//!
//! `monolayer-core` reads the files and judges, in integers, without floats. This crate converts what the core does not
//! read (arrays, synthetic tasks, vectors in other spellings) to the canonical form of a dataset, asks the core, and tells
//! people what it found. Nothing here decides anything: a fault here can spoil the data that is judged, and then its hash is
//! another one.
//!
//! - [`convert`], [`source`]: datasets in any container.
//! - [`options`], [`mod@verify`]: what is asked.
//! - [`tokens`], [`report`], `fill`, `witness`: what was found.

pub mod convert;
pub mod error;
mod fill;
pub mod options;
pub mod report;
pub mod source;
pub mod tokens;
pub mod verify;
mod witness;

pub use options::{Format, Options, Precision};
pub use report::{Report, Verdict};
pub use tokens::{TokenVerdict, judge_tokens};
pub use verify::verify;
