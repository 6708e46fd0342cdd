//! The projections of a dataset's tokens, enclosed and in order: what both ways of proof compute with.

use std::collections::HashMap;

use crate::arithmetic::Interval;
use crate::arithmetic::rounding::mul_down;
use crate::context_map::order::projections;
use crate::context_map::{ContextMap, View};
use crate::error::{Error, Result};

/// Keys and queries of all tokens, enclosed; different tokens have certainly different keys.
#[derive(Debug)]
pub struct TokenScores<'a> {
    /// The sequences.
    pub view: &'a View<'a>,
    /// The weights.
    pub map: &'a ContextMap,
    /// The rank of each token of the dataset: the place of its key among all different keys, in increasing order.
    pub rank: Vec<u32>,
    /// The keys `v . x` in increasing order; no two overlap.
    pub keys: Vec<Interval>,
    /// The query `v_q . t` of each token of the dataset; 0 is in none of them.
    pub queries: Vec<Interval>,
}

impl<'a> TokenScores<'a> {
    /// Encloses the projections of all tokens.
    pub fn new(view: &'a View<'a>, map: &'a ContextMap) -> Result<Self> {
        let (keys, queries) = (projections(view, &map.v), projections(view, &map.v_q));
        let places = view.vectors.positions.is_some();
        let mut first: HashMap<(u32, usize), usize> = HashMap::new();
        let name = |t: usize| (view.token_ids[t], if places { view.place(t).1 } else { 0 });
        for t in 0..view.token_ids.len() {
            first.entry(name(t)).or_insert(t);
        }
        let mut order: Vec<usize> = first.values().copied().collect();
        order.sort_unstable_by(|&a, &b| keys[a].center().total_cmp(&keys[b].center()).then(a.cmp(&b)));
        let close = order.windows(2).find(|pair| keys[pair[0]].hi() >= keys[pair[1]].lo());
        let mute = order.iter().find(|&&t| queries[t].contains(0.0));
        if let Some(&t) = close.map(|pair| &pair[1]).or(mute) {
            let (sequence, place) = view.place(t);
            return Err(Error::too_close(
                format!("token {} of sequence {} cannot be projected apart from others", place + 1, sequence + 1),
                "there must be no zero token, and tokens must not be nearly equal",
            ));
        }
        let ranks: HashMap<(u32, usize), u32> = order.iter().map(|&t| name(t)).zip(0..).collect();
        let rank = (0..view.token_ids.len()).map(|t| ranks[&name(t)]).collect();
        let keys = order.iter().map(|&t| keys[t]).collect();
        Ok(Self { view, map, rank, keys, queries })
    }

    /// A lower bound of the distance of two different scores, `|y| |p - p'|`, over all queries; infinite for a single token.
    pub fn apart(&self) -> f64 {
        let keys = self.keys.windows(2).map(|pair| (pair[1] - pair[0]).lo()).fold(f64::INFINITY, f64::min);
        let queries = self.queries.iter().map(|y| y.mignitude()).fold(f64::INFINITY, f64::min);
        if keys.is_finite() { mul_down(keys, queries) } else { f64::INFINITY }
    }
}

/// Whether some token sees another one twice: contexts are multisets then, not sets.
pub fn has_duplicates(view: &View) -> bool {
    let mut seen = std::collections::HashSet::new();
    view.vectors.positions.is_none()
        && view.offsets.windows(2).any(|window| {
            seen.clear();
            view.token_ids[window[0]..window[1]].iter().any(|id| !seen.insert(id))
        })
}
