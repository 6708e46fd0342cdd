//! A dataset on the command line: the options that all commands share.

use std::fmt;
use std::str::FromStr as _;

use monolayer::data::{Column, DataOptions, Format, LabelAt, Reading, Split};
use monolayer::{Dataset, Error, Mask};

use super::mask::MaskArg;
use super::{READS, Shared};
use crate::output::{say, with_flags};

/// The dataset of a command.
#[derive(clap::Args)]
pub struct DataArgs {
    /// The dataset: a file (CoNLL columns, CSV, TSV, JSON, NumPy arrays or safetensors, also compressed with gzip or zstd),
    /// task:NAME:alphabet=K,length=L, or - for standard input
    #[arg(value_name = "DATA")]
    pub data: Option<String>,
    #[command(flatten)]
    pub read: ReadArgs,
    /// A text in place of DATA (- for standard input): the label of each token is the token that follows it
    #[arg(long, value_name = "FILE", conflicts_with = "data", help_heading = READS)]
    pub text: Option<String>,
    /// The tokens of a text: word (what stands between white space) or char (every character)
    #[arg(long, value_name = "KIND", value_parser = Split::from_str, help_heading = READS)]
    split: Option<Split>,
}

/// How data files are read, where their content leaves a choice.
#[derive(clap::Args)]
#[command(next_help_heading = READS)]
pub struct ReadArgs {
    /// Format, if it cannot be recognized from the content: conll, jsonl, json, csv, tsv, npy, npz, safetensors
    #[arg(long, value_name = "KIND", value_parser = Format::from_str)]
    pub format: Option<Format>,
    /// Columns of the words and of the labels (CoNLL, CSV, TSV): numbers from 1, or names of the header; one column: no labels
    #[arg(long, value_name = "TOKEN,LABEL", value_delimiter = ',', value_parser = Column::from_str)]
    columns: Vec<Column>,
    /// Column that tells sequences apart (CSV, TSV); none: all rows are one sequence
    #[arg(id = "sentence_column", long = "sentence", value_name = "COLUMN", value_parser = Column::from_str)]
    sentence: Option<Column>,
    /// Take whole documents for sequences (CoNLL, TSV): only lines that begin with -DOCSTART-, or # newdoc, separate them
    #[arg(long)]
    documents: bool,
    /// Field or array of the tokens (JSON, npz, safetensors)
    #[arg(long, value_name = "FIELD")]
    tokens_from: Option<String>,
    /// Field or array of the labels; none: there are no labels
    #[arg(long, value_name = "FIELD")]
    labels_from: Option<String>,
    /// Tokens that get the label, where a whole sequence has one: all, first or last
    #[arg(long, value_name = "WHICH", value_parser = LabelAt::from_str)]
    label_at: Option<LabelAt>,
    /// Token that pads sequences at their end; it is removed
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    padding: Option<String>,
}

impl DataArgs {
    /// Reads the dataset, and says what was understood.
    pub fn open(&self, shared: &Shared) -> Result<Dataset, Error> {
        self.open_as(Split::default(), shared)
    }

    /// The same; the tokens of a text are of this kind unless another is asked for.
    pub fn open_as(&self, split: Split, shared: &Shared) -> Result<Dataset, Error> {
        self.reading(split, shared).map(|reading| reading.data)
    }

    /// The same, with how it was read.
    pub fn reading(&self, split: Split, shared: &Shared) -> Result<Reading, Error> {
        match (&self.text, &self.data) {
            (None, _) if self.split.is_some() => Err(split_without_text()),
            (Some(_), _) if self.read.options().any() || self.read.format.is_some() => Err(Error::setting(
                "options of data files say nothing about a text",
                "leave them out, or leave --text out",
            )),
            (Some(text), _) => {
                let reading = Reading::of_text(Dataset::open_text(text, self.split.unwrap_or(split))?);
                tell(&reading, shared);
                Ok(reading)
            }
            (None, Some(data)) => self.read.reading(data, shared),
            (None, None) => Err(Error::setting("no dataset", "give DATA, or --text FILE")),
        }
    }

    /// What the tokens of a text are.
    pub fn split(&self) -> Split {
        self.split.unwrap_or_default()
    }

    /// The mask asked for; next to a text, which must not see what comes next, the causal one.
    pub fn mask(&self, mask: &MaskArg) -> Result<Mask, Error> {
        if self.text.is_some() { Ok(Mask::Causal) } else { mask.open() }
    }
}

/// The error of a kind of tokens without a text.
pub fn split_without_text() -> Error {
    Error::setting("--split is for texts", "give the text as --text FILE, or leave --split out")
}

/// The dataset as it was given, to be typed again.
impl fmt::Display for DataArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text, &self.data) {
            (Some(text), _) => write!(f, "--text {text}")?,
            (None, data) => f.write_str(data.as_deref().unwrap_or("DATA"))?,
        }
        if self.read.documents {
            f.write_str(" --documents")?;
        }
        if self.split == Some(Split::Char) { f.write_str(" --split char") } else { Ok(()) }
    }
}

impl ReadArgs {
    /// What the library is told.
    pub fn options(&self) -> DataOptions {
        DataOptions {
            format: self.format,
            columns: self.columns.clone(),
            tokens_from: self.tokens_from.clone(),
            labels_from: self.labels_from.clone(),
            sentence: self.sentence.clone(),
            documents: self.documents,
            label_at: self.label_at,
            padding: self.padding.clone(),
            most_bytes: None,
        }
    }

    /// Reads a dataset, and says what was understood.
    pub fn open(&self, source: &str, shared: &Shared) -> Result<Dataset, Error> {
        self.reading(source, shared).map(|reading| reading.data)
    }

    fn reading(&self, source: &str, shared: &Shared) -> Result<Reading, Error> {
        let reading = Dataset::open_with(source, &self.options())?;
        tell(&reading, shared);
        Ok(reading)
    }

    /// Reads a dataset, if there is one.
    pub fn open_some(&self, source: Option<&str>, shared: &Shared) -> Result<Option<Dataset>, Error> {
        source.map(|source| self.open(source, shared)).transpose()
    }
}

/// One line about what was read, and the warnings.
pub fn tell(reading: &Reading, shared: &Shared) {
    // Machines find the same in the JSON of `data`.
    if !shared.json {
        say(shared, &reading.line());
    }
    reading.data.warnings.iter().for_each(|warning| say(shared, &format!("warning: {}", with_flags(warning))));
}
