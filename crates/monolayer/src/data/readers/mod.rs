//! From the name of a file, or of a task, to a dataset.

mod arrays;
mod conll;
mod json_lines;
mod lines;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use super::task::Task;
pub(crate) use super::{Dataset, Labels, Names, Tokens, Vocabulary, Written};
use crate::error::{Error, Result};

/// The kinds of dataset files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// CoNLL columns: a token per line, its word in the first column and its label in the last (one column: no labels),
    /// a blank line between sequences.
    Conll,
    /// JSON lines: a sequence per line, `{"tokens": ["a", "b"], "labels": ["X", "Y"]}`, with words or vectors as tokens
    /// and strings, integers or vectors as labels.
    JsonLines,
    /// A safetensors file: `tokens` `[N, n, d]`, or ragged `tokens` `[T, d]` with `lengths` `[N]`; and `labels`, integers
    /// `[N, n]` or `[T]` for classes, floats of the shape of `tokens` for outputs.
    Arrays,
}

impl Format {
    const ALL: [Self; 3] = [Self::Conll, Self::JsonLines, Self::Arrays];

    /// The kind of a file, by the ending of its name: `.jsonl`, `.safetensors`, or any other for CoNLL columns.
    pub fn of(source: &str) -> Self {
        match source.rsplit_once('.') {
            Some((_, "jsonl")) => Self::JsonLines,
            Some((_, "safetensors")) => Self::Arrays,
            _ => Self::Conll,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conll => "conll",
            Self::JsonLines => "jsonl",
            Self::Arrays => "safetensors",
        })
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.to_string() == name).ok_or_else(|| {
            Error::setting(format!("{name:?} is not a format"), "the formats are conll, jsonl and safetensors")
        })
    }
}

impl Dataset {
    /// Reads a dataset: a file, whose kind is told by its ending; `-`, standard input; or a synthetic task such as
    /// `task:sort:alphabet=4,length=6` (see [`Task`]).
    ///
    /// ```
    /// let data = monolayer::Dataset::open("task:reverse:alphabet=3,length=2")?;
    /// assert_eq!((data.sequences(), data.tokens()), (9, 18));
    /// assert_eq!((data.word(2), data.label(2)), (Some("a"), Some("b")));
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn open(source: impl AsRef<Path>) -> Result<Self> {
        Self::open_as(source, None)
    }

    /// Reads a dataset of a given format; without one, the ending tells.
    pub fn open_as(source: impl AsRef<Path>, format: Option<Format>) -> Result<Self> {
        let path = source.as_ref();
        let source = &*path.to_string_lossy();
        if source.starts_with("task:") {
            if let Some(format) = format {
                let help = "leave the format out, or write ./task:... for a file of that name";
                return Err(Error::mismatch(format!("{source}: a task is no {format} file"), help));
            }
            return source.parse::<Task>()?.dataset();
        }
        let format = format.unwrap_or_else(|| Format::of(source));
        if source == "-" {
            return Self::read("<stdin>", format, std::io::stdin().lock());
        }
        let file = File::open(path).map_err(|e| Error::io(source, e))?;
        Self::read(source, format, file)
    }

    /// Reads a dataset from anything that can be read; `name` is what errors call it.
    pub fn read(name: &str, format: Format, reader: impl Read) -> Result<Self> {
        match format {
            Format::Conll => conll::read(name, reader),
            Format::JsonLines => json_lines::read(name, reader),
            Format::Arrays => arrays::read(name, reader),
        }
    }
}
