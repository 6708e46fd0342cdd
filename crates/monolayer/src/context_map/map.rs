//! Theorem 2: one rank-1 softmax attention layer gives every (token, context) an id of its own.
//!
//! With head size 1, write `p_i = v . x_i` for the projected tokens and `y = kappa p` for the query's; the layer adds
//! `w g(y)` to the token, `g(y) = sum_i p_i e^(y p_i) / sum_i e^(y p_i)`. Everything the layer knows about the other tokens
//! is the number g, so contexts of one token are told apart exactly if their g differ.

use std::collections::HashMap;

use crate::arithmetic::kernels;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::data::Dataset;
use crate::data::context::{Contexts, START};
use crate::data::token_vectors::TokenVectors;
use crate::model::forward;
use crate::paper::attention::{Attention, AttentionHead, AttentionKind};
use crate::paper::mask::{Mask, Seen};

/// The sequences of a dataset as attention sees them, behind a start token where the vectors have one.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// A number per token, equal for equal words or vectors.
    pub token_ids: Vec<u32>,
    /// Where each sequence starts.
    pub offsets: &'a [usize],
    /// Which tokens a query sees.
    pub mask: Mask,
    /// The vectors of tokens.
    pub vectors: &'a TokenVectors,
    /// The context of each token.
    pub contexts: Contexts,
}

impl<'a> View<'a> {
    /// The sequences of a dataset with given vectors and mask, which must have room for them
    /// ([`check_mask`](crate::data::context::check_mask)).
    pub fn new(data: &'a Dataset, vectors: &'a TokenVectors, mask: Mask) -> Self {
        let token_ids = data.token_ids();
        let start = vectors.start.as_ref().map(|_| START);
        let contexts = Contexts::with_start(start, &token_ids, &data.offsets, &mask, vectors.positions.is_some());
        Self { token_ids, offsets: &data.offsets, mask, vectors, contexts }
    }

    /// The inner products of all tokens with `v`.
    pub fn project(&self, v: &[f64]) -> Vec<f64> {
        self.vectors.project(v, &self.token_ids, self.offsets)
    }

    /// The inner product of the start token with `v`, where there is one.
    pub fn project_start(&self, v: &[f64]) -> Option<f64> {
        self.vectors.project_start(v)
    }

    /// The sequence of token `t`, and its place there, from 0.
    pub fn place(&self, t: usize) -> (usize, usize) {
        let sequence = self.offsets.partition_point(|&start| start <= t) - 1;
        (sequence, t - self.offsets[sequence])
    }

    /// The places that token `t` sees in its sequence, and where the sequence starts. A start token is apart.
    pub fn seen(&self, t: usize) -> (Seen<'_>, usize) {
        let (sequence, place) = self.place(t);
        let start = self.offsets[sequence];
        (self.mask.seen(place, self.offsets[sequence + 1] - start), start)
    }

    /// The tokens that token `t` sees, but for a start token.
    pub fn visible(&self, t: usize) -> impl Iterator<Item = usize> + Clone + use<'_, 'a> {
        let (seen, start) = self.seen(t);
        seen.places().map(move |place| start + place)
    }

    /// What stands at the tokens that token `t` sees: a part of `all` itself, or collected in `room`.
    pub fn pick<'b, T: Clone>(&self, t: usize, all: &'b [T], room: &'b mut Vec<T>) -> &'b [T] {
        let (seen, start) = self.seen(t);
        seen.pick(&all[start..], room)
    }
}

/// What chooses a contextual map: the direction of keys and values, and the scale of queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// Keys and values: `W_K = W_V = v^T`.
    pub v: Vec<f64>,
    /// Queries: `W_Q = kappa v^T`.
    pub kappa: f64,
}

impl Projection {
    /// The context id `g` of every token, in plain floating point.
    pub fn context_ids(&self, view: &View) -> Vec<f64> {
        let p = view.project(&self.v);
        context_ids(view, &p, view.project_start(&self.v), |t| self.kappa * p[t])
    }

    /// Appends `g` for the tokens at some places of one sequence of projected tokens, behind a projected start token where there
    /// is one.
    pub(crate) fn context_ids_at(
        &self,
        mask: &Mask,
        start: Option<f64>,
        p: &[f64],
        places: impl Iterator<Item = usize>,
        scores: &mut Vec<f64>,
        out: &mut Vec<f64>,
    ) {
        let queries = places.map(|place| (place, self.kappa * p[place]));
        context_ids_of(mask, start, p, queries, scores, out);
    }
}

/// The context id of every token, from projected tokens, the projected start token and the query of each token.
fn context_ids(view: &View, p: &[f64], start: Option<f64>, query: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
    let blocks = forward::blocks(view.offsets);
    let of_block = |sequences: &std::ops::Range<usize>| {
        let mut scores = Vec::new();
        let mut out = Vec::new();
        for window in view.offsets[sequences.start..=sequences.end].windows(2) {
            let queries = (window[0]..window[1]).map(|t| (t - window[0], query(t)));
            context_ids_of(&view.mask, start, &p[window[0]..window[1]], queries, &mut scores, &mut out);
        }
        out
    };
    parallel::map_slice(&blocks, of_block).concat()
}

/// Appends `g` for some queries, each at a place of one sequence of projected tokens.
fn context_ids_of(
    mask: &Mask,
    start: Option<f64>,
    p: &[f64],
    queries: impl Iterator<Item = (usize, f64)>,
    scores: &mut Vec<f64>,
    out: &mut Vec<f64>,
) {
    scores.resize(p.len() + 1, 0.0);
    let mut room = Vec::new();
    for (place, y) in queries {
        let visible = seen_projections(mask, start, p, place, &mut room);
        let scores = &mut scores[..visible.len()];
        out.push(kernels::vectorized(
            #[inline(always)]
            || {
                for (score, p) in scores.iter_mut().zip(visible) {
                    *score = y * p;
                }
                let total = kernels::soften(scores);
                kernels::dot(scores, visible) / total
            },
        ));
    }
}

/// The projections that the token at a place of a sequence sees, the start token's first where there is one.
pub(crate) fn seen_projections<'a>(
    mask: &Mask,
    start: Option<f64>,
    p: &'a [f64],
    place: usize,
    room: &'a mut Vec<f64>,
) -> &'a [f64] {
    let seen = mask.seen(place, p.len());
    let Some(start) = start else { return seen.pick(p, room) };
    room.clear();
    room.push(start);
    match seen {
        Seen::Range(range) => room.extend_from_slice(&p[range]),
        other => room.extend(other.places().map(|place| p[place])),
    }
    room
}

/// The weights of Theorem 2 with head size 1: a token `t` becomes `t + w g(v_q . t)`, `g` over the `v . x_i` of the tokens
/// that it sees.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextMap {
    /// Keys and values: `W_K = W_V = v^T`.
    pub v: Vec<f64>,
    /// Queries: `W_Q = v_q^T`.
    pub v_q: Vec<f64>,
    /// Output: `W_O = w`.
    pub w: Vec<f64>,
}

impl ContextMap {
    /// The weights of a projection, with `w` for `W_O`.
    pub fn new(projection: &Projection, w: Vec<f64>) -> Self {
        let v_q = projection.v.iter().map(|v| projection.kappa * v).collect();
        Self { v: projection.v.clone(), v_q, w }
    }

    /// The context id `g` of every token, in plain floating point.
    pub fn context_ids(&self, view: &View) -> Vec<f64> {
        let queries = view.project(&self.v_q);
        context_ids(view, &view.project(&self.v), view.project_start(&self.v), |t| queries[t])
    }

    /// The same map with a head of any size: `W_K = W_V = u v^T`, `W_Q = u' v_q^T`, `W_O = w u'^T` with `u . u' = 1`. The
    /// entries of `u` are 1 and those of `u'` powers of two, so every product is exact and every rank 1.
    pub fn attention(&self, mask: Mask, head_size: usize) -> Attention<f64> {
        let shares = shares(head_size);
        let outer = |u: &[f64], v: &[f64]| Matrix::from_fn(u.len(), v.len(), |i, j| u[i] * v[j]);
        let ones = vec![1.0; head_size];
        let head = AttentionHead {
            w_q: outer(&shares, &self.v_q),
            w_k: outer(&ones, &self.v),
            w_v: outer(&ones, &self.v),
            w_o: outer(&self.w, &shares),
        };
        Attention { kind: AttentionKind::Softmax, mask, heads: vec![head] }
    }
}

/// `s` powers of two with the sum 1, no two more than a factor of 2 apart.
fn shares(s: usize) -> Vec<f64> {
    let whole = 1 << s.ilog2();
    // `whole` equal shares, of which s - whole are cut in half.
    let halves = 2 * (s - whole);
    (0..s).map(|i| if i < halves { 0.5 } else { 1.0 } / whole as f64).collect()
}

/// One token for each context that must be told apart from others, and what sets it apart from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// A token of the dataset with this context.
    pub token: usize,
    /// Its context's label, or its context: members with the same class need not be told apart.
    pub class: u32,
}

/// The contexts of each token (word, or word at a place), grouped. Groups in which all members have one class are left
/// out: nothing needs to be told apart there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups(pub Vec<Vec<Member>>);

impl Groups {
    /// Any two contexts of a token must be told apart: Definition 2 in full.
    pub fn by_context(view: &View) -> Self {
        Self::new(view, Some)
    }

    /// Contexts of a token with different labels must be told apart; `label` is each context's, none where any will do.
    pub fn by_label(view: &View, label: &[Option<u32>]) -> Self {
        Self::new(view, |context| label[context as usize])
    }

    fn new(view: &View, class: impl Fn(u32) -> Option<u32>) -> Self {
        let mut seen = vec![false; view.contexts.count];
        let mut groups: Vec<Vec<Member>> = Vec::new();
        let mut number: HashMap<(u32, usize), usize> = HashMap::new();
        let mut t = 0;
        for window in view.offsets.windows(2) {
            for place in 0..window[1] - window[0] {
                let context = view.contexts.of_token[t];
                if !std::mem::replace(&mut seen[context as usize], true)
                    && let Some(class) = class(context)
                {
                    let key = (view.token_ids[t], if view.vectors.positions.is_some() { place } else { 0 });
                    let group = *number.entry(key).or_insert_with(|| {
                        groups.push(Vec::new());
                        groups.len() - 1
                    });
                    groups[group].push(Member { token: t, class });
                }
                t += 1;
            }
        }
        groups.retain(|group| group.iter().any(|m| m.class != group[0].class));
        Self(groups)
    }

    /// The smallest distance of the ids of two members of one group with different classes, and those two tokens.
    /// Infinite where there is nothing to tell apart.
    pub fn smallest_gap(&self, id: impl Fn(usize) -> f64 + Sync) -> Gap {
        /// Groups in a task: enough to be worth a thread's while.
        const TASK: usize = 1024;
        let of_chunk = |_: usize, groups: &[Vec<Member>]| {
            let mut smallest = Gap::NONE;
            let mut sorted = Vec::new();
            for group in groups {
                sorted.clear();
                sorted.extend(group.iter().map(|m| (id(m.token), m)));
                sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.token.cmp(&b.1.token)));
                for pair in sorted.windows(2) {
                    if pair[0].1.class != pair[1].1.class && pair[1].0 - pair[0].0 < smallest.gap {
                        smallest = Gap { gap: pair[1].0 - pair[0].0, tokens: Some((pair[0].1.token, pair[1].1.token)) };
                    }
                }
            }
            smallest
        };
        let smallest = parallel::map_chunks(&self.0, TASK, of_chunk);
        smallest.into_iter().fold(Gap::NONE, |best, gap| if gap.gap < best.gap { gap } else { best })
    }
}

impl Groups {
    /// The `count` smallest distances of neighboring ids with different classes: distance, lower token, upper token.
    pub fn closest_pairs(&self, id: impl Fn(usize) -> f64, count: usize) -> Vec<(f64, usize, usize)> {
        let mut pairs = Vec::new();
        for group in &self.0 {
            let mut sorted: Vec<(f64, &Member)> = group.iter().map(|m| (id(m.token), m)).collect();
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.token.cmp(&b.1.token)));
            let differ = sorted.windows(2).filter(|pair| pair[0].1.class != pair[1].1.class);
            pairs.extend(differ.map(|pair| (pair[1].0 - pair[0].0, pair[0].1.token, pair[1].1.token)));
        }
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        pairs.truncate(count);
        pairs
    }
}

/// The closest two ids that must differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Their distance.
    pub gap: f64,
    /// Two tokens that have them.
    pub tokens: Option<(usize, usize)>,
}

impl Gap {
    /// Nothing must differ.
    pub const NONE: Self = Self { gap: f64::INFINITY, tokens: None };
}

/// The standard deviation.
pub fn standard_deviation(x: &[f64]) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rank::rank;

    #[test]
    fn shares_are_powers_of_two_with_sum_one() {
        for s in 1..70 {
            let shares = shares(s);
            assert_eq!((shares.len(), shares.iter().sum::<f64>()), (s, 1.0));
            assert!(shares.iter().all(|x| x.log2().fract() == 0.0));
        }
    }

    #[test]
    fn every_head_size_is_the_same_map_of_rank_one() {
        let map = ContextMap { v: vec![0.3, -0.7], v_q: vec![0.11, 0.13], w: vec![0.0, 0.1] };
        let z = Matrix::new(3, 2, vec![0.5, 1.0, -0.25, 2.0, 1.5, -1.0]);
        let plain = map.attention(Mask::None, 1).apply(&z).unwrap();
        for s in [2, 3, 5, 8] {
            let attention = map.attention(Mask::None, s);
            let out = attention.apply(&z).unwrap();
            assert!(out.data.iter().zip(&plain.data).all(|(a, b)| (a - b).abs() < 1e-15));
            let head = &attention.heads[0];
            for w in [&head.w_q, &head.w_k, &head.w_v, &head.w_o] {
                assert_eq!(rank(w.cols, &w.data), 1);
            }
        }
    }
}
