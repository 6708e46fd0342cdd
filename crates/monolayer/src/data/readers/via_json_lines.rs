//! What a reader of another format finds, on its way through the one reader of JSON lines: so all formats keep its rules.

use serde_json::Value;

use super::fill::ToldLength;
use super::options::DataOptions;
use super::{Dataset, json_lines};
use crate::data::LabelAt;
use crate::error::{Error, Location, Result};

/// The label that may be anything.
pub(super) const FREE: Value = Value::Null;

/// A dataset, and where in its file it was found.
pub(super) struct FoundData {
    pub(super) data: Dataset,
    pub(super) tokens_from: String,
    pub(super) labels_from: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Sequences as they were found.
pub(super) struct Converted<'a> {
    name: &'a str,
    sequences: Vec<FoundSequence>,
}

/// A sequence: its tokens, its labels, and the line of each token (none where the file has no lines).
pub(super) struct FoundSequence {
    pub(super) tokens: Vec<Value>,
    pub(super) labels: FoundLabels,
    pub(super) lines: Vec<u32>,
    /// What the file says about its padding.
    pub(super) told: Vec<ToldLength>,
}

/// The labels of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FoundLabels {
    None,
    /// One for each token.
    Each(Vec<Value>),
    /// One for all.
    One(Value),
}

impl FoundLabels {
    /// All of them.
    fn list(&self) -> &[Value] {
        match self {
            Self::None => &[],
            Self::Each(labels) => labels,
            Self::One(label) => std::slice::from_ref(label),
        }
    }

    fn list_mut(&mut self) -> &mut [Value] {
        match self {
            Self::None => &mut [],
            Self::Each(labels) => labels,
            Self::One(label) => std::slice::from_mut(label),
        }
    }
}

impl<'a> Converted<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        Self { name, sequences: Vec::new() }
    }

    pub(super) fn push(&mut self, found: FoundSequence) {
        self.sequences.push(found);
    }

    fn location(&self, sequence: usize, token: Option<usize>) -> Location {
        let lines = self.sequences.get(sequence).map_or(&[][..], |found| &found.lines);
        let line = lines.get(token.unwrap_or(0)).or_else(|| lines.first());
        Location {
            line: line.map(|&line| line as usize),
            sequence: Some(sequence + 1),
            token: token.map(|token| token + 1),
            ..Location::file(self.name)
        }
    }

    /// The dataset: padding is cut, labels of sequences go where they belong.
    pub(super) fn finish(mut self, options: &DataOptions) -> Result<Dataset> {
        if self.sequences.is_empty() {
            let help = "give a file with sequences of tokens";
            return Err(Error::data(Location::file(self.name), "an empty file: it has no tokens", help));
        }
        if let Some(padding) = &options.padding {
            self.cut(padding)?;
        }
        self.compare(options.padding.as_deref())?;
        self.outputs(options.label_at)?;
        self.spread(options.label_at)?;
        let mut text = String::new();
        for found in &mut self.sequences {
            // What is written is not needed twice.
            text.push_str("{\"tokens\":");
            list(std::mem::take(&mut found.tokens), &mut text);
            if let FoundLabels::Each(labels) = std::mem::replace(&mut found.labels, FoundLabels::None) {
                text.push_str(",\"labels\":");
                list(labels, &mut text);
            }
            text.push_str("}\n");
        }
        let mut data = json_lines::read(self.name, text.as_bytes()).map_err(|e| self.moved(e))?;
        let lines: Vec<u32> = self.sequences.iter().flat_map(|found| found.lines.iter().copied()).collect();
        data.lines = if lines.len() == data.tokens() { lines } else { Vec::new() };
        Ok(data)
    }

    /// An error of the reader of JSON lines, at its location in this file.
    fn moved(&self, error: Error) -> Error {
        match error {
            Error::Data { location, what, help } => match location.sequence {
                Some(sequence) => {
                    let location = self.location(sequence - 1, location.token.map(|token| token - 1));
                    Error::data(location, what, help)
                }
                None => Error::data(Location::file(self.name), what, help),
            },
            other => other,
        }
    }

    /// Cuts the padding off the ends of sequences. Elsewhere it is an error, and so it is if there is none.
    fn cut(&mut self, padding: &str) -> Result<()> {
        if self.sequences.iter().any(|found| found.tokens.first().is_some_and(Value::is_array)) {
            let what = format!("{}: `padding` is a token, and these are vectors", self.name);
            return Err(Error::mismatch(
                what,
                "leave it out: give arrays with \"lengths\" [N], or vectors without padding",
            ));
        }
        let before: usize = self.sequences.iter().map(|found| found.tokens.len()).sum();
        for i in 0..self.sequences.len() {
            let found = &self.sequences[i];
            let is_padding = |token: &Value| match token {
                Value::String(text) => text == padding,
                Value::Number(number) => number.to_string() == padding,
                _ => false,
            };
            let length = found.tokens.iter().rposition(|token| !is_padding(token)).map_or(0, |last| last + 1);
            if length == 0 {
                let help = "leave the sequence out";
                return Err(Error::data(self.location(i, None), "a sequence of nothing but padding", help));
            }
            if let Some(t) = found.tokens[..length].iter().position(is_padding) {
                let what = format!("the padding {padding} before the end of a sequence");
                let help = "padding stands at the end; is this the right `padding`?";
                return Err(Error::data(self.location(i, Some(t)), what, help));
            }
            let found = &mut self.sequences[i];
            if let FoundLabels::Each(labels) = &mut found.labels {
                // One label too many or too few is for the reader to see.
                if labels.len() == found.tokens.len() {
                    labels.truncate(length);
                }
            }
            found.tokens.truncate(length);
            found.lines.truncate(length);
        }
        if before == self.sequences.iter().map(|found| found.tokens.len()).sum::<usize>() {
            let what = format!("{}: `padding` {padding}, but no sequence ends with {padding}", self.name);
            return Err(Error::mismatch(what, "give the token that fills sequences up, or leave it out"));
        }
        Ok(())
    }

    /// What is left of each sequence must be what the file says of it.
    fn compare(&self, padding: Option<&str>) -> Result<()> {
        for (i, found) in self.sequences.iter().enumerate() {
            let n = found.tokens.len();
            let wrong = |told: &&ToldLength| told.length < n || (told.exact && told.length != n);
            let Some(ToldLength { from, length, exact }) = found.told.iter().find(wrong) else { continue };
            let vectors = found.tokens.first().is_some_and(Value::is_array);
            let (what, help) = if let Some(padding) = padding {
                let what =
                    format!("{from:?} leaves {length} tokens, and without the `padding` {padding} there are {n}");
                (what, "is this the right `padding`? Else leave the mask or length out".to_owned())
            } else {
                let shows = if *exact { "has zeros" } else { "is less than there are tokens" };
                let help = match (vectors, *exact) {
                    (true, _) => "give arrays with \"lengths\" [N], or vectors without padding".to_owned(),
                    (_, true) => "give `padding`, the token that fills them up".to_owned(),
                    (_, false) => format!("give `padding`, the token that fills them up; or leave {from:?} out"),
                };
                (format!("{from:?} {shows}: sequences are filled up"), help)
            };
            return Err(Error::data(self.location(i, None), what, help));
        }
        Ok(())
    }

    /// Numbers some of which are floats are outputs of dimension 1. A list of numbers for a whole sequence is one output.
    fn outputs(&mut self, at: Option<LabelAt>) -> Result<()> {
        let numbers = |list: &[Value]| !list.is_empty() && list.iter().all(Value::is_number);
        let floats = || self.sequences.iter().flat_map(|found| found.labels.list()).any(Value::is_f64);
        if at.is_some() && floats() {
            for found in &mut self.sequences {
                if let FoundLabels::Each(list) = &mut found.labels
                    && numbers(list)
                {
                    found.labels = FoundLabels::One(std::mem::take(list).into());
                }
            }
        }
        let labels = || self.sequences.iter().flat_map(|found| found.labels.list());
        if labels().any(Value::is_f64) && labels().all(|label| label.is_number() || label.is_null()) {
            if let Some((i, t, label)) = self.inexact() {
                let what = format!("the output {label}, which no 64-bit float is");
                let help = "write outputs as decimals, and classes as strings or as integers alone";
                return Err(Error::data(self.location(i, t), what, help));
            }
            let of_one = |label: &mut Value| {
                if label.is_number() {
                    *label = vec![label.take()].into();
                }
            };
            self.sequences.iter_mut().flat_map(|found| found.labels.list_mut()).for_each(of_one);
        }
        let vector = |found: &FoundSequence| matches!(&found.labels, FoundLabels::One(Value::Array(_)));
        match self.sequences.iter().position(vector) {
            Some(i) if matches!(at, Some(LabelAt::First | LabelAt::Last)) => {
                let help = "give `label_at` all: only classes can be left free";
                Err(Error::data(self.location(i, None), "outputs for some tokens of a sequence", help))
            }
            _ => Ok(()),
        }
    }

    /// The first label that is an integer and no 64-bit float: its sequence, its token and its text.
    fn inexact(&self) -> Option<(usize, Option<usize>, String)> {
        let inexact = |label: &Value| {
            let integer = label.as_i64().map(i128::from).or_else(|| label.as_u64().map(i128::from));
            integer.is_some_and(|k| k as f64 as i128 != k)
        };
        self.sequences.iter().enumerate().find_map(|(i, found)| {
            let labels = found.labels.list();
            let t = labels.iter().position(inexact)?;
            Some((i, (labels.len() > 1).then_some(t), labels[t].to_string()))
        })
    }

    /// Gives the one label of a sequence to its tokens.
    fn spread(&mut self, at: Option<LabelAt>) -> Result<()> {
        let one = self.sequences.iter().position(|found| matches!(found.labels, FoundLabels::One(_)));
        match (one, at) {
            (Some(i), None) => {
                let help = "give `label_at`: all, first or last, for the tokens that get it";
                return Err(Error::data(self.location(i, None), "one label for a whole sequence", help));
            }
            (None, Some(_)) => {
                let what = format!("{}: `label_at`, but labels are not one per sequence", self.name);
                return Err(Error::mismatch(what, "leave it out"));
            }
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => (),
        }
        for i in 0..self.sequences.len() {
            let n = self.sequences[i].tokens.len();
            let FoundLabels::One(label) = std::mem::replace(&mut self.sequences[i].labels, FoundLabels::None) else {
                let what = "no single label, where other sequences have one";
                return Err(Error::data(self.location(i, None), what, "give every sequence one label"));
            };
            let labeled = |t| match at {
                Some(LabelAt::First) => t == 0,
                Some(LabelAt::Last) => t + 1 == n,
                Some(LabelAt::All) | None => true,
            };
            let label = |t| if labeled(t) { label.clone() } else { FREE };
            self.sequences[i].labels = FoundLabels::Each((0..n).map(label).collect());
        }
        Ok(())
    }
}

fn list(items: Vec<Value>, text: &mut String) {
    text.push('[');
    for (i, item) in items.into_iter().enumerate() {
        text.push_str(if i == 0 { "" } else { "," });
        text.push_str(&item.to_string());
    }
    text.push(']');
}
