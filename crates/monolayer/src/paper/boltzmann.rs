//! The Boltzmann operator `boltz(a) = a . softmax(a)` (13), (21), (80), its derivatives, and the function `g` that a rank-1 attention
//! layer computes with it.
//!
//! All formulas are written in the offsets `t_i = max a - a_i >= 0`: with weights `w_i = e^-t_i`, `Z = sum w_i`,
//! `p_i = w_i / Z` and `h = sum t_i p_i`, the operator is `max a - h`, and neither huge nor close numbers do harm.

use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Number};
use crate::error::{Error, Result};

/// The Boltzmann operator and its derivatives at one point, in floats.
#[derive(Debug, Clone, PartialEq)]
pub struct Boltzmann {
    max: f64,
    /// The offsets `t_i`; infinite where the difference of two floats is.
    offsets: Vec<f64>,
    /// The softmax of the point.
    pub probabilities: Vec<f64>,
    /// `log Z = log sum e^-t_i`.
    log_z: f64,
    /// `h = max a - boltz(a)`.
    h: f64,
}

impl Boltzmann {
    /// Evaluates at `a`, one or more finite numbers.
    pub fn at(a: &[f64]) -> Result<Self> {
        if let Some(i) = a.iter().position(|x| !x.is_finite()) {
            return Err(Error::undefined(
                format!("the Boltzmann operator is undefined at {}, element {i}", a[i]),
                "give finite numbers",
            ));
        }
        let max = a.iter().copied().reduce(f64::max).ok_or_else(nothing)?;
        let offsets: Vec<f64> = a.iter().map(|x| max - x).collect();
        let weights: Vec<f64> = offsets.iter().map(|t| core_math::exp(-t)).collect();
        let z: f64 = weights.iter().sum();
        let probabilities: Vec<f64> = weights.iter().map(|w| w / z).collect();
        // A weight of 0 leaves nothing of an offset, even of an infinite one.
        let h = offsets.iter().zip(&probabilities).filter(|&(_, &p)| p > 0.0).map(|(t, p)| t * p).sum();
        Ok(Self { max, offsets, probabilities, log_z: core_math::log(z), h })
    }

    /// `boltz(a)`.
    pub fn value(&self) -> f64 {
        self.max - self.h
    }

    /// The partition function (81): `log sum e^a_i`.
    pub fn log_partition(&self) -> f64 {
        self.max + self.log_z
    }

    /// The entropy (82) of the softmax, by (85): the log-partition function minus the value.
    pub fn entropy(&self) -> f64 {
        self.log_z + self.h
    }

    /// `1 + a_i - boltz(a)`, whose sign is the derivative's.
    fn slope(&self, i: usize) -> f64 {
        1.0 + self.h - self.offsets[i]
    }

    /// The partial derivatives (83): `p_i (1 + log p_i + S(p))`, evaluated as `p_i (1 + a_i - boltz(a))`, which is equal by (85).
    pub fn gradient(&self) -> Vec<f64> {
        (0..self.offsets.len()).map(|i| weighted(self.probabilities[i], self.slope(i))).collect()
    }

    /// The second derivative (97) in direction `i`: `p_i ((1 - 2 p_i) (log p_i + S(p) + 1) + 1)`, evaluated with `a_i - boltz(a)` for
    /// `log p_i + S(p)`.
    pub fn second_derivative(&self, i: usize) -> f64 {
        let p = self.probabilities[i];
        weighted(p, 1.0 + (1.0 - 2.0 * p) * self.slope(i))
    }

    /// The mixed derivative in directions `i` and `j`: `-p_i p_j (2 + a_i + a_j - 2 boltz(a))` off the diagonal.
    pub fn mixed_derivative(&self, i: usize, j: usize) -> f64 {
        if i == j {
            return self.second_derivative(i);
        }
        let (p, q) = (self.probabilities[i], self.probabilities[j]);
        -(weighted(p, self.slope(i)) * q + weighted(q, self.slope(j)) * p)
    }
}

/// `p x`, and 0 for `p = 0` even if `x` is infinite.
fn weighted(p: f64, x: f64) -> f64 {
    if p == 0.0 { 0.0 } else { p * x }
}

/// The error of an operator that needs a number.
fn nothing() -> Error {
    Error::undefined("the Boltzmann operator of no numbers is undefined", "give at least one number")
}

/// The mean of `values` with weights `e^scores`.
///
/// Scores are shifted by the largest one, values by the value there: both shifts are exact points.
fn softmax_mean<N: Number>(values: &[N], scores: &[N]) -> Result<N> {
    let top = scores.iter().cloned().reduce(|x, y| x.max(&y)).ok_or_else(nothing)?.midpoint();
    let largest = scores.iter().position(|s| !s.midpoint().certainly_less(&top)).unwrap_or(0);
    let center = values[largest].midpoint();
    let (mut sum, mut z) = (N::zero(), N::zero());
    for (value, score) in values.iter().zip(scores) {
        let weight = (score.clone() - &top).exp();
        sum = sum + (value.clone() - &center) * &weight;
        z = z + weight;
    }
    Ok(center + sum / z)
}

/// `boltz(a) = a . softmax(a)`; for floats whose difference overflows use [`Boltzmann::at`].
pub fn boltz<N: Number>(a: &[N]) -> Result<N> {
    softmax_mean(a, a)
}

/// The log-partition function `log sum e^a_i`.
pub fn log_partition<N: Number>(a: &[N]) -> Result<N> {
    let top = a.iter().cloned().reduce(|x, y| x.max(&y)).ok_or_else(nothing)?.midpoint();
    let z = a.iter().fold(N::zero(), |z, x| z + (x.clone() - &top).exp());
    Ok(top + z.ln())
}

/// What rank-1 attention reads: `g(y) = sum p_i e^(y p_i) / sum e^(y p_i)` for projected tokens `p` and a query's `y`.
///
/// It is the derivative of the log-partition function of `y p`, and `y g(y) = boltz(y p)`.
pub fn g<N: Number>(p: &[N], y: &N) -> Result<N> {
    softmax_mean(p, &scores(p, y))
}

/// The derivative of [`g`]: the variance of `p` under the softmax of `y p`, never negative.
pub fn g_derivative<N: Number>(p: &[N], y: &N) -> Result<N> {
    let mean = g(p, y)?;
    let square = |x: &N| {
        let deviation = (x.clone() - &mean).abs();
        deviation.clone() * deviation
    };
    softmax_mean(&p.iter().map(square).collect::<Vec<_>>(), &scores(p, y))
}

/// The scores `y p_i`.
fn scores<N: Number>(p: &[N], y: &N) -> Vec<N> {
    p.iter().map(|x| x.clone() * y).collect()
}

/// A value of one or both of two multisets, with its multiplicities.
struct Element {
    value: f64,
    in_a: f64,
    in_b: f64,
}

/// The distinct values of two multisets in decreasing order.
fn merge(a: &[f64], b: &[f64]) -> Vec<Element> {
    let counted = a.iter().map(|&value| Element { value, in_a: 1.0, in_b: 0.0 });
    let mut elements: Vec<Element> =
        counted.chain(b.iter().map(|&value| Element { value, in_a: 0.0, in_b: 1.0 })).collect();
    sorting::sort_by(&mut elements, |x, y| y.value.total_cmp(&x.value));
    elements.dedup_by(|next, kept| {
        let same = next.value == kept.value;
        if same {
            kept.in_a += next.in_a;
            kept.in_b += next.in_b;
        }
        same
    });
    elements
}

/// `boltz(a) - boltz(b)`, of multisets, without the cancellation that would cost as many bits as the difference is small.
///
/// For equal maxima of multiplicities `m_0`, `m'_0`, with `h` and `h'` the offsets of the operator from the maximum,
/// `h - h' = sum (m_j m'_0 - m'_j m_0) (t_j - h') w_j / (m'_0 sum m_j w_j)`: what the multisets share drops out exactly.
pub fn difference(a: &[f64], b: &[f64], precision: usize) -> Result<Ball> {
    let ball = |x: f64| Ball::new(x, precision);
    let elements = merge(a, b);
    let top = elements.first().filter(|_| !a.is_empty() && !b.is_empty()).ok_or_else(nothing)?;
    if top.in_a == 0.0 || top.in_b == 0.0 {
        let balls = |x: &[f64]| x.iter().map(|&x| ball(x)).collect::<Vec<_>>();
        return Ok(boltz(&balls(a))? - boltz(&balls(b))?);
    }
    let offsets: Vec<Ball> = elements.iter().map(|e| ball(top.value) - ball(e.value)).collect();
    let weights: Vec<Ball> = offsets.iter().map(|t| (-t.clone()).exp()).collect();
    let sum = |term: &dyn Fn(usize) -> Ball| (0..elements.len()).map(term).fold(Ball::zero(), |x, y| x + y);

    let h_b =
        sum(&|j| ball(elements[j].in_b) * &offsets[j] * &weights[j]) / sum(&|j| ball(elements[j].in_b) * &weights[j]);
    let numerator = sum(&|j| {
        let surplus = elements[j].in_a * top.in_b - elements[j].in_b * top.in_a;
        ball(surplus) * (offsets[j].clone() - &h_b) * &weights[j]
    });
    let denominator = ball(top.in_b) * sum(&|j| ball(elements[j].in_a) * &weights[j]);
    Ok(-(numerator / denominator))
}
