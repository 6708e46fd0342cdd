//! The independent checker of monolayer's certificates: what is around its trusted core.
//!
//! `monolayer-core` reads the files and judges, in integers, without floats. This crate converts what the core does not
//! read (arrays, synthetic tasks, vectors in other spellings) to the canonical form of a dataset, asks the core, and tells
//! people what it found. Nothing here decides anything: a fault here can spoil the data that is judged, and then its hash is
//! another one.
//!
//! - [`convert`], [`open_data`]: datasets in any container.
//! - [`options`], [`mod@verify`], `against`: what is asked.
//! - [`token_verdict`], [`report`], `token_report`, `enclosures`: what was found.

mod against;
pub mod convert;
mod enclosures;
pub mod error;
pub mod open_data;
pub mod options;
pub mod report;
mod token_report;
pub mod token_verdict;
pub mod verify;

pub use options::{Format, Options, Precision};
pub use report::{Report, Verdict};
pub use token_verdict::{TokenVerdict, judge_tokens};
pub use verify::{verify, verify_source};
