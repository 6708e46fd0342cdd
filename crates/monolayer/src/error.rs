//! One error type: what was wrong, where, and what would help. Settings are named as the builders name them, between
//! backticks: `candidates`. A command line may show them as its flags.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done.
///
/// ```
/// use monolayer::{Dataset, Error};
///
/// match Dataset::open("no such file") {
///     Err(Error::Io { path, .. }) => assert_eq!(path.to_str(), Some("no such file")),
///     other => panic!("{other:?}"),
/// }
/// ```
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
    #[error("{location}: {what}; {help}")]
    Data {
        /// Where in the dataset.
        location: Box<Location>,
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
    /// A setting that cannot be what it was set to, or a name that names nothing.
    #[error("{what}; {help}")]
    Setting {
        /// What is wrong with it.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// Settings, data and models that do not go together, each of which may be right by itself.
    #[error("{what}; {help}")]
    Mismatch {
        /// What does not go with what.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// More than there is room, time or precision for.
    #[error("{what}; {help}")]
    TooLarge {
        /// How much of what.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// Numbers that must be told apart and cannot be, at the precision or with the effort that was allowed.
    #[error("{what}; {help}")]
    TooClose {
        /// Which numbers.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// A computation that was told to stop.
    #[error("interrupted; {help}")]
    Interrupted {
        /// How it goes on.
        help: String,
    },
    /// A statement or an operation of the paper outside of what it is about.
    #[error("{what}; {help}")]
    Undefined {
        /// What is not defined, and where.
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
    pub fn data(location: Location, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Data { location: Box::new(location), what: what.into(), help: help.into() }
    }

    /// A model directory that cannot be read or does not make sense.
    pub fn model(file: impl AsRef<Path>, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Model { file: file.as_ref().to_owned(), what: what.into(), help: help.into() }
    }

    /// A setting that cannot be what it was set to.
    pub fn setting(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Setting { what: what.into(), help: help.into() }
    }

    /// Settings, data and models that do not go together.
    pub fn mismatch(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Mismatch { what: what.into(), help: help.into() }
    }

    /// More than there is room, time or precision for.
    pub fn too_large(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::TooLarge { what: what.into(), help: help.into() }
    }

    /// Numbers that cannot be told apart.
    pub fn too_close(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::TooClose { what: what.into(), help: help.into() }
    }

    /// A statement or an operation outside of what it is about.
    pub fn undefined(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Undefined { what: what.into(), help: help.into() }
    }

    /// Where it went wrong, for machine-readable output.
    pub fn location(&self) -> Option<String> {
        match self {
            Self::Io { path: file, .. } | Self::Model { file, .. } => Some(file.display().to_string()),
            Self::Data { location, .. } => Some(location.to_string()),
            Self::Expression { character, .. } => Some(format!("character {character}")),
            Self::Setting { .. }
            | Self::Mismatch { .. }
            | Self::TooLarge { .. }
            | Self::TooClose { .. }
            | Self::Interrupted { .. }
            | Self::Undefined { .. } => None,
        }
    }
}

/// Where something stands in a dataset. Lines, columns, sequences and tokens count from 1; a column is the byte in the line.
///
/// ```
/// use monolayer::Location;
///
/// let location = Location { line: Some(7), sequence: Some(2), token: Some(3), ..Location::file("a.conll") };
/// assert_eq!(location.to_string(), "a.conll:7 (sequence 2, token 3)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
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

impl Location {
    /// A whole file.
    pub fn file(name: impl Into<String>) -> Self {
        Self { file: name.into(), ..Self::default() }
    }
}

impl fmt::Display for Location {
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
