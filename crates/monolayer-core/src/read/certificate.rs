//! certificate.json: what somebody claims about a model. Every claim is checked, none is believed.

use super::decimal::Decimal;
use super::json::{self, Json};
use super::{Limits, Result, within};
use crate::number::Format;

/// The arithmetic that a claim speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// All covered float programs of a format.
    Float(Format),
    /// Exact numbers.
    Real,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// So many tokens get their label.
    Labels {
        /// The arithmetic.
        arithmetic: Arithmetic,
        /// How many.
        right: usize,
        /// The rest, as [sequence, token] from 1: a help for people.
        undecided: Vec<(usize, usize)>,
        /// A lower bound of every margin over its error bound.
        smallest_margin_ratio: Option<Decimal>,
    },
    /// Every coordinate of every output is within the tolerance of the data's.
    Outputs {
        /// The arithmetic.
        arithmetic: Arithmetic,
        /// The tolerance.
        tolerance: Decimal,
    },
    /// The attention of a layer is an (r, delta)-contextual mapping, in real arithmetic.
    ContextualMapping {
        /// The layer, from 0.
        layer: usize,
        /// log2 of r.
        log2_r: Decimal,
        /// log2 of delta.
        log2_delta: Decimal,
    },
    /// The distance d_p from a function is at most a bound.
    Distance {
        /// The arithmetic.
        arithmetic: Arithmetic,
        /// p.
        p: Decimal,
        /// The bound.
        bound: Decimal,
        /// One expression per coordinate.
        function: String,
        /// Tokens of a sequence.
        length: usize,
    },
    /// The exact rank of each head's matrix of a tensor.
    Rank {
        /// The tensor's name.
        tensor: String,
        /// The rank.
        rank: usize,
    },
    /// A claim that cannot be checked: it stays unknown.
    Other {
        /// The kind as written.
        kind: String,
        /// Why.
        why: &'static str,
    },
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
    /// How many units in the last place the programs' exp may be off.
    pub exp_ulp: Option<Decimal>,
    /// What the author of a function vouches for.
    pub vouched: Option<String>,
    /// Helps for a checker: checked, never believed.
    pub hints: Json<'a>,
}

/// Reads a certificate.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Certificate<'a>> {
    let json = json::parse(bytes)?;
    if json.get("format").text() != Some("monolayer-certificate/1") {
        return Err("\"format\" is not \"monolayer-certificate/1\"".into());
    }
    let [model, data, assumptions] = ["model", "data", "assumptions"].map(|name| match json.get(name) {
        part @ (Json::Null | Json::Object(_)) => Ok(part),
        _ => Err(format!("{name:?} is not an object")),
    });
    let (model, data, assumptions) = (model?, data?, assumptions?);
    let claims = json.get("claims").list().ok_or("\"claims\" is not a list")?;
    within(claims.len(), "claims", "claims", limits.claims)?;
    let hints = json.get("hints");
    let reader = Reader { hints, exponent: limits.exponent };
    let exp_ulp = optional(assumptions, "exp_ulp", |ulp| {
        reader.decimal(ulp).filter(|ulp| !ulp.negative && *ulp <= Decimal::new("1024"))
    })?;
    let [config, tensors, vocabulary, mask] = ["config", "tensors", "vocabulary", "mask"].map(|name| text(model, name));
    let [tokens, sequences, impossible, free] =
        ["tokens", "sequences", "impossible", "free"].map(|name| optional(data, name, Json::size));
    Ok(Certificate {
        model: [config?, tensors?, vocabulary?, mask?],
        data: text(data, "hash")?,
        counts: [tokens?, sequences?, impossible?, free?],
        claims: claims.iter().map(|claim| reader.claim(claim)).collect::<Result<_>>()?,
        exp_ulp,
        vouched: text(assumptions, "function")?,
        hints: hints.clone(),
    })
}

/// A field that may be null or absent; it is an error where it is something else than it should be.
fn optional<'a, T>(json: &Json<'a>, name: &str, read: impl Fn(&Json<'a>) -> Option<T>) -> Result<Option<T>> {
    match json.get(name) {
        Json::Null => Ok(None),
        field => read(field).map(Some).ok_or_else(|| format!("{name:?} is not what it should be").into()),
    }
}

fn text(json: &Json, name: &str) -> Result<Option<String>> {
    optional(json, name, |field| field.text().map(str::to_owned))
}

struct Reader<'a> {
    hints: &'a Json<'a>,
    exponent: usize,
}

impl Reader<'_> {
    fn claim(&self, json: &Json) -> Result<Claim> {
        json.object().ok_or("a claim is not an object")?;
        let kind = json.get("kind").text().unwrap_or("(none)");
        let (read, why) = match kind {
            "labels" => (self.labels(json), MISSING),
            "outputs" => (self.outputs(json), MISSING),
            "contextual-mapping" => (self.mapping(json), MISSING),
            "distance" => (self.distance(json), MISSING),
            "rank" => (rank(json), MISSING),
            _ => (None, "this checker does not know claims of this kind"),
        };
        Ok(read.unwrap_or_else(|| Claim::Other { kind: kind.to_owned(), why }))
    }

    /// A number whose exponent is not beyond the limit.
    fn decimal(&self, json: &Json) -> Option<Decimal> {
        let decimal = Decimal::new(json.number()?);
        (decimal.exponent.unsigned_abs() <= self.exponent as u64).then_some(decimal)
    }

    fn labels(&self, json: &Json) -> Option<Claim> {
        let pair = |item: &Json| match item.sizes()?.as_slice() {
            &[sequence, token] => Some((sequence, token)),
            _ => None,
        };
        let pairs = |field: &Json| field.list()?.iter().map(pair).collect::<Option<Vec<_>>>();
        Some(Claim::Labels {
            arithmetic: arithmetic(json)?,
            right: json.get("right").size()?,
            undecided: optional(json, "undecided", pairs).ok()?.unwrap_or_default(),
            smallest_margin_ratio: optional(json, "smallest_margin_ratio", |x| self.decimal(x)).ok()?,
        })
    }

    fn outputs(&self, json: &Json) -> Option<Claim> {
        Some(Claim::Outputs { arithmetic: arithmetic(json)?, tolerance: self.decimal(json.get("tolerance"))? })
    }

    fn mapping(&self, json: &Json) -> Option<Claim> {
        Some(Claim::ContextualMapping {
            layer: json.get("layer").size().filter(|_| arithmetic(json) == Some(Arithmetic::Real))?,
            log2_r: self.decimal(json.get("log2_r"))?,
            log2_delta: self.decimal(json.get("log2_delta"))?,
        })
    }

    /// The length of sequences is part of what is claimed; where it stands among the hints it is read there.
    fn distance(&self, json: &Json) -> Option<Claim> {
        let length = if json.get("length").is_null() { self.hints.get("length") } else { json.get("length") };
        Some(Claim::Distance {
            arithmetic: if json.get("arithmetic").is_null() { Arithmetic::Real } else { arithmetic(json)? },
            p: self.decimal(json.get("p"))?,
            bound: self.decimal(json.get("bound"))?,
            function: json.get("function").text()?.to_owned(),
            length: length.size()?,
        })
    }
}

const MISSING: &str = "a field is missing or not of the right kind";

fn rank(json: &Json) -> Option<Claim> {
    Some(Claim::Rank { tensor: json.get("tensor").text()?.to_owned(), rank: json.get("rank").size()? })
}

fn arithmetic(json: &Json) -> Option<Arithmetic> {
    match json.get("arithmetic").text()? {
        "f32" => Some(Arithmetic::Float(Format::F32)),
        "f64" => Some(Arithmetic::Float(Format::F64)),
        "real" => Some(Arithmetic::Real),
        _ => None,
    }
}
