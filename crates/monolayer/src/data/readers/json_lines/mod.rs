//! JSON lines: one sequence per line, `{"tokens": ["a", "b"], "labels": ["X", "Y"]}`.
//!
//! Tokens are words (strings or integers) or vectors (lists of numbers), labels are classes (strings or integers) or outputs
//! (vectors), the same over the whole file. A class that is null or -100 may be anything. `labels` stands on every line or on none. Blank lines are skipped.

mod line;

use std::io::Read;

use self::line::Fields;
use super::lines::Lines;
use super::{Dataset, Labels, Names, Orderings, Tokens, Vocabulary, Written};
use crate::error::{Error, Location, Result};

const SHAPE: &str = r#"write one object per line, like {"tokens": ["a", "b"], "labels": ["X", "Y"]}"#;

/// Reads JSON lines; `name` is what errors call the file.
pub(super) fn read(name: &str, reader: impl Read) -> Result<Dataset> {
    let mut lines = Lines::new(name, reader);
    let mut rows = Rows { offsets: vec![0], ..Rows::default() };
    while let Some((number, line)) = lines.advance()? {
        if line.iter().all(|byte| b" \t\r".contains(byte)) {
            continue;
        }
        rows.add(number, line).map_err(|fault| {
            let location = Location {
                file: name.to_owned(),
                line: Some(number as usize),
                column: fault.column,
                sequence: Some(rows.offsets.len()),
                token: fault.token,
            };
            Error::data(location, fault.what, fault.help)
        })?;
    }
    rows.finish(name)
}

/// What is wrong with a line.
#[derive(Debug, Default)]
pub(super) struct Fault {
    column: Option<usize>,
    token: Option<usize>,
    pub(super) what: String,
    pub(super) help: &'static str,
}

impl Fault {
    pub(super) fn new(what: impl Into<String>, help: &'static str) -> Self {
        Self { what: what.into(), help, ..Self::default() }
    }
}

/// What has been read so far.
#[derive(Default)]
struct Rows {
    tokens: ReadValues,
    labels: ReadValues,
    offsets: Vec<usize>,
    lines: Vec<u32>,
}

impl Rows {
    fn add(&mut self, number: u32, line: &[u8]) -> std::result::Result<(), Fault> {
        let text = std::str::from_utf8(line).map_err(|e| Fault {
            column: Some(e.valid_up_to() + 1),
            ..Fault::new("bytes that are not UTF-8", "JSON is UTF-8: convert the file")
        })?;
        let labels_before = self.labels.count;
        let fields = line::parse(text, &mut self.tokens, &mut self.labels)?;
        self.check(fields, self.labels.count - labels_before)?;
        self.lines.resize(self.tokens.count, number);
        self.offsets.push(self.tokens.count);
        Ok(())
    }

    /// What can only be said of a line as a whole.
    fn check(&self, fields: Fields, labels: usize) -> std::result::Result<(), Fault> {
        let start = self.lines.len();
        let tokens = self.tokens.count - start;
        if !fields.tokens {
            return Err(Fault::new("no field \"tokens\"", SHAPE));
        }
        if tokens == 0 {
            return Err(Fault::new("a sequence without tokens", "leave the line out"));
        }
        if fields.labels && labels != tokens {
            let count = |n: usize, noun| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
            let what = format!("{} for {}", count(labels, "label"), count(tokens, "token"));
            let token = Some(labels.min(tokens) + 1);
            return Err(Fault { token, ..Fault::new(what, "give every token one label") });
        }
        // Labels of the lines before, of which there are none, or one per token.
        let labeled_before = self.labels.count > labels;
        if start > 0 && labeled_before != fields.labels {
            let has = |labeled| if labeled { "labels" } else { "no labels" };
            let what = format!("{} where line {} has {}", has(fields.labels), self.lines[0], has(labeled_before));
            return Err(Fault::new(what, "give labels on every line or on none"));
        }
        Ok(())
    }

    fn finish(self, name: &str) -> Result<Dataset> {
        let written = Written { tokens: self.tokens.kind.written(), labels: self.labels.kind.written() };
        let free = self.labels.free;
        let tokens = match self.tokens.kind {
            EntryKind::Unknown => {
                return Err(Error::data(Location::file(name), "an empty file: it has no sequences", SHAPE));
            }
            EntryKind::Names { ids, names, .. } => Tokens::Words { word_ids: ids, vocabulary: names },
            EntryKind::Vectors { d, data } => Tokens::Vectors { d, data },
        };
        let labels = match self.labels.kind {
            EntryKind::Unknown if free.is_empty() => Labels::None,
            EntryKind::Unknown => Labels::Classes { label_ids: vec![None; free.len()], names: Vocabulary::default() },
            EntryKind::Names { ids, names, .. } => Labels::Classes { label_ids: with_free(ids, &free), names },
            EntryKind::Vectors { d, data } => Labels::Vectors { d, data },
        };
        let (name, offsets, lines) = (name.to_owned(), self.offsets, self.lines);
        Ok(Dataset { name, tokens, labels, offsets, lines, warnings: Vec::new(), written, orderings: Orderings::Given })
    }
}

/// All tokens, or all labels, of the lines read so far.
#[derive(Default)]
struct ReadValues {
    count: usize,
    kind: EntryKind,
    /// Which of them, counted from 0, may be anything; `kind` has the others.
    free: Vec<usize>,
}

/// Their kind, which the first of them decides.
#[derive(Default)]
enum EntryKind {
    #[default]
    Unknown,
    Names {
        integers: bool,
        ids: Vec<u32>,
        names: Vocabulary,
    },
    Vectors {
        d: usize,
        data: Vec<f64>,
    },
}

impl EntryKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "nothing",
            Self::Names { integers: false, .. } => "a string",
            Self::Names { integers: true, .. } => "an integer",
            Self::Vectors { .. } => "a vector",
        }
    }

    fn written(&self) -> Names {
        if let Self::Names { integers: true, .. } = self { Names::Integers } else { Names::Strings }
    }
}

/// Ids with none in between where something is free.
fn with_free(ids: Vec<u32>, free: &[usize]) -> Vec<Option<u32>> {
    let mut all = Vec::with_capacity(ids.len() + free.len());
    let mut ids = ids.into_iter();
    for &at in free {
        all.extend(ids.by_ref().take(at - all.len()).map(Some));
        all.push(None);
    }
    all.extend(ids.map(Some));
    all
}

fn mixed(new: &EntryKind, first: &EntryKind) -> Fault {
    let what = format!("{} where the first of the file is {}", new.name(), first.name());
    Fault::new(what, "use one kind of token, and one kind of label, in the whole file")
}

fn null_among_vectors() -> Fault {
    Fault::new("null among vectors", "only classes can be left free: give every token an output")
}

impl ReadValues {
    fn push_name(&mut self, name: &str, integer: bool) -> std::result::Result<(), Fault> {
        self.expect_names(integer)?;
        if let EntryKind::Names { ids, names, .. } = &mut self.kind {
            ids.push(names.add(name));
        }
        self.count += 1;
        Ok(())
    }

    fn expect_names(&mut self, integers: bool) -> std::result::Result<(), Fault> {
        let new = EntryKind::Names { integers, ids: Vec::new(), names: Vocabulary::default() };
        if let EntryKind::Unknown = self.kind {
            self.kind = new;
        } else if self.kind.name() != new.name() {
            return Err(mixed(&new, &self.kind));
        }
        Ok(())
    }

    /// One that may be anything, of any kind but vectors.
    fn push_free(&mut self) -> std::result::Result<(), Fault> {
        if let EntryKind::Vectors { .. } = self.kind {
            return Err(null_among_vectors());
        }
        self.free.push(self.count);
        self.count += 1;
        Ok(())
    }

    /// Where the entries of a new vector go.
    fn vector(&mut self) -> std::result::Result<&mut Vec<f64>, Fault> {
        if !self.free.is_empty() {
            return Err(null_among_vectors());
        }
        if let EntryKind::Unknown = self.kind {
            self.kind = EntryKind::Vectors { d: 0, data: Vec::new() };
        }
        match &mut self.kind {
            EntryKind::Vectors { data, .. } => Ok(data),
            first => Err(mixed(&EntryKind::Vectors { d: 0, data: Vec::new() }, first)),
        }
    }

    /// Ends a vector whose entries were pushed.
    fn end_vector(&mut self, length: usize) -> std::result::Result<(), Fault> {
        let EntryKind::Vectors { d, .. } = &mut self.kind else { unreachable!("`vector` made it so") };
        if length == 0 {
            return Err(Fault::new("a vector without entries", "give every vector at least one number"));
        }
        if self.count == 0 {
            *d = length;
        } else if *d != length {
            let what = format!("a vector of length {length} where the first of the file has length {d}");
            return Err(Fault::new(what, "give all vectors the same length"));
        }
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
