//! weights.json: rational numbers as text, checked for their form and kept as they are.

use std::collections::BTreeMap;

use super::json::{self, Json};
use super::{Error, Limits, Result, within};

/// Tensors by name: shapes and numbers.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<String>)>;

/// The tensors of weights.json. Written out, exponents may make the file 16 times as long and a
/// million zeros longer.
pub(super) fn parse(file: &[u8], limits: &Limits) -> Result<Tensors> {
    let mut zeros = file.len().saturating_mul(16).saturating_add(1_000_000);
    let json = json::parse(file)?;
    let mut tensors = BTreeMap::new();
    for (name, entry) in json.object().ok_or("it is not an object of tensors")? {
        let tensor = tensor(entry, &mut zeros, limits).map_err(|e| e.at(format!("tensor {name:?}")))?;
        tensors.insert(name.to_string(), tensor);
    }
    Ok(tensors)
}

fn tensor(entry: &Json, zeros: &mut usize, limits: &Limits) -> Result<(Vec<usize>, Vec<String>)> {
    if !entry.has_only(&["shape", "data"]) {
        return Err("its fields are not shape and data".into());
    }
    let shape = entry.get("shape").sizes().ok_or("its shape is not a list of sizes")?;
    let data = entry.get("data").list().ok_or("its data is not a list")?;
    let count = shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
    if data.is_empty() || count != Some(data.len()) {
        return Err(format!("{} numbers for the shape {shape:?}", data.len()).into());
    }
    let number = |item: &Json| {
        let text = item.text().ok_or("a number that is not a string")?;
        let shown = || format!("{:?}", text.chars().take(40).collect::<String>());
        within(text.len(), "characters", "digits", limits.digits)?;
        let exponent = exponent(text).map_err(|what| Error::from(format!("{} {what}", shown())))?;
        let all = "stands for too many zeros";
        within(exponent, "zeros", "exponent", limits.exponent).map_err(|e| e.at(format!("{} {all}", shown())))?;
        *zeros = zeros.checked_sub(exponent).ok_or_else(|| format!("{}: the file {all}", shown()))?;
        Ok(text.to_owned())
    };
    Ok((shape, data.iter().map(number).collect::<Result<_>>()?))
}

/// Checks that a text is a decimal number or a fraction; the size of its exponent.
fn exponent(text: &str) -> std::result::Result<usize, &'static str> {
    const NO_NUMBER: &str = "is not a decimal number or a fraction";
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = |text: &'_ str| text.strip_prefix(['+', '-']).unwrap_or(text).to_owned();
    let size = unsigned(text);
    if let Some((p, q)) = size.split_once('/') {
        return match (digits(p) && digits(q), q.bytes().any(|b| b != b'0')) {
            (true, true) => Ok(0),
            (true, false) => Err("divides by zero"),
            (false, _) => Err(NO_NUMBER),
        };
    }
    let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((&size, "0"));
    let exponent = unsigned(exponent);
    if !digits(&mantissa.replacen('.', "", 1)) || !digits(&exponent) {
        return Err(NO_NUMBER);
    }
    // Only a number that does not fit is left to fail.
    Ok(exponent.parse().unwrap_or(usize::MAX))
}
