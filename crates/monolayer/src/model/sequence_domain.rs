//! What a model was made for: nothing is known of what it says beyond.

use serde::{Deserialize, Serialize};

use crate::data::{Dataset, Orderings};
use crate::paper::mask::Mask;

/// The sequences that a model was made for. It answers others, too, and nothing is known of its answers.
///
/// ```
/// use monolayer::data::positions::Positions;
/// use monolayer::{Dataset, Memorizer};
///
/// let data = Dataset::open("task:parity:alphabet=2,length=3..4")?;
/// let compiled = Memorizer::new().positions(Positions::None).start(true).compile(&data)?;
/// let domain = compiled.source().domain().expect("a memorized dataset");
/// assert_eq!((domain.shortest, domain.longest), (3, 4));
/// let beyond = Dataset::open("task:parity:alphabet=2,length=5")?;
/// assert!(domain.warning(&data).is_none() && domain.warning(&beyond).is_some());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceDomain {
    /// The fewest tokens of a sequence, a start token not counted. 1 where no token sees later ones: what is known of a sequence is
    /// then known of its beginnings.
    pub shortest: usize,
    /// The most.
    pub longest: usize,
    /// Which orders of their tokens.
    pub orderings: Orderings,
}

impl SequenceDomain {
    /// That of a model made for a dataset.
    pub(crate) fn of(data: &Dataset, mask: &Mask, positions: bool) -> Self {
        let sees_no_later = matches!(mask, Mask::Causal | Mask::Band(_, 0));
        let shortest = data.ranges().map(|range| range.len()).min().unwrap_or(1);
        Self {
            shortest: if sees_no_later { 1 } else { shortest },
            longest: data.longest(),
            orderings: if *mask == Mask::None && !positions { Orderings::All } else { Orderings::Given },
        }
    }

    /// Whether the model was made for sequences of so many tokens.
    pub fn has_length(&self, length: usize) -> bool {
        (self.shortest..=self.longest).contains(&length)
    }

    /// How many sequences of a dataset it was not made for.
    pub fn outside(&self, data: &Dataset) -> usize {
        data.ranges().filter(|range| !self.has_length(range.len())).count()
    }

    /// What is to be said before a model's answers for a dataset; nothing where it was made for all lengths.
    pub fn warning(&self, data: &Dataset) -> Option<String> {
        let first = data.ranges().position(|range| !self.has_length(range.len()))?;
        let mut place = data.location(data.offsets[first]);
        place.token = None;
        let (outside, all, length) = (self.outside(data), data.sequences(), data.range(first).len());
        Some(format!(
            "{outside} of {all} sequences are not of the lengths that the model was made for ({}): {place} has {length}. \
             Nothing is known of its answers there",
            self.lengths()
        ))
    }

    /// The lengths, in words.
    pub fn lengths(&self) -> String {
        if self.shortest == self.longest {
            self.longest.to_string()
        } else {
            format!("{} to {}", self.shortest, self.longest)
        }
    }
}
