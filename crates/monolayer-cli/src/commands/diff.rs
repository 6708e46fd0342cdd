//! `monolayer diff`: what changed from one model to another.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use monolayer::edit::difference::{Compared, Stated};
use monolayer::{AnyModel, Dataset, Error, Predictions};
use serde_json::{Value, json};

use super::data_args::ReadArgs;
use super::edit::report;
use super::{Outcome, READS, Shared, place_json};
use crate::output::count;

/// Say what changed from one model to another
///
/// For an edited model and the one that it was edited from: where labels can change, as difference.json states it (`monolayer verify
/// --against` checks that). For other models: which of their parts differ. With DATA, also the tokens that get other labels.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer diff model edited train.conll")]
pub struct Args {
    /// The model directory before
    #[arg(value_name = "DIR")]
    before: PathBuf,
    /// The model directory after
    #[arg(value_name = "DIR2")]
    after: PathBuf,
    /// Data to compare labels on
    #[arg(value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let (before, after) = (AnyModel::open(&args.before)?, AnyModel::open(&args.after)?);
    let data = args.read.open_some(args.data.as_deref(), shared)?;
    let compared = Compared::of(&args.before, &before, &args.after, &after)?;
    let first = usize::from(before.config().start.is_some());
    let mut text = String::new();
    match &compared.stated {
        Some(Stated { changes, .. }) => {
            changes.iter().for_each(|change| {
                let _ = writeln!(text, "{}", report::change(change, first));
            });
            let plural = if changes.len() == 1 { "" } else { "s" };
            let _ = writeln!(
                text,
                "{} change{plural}, as difference.json states; monolayer verify --against checks it",
                count(changes.len())
            );
        }
        None if compared.parts.is_empty() => text += "the same numbers, words and labels\n",
        None => text += "no difference.json speaks of these two models\n",
    }
    for part in &compared.parts {
        let _ = writeln!(text, "differs: {part}");
    }
    let mut json = json!({
        "changes": compared.stated.as_ref().map(|stated| &stated.changes),
        "parts": compared.parts,
        "tokens": Value::Null,
    });
    if let Some(data) = &data {
        let tokens = tokens(&before, &after, data)?;
        for (t, from, to) in tokens.iter().take(20) {
            let _ = writeln!(text, "{}: {:?}: {from} -> {to}", data.location(*t), data.token_text(*t));
        }
        let _ = writeln!(text, "{} of {} tokens get another label", count(tokens.len()), count(data.tokens()));
        let token = |(t, from, to): &(usize, String, String)| {
            let mut json = place_json(data, *t);
            json["from"] = from.as_str().into();
            json["to"] = to.as_str().into();
            json
        };
        json["tokens"] = tokens.iter().map(token).collect();
    }
    Ok(Outcome::done(json, text))
}

/// The tokens of a dataset whose label differs, with both.
fn tokens(before: &AnyModel, after: &AnyModel, data: &Dataset) -> Result<Vec<(usize, String, String)>> {
    let labels = |model: &AnyModel| -> Result<Vec<String>> {
        match (model.predict(data)?, model.label_names()) {
            (Predictions::Labels(labels), Some(names)) => {
                Ok(labels.iter().map(|&l| names[l as usize].clone()).collect())
            }
            _ => Err(Error::mismatch("outputs that are vectors", "only labels are compared on data").into()),
        }
    };
    let pairs = labels(before)?.into_iter().zip(labels(after)?).enumerate();
    Ok(pairs.filter(|(_, (a, b))| a != b).map(|(t, (a, b))| (t, a, b)).collect())
}
