//! Safetensors, read by hand: eight bytes of header length, a JSON header, then the numbers without holes or overlaps.

use std::collections::BTreeMap;

use super::json::{self, Json};

/// One tensor of a file: what its header says, checked, and its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw<'a> {
    /// How the entries are stored: `F32`, `F64`, `I64`, ...
    pub dtype: String,
    /// The shape.
    pub shape: Vec<usize>,
    /// The entries, little endian, row-major.
    pub bytes: &'a [u8],
}

/// The tensors of a safetensors file by name, or what is wrong with the file.
pub fn parse(file: &[u8]) -> Result<BTreeMap<String, Raw<'_>>, String> {
    let (length, rest) =
        file.split_first_chunk::<8>().ok_or("it is shorter than the eight bytes of the header length")?;
    let length = u64::from_le_bytes(*length);
    if length > rest.len() as u64 {
        return Err(format!("its header claims {length} bytes, but only {} follow", rest.len()));
    }
    let (header, data) = rest.split_at(length as usize);
    let header = json::parse(header).map_err(|e| format!("its header is not JSON: {e}"))?;
    let fields = header.object().ok_or("its header is not an object")?;
    let mut tensors = BTreeMap::new();
    let mut spans = Vec::new();
    for (name, entry) in fields.iter().filter(|(name, _)| name != "__metadata__") {
        let (raw, begin, end) = tensor(entry, data).map_err(|e| format!("tensor {name:?}: {e}"))?;
        spans.push((begin, end, name));
        tensors.insert(name.clone(), raw);
    }
    spans.sort_unstable();
    let mut reached = 0;
    for (begin, end, name) in spans {
        if begin != reached {
            let fault = if begin < reached { "overlaps the one before it" } else { "leaves a hole before it" };
            return Err(format!("tensor {name:?} {fault}"));
        }
        reached = end;
    }
    if reached != data.len() {
        return Err(format!("{} bytes after the last tensor", data.len() - reached));
    }
    Ok(tensors)
}

fn tensor<'a>(entry: &Json, data: &'a [u8]) -> Result<(Raw<'a>, usize, usize), String> {
    let dtype = entry.get("dtype").text().ok_or("no dtype")?.to_owned();
    let shape: Vec<usize> = sizes(entry.get("shape")).ok_or("its shape is not a list of sizes")?;
    let offsets = sizes(entry.get("data_offsets")).ok_or("no data_offsets")?;
    let &[begin, end] = offsets.as_slice() else { return Err("data_offsets must be two numbers".into()) };
    let count = shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
    let wanted = count
        .and_then(|n| n.checked_mul(width(&dtype)?))
        .ok_or_else(|| format!("the dtype {dtype} with shape {shape:?} is not one that a model or dataset can have"))?;
    if begin > end || end > data.len() {
        return Err(format!("its bytes {begin}..{end} are not inside the file's {} bytes of data", data.len()));
    }
    if end - begin != wanted {
        return Err(format!("it has {} bytes, but {dtype} {shape:?} takes {wanted}", end - begin));
    }
    Ok((Raw { dtype, shape, bytes: &data[begin..end] }, begin, end))
}

fn sizes(list: &Json) -> Option<Vec<usize>> {
    list.list()?.iter().map(Json::size).collect()
}

/// Bytes per entry.
fn width(dtype: &str) -> Option<usize> {
    match dtype {
        "I8" | "U8" | "BOOL" => Some(1),
        "I16" | "U16" | "F16" | "BF16" => Some(2),
        "I32" | "U32" | "F32" => Some(4),
        "I64" | "U64" | "F64" => Some(8),
        _ => None,
    }
}

impl Raw<'_> {
    /// The entries of an `F32` or `F64` tensor, all finite.
    pub fn floats(&self) -> Result<Vec<f64>, String> {
        let values: Vec<f64> = match self.dtype.as_str() {
            "F32" => self.bytes.as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect(),
            "F64" => self.bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
            other => return Err(format!("entries are {other}, not F32 or F64")),
        };
        match values.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(format!("entry {at} is {}", values[at])),
            None => Ok(values),
        }
    }

    /// The entries of an integer tensor.
    pub fn integers(&self) -> Option<Vec<i128>> {
        let bytes = self.bytes;
        Some(match self.dtype.as_str() {
            "I8" => bytes.iter().map(|&b| i128::from(i8::from_le_bytes([b]))).collect(),
            "U8" => bytes.iter().map(|&b| b.into()).collect(),
            "I16" => bytes.as_chunks().0.iter().map(|&b| i16::from_le_bytes(b).into()).collect(),
            "U16" => bytes.as_chunks().0.iter().map(|&b| u16::from_le_bytes(b).into()).collect(),
            "I32" => bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b).into()).collect(),
            "U32" => bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b).into()).collect(),
            "I64" => bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b).into()).collect(),
            "U64" => bytes.as_chunks().0.iter().map(|&b| u64::from_le_bytes(b).into()).collect(),
            _ => return None,
        })
    }
}
