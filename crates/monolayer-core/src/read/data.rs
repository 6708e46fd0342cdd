//! Datasets: canonical JSON lines and CoNLL columns. Other containers are converted before they get here.
//!
//! The hash of a dataset is that of its canonical form: per sequence a line `{"tokens":[...],"labels":[...]}` without spaces
//! (without labels where there are none), strings with as few escapes as JSON allows, integers as they are, free labels as
//! null, and numbers of vectors with the text that they were read with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::decimal::Decimal;
use super::json::{self, Json};
use super::{Error, Limits, Result, file, within};
use crate::number::Dyadic;

/// The kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Columns, a token per line, a blank line between sequences.
    Conll,
    /// One JSON object per line.
    JsonLines,
}

/// Distinct vectors of one dimension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Points {
    /// The dimension.
    pub d: usize,
    /// Their entries, row-major.
    pub entries: Vec<Dyadic>,
}

/// The distinct tokens of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alphabet {
    /// Words; an integer is the word of its decimal text.
    Words(Vec<String>),
    /// Vectors.
    Vectors(Points),
}

/// The labels of a dataset: per token a number of a class or vector, or none where any label will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// There are none.
    None,
    /// Classes, with their names.
    Classes(Vec<Option<u32>>, Vec<String>),
    /// Vectors.
    Vectors(Vec<Option<u32>>, Points),
}

/// Sequences of tokens; words, vectors and classes are numbered in order of first appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// The file.
    pub name: String,
    /// BLAKE3 of the canonical form, hexadecimal.
    pub hash: String,
    /// The tokens.
    pub ids: Vec<u32>,
    /// What they mean.
    pub alphabet: Alphabet,
    /// The labels.
    pub labels: Labels,
    /// Where each sequence starts, and the number of tokens at the end.
    pub offsets: Vec<usize>,
    /// The line of each token, from 1.
    pub lines: Vec<u32>,
    /// What a person should know about how the file was read.
    pub warnings: Vec<String>,
}

/// Reads a file.
pub fn open(path: &Path, kind: Kind, limits: &Limits) -> Result<Data> {
    parse(&path.display().to_string(), &file(path, "data", limits.data)?, kind, limits)
}

/// Reads a dataset from bytes.
pub fn parse(name: &str, bytes: &[u8], kind: Kind, limits: &Limits) -> Result<Data> {
    let mut hasher = blake3::Hasher::new();
    let data = read(name, bytes, kind, limits, &mut |line| {
        hasher.update(line);
    })?;
    Ok(Data { hash: hasher.finalize().to_hex().to_string(), ..data })
}

/// The canonical form of a dataset.
pub fn canonical(name: &str, bytes: &[u8], kind: Kind, limits: &Limits) -> Result<Vec<u8>> {
    let mut form = Vec::new();
    read(name, bytes, kind, limits, &mut |line| form.extend_from_slice(line))?;
    Ok(form)
}

impl Data {
    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// How many sequences there are.
    pub fn sequences(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The tokens of sequence `i`.
    pub fn range(&self, i: usize) -> Range<usize> {
        self.offsets[i]..self.offsets[i + 1]
    }

    /// The sequence of a token and its place there, from 0.
    pub fn locate(&self, t: usize) -> (usize, usize) {
        let sequence = self.offsets.partition_point(|&start| start <= t) - 1;
        (sequence, t - self.offsets[sequence])
    }

    /// Where a token stands, for people: lines, sequences and tokens count from 1.
    pub fn place(&self, t: usize) -> String {
        let (sequence, token) = self.locate(t);
        format!("{}:{} (sequence {}, token {})", self.name, self.lines[t], sequence + 1, token + 1)
    }
}

impl Points {
    /// Vector `i`.
    pub fn row(&self, i: usize) -> &[Dyadic] {
        &self.entries[i * self.d..(i + 1) * self.d]
    }
}

fn read(name: &str, bytes: &[u8], kind: Kind, limits: &Limits, sink: &mut dyn FnMut(&[u8])) -> Result<Data> {
    within(bytes.len(), "bytes", "data", limits.data).map_err(|e| e.at(name))?;
    let (tokens, labels) = (Column::default(), Column::default());
    let (labeled, offsets, lines, warnings) = (None, vec![0], Vec::new(), Vec::new());
    let mut builder = Builder { limits, sink, tokens, labels, labeled, offsets, lines, warnings };
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match kind {
        Kind::Conll => builder.columns(bytes),
        Kind::JsonLines => builder.json_lines(bytes),
    }
    .map_err(|(line, e)| e.at(format!("{name}:{line}")))?;
    builder.finish(name).map_err(|e| e.at(name))
}

/// The longest number that a vector may have: every binary64 can be written out in so many characters.
const LONGEST: usize = 1200;

/// What the items of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Strings,
    Integers,
    Vectors(usize),
}

/// The tokens or the labels read so far.
#[derive(Default)]
struct Column {
    kind: Option<Item>,
    ids: Vec<Option<u32>>,
    names: Vec<String>,
    points: Points,
    name_ids: HashMap<String, u32>,
    point_ids: HashMap<Vec<Dyadic>, u32>,
}

struct Builder<'a> {
    limits: &'a Limits,
    sink: &'a mut dyn FnMut(&[u8]),
    tokens: Column,
    labels: Column,
    labeled: Option<bool>,
    offsets: Vec<usize>,
    lines: Vec<u32>,
    warnings: Vec<String>,
}

/// A result that names the line of an error.
type Lined<T> = std::result::Result<T, (usize, Error)>;

impl Builder<'_> {
    /// The lines of a text with their numbers, without their ends (LF or CRLF).
    fn lines<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = Lined<(usize, &'b [u8])>> + use<'b> {
        let longest = self.limits.line;
        bytes.split(|&b| b == b'\n').zip(1..).map(move |(line, at)| {
            within(line.len(), "bytes in a line", "line", longest).map_err(|e| (at, e))?;
            if line.contains(&0) {
                return Err((at, "a NUL byte".into()));
            }
            Ok((at, line.strip_suffix(b"\r").unwrap_or(line)))
        })
    }

    fn json_lines(&mut self, bytes: &[u8]) -> Lined<()> {
        for line in self.lines(bytes) {
            let (at, line) = line?;
            if !line.iter().all(|b| b" \t\r".contains(b)) {
                self.object(line, at).map_err(|e| (at, e))?;
            }
        }
        Ok(())
    }

    fn object(&mut self, line: &[u8], at: usize) -> Result<()> {
        let json = json::parse(line)?;
        let labels = json.field("labels");
        if !json.has_only(if labels.is_some() { &["tokens", "labels"] } else { &["tokens"] }) {
            return Err("it is not an object of tokens, labels or none, and nothing else".into());
        }
        let tokens = json.get("tokens").list().ok_or("tokens is not a list")?;
        let labels = labels.map(|labels| labels.list().ok_or("labels is not a list")).transpose()?;
        self.sequence(tokens, labels, &vec![number(at); tokens.len()])
    }

    fn columns(&mut self, bytes: &[u8]) -> Lined<()> {
        let (mut tokens, mut labels, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut first, mut latin, mut returns) = (None, Vec::new(), Vec::new());
        // An empty line ends the last sequence.
        for line in self.lines(bytes).chain([Ok((0, &b""[..]))]) {
            let (at, line) = line?;
            let utf8 = std::str::from_utf8(line).is_ok();
            if !utf8 {
                latin.push(at);
            }
            if line.contains(&b'\r') {
                returns.push(at);
            }
            let mut parts = line.split(|b| b" \t".contains(b)).filter(|part| !part.is_empty());
            let Some(word) = parts.next().filter(|_| !line.starts_with(b"-DOCSTART-")) else {
                if let Some(&place) = places.last() {
                    let labels = Some(&labels[..]).filter(|labels| !labels.is_empty());
                    self.sequence(&tokens, labels, &places).map_err(|e| (place as usize, e))?;
                }
                tokens.clear();
                labels.clear();
                places.clear();
                continue;
            };
            let (count, label) = parts.fold((1, word), |(count, _), part| (count + 1, part));
            if first.is_none() && (line.starts_with(b"{\"tokens\"") || line.starts_with(b"{\"labels\"")) {
                return Err((at, "this looks like JSON lines, but is read as columns".into()));
            }
            let &mut (line_of_first, wanted) = first.get_or_insert((at, count));
            if count != wanted {
                return Err((at, format!("{count} columns here, but {wanted} in line {line_of_first}").into()));
            }
            tokens.push(Json::Text(decoded(word, utf8)));
            places.push(number(at));
            if count > 1 {
                labels.push(if label == b"_" { Json::Null } else { Json::Text(decoded(label, utf8)) });
            }
        }
        let mut warn = |lines: &[usize], what: &str| {
            if let Some(first) = lines.first() {
                self.warnings.push(format!("{} lines (first: line {first}) {what}", lines.len()));
            }
        };
        warn(&latin, "are not UTF-8 and were read as Latin-1");
        warn(&returns, "have a carriage return that does not end the line; it is part of its column");
        Ok(())
    }

    /// Adds a sequence, and gives its canonical form to the sink.
    fn sequence(&mut self, tokens: &[Json], labels: Option<&[Json]>, places: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Err("the sequence is empty".into());
        }
        if *self.labeled.get_or_insert(labels.is_some()) != labels.is_some() {
            return Err("labels on some lines and not on others".into());
        }
        within(tokens.len(), "tokens in a sequence", "length", self.limits.length)?;
        within(self.lines.len() + tokens.len(), "tokens", "tokens", self.limits.tokens)?;
        let mut line = "{\"tokens\":[".to_owned();
        self.tokens.extend(tokens, false, &mut line).map_err(|e| e.at("tokens"))?;
        if let Some(labels) = labels {
            if labels.len() != tokens.len() {
                return Err(format!("{} labels for {} tokens", labels.len(), tokens.len()).into());
            }
            line.push_str("],\"labels\":[");
            self.labels.extend(labels, true, &mut line).map_err(|e| e.at("labels"))?;
            within(self.labels.names.len(), "different labels", "labels", self.limits.labels)?;
        }
        line.push_str("]}\n");
        (self.sink)(line.as_bytes());
        self.lines.extend_from_slice(places);
        self.offsets.push(self.lines.len());
        Ok(())
    }

    fn finish(self, name: &str) -> Result<Data> {
        if self.lines.is_empty() {
            return Err("there is no sequence in it".into());
        }
        let (tokens, labels) = (self.tokens, self.labels);
        Ok(Data {
            name: name.to_owned(),
            hash: String::new(),
            ids: tokens.ids.into_iter().flatten().collect(),
            alphabet: match tokens.kind {
                Some(Item::Vectors(_)) => Alphabet::Vectors(tokens.points),
                _ => Alphabet::Words(tokens.names),
            },
            labels: match labels.kind {
                _ if self.labeled != Some(true) => Labels::None,
                Some(Item::Vectors(_)) => Labels::Vectors(labels.ids, labels.points),
                _ => Labels::Classes(labels.ids, labels.names),
            },
            offsets: self.offsets,
            lines: self.lines,
            warnings: self.warnings,
        })
    }
}

impl Column {
    /// Adds items, and their canonical form to a line; only where `free` may one be none.
    fn extend(&mut self, items: &[Json], free: bool, line: &mut String) -> Result<()> {
        for (i, item) in items.iter().enumerate() {
            line.push_str(if i > 0 { "," } else { "" });
            let id = match item {
                Json::Null if free => None,
                Json::Text(word) => {
                    self.set(Item::Strings)?;
                    json::quote(word, line);
                    Some(self.name(word))
                }
                Json::Number(text) if integer(text) => {
                    self.set(Item::Integers)?;
                    let id = (!free || *text != "-100").then(|| self.name(text));
                    line.push_str(id.map_or("", |_| text));
                    id
                }
                Json::List(entries) => Some(self.vector(entries, line)?),
                _ => return Err("an item is neither a string nor an integer of 64 bits nor a vector".into()),
            };
            line.push_str(if id.is_none() { "null" } else { "" });
            self.ids.push(id);
        }
        Ok(())
    }

    fn set(&mut self, kind: Item) -> Result<()> {
        match *self.kind.get_or_insert(kind) {
            before if before == kind => Ok(()),
            before => Err(format!("{kind:?} here, {before:?} before").into()),
        }
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.name_ids.get(name) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.name_ids.insert(name.to_owned(), id);
        id
    }

    fn vector(&mut self, entries: &[Json], line: &mut String) -> Result<u32> {
        if entries.is_empty() {
            return Err("a vector is empty".into());
        }
        self.set(Item::Vectors(entries.len()))?;
        let mut point = Vec::with_capacity(entries.len());
        for (i, entry) in entries.iter().enumerate() {
            let text = entry.number().filter(|text| text.len() <= LONGEST);
            let text = text.ok_or("a vector has an entry that is not a number, or a very long one")?;
            point.push(Decimal::new(text).nearest().ok_or("a vector has an entry beyond the range of a binary64")?);
            line.push(if i > 0 { ',' } else { '[' });
            line.push_str(text);
        }
        line.push(']');
        let next = self.point_ids.len() as u32;
        let id = *self.point_ids.entry(point).or_insert_with_key(|point| {
            self.points.entries.extend_from_slice(point);
            next
        });
        self.points.d = entries.len();
        Ok(id)
    }
}

/// A line number, as far as they go.
fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Whether a number is an integer of 64 bits. There is one zero: "-0" is none.
fn integer(text: &str) -> bool {
    text != "-0" && (text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok())
}

/// The text of a column; of a line that is not UTF-8, every byte is the code point of that number (Latin-1).
fn decoded(column: &[u8], utf8: bool) -> Cow<'_, str> {
    match std::str::from_utf8(column) {
        Ok(text) if utf8 => text.into(),
        _ => column.iter().map(|&b| char::from(b)).collect(),
    }
}
