//! Reading certificate.json, as strictly as every other reader: what it claims is not looked at here.

use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::model::certificate::{FORMAT, hashes};
use crate::model::strict_json;

/// The most units in the last place that exp may be off by.
const MOST_ULPS: f64 = 1024.0;

/// A certificate, if it is one: docs/format.md, "What a reader refuses". Its claims may be of any kind.
pub fn read(path: impl AsRef<Path>) -> Result<Value> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let fault = |what: String| Error::model(path, what, "make the certificate again");
    let certificate = strict_json::parse(&bytes).map_err(fault)?;
    checked(&certificate).map_err(fault)?;
    Ok(certificate)
}

/// What the certificate of a model directory claims of labels. It says so; the checker decides whether it is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedLabels {
    /// The hash of the data.
    pub hash: String,
    /// How many tokens it has.
    pub tokens: usize,
    /// Tokens without a proof: sequence and token, from 1.
    pub undecided: Vec<(u64, u64)>,
    /// How many tokens no weights get right.
    pub impossible: usize,
}

/// The claim about labels in an arithmetic, such as `"f64"`. Nothing where there is no certificate, where it is of other files
/// than those beside it, and where it claims no such thing.
pub fn claimed_labels(dir: impl AsRef<Path>, arithmetic: &str) -> Result<Option<ClaimedLabels>> {
    let dir = dir.as_ref();
    let path = dir.join("certificate.json");
    if !path.exists() {
        return Ok(None);
    }
    let certificate = read(path)?;
    let own = hashes(dir)?;
    let same = ["config", "tensors", "vocabulary"].iter().all(|name| certificate["model"][name] == own[name]);
    let of_labels = |claim: &&Value| claim["kind"] == "labels" && claim["arithmetic"] == arithmetic;
    let claim = certificate["claims"].as_array().and_then(|claims| claims.iter().find(of_labels));
    let (data, Some(claim), true) = (&certificate["data"], claim, same) else { return Ok(None) };
    let (Some(hash), Some(tokens)) = (data["hash"].as_str(), data["tokens"].as_u64()) else { return Ok(None) };
    let undecided = serde_json::from_value(claim["undecided"].clone()).ok();
    let impossible = data["impossible"].as_u64().unwrap_or(0) as usize;
    let (hash, tokens) = (hash.to_owned(), tokens as usize);
    Ok(undecided.map(|undecided| ClaimedLabels { hash, tokens, undecided, impossible }))
}

fn checked(certificate: &Value) -> std::result::Result<(), String> {
    if certificate["format"] != FORMAT {
        return Err(format!("\"format\" is not {FORMAT:?}"));
    }
    if !certificate["claims"].is_array() {
        return Err("\"claims\" is not a list".into());
    }
    let size = |value: &Value| value.as_u64().is_some_and(|n| i64::try_from(n).is_ok());
    let ulps = |value: &Value| value.as_f64().is_some_and(|x| x.fract() == 0.0 && (0.0..=MOST_ULPS).contains(&x));
    let hashes = ["config", "tensors", "vocabulary", "mask"].as_slice();
    let counts = ["tokens", "sequences", "impossible", "free"].as_slice();
    part(certificate, "model", hashes, "a string", &Value::is_string)?;
    part(certificate, "data", &["hash"], "a string", &Value::is_string)?;
    part(certificate, "data", counts, "a size", &size)?;
    part(certificate, "assumptions", &["exp_ulp"], "a whole number of at most 1024", &ulps)
}

/// Checks the fields of a part, each of which may be null or left out, like the part itself.
fn part(
    certificate: &Value,
    name: &str,
    fields: &[&str],
    kind: &str,
    is: &dyn Fn(&Value) -> bool,
) -> std::result::Result<(), String> {
    let part = &certificate[name];
    if !part.is_null() && !part.is_object() {
        return Err(format!("{name:?} is not an object"));
    }
    match fields.iter().find(|field| !part[**field].is_null() && !is(&part[**field])) {
        Some(field) => Err(format!("{field:?} of {name:?} is not {kind}")),
        None => Ok(()),
    }
}
