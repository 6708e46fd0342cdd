//! `monolayer report`: one HTML page about models and runs.

use std::path::PathBuf;

use anyhow::Result;
use monolayer::Dataset;
use monolayer::fs::replace_file;
use monolayer_lab::report::{self, Data};
use serde_json::json;

use super::{Outcome, Shared};
use crate::output::count;

/// One HTML page about models and runs: headline numbers, figures, and a tour of each compiled model
///
/// The page is complete: it opens from disk, asks nothing of the network, follows the light or dark setting of its reader, and
/// prints. In the tour, pick a sentence or type one and point at a word: its context id, the Boltzmann curve g(y), the units
/// that fire, the margin against its error bound, the nearest other context in words.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer report model runs/separation --data train.conll --out page.html")]
pub struct Args {
    /// Directories: models, experiments, trainings
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// The dataset whose sentences the tours show (a model of the embedded example needs none)
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let dataset = args.data.as_deref().map(Dataset::open).transpose()?;
    if let (Some(data), false) = (&dataset, shared.quiet) {
        data.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    let data = dataset.as_ref().zip(args.data.as_deref()).map(|(dataset, source)| Data { dataset, source });
    let page = report::page(&args.directories, data.as_ref())?;
    replace_file(&args.out, page.as_bytes())?;
    let json = json!({ "out": args.out, "bytes": page.len(), "sections": args.directories.len() });
    let text = format!("{}: {} bytes; open it in a browser\n", args.out.display(), count(page.len()));
    Ok(Outcome::done(json, text))
}
