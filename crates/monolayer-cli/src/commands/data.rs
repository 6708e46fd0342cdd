//! `monolayer data`: what is in a dataset.

use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::data::LabelScheme;
use monolayer::data::context::{Agreement, Contexts, check_mask, distinct_rows};
use monolayer::data::embedding::Embedding;
use monolayer::data::separation::{Separation, separation};
use monolayer::data::{DataOptions, Format, Labels, Split, Tokens};
use monolayer::fs::replace_file;
use monolayer::{Dataset, Error};
use serde_json::{Value, json};

use super::mask::{self, MaskArg};
use super::{DOES, DataArgs, Outcome, Shared, WRITES, place_json};
use crate::output::{count, percent, table};

/// Describe a dataset: counts, contexts, conflicting labels, separatedness (Definition 1)
///
/// The context of a token is the token itself together with the multiset of tokens it attends to, up to a common factor of
/// the multiplicities. With positions, a token is a pair (word, position). Attention cannot distinguish equal contexts, so
/// where tokens with equal contexts have different labels, only the most frequent label can be learned. The other tokens
/// are listed as conflicts: no weights get them right.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer data train.conll --embedding sign:64
Example: monolayer data train.conll --labels iob2 --out train.iob2.conll")]
pub struct Args {
    #[command(flatten)]
    data: DataArgs,
    #[arg(long, value_name = "MASK", default_value = "none", help = mask::HELP, help_heading = DOES)]
    mask: MaskArg,
    /// Measure the separatedness of these word vectors: sign:D, random:D or a file of words and numbers
    #[arg(long, value_name = "CODES", help_heading = DOES)]
    embedding: Option<Embedding>,
    /// Seed of the word vectors
    #[arg(long, default_value_t = 0, help_heading = DOES)]
    seed: u64,
    /// Rewrite entity labels: as-is (keep them), iob1 or iob2
    #[arg(long, value_name = "SCHEME", default_value = "as-is", help_heading = DOES)]
    labels: LabelScheme,
    /// Write words and labels to this file, as two columns
    #[arg(long, value_name = "FILE", help_heading = WRITES)]
    out: Option<PathBuf>,
    /// Write the canonical form (JSON lines) to this file; its hash identifies the dataset
    #[arg(long, value_name = "FILE", help_heading = WRITES)]
    canonical: Option<PathBuf>,
}

/// A line of the report lists no more conflicts than this.
const SHOWN: usize = 10;

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let reading = args.data.reading(Split::default(), shared)?;
    let understood = reading.line();
    let data = args.labels.apply(reading.data)?;
    if let Some(out) = &args.out {
        write(&data, out)?;
    }
    if let Some(path) = &args.canonical {
        let mut bytes = Vec::new();
        data.write_canonical(&mut bytes).map_err(|e| Error::io(path, e))?;
        replace_file(path, &bytes)?;
    }
    let facts = DataFacts::new(&data, args)?;
    let mut text = format!("{}\n{}", data.name, table(&facts.rows(), &[2]));
    if let Some(agreement) = &facts.agree_with {
        text += &conflict_lines(&data, &facts.with, agreement, args, shared);
    }
    let mut json = facts.json();
    json["understood"] = understood.into();
    Ok(Outcome::done(json, text))
}

/// What there is to say about a dataset.
struct DataFacts<'a> {
    data: &'a Dataset,
    vocabulary: usize,
    /// Contexts with and without positions, and what labels they and words alone allow.
    with: Contexts,
    without: Contexts,
    agree_with: Option<Agreement>,
    agree_without: Option<Agreement>,
    agree_words: Option<Agreement>,
    /// Tokens whose label is not free.
    labeled: usize,
    separation: Option<Separation>,
}

impl<'a> DataFacts<'a> {
    fn new(data: &'a Dataset, args: &Args) -> Result<Self> {
        let token_ids = data.token_ids();
        let labels = data.label_ids();
        let mask = args.data.mask(&args.mask)?;
        check_mask(data, &mask)?;
        let contexts = |positions| Contexts::new(&token_ids, &data.offsets, &mask, positions);
        let (with, without) = (contexts(true), contexts(false));
        let agree = |contexts: &Contexts| labels.as_ref().map(|labels| contexts.agree(labels));
        Ok(Self {
            data,
            vocabulary: token_ids.iter().max().map_or(0, |&m| m as usize + 1),
            agree_with: agree(&with),
            agree_without: agree(&without),
            agree_words: agree(&Contexts::of_words(&token_ids)),
            with,
            without,
            labeled: data.tokens() - data.free(),
            separation: measure(data, args)?,
        })
    }

    fn json(&self) -> Value {
        let data = self.data;
        let possible = |agreement: &Option<Agreement>| agreement.as_ref().map(|agreement| agreement.possible);
        let mut json = json!({
            "data": data.name,
            "hash": data.hash(),
            "sequences": data.sequences(),
            "tokens": data.tokens(),
            "vocabulary": self.vocabulary,
            "labels": label_count(data),
            "free": data.free(),
            "longest": data.longest(),
            "contexts_with_positions": self.with.count,
            "contexts_without_positions": self.without.count,
            "possible_with_positions": possible(&self.agree_with),
            "possible_without_positions": possible(&self.agree_without),
            "word_majority": possible(&self.agree_words).filter(|_| self.labeled > 0).map(|p| p as f64 / self.labeled as f64),
            "conflicts_with_positions": self.agree_with.as_ref().map(|a| conflicts(data, &self.with, a)),
            "conflicts_without_positions": self.agree_without.as_ref().map(|a| conflicts(data, &self.without, a)),
            "warnings": data.warnings,
        });
        if let Some(s) = self.separation {
            json["r_min"] = s.r_min.into();
            json["r_max"] = s.r_max.into();
            // One vector alone is separated from nothing: infinity, which JSON writes as null.
            json["epsilon"] = s.epsilon.into();
        }
        json
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let data = self.data;
        let number = |name: &str, n: usize, note: String| vec![name.to_owned(), count(n), note];
        let mut rows = vec![
            number("sequences", data.sequences(), format!("longest {}", count(data.longest()))),
            number("tokens", data.tokens(), String::new()),
            number("vocabulary", self.vocabulary, kind(data).to_owned()),
        ];
        rows.extend(label_count(data).map(|n| number("labels", n, shares(data))));
        if self.labeled < data.tokens() {
            let free = data.tokens() - self.labeled;
            rows.push(number("free", free, "tokens for which any label will do".to_owned()));
        }
        rows.push(number("contexts without positions", self.without.count, String::new()));
        rows.push(number("contexts with positions", self.with.count, String::new()));
        let share = |name: &str, agreement: &Option<Agreement>| {
            let whole = if self.labeled < data.tokens() { "labeled tokens" } else { "tokens" };
            let note = |p: usize| format!("{} of {whole}", percent(p, self.labeled));
            agreement.as_ref().map(|agreement| number(name, agreement.possible, note(agreement.possible)))
        };
        rows.extend(share("right by each word's majority", &self.agree_words));
        rows.extend(share("possible without positions", &self.agree_without));
        rows.extend(share("possible with positions", &self.agree_with));
        if let Some(Separation { r_min, r_max, epsilon }) = self.separation {
            for (name, x) in [("r_min", r_min), ("r_max", r_max), ("epsilon", epsilon)] {
                rows.push(vec![name.to_owned(), format!("{x:.6}"), "Definition 1".to_owned()]);
            }
        }
        rows
    }
}

fn kind(data: &Dataset) -> &'static str {
    match data.tokens {
        Tokens::Words { .. } => "different words",
        Tokens::Vectors { .. } => "different vectors",
    }
}

fn label_count(data: &Dataset) -> Option<usize> {
    match &data.labels {
        Labels::Classes { names, .. } => Some(names.len()),
        _ => None,
    }
}

/// The commonest labels with their shares.
fn shares(data: &Dataset) -> String {
    let Labels::Classes { label_ids: ids, names } = &data.labels else { return String::new() };
    let mut counts = vec![0; names.len()];
    ids.iter().flatten().for_each(|&id| counts[id as usize] += 1);
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(counts[i]));
    let labeled = f64::from(counts.iter().sum::<u32>());
    let share = |&i: &usize| format!("{} {:.1} %", names.name(i as u32), 100.0 * f64::from(counts[i]) / labeled);
    let shown: Vec<String> = order.iter().take(4).map(share).collect();
    shown.join(", ") + if order.len() > 4 { ", ..." } else { "" }
}

/// Definition 1 of the token vectors, for vectors or words with an embedding.
fn measure(data: &Dataset, args: &Args) -> Result<Option<Separation>> {
    Ok(match (&data.tokens, &args.embedding) {
        (Tokens::Vectors { d, data: vectors }, _) => {
            let (_, first) = distinct_rows(*d, vectors);
            let rows: Vec<f64> = first.iter().flat_map(|&i| &vectors[i * d..(i + 1) * d]).copied().collect();
            Some(separation(*d, &rows))
        }
        (Tokens::Words { vocabulary, .. }, Some(embedding)) => {
            let codes = embedding.codes(vocabulary, args.seed)?;
            Some(separation(codes.cols, &codes.data))
        }
        (Tokens::Words { .. }, None) => None,
    })
}

/// The impossible tokens: where they are, and what their context's majority says.
fn conflicts(data: &Dataset, contexts: &Contexts, agreement: &Agreement) -> Value {
    let conflict = |&t: &usize| {
        let mut place = place_json(data, t);
        place["majority"] = majority(data, contexts, agreement, t).into();
        place
    };
    agreement.impossible.iter().map(conflict).collect()
}

/// The majority label of the context of token `t`.
fn majority(data: &Dataset, contexts: &Contexts, agreement: &Agreement, t: usize) -> String {
    agreement.label[contexts.of_token[t] as usize].map_or_else(String::new, |label| data.label_name(label))
}

fn conflict_lines(data: &Dataset, contexts: &Contexts, agreement: &Agreement, args: &Args, shared: &Shared) -> String {
    let impossible = &agreement.impossible;
    let shown = if shared.verbose { impossible.len() } else { SHOWN };
    let line = |&t: &usize| {
        format!(
            "  {}: {:?} is {}, but {} in most of the same contexts\n",
            data.location(t),
            data.token_text(t),
            data.label_text(t),
            majority(data, contexts, agreement, t),
        )
    };
    let mut text = match impossible.len() {
        0 => "no conflicts with positions\n".to_owned(),
        1 => "1 conflict with positions: no weights get this token right\n".to_owned(),
        n => format!("{} conflicts with positions: no weights get these tokens right\n", count(n)),
    };
    text.extend(impossible.iter().take(shown).map(line));
    if impossible.len() > shown {
        text += &format!("  and {} more (-v shows all)\n", count(impossible.len() - shown));
    }
    text + &format!("next: monolayer memorize {} --out model\n", args.data)
}

/// Words with their labels as two columns; the file is whole or not there.
pub fn write(data: &Dataset, path: &Path) -> Result<(), Error> {
    if !matches!((&data.tokens, &data.labels), (Tokens::Words { .. }, Labels::Classes { .. })) {
        return Err(Error::mismatch("only words with classes can be written as columns", "leave --out out"));
    }
    let mut text = String::new();
    for range in data.ranges() {
        for t in range {
            let (word, label) = (data.token_text(t), data.label_text(t));
            let column = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
            // A class of this name would be read as free.
            let changed = label == "_" && !data.is_free(t);
            if !column(&word) || !column(&label) || changed || word.starts_with("-DOCSTART-") {
                let what = format!("the word {word:?} with the label {label:?} cannot be written as columns");
                return Err(Error::data(data.location(t), what, "leave --out out"));
            }
            text += &format!("{word} {label}\n");
        }
        text.push('\n');
    }
    comes_back(data, path, &text)?;
    replace_file(path, text.as_bytes())
}

/// Refuses columns that would be read as other words or labels: with `--format conll`, or without, unless a format is asked for then.
fn comes_back(data: &Dataset, path: &Path, text: &str) -> Result<(), Error> {
    let name = path.to_string_lossy();
    let same = |other: &Dataset| {
        let token = |data: &Dataset, t| (data.token_text(t), data.label_text(t));
        other.offsets == data.offsets && (0..data.tokens()).all(|t| token(other, t) == token(data, t))
    };
    let help = "leave --out out; --canonical writes all data";
    for format in [Some(Format::Conll), None] {
        let options = DataOptions { format, ..DataOptions::default() };
        match Dataset::read_with(&name, text.as_bytes(), &options) {
            Ok(reading) if !same(&reading.data) => {
                let (first, label) = (data.token_text(0), data.label_text(0));
                let what = format!("{name}: columns that start with {first:?} {label:?} would be read as other data");
                return Err(Error::mismatch(what, help));
            }
            Err(error) if format.is_some() => return Err(error),
            _ => (),
        }
    }
    Ok(())
}
