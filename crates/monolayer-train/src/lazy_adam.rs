//! Embedding rows under Adam without sweeping the whole table.
//!
//! A word that a batch does not contain has gradient 0, yet dense Adam moves its row on: momentum fades over many steps.
//! Those steps are taken all at once when the word comes up again. After k steps without a gradient m and v are b1^k m and
//! b2^k v, and the row has moved, with s = sqrt(v), by
//!
//! sum_j rate_j / (1 - b1^(t+j)) b1^j m / (s sqrt(b2^j / (1 - b2^(t+j))) + epsilon) = m sum_j w_j / (s + c_j),
//!
//! where w_j and c_j do not depend on the row. That is a smooth function of s alone: Gauss' rule with two nodes, from the first
//! four moments of the c_j under the weights w_j, gives it to second order in the c_j's relative variance. The c_j vary with
//! sqrt(1 - b2^t), slowly once many steps are behind; with k at most t / 8 the sum is right to 1e-7 of itself, whatever s is, and
//! to rounding where s is far above epsilon (the tests measure both).

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use monolayer::arithmetic::kernels::{self, Real};

use crate::loss::negligible;
use crate::optimizer::{Optimizer, flush};

/// What several steps without a gradient do to a row: p = keep p - m sum_i weight_i / (sqrt(v) + node_i).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CatchUp<R> {
    keep: R,
    weights: [R; 2],
    nodes: [R; 2],
    fade1: R,
    fade2: R,
}

/// The steps since all rows were up to date, as a row without a gradient sees them.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissedSteps {
    terms: Vec<Term>,
    /// Entry i is for a row that has seen i of the steps.
    sums: Vec<Sums>,
}

/// A step: what it adds to the moments, times its own momentum; its node; what it keeps of a parameter. Kept from step to step: the
/// powers in them would take longer than the sums.
#[derive(Debug, Clone, Copy)]
struct Term {
    size: f64,
    node: f64,
    keep: f64,
}

/// Several steps together: the moments of the nodes c_j under the weights w_j, and what the steps keep of p, m and v.
#[derive(Debug, Clone, Copy)]
struct Sums {
    moments: [f64; 4],
    keep: f64,
    fade1: f64,
    fade2: f64,
}

impl MissedSteps {
    /// No step is missed any more.
    pub fn clear(&mut self) {
        self.terms.clear();
    }

    /// One more step, counted from 1.
    pub fn push(&mut self, optimizer: &Optimizer, step: u64, rate: f64) {
        self.terms.push(match *optimizer {
            Optimizer::Adam { beta1, beta2, epsilon, weight_decay } => {
                let root = (1.0 - beta2.powf(step as f64)).sqrt();
                let size = rate / (1.0 - beta1.powf(step as f64)) * root;
                Term { size, node: root * epsilon, keep: 1.0 - rate * weight_decay }
            }
            Optimizer::Sgd { .. } => Term { size: rate, node: 0.0, keep: 1.0 },
        });
    }

    /// Adds the steps up, for rows that have missed any number of them; [`Self::catch_up`] reads the sums.
    pub fn add_up(&mut self, optimizer: &Optimizer) {
        // Moment k of the nodes for a row that is j steps behind sums powers of beta1 beta2^(-(1 + k) / 2): Horner's rule.
        let (ratios, beta1, beta2) = match *optimizer {
            Optimizer::Adam { beta1, beta2, .. } => {
                ([1, 2, 3, 4].map(|k| beta1 / beta2.powf(f64::from(k) / 2.0)), beta1, beta2)
            }
            Optimizer::Sgd { momentum } => ([momentum, 0.0, 0.0, 0.0], momentum, 0.0),
        };
        let mut sums = Sums { moments: [0.0; 4], keep: 1.0, fade1: 1.0, fade2: 1.0 };
        self.sums.clear();
        self.sums.resize(self.terms.len(), sums);
        for (entry, &Term { size, node, keep }) in self.sums.iter_mut().zip(&self.terms).rev() {
            let mut term = sums.keep * size;
            for (moment, ratio) in sums.moments.iter_mut().zip(ratios) {
                *moment = ratio * (*moment + term);
                term *= node;
            }
            sums.keep *= keep;
            sums.fade1 *= beta1;
            sums.fade2 *= beta2;
            *entry = sums;
        }
    }

    /// What happens to a row that has seen so many of the steps until the last; `None` where it has seen all.
    pub fn catch_up<R: Real>(&self, optimizer: &Optimizer, seen: u32) -> Option<CatchUp<R>> {
        let sums = self.sums.get(seen as usize)?;
        let (weights, nodes) = match optimizer {
            Optimizer::Adam { .. } => gauss(sums.moments),
            Optimizer::Sgd { .. } => ([sums.moments[0], 0.0], [1.0; 2]),
        };
        Some(CatchUp {
            keep: R::from_f64(sums.keep),
            weights: weights.map(R::from_f64),
            nodes: nodes.map(R::from_f64),
            fade1: R::from_f64(sums.fade1),
            fade2: R::from_f64(sums.fade2),
        })
    }
}

/// Weights and nodes of Gauss' rule with two nodes for a measure with these moments.
fn gauss(moments: [f64; 4]) -> ([f64; 2], [f64; 2]) {
    let total = moments[0];
    if total == 0.0 {
        return ([0.0; 2], [1.0; 2]);
    }
    let [_, mean, second, third] = moments.map(|m| m / total);
    let variance = second - mean * mean;
    // One step, or steps with nodes as good as equal.
    if variance <= 1e-13 * mean * mean {
        return ([total, 0.0], [mean; 2]);
    }
    let deviation = variance.sqrt();
    let skewness = (third - 3.0 * mean * variance - mean * mean * mean) / (variance * deviation);
    let half = skewness / 2.0;
    let width = (1.0 + half * half).sqrt();
    let share = (1.0 - half / width) / 2.0;
    ([total * (1.0 - share), total * share], [mean + deviation * (half - width), mean + deviation * (half + width)])
}

impl<R: Real> CatchUp<R> {
    /// The row as it will be, in `out`.
    #[inline(always)]
    pub(crate) fn read_here(&self, parameters: &[R], first: &[R], second: &[R], out: &mut [R]) {
        let c = *self;
        if second.is_empty() {
            for ((out, &p), &m) in out.iter_mut().zip(parameters).zip(first) {
                *out = p - m * c.weights[0];
            }
            return;
        }
        for (((out, &p), &m), &v) in out.iter_mut().zip(parameters).zip(first).zip(second) {
            *out = c.moved(p, m, v);
        }
    }

    #[inline(always)]
    fn moved(&self, p: R, m: R, v: R) -> R {
        let s = v.square_root();
        p * self.keep - m * (self.weights[0] / (s + self.nodes[0]) + self.weights[1] / (s + self.nodes[1]))
    }

    /// Brings a row up to date. `second` is empty for SGD.
    pub(crate) fn apply(&self, parameters: &mut [R], first: &mut [R], second: &mut [R]) {
        kernels::vectorized(
            #[inline(always)]
            || self.apply_here(parameters, first, second),
        );
    }

    /// The same, to be inlined into a vectorized loop.
    #[inline(always)]
    pub(crate) fn apply_here(&self, parameters: &mut [R], first: &mut [R], second: &mut [R]) {
        let c = *self;
        let least = negligible::<R>();
        if second.is_empty() {
            for (p, m) in parameters.iter_mut().zip(first) {
                *p = *p - *m * c.weights[0];
                *m = flush(*m * c.fade1, least);
            }
            return;
        }
        for ((p, m), v) in parameters.iter_mut().zip(first).zip(second) {
            *p = c.moved(*p, *m, *v);
            *m = flush(*m * c.fade1, least);
            *v = flush(*v * c.fade2, least * least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rows do that have seen 0, 1, ... of the steps after step `start`.
    fn catch_ups(optimizer: &Optimizer, start: u64, rates: &[f64]) -> Vec<CatchUp<f64>> {
        let mut missed = MissedSteps::default();
        (start + 1..).zip(rates).for_each(|(step, &rate)| missed.push(optimizer, step, rate));
        missed.add_up(optimizer);
        (0..rates.len() as u32).map(|seen| missed.catch_up(optimizer, seen).unwrap()).collect()
    }

    /// Catching up against one dense step after another, for rows with mean squares of every size.
    #[test]
    fn equals_dense_steps() {
        let rates: Vec<f64> = (0..400).map(|i| 1e-3 * (1.0 + 0.5 * f64::sin(f64::from(i)))).collect();
        for (weight_decay, start) in [(0.0, 8), (0.0, 100), (0.01, 1000), (0.01, 100_000)] {
            let rates = &rates[..rates.len().min(start as usize / 8)];
            let optimizer = Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay };
            let list = catch_ups(&optimizer, start, rates);
            for (behind, catch_up) in list.iter().enumerate().step_by(3) {
                for exponent in -24..0 {
                    let (p0, m0, v0) = (0.5, 0.01_f64.copysign(f64::from(exponent + 12)), 10_f64.powi(exponent));
                    let (mut p, mut m, mut v) = ([p0], [m0], [v0]);
                    for (i, &rate) in rates.iter().enumerate().skip(behind) {
                        optimizer.update(start + i as u64 + 1, rate).apply(1.0, &mut p, &mut m, &mut v, &[0.0]);
                    }
                    let (mut q, mut n, mut w) = ([p0], [m0], [v0]);
                    let mut read = [0.0];
                    catch_up.read_here(&q, &n, &w, &mut read);
                    catch_up.apply(&mut q, &mut n, &mut w);
                    assert_eq!(q, read);
                    let moved = (p[0] - p0).abs();
                    let error = (p[0] - q[0]).abs() / moved;
                    // Where the root of the mean square is far above epsilon = 1e-8, rounding is all that is left.
                    let bound = if exponent >= -12 { 1e-11 } else { 1e-7 };
                    assert!(error < bound, "start {start}, {behind}, v = 1e{exponent}: {error:e}");
                    assert!((m[0] - n[0]).abs() <= 1e-12 * m0.abs() && (v[0] - w[0]).abs() <= 1e-12 * v0);
                }
            }
        }
    }

    #[test]
    fn equals_dense_steps_of_sgd() {
        let optimizer = Optimizer::Sgd { momentum: 0.9 };
        let rates = [0.1, 0.2, 0.05, 0.3];
        let list = catch_ups(&optimizer, 7, &rates);
        for (behind, catch_up) in list.iter().enumerate() {
            let (mut p, mut m) = ([0.5], [0.3]);
            for (i, &rate) in rates.iter().enumerate().skip(behind) {
                optimizer.update(8 + i as u64, rate).apply(1.0, &mut p, &mut m, &mut [], &[0.0]);
            }
            let (mut q, mut n) = ([0.5], [0.3]);
            catch_up.apply(&mut q, &mut n, &mut []);
            assert!((p[0] - q[0]).abs() < 1e-15 && (m[0] - n[0]).abs() < 1e-15);
        }
    }
}
