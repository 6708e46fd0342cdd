//! Masks in files: in config.json, in the mask.safetensors of a model, and as users write them.

use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Location, Result};
use crate::model::directory::read_file;
use crate::model::tensor_file;
use crate::paper::mask::{Mask, MaskMatrix};

/// The only name that a model's mask file may have.
pub const FILE: &str = "mask.safetensors";

/// What config.json says of a mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaskConfig {
    /// `"none"`.
    None,
    /// `"causal"`.
    Causal,
    /// `{"prefix": k}`.
    Prefix(usize),
    /// `{"band": [before, after]}`.
    Band(usize, usize),
    /// `{"file": "mask.safetensors"}`: the matrix is in that file, beside config.json.
    File(String),
}

impl MaskConfig {
    /// What config.json says of this mask.
    pub fn new(mask: &Mask) -> Self {
        match mask {
            Mask::None => Self::None,
            Mask::Causal => Self::Causal,
            Mask::Prefix(k) => Self::Prefix(*k),
            Mask::Band(before, after) => Self::Band(*before, *after),
            Mask::Matrix(_) => Self::File(FILE.to_owned()),
        }
    }

    /// Whether only files of version 2 may have it.
    pub(crate) fn is_object(&self) -> bool {
        !matches!(self, Self::None | Self::Causal)
    }

    /// The mask that was meant; `file` is that of the directory. Nothing where a file is meant and there is none.
    pub(crate) fn resolve(&self, file: Option<&Mask>) -> Option<Mask> {
        Some(match self {
            Self::None => Mask::None,
            Self::Causal => Mask::Causal,
            Self::Prefix(k) => Mask::Prefix(*k),
            Self::Band(before, after) => Mask::Band(*before, *after),
            Self::File(_) => file?.clone(),
        })
    }

    /// How people read it: "none", "prefix:2", "band:1,0", "matrix".
    pub fn name(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Causal => "causal".to_owned(),
            Self::Prefix(k) => format!("prefix:{k}"),
            Self::Band(before, after) => format!("band:{before},{after}"),
            Self::File(_) => "matrix".to_owned(),
        }
    }
}

/// What is wrong with a mask that is an object of version 2, if anything is: one field, a known one, with sizes or the one name.
pub(crate) fn fault(mask: &Value) -> Option<String> {
    let fields = mask.as_object().expect("an object");
    let size = |value: &Value| value.as_u64().is_some_and(|size| i64::try_from(size).is_ok());
    let known = fields.len() == 1
        && fields.iter().all(|(kind, value)| match kind.as_str() {
            "prefix" => size(value),
            "band" => value.as_array().is_some_and(|ends| ends.len() == 2 && ends.iter().all(size)),
            "file" => value == FILE,
            _ => false,
        });
    (!known).then(|| format!("the mask {mask}"))
}

/// The mask file of a model directory, if there is one.
pub(crate) fn of_model(dir: &Path) -> Result<Option<Mask>> {
    let path = dir.join(FILE);
    // A link to nothing is there, and an error.
    if path.symlink_metadata().is_err() { Ok(None) } else { from_safetensors(&path, &read_file(&path)?).map(Some) }
}

/// The bytes of mask.safetensors.
pub(crate) fn to_bytes(matrix: &MaskMatrix) -> Vec<u8> {
    let shape = vec![matrix.size(), matrix.size()];
    let view = TensorView::new(Dtype::U8, shape, matrix.entries()).expect("as many bytes as the shape says");
    safetensors::serialize([("mask", view)], None).expect("a small header")
}

/// Reads a mask as users write it: .safetensors (one tensor `mask`, U8 [n, n]), .npy (booleans or integers, [n, n]), else a
/// text file with a row of zeros and ones per line, with or without spaces or commas between them.
pub fn open(path: impl AsRef<Path>) -> Result<Mask> {
    let path = path.as_ref();
    let bytes = read_file(path)?;
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("safetensors") => from_safetensors(path, &bytes),
        Some("npy") => {
            let (shape, entries) = npy(&bytes).map_err(|what| Error::model(path, what, HELP))?;
            matrix(path, shape, entries)
        }
        _ => from_text(path, &bytes),
    }
}

const HELP: &str = "a mask is a square matrix of zeros and ones, 1 where the token of the row sees that of the column (where (132) adds 0, \
                    not −∞); docs/format.md says how to write one";

fn from_safetensors(path: &Path, bytes: &[u8]) -> Result<Mask> {
    let fault = |what: String| Error::model(path, what, HELP);
    let tensors = tensor_file::parse(bytes).map_err(|e| fault(format!("not a safetensors file ({e})")))?;
    match (tensors.tensor("mask"), tensors.len()) {
        (Ok(view), 1) if view.dtype() == Dtype::U8 && view.shape().len() == 2 => {
            matrix(path, [view.shape()[0], view.shape()[1]], view.data().to_vec())
        }
        _ => Err(fault("it is not one tensor \"mask\", U8 [n, n]".to_owned())),
    }
}

fn matrix(path: &Path, [rows, columns]: [usize; 2], entries: Vec<u8>) -> Result<Mask> {
    if rows != columns {
        return Err(Error::model(path, format!("a mask of {rows} rows and {columns} columns"), HELP));
    }
    Mask::matrix(rows, entries).map_err(|error| match error {
        Error::Setting { what, help } => Error::model(path, what, help),
        other => other,
    })
}

fn from_text(path: &Path, bytes: &[u8]) -> Result<Mask> {
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for (line, text) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let place = |column: usize| Location {
            line: Some(line + 1),
            column: Some(column + 1),
            ..Location::file(path.display().to_string())
        };
        let mut row = Vec::new();
        for (column, byte) in text.iter().enumerate() {
            match byte {
                b'0' | b'1' => row.push(byte - b'0'),
                b' ' | b'\t' | b',' | b'\r' => (),
                other => {
                    let what = format!("{:?} in a mask", char::from(*other));
                    return Err(Error::data(place(column), what, HELP));
                }
            }
        }
        if row.is_empty() {
            continue;
        }
        if let Some(first) = rows.first().filter(|first| first.len() != row.len()) {
            let what = format!("a row of {} entries after rows of {}", row.len(), first.len());
            return Err(Error::data(place(0), what, HELP));
        }
        rows.push(row);
    }
    matrix(path, [rows.len(), rows.first().map_or(0, Vec::len)], rows.concat())
}

/// Shape and entries of a matrix in numpy's format.
fn npy(bytes: &[u8]) -> std::result::Result<([usize; 2], Vec<u8>), String> {
    let broken = || "not a .npy file of this kind".to_owned();
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(broken)?;
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return Err(broken()),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(broken)?;
    let header: String = String::from_utf8_lossy(header).split_whitespace().collect();
    let field = |name: &str| header.split_once(&format!("'{name}':")).map(|(_, rest)| rest).ok_or_else(broken);
    if !field("fortran_order")?.starts_with("False") {
        return Err("its columns come first".to_owned());
    }
    let width = match field("descr")?.split('\'').nth(1) {
        Some("|b1" | "|u1" | "|i1") => 1,
        Some("<i2" | "<u2") => 2,
        Some("<i4" | "<u4") => 4,
        Some("<i8" | "<u8") => 8,
        other => return Err(format!("numbers of kind {:?}, not booleans or integers", other.unwrap_or(""))),
    };
    let shape = field("shape")?.split(['(', ')']).nth(1).ok_or_else(broken)?;
    let shape: Option<Vec<usize>> = shape.trim_end_matches(',').split(',').map(|size| size.parse().ok()).collect();
    let Some(&[rows, columns]) = shape.as_deref() else { return Err("not a matrix".to_owned()) };
    if rows.checked_mul(columns).and_then(|count| count.checked_mul(width)) != Some(data.len()) {
        return Err("not as many numbers as its shape says".to_owned());
    }
    // What is neither 0 nor 1 stays neither.
    let entry = |number: &[u8]| if number[1..].iter().all(|&byte| byte == 0) { number[0] } else { u8::MAX };
    Ok(([rows, columns], data.chunks_exact(width).map(entry).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, bytes: &[u8]) -> Result<Mask> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        open(path)
    }

    fn numpy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
    }

    #[test]
    fn every_way_to_write_a_mask_gives_the_same() {
        let mask = Mask::matrix(2, vec![1, 0, 1, 1]).unwrap();
        let Mask::Matrix(matrix) = &mask else { panic!("a matrix") };
        let wide: Vec<u8> = [1_i64, 0, 1, 1].iter().flat_map(|x| x.to_le_bytes()).collect();
        for (name, bytes) in [
            ("a.txt", b"10\n11\n".to_vec()),
            ("a.csv", b"1, 0\r\n\r\n1,1".to_vec()),
            ("a.safetensors", to_bytes(matrix)),
            ("a.npy", numpy("|b1", "(2, 2)", &[1, 0, 1, 1])),
            ("b.npy", numpy("<i8", "(2, 2)", &wide)),
        ] {
            assert_eq!(read(name, &bytes).unwrap(), mask, "{name}");
        }
    }

    #[test]
    fn faults_are_named() {
        for (name, bytes, wanted) in [
            ("a.txt", b"10\n1x\n".to_vec(), ":2:2: 'x' in a mask"),
            ("a.txt", b"10\n1\n".to_vec(), ":2:1: a row of 1 entries after rows of 2"),
            ("a.txt", b"101\n111\n".to_vec(), "2 rows and 3 columns"),
            ("a.txt", b"11\n00\n".to_vec(), "hides every token from token 2"),
            ("a.txt", b"11\n10\n".to_vec(), "hides token 2 from itself"),
            ("a.txt", Vec::new(), "0 entries"),
            ("a.npy", numpy("<f8", "(1, 1)", &[0; 8]), "\"<f8\""),
            ("a.npy", numpy("|u1", "(4,)", &[1; 4]), "not a matrix"),
            ("a.npy", numpy("|u1", "(2, 2)", &[1; 3]), "as many numbers"),
            ("a.npy", numpy("<i2", "(1, 1)", &[1, 1]), "neither 0 nor 1 in row 1, column 1"),
            ("a.npy", b"\x93NUMPY\x01\x00\xff\xff".to_vec(), "not a .npy file"),
            ("a.safetensors", b"{}".to_vec(), "not a safetensors file"),
        ] {
            let error = read(name, &bytes).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
