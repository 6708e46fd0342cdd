//! Context ids of all tokens: the range of all of them, and those that must be told apart, with what rounding does to them.

use std::borrow::Cow;

use super::contexts::GroupContext;
use super::passes::{Runner, ShardPass};
use super::shard::Shard;
use super::wire::fields;
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, sum_above, sum_below};
use crate::context_map::standard_deviation;
use crate::error::Result;
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

fields!(RoundedId { center, errors });

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
    pub fn new(runner: &impl Runner, contexts: &[GroupContext], pass: &IdPass) -> Result<Self> {
        let mut order: Vec<u32> = (0..contexts.len() as u32).collect();
        order.sort_unstable_by_key(|&i| contexts[i as usize].token);
        let tokens: Vec<usize> = order.iter().map(|&i| contexts[i as usize].token).collect();
        let found = runner.pass(pass, &tokens)?;
        let mut of_contexts = vec![RoundedId { center: 0.0, errors: [f64::INFINITY; 2] }; contexts.len()];
        order.iter().zip(&found.bounds).for_each(|(&i, bound)| of_contexts[i as usize] = *bound);
        Ok(Self { of_contexts, range: found.range, deviation: standard_deviation(&found.some) })
    }
}

/// Computes the ids of all tokens, and keeps those of the tokens asked for.
pub struct IdPass<'a> {
    /// The weights.
    pub reader: IdReader,
    /// Which tokens a query sees.
    pub mask: Cow<'a, Mask>,
    /// The numbers of the program.
    pub format: FloatFormat,
}

fields!(borrowing IdPass { reader, mask, format });
fields!(FloatFormat { u, smallest, largest });

/// What is known of the ids of a shard.
pub struct ShardIds {
    bounds: Vec<RoundedId>,
    range: (f64, f64),
    some: Vec<f64>,
}

fields!(ShardIds { bounds, range, some });

impl ShardPass for IdPass<'_> {
    const NAME: &'static str = "ids";
    type Part = ShardIds;

    fn of_shard(&self, shard: &Shard, tokens: &[usize]) -> ShardIds {
        let range = (f64::INFINITY, f64::NEG_INFINITY);
        let mut found = ShardIds { bounds: Vec::with_capacity(tokens.len()), range, some: Vec::new() };
        let mut wanted = tokens.iter().copied().peekable();
        self.reader.each(shard.sequences(), &self.mask, |t, id| {
            let error = id.error(&self.format).get();
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
    }

    fn merged(parts: Vec<ShardIds>) -> ShardIds {
        let range = parts
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |all, part| (all.0.min(part.range.0), all.1.max(part.range.1)));
        let (mut bounds, mut some) = (Vec::new(), Vec::new());
        for part in parts {
            bounds.extend(part.bounds);
            some.extend(part.some);
        }
        ShardIds { bounds, range, some }
    }
}
