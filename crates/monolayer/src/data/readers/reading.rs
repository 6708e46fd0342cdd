//! From a file of any kind to a dataset, with one line that says what was understood.

use std::io::{self, Read};

use super::decompress::{Compression, UnpackedLimit};
use super::recognize::{self, ColumnDoubts, ColumnStyle, FileStart, LineShape};
use super::table::cell_split::CellSplit;
use super::via_json_lines::FoundData;
use super::{DataOptions, Dataset, Format, json_fields, numpy, safetensors_arrays, table, warnings};
use crate::data::Labels;
use crate::error::{Error, Location, Result};
use crate::model::tensor_file;

/// A dataset, and how it was read.
///
/// ```
/// use monolayer::Dataset;
/// use monolayer::data::DataOptions;
///
/// let text = "word,tag\nMay,PER\nsails,O\n\nin,O\nMay,DATE\n";
/// let reading = Dataset::read_with("f.csv", text.as_bytes(), &DataOptions::default())?;
/// let line = "f.csv: CSV, 2 sequences, 4 tokens, words from column 1 (word), labels from column 2 (tag), 3 labels";
/// assert_eq!(reading.line(), line);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reading {
    /// The dataset. Its warnings say what looks wrong.
    pub data: Dataset,
    /// The format that was found.
    pub format: Format,
    /// Whether the bytes are what the checker's own reader reads in this format: no options, not compressed, nothing skipped.
    pub plain: bool,
    /// What the file was packed with, the outermost first.
    packed: Vec<&'static str>,
    /// Where tokens and labels were found.
    tokens_from: String,
    labels_from: Option<String>,
    notes: Vec<String>,
}

impl Reading {
    /// A synthetic task.
    pub(super) fn of_task(data: Dataset) -> Self {
        Self::without_columns(data, "a task")
    }

    /// A text, whose labels are its next tokens.
    pub fn of_text(data: Dataset) -> Self {
        Self::without_columns(data, "a text")
    }

    /// Data in which there are no columns or fields to find.
    fn without_columns(data: Dataset, title: &'static str) -> Self {
        let (packed, notes) = (vec![title], Vec::new());
        Self {
            data,
            format: Format::JsonLines,
            plain: true,
            packed,
            tokens_from: String::new(),
            labels_from: None,
            notes,
        }
    }

    /// What was understood, in one line.
    pub fn line(&self) -> String {
        let data = &self.data;
        let count = |n: usize, noun: &str| {
            format!("{} {noun}{}", thousands_apart(&n.to_string()), if n == 1 { "" } else { "s" })
        };
        let mut parts: Vec<String> = self.packed.iter().map(|&packed| packed.to_owned()).collect();
        if !self.tokens_from.is_empty() {
            parts.push(self.format.title().to_owned());
        }
        parts.extend([count(data.sequences(), "sequence"), count(data.tokens(), "token")]);
        let what = if data.word(0).is_some() { "words" } else { "vectors" };
        if !self.tokens_from.is_empty() {
            parts.push(format!("{what} from {}", self.tokens_from));
        }
        parts.extend(self.labels_from.as_ref().map(|from| format!("labels from {from}")));
        parts.push(match &data.labels {
            Labels::None => "no labels".to_owned(),
            Labels::Classes { names, .. } => count(names.len(), "label"),
            Labels::Vectors { d, .. } => format!("outputs of dimension {d}"),
        });
        parts.extend(self.notes.iter().cloned());
        format!("{}: {}", data.name, parts.join(", "))
    }
}

/// The digits of a number with its thousands apart: 203,621.
pub fn thousands_apart(digits: &str) -> String {
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    parts.join(",")
}

/// A packed file in a packed file is enough.
const DEEPEST: usize = 2;

/// Reads a file of any kind: it is unpacked, looked at, and read by the reader of its format.
pub(super) fn read<'a>(name: &str, mut reader: Box<dyn Read + 'a>, options: &DataOptions) -> Result<Reading> {
    let mut packed = Vec::new();
    let limit = UnpackedLimit::new(options.most_bytes);
    reader = limit.count(reader);
    let file_start = loop {
        let file_start = FileStart::read(name, &mut reader)?;
        let Some(packing) = Compression::of(&file_start.bytes) else { break file_start };
        if packed.len() == DEEPEST {
            let help = "unpack it and give the file that is inside";
            return Err(Error::data(Location::file(name), "packed files in packed files", help));
        }
        packed.push(packing.title());
        reader = packing.unpack(Box::new(io::Cursor::new(file_start.bytes).chain(reader)), &limit);
    };
    let format = recognize::format(name, &file_start, options)?;
    options.only(name, format)?;
    let mut reading = RecognizedFile { name, format, file_start, options }.read(reader)?;
    reading.plain &= packed.is_empty();
    reading.packed = packed;
    let format = reading.format;
    warnings::add(&mut reading.data, format, options);
    Ok(reading)
}

/// A file whose format is known.
pub(super) struct RecognizedFile<'a> {
    pub(super) name: &'a str,
    pub(super) format: Format,
    pub(super) file_start: FileStart,
    pub(super) options: &'a DataOptions,
}

impl RecognizedFile<'_> {
    fn read(self, rest: Box<dyn Read + '_>) -> Result<Reading> {
        let (name, options, format) = (self.name, self.options, self.format);
        match format {
            Format::Conll => {
                let bytes = self.all(rest)?;
                self.columns(&bytes)
            }
            Format::Csv | Format::Tsv => {
                let split = if format == Format::Tsv { CellSplit::Tabs } else { self.delimiter()? };
                let bytes = self.all(rest)?;
                self.table(&bytes, format, split)
            }
            Format::JsonLines if !options.any() && self.has_plain_fields() => {
                let start = self.file_start.bytes.clone();
                self.plain(io::Cursor::new(start).chain(rest))
            }
            Format::JsonLines | Format::Json => {
                let bytes = self.all(rest)?;
                let found = match format {
                    Format::JsonLines => json_fields::read_lines(name, &bytes, options)?,
                    _ => json_fields::read_whole(name, &bytes, options)?,
                };
                Ok(reading(found, format))
            }
            Format::Arrays => {
                let bytes = self.all(rest)?;
                if !options.any() && !has_ids(&bytes) {
                    return Ok(Reading {
                        plain: true,
                        ..described(safetensors_arrays::read(name, bytes.as_slice())?, format)
                    });
                }
                let found = numpy::read_tensors(name, &bytes, options)?;
                Ok(reading(found, format))
            }
            Format::Npy | Format::Npz => {
                let bytes = self.all(rest)?;
                let found = match format {
                    Format::Npy => numpy::read_npy(name, &bytes, options)?,
                    _ => numpy::read_npz(name, &bytes, options)?,
                };
                Ok(reading(found, format))
            }
        }
    }

    /// CoNLL columns, by their own reader or, with a header, comments or options, as a table.
    pub(super) fn columns(&self, bytes: &[u8]) -> Result<Reading> {
        let (name, options) = (self.name, self.options);
        let shape = LineShape::of(&self.file_start);
        let mut style = shape.style(shape.conll_split());
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let doubts = ColumnDoubts::of(text, &style);
        style.comments |= doubts.comments;
        self.doubt(&shape, &style, &doubts)?;
        if let Some(line) = doubts.tabs.filter(|_| shape.tabbed() && options.format.is_none() && !style.universal) {
            if recognize::hint(name) == Some(Format::Tsv) {
                return self.table(bytes, Format::Tsv, CellSplit::Tabs);
            }
            let what = "an empty or quoted cell, or a blank in one, where columns are split at tabs and blanks";
            let help = "give `format`: tsv to split at tabs alone, or conll";
            return Err(Error::data(Location { line: Some(line), ..Location::file(name) }, what, help));
        }
        if !options.any() && !style.comments && !self.has_header(&style) && !style.universal {
            return self.plain(bytes);
        }
        Ok(reading(table::read(name, bytes, Format::Conll, &style, options)?, Format::Conll))
    }

    fn table(&self, bytes: &[u8], format: Format, split: CellSplit) -> Result<Reading> {
        let mut style = LineShape::of(&self.file_start).style(split);
        style.comments |= split == CellSplit::Tabs && ColumnDoubts::of(bytes, &style).comments;
        Ok(reading(table::read(self.name, bytes, format, &style, self.options)?, format))
    }

    /// By the plain reader of the format.
    pub(super) fn plain(&self, reader: impl Read) -> Result<Reading> {
        let (name, format) = (self.name, self.format);
        let read = Dataset::read(name, format, reader);
        let data = read.map_err(|error| match error {
            Error::Data { location, what, .. } if what.starts_with("unknown field") => {
                let help = "give `tokens_from` tokens, and `labels_from`, and other fields are ignored";
                Error::data(*location, what, help)
            }
            other => other,
        })?;
        Ok(Reading { plain: true, ..described(data, format) })
    }

    /// What separates the cells of a CSV file: commas, unless something else certainly does.
    fn delimiter(&self) -> Result<CellSplit> {
        match recognize::delimiters(&self.file_start)[..] {
            [] => match recognize::likely_delimiters(&self.file_start)[..] {
                [] => Ok(CellSplit::Quoted(b',')),
                [delimiter] => Ok(CellSplit::Quoted(delimiter)),
                _ => self.several_delimiters(),
            },
            [(delimiter, _)] => Ok(CellSplit::Quoted(delimiter)),
            _ => self.several_delimiters(),
        }
    }

    fn several_delimiters<T>(&self) -> Result<T> {
        let what = "cells could be separated in several ways: by commas, semicolons or bars";
        let help = "give it a header with usual names, such as word and tag, or save it as TSV";
        Err(Error::data(Location::file(self.name), what, help))
    }

    /// All bytes of the file.
    fn all(&self, mut rest: Box<dyn Read + '_>) -> Result<Vec<u8>> {
        let mut bytes = self.file_start.bytes.clone();
        rest.read_to_end(&mut bytes).map_err(|e| Error::io(self.name, e))?;
        Ok(bytes)
    }

    fn has_header(&self, style: &ColumnStyle) -> bool {
        let rows = LineShape::of(&self.file_start).cells(style.split);
        rows.first().is_some_and(|first| recognize::is_header(first, &rows[1..]))
    }

    /// Whether the first line is an object with `tokens`, perhaps with `labels`, and nothing else, no label being a float; or no object at all, so that
    /// its reader says what is wrong.
    pub(super) fn has_plain_fields(&self) -> bool {
        let lines = self.file_start.lines();
        let first = lines.iter().find(|line| !line.trim_ascii().is_empty());
        let Some(Ok(serde_json::Value::Object(object))) = first.map(|line| serde_json::from_slice(line)) else {
            return true;
        };
        let list = |field: &str| object.get(field).is_some_and(serde_json::Value::is_array);
        let scalars = |line: &&[u8]| {
            let row = serde_json::from_slice::<serde_json::Value>(line).unwrap_or_default();
            row["labels"].as_array().is_some_and(|labels| labels.iter().any(serde_json::Value::is_f64))
        };
        if lines.iter().any(scalars) {
            return false;
        }
        object.is_empty()
            || (list("tokens") && object.keys().all(|field| field == "tokens" || (field == "labels" && list(field))))
    }

    /// Refuses columns that could be read in several ways.
    fn doubt(&self, shape: &LineShape, style: &ColumnStyle, doubts: &ColumnDoubts) -> Result<()> {
        let refuse =
            |line, what: &str, help: &str| Err(Error::data(Location { line, ..Location::file(self.name) }, what, help));
        if !self.options.columns.is_empty() || self.options.format.is_some() && !style.universal {
            return Ok(());
        }
        if style.universal {
            let help =
                "give `columns`: 2,4 for words and their parts of speech (UPOS), 2,5 for XPOS, 2,8 for relations";
            return refuse(None, "CoNLL-U, which has several labels for each word", help);
        }
        if let Some(line) = doubts.comment_or_token {
            let help = "if it is a token, give `format` conll; if it is a comment, remove it";
            return refuse(Some(line), "it may be a comment, or the token #", help);
        }
        if let Some(column) = shape.decimals() {
            let help = "give `columns`: that of the words, then that of the labels; vectors are written as JSON lines or arrays";
            return refuse(None, &format!("the {column} column holds decimals"), help);
        }
        if shape.counts() {
            let last = style.width;
            let help = match last {
                2 => "give `columns`: 2 for the words, or 1,2 if the numbers are words with labels".to_owned(),
                _ => format!("give `columns`: 2,{last} for words and labels, and `sentence` 1 if it numbers sentences"),
            };
            return refuse(None, "the first column counts or repeats, it holds no words", &help);
        }
        Ok(())
    }
}

/// Whether the tokens of a safetensors file are not vectors by that name.
fn has_ids(bytes: &[u8]) -> bool {
    let Ok(tensors) = tensor_file::parse(bytes) else { return false };
    let strange = tensors.names().iter().any(|name| recognize::LABEL_NAMES.contains(name) && *name != "labels");
    let tokens = tensors.tensor("tokens").ok();
    strange
        || tensors.tensor("input_ids").is_ok()
        || tokens.is_some_and(|view| safetensors_arrays::integers(&view).is_some())
}

fn reading(found: FoundData, format: Format) -> Reading {
    let FoundData { data, tokens_from, labels_from, notes } = found;
    Reading { data, format, plain: false, packed: Vec::new(), tokens_from, labels_from, notes }
}

/// What the plain readers understand.
fn described(data: Dataset, format: Format) -> Reading {
    let labeled = data.labels != Labels::None;
    let (tokens, labels) = match format {
        Format::Conll => ("the first column", "the last"),
        _ => ("\"tokens\"", "\"labels\""),
    };
    let (tokens_from, labels_from) = (tokens.to_owned(), labeled.then(|| labels.to_owned()));
    reading(FoundData { data, tokens_from, labels_from, notes: Vec::new() }, format)
}
