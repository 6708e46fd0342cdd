//! Safetensors with the types that arrays of data have, which are more than a model's.

use std::collections::BTreeMap;

use monolayer_core::read::json::{self, Json};
use monolayer_core::read::{Result, at};

/// No header of a safetensors file is longer, by that format's own rule.
const LONGEST_HEADER: u64 = 100_000_000;

/// One tensor of a file: what its header says, checked, and its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw<'a> {
    /// How the entries are stored: `F32`, `F64`, `I64`, ...
    pub dtype: &'static str,
    /// The shape; no size is 0.
    pub shape: Vec<usize>,
    /// The entries, little endian, row-major.
    pub bytes: &'a [u8],
}

/// The types and their bytes per entry.
const KINDS: [(&str, usize); 13] = [
    ("I8", 1),
    ("U8", 1),
    ("BOOL", 1),
    ("I16", 2),
    ("U16", 2),
    ("F16", 2),
    ("BF16", 2),
    ("I32", 4),
    ("U32", 4),
    ("F32", 4),
    ("I64", 8),
    ("U64", 8),
    ("F64", 8),
];

/// The tensors of a file by name.
pub fn parse(file: &[u8]) -> Result<BTreeMap<String, Raw<'_>>> {
    let (length, rest) =
        file.split_first_chunk::<8>().ok_or("it is shorter than the eight bytes of the header length")?;
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
        spans.push((begin, end));
        tensors.insert(name.to_string(), raw);
    }
    spans.sort_unstable();
    let gapless = spans.iter().try_fold(0, |reached, &(begin, end)| (begin == reached).then_some(end));
    if gapless != Some(data.len()) {
        return Err("its tensors overlap, or bytes belong to none of them".into());
    }
    Ok(tensors)
}

fn tensor<'a>(entry: &Json, data: &'a [u8]) -> Result<(usize, usize, Raw<'a>)> {
    entry.only(&["dtype", "shape", "data_offsets"])?;
    let shape = entry.need("shape", "a list of sizes", Json::sizes)?;
    let offsets = |json: &Json| json.sizes().and_then(|sizes| <[usize; 2]>::try_from(sizes).ok());
    let [begin, end] = entry.need("data_offsets", "two sizes", offsets)?;
    let known = KINDS.into_iter().find(|kind| entry.get("dtype").text() == Some(kind.0));
    let count = shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n)).filter(|&n| n > 0);
    let (dtype, wanted) = known
        .and_then(|(dtype, width)| Some((dtype, count?.checked_mul(width)?)))
        .ok_or_else(|| format!("its dtype with shape {shape:?} is not one that a dataset can have"))?;
    if begin > end || end > data.len() || end - begin != wanted || shape.is_empty() {
        return Err(format!("its bytes {begin}..{end} are not the {wanted} bytes of {dtype} {shape:?}").into());
    }
    Ok((begin, end, Raw { dtype, shape, bytes: &data[begin..end] }))
}

impl Raw<'_> {
    /// Entry `i` of a tensor of floats.
    pub fn float(&self, i: usize) -> Option<f64> {
        Some(match self.dtype {
            "F32" => f32::from_le_bytes(self.entry(i)?).into(),
            "F64" => f64::from_le_bytes(self.entry(i)?),
            "F16" => half(u16::from_le_bytes(self.entry(i)?)),
            "BF16" => {
                let [a, b] = self.entry(i)?;
                f32::from_le_bytes([0, 0, a, b]).into()
            }
            _ => return None,
        })
    }

    /// Entry `i` of a tensor of integers.
    pub fn integer(&self, i: usize) -> Option<i128> {
        Some(match self.dtype {
            "I8" => i8::from_le_bytes(self.entry(i)?).into(),
            "U8" => u8::from_le_bytes(self.entry(i)?).into(),
            "I16" => i16::from_le_bytes(self.entry(i)?).into(),
            "U16" => u16::from_le_bytes(self.entry(i)?).into(),
            "I32" => i32::from_le_bytes(self.entry(i)?).into(),
            "U32" => u32::from_le_bytes(self.entry(i)?).into(),
            "I64" => i64::from_le_bytes(self.entry(i)?).into(),
            "U64" => u64::from_le_bytes(self.entry(i)?).into(),
            _ => return None,
        })
    }

    /// The bytes of an entry.
    fn entry<const N: usize>(&self, i: usize) -> Option<[u8; N]> {
        self.bytes.get(i * N..(i + 1) * N)?.try_into().ok()
    }
}

/// IEEE binary16.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision() {
        assert_eq!(
            [0x3C00, 0xC000, 0x0001, 0x7BFF, 0x0400].map(half),
            [1.0, -2.0, 5.960_464_477_539_063e-8, 65504.0, 6.103_515_625e-5]
        );
        assert!(half(0x7C00).is_infinite() && half(0x7C01).is_nan());
    }
}
