//! How far a softmax-weighted mean that a program computes can be from the true one: the one chain of bounds that all proofs
//! of the compiler go through.
//!
//! A program forms keys `p_i` and a query `y`, each off by `e_k` and `e_q` at most; scores `y p_i`, one product each; subtracts
//! the largest score; takes exponentials within [`EXP_ULP`] units in the last place; and forms two sums in any order and
//! quotients before or after the second. With the unit roundoff u:
//!
//! 1. **A product** of two numbers that are off ([`product_error`]):
//!    `|(y + a)(p + b)(1 + c) - y p| <= p |a| + y |b| + |a b| + u (y + |a|)(p + |b|)` for `|a| <= e_q`, `|b| <= e_k`, `|c| <= u`.
//! 2. **A weight** ([`weight_error`]). A score that is off by `s` multiplies the exponential by `e^s`, and the exponential's own
//!    error is a factor of `1 + 2 EXP_ULP u` at most, so that the weight is off by a factor of `1 + theta`,
//!    `theta = e^s (1 + 2 EXP_ULP u) - 1 <= (s + 2 EXP_ULP u) / (1 - s)`, by `e^s <= 1 / (1 - s)`. The largest score is the same
//!    number for all weights, and cancels: only the rounding of the difference counts.
//! 3. **A normalized weight** ([`normalized`]). With weights `w_i (1 + t_i)`, `|t_i| <= theta`, the mean of values x is off by
//!    `|sum w_i t_i (x_i - g)| / sum w_i (1 + t_i) <= theta / (1 - theta)` times the mean of `|x_i - g|`: what is common to all
//!    values costs nothing.
//! 4. **Sums** of n weights and of n products, in any order, are off by factors of `gamma(n)` and `gamma(n + 1)`
//!    ([`FloatFormat::gamma`]); values by `e_k`; and what underflows is counted apart.

use super::float_model::{ANY_GRID, FloatFormat, Up, grid};

/// The exponential is trusted to so many units in the last place.
pub const EXP_ULP: f64 = 4.0;

/// Step 1: how far the rounded product of x and y can be from that of the true numbers, for `(x, e_x)` and `(y, e_y)`: the
/// sizes, and how far each is off. Underflow is not counted.
pub fn product_error(format: &FloatFormat, (x, e_x): (Up, Up), (y, e_y): (Up, Up)) -> Up {
    let u = Up::new(format.u);
    y * e_x + x * e_y + e_x * e_y + u * (x + e_x) * (y + e_y)
}

/// Step 2: how far, relatively, the weight of a score can be off that is off by `shift`.
pub fn weight_error(format: &FloatFormat, shift: Up) -> Up {
    (shift + Up::new(2.0 * EXP_ULP) * Up::new(format.u)).over(shift.below_one())
}

/// Step 3: the same for weights over their sum, where each was off by `theta`.
pub fn normalized(theta: Up) -> Up {
    theta.over(theta.below_one())
}

/// An inner product with a code: its value in double precision, the sum of the absolute values of its terms, and the grid
/// on which they lie.
#[derive(Debug, Clone, Copy)]
pub struct InnerProduct {
    /// Its value in double precision.
    pub value: f64,
    /// The sum of the absolute values of its terms.
    pub size: Up,
    /// The terms are multiples of 2 to this power.
    pub grid: i32,
}

impl InnerProduct {
    /// The inner product of weights with a code.
    pub fn new(weights: &[f64], code: &[f64]) -> Self {
        let terms = || weights.iter().zip(code);
        Self {
            value: terms().map(|(w, x)| w * x).sum(),
            size: terms().map(|(&w, &x)| Up::size(w) * Up::size(x)).sum(),
            grid: (grid(weights) + grid(code)).min(ANY_GRID),
        }
    }

    /// The sum with another, in coordinates of its own.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, size: self.size + other.size, grid: self.grid.min(other.grid) }
    }

    /// How far a computed product can be from the true one.
    pub fn error(&self, format: &FloatFormat, terms: usize) -> Up {
        if format.is_exact(self.grid, self.size) { Up::ZERO } else { format.sum_error(terms, self.size) }
    }
}

/// The sizes that decide how far a softmax-weighted mean is rounded.
#[derive(Debug, Clone, Copy)]
pub struct Softmax {
    /// How many tokens are seen.
    pub length: usize,
    /// Terms of a projection.
    pub terms: usize,
    /// The largest `|p_i|`.
    pub largest: Up,
    /// `|y|`.
    pub query_size: Up,
    /// The projection with the worst rounding.
    pub key: InnerProduct,
    /// The query's.
    pub query: InnerProduct,
}

/// How far a computed mean can be from the true one, but for the part that grows with the deviation of the values.
pub struct SoftmaxRounding {
    /// The relative error of the weights before they are divided by their sum.
    pub theta: Up,
    /// The same of the weights after.
    pub weights: Up,
    /// The error of a value.
    pub key: Up,
    /// What sums add, relatively.
    pub sums: Up,
    /// What underflow adds.
    pub lost: Up,
}

impl SoftmaxRounding {
    /// What comes on top of the part that grows with the deviation.
    pub fn rest(&self, absolute: Up) -> Up {
        let grown = absolute * (Up::count(1) + self.theta).over(self.theta.below_one());
        self.key + self.sums * (grown + self.key) + self.lost
    }
}

impl Softmax {
    /// A mean over so many tokens, of projections of so many terms whose absolute values add up to `key` and `query` at most.
    pub fn new(length: usize, terms: usize, key: Up, query: Up) -> Self {
        // On no grid: every sum rounds.
        let product = |size: Up| InnerProduct { value: 0.0, size, grid: i32::MIN };
        Self { length, terms, largest: key, query_size: query, key: product(key), query: product(query) }
    }

    /// How far a computed mean can be from the true one, for means of `|p_i - g|` and of `|p_i|` of these sizes.
    pub fn error(&self, format: &FloatFormat, deviation: Up, absolute: Up) -> Up {
        let rounding = self.rounding(format);
        rounding.weights * deviation + rounding.rest(absolute)
    }

    /// The rounding of a program in machine numbers of a format.
    pub fn rounding(&self, format: &FloatFormat) -> SoftmaxRounding {
        let (u, n) = (Up::new(format.u), self.length);
        let (e_k, e_q) = (self.key.error(format, self.terms), self.query.error(format, self.terms));
        let (p, y) = (self.largest, self.query_size);
        let score = product_error(format, (y, e_q), (p, e_k)) + Up::new(format.subnormal());
        // The largest score is the same number for all, so that only the difference's own rounding matters.
        let largest = p * y + score;
        let shift = score + u * (largest + largest);
        let theta = if shift.get() < 0.25 { weight_error(format, shift) } else { Up::UNKNOWN };
        let (total, mean) = (format.gamma(n), format.gamma(n + 1));
        let sums = (total + mean).over(total.below_one());
        // Exponentials below the smallest normal number may come out as 0, and so may quotients; products lose their last
        // bits. The weights add up to 1/2 at least before they are divided.
        let lost =
            Up::count(8 * n) * Up::new(format.smallest) * (p + e_k) + Up::count(4 * n) * Up::new(format.subnormal());
        let fits = (Up::count(2 * n) * (p + e_k)).max(largest).get() <= format.largest / 4.0;
        let lost = if fits && theta.get() < 0.5 { lost } else { Up::UNKNOWN };
        SoftmaxRounding { theta, weights: normalized(theta), key: e_k, sums, lost }
    }
}
