//! What queries add to the gradients of the keys that they see: for each bin of keys, a polynomial of the place in the bin.
//!
//! The transpose of [`super::running`]: there, keys leave moments that a query evaluates at its own number; here, queries leave
//! coefficients that a key evaluates at its place.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use super::moments::powers;
use super::plan::exponential;
use super::running::{EqualBins, Exponentials};
use super::scan::TokenSums;

/// The weights of a query: what the gradient of a value, and the two parts of the gradient of a key, are sums of.
pub(super) const WEIGHTS: usize = 3;

/// The sums over the queries so far of `w e^(y (c - top)) (y half)^l`, for the center c of each bin.
#[derive(Debug, Clone)]
pub(super) struct QuerySums<const Q: usize> {
    grid: EqualBins,
    sums: Vec<[[f64; Q]; WEIGHTS]>,
    coefficients: [f64; Q],
    /// A query for which the center of a bin has a larger exponent sees no key there.
    beyond: f64,
}

impl<const Q: usize> QuerySums<Q> {
    /// No queries yet, and bins as those of [`super::running::Running::new`].
    pub fn new(delta: f64, half: f64, low: f64, high: f64) -> Self {
        let coefficients = exponential(Q, delta).try_into().expect("as many as terms");
        let (grid, bins) = EqualBins::new(half, low, high);
        Self { grid, sums: vec![[[0.0; Q]; WEIGHTS]; bins], coefficients, beyond: 2.0 * delta }
    }

    /// Adds queries with their top keys and their weights. Keys beyond the top one, which they do not see, get nothing, for
    /// their exponentials could be of any size.
    #[inline(always)]
    pub fn add<const M: usize>(&mut self, y: &[f64; M], top: &[f64; M], weights: &[[f64; M]; WEIGHTS]) {
        let mut at = Exponentials::new(y, self.grid.half);
        let mut rows = [[[0.0; Q]; WEIGHTS]; M];
        for j in 0..M {
            let powers = powers::<Q>(at.scaled[j]);
            for c in 0..WEIGHTS {
                for l in 0..Q {
                    rows[j][c][l] = weights[c][j] * powers[l];
                }
            }
        }
        for i in 0..self.sums.len() {
            let center = self.grid.center(i);
            at.go_to(i, center, y, top);
            let mut seen = [0.0; M];
            for j in 0..M {
                seen[j] = if y[j] * (center - top[j]) > self.beyond { 0.0 } else { at.weight[j] };
            }
            let mut sums = self.sums[i];
            for j in 0..M {
                for c in 0..WEIGHTS {
                    for l in 0..Q {
                        sums[c][l] += seen[j] * rows[j][c][l];
                    }
                }
            }
            self.sums[i] = sums;
        }
    }

    /// The sums of `w e^(y (k - top))` over the queries, all of which see the key.
    #[inline(always)]
    pub fn at(&self, k: f64) -> [f64; WEIGHTS] {
        let (i, t) = self.grid.place(k);
        let (powers, sums) = (powers::<Q>(t), &self.sums[i]);
        let mut found = [0.0; WEIGHTS];
        for c in 0..WEIGHTS {
            for l in 0..Q {
                found[c] += sums[c][l] * (powers[l] * self.coefficients[l]);
            }
        }
        found
    }
}

impl<const Q: usize> TokenSums for QuerySums<Q> {
    fn join(&mut self, other: &Self) {
        for (sum, other) in self.sums.iter_mut().flatten().flatten().zip(other.sums.iter().flatten().flatten()) {
            *sum += other;
        }
    }
}
