//! `monolayer demo`: the tour on the embedded example.

use anyhow::Result;
use monolayer::Dataset;
use monolayer::dataset::Format;

use super::{Outcome, Shared};

/// The tour on an embedded example
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer demo")]
pub struct Args {}

/// A small corpus, written for this.
const EXAMPLE: &str = include_str!("../../../../examples/harbor.conll");

pub fn run(_args: &Args, _shared: &Shared) -> Result<Outcome> {
    let _data = Dataset::read("harbor.conll", Format::Conll, EXAMPLE.as_bytes())?;
    todo!()
}
