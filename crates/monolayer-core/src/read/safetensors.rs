//! Safetensors: eight bytes of header length, a JSON header, then the numbers without holes or overlaps.

use std::collections::BTreeMap;

use super::json::{self, Json};
use super::{Error, Result};
use crate::number::Format;

/// No header is longer: that of the format itself.
const LONGEST_HEADER: u64 = 100_000_000;

/// How numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// binary32
    F32,
    /// binary64
    F64,
    /// Bytes, for masks.
    U8,
    /// Integers of 32 bits, for the indices of sparse tensors.
    I32,
}

/// One tensor of a file; its floats are finite, and no size is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw<'a> {
    /// How the entries are stored.
    pub stored: Stored,
    /// The shape.
    pub shape: Vec<usize>,
    /// The entries, little-endian, row-major.
    pub bytes: &'a [u8],
}

/// The tensors of a file by name.
pub fn parse(file: &[u8]) -> Result<BTreeMap<String, Raw<'_>>> {
    let (length, rest) =
        file.split_first_chunk::<8>().ok_or("it is shorter than the eight bytes of the header length")?;
    let length = u64::from_le_bytes(*length);
    if length > rest.len() as u64 || length > LONGEST_HEADER {
        return Err(format!(
            "its header claims {length} bytes; {} follow, and {LONGEST_HEADER} are the most",
            rest.len()
        )
        .into());
    }
    let (header, data) = rest.split_at(length as usize);
    let bad = |e: Error| Error::from(format!("its header is not JSON: {}", e.what));
    if !header.starts_with(b"{") {
        return Err("its header is not JSON: it does not begin with {".into());
    }
    let header = json::parse(header).map_err(bad)?;
    let fields = header.object().unwrap_or_default();
    let mut tensors = BTreeMap::new();
    let mut spans = Vec::new();
    for (name, entry) in fields {
        if name == "__metadata__" {
            let strings = entry.object().is_some_and(|fields| fields.iter().all(|(_, v)| v.text().is_some()));
            strings.then_some(()).ok_or("__metadata__ is not an object of strings")?;
            continue;
        }
        let at = |e: Error| e.at(format!("tensor {name:?}"));
        let (raw, begin, end) = tensor(entry, data).map_err(at)?;
        raw.finite().map_err(at)?;
        spans.push((begin, end, name));
        tensors.insert(name.to_string(), raw);
    }
    spans.sort_unstable();
    let mut reached = 0;
    for (begin, end, name) in spans {
        if begin != reached {
            let fault = if begin < reached { "overlaps the one before it" } else { "leaves a hole before it" };
            return Err(format!("tensor {name:?} {fault}").into());
        }
        reached = end;
    }
    match data.len() - reached {
        0 => Ok(tensors),
        more => Err(format!("{more} bytes after the last tensor").into()),
    }
}

fn tensor<'a>(entry: &Json, data: &'a [u8]) -> Result<(Raw<'a>, usize, usize)> {
    if !entry.has_only(&["dtype", "shape", "data_offsets"]) {
        return Err("its fields are not dtype, shape and data_offsets".into());
    }
    let dtype = entry.get("dtype").text().ok_or("its dtype is not a string")?;
    let shape = entry.get("shape").sizes().ok_or("its shape is not a list of sizes")?;
    let offsets = entry.get("data_offsets").sizes().unwrap_or_default();
    let &[begin, end] = offsets.as_slice() else { return Err("its data_offsets are not two sizes".into()) };
    let stored = match dtype {
        "F32" => Some((Stored::F32, 4)),
        "F64" => Some((Stored::F64, 8)),
        "U8" => Some((Stored::U8, 1)),
        "I32" => Some((Stored::I32, 4)),
        _ => None,
    };
    let product = |width: usize| shape.iter().try_fold(width, |product, &n| product.checked_mul(n));
    let (stored, wanted) = stored
        .and_then(|(stored, width)| Some((stored, product(width).filter(|&bytes| bytes > 0)?)))
        .ok_or_else(|| format!("the dtype {dtype:?} with shape {shape:?} is not one that a model can have"))?;
    if begin > end || end > data.len() {
        return Err(format!("its bytes {begin}..{end} are not inside the file's {} bytes of data", data.len()).into());
    }
    if end - begin != wanted {
        return Err(format!("it has {} bytes, but {dtype} {shape:?} takes {wanted}", end - begin).into());
    }
    Ok((Raw { stored, shape, bytes: &data[begin..end] }, begin, end))
}

impl Raw<'_> {
    /// Refuses infinities and NaN: numbers whose exponent bits are all set.
    fn finite(&self) -> Result<()> {
        let (at, infinite) = match self.stored {
            Stored::F32 => {
                let bits = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) << 1;
                let entries = self.bytes.as_chunks::<4>().0;
                let Some(at) = entries.iter().position(|x| bits(x) >= 0xFF << 24) else { return Ok(()) };
                (at, bits(&entries[at]) == 0xFF << 24)
            }
            Stored::F64 => {
                let bits = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) << 1;
                let entries = self.bytes.as_chunks::<8>().0;
                let Some(at) = entries.iter().position(|x| bits(x) >= 0x7FF << 53) else { return Ok(()) };
                (at, bits(&entries[at]) == 0x7FF << 53)
            }
            Stored::U8 | Stored::I32 => return Ok(()),
        };
        Err(format!("entry {at} is {}", if infinite { "inf" } else { "NaN" }).into())
    }

    /// The entries of a tensor of 32-bit integers, as sizes; none where one is negative or the tensor is another.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        let size = |&bytes: &[u8; 4]| usize::try_from(i32::from_le_bytes(bytes)).ok();
        (self.stored == Stored::I32).then(|| self.bytes.as_chunks::<4>().0.iter().map(size).collect())?
    }
}

impl Stored {
    /// The format of floats.
    pub fn format(self) -> Option<Format> {
        match self {
            Stored::F32 => Some(Format::F32),
            Stored::F64 => Some(Format::F64),
            Stored::U8 | Stored::I32 => None,
        }
    }
}
