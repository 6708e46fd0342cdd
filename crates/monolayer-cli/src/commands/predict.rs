//! `monolayer predict`: run a model on a dataset.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::data::{self, Labels, Split};
use monolayer::model::certificate_file::claimed_labels;
use monolayer::model::{AttentionSums, Predictions};
use monolayer::{AnyModel, Dataset, Error};
use serde_json::{Value, json};

use super::generate::split;
use super::{DOES, DataArgs, Outcome, READS, Shared};
use crate::output::{Progress, say};

/// Run a model on a dataset
///
/// DATA is a file, a task, or a sentence: an argument with white space that is no file. Standard input (-) is text without
/// labels, a sentence per line, unless --format says otherwise. Prints one line per token, with the token and its label (or its
/// output vector), and a blank line between sequences. If the data has labels, the accuracy is printed to stderr.
///
/// Certificates speak of programs that form plain sums. So does this one, but for sequences of 4,096 tokens and more whose
/// labels no certificate in DIR is about: there attention takes linear time, and a line on stderr says so.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer predict model test.conll --json
         monolayer predict model \"May sails in May .\"")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    /// A sentence in place of DATA, of one word or more
    #[arg(long, value_name = "SENTENCE", conflicts_with_all = ["data", "format", "text"], help_heading = READS)]
    sentence_text: Option<String>,
    /// Training data: also print the accuracy of giving each word its most frequent label in this data
    #[arg(long, value_name = "DATA", help_heading = READS)]
    majority: Option<String>,
    /// How attention is summed: by plain sums, of which certificates speak, or in linear time where sequences are long
    #[arg(long, value_parser = ["auto", "plain", "linear"], default_value = "auto", help_heading = DOES)]
    attention: String,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let model = AnyModel::open(&args.model)?;
    let data = args.open(split(&model), model.source().text().is_some(), shared)?;
    let outside = warn_outside(&model, &data, shared);
    let progress = Progress::new(shared, "predicting", data.tokens(), "tokens");
    // Exact models are evaluated in rational arithmetic.
    let sums = args.sums(&model, &data)?;
    let predictions = model.predict_by(&data, sums, &|tokens| progress.add(tokens))?;
    drop(progress);
    if sums == AttentionSums::LinearTime {
        let what = "attention in linear time (long sequences): certificates do not speak of labels computed this way";
        say(shared, &format!("{what}; --attention plain forms plain sums"));
    }
    let names = model.label_names();
    let accuracy = predictions.accuracy(&data, names);

    let sequences_right = predictions.sequences_right(&data, names);
    let mut json = json!({
        "sequences": data.sequences(),
        "tokens": data.tokens(),
        "free": data.free(),
        "outside": outside,
        "accuracy": accuracy,
        "sequences_right": sequences_right,
        "attention": if sums == AttentionSums::Plain { "plain sums" } else { "linear time" },
    });
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
    if let Some(accuracy) = accuracy {
        let free = data.free();
        let note = if free > 0 { format!(", {free} more are free") } else { String::new() };
        let (right, all) = (sequences_right.unwrap_or(0), data.sequences());
        let labeled = data.tokens() - free;
        say(shared, &format!("accuracy {accuracy:.6} on {labeled} tokens{note}; {right} of {all} sequences all right"));
    }
    if let Some(source) = &args.majority {
        let majority = data::word_majority(&args.data.read.open(source, shared)?, &data);
        json["word_majority"] = majority.into();
        if let Some(majority) = majority {
            say(shared, &format!("accuracy {majority:.6} by each word's majority label in {source}"));
        }
    }
    let text = if shared.json { String::new() } else { lines(&data, &predictions, names) };
    Ok(Outcome::done(json, text))
}

/// Warns of sequences that a model was not made for, and counts them; nothing where it is not known what it was made for.
pub fn warn_outside(model: &AnyModel, data: &Dataset, shared: &Shared) -> Option<usize> {
    let domain = model.source().domain()?;
    domain.warning(data).iter().for_each(|warning| say(shared, &format!("warning: {warning}")));
    Some(domain.outside(data))
}

impl Args {
    /// How attention is summed. Plain where a certificate of the directory is about the labels of this data.
    fn sums(&self, model: &AnyModel, data: &Dataset) -> Result<AttentionSums> {
        let linear = model.linear_sums(data);
        if self.attention != "auto" || linear == AttentionSums::Plain {
            return Ok(if self.attention == "plain" { AttentionSums::Plain } else { linear });
        }
        let claimed = claimed_labels(&self.model, &model.config().dtype)?;
        Ok(if claimed.is_some_and(|claimed| claimed.hash == data.hash()) { AttentionSums::Plain } else { linear })
    }

    /// The data to run the model on, of tokens as the model reads them; `whole` if a text is one sequence to it.
    fn open(&self, split: Split, whole: bool, shared: &Shared) -> Result<Dataset> {
        let sentence = |text: &str| {
            let data = Dataset::read_text("the sentence", text.as_bytes(), split)?;
            Ok(Dataset { labels: Labels::None, ..data })
        };
        if let Some(text) = &self.sentence_text {
            return sentence(text);
        }
        match self.data.data.as_deref().filter(|_| self.data.read.format.is_none()) {
            Some("-") => {
                let text = io::read_to_string(io::stdin()).map_err(|e| Error::io("<stdin>", e))?;
                if whole { sentence(&text) } else { Ok(Dataset::from_lines(&text)?) }
            }
            Some(text) if !text.starts_with("task:") && !Path::new(text).exists() => {
                if text.contains(char::is_whitespace) {
                    return sentence(text);
                }
                let what = format!("{text:?} is no file, and one word is not taken for a sentence");
                Err(Error::setting(what, "check the path; for a sentence of one word, use --sentence-text").into())
            }
            _ => Ok(self.data.open_as(split, shared)?),
        }
    }
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
                    let name = on_a_line(&names.unwrap_or_default()[labels[t] as usize]);
                    let _ = writeln!(text, "{}\t{name}", on_a_line(&data.token_text(t)));
                }
                Predictions::Outputs(outputs) => {
                    let numbers: Vec<String> = outputs.row(t).iter().map(f64::to_string).collect();
                    let _ = writeln!(text, "{}\t{}", on_a_line(&data.token_text(t)), numbers.join(" "));
                }
            }
        }
    }
    text
}

/// A token as it is, or in quotes as in JSON where it would break its line or not be seen.
fn on_a_line(token: &str) -> Cow<'_, str> {
    let plain = !token.contains(char::is_control) && token.trim() == token;
    if plain { token.into() } else { Value::from(token).to_string().into() }
}
