//! Context ids of all tokens: the range of all of them, and those that must be told apart, with what rounding does to them.

use super::contexts::GroupContext;
use super::shard::Shard;
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, sum_above, sum_below};
use crate::arithmetic::parallel;
use crate::context_map::standard_deviation;
use crate::data::token_vectors::TokenVectors;
use crate::memorize::gated::stored::Stored;
use crate::memorize::id_rounding::IdReader;
use crate::paper::mask::Mask;

/// The id of a context: a float near it, and how far the id that a program computes can be from that, in the model's numbers
/// and in double precision; infinite where nothing is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundedId {
    /// The float.
    pub center: f64,
    /// How far.
    pub errors: [f64; 2],
}

/// The ids of a dataset.
pub struct Ids {
    /// Of the contexts given, in their order.
    pub of_contexts: Vec<RoundedId>,
    /// Bounds of all ids that a program can compute for tokens of the data; infinite where some id is not known.
    pub range: (f64, f64),
    /// The standard deviation of ids, about: over a part of the tokens.
    pub deviation: f64,
}

/// Of so many tokens one is taken for the standard deviation.
const STRIDE: usize = 61;

impl Ids {
    /// The ids under the weights that are stored, for a program with numbers of a format or finer.
    pub fn new(
        shards: &[Shard],
        contexts: &[GroupContext],
        (vectors, mask): (&TokenVectors, &Mask),
        stored: &Stored,
        format: &FloatFormat,
    ) -> Self {
        let reader = IdReader::new(stored);
        let mut order: Vec<u32> = (0..contexts.len() as u32).collect();
        order.sort_unstable_by_key(|&i| contexts[i as usize].token);
        let of_shard = |shard: &Shard| {
            let tokens: Vec<usize> = (0..shard.word_ids.len()).collect();
            let end = shard.first + tokens.len();
            let first = order.partition_point(|&i| contexts[i as usize].token < shard.first);
            let last = order.partition_point(|&i| contexts[i as usize].token < end);
            let mut found = ShardIds { bounds: Vec::with_capacity(last - first), range: EMPTY, some: Vec::new() };
            let mut wanted = order[first..last].iter().map(|&i| contexts[i as usize].token).peekable();
            reader.each(&shard.view(vectors, mask), &tokens, |t, id| {
                let error = id.error(format).get();
                // Where an id is not known, nothing is known of the range.
                let ends = if error.is_finite() {
                    (sum_below(id.center, -error), sum_above(id.center, error))
                } else {
                    (f64::NEG_INFINITY, f64::INFINITY)
                };
                found.range = (found.range.0.min(ends.0), found.range.1.max(ends.1));
                if (shard.first + t).is_multiple_of(STRIDE) {
                    found.some.push(id.center);
                }
                while wanted.next_if_eq(&(shard.first + t)).is_some() {
                    found.bounds.push(RoundedId { center: id.center, errors: [error, id.error(&DOUBLE).get()] });
                }
            });
            found
        };
        let found = parallel::map_slice(shards, of_shard);
        let mut of_contexts = vec![RoundedId { center: 0.0, errors: [f64::INFINITY; 2] }; contexts.len()];
        let bounds = found.iter().flat_map(|shard| &shard.bounds);
        order.iter().zip(bounds).for_each(|(&i, bound)| of_contexts[i as usize] = *bound);
        let range = found.iter().fold(EMPTY, |all, shard| (all.0.min(shard.range.0), all.1.max(shard.range.1)));
        let some: Vec<f64> = found.into_iter().flat_map(|shard| shard.some).collect();
        Self { of_contexts, range, deviation: standard_deviation(&some) }
    }
}

const EMPTY: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

struct ShardIds {
    bounds: Vec<RoundedId>,
    range: (f64, f64),
    some: Vec<f64>,
}
