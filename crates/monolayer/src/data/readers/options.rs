//! What a person may say about a data file, where the file alone does not tell.

use std::fmt;
use std::str::FromStr;

use super::Format;
use crate::data::LabelAt;
use crate::error::{Error, Result};

/// How a data file is to be read. By default the content decides, and what it does not decide is an error.
///
/// ```
/// use monolayer::Dataset;
/// use monolayer::data::DataOptions;
///
/// let options = DataOptions { columns: vec!["form".parse()?, "upos".parse()?], ..DataOptions::default() };
/// let text = "form\tlemma\tupos\nShe\tshe\tPRON\nsails\tsail\tVERB\n";
/// let reading = Dataset::read_with("f.tsv", text.as_bytes(), &DataOptions { sentence: Some("none".parse()?), ..options })?;
/// assert_eq!((reading.data.word(1), reading.data.label(1)), (Some("sails"), Some("VERB")));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataOptions {
    /// The format; by default the content tells.
    pub format: Option<Format>,
    /// The column of the words and that of the labels, or that of the words alone.
    pub columns: Vec<Column>,
    /// The field or array of the tokens.
    pub tokens_from: Option<String>,
    /// The field or array of the labels; `none` for none.
    pub labels_from: Option<String>,
    /// The column that tells sequences apart; `none` if the rows are one sequence.
    pub sentence: Option<Column>,
    /// Whether a sequence is a whole document: only lines that begin one (`-DOCSTART-`, or `# newdoc`) separate sequences.
    pub documents: bool,
    /// Which tokens get the one label of a sequence.
    pub label_at: Option<LabelAt>,
    /// The token that fills sequences up at their end.
    pub padding: Option<String>,
    /// No more bytes than these come out of a packed file. In any case no more than 16 MiB and 200 times its size.
    pub most_bytes: Option<u64>,
}

/// A column of a table, on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// By its number, from 1.
    Number(usize),
    /// By its name in the header.
    Name(String),
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            Ok(0) => Err(Error::setting("there is no column 0", "columns count from 1")),
            Ok(number) => Ok(Self::Number(number)),
            Err(_) if text.trim().is_empty() => {
                Err(Error::setting("a column without a name", "give a number from 1, or a name of the header"))
            }
            Err(_) => Ok(Self::Name(text.trim().to_owned())),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl DataOptions {
    /// Refuses options that say nothing about a format, so that none is ignored in silence.
    pub(super) fn only(&self, name: &str, format: Format) -> Result<()> {
        let table = matches!(format, Format::Conll | Format::Csv | Format::Tsv);
        let fields = !table && format != Format::Arrays;
        let given = [
            ("columns", !self.columns.is_empty(), table, "`tokens_from` and `labels_from` name fields"),
            ("sentence", self.sentence.is_some(), table, "sequences are known without it"),
            ("documents", self.documents, table && format != Format::Csv, "sequences are known without it"),
            ("tokens_from", self.tokens_from.is_some(), fields || format == Format::Arrays, "`columns` names columns"),
            ("labels_from", self.labels_from.is_some(), fields || format == Format::Arrays, "`columns` names columns"),
        ];
        match given.iter().find(|(_, given, fits, _)| *given && !fits) {
            Some((option, _, _, help)) => {
                let what = format!("{name}: `{option}` says nothing about {}", format.title());
                Err(Error::mismatch(what, format!("leave it out: {help}")))
            }
            None => Ok(()),
        }
    }

    /// Whether anything but the format is said.
    pub fn any(&self) -> bool {
        let plain = Self { format: self.format, most_bytes: self.most_bytes, ..Self::default() };
        *self != plain
    }
}
