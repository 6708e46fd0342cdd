//! `monolayer report`: one HTML page about models and runs.

use std::path::PathBuf;

use anyhow::Result;
use monolayer::fs::replace_file;
use monolayer_lab::report::{self, Data};
use serde_json::json;

use super::{Outcome, READS, ReadArgs, Shared, WRITES};
use crate::output::count;

/// Write one HTML page about models and runs: main results, figures, and a guided tour of each model
///
/// The page is self-contained: it opens from disk and needs no network. In the tour, pick or type a sentence and point at a
/// word. The page says why it has its label: its context id, the curve g(y) that the id is read from, the label's score along the
/// id, what each hidden unit adds, and the margin beside its error bound. Then switch attention off, take hardmax, move kappa or
/// give a word another label, and see what becomes of the rest. A model of a text recites; an approximated function has tokens to drag.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer report model runs/separation --data train.conll --out page.html")]
pub struct Args {
    /// Directories of models, experiments and training runs
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Dataset whose sentences the tours show (not needed for models of the embedded corpus, of a text, or of a function)
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "report.html", help_heading = WRITES)]
    out: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let dataset = args.read.open_some(args.data.as_deref(), shared)?;
    let data = dataset.as_ref().zip(args.data.as_deref()).map(|(dataset, source)| Data { dataset, source });
    let page = report::page(&args.directories, data.as_ref())?;
    replace_file(&args.out, page.as_bytes())?;
    let json = json!({ "out": args.out, "bytes": page.len(), "sections": args.directories.len() });
    let text = format!("{}: {} bytes; open it in a browser\n", args.out.display(), count(page.len()));
    Ok(Outcome::done(json, text))
}
