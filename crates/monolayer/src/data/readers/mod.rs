//! From the name of a file, or of a task, to a dataset.

mod conll;
mod decompress;
mod fill;
mod json_fields;
mod json_lines;
mod lines;
mod numpy;
mod options;
mod pieces;
mod reading;
mod recognize;
mod safetensors_arrays;
mod table;
mod via_json_lines;
mod warnings;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use self::json_lines::Fault;
pub use self::options::{Column, DataOptions};
pub use self::reading::{Reading, thousands_apart};

use super::task::Task;
pub(crate) use super::{Dataset, Labels, Names, Orderings, Tokens, Vocabulary, Written};
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
    /// One value of JSON: a list of objects with tokens and labels, or an object with a list for each field.
    Json,
    /// A table with commas, semicolons or bars between cells, and quotes: a row is a token or a sequence.
    Csv,
    /// A table with tabs between cells.
    Tsv,
    /// One NumPy array: the ids of tokens `[N, n]`, or their vectors `[N, n, d]`.
    Npy,
    /// NumPy arrays by name: `tokens`, and `labels` `[N, n]` or `[N]`.
    Npz,
}

impl Format {
    const ALL: [Self; 8] =
        [Self::Conll, Self::JsonLines, Self::Json, Self::Csv, Self::Tsv, Self::Npy, Self::Npz, Self::Arrays];

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Conll => "CoNLL columns",
            Self::JsonLines => "JSON lines",
            Self::Arrays => "safetensors",
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Npy => "a NumPy array",
            Self::Npz => "NumPy arrays",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conll => "conll",
            Self::JsonLines => "jsonl",
            Self::Arrays => "safetensors",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Npy => "npy",
            Self::Npz => "npz",
        })
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.to_string() == name).ok_or_else(|| {
            let help = "the formats are conll, jsonl, json, csv, tsv, npy, npz and safetensors";
            Error::setting(format!("{name:?} is not a format"), help)
        })
    }
}

impl Dataset {
    /// Reads a dataset: a file, whose content tells its format; `-`, standard input; or a synthetic task such as
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

    /// Reads a dataset of a given format; without one, the content tells.
    pub fn open_as(source: impl AsRef<Path>, format: Option<Format>) -> Result<Self> {
        Self::open_with(source, &DataOptions { format, ..DataOptions::default() }).map(|reading| reading.data)
    }

    /// Reads a dataset as the options say, and says what was understood.
    pub fn open_with(source: impl AsRef<Path>, options: &DataOptions) -> Result<Reading> {
        let path = source.as_ref();
        let source = &*path.to_string_lossy();
        if source.starts_with("task:") {
            if let Some(format) = options.format {
                let help = "leave the format out, or write ./task:... for a file of that name";
                return Err(Error::mismatch(format!("{source}: a task is no {format} file"), help));
            }
            if options.any() {
                let what = format!("{source}: a task is no file, and options of files say nothing about it");
                return Err(Error::mismatch(what, "leave them out"));
            }
            return source.parse::<Task>()?.dataset().map(Reading::of_task);
        }
        if source == "-" {
            return reading::read("<stdin>", Box::new(std::io::stdin().lock()), options);
        }
        let file = File::open(path).map_err(|e| Error::io(source, e))?;
        reading::read(source, Box::new(file), options)
    }

    /// Reads a dataset as the options say from anything that can be read; the ending of `name` is a hint at its format.
    pub fn read_with(name: &str, reader: impl Read, options: &DataOptions) -> Result<Reading> {
        reading::read(name, Box::new(reader), options)
    }

    /// Reads a dataset from anything that can be read; `name` is what errors call it. CoNLL columns, JSON lines and safetensors are
    /// read to the letter, with nothing skipped and nothing added.
    pub fn read(name: &str, format: Format, reader: impl Read) -> Result<Self> {
        match format {
            Format::Conll => conll::read(name, reader),
            Format::JsonLines => json_lines::read(name, reader),
            Format::Arrays => safetensors_arrays::read(name, reader),
            Format::Json | Format::Csv | Format::Tsv | Format::Npy | Format::Npz => {
                let options = DataOptions { format: Some(format), ..DataOptions::default() };
                Self::read_with(name, reader, &options).map(|reading| reading.data)
            }
        }
    }
}
