//! certificate.json: what somebody claims about a model. Every claim is checked, none is believed.

use super::json::{self, Json};
use super::{Limits, Result, within};
use crate::exact::real::Rational;
use crate::number::Format;

/// The arithmetic of a claim: all covered float programs of a format, or, where there is none, real numbers.
pub type Arithmetic = Option<Format>;

/// The names of the arithmetics.
pub const ARITHMETICS: [(&str, Arithmetic); 3] =
    [("f32", Some(Format::F32)), ("f64", Some(Format::F64)), ("real", None)];

/// A claim; its numbers are the decimals that were written.
#[derive(Debug, Clone)]
pub enum Claim {
    /// So many tokens get their label; a lower bound of every margin over its error bound.
    Labels(Arithmetic, usize, Option<Rational>),
    /// Every order of every sequence has its labels: how many sequences these are, in digits, and the shortest and the longest length
    /// where these are all sequences of the lengths between over the data's tokens.
    Orderings(Arithmetic, Option<String>, Option<Vec<usize>>),
    /// Every coordinate of every output is within this tolerance of the data's.
    Outputs(Arithmetic, Rational),
    /// The attention of this layer (from 0) is an (r, delta)-contextual mapping, in real arithmetic: log2 of r, then of delta.
    ContextualMapping(usize, Rational, Rational),
    /// The distance d_p from a function is at most a bound.
    Distance {
        /// The arithmetic.
        arithmetic: Arithmetic,
        /// p.
        p: Rational,
        /// The bound.
        bound: Rational,
        /// One expression per coordinate.
        function: String,
        /// Tokens of a sequence.
        length: usize,
    },
    /// The exact rank of each head's matrix of the tensor of this name.
    Rank(String, usize),
    /// A claim of this kind, which this checker does not know, or where a field is missing or wrong: it stays unknown.
    Other(String),
}

/// A certificate as written.
#[derive(Debug, Clone)]
pub struct Certificate<'a> {
    /// Hashes of config.json, of model.safetensors or weights.json, of vocabulary.json, and of mask.safetensors.
    pub model: [Option<String>; 4],
    /// The hash of the dataset.
    pub data: Option<String>,
    /// Tokens, sequences, impossible tokens and free tokens of the dataset.
    pub counts: [Option<usize>; 4],
    /// The claims.
    pub claims: Vec<Claim>,
    /// How many units in the last place the programs' exp may be off, at most 1024.
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
    // However it is spelled: 4, 4.0, 4e0.
    let ulps = |ulps: &Json| {
        let ulps = number(ulps)?;
        let equals = |n: &usize| Rational::parse(&n.to_string(), &mut 9).is_some_and(|n| n.minus(&ulps).is_zero());
        (0..=1024).find(equals)
    };
    let hints = json.get("hints");
    let [config, tensors, vocabulary, mask] =
        ["config", "tensors", "vocabulary", "mask"].map(|name| text("model", name));
    let read = |json: &Json| {
        let kind = json.get("kind").text().unwrap_or("(none)");
        claim(kind, json, hints).unwrap_or_else(|| Claim::Other(kind.to_owned()))
    };
    Ok(Certificate {
        model: [config?, tensors?, vocabulary?, mask?],
        data: text("data", "hash")?,
        counts: [count("tokens")?, count("sequences")?, count("impossible")?, count("free")?],
        claims: claims.iter().map(read).collect(),
        exp_ulp: json.get("assumptions").optional("exp_ulp", "a whole number of at most 1024", ulps)?,
        hints: hints.clone(),
    })
}

/// A claim, if it is of a known kind and has all its fields.
fn claim(kind: &str, json: &Json, hints: &Json) -> Option<Claim> {
    let arithmetic = || json.choice("arithmetic", &ARITHMETICS).ok();
    let number = |name: &str| number(json.get(name));
    let size = |name: &str| json.get(name).size();
    Some(match kind {
        "labels" => {
            let ratio = json.optional("smallest_margin_ratio", "a number", self::number).ok()?;
            Claim::Labels(arithmetic()?, size("right")?, ratio)
        }
        "orderings" => {
            json.only(&["kind", "arithmetic", "sequences", "all_lengths"]).ok()?;
            let digits = json.optional("sequences", "digits", |digits| digits.text().map(str::to_owned)).ok()?;
            Claim::Orderings(arithmetic()?, digits, json.optional("all_lengths", "sizes", Json::sizes).ok()?)
        }
        "outputs" => Claim::Outputs(arithmetic()?, number("tolerance")?),
        "contextual-mapping" if arithmetic()?.is_none() => {
            Claim::ContextualMapping(size("layer")?, number("log2_r")?, number("log2_delta")?)
        }
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

/// A number that is short enough to be computed with.
fn number(json: &Json) -> Option<Rational> {
    if let Json::Number(text) = json { Rational::parse(text, &mut 1_000_000) } else { None }
}
