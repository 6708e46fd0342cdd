//! How a model was made: the field `source` of config.json, with types.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::memorize::Method;

/// How a model was made. Commands of this project write one of the first four kinds; a model from elsewhere may say anything.
///
/// ```
/// use monolayer::{Dataset, Memorizer, Source};
///
/// let data = Dataset::open("task:reverse:alphabet=2,length=2")?;
/// let compiled = Memorizer::new().seed(7).compile(&data)?;
/// assert_eq!(compiled.source().data_hash(), Some(data.hash().as_str()));
/// assert!(matches!(compiled.source(), Source::Memorize { seed: 7, .. }));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A dataset was memorized.
    Memorize {
        /// How labels are read off the context ids.
        method: Method,
        /// The seed of codes and search.
        seed: u64,
        /// How many projections were tried.
        candidates: usize,
        /// The hash of the data.
        #[serde(rename = "dataset")]
        data_hash: String,
        /// The version of the program.
        version: String,
    },
    /// A function was approximated.
    Approximate {
        /// The tokens of a sequence.
        length: usize,
        /// Parts of each coordinate.
        grid: Vec<usize>,
        /// The exponent p of d_p.
        p: f64,
        /// The seed of the search for codes.
        seed: u64,
        /// How many codes to try, where there is a search.
        candidates: usize,
        /// The version of the program.
        version: String,
        /// The function.
        function: String,
    },
    /// A contextual map alone.
    Context {
        /// The version of the program.
        version: String,
        /// How weights were chosen: `tight`, `certified` or `paper`.
        scale: String,
        /// The name of the file.
        data: String,
        /// The hash of the data.
        #[serde(rename = "dataset")]
        data_hash: String,
        /// The seed of codes and search.
        seed: u64,
        /// How many projections were tried.
        candidates: usize,
        /// Whether only contexts with different labels had to be told apart.
        labels_only: bool,
        /// The scale of queries.
        kappa: f64,
    },
    /// Trained from random weights.
    Train {
        /// The options of the run.
        options: Value,
        /// The hash of the data; a function has none.
        #[serde(rename = "dataset", default, skip_serializing_if = "Option::is_none")]
        data_hash: Option<String>,
        /// The function, where one was learned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// Epochs done.
        epochs: usize,
        /// Steps done.
        steps: u64,
        /// The version of the program.
        version: String,
    },
    /// Anything else.
    #[serde(skip)]
    Other(Value),
}

impl Source {
    /// What config.json holds.
    pub fn json(&self) -> Value {
        match self {
            Self::Other(value) => value.clone(),
            known => serde_json::to_value(known).expect("plain data"),
        }
    }

    /// From what config.json holds. Nothing is lost: [`Self::json`] gives it back.
    pub fn from_json(value: Value) -> Self {
        match serde_json::from_value::<Self>(value.clone()) {
            Ok(known) if known.json() == value => known,
            _ => Self::Other(value),
        }
    }

    /// The hash of the data that the model was made from, where it was made from data.
    pub fn data_hash(&self) -> Option<&str> {
        match self {
            Self::Memorize { data_hash, .. } | Self::Context { data_hash, .. } => Some(data_hash),
            Self::Train { data_hash, .. } => data_hash.as_deref(),
            Self::Approximate { .. } | Self::Other(_) => None,
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::Other(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_a_file_says_is_kept() {
        let memorize = json!({
            "command": "memorize", "method": "gated", "seed": 7, "candidates": 9, "dataset": "ab", "version": "1",
        });
        let source = Source::from_json(memorize.clone());
        assert_eq!(source.data_hash(), Some("ab"));
        assert_eq!(source.json().to_string(), memorize.to_string());
        for other in [
            json!(null),
            json!({}),
            json!([1]),
            json!({"command": "memorize"}),
            json!({"command": "memorize", "method": "magic", "seed": 7, "candidates": 9, "dataset": "ab", "version": "1"}),
            json!({"command": "memorize", "method": "gated", "seed": 7, "candidates": 9, "dataset": "ab", "version": "1", "x": 1}),
            json!({"command": "Other", "0": 1}),
        ] {
            let source = Source::from_json(other.clone());
            assert!(matches!(source, Source::Other(_)), "{other}");
            assert_eq!(source.json(), other);
        }
    }
}
