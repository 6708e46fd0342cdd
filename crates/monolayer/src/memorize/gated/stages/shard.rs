//! Consecutive sequences of a dataset: what one task of a stage looks at.

use crate::context_map::View;
use crate::data::Dataset;
use crate::data::context::Contexts;
use crate::data::token_vectors::TokenVectors;
use crate::paper::mask::Mask;

/// Some consecutive sequences. Words and labels are numbered as in the whole dataset.
pub struct Shard<'a> {
    /// The words of all tokens.
    pub word_ids: &'a [u32],
    /// Their labels; none where any will do.
    pub labels: &'a [Option<u32>],
    /// Where each sequence starts, from 0, and the end of the last.
    pub offsets: Vec<usize>,
    /// The number of the first token in the whole dataset.
    pub first: usize,
}

/// Tokens of a shard, about.
const TOKENS: usize = 1 << 16;

impl<'a> Shard<'a> {
    /// A dataset in shards.
    pub fn all(data: &Dataset, word_ids: &'a [u32], labels: &'a [Option<u32>]) -> Vec<Self> {
        let mut shards = Vec::new();
        let mut sequence = 0;
        while sequence < data.sequences() {
            let first = data.offsets[sequence];
            let next =
                data.offsets.partition_point(|&start| start < first + TOKENS).clamp(sequence + 1, data.sequences());
            let end = data.offsets[next];
            let offsets = data.offsets[sequence..=next].iter().map(|offset| offset - first).collect();
            shards.push(Self { word_ids: &word_ids[first..end], labels: &labels[first..end], offsets, first });
            sequence = next;
        }
        shards
    }

    /// Its sequences: the number of the first token of each, from 0, and the words.
    pub fn sequences(&self) -> impl Iterator<Item = (usize, &'a [u32])> + '_ {
        self.offsets.windows(2).map(|window| (window[0], &self.word_ids[window[0]..window[1]]))
    }

    /// Its sequences as attention sees them. Contexts are not told apart.
    pub fn view<'b>(&'b self, vectors: &'b TokenVectors, mask: &Mask) -> View<'b> {
        let contexts = Contexts { of_token: Vec::new(), count: 0 };
        View { token_ids: self.word_ids.to_vec(), offsets: &self.offsets, mask: mask.clone(), vectors, contexts }
    }
}
