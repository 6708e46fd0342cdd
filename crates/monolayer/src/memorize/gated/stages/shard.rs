//! Consecutive sequences of a dataset: what one task of a stage looks at.

use std::ops::Range;

use super::wire::fields;
use crate::data::Dataset;

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

    /// The numbers of its tokens in the whole dataset.
    pub fn tokens(&self) -> Range<usize> {
        self.first..self.first + self.word_ids.len()
    }
}

/// A shard that owns its sequences, so that it can be sent to another process.
pub struct OwnedShard {
    /// As [`Shard`] has them.
    pub word_ids: Vec<u32>,
    /// The same.
    pub labels: Vec<Option<u32>>,
    /// How many tokens each sequence has.
    pub lengths: Vec<u32>,
    /// The number of the first token in the whole dataset.
    pub first: usize,
}

fields!(OwnedShard { word_ids, labels, lengths, first });

impl OwnedShard {
    /// The shard.
    pub fn shard(&self) -> Shard<'_> {
        let mut offsets = Vec::with_capacity(self.lengths.len() + 1);
        offsets.push(0);
        for &length in &self.lengths {
            offsets.push(offsets[offsets.len() - 1] + length as usize);
        }
        Shard { word_ids: &self.word_ids, labels: &self.labels, offsets, first: self.first }
    }
}
