//! `monolayer explain`: one sequence through a model, and why each token gets its label.

mod in_words;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::data::Labels;
use monolayer::model::explain::along_id::IdBound;
use monolayer::model::explain::contributions::{Contribution, Part};
use monolayer::model::explain::{Explanation, Neighbor};
use monolayer::{AnyModel, Dataset, Error, ModelNames};
use serde_json::{Value, json};

use self::in_words::Words;
use super::predict::warn_outside;
use super::{Outcome, READS, ReadArgs, Shared};

/// Say why each token of a sequence gets its label: context ids, hidden units, and what each adds to each score
///
/// A score is the sum of what the word, its place, attention, the hidden units that fire and the biases add to it; all of them
/// are printed, or counted where they are many (--json lists all). Then follows at which context ids the token would get another
/// label, as the weights have it. With --data, the closest context of the same word with another label is shown, too.
/// For a model of vectors, SENTENCE is numbers: tokens separated by spaces, coordinates by commas.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer explain model \"May sails in May .\" --data train.conll")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// The words, separated by spaces
    #[arg(value_name = "SENTENCE", allow_hyphen_values = true)]
    sentence: String,
    /// Dataset in which to look for the closest other contexts
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
}

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
    let sentence = args.sequence(&model)?;
    let data = args.read.open_some(args.data.as_deref(), shared)?;
    let labels = model.label_names();
    let outside = warn_outside(&model, &sentence, shared).map(|outside| outside > 0);
    let explained = model.explain(&sentence, 0)?;
    let names = ModelNames::open(&args.model)?;
    let words = Words::new(&model, &sentence, names.as_ref());
    let mut tokens = Vec::new();
    let mut text = String::new();
    for (t, explanation) in explained.iter().enumerate() {
        let near = match (&data, explanation.trace.id) {
            (Some(data), Some(id)) => Near::new(data, id, &model.neighbors(&sentence, t, id, data)?, |token| {
                labels.is_some_and(|labels| data.label(token).is_some_and(|l| l != labels[best(explanation)]))
            }),
            _ => Near::default(),
        };
        text += &words.token(t, explanation, &near);
        tokens.push(described(&sentence.token_text(t), explanation, labels, &near));
    }
    let report = labels.as_ref().map(|_| certainty(&args.model, &sentence, &tokens)).transpose()?;
    let ratio = report.as_ref().and_then(|report| report.smallest_margin_ratio);
    if let (Some(report), Some(ratio)) = (&report, ratio) {
        let (certain, precision) = (report.verified, &report.precision);
        text += &format!(
            "{certain} of {} labels certain in {precision}: margins {ratio:.3} x error or more\n",
            tokens.len()
        );
    }
    let certain = report.map(|report| report.verified);
    let json = json!({
        "labels": labels,
        "tokens": tokens,
        "certain": certain,
        "smallest_margin_ratio": ratio,
        "outside": outside,
    });
    Ok(Outcome::done(json, text))
}

impl Args {
    /// The sequence to run.
    fn sequence(&self, model: &AnyModel) -> Result<Dataset> {
        if model.vocabulary().is_none() {
            return self.vectors(model.config().d);
        }
        let sentence = Dataset::read_text("the sentence", self.sentence.as_bytes(), super::generate::split(model))
            .map_err(|_| Error::setting("the sentence has no words", "write them separated by spaces"))?;
        Ok(Dataset { labels: Labels::None, ..sentence })
    }

    fn vectors(&self, d: usize) -> Result<Dataset> {
        let help = format!("separate tokens by spaces and their {d} coordinates by commas");
        let fail = |what: String| Error::setting(what, help.clone());
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
        let mut tokens: Vec<Vec<f64>> = Vec::new();
        for (i, token) in self.sentence.split_whitespace().enumerate() {
            let vector: Option<Vec<f64>> = token.split(',').map(number).collect();
            let vector =
                vector.ok_or_else(|| fail(format!("token {} of the sequence: {token:?} is no vector", i + 1)))?;
            if vector.len() != d {
                let what = format!("token {} of the sequence has {} coordinates, not {d}", i + 1, vector.len());
                return Err(fail(what).into());
            }
            tokens.push(vector);
        }
        if tokens.is_empty() {
            return Err(fail("the sequence has no tokens".to_owned()).into());
        }
        let none: Vec<Option<&str>> = vec![None; tokens.len()];
        let data = Dataset::from_vectors_with_classes(&[tokens], &[none])?;
        Ok(Dataset { labels: Labels::None, ..data })
    }
}

/// The contexts of a word in a dataset that are closest to one of its tokens.
#[derive(Default)]
pub struct Near {
    /// Any other, and one with another label than the model's.
    any: Option<Context>,
    other_label: Option<Context>,
}

/// A context: its sentence with the token marked, its label, and its id minus that of the token.
pub struct Context {
    sentence: String,
    label: Option<String>,
    distance: f64,
}

impl Near {
    fn new(data: &Dataset, id: f64, neighbors: &[Neighbor], differs: impl Fn(usize) -> bool) -> Self {
        let context = |neighbor: &Neighbor| Context {
            sentence: marked(data, neighbor.token),
            label: data.label(neighbor.token).map(str::to_owned),
            distance: neighbor.id - id,
        };
        let other = neighbors.iter().find(|neighbor| differs(neighbor.token)).map(context);
        Self { any: neighbors.first().map(context), other_label: other }
    }
}

/// The label of the largest score.
fn best(explanation: &Explanation) -> usize {
    let scores = &explanation.trace.scores;
    (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best })
}

/// The lead of the label over the next one, and which that is.
fn lead(explanation: &Explanation) -> Option<(f64, usize)> {
    let (scores, best) = (&explanation.trace.scores, best(explanation));
    let others = (0..scores.len()).filter(|&l| l != best);
    let second = others.reduce(|second, l| if scores[l] > scores[second] { l } else { second })?;
    let lead = scores[best] - scores[second];
    lead.is_finite().then_some((lead, second))
}

/// A token for machines.
fn described(token: &str, explanation: &Explanation, labels: Option<&[String]>, near: &Near) -> Value {
    let Explanation { trace, weights, contributions, rounding, bounds, range } = explanation;
    let bound = |k: usize, side: fn(IdBound) -> Option<f64>| bounds.get(k).copied().and_then(side);
    let unit = |(k, (j, x)): (usize, &(usize, f64))| {
        json!({
            "unit": j,
            "value": x,
            "id_above": bound(k, |b| if let IdBound::Above(x) = b { Some(x) } else { None }),
            "id_below": bound(k, |b| if let IdBound::Below(x) = b { Some(x) } else { None }),
        })
    };
    let part = |Contribution { part, adds }: &Contribution| match part {
        Part::Unit(j) => json!({ "from": "unit", "unit": j, "adds": adds }),
        part => json!({ "from": part_name(*part), "adds": adds }),
    };
    let context = |c: &Context| json!({ "sentence": c.sentence, "label": c.label, "distance": c.distance });
    let end = |end: Option<(f64, usize)>| {
        end.zip(labels)
            .zip(trace.id)
            .map(|(((at, l), labels), id)| json!({ "label": labels[l], "id": at, "distance": at - id }))
    };
    json!({
        "token": token,
        "label": labels.map(|labels| &labels[best(explanation)]),
        "margin": labels.and_then(|_| lead(explanation)).map(|(lead, _)| lead),
        "id": trace.id,
        "attention": weights.iter().map(|(place, w)| json!({ "place": place, "weight": w })).collect::<Vec<Value>>(),
        "units": trace.firing.iter().enumerate().map(unit).collect::<Vec<Value>>(),
        "scores": trace.scores,
        "contributions": contributions.iter().map(part).collect::<Vec<Value>>(),
        "rounding": rounding.iter().map(|x| x.is_finite().then_some(*x)).collect::<Vec<_>>(),
        "ids": range.as_ref().map(|range| range.reach),
        "below": range.as_ref().and_then(|range| end(range.below)),
        "above": range.as_ref().and_then(|range| end(range.above)),
        "nearest": near.any.as_ref().map(context),
        "nearest_other_label": near.other_label.as_ref().map(context),
    })
}

/// What a part is called.
fn part_name(part: Part) -> &'static str {
    match part {
        Part::Token => "token",
        Part::Place => "place",
        Part::Quantizer => "quantizer",
        Part::Attention => "attention",
        Part::Unit(_) => "unit",
        Part::Bias => "bias",
        Part::Head => "head",
    }
}

/// What the checker says of the labels found: how many are certain, and by how many times the error bound.
fn certainty(model: &Path, sentence: &Dataset, tokens: &[Value]) -> Result<monolayer_check::Report> {
    let labels: Vec<&Value> = tokens.iter().map(|token| &token["label"]).collect();
    let inputs: Vec<Value> = match &sentence.tokens {
        monolayer::data::Tokens::Words { .. } => tokens.iter().map(|token| token["token"].clone()).collect(),
        monolayer::data::Tokens::Vectors { d, data } => data.chunks_exact(*d).map(|vector| json!(vector)).collect(),
    };
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile()?;
    writeln!(file, "{}", json!({ "tokens": inputs, "labels": labels }))?;
    let options = monolayer_check::Options { ignore_certificate: true, ..monolayer_check::Options::default() };
    Ok(monolayer_check::verify(model, file.path().to_str(), &options))
}

/// The sentence of a token, with the token marked.
fn marked(data: &Dataset, token: usize) -> String {
    let sequence = data.location(token).sequence.unwrap_or(1) - 1;
    let word = |t: usize| if t == token { format!("[{}]", data.token_text(t)) } else { data.token_text(t) };
    data.range(sequence).map(word).collect::<Vec<String>>().join(" ")
}
