//! A dataset as the checker reads it: sequences of words or vectors, with a class or a vector per token.

mod arrays;
mod conll;
mod jsonl;

use std::collections::HashMap;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::read::bytes;

/// The kinds of dataset files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns, a token per line, a blank line between sequences.
    Conll,
    /// One JSON object per line.
    JsonLines,
    /// A safetensors file with "tokens" and "labels".
    Arrays,
}

/// Sequences of tokens with a label per token; `offsets[i]..offsets[i + 1]` are the tokens of sequence `i`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The file, or `<stdin>`.
    pub name: String,
    /// BLAKE3 of the bytes.
    pub hash: String,
    /// The tokens, as ids of distinct words or vectors.
    pub ids: Vec<u32>,
    /// What the ids mean.
    pub alphabet: Alphabet,
    /// The labels.
    pub labels: Labels,
    /// Where each sequence starts, and the number of tokens at the end.
    pub offsets: Vec<usize>,
    /// The line of each token, for text files.
    pub lines: Vec<u32>,
    /// What a person should know about how the file was read.
    pub warnings: Vec<String>,
}

/// The distinct tokens of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub enum Alphabet {
    /// Words.
    Words(Vec<String>),
    /// Vectors of dimension `d`, row-major.
    Vectors {
        /// The dimension.
        d: usize,
        /// The entries of the distinct vectors.
        data: Vec<f64>,
    },
}

/// The labels of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// It has none.
    None,
    /// Classes: ids into names.
    Classes(Vec<u32>, Vec<String>),
    /// Vectors: ids into distinct vectors of dimension `d`, row-major.
    Vectors(Vec<u32>, usize, Vec<f64>),
}

/// Reads a dataset: a path, or "-" for standard input.
pub fn open(name: &str, format: Option<Format>) -> Result<Dataset> {
    if name.starts_with("task:") {
        let help = "write the task to a file and give that";
        return Err(Error::new(name, "the checker reads files, and this is a synthetic task", help));
    }
    let content = bytes::dataset(name)?;
    let shown = if name == "-" { "<stdin>" } else { name };
    parse(shown, &content, format.unwrap_or_else(|| Format::of(name)))
}

/// Reads a dataset from bytes.
pub fn parse(name: &str, content: &[u8], format: Format) -> Result<Dataset> {
    let dataset = match format {
        Format::Conll => conll::parse(name, content),
        Format::JsonLines => jsonl::parse(name, content),
        Format::Arrays => arrays::parse(name, content),
    }?;
    if dataset.tokens() == 0 {
        return Err(Error::new(name, "there is no sequence in it", "give a file with at least one token"));
    }
    Ok(Dataset { hash: bytes::hash(content), ..dataset })
}

impl Format {
    /// The kind of a file by its ending.
    pub fn of(name: &str) -> Self {
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("jsonl") => Self::JsonLines,
            Some("safetensors") => Self::Arrays,
            _ => Self::Conll,
        }
    }
}

impl Dataset {
    fn empty(name: &str, alphabet: Alphabet, labels: Labels) -> Self {
        let (name, hash) = (name.to_owned(), String::new());
        Self { name, hash, ids: vec![], alphabet, labels, offsets: vec![0], lines: vec![], warnings: vec![] }
    }

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
        let line = self.lines.get(t).map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line} (sequence {}, token {})", self.name, sequence + 1, token + 1)
    }

    /// The token as a person reads it.
    pub fn shown(&self, t: usize) -> String {
        let id = self.ids[t] as usize;
        match &self.alphabet {
            Alphabet::Words(words) => words[id].clone(),
            Alphabet::Vectors { d, data } => format!("{:?}", &data[id * d..(id + 1) * d]),
        }
    }
}

/// Numbers names in order of first appearance.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) names: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Names {
    pub(crate) fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }
}

/// Numbers vectors in order of first appearance; equal values are equal vectors, so -0 is 0.
#[derive(Default)]
pub(crate) struct Points {
    pub(crate) data: Vec<f64>,
    ids: HashMap<Vec<u64>, u32>,
}

impl Points {
    pub(crate) fn id(&mut self, point: &[f64]) -> u32 {
        let key: Vec<u64> = point.iter().map(|x| (x + 0.0).to_bits()).collect();
        let next = self.ids.len() as u32;
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.data.extend(point.iter().map(|x| x + 0.0));
        }
        id
    }
}
