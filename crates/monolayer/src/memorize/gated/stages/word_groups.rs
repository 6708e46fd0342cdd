//! Which words at which places need more than their word's base label: only their contexts are looked at any further.

use std::ops::Range;

use super::counts::{Counts, counted};
use super::wire::Wire;

/// The labels of words.
pub struct WordLabels {
    /// The commonest label of each word: the default among equals, then the first.
    pub commonest: Vec<u32>,
    /// The words with several labels.
    pub ambiguous: Vec<bool>,
    /// The words for which any label will do wherever they stand.
    pub free: Vec<bool>,
    /// The commonest label.
    pub default: u32,
}

impl WordLabels {
    /// From how often each word has each label.
    pub fn new(counts: &Counts<(u32, u32)>, words: usize, labels: usize) -> Self {
        let mut totals = vec![0; labels];
        counts.iter().for_each(|&((_, label), count)| totals[label as usize] += count);
        let default = (0..labels as u32).max_by_key(|&l| (totals[l as usize], std::cmp::Reverse(l))).unwrap_or(0);
        let mut all =
            Self { commonest: vec![default; words], ambiguous: vec![false; words], free: vec![true; words], default };
        for word in counts.chunk_by(|a, b| a.0.0 == b.0.0) {
            let w = word[0].0.0 as usize;
            let rank = |&&((_, label), count): &&((u32, u32), u64)| (count, label == default, std::cmp::Reverse(label));
            let best = word.iter().max_by_key(rank).expect("a label");
            (all.commonest[w], all.ambiguous[w], all.free[w]) = (best.0.1, word.len() > 1, false);
        }
        all
    }
}

/// A word at a place; the place is 0 where positions are not used.
pub type WordPlace = (u32, u32);

/// Words at places whose contexts must be looked at: with several labels, or with one that is not their word's base label.
#[derive(Clone)]
pub struct GroupTable {
    /// The groups, in order, and how many labeled tokens each has.
    pub keys: Counts<WordPlace>,
    /// The base label of each word: the one that it has at the most places; among equals the commonest.
    pub base: Vec<u32>,
    /// The groups of word w are `starts[w]..starts[w + 1]`.
    starts: Vec<u32>,
}

impl GroupTable {
    /// Finds them, from how often each ambiguous word has each label at each place.
    pub fn new(counts: &Counts<(u32, u32, u32)>, labels: &WordLabels) -> Self {
        let mut base = labels.commonest.clone();
        let mut keys = Vec::new();
        for word in counts.chunk_by(|a, b| a.0.0 == b.0.0) {
            let own = &mut base[word[0].0.0 as usize];
            *own = at_most_places(word, *own);
            for group in word.chunk_by(|a, b| a.0.1 == b.0.1) {
                let (word, place, label) = group[0].0;
                if group.len() > 1 || label != *own {
                    keys.push(((word, place), group.iter().map(|(_, count)| count).sum()));
                }
            }
        }
        Self::with(keys, base)
    }

    fn with(keys: Counts<WordPlace>, base: Vec<u32>) -> Self {
        let mut starts = vec![0; base.len() + 1];
        keys.iter().for_each(|((word, _), _)| starts[*word as usize + 1] += 1);
        (1..starts.len()).for_each(|w| starts[w] += starts[w - 1]);
        Self { keys, base, starts }
    }

    /// The groups in ranges of about so many tokens: more only where one group alone has more.
    pub fn portions(&self, most: u64) -> Vec<Range<u32>> {
        let (mut portions, mut first, mut tokens) = (Vec::new(), 0, 0);
        for (group, (_, count)) in self.keys.iter().enumerate() {
            if tokens > 0 && tokens + count > most {
                portions.push(first as u32..group as u32);
                (first, tokens) = (group, 0);
            }
            tokens += count;
        }
        portions.push(first as u32..self.keys.len() as u32);
        portions
    }

    /// The number of the group of a word at a place.
    pub fn get(&self, word: u32, place: u32) -> Option<u32> {
        let (start, end) = (self.starts[word as usize] as usize, self.starts[word as usize + 1] as usize);
        let found = self.keys[start..end].binary_search_by_key(&place, |((_, place), _)| *place);
        found.ok().map(|i| (start + i) as u32)
    }
}

impl Wire for GroupTable {
    fn put(&self, out: &mut Vec<u8>) {
        self.keys.put(out);
        self.base.put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let (keys, base) = Wire::get(from)?;
        Some(Self::with(keys, base))
    }
}

/// The label that a word has at the most places, from its counts by place and label; among equals the commonest one that is given,
/// then the first.
fn at_most_places(word: &[((u32, u32, u32), u64)], commonest: u32) -> u32 {
    let labels = counted(word.iter().map(|((_, _, label), _)| *label).collect());
    let rank = |&&(label, places): &&(u32, u64)| (places, label == commonest, std::cmp::Reverse(label));
    labels.iter().max_by_key(rank).map_or(commonest, |&(label, _)| label)
}
