//! The ids of tokens of a long sequence under the causal mask, without positions, all at once.
//!
//! Tokens of one word have one query, and so one weight for each other word. Going through the sequence once, and adding up
//! what each token weighs, gives the ids of all tokens of that word: words times tokens additions in all, and words times
//! words exponentials, where one token at a time takes half the square of the length of both. Several words are
//! taken at a time, side by side. Where there are many words, running moments take less time still ([`crate::attention`]).
//!
//! The sums are the same as one at a time but for their rounding, so this is for the search only.

use std::collections::HashMap;

use crate::arithmetic::kernels::{self, Real as _};
use crate::attention::{FastAttention, HeadInputs, Route};
use crate::paper::mask::Mask;

/// Sequences of at least so many tokens are worth it.
pub(crate) const LONG: usize = 1024;

/// Words side by side.
const LANES: usize = 8;

/// More words than this are left to running moments.
const MANY: usize = 800;

/// A sequence and the places whose ids are wanted.
#[derive(Debug, Clone)]
pub(crate) struct LongSequence {
    /// The word at each place: its number among the different words of this sequence.
    words: Vec<u32>,
    /// A place of each word.
    first: Vec<usize>,
    /// The words whose ids are wanted.
    queries: Vec<u32>,
    /// For each place that is wanted, in order: the place, and its word's number among the queries.
    wanted: Vec<(usize, u32)>,
}

impl LongSequence {
    /// A sequence of token ids, and the places wanted, in order.
    pub fn new(ids: &[u32], places: impl Iterator<Item = usize>) -> Self {
        let (mut numbers, mut first) = (HashMap::new(), Vec::new());
        let number = |(place, &id): (usize, &u32)| {
            *numbers.entry(id).or_insert_with(|| {
                first.push(place);
                first.len() as u32 - 1
            })
        };
        let words: Vec<u32> = ids.iter().enumerate().map(number).collect();
        let (mut query_of, mut queries) = (HashMap::new(), Vec::new());
        let wanted = places.map(|place| {
            let query = *query_of.entry(words[place]).or_insert_with(|| {
                queries.push(words[place]);
                queries.len() as u32 - 1
            });
            (place, query)
        });
        Self { wanted: wanted.collect(), words, first, queries }
    }

    /// The ids of the places wanted, in their order, from the projected tokens of the sequence, and the projected start token
    /// where there is one.
    pub fn context_ids(&self, kappa: f64, start: Option<f64>, p: &[f64]) -> Vec<f64> {
        let by_moments = (self.queries.len() > MANY).then(|| self.by_moments(kappa, start, p)).flatten();
        by_moments.unwrap_or_else(|| self.by_words(kappa, start, p))
    }

    /// The ids from running moments, where numbers are finite.
    fn by_moments(&self, kappa: f64, start: Option<f64>, p: &[f64]) -> Option<Vec<f64>> {
        let keys: Vec<f64> = start.into_iter().chain(p.iter().copied()).collect();
        let queries: Vec<f64> = keys.iter().map(|k| kappa * k).collect();
        let mut ids = vec![0.0; keys.len()];
        let inputs = HeadInputs { keys: &keys, values: &keys, queries: &queries };
        FastAttention::new().mask(Mask::Causal).route(Route::Moments).forward(inputs, &mut ids).ok()?;
        let first = usize::from(start.is_some());
        Some(self.wanted.iter().map(|&(place, _)| ids[first + place]).collect())
    }

    fn by_words(&self, kappa: f64, start: Option<f64>, p: &[f64]) -> Vec<f64> {
        // One more word, that nobody is.
        let p: Vec<f64> = self.first.iter().map(|&place| p[place]).chain(start).collect();
        let (low, high) = p.iter().fold((f64::MAX, f64::MIN), |(low, high), &p| (low.min(p), high.max(p)));
        let mut out = vec![0.0; self.wanted.len()];
        // What is wanted of each group of queries: its place, its lane, and where its id goes.
        let mut wanted: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); self.queries.len().div_ceil(LANES)];
        for (to, &(place, query)) in self.wanted.iter().enumerate() {
            wanted[query as usize / LANES].push((place, query as usize % LANES, to));
        }
        let mut weights: Vec<[[f64; LANES]; 2]> = vec![[[0.0; LANES]; 2]; p.len()];
        for (queries, wanted) in self.queries.chunks(LANES).zip(&wanted) {
            let mut y = [0.0; LANES];
            y.iter_mut().zip(queries).for_each(|(y, &word)| *y = kappa * p[word as usize]);
            // No score is above this one, so that no exponential overflows.
            let top = y.map(|y| (y * low).max(y * high));
            kernels::vectorized(
                #[inline(always)]
                || {
                    for (weights, &p) in weights.iter_mut().zip(&p) {
                        let [weight, weighted] = weights;
                        for l in 0..LANES {
                            weight[l] = (y[l] * p - top[l]).exp_nonpositive();
                            weighted[l] = weight[l] * p;
                        }
                    }
                    self.sweep(&weights, start.is_some(), wanted, &mut out);
                },
            );
        }
        out
    }

    /// Adds up weights and weighted projections along the sequence, and reads the ids off on the way.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn sweep(&self, weights: &[[[f64; LANES]; 2]], start: bool, wanted: &[(usize, usize, usize)], out: &mut [f64]) {
        let [mut total, mut sum] = match weights.last() {
            Some(of_start) if start => *of_start,
            _ => [[0.0; LANES]; 2],
        };
        let mut start = 0;
        for &(place, lane, to) in wanted {
            for &word in &self.words[start..=place] {
                let [weight, weighted] = &weights[word as usize];
                for l in 0..LANES {
                    total[l] += weight[l];
                    sum[l] += weighted[l];
                }
            }
            start = place + 1;
            out[to] = sum[lane] / total[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context_map::Projection;
    use crate::paper::attention::Mask;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_same_ids_as_one_at_a_time(
            ids in prop::collection::vec(0_u32..40, 1..200),
            v in prop::collection::vec(-3.0_f64..3.0, 40),
            kappa in 0.0_f64..4.0,
            every in 1_usize..5,
            start in prop::option::of(-3.0_f64..3.0),
        ) {
            let p: Vec<f64> = ids.iter().map(|&id| v[id as usize]).collect();
            let places: Vec<usize> = (0..ids.len()).step_by(every).collect();
            let long = LongSequence::new(&ids, places.iter().copied());
            let found = long.by_words(kappa, start, &p);
            let moments = long.by_moments(kappa, start, &p).unwrap();
            let (mut scores, mut plain) = (Vec::new(), Vec::new());
            let one = Projection { v, kappa };
            one.context_ids_at(&Mask::Causal, start, &p, places.iter().copied(), &mut scores, &mut plain);
            prop_assert_eq!(found.len(), plain.len());
            for ((a, b), c) in found.iter().zip(&plain).zip(&moments) {
                prop_assert!((a - b).abs() <= 1e-12 && (c - b).abs() <= 1e-12, "{} {} {}", a, b, c);
            }
        }
    }
}
