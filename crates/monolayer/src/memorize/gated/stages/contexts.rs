//! Contexts (Definition 2) of ambiguous words: their labels, and the tokens that contradict them.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::shard::Shard;
use super::wire::fields;
use super::word_groups::GroupTable;
use crate::data::context::ContextKeys;
use crate::paper::mask::Mask;

/// What tells contexts apart.
#[derive(Clone)]
pub struct ContextRule<'a> {
    /// The start token, as [`ContextKeys`] has it.
    pub start: Option<u32>,
    /// Which tokens a query sees.
    pub mask: Cow<'a, Mask>,
    /// Whether places count.
    pub positions: bool,
}

fields!(borrowing ContextRule { start, mask, positions });

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

fields!(SeenToken { group, label, key, token, visible });

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

fields!(GroupContext { group, label, key, token });

/// The contexts of groups, and the tokens with another label than their context.
#[derive(Debug, Default)]
pub struct GroupContexts {
    /// Contexts, those of one group together.
    pub contexts: Vec<GroupContext>,
    /// Tokens that no weights get right.
    pub impossible: Vec<usize>,
}

fields!(GroupContexts { contexts, impossible });

impl GroupContexts {
    /// Contexts, in order of groups and keys, from all of their labeled tokens.
    pub fn of(mut seen: Vec<SeenToken>) -> Self {
        let mut all = Self::default();
        // A token has one context, so that the order is the same however tokens came.
        seen.par_sort_unstable_by_key(|seen| (seen.group, seen.key, seen.token));
        seen.chunk_by(|a, b| (a.group, a.key) == (b.group, b.key)).for_each(|context| all.add(context));
        all
    }

    /// Without the groups whose contexts turn out to have their word's base label alone: nothing needs to be told apart there.
    #[must_use]
    pub fn without_base(mut self, groups: &GroupTable) -> Self {
        let mut kept = 0;
        let mut first = 0;
        while first < self.contexts.len() {
            let group = self.contexts[first].group;
            let base = groups.base[groups.keys[group as usize].0.0 as usize];
            let count = self.contexts[first..].iter().take_while(|context| context.group == group).count();
            if self.contexts[first..first + count].iter().any(|context| context.label != base) {
                self.contexts.copy_within(first..first + count, kept);
                kept += count;
            }
            first += count;
        }
        self.contexts.truncate(kept);
        self
    }

    /// Those of several lists of other contexts each.
    pub fn joined(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.contexts.extend(part.contexts);
            all.impossible.extend(part.impossible);
        }
        // Where the lists are of groups in order, nothing moves.
        all.contexts.par_sort_by_key(|context| (context.group, context.key));
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

/// The labeled tokens of a shard that are of some groups.
pub fn seen_of_shard(shard: &Shard, groups: &GroupTable, rule: &ContextRule, wanted: &Range<u32>) -> Vec<SeenToken> {
    let mut keys = ContextKeys::new(rule.start, &rule.mask, rule.positions);
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
}
