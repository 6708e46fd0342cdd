//! `monolayer bench memorize`: against a PyTorch peer, and growth.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use monolayer::data::zipf_corpus;
use monolayer::{Compiled, Dataset, Memorizer};
use serde_json::json;

use super::{Outcome, peer};
use crate::commands::{DOES, READS};
use crate::output::{count, table};

/// Memorizing a corpus, compared with three epochs of training in PyTorch, and how its time grows on generated corpora
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench memorize --data train.conll")]
pub struct Args {
    /// Corpus; without one, only generated corpora are used
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    /// Python with PyTorch, for the comparison (benches/peers/train_torch.py)
    #[arg(long, value_name = "PYTHON", requires = "data", help_heading = DOES)]
    python: Option<PathBuf>,
    /// Number of tokens of the largest generated corpus
    #[arg(long, default_value_t = 200_000, help_heading = DOES)]
    tokens: usize,
}

/// Seconds to memorize a dataset with default options, certificate included, file reading and writing excluded.
fn memorize_seconds(data: &Dataset) -> Result<(f64, Compiled)> {
    let start = Instant::now();
    let compiled = Memorizer::new().compile(data)?;
    Ok((start.elapsed().as_secs_f64(), compiled))
}

/// The hidden units of a compiled model.
fn hidden(compiled: &Compiled) -> usize {
    compiled.model().config().layers[0].hidden - compiled.spare()
}

pub fn run(args: &Args) -> Result<Outcome> {
    let (source, python, tokens) = (args.data.as_deref(), args.python.as_deref(), args.tokens);
    let mut json = json!({ "threads": rayon::current_num_threads() });
    let mut text = String::new();
    if let Some(source) = source {
        let (seconds, compiled) = memorize_seconds(&Dataset::open(source)?)?;
        json["corpus"] =
            json!({ "data": source, "seconds": seconds, "right": compiled.right(), "hidden": hidden(&compiled) });
        text += &format!("{source}: {} tokens right in {seconds:.2} s\n", compiled.right());
        if let Some(python) = python {
            let epoch = peer::fastest(python, source, 1, 3, 0)?.seconds_per_epoch;
            let ratio = seconds / (3.0 * epoch);
            json["peer"] = json!({ "seconds_per_epoch": epoch, "three_epochs": 3.0 * epoch, "ratio": ratio });
            text += &format!(
                "three epochs of the 1-layer PyTorch peer: {:.2} s, so memorizing takes {ratio:.2} of that\n",
                3.0 * epoch
            );
        }
    }
    let mut rows =
        vec![["tokens", "seconds", "times before", "hidden units", "right", "possible"].map(str::to_owned).to_vec()];
    let mut runs = Vec::new();
    let mut before: Option<f64> = None;
    for tokens in [tokens / 100, tokens / 10, tokens] {
        let data = zipf_corpus(tokens, 1);
        let (seconds, compiled) = memorize_seconds(&data)?;
        let (hidden, possible) = (hidden(&compiled), compiled.possible());
        let growth = before.map(|before| seconds / before);
        rows.push(vec![
            count(tokens),
            format!("{seconds:.2}"),
            growth.map_or(String::new(), |g| format!("{g:.1}")),
            count(hidden),
            count(compiled.right()),
            count(possible),
        ]);
        runs.push(json!({ "tokens": tokens, "seconds": seconds, "growth": growth, "hidden": hidden, "right": compiled.right(), "possible": possible }));
        before = Some(seconds);
    }
    json["growth"] = runs.into();
    text += &format!("made-up corpora, ten times the tokens each\n{}", table(&rows, &[]));
    Ok(Outcome::done(json, text))
}
