//! The bytes of a file, and their BLAKE3 hash.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

/// The bytes of a regular file: a device or a pipe in a model directory would never end.
pub fn regular(path: &Path) -> Result<Vec<u8>> {
    let kind = fs::metadata(path).map_err(|e| Error::io(path, &e))?;
    if !kind.is_file() {
        return Err(Error::new(path.display().to_string(), "this is not a regular file", "give a plain file"));
    }
    fs::read(path).map_err(|e| Error::io(path, &e))
}

/// The bytes of a dataset: a regular file, a named pipe, or standard input for "-".
pub fn dataset(name: &str) -> Result<Vec<u8>> {
    if name == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| Error::io(Path::new("<stdin>"), &e))?;
        return Ok(bytes);
    }
    let path = Path::new(name);
    let kind = fs::metadata(path).map_err(|e| Error::io(path, &e))?.file_type();
    if is_pipe(kind) {
        return fs::read(path).map_err(|e| Error::io(path, &e));
    }
    regular(path)
}

#[cfg(unix)]
fn is_pipe(kind: fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: fs::FileType) -> bool {
    false
}

/// The BLAKE3 hash of bytes, hexadecimal, as certificates write it.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
