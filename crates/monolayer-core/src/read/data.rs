//! Datasets: canonical JSON lines and CoNLL columns. Other containers are converted before they get here.
//!
//! The hash of a dataset is that of its canonical form: per sequence a line `{"tokens":[...],"labels":[...]}` without spaces
//! (without labels where there are none), strings with as few escapes as JSON allows, integers as they are, free labels as
//! null, and numbers of vectors with the text that they were read with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem::take;
use std::str::from_utf8;

use super::decimal::nearest;
use super::json::{self, Json};
use super::{Limits, Result, at, hash, within};
use crate::number::Dyadic;

/// No line is longer.
const LONGEST_LINE: usize = 16 << 20;

/// The kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Columns, a token per line, a blank line between sequences.
    Conll,
    /// One JSON object per line.
    JsonLines,
}

/// Different tokens or labels, numbered in order of first appearance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// Their names, unless they are vectors; an integer has its text as its name.
    pub names: Vec<String>,
    /// The dimension of vectors; 0 where they are not.
    pub d: usize,
    /// The entries of vectors, row-major, each the nearest binary64.
    pub entries: Vec<Dyadic>,
    kind: Option<&'static str>,
    named: HashMap<String, u32>,
    placed: HashMap<Vec<Dyadic>, u32>,
}

/// Sequences of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Data {
    /// The canonical form.
    pub canonical: String,
    /// BLAKE3 of the canonical form, hexadecimal.
    pub hash: String,
    /// The tokens, as numbers of values.
    pub tokens: Vec<u32>,
    /// The different tokens.
    pub values: Values,
    /// If there are labels: that of each token, as a number of a label; none where any will do.
    pub labels: Option<Vec<Option<u32>>>,
    /// The different labels: classes or vectors.
    pub label_values: Values,
    /// Where each sequence starts, and the number of tokens at the end.
    pub offsets: Vec<usize>,
    /// The line of each token, from 1.
    pub lines: Vec<usize>,
    /// The lines that are not UTF-8 and were read as Latin-1.
    pub latin: Vec<usize>,
}

/// Reads a dataset; an error names the line.
pub fn parse(bytes: &[u8], kind: Kind, limits: &Limits) -> Result<Data> {
    within(bytes.len(), "bytes", "bytes", limits.bytes)?;
    let mut data = Data { offsets: vec![0], ..Data::default() };
    let (mut columns, mut line) = (Columns::default(), 0);
    let mut read = || {
        for text in bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).split(|&b| b == b'\n') {
            line += 1;
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.contains(&0) || text.len() > LONGEST_LINE {
                return Err(format!("a NUL byte, or a line of more than {LONGEST_LINE} bytes").into());
            }
            match kind {
                Kind::Conll => columns.add(text, line, &mut data, limits)?,
                Kind::JsonLines if text.iter().all(|b| b" \t\r".contains(b)) => {}
                Kind::JsonLines => data.object(text, line, limits)?,
            }
        }
        columns.end(&mut data, limits)
    };
    let found = read();
    at(format!("line {line}"), found)?;
    if data.tokens.is_empty() {
        return Err("there is no sequence in it".into());
    }
    data.hash = hash(data.canonical.as_bytes());
    Ok(data)
}

impl Data {
    /// How many different tokens there are.
    pub fn different(&self) -> usize {
        self.values.names.len().max(self.values.placed.len())
    }

    fn object(&mut self, line: &[u8], number: usize, limits: &Limits) -> Result<()> {
        let json = json::parse(line)?;
        let labels = json.field("labels");
        json.only(if labels.is_some() { &["tokens", "labels"] } else { &["tokens"] })?;
        let tokens = json.need("tokens", "a list", Json::list)?;
        let labels = labels.map(|labels| labels.list().ok_or("\"labels\" is not a list")).transpose()?;
        self.lines.extend(tokens.iter().map(|_| number));
        self.sequence(tokens, labels, limits)
    }

    /// Adds a sequence whose lines are there already.
    fn sequence(&mut self, tokens: &[Json], labels: Option<&[Json]>, limits: &Limits) -> Result<()> {
        if tokens.is_empty() || labels.is_some_and(|labels| labels.len() != tokens.len()) {
            let labels = labels.map_or(0, <[Json]>::len);
            return Err(format!("an empty sequence, or {labels} labels for {} tokens", tokens.len()).into());
        }
        if !self.tokens.is_empty() && labels.is_some() != self.labels.is_some() {
            return Err("labels on some lines and not on others".into());
        }
        within(tokens.len(), "tokens in a sequence", "length", limits.length)?;
        within(self.lines.len(), "tokens", "tokens", limits.tokens)?;
        let canonical = &mut self.canonical;
        for (i, token) in tokens.iter().enumerate() {
            canonical.push_str(if i == 0 { "{\"tokens\":[" } else { "," });
            self.tokens.push(self.values.id(token, canonical)?);
        }
        for (i, label) in labels.unwrap_or_default().iter().enumerate() {
            canonical.push_str(if i == 0 { "],\"labels\":[" } else { "," });
            let id = match label {
                Json::Null => None,
                Json::Number("-100") => self.label_values.all("integers").map(|()| None)?,
                label => Some(self.label_values.id(label, canonical)?),
            };
            canonical.push_str(if id.is_none() { "null" } else { "" });
            self.labels.get_or_insert_default().push(id);
        }
        canonical.push_str("]}\n");
        self.offsets.push(self.tokens.len());
        within(self.label_values.names.len(), "different labels", "labels", limits.labels)
    }
}

impl Values {
    /// The number of a token or label, whose canonical form is added to a text.
    fn id(&mut self, item: &Json, canonical: &mut String) -> Result<u32> {
        let name = match item {
            Json::Text(text) => {
                self.all("strings")?;
                json::quote(text, canonical);
                text
            }
            // There is one zero: "-0" is no integer.
            Json::Number(text) if *text != "-0" && (text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()) => {
                self.all("integers")?;
                canonical.push_str(text);
                *text
            }
            Json::List(entries) => return self.vector(entries, canonical),
            _ => return Err("an item is neither a string nor an integer of 64 bits nor a vector".into()),
        };
        let next = self.names.len() as u32;
        Ok(*self.named.entry(name.to_owned()).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        }))
    }

    /// All items must be of one kind.
    fn all(&mut self, kind: &'static str) -> Result<()> {
        let before = *self.kind.get_or_insert(kind);
        if before == kind { Ok(()) } else { Err(format!("{kind} here, {before} before").into()) }
    }

    fn vector(&mut self, entries: &[Json], canonical: &mut String) -> Result<u32> {
        self.all("vectors")?;
        if entries.is_empty() || (self.d != 0 && entries.len() != self.d) {
            return Err(format!("a vector of length {} here, {} before", entries.len(), self.d).into());
        }
        self.d = entries.len();
        let mut point = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            let Json::Number(text) = entry else { return Err("an entry of a vector is not a number".into()) };
            point.push(nearest(text).ok_or("an entry of a vector is too long, or beyond the range of a binary64")?);
            canonical.push(if i == 0 { '[' } else { ',' });
            canonical.push_str(text);
        }
        canonical.push(']');
        let next = self.placed.len() as u32;
        Ok(*self.placed.entry(point).or_insert_with_key(|point| {
            self.entries.extend_from_slice(point);
            next
        }))
    }
}

/// The columns of a sequence that is being read.
#[derive(Default)]
struct Columns<'a> {
    first: Option<(usize, usize)>,
    tokens: Vec<Json<'a>>,
    labels: Vec<Json<'a>>,
}

impl<'a> Columns<'a> {
    fn add(&mut self, line: &'a [u8], number: usize, data: &mut Data, limits: &Limits) -> Result<()> {
        let mut parts = line.split(|b| b" \t".contains(b)).filter(|part| !part.is_empty());
        let Some(word) = parts.next().filter(|_| !line.starts_with(b"-DOCSTART-")) else {
            return self.end(data, limits);
        };
        let (count, label) = parts.fold((1, word), |(count, _), part| (count + 1, part));
        if self.first.is_none() && (line.starts_with(b"{\"tokens\"") || line.starts_with(b"{\"labels\"")) {
            return Err("this looks like JSON lines, but is read as columns".into());
        }
        let (first, wanted) = *self.first.get_or_insert((number, count));
        if count != wanted {
            return Err(format!("{count} columns here, but {wanted} in line {first}").into());
        }
        let utf8 = from_utf8(line).is_ok();
        data.latin.extend((!utf8).then_some(number));
        data.lines.push(number);
        // In Latin-1 every byte is the code point of that number.
        let text = |column: &'a [u8]| match from_utf8(column) {
            Ok(text) if utf8 => Json::Text(Cow::Borrowed(text)),
            _ => Json::Text(column.iter().map(|&b| char::from(b)).collect()),
        };
        self.tokens.push(text(word));
        if count > 1 {
            self.labels.push(if label == b"_" { Json::Null } else { text(label) });
        }
        Ok(())
    }

    /// Ends a sequence, if there is one.
    fn end(&mut self, data: &mut Data, limits: &Limits) -> Result<()> {
        let (tokens, labels) = (take(&mut self.tokens), take(&mut self.labels));
        let labels = Some(&labels[..]).filter(|labels| !labels.is_empty());
        if tokens.is_empty() { Ok(()) } else { data.sequence(&tokens, labels, limits) }
    }
}
