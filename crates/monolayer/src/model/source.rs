//! How a model was made: the field `source` of config.json, with types.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data::Split;
use crate::memorize::{Effort, LabelCounts, Method};
use crate::model::sequence_domain::SequenceDomain;

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
        /// How long fewer hidden units were looked for, unless as long as usual.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// The hash of the data.
        #[serde(rename = "dataset")]
        data_hash: String,
        /// The version of the program.
        version: String,
        /// What its labels take to be said; older versions did not count it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<LabelCounts>,
        /// The text, where the labels are what follows in a text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<TextSource>,
        /// The sequences that it was made for; older versions did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        domain: Option<SequenceDomain>,
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

/// A text that a model was made to recite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextSource {
    /// What its tokens are.
    pub split: Split,
    /// The first of them: where reciting starts.
    pub first: String,
    /// The label that follows the last of them.
    pub end: String,
}

impl Source {
    /// The same with another number of candidates tried.
    #[must_use]
    pub(crate) fn with_candidates(mut self, tried: usize) -> Self {
        if let Self::Memorize { candidates, .. } = &mut self {
            *candidates = tried;
        }
        self
    }

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

    /// What the labels of a memorized dataset take to be said, where it was counted.
    pub fn label_counts(&self) -> Option<&LabelCounts> {
        if let Self::Memorize { labels, .. } = self { labels.as_ref() } else { None }
    }

    /// The text that the model recites, where it was made from one.
    pub fn text(&self) -> Option<&TextSource> {
        if let Self::Memorize { text, .. } = self { text.as_ref() } else { None }
    }

    /// The sequences that the model was made for, where that is known.
    pub fn domain(&self) -> Option<&SequenceDomain> {
        if let Self::Memorize { domain, .. } = self { domain.as_ref() } else { None }
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
        let mut counted = memorize.clone();
        counted["labels"] = json!({"tokens": 9, "classes": 3, "contexts": 5, "deviating": 1});
        let source = Source::from_json(counted.clone());
        assert_eq!(source.label_counts().map(|counts| counts.contexts), Some(5));
        assert_eq!(source.json().to_string(), counted.to_string());
        let mut text = memorize.clone();
        text["text"] = json!({"split": "char", "first": "a", "end": "<end of text>"});
        let source = Source::from_json(text.clone());
        assert_eq!(source.text().map(|text| (text.split, text.first.as_str())), Some((Split::Char, "a")));
        assert_eq!(source.json(), text);
        let mut domain = memorize.clone();
        domain["domain"] = json!({"shortest": 1, "longest": 6, "orderings": "all"});
        let source = Source::from_json(domain.clone());
        assert_eq!(source.domain().map(|domain| domain.longest), Some(6));
        assert_eq!(source.json().to_string(), domain.to_string());
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
