//! `monolayer explain`: one sequence through a model.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::data::Labels;
use monolayer::model::explain::{Neighbor, Trace};
use monolayer::{AnyModel, Dataset, Error};
use serde_json::{Value, json};

use super::predict::warn_outside;
use super::{Outcome, READS, ReadArgs, Shared};
use crate::output::table;

/// Trace one sequence through a model: context ids, active hidden units, scores, margins
///
/// The margin of a token is the lead of its label's score over the next one. With --data, the sentence whose context id is
/// closest is shown for each token.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer explain model \"May sails in May .\" --data train.conll")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// The words, separated by spaces
    #[arg(value_name = "SENTENCE")]
    sentence: String,
    /// Dataset in which to look for the closest other context
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
}

/// Units that a row names.
const SHOWN: usize = 4;

/// Reads a model of floats.
fn open(dir: &Path) -> Result<AnyModel> {
    let model = AnyModel::open(dir)?;
    if let AnyModel::Exact(_) = model {
        let help = "predict, verify, inspect and hardmax read such models";
        let config = dir.join("config.json");
        return Err(Error::model(config, "its numbers are exact (weights.json), not floats", help).into());
    }
    Ok(model)
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let model = open(&args.model)?;
    let sentence = Dataset::read_text("the sentence", args.sentence.as_bytes(), super::generate::split(&model))
        .map_err(|_| Error::setting("the sentence has no words", "write them separated by spaces"))?;
    let sentence = Dataset { labels: Labels::None, ..sentence };
    let data = args.read.open_some(args.data.as_deref(), shared)?;
    let labels = model.label_names();
    let outside = warn_outside(&model, &sentence, shared).map(|outside| outside > 0);
    let traces = model.trace(&sentence, 0)?;
    let mut rows = vec![
        ["token", "label", "margin", "id", "units that fire", "nearest other context"].map(str::to_owned).to_vec(),
    ];
    let mut tokens = Vec::new();
    for (t, trace) in traces.iter().enumerate() {
        let nearest: Option<Neighbor> = match (&data, trace.id) {
            (Some(data), Some(id)) => model.neighbors(&sentence, t, id, data)?.into_iter().next(),
            _ => None,
        };
        let (label, margin) = decided(trace, labels);
        let context = nearest.as_ref().zip(data.as_ref()).map(|(n, data)| in_words(data, n.token));
        let distance = nearest.as_ref().zip(trace.id).map(|(n, id)| n.id - id);
        tokens.push(json!({
            "token": sentence.token_text(t),
            "label": label,
            "margin": margin,
            "id": trace.id,
            "units": trace.firing.iter().map(|(j, x)| json!({ "unit": j, "value": x })).collect::<Vec<Value>>(),
            "scores": trace.scores,
            "nearest": context.as_ref().zip(distance).map(|(words, by)| json!({ "sentence": words, "distance": by })),
        }));
        rows.push(vec![
            sentence.token_text(t),
            label.unwrap_or_default(),
            margin.map_or(String::new(), |m| format!("{m:.3}")),
            trace.id.map_or(String::new(), |id| format!("{id:.6}")),
            units(trace),
            context.zip(distance).map_or(String::new(), |(words, by)| format!("{by:+.2e}  {words}")),
        ]);
    }
    let report = labels.as_ref().map(|_| certainty(&args.model, &tokens)).transpose()?;
    let ratio = report.as_ref().and_then(|report| report.smallest_margin_ratio);
    let mut text = table(&rows, &[1, 4, 5]);
    if let (Some(report), Some(ratio)) = (&report, ratio) {
        let (certain, precision) = (report.verified, &report.precision);
        text += &format!(
            "{certain} of {} labels certain in {precision}: margins {ratio:.3} x error or more\n",
            tokens.len()
        );
    }
    let certain = report.map(|report| report.verified);
    let json = json!({ "tokens": tokens, "certain": certain, "smallest_margin_ratio": ratio, "outside": outside });
    Ok(Outcome::done(json, text))
}

/// What the checker says of the labels found: how many are certain, and by how many times the error bound.
fn certainty(model: &Path, tokens: &[Value]) -> Result<monolayer_check::Report> {
    let field = |name: &str| tokens.iter().map(|token| token[name].clone()).collect::<Vec<Value>>();
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile()?;
    writeln!(file, "{}", json!({ "tokens": field("token"), "labels": field("label") }))?;
    let options = monolayer_check::Options { ignore_certificate: true, ..monolayer_check::Options::default() };
    Ok(monolayer_check::verify(model, file.path().to_str(), &options))
}

/// The label and its lead over the next one.
fn decided(trace: &Trace, labels: Option<&[String]>) -> (Option<String>, Option<f64>) {
    let Some(labels) = labels else { return (None, None) };
    let best = (1..labels.len()).fold(0, |best, l| if trace.scores[l] > trace.scores[best] { l } else { best });
    let others = (0..labels.len()).filter(|&l| l != best).map(|l| trace.scores[l]);
    let lead = trace.scores[best] - others.fold(f64::NEG_INFINITY, f64::max);
    (Some(labels[best].clone()), lead.is_finite().then_some(lead))
}

fn units(trace: &Trace) -> String {
    let mut list: Vec<String> = trace.firing.iter().take(SHOWN).map(|(j, x)| format!("{j} ({x:.3})")).collect();
    if trace.firing.len() > SHOWN {
        list.push(format!("{} more", trace.firing.len() - SHOWN));
    }
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

/// The sentence of a token, with the token marked and its label.
fn in_words(data: &Dataset, token: usize) -> String {
    let sequence = data.location(token).sequence.unwrap_or(1) - 1;
    let word = |t: usize| if t == token { format!("[{}]", data.token_text(t)) } else { data.token_text(t) };
    let words: Vec<String> = data.range(sequence).map(word).collect();
    format!("{} ({})", words.join(" "), data.label_text(token))
}
