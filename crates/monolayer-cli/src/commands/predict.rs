//! `monolayer predict`: run a model on a dataset.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::data;
use monolayer::model::Predictions;
use monolayer::{AnyModel, Dataset};
use serde_json::json;

use super::{DataArgs, Outcome, Shared};
use crate::output::Progress;

/// Run a model on a dataset
///
/// Prints one line per token, with the token and its label (or its output vector), and a blank line between sequences. If
/// the data has labels, the accuracy is printed to stderr.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer predict model test.conll --json")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    /// Training data: also print the accuracy of giving each word its most frequent label in this data
    #[arg(long, value_name = "DATA")]
    majority: Option<String>,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let data = args.data.open(shared)?;
    let (predictions, names) = predict(&args.model, &data, shared)?;
    let names = names.as_deref();
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
    if let Some(source) = &args.majority {
        let majority = data::word_majority(&Dataset::open(source)?, &data);
        json["word_majority"] = majority.into();
        if let (Some(majority), false) = (majority, shared.quiet) {
            eprintln!("accuracy {majority:.6} by each word's majority label in {source}");
        }
    }
    let text = if shared.json { String::new() } else { lines(&data, &predictions, names) };
    Ok(Outcome::done(json, text))
}

/// What the model says, and the names of its labels. Exact models are evaluated in rational arithmetic.
fn predict(dir: &Path, data: &Dataset, shared: &Shared) -> Result<(Predictions, Option<Vec<String>>)> {
    let model = AnyModel::open(dir)?;
    let progress = Progress::new(shared, "predicting", data.tokens());
    let predictions = model.predict_with(data, &|tokens| progress.add(tokens))?;
    Ok((predictions, model.label_names().map(<[String]>::to_vec)))
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
