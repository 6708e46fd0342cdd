//! `monolayer predict`: run a model on a dataset.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use monolayer::model::Predictions;
use monolayer::{AnyModel, Dataset, with_model};
use serde_json::json;

use super::{DataArgs, Outcome, Shared};
use crate::output::Progress;

/// Run a model on a dataset
///
/// Prints one line per token, the token and its label (or its output vector), with a blank line between sequences. The
/// accuracy, for data with labels, goes to stderr.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer predict model test.conll --json")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let model = AnyModel::open(&args.model)?;
    let data = args.data.open(shared)?;
    let progress = Progress::new(shared, "predicting", data.tokens());
    let predictions = model.predict(&data, &|tokens| progress.add(tokens))?;
    drop(progress);
    let names: Option<&[String]> = with_model!(&model, m => m.head.as_ref().map(|h| h.labels.as_slice()));
    let accuracy = predictions.accuracy(&data, names);

    let mut json = json!({ "sequences": data.sequences(), "tokens": data.tokens(), "accuracy": accuracy });
    match &predictions {
        Predictions::Labels(labels) => {
            let names = names.unwrap_or_default();
            let sequence = |r: std::ops::Range<usize>| labels[r].iter().map(|&l| names[l as usize].as_str()).collect();
            let list: Vec<Vec<&str>> = data.ranges().map(sequence).collect();
            json["labels"] = list.into();
        }
        Predictions::Outputs(outputs) => {
            let sequence = |r: std::ops::Range<usize>| r.map(|t| outputs.row(t)).collect();
            let list: Vec<Vec<&[f64]>> = data.ranges().map(sequence).collect();
            json["outputs"] = json!(list);
        }
    }
    if let (Some(accuracy), false) = (accuracy, shared.quiet) {
        eprintln!("accuracy {accuracy:.6} on {} tokens", data.tokens());
    }
    let text = if shared.json { String::new() } else { lines(&data, &predictions, names) };
    Ok(Outcome::done(json, text))
}

/// One line per token, a blank line between sequences.
fn lines(data: &Dataset, predictions: &Predictions, names: Option<&[String]>) -> String {
    let mut text = String::new();
    for (i, range) in data.ranges().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        for t in range {
            match predictions {
                Predictions::Labels(labels) => {
                    let name = &names.unwrap_or_default()[labels[t] as usize];
                    let _ = writeln!(text, "{}\t{name}", data.token_text(t));
                }
                Predictions::Outputs(outputs) => {
                    let numbers: Vec<String> = outputs.row(t).iter().map(f64::to_string).collect();
                    let _ = writeln!(text, "{}\t{}", data.token_text(t), numbers.join(" "));
                }
            }
        }
    }
    text
}
