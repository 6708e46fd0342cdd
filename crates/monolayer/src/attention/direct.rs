//! Direct sums: every query with every key it sees. For few tokens, and for numbers near the limits of their type.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::Gradients;
use super::limits::Limits;
use super::powers_of_two::{Power, exponent, inverse_power, shrinking};

/// Products of queries and keys that are worth a thread of their own.
const PARALLEL: usize = 1 << 17;

/// How many keys the query of a number sees: those before.
pub(super) type CountSeen<'a> = &'a (dyn Fn(usize) -> usize + Sync);

/// Keys and values made ready for direct sums.
pub(super) struct DirectSums<R> {
    /// Keys, made smaller where their differences would overflow.
    keys: Vec<R>,
    enlarge: R,
    /// Values less their middle, made smaller where their sums would overflow.
    values: Vec<R>,
    middle: R,
    back: R,
    limits: (R, R),
    /// The smallest and the largest key up to each.
    ends: Vec<(R, R)>,
}

/// The proved error of a direct sum over so many keys, over the largest distance of a value from their middle.
pub(super) fn bound<R: Real>(keys: usize) -> f64 {
    let (n, u) = (keys as f64, R::UNIT_ROUNDOFF.to_f64());
    let sums = (n / 16.0).ceil() + 5.0;
    (2.0 * sums + 6.0 * n.max(1.0).ln() + 16.0) * u + 4.0 * n * R::SMALLEST.to_f64()
}

impl<R: Real> DirectSums<R> {
    pub fn new(keys: &[R], range: Limits<R>, values: &[R], limits: Limits<R>) -> Self {
        let half = R::from_f64(0.5);
        let wide = !(range.high - range.low).finite();
        let (shrink, enlarge) = if wide { (R::from_f64(0.25), R::from_f64(4.0)) } else { (R::ONE, R::ONE) };
        let size = limits.high.larger(R::ZERO - limits.low).to_f64();
        let count = keys.len().max(1).next_power_of_two() as f64;
        let heavy = size > R::LARGEST.to_f64() / (4.0 * count);
        let scale = if heavy { R::from_f64(0.25 / count) } else { R::ONE };
        let middle = limits.low * scale * half + limits.high * scale * half;
        let keys: Vec<R> = keys.iter().map(|&k| k * shrink).collect();
        let mut ends = Vec::with_capacity(keys.len());
        for &k in &keys {
            let (low, high) = ends.last().copied().unwrap_or((k, k));
            ends.push((if k < low { k } else { low }, high.larger(k)));
        }
        Self {
            keys,
            enlarge,
            values: values.iter().map(|&v| v * scale - middle).collect(),
            middle,
            back: R::ONE / scale,
            limits: (limits.low, limits.high),
            ends,
        }
    }

    /// The weights of the first keys, before they are normalized, and the top key. No score is formed by itself: only their
    /// distances from the top one, which cannot be positive.
    #[inline(always)]
    fn weigh(&self, y: R, seen: usize, weights: &mut [R]) -> R {
        let (low, high) = self.ends[seen - 1];
        let top = if y < R::ZERO { low } else { high };
        for (weight, &k) in weights[..seen].iter_mut().zip(&self.keys[..seen]) {
            *weight = (y * (k - top) * self.enlarge).exp_nonpositive();
        }
        top
    }

    /// The mean of each query over the keys before `seen` of its number; 0 where there are none.
    pub fn run(&self, queries: &[R], seen: CountSeen, out: &mut [R]) {
        let block = |first: usize, out: &mut [R]| {
            let mut weights = vec![R::ZERO; self.keys.len()];
            for (i, out) in out.iter_mut().enumerate() {
                let (y, seen) = (queries[first + i], seen(first + i));
                *out = kernels::vectorized(
                    #[inline(always)]
                    || self.mean(y, seen, &mut weights),
                );
            }
        };
        let size = 64;
        if out.len() * self.keys.len() > PARALLEL {
            out.par_chunks_mut(size).enumerate().for_each(|(i, out)| block(i * size, out));
        } else {
            block(0, out);
        }
    }

    #[inline(always)]
    fn mean(&self, y: R, seen: usize, weights: &mut [R]) -> R {
        if seen == 0 {
            return R::ZERO;
        }
        self.weigh(y, seen, weights);
        let weights = &weights[..seen];
        let mean = kernels::dot(weights, &self.values[..seen]) / kernels::sum(weights);
        let mean = (mean + self.middle) * self.back;
        let (low, high) = self.limits;
        if mean < low {
            low
        } else if mean > high {
            high
        } else {
            mean
        }
    }
}

/// The proved error of gradients by direct sums, as docs/attention.md measures it.
pub(super) fn gradient_bound<R: Real>(keys: usize, queries: usize) -> f64 {
    let u = R::UNIT_ROUNDOFF.to_f64();
    4.0 * bound::<R>(keys) + (block_size(queries) + 32) as f64 * u
}

/// Queries of a block of gradients. By their number alone, so that sums do not depend on threads.
fn block_size(queries: usize) -> usize {
    queries.div_ceil(16).max(64)
}

/// A query and its upstream gradient, both as they are divided by powers of two, too.
struct ScaledQuery<R> {
    y: R,
    scaled: R,
    upstream: R,
}

/// The exponents of the powers of two that numbers are divided by, so that no product of them overflows.
struct Exponents {
    keys: i32,
    values: i32,
    queries: i32,
    upstream: i32,
}

impl<R: Real> DirectSums<R> {
    /// The gradients of keys, values and queries, by direct sums.
    pub fn backward(&self, queries: &[R], upstream: &[R], seen: CountSeen, gradients: &mut Gradients<R>) {
        let largest = |list: &[R]| shrinking::<R>(list.iter().fold(0.0, |a: f64, b| a.max(b.to_f64().abs())));
        let width = self.ends.last().map_or(R::ZERO, |&(low, high)| high - low);
        let by = Exponents {
            keys: shrinking::<R>(width.to_f64()),
            values: largest(&self.values),
            queries: largest(queries),
            upstream: largest(upstream),
        };
        let [of_keys, of_values, of_queries, of_upstream] =
            [by.keys, by.values, by.queries, by.upstream].map(inverse_power::<R>);
        let values: Vec<R> = self.values.iter().map(|&v| v * of_values).collect();
        let size = block_size(queries.len());
        let block = |(i, dy): (usize, &mut [R])| {
            let mut weights = vec![R::ZERO; self.keys.len()];
            let mut sums = [vec![R::ZERO; self.keys.len()], vec![R::ZERO; self.keys.len()]];
            for (j, dy) in dy.iter_mut().enumerate() {
                let y = queries[i * size + j];
                let query = ScaledQuery { y, scaled: y * of_queries, upstream: upstream[i * size + j] * of_upstream };
                *dy = kernels::vectorized(
                    #[inline(always)]
                    || self.slopes(&query, (&values, of_keys), seen(i * size + j), &mut weights, &mut sums),
                );
            }
            sums
        };
        let parts: Vec<_> = gradients.queries.par_chunks_mut(size).enumerate().map(block).collect();
        gradients.keys.fill(R::ZERO);
        gradients.values.fill(R::ZERO);
        for [dk, dv] in &parts {
            gradients.keys.iter_mut().zip(dk).for_each(|(sum, &x)| *sum += x);
            gradients.values.iter_mut().zip(dv).for_each(|(sum, &x)| *sum += x);
        }
        let back = by.values + by.upstream + exponent(self.back.to_f64());
        let enlarge = |list: &mut [R], e: i32| {
            let power = Power::new(e);
            list.iter_mut().for_each(|x| *x = R::from_f64(power.times(x.to_f64())));
        };
        enlarge(&mut gradients.keys, back + by.queries);
        enlarge(&mut gradients.values, by.upstream);
        enlarge(&mut gradients.queries, back + by.keys + exponent(self.enlarge.to_f64()));
    }

    /// What a query and its upstream gradient add to the gradients of keys and values; the gradient of the query.
    #[inline(always)]
    fn slopes(
        &self,
        query: &ScaledQuery<R>,
        (values, of_keys): (&[R], R),
        seen: usize,
        weights: &mut [R],
        [dk, dv]: &mut [Vec<R>; 2],
    ) -> R {
        if seen == 0 {
            return R::ZERO;
        }
        let top = self.weigh(query.y, seen, weights);
        let weights = &mut weights[..seen];
        let (keys, values) = (&self.keys[..seen], &values[..seen]);
        let total = kernels::sum(weights);
        let mean = kernels::dot(weights, values) / total;
        let (dk, dv) = (&mut dk[..seen], &mut dv[..seen]);
        let mut moved = R::ZERO;
        for i in 0..seen {
            let weight = weights[i] / total;
            let apart = weight * (values[i] - mean);
            dv[i] += query.upstream * weight;
            dk[i] += query.upstream * (apart * query.scaled);
            moved += apart * ((keys[i] - top) * of_keys);
        }
        moved * query.upstream
    }
}
