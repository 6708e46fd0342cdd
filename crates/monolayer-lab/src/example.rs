//! A small corpus, written for this project: names that are also words, with their labels.

use monolayer::data::Format;
use monolayer::{Dataset, Result};

/// The corpus as a file of columns: a copy of examples/harbor.conll, so that the package is complete. A test compares them.
pub const TEXT: &str = include_str!("harbor.conll");

/// The corpus.
pub fn dataset() -> Result<Dataset> {
    Dataset::read("harbor.conll", Format::Conll, TEXT.as_bytes())
}
