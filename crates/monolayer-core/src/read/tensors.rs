//! The files with a model's numbers. Safetensors: eight bytes of header length, a JSON header, then the numbers without holes or
//! overlaps. weights.json: rational numbers as text, checked for their form and kept as they are.

use std::collections::BTreeMap;

use super::json::{self, Json};
use super::{Result, at};
use crate::exact::real::Rational;
use crate::number::{Dyadic, Stored};

/// No header of a safetensors file is longer, by that format's own rule.
const LONGEST_HEADER: u64 = 100_000_000;

/// What reading the numbers of weights.json may cost: some seconds (see [`Rational::parse`]).
const WORK: u64 = 1 << 32;

/// A tensor of a file. No size of its shape is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw<'a> {
    /// How the entries are stored: `F64`, `F32`, `BF16`, `F16` (all finite), `I8`, `U8`, `I32`, or `exact`.
    pub dtype: &'static str,
    /// The same for those that weights can be stored in.
    pub stored: Option<Stored>,
    /// The shape.
    pub shape: Vec<usize>,
    /// The entries, little-endian, row-major.
    pub bytes: &'a [u8],
    /// The entries, as text, where they are exact.
    pub exact: Vec<String>,
}

/// The tensors of a file by name.
pub type Tensors<'a> = BTreeMap<String, Raw<'a>>;

/// Reads a safetensors file.
pub fn safetensors(file: &[u8]) -> Result<Tensors<'_>> {
    let (length, rest) = file.split_first_chunk::<8>().ok_or("it is shorter than the eight bytes of a length")?;
    let length = u64::from_le_bytes(*length);
    if length > LONGEST_HEADER.min(rest.len() as u64) {
        return Err(format!("its header claims {length} bytes, more than follow or more than {LONGEST_HEADER}").into());
    }
    let (header, data) = rest.split_at(length as usize);
    header.starts_with(b"{").then_some(()).ok_or("its header is not JSON: it does not begin with {")?;
    let header = at("its header is not JSON", json::parse(header))?;
    let (mut tensors, mut spans) = (BTreeMap::new(), Vec::new());
    for (name, entry) in header.object().unwrap_or_default() {
        if name == "__metadata__" {
            let strings = entry.object().is_some_and(|fields| fields.iter().all(|(_, value)| value.text().is_some()));
            strings.then_some(()).ok_or("__metadata__ is not an object of strings")?;
            continue;
        }
        let (begin, end, raw) = at(format!("tensor {name:?}"), tensor(entry, data))?;
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
    if reached < data.len() { Err("bytes after the last tensor".into()) } else { Ok(tensors) }
}

/// One entry of the header: where its bytes begin and end, and the tensor.
fn tensor<'a>(entry: &Json, data: &'a [u8]) -> Result<(usize, usize, Raw<'a>)> {
    const WEIGHTS: [(&str, Stored); 5] =
        [("F64", Stored::F64), ("F32", Stored::F32), ("BF16", Stored::BF16), ("F16", Stored::F16), ("I8", Stored::I8)];
    entry.only(&["dtype", "shape", "data_offsets"])?;
    let shape = entry.need("shape", "a list of sizes", Json::sizes)?;
    let offsets = |json: &Json| json.sizes().and_then(|sizes| <[usize; 2]>::try_from(sizes).ok());
    let [begin, end] = entry.need("data_offsets", "two sizes", offsets)?;
    let weights = WEIGHTS.iter().map(|&(name, stored)| (name, stored.width(), Some(stored)));
    let mut kinds = weights.chain([("U8", 1, None), ("I32", 4, None)]);
    let known = kinds.find(|kind| entry.get("dtype").text() == Some(kind.0));
    let (dtype, wanted, stored) = known
        .and_then(|(dtype, width, stored)| Some((dtype, count(&shape)?.checked_mul(width)?, stored)))
        .ok_or_else(|| format!("its dtype with shape {shape:?} is not one that a model can have"))?;
    if begin > end || end > data.len() {
        return Err(format!("its bytes {begin}..{end} are not inside the file's {} bytes of data", data.len()).into());
    }
    if end - begin != wanted {
        return Err(format!("it has {} bytes, but {dtype} {shape:?} takes {wanted}", end - begin).into());
    }
    let bytes = &data[begin..end];
    let bits = |entry: &[u8]| entry.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    let finite = |s: Stored| bytes.chunks_exact(s.width()).all(|entry| Dyadic::from_stored(s, bits(entry)).is_some());
    stored.is_none_or(finite).then_some(()).ok_or("an entry is inf or NaN")?;
    Ok((begin, end, Raw { dtype, stored, shape, bytes, exact: Vec::new() }))
}

/// How many entries a shape has, if it has sizes, none of them 0, and the entries can be counted.
fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n)).filter(|&count| count > 0 && !shape.is_empty())
}

/// Reads weights.json.
pub fn weights(file: &[u8]) -> Result<Tensors<'static>> {
    let (json, mut work) = (json::parse(file)?, (WORK, 16 * file.len() as u64 + 1_000_000));
    let tensor = |(name, entry): &(_, Json)| {
        Ok((format!("{name}"), at(format!("tensor {name:?}"), exact_tensor(entry, &mut work))?))
    };
    json.object().ok_or("it is not an object of tensors")?.iter().map(tensor).collect()
}

/// `work` is what reading may cost, and how many zeros exponents may stand for.
fn exact_tensor(entry: &Json, work: &mut (u64, u64)) -> Result<Raw<'static>> {
    entry.only(&["shape", "data"])?;
    let shape = entry.need("shape", "a list of sizes", Json::sizes)?;
    let data = entry.need("data", "a list", Json::list)?;
    if count(&shape) != Some(data.len()) {
        return Err(format!("{} numbers for the shape {shape:?}", data.len()).into());
    }
    let number = |item: &Json| {
        let text = item.text().ok_or("a number that is not a string")?;
        let shown: String = text.chars().take(40).collect();
        let fault = "is not a decimal number or a fraction, divides by zero, or stands for too many zeros";
        let places = text.split_once(['e', 'E']).and_then(|(_, e)| e.parse().ok()).map_or(0, i64::unsigned_abs);
        let zeros = work.1.checked_sub(places).filter(|_| Rational::parse(text, &mut work.0).is_some());
        work.1 = zeros.ok_or_else(|| format!("{shown:?} {fault}"))?;
        Ok(text.to_owned())
    };
    Ok(Raw { dtype: "exact", stored: None, shape, bytes: &[], exact: data.iter().map(number).collect::<Result<_>>()? })
}
