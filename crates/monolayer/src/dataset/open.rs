//! From a name on the command line to a dataset.

use std::fs::File;
use std::io::Read;
use std::str::FromStr;

use super::{Dataset, conll};
use crate::error::{Error, Result};

/// The kinds of dataset files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A token per line, its word in the first column and its label in the last.
    Conll,
}

impl Format {
    /// The kind of a file, by the ending of its name.
    pub fn of(_source: &str) -> Self {
        Self::Conll
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "conll" => Ok(Self::Conll),
            _ => {
                Err(Error::request(format!("{name:?} is not a format"), "the formats are conll, jsonl and safetensors"))
            }
        }
    }
}

impl Dataset {
    /// Reads a dataset: a file, whose kind is told by its ending, or `-` for standard input.
    pub fn open(source: &str) -> Result<Self> {
        Self::open_as(source, None)
    }

    /// Reads a dataset of a given format; without one, the ending tells.
    pub fn open_as(source: &str, format: Option<Format>) -> Result<Self> {
        let format = format.unwrap_or_else(|| Format::of(source));
        if source == "-" {
            return Self::read("<stdin>", format, std::io::stdin().lock());
        }
        let file = File::open(source).map_err(|e| Error::io(source, e))?;
        Self::read(source, format, file)
    }

    /// Reads a dataset from anything that can be read; `name` is what errors call it.
    pub fn read(name: &str, format: Format, reader: impl Read) -> Result<Self> {
        match format {
            Format::Conll => conll::read(name, reader),
        }
    }
}
