//! Opening a dataset of any format: it is converted where needed and read by the core. Knows the line of each token.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use monolayer_core::number::Dyadic;
use monolayer_core::read::data::{self, Data, Kind, Reader, Values};
use monolayer_core::read::{self, Limits, at};

use crate::convert::{arrays, json_numbers, task, text};
use crate::error::{Error, Result};
use crate::options::Format;

/// A dataset.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file, `<stdin>`, or the task.
    pub name: String,
    /// What the core read.
    pub data: Data,
    /// What a person should know about how it was read.
    pub warnings: Vec<String>,
    /// Whether lines of the core's text are lines of the file.
    lines: bool,
}

/// Reads a dataset: a path, "-" for standard input, or a synthetic task.
pub fn open(name: &str, format: Option<Format>, limits: &Limits) -> Result<Source> {
    if name.starts_with("task:") {
        if format.is_some() {
            return Err(Error::new(name, "a task is no file of any format", "leave the format out"));
        }
        let (name, text) = at(name, task::canonical(name, limits))?;
        let data = at(&name, data::parse(text.as_bytes(), Kind::JsonLines, limits))?;
        return Ok(Source { name, data, warnings: vec![], lines: false });
    }
    let content = bytes(name, limits)?;
    let shown = if name == "-" { "<stdin>" } else { name };
    parse(shown, &content, format.unwrap_or_else(|| Format::of(name)), limits)
}

/// Reads a dataset from bytes.
pub fn parse(name: &str, content: &[u8], format: Format, limits: &Limits) -> Result<Source> {
    let read = || {
        let (kind, text) = for_core(content, format, limits)?;
        data::parse(&text, kind, limits)
    };
    let data = at(name, read())?;
    let latin = data.latin.first().map(|line| {
        let count = data.latin.len();
        format!("{name}: {count} lines are not UTF-8 (first: line {line}) and were read as Latin-1")
    });
    let lines = matches!(format, Format::Conll | Format::JsonLines);
    Ok(Source { name: name.to_owned(), data, warnings: latin.into_iter().collect(), lines })
}

/// A file as the core reads it.
fn for_core<'a>(content: &'a [u8], format: Format, limits: &Limits) -> read::Result<(Kind, Cow<'a, [u8]>)> {
    let lines = |text: String| Cow::Owned(text.into_bytes());
    Ok(match format {
        Format::Conll => (Kind::Conll, Cow::Borrowed(content)),
        Format::JsonLines => (Kind::JsonLines, json_numbers::canonical(content)),
        Format::Arrays => (Kind::JsonLines, lines(arrays::canonical(content, limits)?)),
        Format::Words | Format::Characters => {
            (Kind::JsonLines, lines(text::canonical(content, format == Format::Words, limits)?))
        }
    })
}

/// What the core reads in bytes, and its canonical form.
pub fn with_canonical(content: &[u8], format: Format, limits: &Limits) -> read::Result<(Data, String)> {
    let (kind, text) = for_core(content, format, limits)?;
    Reader::new(kind, limits).with_canonical(&text)
}

/// A dataset that another program converts to its canonical form, which it writes; `note` says which, and lines of the file are not known.
pub fn converted(
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    note: String,
    limits: &Limits,
) -> Result<Source> {
    let mut feed = Feed { reader: Reader::new(Kind::JsonLines, limits), refused: None };
    let written = write(&mut feed).map_err(|e| e.to_string().into());
    let data = at(name, feed.refused.map_or(written, Err).and_then(|()| feed.reader.end()))?;
    Ok(Source { name: name.to_owned(), data, warnings: vec![note], lines: false })
}

/// What is written here is read by the core.
struct Feed<'a> {
    reader: Reader<'a>,
    /// Why the core did not read on.
    refused: Option<read::Error>,
}

impl Write for Feed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.reader.feed(bytes).map(|()| bytes.len()).map_err(|refused| {
            let what = refused.what.clone();
            self.refused = Some(refused);
            io::Error::other(what)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a dataset: a regular file, a named pipe, or standard input for "-".
pub fn bytes(name: &str, limits: &Limits) -> Result<Vec<u8>> {
    if name == "-" {
        return Ok(at("<stdin>", stream(io::stdin().lock(), limits))?);
    }
    let path = Path::new(name);
    if fs::metadata(path).is_ok_and(|found| is_pipe(found.file_type())) {
        let fault = |e: io::Error| Error::new(name, e.to_string(), "check the path and its permissions");
        return Ok(at(name, stream(fs::File::open(path).map_err(fault)?, limits))?);
    }
    Ok(read::file(path, "bytes", limits.bytes)?)
}

/// All bytes of something that need not end.
fn stream(from: impl Read, limits: &Limits) -> read::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take((limits.bytes as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() > limits.bytes {
        let what = format!("more bytes than the limit \"bytes\" of {}", limits.bytes);
        return Err(read::Error { limit: Some("bytes"), ..what.into() });
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_pipe(kind: fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: fs::FileType) -> bool {
    false
}

impl Source {
    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        self.data.tokens.len()
    }

    /// How many sequences there are.
    pub fn sequences(&self) -> usize {
        self.data.offsets.len() - 1
    }

    /// The sequence of a token and its place there, from 0.
    pub fn locate(&self, t: usize) -> (usize, usize) {
        let sequence = self.data.offsets.partition_point(|&start| start <= t) - 1;
        (sequence, t - self.data.offsets[sequence])
    }

    /// Where a token stands, for people: lines, sequences and tokens count from 1.
    pub fn place(&self, t: usize) -> String {
        let (sequence, token) = self.locate(t);
        let line = if self.lines { format!(":{}", self.data.line(t)) } else { String::new() };
        format!("{}{line} (sequence {}, token {})", self.name, sequence + 1, token + 1)
    }

    /// The token as a person reads it.
    pub fn shown(&self, t: usize) -> String {
        shown(&self.data.values, self.data.tokens[t])
    }

    /// The label of a token as a person reads it; nothing where there is none, or any will do.
    pub fn label(&self, t: usize) -> Option<String> {
        self.data.labels.as_ref()?[t].map(|label| shown(&self.data.label_values, label))
    }

    /// How many labels are free.
    pub fn free(&self) -> usize {
        self.data.labels.iter().flatten().filter(|label| label.is_none()).count()
    }
}

fn shown(values: &Values, id: u32) -> String {
    let id = id as usize;
    if values.d == 0 {
        return values.names[id].clone();
    }
    format!("{:?}", values.entries[id * values.d..(id + 1) * values.d].iter().map(|x| float(*x)).collect::<Vec<_>>())
}

/// A number of a file as a float: exact for every binary64.
pub fn float(x: Dyadic) -> f64 {
    scaled(x.m as f64, x.e)
}

/// x 2^e, for people: rounded where it is subnormal.
pub(crate) fn scaled(x: f64, e: i32) -> f64 {
    // A power of two is applied in parts, so that none of them overflows before the result does.
    let mut left = e;
    let mut x = x;
    while left != 0 && x != 0.0 && x.is_finite() {
        let step = left.clamp(-1000, 1000);
        x *= 2_f64.powi(step);
        left -= step;
    }
    x
}
