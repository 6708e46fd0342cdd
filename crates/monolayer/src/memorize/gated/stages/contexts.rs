//! Contexts (Definition 2) of ambiguous words: their labels, and the tokens that contradict them.

use std::ops::Range;

use rayon::prelude::*;

use super::shard::Shard;
use super::word_groups::GroupTable;
use crate::arithmetic::parallel;
use crate::data::context::ContextKeys;
use crate::paper::mask::Mask;

/// What tells contexts apart.
pub struct ContextRule<'a> {
    /// The start token, as [`ContextKeys`] has it.
    pub start: Option<u32>,
    /// Which tokens a query sees.
    pub mask: &'a Mask,
    /// Whether places count.
    pub positions: bool,
}

/// A labeled token of a group, and its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenToken {
    /// The number of the group.
    pub group: u32,
    /// Its label.
    pub label: u32,
    /// What it sees.
    pub key: [u64; 2],
    /// The token.
    pub token: usize,
    /// How many tokens it sees.
    pub visible: u32,
}

/// A context of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupContext {
    /// The number of the group.
    pub group: u32,
    /// Its label.
    pub label: u32,
    /// What its tokens see.
    pub key: [u64; 2],
    /// One of its tokens: of those that see the most, because that rounds most, the first.
    pub token: usize,
}

/// The contexts of groups, and the tokens with another label than their context.
#[derive(Debug, Default)]
pub struct GroupContexts {
    /// Contexts, those of one group together.
    pub contexts: Vec<GroupContext>,
    /// Tokens that no weights get right.
    pub impossible: Vec<usize>,
}

impl GroupContexts {
    /// The contexts of all groups, as many groups at a time as there is memory for. Groups whose contexts turn out to have
    /// their word's base label alone are left out: nothing needs to be told apart there.
    pub fn new(shards: &[Shard], groups: &GroupTable, rule: &ContextRule, memory: usize) -> Self {
        let mut all = Self::default();
        for range in portions(groups, memory) {
            let mut seen = seen_tokens(shards, groups, rule, &range);
            // A token has one context, so that the order is the same however tokens came.
            seen.par_sort_unstable_by_key(|seen| (seen.group, seen.key, seen.token));
            for group in seen.chunk_by(|a, b| a.group == b.group) {
                let base = groups.base[groups.keys[group[0].group as usize].0.0 as usize];
                let first = all.contexts.len();
                for context in group.chunk_by(|a, b| a.key == b.key) {
                    all.add(context);
                }
                if all.contexts[first..].iter().all(|context| context.label == base) {
                    all.contexts.truncate(first);
                }
            }
        }
        all.impossible.sort_unstable();
        all
    }

    /// Adds a context by its tokens, in order. It has their commonest label; among equals the one that comes first.
    fn add(&mut self, tokens: &[SeenToken]) {
        let SeenToken { group, key, .. } = tokens[0];
        let mut counts: Vec<(u32, usize)> = Vec::new();
        for seen in tokens {
            match counts.iter_mut().find(|(label, _)| *label == seen.label) {
                Some((_, count)) => *count += 1,
                None => counts.push((seen.label, 1)),
            }
        }
        let most = counts.iter().map(|&(_, count)| count).max().expect("a token");
        let label = counts.iter().find(|&&(_, count)| count == most).expect("the most").0;
        self.impossible.extend(tokens.iter().filter(|seen| seen.label != label).map(|seen| seen.token));
        let longest = tokens.iter().max_by_key(|seen| (seen.visible, std::cmp::Reverse(seen.token))).expect("a token");
        self.contexts.push(GroupContext { group, label, key, token: longest.token });
    }
}

/// Groups that are looked at together.
fn portions(groups: &GroupTable, memory: usize) -> Vec<Range<u32>> {
    let most = (memory / size_of::<SeenToken>()).max(1) as u64;
    let (mut portions, mut first, mut tokens) = (Vec::new(), 0, 0);
    for (group, (_, count)) in groups.keys.iter().enumerate() {
        if tokens > 0 && tokens + count > most {
            portions.push(first as u32..group as u32);
            (first, tokens) = (group, 0);
        }
        tokens += count;
    }
    portions.push(first as u32..groups.keys.len() as u32);
    portions
}

/// The labeled tokens of some groups.
pub fn seen_tokens(shards: &[Shard], groups: &GroupTable, rule: &ContextRule, wanted: &Range<u32>) -> Vec<SeenToken> {
    let of_shard = |shard: &Shard| {
        let mut keys = ContextKeys::new(rule.start, rule.mask, rule.positions);
        let (mut all, mut members) = (Vec::new(), Vec::new());
        for (start, words) in shard.sequences() {
            members.clear();
            members.extend(words.iter().enumerate().map(|(place, &word)| {
                let place_number = if rule.positions { place as u32 } else { 0 };
                let group = groups.get(word, place_number).filter(|group| wanted.contains(group));
                group.zip(shard.labels[start + place])
            }));
            if members.iter().all(Option::is_none) {
                continue;
            }
            keys.each(
                words,
                |place| members[place].is_some(),
                |place, key| {
                    let (group, label) = members[place].expect("a token of a group");
                    let visible = rule.mask.seen(place, words.len()).count() as u32;
                    all.push(SeenToken { group, label, key, token: shard.first + start + place, visible });
                },
            );
        }
        all
    };
    parallel::map_slice(shards, of_shard).concat()
}
