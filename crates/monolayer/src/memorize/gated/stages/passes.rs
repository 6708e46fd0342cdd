//! A pass: one function of each shard, and how its results are put together. Passes run on the threads of this process, or
//! as tasks on other machines, and their results are the same.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::contexts::{ContextRule, GroupContexts, SeenToken, seen_of_shard};
use super::counts::{Counts, counted, summed};
use super::shard::Shard;
use super::wire::{Wire, fields};
use super::word_groups::GroupTable;
use crate::arithmetic::parallel;
use crate::error::Result;

/// What is computed of each shard by itself.
pub trait ShardPass: Wire + Sync {
    /// Its name, by which another process knows it.
    const NAME: &'static str;
    /// Whether results become smaller where they are put together, so that this is best done before they travel far.
    const SHRINKS: bool = false;
    /// What comes of one shard, or of several in a row.
    type Part: Wire + Send;

    /// The result of a shard. `tokens` are those of the tokens asked for that are in the shard, in order, by their number in the whole.
    fn of_shard(&self, shard: &Shard, tokens: &[usize]) -> Self::Part;

    /// The result of shards in a row from theirs, in order.
    fn merged(parts: Vec<Self::Part>) -> Self::Part;
}

/// Who has the shards, and runs passes over them.
pub trait Runner: Sync {
    /// The result of all shards; for some tokens, in order, where a pass asks for tokens.
    fn pass<P: ShardPass>(&self, pass: &P, tokens: &[usize]) -> Result<P::Part>;

    /// The contexts of all groups. Tokens come by shard, and are needed by group.
    fn contexts(&self, groups: &GroupTable, rule: &ContextRule) -> Result<GroupContexts>;
}

/// Shards in the memory of this process.
pub struct InMemory<'a> {
    /// The shards.
    pub shards: Vec<Shard<'a>>,
    /// Bytes for what is known of single tokens.
    pub memory: usize,
}

impl Runner for InMemory<'_> {
    fn pass<P: ShardPass>(&self, pass: &P, tokens: &[usize]) -> Result<P::Part> {
        let of_shard = |shard: &Shard| pass.of_shard(shard, within(tokens, &shard.tokens()));
        Ok(P::merged(parallel::map_slice(&self.shards, of_shard)))
    }

    fn contexts(&self, groups: &GroupTable, rule: &ContextRule) -> Result<GroupContexts> {
        let of_portion = |range: &Range<u32>| {
            let of_shard = |shard: &Shard| seen_of_shard(shard, groups, rule, range);
            GroupContexts::of(parallel::map_slice(&self.shards, of_shard).concat()).without_base(groups)
        };
        let most = self.memory / size_of::<SeenToken>();
        Ok(GroupContexts::joined(groups.portions(most as u64).iter().map(of_portion).collect()))
    }
}

/// The numbers of a sorted list that are in a range.
pub fn within<'a>(sorted: &'a [usize], range: &Range<usize>) -> &'a [usize] {
    &sorted[sorted.partition_point(|&t| t < range.start)..sorted.partition_point(|&t| t < range.end)]
}

/// How often each word has each label.
pub struct LabelPass {}

fields!(LabelPass {});

impl ShardPass for LabelPass {
    const NAME: &'static str = "labels";
    const SHRINKS: bool = true;
    type Part = Counts<(u32, u32)>;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Self::Part {
        let pairs = shard.word_ids.iter().zip(shard.labels).filter_map(|(&w, label)| label.map(|l| (w, l)));
        counted(pairs.collect())
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        summed(parts)
    }
}

/// How often each ambiguous word has each label at each place.
pub struct PlacePass<'a> {
    /// The words with several labels.
    #[expect(clippy::owned_cow, reason = "what becomes bytes is a value of known size")]
    pub ambiguous: Cow<'a, Vec<bool>>,
    /// Whether places count.
    pub positions: bool,
}

fields!(borrowing PlacePass { ambiguous, positions });

impl ShardPass for PlacePass<'_> {
    const NAME: &'static str = "places";
    const SHRINKS: bool = true;
    type Part = Counts<(u32, u32, u32)>;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Self::Part {
        let mut keys = Vec::new();
        for (start, words) in shard.sequences() {
            for (place, &word) in words.iter().enumerate().filter(|&(_, &word)| self.ambiguous[word as usize]) {
                let place_number = if self.positions { place as u32 } else { 0 };
                keys.extend(shard.labels[start + place].map(|label| (word, place_number, label)));
            }
        }
        counted(keys)
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        summed(parts)
    }
}

/// The words and labels of the sequences that start with the tokens asked for.
pub struct SequencePass {}

fields!(SequencePass {});

impl ShardPass for SequencePass {
    const NAME: &'static str = "sequences";
    type Part = (Vec<u32>, Vec<Option<u32>>);

    fn of_shard(&self, shard: &Shard, tokens: &[usize]) -> Self::Part {
        let (mut words, mut labels) = (Vec::new(), Vec::new());
        for &token in tokens {
            let start = token - shard.first;
            let end = shard.offsets[shard.offsets.partition_point(|&offset| offset <= start)];
            words.extend_from_slice(&shard.word_ids[start..end]);
            labels.extend_from_slice(&shard.labels[start..end]);
        }
        (words, labels)
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        let (words, labels): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        (words.concat(), labels.concat())
    }
}

/// The tokens for which any label will do.
pub struct FreePass {}

fields!(FreePass {});

impl ShardPass for FreePass {
    const NAME: &'static str = "free";
    type Part = Vec<usize>;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Self::Part {
        (0..shard.labels.len()).filter(|&t| shard.labels[t].is_none()).map(|t| shard.first + t).collect()
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        parts.concat()
    }
}

/// The labeled tokens of some contexts.
pub struct ContextTokenPass<'a> {
    /// The groups.
    pub groups: Cow<'a, GroupTable>,
    /// What tells contexts apart.
    pub rule: ContextRule<'a>,
    /// The contexts: group and key. Those of one group are together, and groups in order.
    pub contexts: Vec<(u32, [u64; 2])>,
}

fields!(borrowing ContextTokenPass { groups, rule, contexts });

impl ShardPass for ContextTokenPass<'_> {
    const NAME: &'static str = "context-tokens";
    type Part = Vec<usize>;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Self::Part {
        let (Some(first), Some(last)) = (self.contexts.first(), self.contexts.last()) else { return Vec::new() };
        let keys: HashSet<&(u32, [u64; 2])> = self.contexts.iter().collect();
        let seen = seen_of_shard(shard, &self.groups, &self.rule, &(first.0..last.0 + 1));
        seen.iter().filter(|seen| keys.contains(&(seen.group, seen.key))).map(|seen| seen.token).collect()
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        parts.concat()
    }
}

/// The labeled tokens of some words that are in no group with contexts.
pub struct WordTokenPass<'a> {
    /// The groups.
    pub groups: Cow<'a, GroupTable>,
    /// Those with contexts, in order.
    pub live: Vec<u32>,
    /// Whether a word is asked for.
    pub words: Vec<bool>,
    /// Whether places count.
    pub positions: bool,
}

fields!(borrowing WordTokenPass { groups, live, words, positions });

impl ShardPass for WordTokenPass<'_> {
    const NAME: &'static str = "word-tokens";
    type Part = Vec<usize>;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Self::Part {
        let mut tokens = Vec::new();
        for (start, words) in shard.sequences() {
            for (place, &word) in words.iter().enumerate().filter(|&(_, &word)| self.words[word as usize]) {
                let group = self.groups.get(word, if self.positions { place as u32 } else { 0 });
                let live = group.is_some_and(|group| self.live.binary_search(&group).is_ok());
                if shard.labels[start + place].is_some() && !live {
                    tokens.push(shard.first + start + place);
                }
            }
        }
        tokens
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        parts.concat()
    }
}
