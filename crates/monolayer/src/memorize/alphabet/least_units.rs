//! A lower bound on hidden units: changes of label that no keys, queries and hinges can avoid.
//!
//! **Along a line of counts ids are in order.** Fix a query, and let the counts of the keys it sees run along a line, `c + r b` for
//! r = 0, 1, 2, ... Then `g = sum_j (c_j + r b_j) p_j e^(y p_j) / sum_j (c_j + r b_j) e^(y p_j)` is a quotient of two functions linear
//! in r, so it is monotone in r, whatever the keys p and the query y.
//!
//! **In a plane of counts they have finitely many orders**, whatever the keys and the query: see [`super::plane_orders`].
//!
//! **Units are knots.** Let q units serve a list of tokens that share them. The score of each label is then a constant and q hinges of
//! the id: linear between q knots at most. So q is at least the number of knots that [`crate::memorize::gated::knots`] says some
//! contexts of the list need, and 1 at least where there is anything to change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::architecture::Gates;
use super::context_table::ContextTable;
use super::plane_orders::{PlanePoint, least_knots};
use crate::memorize::gated::knots::fewest_knots;

/// Orders of planes that are looked at in all, and the most contexts of a plane.
const MOST_ORDERS: usize = 1_000_000;
const MOST_POINTS: usize = 48;

/// The label of each context of a query, by the counts of what it sees.
type Labels = HashMap<Vec<(u32, u32)>, u32>;

impl ContextTable {
    /// The fewest hidden units, each serving the tokens that `gates` put together, with any keys, queries and hinges.
    pub fn least_units(&self, gates: Gates) -> usize {
        let mut labels: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut of_query: BTreeMap<u32, Labels> = BTreeMap::new();
        for context in 0..self.contexts() {
            let (query, label, seen) = self.of_context(context);
            labels.entry(self.group(query, gates)).or_default().insert(label);
            let counts = seen.iter().map(|&(key, count)| (key, count as u32)).collect();
            of_query.entry(query).or_default().insert(counts, label);
        }
        let mut knots: BTreeMap<u32, usize> = BTreeMap::new();
        let mut budget = MOST_ORDERS;
        for (&query, contexts) in of_query.iter().filter(|_| self.lines_are_few()) {
            let most = knots.entry(self.group(query, gates)).or_default();
            *most = (*most).max(along_lines(contexts));
            *most = (*most).max(in_planes(contexts, *most, &mut budget));
        }
        let least = |default: u32| {
            let of_group = |(group, list): (&u32, &BTreeSet<u32>)| {
                let needs_one = usize::from(list.iter().any(|&label| label != default));
                needs_one.max(knots.get(group).copied().unwrap_or(0))
            };
            labels.iter().map(of_group).sum()
        };
        let all: BTreeSet<u32> = labels.values().flatten().copied().collect();
        all.into_iter().map(least).min().unwrap_or(0)
    }
}

/// The most knots that a line of counts needs: one key more at each step, or one key more and another less.
fn along_lines(contexts: &Labels) -> usize {
    let keys: BTreeSet<u32> = contexts.keys().flatten().map(|&(key, _)| key).collect();
    let mut most = 0;
    for (counts, &label) in contexts {
        for &more in &keys {
            for less in std::iter::once(None).chain(keys.iter().copied().filter(|&key| key != more).map(Some)) {
                // From where a line starts only.
                if moved(counts, less, Some(more)).is_some_and(|before| contexts.contains_key(&before)) {
                    continue;
                }
                let (mut along, mut at) = (vec![label], counts.clone());
                while let Some(next) = moved(&at, Some(more), less) {
                    let Some(&label) = contexts.get(&next) else { break };
                    along.push(label);
                    at = next;
                }
                most = most.max(knots_of(along));
            }
        }
    }
    most
}

/// The knots that labels in a row need.
fn knots_of(mut row: Vec<u32>) -> usize {
    row.dedup();
    let labels = row.iter().max().map_or(0, |&label| label as usize + 1);
    fewest_knots(&row, labels)
}

/// The most knots that the contexts need which see three keys and no others, where that is more than `most`; else `most`.
fn in_planes(contexts: &Labels, mut most: usize, budget: &mut usize) -> usize {
    let keys: BTreeSet<u32> = contexts.keys().flatten().map(|&(key, _)| key).collect();
    let keys: Vec<u32> = keys.into_iter().collect();
    let labels = contexts.values().max().map_or(0, |&label| label as usize + 1);
    for (i, &a) in keys.iter().enumerate() {
        for (j, &b) in keys[..i].iter().enumerate() {
            for &c in &keys[..j] {
                let within =
                    contexts.iter().filter_map(|(counts, &label)| Some((coordinates(counts, [a, b, c])?, label)));
                let mut points: Vec<PlanePoint> = within.collect();
                points.sort_unstable();
                if (4..=MOST_POINTS).contains(&points.len()) {
                    most = least_knots(&points, labels, most, budget).unwrap_or(most);
                }
            }
        }
    }
    most
}

/// The counts of three keys; none where others are seen.
fn coordinates(counts: &[(u32, u32)], keys: [u32; 3]) -> Option<[i64; 3]> {
    let of = |key: u32| counts.iter().find(|&&(k, _)| k == key).map_or(0, |&(_, count)| i64::from(count));
    counts.iter().all(|(key, _)| keys.contains(key)).then(|| keys.map(of))
}

/// Counts with one of a key more and one of another less; none where there is none to take away.
fn moved(counts: &[(u32, u32)], more: Option<u32>, less: Option<u32>) -> Option<Vec<(u32, u32)>> {
    let mut counts = counts.to_vec();
    if let Some(less) = less {
        let at = counts.binary_search_by_key(&less, |&(key, _)| key).ok()?;
        counts[at].1 -= 1;
        if counts[at].1 == 0 {
            counts.remove(at);
        }
    }
    if let Some(more) = more {
        match counts.binary_search_by_key(&more, |&(key, _)| key) {
            Ok(at) => counts[at].1 += 1,
            Err(at) => counts.insert(at, (more, 1)),
        }
    }
    Some(counts)
}
