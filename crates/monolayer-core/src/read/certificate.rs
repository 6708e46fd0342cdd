//! certificate.json: what somebody claims about a model. Every claim is checked, none is believed.

use super::json::{self, Json};
use super::{Limits, Result, within};
use crate::number::Format;

/// The arithmetic of a claim: all covered float programs of a format, or, where there is none, real numbers.
pub type Arithmetic = Option<Format>;

/// A claim. Numbers are decimals as JSON writes them, short enough to be computed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// So many tokens get their label; a lower bound of every margin over its error bound.
    Labels(Arithmetic, usize, Option<String>),
    /// Every coordinate of every output is within this tolerance of the data's.
    Outputs(Arithmetic, String),
    /// The attention of a layer is an (r, delta)-contextual mapping, in real arithmetic.
    ContextualMapping {
        /// The layer, from 0.
        layer: usize,
        /// log2 of r.
        log2_r: String,
        /// log2 of delta.
        log2_delta: String,
    },
    /// The distance d_p from a function is at most a bound.
    Distance {
        /// The arithmetic.
        arithmetic: Arithmetic,
        /// p.
        p: String,
        /// The bound.
        bound: String,
        /// One expression per coordinate.
        function: String,
        /// Tokens of a sequence.
        length: usize,
    },
    /// The exact rank of each head's matrix of the tensor of this name.
    Rank(String, usize),
    /// A claim of this kind that cannot be checked, and why: it stays unknown.
    Other(String, &'static str),
}

/// A certificate as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// Hashes of config.json, of model.safetensors or weights.json, of vocabulary.json, and of mask.safetensors.
    pub model: [Option<String>; 4],
    /// The hash of the dataset.
    pub data: Option<String>,
    /// Tokens, sequences, impossible tokens and free tokens of the dataset.
    pub counts: [Option<usize>; 4],
    /// The claims.
    pub claims: Vec<Claim>,
    /// How many units in the last place the programs' exp may be off, rounded up; at most 1024.
    pub exp_ulp: Option<usize>,
    /// Helps for a checker: checked, never believed.
    pub hints: Json<'a>,
}

/// Reads a certificate.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Certificate<'a>> {
    let json = json::parse(bytes)?;
    json.choice("format", &[("monolayer-certificate/1", ())])?;
    let claims = json.need("claims", "a list", Json::list)?;
    within(claims.len(), "claims", "claims", limits.claims)?;
    for part in ["model", "data", "assumptions"] {
        json.optional(part, "an object", |part| part.object().map(|_| ()))?;
    }
    let text = |part: &str, name| json.get(part).optional(name, "a string", |hash| hash.text().map(str::to_owned));
    let count = |name| json.get("data").optional(name, "a size", Json::size);
    let hints = json.get("hints");
    Ok(Certificate {
        model: [
            text("model", "config")?,
            text("model", "tensors")?,
            text("model", "vocabulary")?,
            text("model", "mask")?,
        ],
        data: text("data", "hash")?,
        counts: [count("tokens")?, count("sequences")?, count("impossible")?, count("free")?],
        claims: claims.iter().map(|json| claim(json, hints)).collect(),
        exp_ulp: json.get("assumptions").optional("exp_ulp", "a number of at most 1024", ulps)?,
        hints: hints.clone(),
    })
}

/// A size of at most 1024, or the next above a number with a fraction.
fn ulps(json: &Json) -> Option<usize> {
    let Json::Number(text) = json else { return None };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let more = usize::from(fraction.parse::<u64>().ok()? > 0);
    Some(Json::Number(whole).size()? + more).filter(|&ulps| ulps <= 1024)
}

fn claim(json: &Json, hints: &Json) -> Claim {
    let kind = json.get("kind").text().unwrap_or("(none)");
    let why = match kind {
        "labels" | "outputs" | "contextual-mapping" | "distance" | "rank" => {
            "a field is missing or not of the right kind"
        }
        _ => "this checker does not know claims of this kind",
    };
    known(kind, json, hints).unwrap_or_else(|| Claim::Other(kind.to_owned(), why))
}

fn known(kind: &str, json: &Json, hints: &Json) -> Option<Claim> {
    let known = [("f32", Some(Format::F32)), ("f64", Some(Format::F64)), ("real", None)];
    let arithmetic = || json.choice("arithmetic", &known).ok();
    let number = |name: &str| decimal(json.get(name));
    let size = |name: &str| json.get(name).size();
    Some(match kind {
        "labels" => {
            let ratio = json.optional("smallest_margin_ratio", "a number", decimal).ok()?;
            Claim::Labels(arithmetic()?, size("right")?, ratio)
        }
        "outputs" => Claim::Outputs(arithmetic()?, number("tolerance")?),
        "contextual-mapping" if arithmetic()?.is_none() => Claim::ContextualMapping {
            layer: size("layer")?,
            log2_r: number("log2_r")?,
            log2_delta: number("log2_delta")?,
        },
        "distance" => Claim::Distance {
            arithmetic: if json.field("arithmetic").is_some() { arithmetic()? } else { None },
            p: number("p")?,
            bound: number("bound")?,
            function: json.get("function").text()?.to_owned(),
            // It is part of what is claimed; where it stands among the hints it is read there.
            length: json.field("length").unwrap_or(hints.get("length")).size()?,
        },
        "rank" => Claim::Rank(json.get("tensor").text()?.to_owned(), size("rank")?),
        _ => return None,
    })
}

/// A number of at most 1,000 characters and with an exponent of ten of at most 10,000, so that it can be computed with.
fn decimal(json: &Json) -> Option<String> {
    let Json::Number(text) = json else { return None };
    let exponent = text.split_once(['e', 'E']).map_or("0", |(_, exponent)| exponent);
    let small = exponent.parse::<i64>().is_ok_and(|exponent| exponent.abs() <= 10_000);
    (small && text.len() <= 1000).then(|| (*text).to_owned())
}
