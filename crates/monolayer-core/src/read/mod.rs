//! Readers of the files: model directories, datasets, certificates. Nothing that a file says is believed.
//!
//! What is refused is the grammar of docs/format.md. Every size that a file decides is checked before memory is taken for
//! it: what is dense in a file is bounded by the file, and the rest by [`Limits`].

pub mod certificate;
pub mod data;
pub mod decimal;
pub mod difference;
pub mod directory;
pub mod json;
pub mod tensors;

use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io::{Error as IoError, Read};
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
    /// The field of [`Limits`] that was exceeded, if that is what is wrong.
    pub limit: Option<&'static str>,
}

impl<T: Into<String>> From<T> for Error {
    fn from(what: T) -> Self {
        Self { place: String::new(), what: what.into(), limit: None }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for Error {}

/// The same, with the place of an error inside another place.
pub fn at<T>(place: impl Display, found: Result<T>) -> Result<T> {
    found.map_err(|e| Error { place: format!("{place}{}{}", if e.place.is_empty() { "" } else { ", " }, e.place), ..e })
}

/// How much a reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of model.safetensors, and of a dataset: 2 GiB.
    pub bytes: usize,
    /// Bytes of any other file: 16 MiB. JSON may take some thirty times as much memory.
    pub json: usize,
    /// Bytes of all sparse tensors and masks of a model together, once they are dense: 2 GiB.
    pub dense: usize,
    /// Different labels of a model or a dataset: 65,536.
    pub labels: usize,
    /// Claims of a certificate: 64.
    pub claims: usize,
    /// Changes between two models: 100,000.
    pub changes: usize,
    /// Tokens of a dataset: 50 million.
    pub tokens: usize,
    /// Tokens of one sequence, and coordinates of one token: 2^20.
    pub length: usize,
    /// Pairs of tokens of one sequence, for each head of each layer: 2^28, some minutes.
    pub pairs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let (labels, claims, tokens, length, pairs) = (1 << 16, 64, 50_000_000, 1 << 20, 1 << 30);
        let changes = 100_000;
        Self { bytes: 2 << 30, json: 16 << 20, dense: 2 << 30, labels, claims, changes, tokens, length, pairs }
    }
}

/// Refuses so many things beyond a limit.
fn within(found: usize, things: &str, name: &'static str, limit: usize) -> Result<()> {
    let what = || Error::from(format!("{found} {things}, more than the limit {name:?} of {limit}"));
    if found > limit { Err(Error { limit: Some(name), ..what() }) } else { Ok(()) }
}

/// The bytes of a regular file. Its size is looked at before anything is read, and a device or a pipe, which might never
/// end, is not even opened.
pub fn file(path: &Path, name: &'static str, limit: usize) -> Result<Vec<u8>> {
    let read = || {
        let fault = |e: IoError| Error::from(e.to_string());
        let found = fs::metadata(path).map_err(fault)?;
        found.is_file().then_some(()).ok_or("this is not a regular file")?;
        within(usize::try_from(found.len()).unwrap_or(usize::MAX), "bytes", name, limit)?;
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(fault)?;
        // It may grow meanwhile.
        file.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(fault)?;
        within(bytes.len(), "bytes", name, limit).map(|()| bytes)
    };
    at(path.display(), read())
}

/// The BLAKE3 hash of bytes, hexadecimal, as certificates write it.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
