//! Datasets: canonical JSON lines and CoNLL columns. Other containers are converted before they get here.
//!
//! The hash of a dataset is that of its canonical form: per sequence a line `{"tokens":[...],"labels":[...]}` without spaces
//! (without labels where there are none), strings with as few escapes as JSON allows, integers as they are, free labels as
//! null, and numbers of vectors with the text that they were read with.

use std::collections::HashMap;
use std::mem::take;
use std::str::from_utf8;

use super::decimal::nearest;
use super::json::{self, Json};
use super::{Limits, Result, at, within};
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
    /// The line of each sequence's first token, from 1, and whether every token has a line of its own.
    pub lines: Vec<usize>,
    columns: bool,
    /// The lines that are not UTF-8 and were read as Latin-1.
    pub latin: Vec<usize>,
    /// The canonical form of what was read last.
    text: String,
}

/// Reads a dataset; an error names the line.
pub fn parse(bytes: &[u8], kind: Kind, limits: &Limits) -> Result<Data> {
    let mut reader = Reader::new(kind, limits);
    reader.feed(bytes)?;
    reader.end()
}

/// Reads a dataset that comes in pieces, wherever they are cut.
pub struct Reader<'a> {
    kind: Kind,
    limits: &'a Limits,
    data: Data,
    columns: Columns,
    hasher: blake3::Hasher,
    /// The canonical form, if it is to be kept.
    canonical: Option<String>,
    /// Bytes and lines that were read.
    bytes: usize,
    line: usize,
    /// The beginning of a line.
    rest: Vec<u8>,
}

impl<'a> Reader<'a> {
    /// Begins a dataset.
    pub fn new(kind: Kind, limits: &'a Limits) -> Self {
        let data = Data { offsets: vec![0], columns: kind == Kind::Conll, ..Data::default() };
        let (columns, hasher) = (Columns::default(), blake3::Hasher::new());
        Self { kind, limits, data, columns, hasher, canonical: None, bytes: 0, line: 0, rest: vec![] }
    }

    /// Reads on; an error names the line.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        within(self.bytes, "bytes", "bytes", self.limits.bytes)?;
        while let Some(end) = bytes.iter().position(|&b| b == b'\n') {
            let mut rest = take(&mut self.rest);
            if rest.is_empty() {
                self.one(&bytes[..end])?;
            } else {
                rest.extend_from_slice(&bytes[..end]);
                self.one(&rest)?;
                rest.clear();
                self.rest = rest;
            }
            bytes = &bytes[end + 1..];
        }
        self.rest.extend_from_slice(bytes);
        // What is too long already need not be read to its end.
        if self.rest.len() > LONGEST_LINE + 4 { self.one(&[0]) } else { Ok(()) }
    }

    /// The dataset, once all is read.
    pub fn end(self) -> Result<Data> {
        self.canonical_too().map(|(data, _)| data)
    }

    /// The dataset and its canonical form, which is read at once.
    pub fn with_canonical(mut self, bytes: &[u8]) -> Result<(Data, String)> {
        self.canonical = Some(String::new());
        self.feed(bytes)?;
        self.canonical_too()
    }

    fn canonical_too(mut self) -> Result<(Data, String)> {
        let rest = take(&mut self.rest);
        self.one(&rest)?;
        let ended = self.columns.end(&mut self.data, self.limits);
        at(format!("line {}", self.line), ended)?;
        self.hash();
        if self.data.tokens.is_empty() {
            return Err("there is no sequence in it".into());
        }
        self.data.hash = self.hasher.finalize().to_hex().to_string();
        Ok((self.data, self.canonical.unwrap_or_default()))
    }

    /// Takes the canonical form of what was read since.
    fn hash(&mut self) {
        self.hasher.update(self.data.text.as_bytes());
        if let Some(canonical) = &mut self.canonical {
            canonical.push_str(&self.data.text);
        }
        self.data.text.clear();
    }

    /// One line.
    fn one(&mut self, text: &[u8]) -> Result<()> {
        let text = if self.line == 0 { text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text) } else { text };
        self.line += 1;
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let found = if text.contains(&0) || text.len() > LONGEST_LINE {
            Err(format!("a NUL byte, or a line of more than {LONGEST_LINE} bytes").into())
        } else {
            match self.kind {
                Kind::Conll => self.columns.add(text, self.line, &mut self.data, self.limits),
                Kind::JsonLines if text.iter().all(|b| b" \t\r".contains(b)) => Ok(()),
                Kind::JsonLines => self.data.object(text, self.line, self.limits),
            }
        };
        self.hash();
        at(format!("line {}", self.line), found)
    }
}

impl Data {
    /// How many different tokens there are.
    pub fn different(&self) -> usize {
        self.values.names.len().max(self.values.placed.len())
    }

    /// The line of a token, from 1.
    pub fn line(&self, token: usize) -> usize {
        let s = self.offsets.partition_point(|first| *first <= token) - 1;
        self.lines[s] + if self.columns { token - self.offsets[s] } else { 0 }
    }

    fn object(&mut self, line: &[u8], number: usize, limits: &Limits) -> Result<()> {
        let json = json::parse(line)?;
        let labels = json.field("labels");
        json.only(if labels.is_some() { &["tokens", "labels"] } else { &["tokens"] })?;
        let tokens = json.need("tokens", "a list", Json::list)?;
        let labels = labels.map(|labels| labels.list().ok_or("\"labels\" is not a list")).transpose()?;
        self.sequence(tokens, labels, number, limits)
    }

    /// Adds a sequence that begins in this line.
    fn sequence(&mut self, tokens: &[Json], labels: Option<&[Json]>, line: usize, limits: &Limits) -> Result<()> {
        if tokens.is_empty() || labels.is_some_and(|labels| labels.len() != tokens.len()) {
            let labels = labels.map_or(0, <[Json]>::len);
            return Err(format!("an empty sequence, or {labels} labels for {} tokens", tokens.len()).into());
        }
        if !self.tokens.is_empty() && labels.is_some() != self.labels.is_some() {
            return Err("labels on some lines and not on others".into());
        }
        within(tokens.len(), "tokens in a sequence", "length", limits.length)?;
        // Tokens have numbers of 32 bits.
        let most = limits.tokens.min(u32::MAX as usize);
        within(self.tokens.len() + tokens.len(), "tokens", "tokens", most)?;
        self.lines.push(line);
        let canonical = &mut self.text;
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
                &**text
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
        if let Some(known) = self.named.get(name) {
            return Ok(*known);
        }
        let next = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.named.insert(name.to_owned(), next);
        Ok(next)
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
struct Columns {
    /// The first line that has columns, and how many.
    first: Option<(usize, usize)>,
    tokens: Vec<Json<'static>>,
    labels: Vec<Json<'static>>,
    /// Where the sequence begins.
    line: usize,
}

impl Columns {
    fn add(&mut self, line: &[u8], number: usize, data: &mut Data, limits: &Limits) -> Result<()> {
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
        self.line = if self.tokens.is_empty() { number } else { self.line };
        // In Latin-1 every byte is the code point of that number.
        let text = |column: &[u8]| match from_utf8(column) {
            Ok(text) if utf8 => Json::Text(text.to_owned().into()),
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
        if tokens.is_empty() { Ok(()) } else { data.sequence(&tokens, labels, self.line, limits) }
    }
}
