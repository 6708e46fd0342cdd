//! Direct sums: every query with every key it sees. For few tokens, and for numbers near the limits of their type.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};

use super::Range;

/// Products of queries and keys that are worth a thread of their own.
const PARALLEL: usize = 1 << 17;

/// Keys and values made ready for direct sums.
pub(super) struct Direct<R> {
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

impl<R: Real> Direct<R> {
    pub fn new(keys: &[R], range: Range<R>, values: &[R], limits: Range<R>) -> Self {
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

    /// The mean of each query over the keys before `seen` of its number; 0 where there are none.
    pub fn run(&self, queries: &[R], seen: impl Fn(usize) -> usize + Sync, out: &mut [R]) {
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

    /// No score is formed by itself: only their distances from the top one, which cannot be positive.
    #[inline(always)]
    fn mean(&self, y: R, seen: usize, weights: &mut [R]) -> R {
        if seen == 0 {
            return R::ZERO;
        }
        let (low, high) = self.ends[seen - 1];
        let top = if y < R::ZERO { low } else { high };
        let weights = &mut weights[..seen];
        for (weight, &k) in weights.iter_mut().zip(&self.keys[..seen]) {
            *weight = (y * (k - top) * self.enlarge).exp_nonpositive();
        }
        let mean = kernels::dot(weights, &self.values[..seen]) / kernels::sum(weights);
        let mean = (mean + self.middle) * self.back;
        let (low, high) = self.limits;
        if mean < low { low } else if mean > high { high } else { mean }
    }
}
