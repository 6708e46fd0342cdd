//! A causal head that takes one token after another, with as much memory as its bins need.

use std::marker::PhantomData;

use crate::arithmetic::kernels::{self, Real};
use crate::error::{Error, Result};

use super::plan::widest;
use super::running::{Running, half_width};

/// Moments of a bin.
const TERMS: usize = 16;
/// Bins at most.
const MOST_BINS: f64 = 1e6;

/// A causal rank-1 head as a recurrence: each token is seen by itself and by those after it. The memory depends on the range of
/// keys and queries, not on how many tokens there were.
///
/// ```
/// use monolayer::attention::StreamingHead;
///
/// let mut head = StreamingHead::<f64>::new(-1.0, 1.0, 20.0)?;
/// assert_eq!(head.push(0.5, 3.0, 2.0)?, 3.0);
/// let mean = head.push(-0.5, 1.0, 2.0)?;
/// assert!((mean - (3.0 + (-2.0_f64).exp()) / (1.0 + (-2.0_f64).exp())).abs() < 1e-14);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StreamingHead<R> {
    running: Running<TERMS>,
    largest: f64,
    tokens: usize,
    low: f64,
    high: f64,
    /// The first value: the others count from it.
    middle: f64,
    values: (f64, f64),
    of: PhantomData<R>,
}

impl<R: Real> StreamingHead<R> {
    /// A head for keys from `low` to `high` and queries up to `largest` in absolute value. Keys outside get bins when they
    /// come; the queries' limit is fixed, for it decides how wide a bin may be.
    pub fn new(low: R, high: R, largest: R) -> Result<Self> {
        let (low, high, largest) = (low.to_f64(), high.to_f64(), largest.to_f64());
        let delta = widest(TERMS, R::UNIT_ROUNDOFF.to_f64().max(f64::EPSILON) / 4.0);
        let half = half_width(delta, largest);
        let bins = (high - low) / (2.0 * half);
        if !(low <= high && largest >= 0.0 && bins <= MOST_BINS && low.abs().max(high.abs()) / half < 2.0_f64.powi(48))
        {
            return Err(Error::setting(
                format!("a streaming head for keys from {low} to {high} and queries up to {largest}"),
                "give finite limits whose scores span less than a million",
            ));
        }
        Ok(Self {
            running: Running::new(delta, half, low, high),
            largest,
            tokens: 0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            middle: 0.0,
            values: (f64::INFINITY, f64::NEG_INFINITY),
            of: PhantomData,
        })
    }

    /// How many tokens there were.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// How many bins there are.
    pub fn bins(&self) -> usize {
        self.running.bins()
    }

    /// Takes a token, and returns the mean that its query sees.
    pub fn push(&mut self, key: R, value: R, query: R) -> Result<R> {
        let (k, v, y) = (key.to_f64(), value.to_f64(), query.to_f64());
        if !(k.is_finite() && v.abs() < 2.0_f64.powi(900) && y.abs() <= self.largest) {
            return Err(Error::setting(
                format!("token {} (from 0) has key {k}, value {v}, query {y}", self.tokens),
                format!("give finite numbers, and queries of at most {} in absolute value", self.largest),
            ));
        }
        if !self.running.covers(k) {
            if !self.running.can_grow(k, MOST_BINS) {
                return Err(Error::too_large(
                    format!("key {k} of token {} is too far from the others", self.tokens),
                    "declare a smaller limit for the queries",
                ));
            }
            self.running.grow(k);
        }
        if self.tokens == 0 {
            self.middle = v;
        }
        self.tokens += 1;
        (self.low, self.high) = (self.low.min(k), self.high.max(k));
        self.values = (self.values.0.min(v), self.values.1.max(v));
        let top = if y < 0.0 { self.low } else { self.high };
        let (running, centered) = (&mut self.running, v - self.middle);
        let [[total], [sum]] = kernels::vectorized(
            #[inline(always)]
            || {
                running.add(k, centered);
                running.sums(&[y], &[top])
            },
        );
        Ok(R::from_f64((sum / total + self.middle).clamp(self.values.0, self.values.1)))
    }
}
