//! The smallest distance of ids by logarithms: exponents may reach 1e22, and no bit of theirs is lost.
//!
//! Fix a token with the query `y`. A context is its scores `y p` in decreasing order (of `p` where `y > 0`, of `-p` where
//! `y < 0`), `z_0 > z_1 > ...`, with multiplicities `m_j` and `rho_j = m_j / m_0`. With `t_j = z_0 - z_j`, `w_j = e^-t_j`,
//! `Z = sum rho_j w_j` and `h = z_0 - boltz = sum rho_j t_j w_j / Z`, two contexts with the same `z_0` satisfy exactly
//!
//! `h - h' = (1 / Z) sum_j (rho_j - rho'_j) (t_j - h') w_j`,
//!
//! and terms that both share drop out. So the sum starts at the first score `k` where `rho` and `rho'` differ, and with
//! `e^-t_k` taken out of it every number left is moderate: its logarithm minus `t_k` is the logarithm of the distance.
//!
//! **Why neighbors suffice.** Lemmas S and M say that the first term decides the sign: the context with the larger `rho_k` has
//! the smaller value, and one with a larger `z_0` the larger value. So contexts in lexicographic order of `(z_j, rho_j)` are
//! in order of their values. Nothing rests on the lemmas, though: the sign of every step between neighbors is enclosed
//! here. If all steps go down, then the distance of any two contexts is the sum of the steps between them, and the smallest
//! distance is that of two neighbors. This holds for sets and multisets, for any lengths, and for `y` of either sign,
//! because `|g - g'| = |boltz - boltz'| / |y|`.

use std::cmp::Ordering;

use super::scores::TokenScores;
use crate::arithmetic::parallel;
use crate::arithmetic::sorting;
use crate::arithmetic::{Interval, Number};
use crate::context_map::{Groups, Member};

/// The closest ids of one token.
#[derive(Debug, Clone, PartialEq)]
pub struct GapInLogarithms {
    /// An enclosure of the binary logarithm of the smallest distance of `g`, and two tokens that have it; `None` where no token
    /// has two contexts.
    pub closest: Option<(Interval, (usize, usize))>,
    /// How many pairs of neighbors were compared.
    pub pairs: usize,
    /// Neighbors whose order enclosures did not settle.
    pub undecided: Vec<(usize, usize)>,
    /// The largest number of contexts that one token has.
    pub most_contexts: usize,
}

/// A score by its place in the decreasing order of all scores, and how often a context has it.
type Item = (u32, u32);

impl GapInLogarithms {
    /// Compares the contexts of each token.
    pub fn new(scores: &TokenScores, groups: &Groups) -> Self {
        let most_contexts = groups.0.iter().map(Vec::len).max().unwrap_or(1);
        let all = parallel::map_slice(&groups.0, |group| of_group(scores, group));
        let mut found = Self { closest: None, pairs: 0, undecided: Vec::new(), most_contexts };
        for (tokens, step) in all.into_iter().flatten() {
            found.pairs += 1;
            let Some(log2) = step else {
                found.undecided.push(tokens);
                continue;
            };
            // The smallest is between the smallest lower and the smallest upper bound.
            found.closest = Some(match found.closest {
                None => (log2, tokens),
                Some((best, of)) => (log2.min(best), if log2.lo() < best.lo() { tokens } else { of }),
            });
        }
        found
    }

    /// The bits that evaluating and subtracting takes: those that the smallest distance is small, and a word more.
    pub fn bits(&self) -> f64 {
        self.closest.map_or(64.0, |(log2, _)| (64.0 - log2.lo()).max(64.0).ceil())
    }
}

/// The steps between neighboring contexts of one token: two tokens, and the logarithm of the distance of their `g`.
fn of_group(scores: &TokenScores, group: &[Member]) -> Vec<((usize, usize), Option<Interval>)> {
    let query = Query::new(scores, group[0].token);
    let mut contexts: Vec<(Vec<Item>, usize)> = group.iter().map(|m| (query.context(m.token), m.token)).collect();
    sorting::sort_by(&mut contexts, |a, b| compare(&a.0, &b.0).0);
    contexts.windows(2).map(|pair| ((pair[0].1, pair[1].1), query.step(&pair[0].0, &pair[1].0))).collect()
}

/// The order of values, larger ones first, and the first place (in the decreasing order of scores) where two contexts differ.
fn compare(a: &[Item], b: &[Item]) -> (Ordering, Option<u32>) {
    if a[0].0 != b[0].0 {
        // The smaller place is the larger maximum.
        return (a[0].0.cmp(&b[0].0), Some(a[0].0.min(b[0].0)));
    }
    for j in 1..a.len().max(b.len()) {
        let (x, y) = (a.get(j), b.get(j));
        let place = |item: Option<&Item>| item.map_or(u32::MAX, |item| item.0);
        let first = place(x).min(place(y));
        // At the first difference, the larger rho has the smaller value.
        let order = surplus(a, b, count(x, first), count(y, first)).cmp(&0);
        if order != Ordering::Equal {
            return (order, Some(first));
        }
    }
    (Ordering::Equal, None)
}

/// How often an item is the score at a place.
fn count(item: Option<&Item>, place: u32) -> u32 {
    item.filter(|item| item.0 == place).map_or(0, |item| item.1)
}

/// `rho - rho'` for two multiplicities, times those of both maxima.
fn surplus(a: &[Item], b: &[Item], in_a: u32, in_b: u32) -> i64 {
    i64::from(in_a) * i64::from(b[0].1) - i64::from(in_b) * i64::from(a[0].1)
}

/// One token as a query.
struct Query<'a> {
    scores: &'a TokenScores<'a>,
    /// `|y|`.
    size: Interval,
    /// Whether `y > 0`.
    positive: bool,
}

impl<'a> Query<'a> {
    fn new(scores: &'a TokenScores<'a>, t: usize) -> Self {
        let y = scores.queries[t];
        Self { scores, size: y.abs(), positive: y.lo() > 0.0 }
    }

    /// The key at a place of the decreasing order of scores.
    fn key(&self, place: u32) -> Interval {
        let place = place as usize;
        self.scores.keys[if self.positive { self.scores.keys.len() - 1 - place } else { place }]
    }

    /// The context of a token, by decreasing score.
    fn context(&self, t: usize) -> Vec<Item> {
        let last = self.scores.keys.len() as u32 - 1;
        let place = |i: usize| if self.positive { last - self.scores.rank[i] } else { self.scores.rank[i] };
        let mut places: Vec<u32> = self.scores.view.visible(t).map(place).collect();
        places.sort_unstable();
        places.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
    }

    /// The distance of the scores at two places.
    fn offset(&self, from: u32, to: u32) -> Interval {
        (self.key(from) - self.key(to)).abs() * self.size
    }

    /// `Z` and `h` of a context.
    fn value(&self, context: &[Item]) -> (Interval, Interval) {
        let (top, multiplicity) = context[0];
        let (mut z, mut sum) = (Interval::point(1.0), Interval::point(0.0));
        for &(place, count) in &context[1..] {
            let t = self.offset(top, place);
            let weight = Interval::point(f64::from(count)) / Interval::point(f64::from(multiplicity)) * (-t).exp();
            z = z + weight;
            sum = sum + t * weight;
        }
        (z, sum / z)
    }

    /// The binary logarithm of `|g - g'|` for two contexts in their order; `None` unless the order is certain.
    fn step(&self, a: &[Item], b: &[Item]) -> Option<Interval> {
        let ((_, h_a), (z_b, h_b)) = (self.value(a), self.value(b));
        let first = compare(a, b).1?;
        let ln = if a[0].0 == b[0].0 {
            let (rest, t) = (self.rest(a, b, first, h_a), self.offset(a[0].0, first));
            if rest.lo() <= 0.0 {
                return None;
            }
            rest.ln() - z_b.ln() - t
        } else {
            let distance = self.offset(a[0].0, b[0].0) - h_a + h_b;
            if distance.lo() <= 0.0 {
                return None;
            }
            distance.ln()
        };
        Some((ln - self.size.ln()) / Interval::point(2.0).ln())
    }

    /// `sum_j (rho_j - rho'_j) (t_j - h') e^-(t_j - t_k)`, unprimed for b and primed for a, from the first difference k on.
    fn rest(&self, a: &[Item], b: &[Item], first: u32, h_a: Interval) -> Interval {
        let top = a[0].0;
        let scale = Interval::point(f64::from(a[0].1) * f64::from(b[0].1));
        let tail = |context: &[Item]| context.iter().position(|item| item.0 >= first).unwrap_or(context.len());
        let (mut i, mut j) = (tail(a), tail(b));
        let mut sum = Interval::point(0.0);
        while i < a.len() || j < b.len() {
            let place = |context: &[Item], i: usize| context.get(i).map_or(u32::MAX, |item| item.0);
            let next = place(a, i).min(place(b, j));
            let (in_a, in_b) = (count(a.get(i), next), count(b.get(j), next));
            let surplus = Interval::point(surplus(b, a, in_b, in_a) as f64) / scale;
            let weight = (-self.offset(first, next)).exp();
            sum = sum + surplus * (self.offset(top, next) - h_a) * weight;
            i += usize::from(in_a > 0);
            j += usize::from(in_b > 0);
        }
        sum
    }
}
