//! A certificate: what somebody claims about a model. Every claim is checked, none is believed.

use std::path::Path;

use crate::distance::Distance;
use crate::error::{Error, Result};
use crate::read::bytes;
use crate::read::json::{self, Json};
use crate::rounding::Precision;

/// A claim of a certificate.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// So many tokens get their label.
    Labels {
        /// The arithmetic.
        arithmetic: Precision,
        /// How many tokens.
        right: usize,
        /// The smallest margin over its error bound.
        smallest_margin_ratio: Option<f64>,
    },
    /// The attention of a layer is an (r, delta)-contextual mapping (Definition 2).
    ContextualMapping {
        /// The layer.
        layer: usize,
        /// log2 of r.
        log2_r: f64,
        /// log2 of delta.
        log2_delta: f64,
    },
    /// Every output is within the tolerance of its label vector.
    Outputs {
        /// The arithmetic.
        arithmetic: Precision,
        /// The tolerance, in every coordinate.
        tolerance: f64,
    },
    /// A tensor's rank, exactly.
    Rank {
        /// The tensor's name.
        tensor: String,
        /// The rank.
        rank: usize,
    },
    /// The model is near a function.
    Distance(Distance),
    /// A kind that this checker does not know, or a claim that is not well formed.
    Other {
        /// The kind as written.
        kind: String,
        /// Why it cannot be checked.
        why: String,
    },
}

/// A certificate as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// Hashes of config.json, model.safetensors and vocabulary.json.
    pub model: [Option<String>; 3],
    /// The hash of the dataset.
    pub data: Option<String>,
    /// Tokens, sequences and impossible tokens of the dataset.
    pub counts: [Option<usize>; 3],
    /// The claims.
    pub claims: Vec<Claim>,
    /// How many units in the last place the programs' exp may be off.
    pub exp_ulp: Option<f64>,
}

/// Reads certificate.json of a model directory, if there is one.
pub fn open(dir: &Path) -> Result<Option<Certificate>> {
    let file = dir.join("certificate.json");
    if std::fs::symlink_metadata(&file).is_err() {
        return Ok(None);
    }
    let fault =
        |what: String| Error::new(file.display().to_string(), what, "certify the model again, or remove the file");
    parse(&bytes::regular(&file)?).map(Some).map_err(fault)
}

/// Reads a certificate.
pub fn parse(content: &[u8]) -> std::result::Result<Certificate, String> {
    let json = json::parse(content)?;
    if json.get("format").text() != Some("monolayer-certificate/1") {
        return Err("\"format\" is not \"monolayer-certificate/1\"".into());
    }
    let (model, data) = (json.get("model"), json.get("data"));
    let text = |part: &Json, name: &str| part.get(name).text().map(str::to_owned);
    let claims = json.get("claims").list().ok_or("\"claims\" is not a list")?;
    let exp_ulp = json.get("assumptions").get("exp_ulp").number();
    if exp_ulp.is_some_and(|ulp| !(0.0..=1024.0).contains(&ulp)) {
        return Err("\"exp_ulp\" is not between 0 and 1024".into());
    }
    Ok(Certificate {
        model: ["config", "tensors", "vocabulary"].map(|name| text(model, name)),
        data: text(data, "hash"),
        counts: ["tokens", "sequences", "impossible"].map(|name| data.get(name).size()),
        claims: claims.iter().map(|claim| self::claim(claim, json.get("hints"))).collect(),
        exp_ulp,
    })
}

fn claim(json: &Json, hints: &Json) -> Claim {
    let kind = json.get("kind").text().unwrap_or("(none)");
    let arithmetic = json.get("arithmetic").text().and_then(Precision::of);
    let number = |name: &str| json.get(name).number();
    let read = match kind {
        "labels" => arithmetic.zip(json.get("right").size()).map(|(arithmetic, right)| Claim::Labels {
            arithmetic,
            right,
            smallest_margin_ratio: number("smallest_margin_ratio"),
        }),
        "outputs" => {
            arithmetic.zip(number("tolerance")).map(|(arithmetic, tolerance)| Claim::Outputs { arithmetic, tolerance })
        }
        "contextual-mapping" => match (arithmetic, json.get("layer").size(), number("log2_r"), number("log2_delta")) {
            (Some(Precision::Real), Some(layer), Some(log2_r), Some(log2_delta)) => {
                Some(Claim::ContextualMapping { layer, log2_r, log2_delta })
            }
            _ => None,
        },
        "rank" => json
            .get("tensor")
            .text()
            .zip(json.get("rank").size())
            .map(|(tensor, rank)| Claim::Rank { tensor: tensor.to_owned(), rank }),
        "distance" => distance(json, hints).map(Claim::Distance),
        _ => {
            let why = "this checker does not know claims of this kind".to_owned();
            return Claim::Other { kind: kind.to_owned(), why };
        }
    };
    let why = "a field is missing or not of the right kind".to_owned();
    read.unwrap_or(Claim::Other { kind: kind.to_owned(), why })
}

/// The length of sequences is part of what is claimed; where it stands among the hints it is read there.
fn distance(json: &Json, hints: &Json) -> Option<Distance> {
    let arithmetic = json.get("arithmetic");
    Some(Distance {
        arithmetic: if arithmetic.is_null() { Precision::Real } else { arithmetic.text().and_then(Precision::of)? },
        p: json.get("p").number()?,
        bound: json.get("bound").number()?,
        function: json.get("function").text()?.to_owned(),
        length: json.get("length").size().or_else(|| hints.get("length").size())?,
    })
}
