//! Contexts with exactly equal ids: floats are rational numbers, so equality can be decided.
//!
//! Two contexts of a token have the same `g` if `sum_ij (p_i - q_j) e^(y (p_i + q_j)) = 0`, where `p` and `q` are their
//! projected tokens. Exponentials of different rational numbers are linearly independent over the rationals
//! (Lindemann-Weierstrass), so for rational `p`, `q` and `y != 0` the sum vanishes only formally, that is if the normalized
//! multisets of `p` and `q` are the same. For `y = 0` both ids are plain means.

use std::collections::{BTreeMap, HashMap};

use dashu_ratio::RBig;

use crate::arithmetic::{gcd, rational};
use crate::context_map::{ContextMap, Groups, View};

/// Why two different contexts of a token have the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The token is the zero vector: its query is 0 for all weights, it sees the mean of the tokens only, and the means agree.
    ZeroToken,
    /// The query `v_q . t` is 0, and the means of the projected tokens agree.
    EqualMeans,
    /// v sends the tokens of both contexts to the same numbers, equally often.
    EqualProjections,
    /// `W_O` is 0: nothing of the context gets into the id.
    NoOutput,
}

/// What the id of a token depends on: its projected tokens with their multiplicities, or their mean for a query of 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<(RBig, u64)>);

/// The key of a token with given query that sees given tokens, all projected: two tokens of a group have the same `g` exactly
/// if their keys are equal.
pub fn key(query: &RBig, visible: &[RBig]) -> Key {
    if *query == RBig::ZERO {
        return Key(vec![(mean(visible), 1)]);
    }
    let mut counts = BTreeMap::new();
    for p in visible {
        *counts.entry(p.clone()).or_insert(0) += 1;
    }
    let divisor = counts.values().fold(0, |a, &b| gcd(a, b));
    Key(counts.into_iter().map(|(p, count)| (p, count / divisor)).collect())
}

/// Why tokens `a` and `b`, whose keys are equal, have the same id.
pub fn reason(view: &View, map: &ContextMap, a: usize, b: usize) -> Reason {
    if exact_projection(view, &map.v_q, a) != RBig::ZERO {
        Reason::EqualProjections
    } else if is_zero(view, a) && mean_vector(view, a) == mean_vector(view, b) {
        Reason::ZeroToken
    } else {
        Reason::EqualMeans
    }
}

/// The groups with one class for all contexts that no weights can tell apart: those of a zero token with the same mean.
#[must_use]
pub fn tellable(view: &View, mut groups: Groups) -> Groups {
    for group in groups.0.iter_mut().filter(|group| is_zero(view, group[0].token)) {
        let mut class = HashMap::new();
        for member in group {
            member.class = *class.entry(mean_vector(view, member.token)).or_insert(member.class);
        }
    }
    groups.0.retain(|group| group.iter().any(|m| m.class != group[0].class));
    groups
}

/// Whether the vector of token `t` is exactly 0.
pub fn is_zero(view: &View, t: usize) -> bool {
    // A sum of floats is 0 only if it is exactly 0.
    view.vectors.vector(view.token_ids[t], view.place(t).1).iter().all(|&x| x == 0.0)
}

/// `v . x` for the vector x of token `t`.
pub(crate) fn exact_projection(view: &View, v: &[f64], t: usize) -> RBig {
    let dot = |x: &[f64]| {
        let terms = x.iter().zip(v).filter(|&(&x, &v)| x != 0.0 && v != 0.0);
        terms.map(|(&x, &v)| rational(x) * rational(v)).fold(RBig::ZERO, |sum, term| sum + term)
    };
    let word = dot(view.vectors.words.row(view.token_ids[t] as usize));
    view.vectors.positions.as_ref().map_or(word.clone(), |positions| word + dot(positions.row(view.place(t).1)))
}

fn mean(x: &[RBig]) -> RBig {
    x.iter().fold(RBig::ZERO, |sum, x| sum + x) / RBig::from(x.len())
}

/// The mean of the vectors that token `t` sees.
fn mean_vector(view: &View, t: usize) -> Vec<RBig> {
    let unit = |c: usize| (0..view.vectors.d()).map(|i| f64::from(u8::from(i == c))).collect::<Vec<f64>>();
    let coordinate = |c: usize| view.visible(t).map(|i| exact_projection(view, &unit(c), i)).collect::<Vec<_>>();
    (0..view.vectors.d()).map(|c| mean(&coordinate(c))).collect()
}
