//! Files that are written whole or not at all.

use std::path::Path;

use monolayer::{Error, Result};

/// Writes a file beside its place, then moves it there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let moved = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    moved.map_err(|error| {
        // What is left of a failed attempt helps nobody; if it cannot be removed, the first error says why.
        let _ = std::fs::remove_file(&part);
        Error::io(path, error)
    })
}
