//! Eq. 2 and its gradient on one sequence and one head, sixteen queries at a time.
//!
//! With scores s_ij = q_i . k_j, weights p_ij = e^{s_ij} / sum_j e^{s_ij} and output g_i = sum_j p_ij v_j, the gradient is
//!
//! ds_ij = p_ij dg_i . (v_j - g_i),  dq_i = sum_j ds_ij k_j,  dk_j = sum_i ds_ij q_i,  dv_j = sum_i p_ij dg_i.
//!
//! Weights are computed again on the way back, so memory grows with the tokens and not with their square.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use monolayer::Mask;
use monolayer::arithmetic::kernels::{Real, sum_of_lanes};
use monolayer::attention::{FastAttention, Gradients, HeadInputs};

/// Sequences of at least so many tokens take the way in linear time, where heads have size 1.
pub const LONG: usize = 4096;

/// Queries handled at once.
pub const LANES: usize = 16;

type Lanes<R> = [R; LANES];

/// One head's view of a sequence: component c of token t stands at `[c * stride + t]`.
#[derive(Clone, Copy)]
pub struct Sequence<'a, R> {
    pub q: &'a [R],
    pub k: &'a [R],
    pub v: &'a [R],
    pub stride: usize,
    pub n: usize,
    pub size: usize,
    pub causal: bool,
}

/// Buffers of a thread.
#[derive(Debug, Default)]
pub struct Scratch<R> {
    scores: Vec<Lanes<R>>,
    q: Vec<Lanes<R>>,
    g: Vec<Lanes<R>>,
    dg: Vec<Lanes<R>>,
    dq: Vec<Lanes<R>>,
}

/// What the way back needs of each query: its largest score and the sum of e^(score - largest).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Softmax<R> {
    pub top: R,
    pub total: R,
}

/// What the way back knows of sixteen queries: their components, the gradients of what they read, their softmax, dg . g.
struct QueryBlock<'a, R> {
    first: usize,
    q: &'a [Lanes<R>],
    dg: &'a [Lanes<R>],
    top: Lanes<R>,
    scale: Lanes<R>,
    along: Lanes<R>,
}

/// Lanes from `row[first..]`, zeros beyond its end.
#[inline(always)]
fn load<R: Real>(row: &[R], first: usize) -> Lanes<R> {
    let mut lanes = [R::ZERO; LANES];
    let row = &row[first..];
    if row.len() >= LANES {
        lanes.copy_from_slice(&row[..LANES]);
    } else {
        lanes[..row.len()].copy_from_slice(row);
    }
    lanes
}

/// The products, lane by lane.
#[inline(always)]
fn times<R: Real>(mut x: [R; LANES], y: &[R; LANES]) -> [R; LANES] {
    for l in 0..LANES {
        x[l] = x[l] * y[l];
    }
    x
}

/// The sum of the rows, each times a factor.
#[inline(always)]
fn weighted<R: Real>(rows: &[Lanes<R>; LANES], factors: &Lanes<R>) -> Lanes<R> {
    let mut sum = [R::ZERO; LANES];
    for l in 0..LANES {
        for j in 0..LANES {
            sum[j] += rows[l][j] * factors[l];
        }
    }
    sum
}

/// e^(score - top).
#[inline(always)]
fn exponentials<R: Real>(mut scores: Lanes<R>, top: &Lanes<R>) -> Lanes<R> {
    for l in 0..LANES {
        scores[l] = (scores[l] - top[l]).exp_nonpositive();
    }
    scores
}

impl<'a, R: Real> Sequence<'a, R> {
    #[inline(always)]
    fn component(&self, rows: &'a [R], c: usize) -> &'a [R] {
        &rows[c * self.stride..c * self.stride + self.n]
    }

    /// Keys that some query of a block sees.
    #[inline(always)]
    fn visible(&self, first: usize) -> usize {
        if self.causal { self.n.min(first + LANES) } else { self.n }
    }

    /// Scores of key `j` with the queries from `first` on.
    #[inline(always)]
    fn scores(&self, q: &[Lanes<R>], first: usize, j: usize) -> Lanes<R> {
        let mut scores = [R::ZERO; LANES];
        for (c, q) in q.iter().enumerate() {
            let k = self.component(self.k, c)[j];
            for l in 0..LANES {
                scores[l] += q[l] * k;
            }
        }
        if self.causal {
            for l in 0..LANES {
                if j > first + l {
                    scores[l] = R::NEG_INFINITY;
                }
            }
        }
        scores
    }

    /// Whether the way in linear time is taken.
    pub fn is_long(&self) -> bool {
        self.size == 1 && self.n >= LONG
    }

    fn in_linear_time(&self) -> FastAttention {
        FastAttention::new().mask(if self.causal { Mask::Causal } else { Mask::None })
    }

    fn inputs(&self) -> HeadInputs<'a, R> {
        let part = |rows| self.component(rows, 0);
        HeadInputs { keys: part(self.k), values: part(self.v), queries: part(self.q) }
    }

    /// [`Self::forward`] in linear time; false, and nothing done, where numbers are not finite.
    pub fn forward_long(&self, mixed: &mut [R], width: usize) -> bool {
        let mut out = vec![R::ZERO; self.n];
        let done = self.in_linear_time().forward(self.inputs(), &mut out).is_ok();
        if done {
            out.iter().enumerate().for_each(|(t, &g)| mixed[t * width] = g);
        }
        done
    }

    /// [`Self::backward`] in linear time; false, and nothing done, where numbers are not finite.
    pub fn backward_long(
        &self,
        (d_mixed, width): (&[R], usize),
        dq: &mut [R],
        dk: &mut [R],
        dv: Option<&mut [R]>,
    ) -> bool {
        let upstream: Vec<R> = (0..self.n).map(|t| d_mixed[t * width]).collect();
        let mut gradients = Gradients::default();
        if self.in_linear_time().backward(self.inputs(), &upstream, &mut gradients).is_err() {
            return false;
        }
        let add = |to: &mut [R], from: &[R]| to.iter_mut().zip(from).for_each(|(to, &x)| *to += x);
        dq[..self.n].copy_from_slice(&gradients.queries);
        add(&mut *dk, &gradients.keys);
        add(dv.unwrap_or(dk), &gradients.values);
        true
    }

    /// The mixtures g, row t of `mixed` (of `width` numbers, of which this head's are the first), and what the way back needs.
    #[inline(always)]
    pub fn forward(&self, scratch: &mut Scratch<R>, mixed: &mut [R], width: usize, softmax: &mut [Softmax<R>]) {
        let Scratch { scores, q, g, .. } = scratch;
        scores.resize(scores.len().max(self.n), [R::ZERO; LANES]);
        for first in (0..self.n).step_by(LANES) {
            q.clear();
            q.extend((0..self.size).map(
                #[inline(always)]
                |c| load(self.component(self.q, c), first),
            ));
            g.clear();
            g.resize(self.size, [R::ZERO; LANES]);
            let visible = self.visible(first);
            let mut top = [R::NEG_INFINITY; LANES];
            for (j, kept) in scores[..visible].iter_mut().enumerate() {
                let scores = self.scores(q, first, j);
                for l in 0..LANES {
                    top[l] = top[l].larger(scores[l]);
                }
                *kept = scores;
            }
            let mut sum = [R::ZERO; LANES];
            for (j, &scores) in scores[..visible].iter().enumerate() {
                let weights = exponentials(scores, &top);
                for l in 0..LANES {
                    sum[l] += weights[l];
                }
                for (c, g) in g.iter_mut().enumerate() {
                    let v = self.component(self.v, c)[j];
                    for l in 0..LANES {
                        g[l] += weights[l] * v;
                    }
                }
            }
            for l in 0..LANES.min(self.n - first) {
                softmax[first + l] = Softmax { top: top[l], total: sum[l] };
                for c in 0..self.size {
                    mixed[(first + l) * width + c] = g[c][l] / sum[l];
                }
            }
        }
    }

    /// The gradients of the scores of key `j`, for a lane of queries with the weights `p`.
    #[inline(always)]
    fn score_gradients(&self, p: &[R; LANES], dg: &[[R; LANES]], along: &[R; LANES], j: usize) -> [R; LANES] {
        let mut ds = [R::ZERO; LANES];
        for (c, dg) in dg.iter().enumerate() {
            let v = self.component(self.v, c)[j];
            for l in 0..LANES {
                ds[l] += dg[l] * v;
            }
        }
        for l in 0..LANES {
            ds[l] = p[l] * (ds[l] - along[l]);
        }
        ds
    }

    /// The weights of key `j` for a block of queries, and the gradients of its scores.
    #[inline(always)]
    fn weights_back(&self, block: &QueryBlock<R>, j: usize) -> [Lanes<R>; 2] {
        let p = times(exponentials(self.scores(block.q, block.first, j), &block.top), &block.scale);
        [p, self.score_gradients(&p, block.dg, &block.along, j)]
    }

    /// What a block of queries adds to the gradients, for heads of size 1.
    #[inline(always)]
    fn keys_one_by_one(&self, block: &QueryBlock<R>, dq: &mut [Lanes<R>], dk: &mut [R], mut dv: Option<&mut [R]>) {
        let (q, dg, dq) = (&block.q[0], &block.dg[0], &mut dq[0]);
        let k = self.component(self.k, 0);
        for j in 0..self.visible(block.first) {
            let [p, ds] = self.weights_back(block, j);
            let (mut key, mut value) = ([R::ZERO; LANES], [R::ZERO; LANES]);
            for l in 0..LANES {
                dq[l] += ds[l] * k[j];
                key[l] = ds[l] * q[l];
                value[l] = p[l] * dg[l];
            }
            if let Some(dv) = &mut dv {
                dk[j] += sum_of_lanes(key);
                dv[j] += sum_of_lanes(value);
            } else {
                for l in 0..LANES {
                    key[l] += value[l];
                }
                dk[j] += sum_of_lanes(key);
            }
        }
    }

    /// The same for larger heads: sixteen keys at a time, whose weights are turned around, so that the sums over the queries are sums of
    /// lanes of keys, for all components.
    #[inline(always)]
    fn keys_by_tiles(&self, block: &QueryBlock<R>, dq: &mut [Lanes<R>], dk: &mut [R], mut dv: Option<&mut [R]>) {
        let visible = self.visible(block.first);
        for start in (0..visible).step_by(LANES) {
            let keys = LANES.min(visible - start);
            let (mut p_turned, mut ds_turned) = ([[R::ZERO; LANES]; LANES], [[R::ZERO; LANES]; LANES]);
            for j in 0..keys {
                let [p, ds] = self.weights_back(block, start + j);
                for (c, dq) in dq.iter_mut().enumerate() {
                    let k = self.component(self.k, c)[start + j];
                    for l in 0..LANES {
                        dq[l] += ds[l] * k;
                    }
                }
                for l in 0..LANES {
                    (p_turned[l][j], ds_turned[l][j]) = (p[l], ds[l]);
                }
            }
            for (c, (q, dg)) in block.q.iter().zip(block.dg).enumerate() {
                let own = c * self.stride + start..c * self.stride + start + keys;
                let (key, value) = (weighted(&ds_turned, q), weighted(&p_turned, dg));
                let values = if let Some(dv) = &mut dv { &mut dv[own.clone()] } else { &mut dk[own.clone()] };
                values.iter_mut().zip(value).for_each(|(sum, x)| *sum += x);
                dk[own].iter_mut().zip(key).for_each(|(sum, x)| *sum += x);
            }
        }
    }

    /// Adds the gradients of keys and values to `dk` and `dv`, and sets those of queries: the same layout as `q`, `k` and `v`.
    /// With tied values `dv` is `None` and their gradients join the keys'.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        scratch: &mut Scratch<R>,
        (mixed, d_mixed, width): (&[R], &[R], usize),
        softmax: &[Softmax<R>],
        dq: &mut [R],
        dk: &mut [R],
        mut dv: Option<&mut [R]>,
    ) {
        let Scratch { q, g, dg, dq: dq_lanes, .. } = scratch;
        for first in (0..self.n).step_by(LANES) {
            let lanes = LANES.min(self.n - first);
            for list in [&mut *q, g, dg, dq_lanes] {
                list.clear();
                list.resize(self.size, [R::ZERO; LANES]);
            }
            let (mut top, mut scale, mut along) = ([R::ZERO; LANES], [R::ZERO; LANES], [R::ZERO; LANES]);
            for c in 0..self.size {
                q[c] = load(self.component(self.q, c), first);
                for l in 0..lanes {
                    g[c][l] = mixed[(first + l) * width + c];
                    dg[c][l] = d_mixed[(first + l) * width + c];
                }
                for l in 0..LANES {
                    along[l] += dg[c][l] * g[c][l];
                }
            }
            for l in 0..lanes {
                (top[l], scale[l]) = (softmax[first + l].top, R::ONE / softmax[first + l].total);
            }
            let block = QueryBlock { first, q, dg, top, scale, along };
            let dv = dv.as_deref_mut();
            if self.size == 1 {
                self.keys_one_by_one(&block, dq_lanes, dk, dv);
            } else {
                self.keys_by_tiles(&block, dq_lanes, dk, dv);
            }
            for c in 0..self.size {
                dq[c * self.stride + first..][..lanes].copy_from_slice(&dq_lanes[c][..lanes]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    /// Outputs and gradients of queries, keys and values by the plain way and in linear time.
    type BothWays<R> = [[Vec<R>; 2]; 4];

    fn both_ways<R: Real>(n: usize, scale: f64, causal: bool, tied: bool) -> BothWays<R> {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let mut list = |scale: f64| -> Vec<R> {
            (0..n)
                .map(|_| R::from_f64(scale * (rng.random_range(-1.0..1.0_f64) + rng.random_range(-1.0..1.0))))
                .collect()
        };
        let (q, k, own, upstream) = (list(scale), list(scale), list(1.0), list(1.0));
        let v = if tied { k.clone() } else { own };
        let sequence = Sequence { q: &q, k: &k, v: &v, stride: n, n, size: 1, causal };
        assert!(sequence.is_long());
        let zeros = || vec![R::ZERO; n];
        let (mut plain, mut long, mut softmax) = (zeros(), zeros(), vec![Softmax::default(); n]);
        sequence.forward(&mut Scratch::default(), &mut plain, 1, &mut softmax);
        assert!(sequence.forward_long(&mut long, 1));
        let mut found = [(); 2].map(|()| [zeros(), zeros(), zeros()]);
        let [[dq, dk, dv], [long_dq, long_dk, long_dv]] = &mut found;
        let dv = (!tied).then_some(&mut dv[..]);
        sequence.backward(&mut Scratch::default(), (&plain, &upstream, 1), &softmax, dq, dk, dv);
        assert!(sequence.backward_long((&upstream, 1), long_dq, long_dk, (!tied).then_some(&mut long_dv[..])));
        let [[dq, dk, dv], [long_dq, long_dk, long_dv]] = found;
        [[plain, long], [dq, long_dq], [dk, long_dk], [dv, long_dv]]
    }

    fn agree<R: Real>(tolerance: f64) {
        for (scale, causal, tied) in
            [(1.0, false, false), (1.0, true, false), (3.0, false, true), (3.0, true, true), (1e-4, true, false)]
        {
            for (i, [plain, long]) in both_ways::<R>(LONG + 77, scale, causal, tied).iter().enumerate() {
                let largest = plain.iter().fold(0.0, |a: f64, b| a.max(b.to_f64().abs()));
                for (t, (a, b)) in plain.iter().zip(long).enumerate() {
                    let error = (a.to_f64() - b.to_f64()).abs();
                    assert!(error <= tolerance * largest, "{i} {t} {scale} {causal} {tied}: {a:?} {b:?}");
                }
            }
        }
    }

    // The plain way adds up all tokens one after another, which rounds more than the other way.
    #[test]
    fn both_ways_agree_in_f64() {
        agree::<f64>(4.0 * LONG as f64 * f64::EPSILON);
    }

    #[test]
    fn both_ways_agree_in_f32() {
        agree::<f32>(4.0 * LONG as f64 * f64::from(f32::EPSILON));
    }
}
