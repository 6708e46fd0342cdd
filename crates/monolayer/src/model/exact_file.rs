//! Model directories with `"dtype": "exact"`: weights.json, numbers as text, in the place of model.safetensors.
//!
//! `{"name": {"shape": [...], "data": ["-1.25e3", "1/3", ...]}}`

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr as _;

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::directory;
use crate::model::tensor_file::Tensors;

/// The name of this kind of number in config.json.
pub const DTYPE: &str = "exact";

/// Longer numbers are refused: a short text must not take a long time.
const LONGEST: usize = 1 << 20;

/// The zeros that the exponents of a file may stand for: a short file must not take much memory.
fn zeros(bytes: usize) -> usize {
    16 * bytes + 1_000_000
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExactTensor {
    shape: Vec<usize>,
    data: Vec<String>,
}

/// Whether a directory holds a model with exact numbers.
pub fn is_exact(dir: &Path) -> Result<bool> {
    Ok(directory::read_config(&dir.join("config.json"))?.dtype == DTYPE)
}

/// Reads and validates a model directory.
pub fn read(dir: &Path) -> Result<Model<RBig>> {
    let config = directory::read_config(&dir.join("config.json"))?;
    if config.dtype != DTYPE {
        let what = format!("dtype {:?}", config.dtype);
        return Err(Error::model(dir.join("config.json"), what, "only \"exact\" models are kept in weights.json"));
    }
    let path = dir.join("weights.json");
    let bytes = directory::read_file(&path)?;
    let help = "see docs/format.md for what weights.json holds";
    let file = directory::parse_json(&path, &bytes, help)?;
    let fault = |what: String| Error::model(&path, what, help);
    // A structure may also be read from a list: only objects are meant.
    if !file.as_object().is_some_and(|file| file.values().all(serde_json::Value::is_object)) {
        return Err(fault("it is no object of objects".to_owned()));
    }
    let file: HashMap<String, ExactTensor> = serde_json::from_value(file).map_err(|e| fault(e.to_string()))?;
    let (mut tensors, mut zeros) = (HashMap::new(), zeros(bytes.len()));
    for (name, ExactTensor { shape, data }) in file {
        let bad = |what: String| Error::model(&path, format!("tensor {name}: {what}"), "make the model again");
        if shape.contains(&0) {
            return Err(bad("a size of 0".to_owned()));
        }
        if shape.iter().try_fold(1_usize, |n, &k| n.checked_mul(k)) != Some(data.len()) {
            return Err(bad(format!("{} numbers for the shape {shape:?}", data.len())));
        }
        let number = |text: &String| {
            parse(text, &mut zeros).ok_or_else(|| bad(format!("{:?} is not a number", shortened(text))))
        };
        let numbers = data.iter().map(number).collect::<Result<Vec<RBig>>>()?;
        tensors.insert(name, (shape, numbers));
    }
    directory::assemble(dir, config, Tensors::new(&path, tensors))
}

/// Writes a model directory, whole or not at all; `more` may add files to it.
pub fn write(model: &Model<RBig>, dir: &Path, more: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    directory::replace(dir, |new| {
        directory::write_config_and_words(model, &directory::config_as(model, DTYPE), new)?;
        let entry = |(name, shape, numbers): (String, Vec<usize>, Cow<[RBig]>)| {
            let data = numbers.iter().map(RBig::to_string).collect();
            (name, serde_json::to_value(ExactTensor { shape, data }).expect("plain data"))
        };
        let weights: serde_json::Map<String, serde_json::Value> =
            directory::tensors(model).into_iter().map(entry).collect();
        let path = new.join("weights.json");
        let text = serde_json::to_string(&weights).expect("plain data");
        std::fs::write(&path, text + "\n").map_err(|e| Error::io(path, e))?;
        more(new)
    })
}

/// The number written as `p/q`, or in decimals with an optional exponent, whose zeros are taken from those left.
fn parse(text: &str, zeros: &mut usize) -> Option<RBig> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-./eE".contains(&b));
    if !plain || text.len() > LONGEST {
        return None;
    }
    if let Some((p, q)) = text.split_once('/') {
        let digits = q.bytes().all(|b| b.is_ascii_digit());
        let q = UBig::from_str(q).ok().filter(|q| digits && !q.is_zero())?;
        return Some(RBig::from_parts(IBig::from_str(p).ok()?, q));
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = i64::from_str(exponent).ok()?;
    *zeros = zeros.checked_sub(usize::try_from(exponent.unsigned_abs()).ok()?)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().any(|b| b.is_ascii_digit()) || fraction.contains(['+', '-']) {
        return None;
    }
    let shift = exponent - fraction.len() as i64;
    let power = RBig::from(UBig::from(10_u8).pow(shift.unsigned_abs() as usize));
    let digits = RBig::from(IBig::from_str(&digits).ok()?);
    Some(if shift >= 0 { digits * power } else { digits / power })
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers() {
        let is = |text: &str, p: i64, q: u64| {
            assert_eq!(parse(text, &mut 10), Some(RBig::from_parts(p.into(), q.into())), "{text}");
        };
        is("0", 0, 1);
        is("-1.25e3", -1250, 1);
        is("1/3", 1, 3);
        is("-6/4", -3, 2);
        is("+.5", 1, 2);
        is("2.", 2, 1);
        is("1E-2", 1, 100);
        for bad in [
            "",
            "-",
            ".",
            "1/0",
            "1e",
            "e5",
            "1.5/2",
            "0x10",
            "1_000",
            "nan",
            "inf",
            "1e9999999999",
            "1e11",
            "1.-5",
            "--1",
            "1/-",
            "1/+2",
        ] {
            assert_eq!(parse(bad, &mut 10), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn floats_in_decimals(x in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            prop_assert_eq!(parse(&format!("{x:e}"), &mut 400).unwrap().to_f64().value(), x + 0.0);
        }

        #[test]
        fn written_numbers_read_back(p: i128, q in 1_u128..) {
            let x = RBig::from_parts(p.into(), q.into());
            prop_assert_eq!(parse(&x.to_string(), &mut 0), Some(x));
        }
    }
}
