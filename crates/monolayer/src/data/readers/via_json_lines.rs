//! What a reader of another format finds, on its way through the one reader of JSON lines: so all formats keep its rules.

use serde_json::Value;

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
        self.outputs(options.label_at)?;
        self.spread(options.label_at)?;
        let mut text = String::new();
        for found in &self.sequences {
            text.push_str("{\"tokens\":");
            list(&found.tokens, &mut text);
            if let FoundLabels::Each(labels) = &found.labels {
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

    /// Cuts the padding off the ends of sequences. Elsewhere it is an error.
    fn cut(&mut self, padding: &str) -> Result<()> {
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

fn list(items: &[Value], text: &mut String) {
    for (i, item) in items.iter().enumerate() {
        text.push(if i == 0 { '[' } else { ',' });
        text.push_str(&item.to_string());
    }
    text.push_str(if items.is_empty() { "[]" } else { "]" });
}
