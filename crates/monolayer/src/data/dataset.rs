//! A dataset: ragged sequences of tokens (words or vectors), with a label per token (a class or a vector).

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::Location;

/// Sequences of tokens with a label per token.
///
/// Tokens of all sequences lie one after another; `offsets[i]..offsets[i + 1]` are those of sequence `i`.
///
/// ```
/// use monolayer::Dataset;
///
/// let data = Dataset::from_sequences(&[["a", "b", "a"]], &[["X", "Y", "X"]])?;
/// assert_eq!(data.range(0), 0..3);
/// assert_eq!(data.location(1).to_string(), "<memory> (sequence 1, token 2)");
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The file it came from, `<stdin>`, or the task's name.
    pub name: String,
    /// The tokens.
    pub tokens: Tokens,
    /// Their labels.
    pub labels: Labels,
    /// Where each sequence starts, and the number of tokens at the end.
    pub offsets: Vec<usize>,
    /// The line of each token in a text file; empty for other kinds.
    pub lines: Vec<u32>,
    /// What a person should know about how the file was read.
    pub warnings: Vec<String>,
    /// How words and classes were written.
    pub written: Written,
    /// Which orders of its tokens each sequence stands for.
    pub orderings: Orderings,
}

/// Which orders of its tokens a sequence stands for: of a dataset, or of what a model was made for.
///
/// ```
/// use monolayer::Dataset;
/// use monolayer::data::Orderings;
///
/// assert_eq!(Dataset::open("task:parity:alphabet=2,length=3,order=sorted")?.orderings, Orderings::All);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Orderings {
    /// That of the data.
    #[default]
    Given,
    /// All: labels depend on a token and the multiset of its sequence alone, and the model has neither positions nor a mask.
    All,
}

/// The tokens of a dataset.
///
/// ```
/// use monolayer::{Dataset, Tokens};
///
/// let data = Dataset::from_sequences(&[["a", "b", "a"]], &[["X", "Y", "X"]])?;
/// let Tokens::Words { word_ids, vocabulary } = &data.tokens else { panic!("words") };
/// assert_eq!((word_ids.as_slice(), vocabulary.name(1)), (&[0, 1, 0][..], "b"));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Tokens {
    /// Words, as ids into a vocabulary.
    Words {
        /// The word id of each token.
        word_ids: Vec<u32>,
        /// All words in order of first appearance.
        vocabulary: Vocabulary,
    },
    /// Vectors, row-major `[tokens, d]`.
    Vectors {
        /// Their dimension.
        d: usize,
        /// Their entries.
        data: Vec<f64>,
    },
}

/// The labels of a dataset.
///
/// ```
/// use monolayer::{Dataset, Labels};
///
/// let data = Dataset::from_sequences(&[["a", "b"]], &[["X", "Y"]])?;
/// let Labels::Classes { label_ids, names } = &data.labels else { panic!("classes") };
/// assert_eq!((label_ids.as_slice(), names.len()), (&[Some(0), Some(1)][..], 2));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// The dataset has none.
    None,
    /// Classes, as ids into the names.
    Classes {
        /// The label id of each token; none where any label will do.
        label_ids: Vec<Option<u32>>,
        /// All names in order of first appearance.
        names: Vocabulary,
    },
    /// Vectors of the dimension of the tokens, row-major `[tokens, d]`.
    Vectors {
        /// Their dimension.
        d: usize,
        /// Their entries.
        data: Vec<f64>,
    },
}

/// How words and classes were written: the canonical form keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// The tokens, where they are words.
    pub tokens: Names,
    /// The labels, where they are classes.
    pub labels: Names,
}

/// How names are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Names {
    /// As strings.
    #[default]
    Strings,
    /// As integers.
    Integers,
}

/// Names numbered in order of first appearance.
///
/// ```
/// use monolayer::Vocabulary;
///
/// let mut words = Vocabulary::default();
/// assert_eq!((words.add("May"), words.add("sails"), words.add("May")), (0, 1, 0));
/// assert_eq!((words.get("sails"), words.name(0)), (Some(1), "May"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    names: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    /// The id of a name, which is added if new.
    pub fn add(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = u32::try_from(self.names.len()).expect("fewer than 2^32 names");
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// The id of a name, if known.
    pub fn get(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// The name of an id.
    pub fn name(&self, id: u32) -> &str {
        &self.names[id as usize]
    }

    /// All names, by id.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl Dataset {
    /// How many sequences there are.
    pub fn sequences(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        self.offsets[self.sequences()]
    }

    /// The tokens of sequence `i`.
    pub fn range(&self, i: usize) -> Range<usize> {
        self.offsets[i]..self.offsets[i + 1]
    }

    /// The token ranges of all sequences, in order.
    pub fn ranges(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.offsets.windows(2).map(|w| w[0]..w[1])
    }

    /// The length of the longest sequence.
    pub fn longest(&self) -> usize {
        self.ranges().map(|r| r.len()).max().unwrap_or(0)
    }

    /// The word of token `t`, if tokens are words.
    pub fn word(&self, t: usize) -> Option<&str> {
        match &self.tokens {
            Tokens::Words { word_ids, vocabulary } => Some(vocabulary.name(word_ids[t])),
            Tokens::Vectors { .. } => None,
        }
    }

    /// The name of the label of token `t`, if labels are classes and this one is not free.
    pub fn label(&self, t: usize) -> Option<&str> {
        match &self.labels {
            Labels::Classes { label_ids, names } => label_ids[t].map(|id| names.name(id)),
            Labels::None | Labels::Vectors { .. } => None,
        }
    }

    /// Whether any label will do for token `t`: such a token is never right or wrong.
    pub fn is_free(&self, t: usize) -> bool {
        matches!(&self.labels, Labels::Classes { label_ids, .. } if label_ids[t].is_none())
    }

    /// How many tokens have a free label.
    pub fn free(&self) -> usize {
        (0..self.tokens()).filter(|&t| self.is_free(t)).count()
    }

    /// How many sequences have no labeled token that is wrong.
    pub fn sequences_right(&self, right: impl Fn(usize) -> bool) -> usize {
        self.ranges().filter(|range| range.clone().all(|t| self.is_free(t) || right(t))).count()
    }

    /// Where token `t` stands in its file.
    pub fn location(&self, t: usize) -> Location {
        let sequence = self.offsets.partition_point(|&start| start <= t) - 1;
        Location {
            file: self.name.clone(),
            line: self.lines.get(t).map(|&line| line as usize),
            column: None,
            sequence: Some(sequence + 1),
            token: Some(t - self.offsets[sequence] + 1),
        }
    }
}
