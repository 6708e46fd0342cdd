//! Why the checker could not run: what is wrong, where, and what would help.

use std::fmt;

use monolayer_core::read;

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the checker could not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub what: String,
    /// The file, line, sequence, token, tensor or field at fault.
    pub place: String,
    /// What to do about it.
    pub help: String,
}

impl Error {
    /// An error at a place, with what would help.
    pub fn new(place: impl Into<String>, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), place: place.into(), help: help.into() }
    }
}

impl From<read::Error> for Error {
    fn from(error: read::Error) -> Self {
        let help = match error.limit {
            Some(name) => format!("--limit {name}=N raises it"),
            None => "docs/format.md says what a reader takes".to_owned(),
        };
        Self::new(error.place, error.what, help)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.help)
    }
}

impl std::error::Error for Error {}
