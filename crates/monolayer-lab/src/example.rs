//! A small corpus, written for this project: names that are also words, with their labels.

use monolayer::data::Format;
use monolayer::{Dataset, Result};

/// The corpus as a file of columns.
pub const TEXT: &str = include_str!("../../../examples/harbor.conll");

/// The corpus.
pub fn dataset() -> Result<Dataset> {
    Dataset::read("harbor.conll", Format::Conll, TEXT.as_bytes())
}
