//! Readers of the files: model directories, datasets, certificates. Nothing that a file says is believed.
//!
//! What is refused is the grammar of docs/format.md. Every size that a file decides is checked against [`Limits`] before
//! memory is taken for it.

pub mod certificate;
pub mod data;
pub mod decimal;
pub mod directory;
mod exact;
pub mod json;
pub mod safetensors;

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The file, and the line, tensor or field in it.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// The field of [`Limits`] that it goes beyond, if that is what is wrong.
    pub limit: Option<&'static str>,
}

impl Error {
    /// The same error, at a place.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = if self.place.is_empty() { place.to_string() } else { format!("{place}, {}", self.place) };
        self
    }
}

impl<T: Into<String>> From<T> for Error {
    fn from(what: T) -> Self {
        Self { place: String::new(), what: what.into(), limit: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for Error {}

/// How much a reader takes. The defaults are for a desktop computer; each can be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of config.json.
    pub config: usize,
    /// Bytes of model.safetensors.
    pub tensors: usize,
    /// Bytes of weights.json.
    pub weights: usize,
    /// Bytes of vocabulary.json.
    pub vocabulary: usize,
    /// Bytes of mask.safetensors.
    pub mask: usize,
    /// Bytes of certificate.json.
    pub certificate: usize,
    /// Bytes of a dataset.
    pub data: usize,
    /// Bytes of all sparse tensors and masks of a model together, once they are dense.
    pub dense: usize,
    /// The dimension of tokens.
    pub dimension: usize,
    /// Different labels, of a model or a dataset.
    pub labels: usize,
    /// Claims of a certificate.
    pub claims: usize,
    /// Tokens of a dataset.
    pub tokens: usize,
    /// Tokens of one sequence.
    pub length: usize,
    /// Bytes of one line of a dataset.
    pub line: usize,
    /// Characters of one number of weights.json.
    pub digits: usize,
    /// The size of an exponent of ten in weights.json and certificate.json.
    pub exponent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            config: 16 << 20,
            tensors: 2 << 30,
            weights: 256 << 20,
            vocabulary: 256 << 20,
            mask: 64 << 20,
            certificate: 16 << 20,
            data: 1 << 30,
            dense: 2 << 30,
            dimension: 1 << 20,
            labels: 1 << 16,
            claims: 64,
            tokens: 50_000_000,
            length: 1 << 20,
            line: 16 << 20,
            digits: 1 << 20,
            exponent: 20_000,
        }
    }
}

/// Refuses `found` of something beyond a limit.
fn within(found: usize, things: &str, name: &'static str, limit: usize) -> Result<()> {
    if found <= limit {
        return Ok(());
    }
    let what = format!("{found} {things}, more than the limit {name:?} of {limit}");
    Err(Error { limit: Some(name), ..what.into() })
}

/// The bytes of a regular file. Its size is looked at before anything is read, and a device or a pipe, which might never
/// end, is not even opened.
pub fn file(path: &Path, name: &'static str, limit: usize) -> Result<Vec<u8>> {
    let read = || {
        let fault = |e: io::Error| Error::from(e.to_string());
        let fits = |found: &Metadata| match usize::try_from(found.len()) {
            _ if !found.is_file() => Err("this is not a regular file".into()),
            size => within(size.unwrap_or(usize::MAX), "bytes", name, limit),
        };
        fits(&fs::metadata(path).map_err(fault)?)?;
        let file = File::open(path).map_err(fault)?;
        let found = file.metadata().map_err(fault)?;
        fits(&found)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(found.len() as usize).map_err(|e| Error::from(e.to_string()))?;
        file.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(fault)?;
        within(bytes.len(), "bytes", name, limit)?;
        Ok(bytes)
    };
    read().map_err(|e: Error| e.at(path.display()))
}

/// The BLAKE3 hash of bytes, hexadecimal, as certificates write it.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
