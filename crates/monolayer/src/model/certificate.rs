//! certificate.json: what was proved about a model. A separate program checks it and believes nothing of it.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::data::{CoveredSequences, Dataset};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::rank::rank;

/// The version of certificate.json.
pub const FORMAT: &str = "monolayer-certificate/1";

/// A claim about a model.
///
/// ```
/// use monolayer::{Claim, Dataset, Memorizer};
///
/// let data = Dataset::from_sequences(&[["a", "b"]], &[["X", "Y"]])?;
/// let compiled = Memorizer::new().compile(&data)?;
/// let Claim::Labels { arithmetic, right, .. } = &compiled.claims()[0] else { panic!("labels come first") };
/// assert_eq!((arithmetic.as_str(), *right), ("f32", 2));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Claim {
    /// So many tokens of the data get their label.
    Labels {
        /// `"f32"`, `"f64"` or `"real"`.
        arithmetic: String,
        /// How many tokens are proved right.
        right: usize,
        /// Possible tokens that are not proved: sequence and token, from 1.
        undecided: Vec<(usize, usize)>,
        /// The smallest margin of a label over its error bound.
        smallest_margin_ratio: f64,
    },
    /// Every order of the tokens of every sequence of the data has the labels of the tokens as they are there.
    Orderings {
        /// `"f32"`, `"f64"` or `"real"`.
        arithmetic: String,
        /// How many different sequences these are, in digits; none where they are more than 2^128.
        sequences: Option<String>,
        /// The shortest and the longest length, where these are all sequences of the lengths between over the data's tokens.
        all_lengths: Option<(usize, usize)>,
    },
    /// Every possible token's output is this near its label, in every coordinate.
    Outputs {
        /// `"f64"` or `"real"`.
        arithmetic: String,
        /// How near.
        tolerance: f64,
    },
    /// The attention of a layer is an (r, delta)-contextual mapping of the data (Definition 2).
    ContextualMapping {
        /// The layer, from 0.
        layer: usize,
        /// `"real"`.
        arithmetic: String,
        /// The binary logarithm of r.
        log2_r: f64,
        /// The binary logarithm of delta.
        log2_delta: f64,
    },
    /// d_p between the model and a function, over the cube, is at most this.
    Distance {
        /// `"f64"`: rounding included, in any order of summation; or `"real"`.
        arithmetic: String,
        /// The exponent.
        p: f64,
        /// The bound.
        bound: f64,
        /// The function, as it was given.
        function: String,
    },
    /// A matrix has this rank, exactly.
    Rank {
        /// The tensor.
        tensor: String,
        /// Its rank.
        rank: usize,
    },
}

impl Claim {
    /// So many tokens of a dataset get their label; those in `open` could, and are not proved.
    pub(crate) fn labels(arithmetic: &str, data: &Dataset, right: usize, open: &[usize], smallest_ratio: f64) -> Self {
        let numbers = |&t: &usize| {
            let location = data.location(t);
            (location.sequence.unwrap_or(0), location.token.unwrap_or(0))
        };
        Self::Labels {
            arithmetic: arithmetic.to_owned(),
            right,
            undecided: open.iter().map(numbers).collect(),
            // How far above 1 a ratio lies depends on whose error bound it is; that no bound matters below 1 does not.
            smallest_margin_ratio: smallest_ratio.min(1.0),
        }
    }

    /// Every order of a dataset's sequences, of which every token is proved.
    pub(crate) fn orderings(arithmetic: &str, covered: CoveredSequences) -> Self {
        let CoveredSequences { sequences, all_lengths } = covered;
        let sequences = sequences.map(|sequences| sequences.to_string());
        Self::Orderings { arithmetic: arithmetic.to_owned(), sequences, all_lengths }
    }

    /// Outputs are within `error` of their labels. A checker with bounds of its own needs some room, also where the error is
    /// 0: enclosures never decide an equality.
    pub(crate) fn outputs(arithmetic: &str, error: f64) -> Self {
        const SMALLEST: f64 = 1e-300;
        Self::Outputs { arithmetic: arithmetic.to_owned(), tolerance: (4.0 * error).max(SMALLEST) }
    }

    /// The matrices of the first layer, which has one head of size 1, have rank 1.
    pub(crate) fn rank_one() -> [Self; 4] {
        ["w_q", "w_k", "w_v", "w_o"].map(|name| Self::Rank { tensor: format!("layers.0.attention.{name}"), rank: 1 })
    }

    /// The contextual mapping that a layer 0 was proved to be; with some room for a checker with bounds of its own. Where
    /// there is only one context (an infinite distance) any delta will do.
    pub fn contextual_mapping(r: f64, log2_delta: f64) -> Self {
        const ROOM: f64 = 1e-6;
        let log2_r = r.log2() + ROOM;
        let arithmetic = "real".to_owned();
        Self::ContextualMapping { layer: 0, arithmetic, log2_r, log2_delta: log2_delta.min(log2_r) - ROOM }
    }

    /// The ranks of the matrices of a model's first layer, which has one head.
    pub fn ranks(model: &Model<f64>) -> Vec<Self> {
        let attention = model.transformer.layers.first().and_then(|layer| layer.attention.as_ref());
        let Some([head]) = attention.map(|attention| attention.heads.as_slice()) else { return Vec::new() };
        [("w_q", &head.w_q), ("w_k", &head.w_k), ("w_v", &head.w_v), ("w_o", &head.w_o)]
            .map(|(name, w)| Self::Rank { tensor: format!("layers.0.attention.{name}"), rank: rank(w.cols, &w.data) })
            .to_vec()
    }
}

/// The data that a certificate is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertifiedData {
    hash: String,
    tokens: usize,
    sequences: usize,
    impossible: usize,
    free: usize,
}

impl CertifiedData {
    /// A dataset, `impossible` tokens of which contradict their context.
    pub fn new(data: &Dataset, impossible: usize) -> Self {
        Self::hashed(data, data.hash(), impossible, data.free())
    }

    /// The same for a dataset whose hash is known, and how many tokens have a free label.
    pub(crate) fn hashed(data: &Dataset, hash: String, impossible: usize, free: usize) -> Self {
        Self { hash, tokens: data.tokens(), sequences: data.sequences(), impossible, free }
    }

    /// The hash of the dataset.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

/// Writes certificate.json beside the files of a model that was made from data, all named by their hashes.
pub fn write(dir: &Path, data: &CertifiedData, claims: &[Claim]) -> Result<()> {
    let mut about = json!({
        "hash": data.hash,
        "tokens": data.tokens,
        "sequences": data.sequences,
        "impossible": data.impossible,
    });
    if data.free > 0 {
        about["free"] = data.free.into();
    }
    put(dir, &[("data", about)], claims, None, None)
}

/// Writes certificate.json beside the files of a model that was made from a function: what its author vouches for is an
/// assumption, and `hints` help a checker.
pub fn write_for_function(dir: &Path, claims: &[Claim], vouched: Option<String>, hints: Value) -> Result<()> {
    put(dir, &[], claims, vouched, Some(hints))
}

/// The hashes of the files of a model directory, as its certificate names them.
pub(crate) fn hashes(dir: &Path) -> Result<Value> {
    let hash = |name: &str| -> Result<Value> {
        let path = dir.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(blake3::hash(&bytes).to_hex().as_str().into()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
            Err(e) => Err(Error::io(path, e)),
        }
    };
    let numbers = if dir.join("weights.json").exists() { "weights.json" } else { "model.safetensors" };
    let mut hashes = json!({
        "config": hash("config.json")?,
        "tensors": hash(numbers)?,
        "vocabulary": hash("vocabulary.json")?,
    });
    // Only where there is one, so that the certificates of other models stay as they were.
    if let mask @ Value::String(_) = hash(crate::model::mask_file::FILE)? {
        hashes["mask"] = mask;
    }
    Ok(hashes)
}

fn put(
    dir: &Path,
    more: &[(&str, Value)],
    claims: &[Claim],
    vouched: Option<String>,
    hints: Option<Value>,
) -> Result<()> {
    let mut certificate = json!({ "format": FORMAT, "model": hashes(dir)? });
    for (name, value) in more {
        certificate[name] = value.clone();
    }
    certificate["claims"] = json!(claims);
    certificate["assumptions"] = json!({
        "exp_ulp": crate::arithmetic::softmax_error::EXP_ULP,
        "softmax": "max subtracted, scores formed from projected keys and queries, plain IEEE arithmetic of the \
                    claim's precision, any order of summation",
    });
    if let Some(vouched) = vouched {
        certificate["assumptions"]["function"] = vouched.into();
    }
    if let Some(hints) = hints {
        certificate["hints"] = hints;
    }
    let path = dir.join("certificate.json");
    let text = serde_json::to_string_pretty(&certificate).expect("plain data");
    std::fs::write(&path, text + "\n").map_err(|e| Error::io(path, e))
}
