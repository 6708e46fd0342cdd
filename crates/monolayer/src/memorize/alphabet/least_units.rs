//! A lower bound on hidden units: changes of label that no keys, queries and hinges can avoid.
//!
//! **Along a line of counts ids are in order.** Fix a query, and let the counts of the keys it sees run along a line, `c + r b` for
//! r = 0, 1, 2, ... Then `g = sum_j (c_j + r b_j) p_j e^(y p_j) / sum_j (c_j + r b_j) e^(y p_j)` is a quotient of two functions linear
//! in r, so it is monotone in r, whatever the keys p and the query y.
//!
//! **Two labels take turns only as often as units allow.** Let q units serve a list of tokens that share them. The difference of two
//! labels' scores is then a constant and q hinges of the id: a linear spline with q knots at most, which changes its sign at most q + 1
//! times. So if two labels take turns m times along a line, q is m - 1 at least, and 1 at least where there is anything to change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::architecture::Gates;
use super::context_table::ContextTable;

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
        let mut turns: BTreeMap<u32, usize> = BTreeMap::new();
        for (&query, contexts) in of_query.iter().filter(|_| self.lines_are_few()) {
            let most = turns.entry(self.group(query, gates)).or_default();
            *most = (*most).max(most_turns(contexts));
        }
        let least = |default: u32| {
            let of_group = |(group, list): (&u32, &BTreeSet<u32>)| {
                let needs_one = usize::from(list.iter().any(|&label| label != default));
                needs_one.max(turns.get(group).map_or(0, |&turns| turns.saturating_sub(1)))
            };
            labels.iter().map(of_group).sum()
        };
        let all: BTreeSet<u32> = labels.values().flatten().copied().collect();
        all.into_iter().map(least).min().unwrap_or(0)
    }
}

/// The most that two labels take turns along a line of counts: one key more at each step, or one key more and another less.
fn most_turns(contexts: &Labels) -> usize {
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
                most = most.max(turns_of_two(&along));
            }
        }
    }
    most
}

/// How often two labels of a list take turns, at most, the others left out.
fn turns_of_two(along: &[u32]) -> usize {
    let labels: BTreeSet<u32> = along.iter().copied().collect();
    let turns = |a: u32, b: u32| {
        let of_two: Vec<u32> = along.iter().copied().filter(|&label| label == a || label == b).collect();
        of_two.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    let pairs = labels.iter().flat_map(|&a| labels.range(..a).map(move |&b| (a, b)));
    pairs.map(|(a, b)| turns(a, b)).max().unwrap_or(0)
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
