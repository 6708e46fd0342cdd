//! One error type: what was wrong, where, and what would help. Settings are named as the builders name them, between
//! backticks: `candidates`. A command line may show them as its flags.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A dataset that cannot be read.
    #[error("{place}: {what}; {help}")]
    Data {
        /// Where in the dataset.
        place: Box<Place>,
        /// What is wrong there.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// A model directory that cannot be read or does not make sense.
    #[error("{}: {what}; {help}", file.display())]
    Model {
        /// The file at fault.
        file: PathBuf,
        /// What is wrong with it; names the tensor or the field.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// A function given as text that cannot be read.
    #[error("the function, character {character}: {what}; {help}\n{excerpt}")]
    Expression {
        /// The character of the text at fault, from 1.
        character: usize,
        /// What is wrong there.
        what: String,
        /// What to do about it.
        help: String,
        /// The text around it, with a caret below.
        excerpt: String,
    },
    /// A request that makes no sense, whatever the files hold.
    #[error("{what}; {help}")]
    Request {
        /// What is wrong with it.
        what: String,
        /// What to do about it.
        help: String,
    },
}

impl Error {
    /// Wraps what the operating system said about `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_owned(), source }
    }

    /// A dataset that cannot be read.
    pub fn data(place: Place, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Data { place: Box::new(place), what: what.into(), help: help.into() }
    }

    /// A model directory that cannot be read or does not make sense.
    pub fn model(file: impl AsRef<Path>, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Model { file: file.as_ref().to_owned(), what: what.into(), help: help.into() }
    }

    /// A request that makes no sense.
    pub fn request(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Request { what: what.into(), help: help.into() }
    }

    /// Where it went wrong, for machine-readable output.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Io { path: file, .. } | Self::Model { file, .. } => Some(file.display().to_string()),
            Self::Data { place, .. } => Some(place.to_string()),
            Self::Expression { character, .. } => Some(format!("character {character}")),
            Self::Request { .. } => None,
        }
    }
}

/// A place in a dataset. Lines, columns, sequences and tokens count from 1; a column is the byte in the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, `<stdin>`, or the task's name.
    pub file: String,
    /// The line of a text file.
    pub line: Option<usize>,
    /// The byte in that line.
    pub column: Option<usize>,
    /// The sequence.
    pub sequence: Option<usize>,
    /// The token in that sequence.
    pub token: Option<usize>,
}

impl Place {
    /// A whole file.
    pub fn file(name: impl Into<String>) -> Self {
        Self { file: name.into(), ..Self::default() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        match (self.sequence, self.token) {
            (Some(sequence), Some(token)) => write!(f, " (sequence {sequence}, token {token})"),
            (Some(sequence), None) => write!(f, " (sequence {sequence})"),
            (None, _) => Ok(()),
        }
    }
}
