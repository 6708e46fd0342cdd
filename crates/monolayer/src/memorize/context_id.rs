//! The id of a token, `g = sum_i p_i e^(y p_i) / sum_i e^(y p_i)`: a float near it, and how far a program's can be from that.
//!
//! A program computes keys, values and the query as sums of products in any order, each score as one product, subtracts
//! the largest score, takes exponentials within [`EXP_ULP`] units in the last place, and forms two sums in any order and
//! quotients before or after the second. The float here is the result of one such program in double precision, so the same
//! bound holds for it.

use rayon::prelude::*;

use super::gated::stored::Stored;
use crate::arithmetic::float_model::{ANY_GRID, DOUBLE, Format, Up, grid};
use crate::arithmetic::matrix::Matrix;
use crate::context_map::View;

/// The exponential is trusted to so many units in the last place.
pub const EXP_ULP: f64 = 4.0;

/// An inner product with a code: its value in double precision, the sum of the absolute values of its terms, and the grid
/// on which they lie.
#[derive(Debug, Clone, Copy)]
struct Product {
    value: f64,
    size: Up,
    grid: i32,
}

impl Product {
    fn new(weights: &[f64], code: &[f64]) -> Self {
        let terms = || weights.iter().zip(code);
        Self {
            value: terms().map(|(w, x)| w * x).sum(),
            size: terms().map(|(&w, &x)| Up::size(w) * Up::size(x)).sum(),
            grid: (grid(weights) + grid(code)).min(ANY_GRID),
        }
    }

    /// The inner product with a word and its place, in coordinates of their own.
    fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, size: self.size + other.size, grid: self.grid.min(other.grid) }
    }

    /// How far a computed product can be from the true one.
    fn error(&self, format: &Format, terms: usize) -> Up {
        if format.is_exact(self.grid, self.size) { Up::ZERO } else { format.sum_error(terms, self.size) }
    }
}

/// The inner products of all words and places with some weights.
struct Products {
    words: Vec<Product>,
    places: Vec<Product>,
}

impl Products {
    fn new(stored: &Stored, weights: &[f64]) -> Self {
        let (word, place) = weights.split_at(stored.words.cols);
        let products = |codes: &Matrix<f64>, w: &[f64]| -> Vec<Product> {
            (0..codes.rows).map(|i| Product::new(w, codes.row(i))).collect()
        };
        Self { words: products(&stored.words, word), places: products(&stored.places, place) }
    }

    fn at(&self, word: u32, place: usize) -> Product {
        // Where there are no positions, the only row of places is empty.
        self.words[word as usize].plus(self.places[place.min(self.places.len() - 1)])
    }
}

/// What is known of the id of a token.
#[derive(Debug, Clone, Copy)]
pub struct Id {
    /// A float near it.
    pub center: f64,
    /// How far the center can be from the id.
    off: Up,
    /// The mean of `|p_i - g|` and of `|p_i|` under the weights.
    deviation: Up,
    absolute: Up,
    softmax: Softmax,
}

/// The sizes that decide how far a softmax-weighted mean is rounded.
#[derive(Debug, Clone, Copy)]
pub struct Softmax {
    /// How many tokens are seen.
    length: usize,
    /// Terms of a projection.
    terms: usize,
    /// The largest `|p_i|`, and `|y|`.
    largest: Up,
    query_size: Up,
    /// The projection with the worst rounding, and the query's.
    key: Product,
    query: Product,
}

/// How far a computed mean can be from the true one, but for the part that grows with the deviation of the values.
struct Rounding {
    /// The relative error of the weights, and the same over 1 less it.
    theta: Up,
    weights: Up,
    /// What sums and values add, for a mean of `|p_i|` that is at most `absolute`.
    key: Up,
    sums: Up,
    lost: Up,
}

impl Rounding {
    fn rest(&self, absolute: Up) -> Up {
        let grown = absolute * (Up::count(1) + self.theta).over(self.theta.from_one());
        self.key + self.sums * (grown + self.key) + self.lost
    }
}

impl Softmax {
    /// A mean over so many tokens, of projections of so many terms whose absolute values add up to `key` and `query` at most.
    pub fn new(length: usize, terms: usize, key: Up, query: Up) -> Self {
        // On no grid: every sum rounds.
        let product = |size: Up| Product { value: 0.0, size, grid: i32::MIN };
        Self { length, terms, largest: key, query_size: query, key: product(key), query: product(query) }
    }

    /// How far a computed mean can be from the true one, for means of `|p_i - g|` and of `|p_i|` of these sizes.
    pub fn error(&self, format: &Format, deviation: Up, absolute: Up) -> Up {
        let rounding = self.rounding(format);
        rounding.weights * deviation + rounding.rest(absolute)
    }

    /// The rounding of a program in machine numbers of a format.
    fn rounding(&self, format: &Format) -> Rounding {
        let (u, n) = (Up::new(format.u), self.length);
        let (e_k, e_q) = (self.key.error(format, self.terms), self.query.error(format, self.terms));
        let (p, y) = (self.largest, self.query_size);
        let score = y * e_k + p * e_q + e_k * e_q + u * (y + e_q) * (p + e_k) + Up::new(format.subnormal());
        // The largest score is the same number for all, so that only the difference's own rounding matters.
        let largest = p * y + score;
        let shift = score + u * (largest + largest);
        // e^s (1 + 2 EXP_ULP u) - 1, by e^s <= 1 / (1 - s).
        let ulps = Up::new(2.0 * EXP_ULP) * u;
        let theta = if shift.get() < 0.25 { (shift + ulps).over(shift.from_one()) } else { Up::UNKNOWN };
        let (total, mean) = (format.gamma(n), format.gamma(n + 1));
        let sums = (total + mean).over(total.from_one());
        // Exponentials below the smallest normal number may come out as 0, and so may quotients; products lose their last
        // bits. The weights add up to 1/2 at least before they are divided.
        let lost =
            Up::count(8 * n) * Up::new(format.smallest) * (p + e_k) + Up::count(4 * n) * Up::new(format.subnormal());
        let fits = (Up::count(2 * n) * (p + e_k)).max(largest).get() <= format.largest / 4.0;
        let lost = if fits && theta.get() < 0.5 { lost } else { Up::UNKNOWN };
        Rounding { theta, weights: theta.over(theta.from_one()), key: e_k, sums, lost }
    }
}

impl Id {
    /// The id that a query `y` reads off projections, of which `key` bounds the rounding.
    fn new(p: &[f64], key: Product, query: Product, terms: usize) -> Self {
        let y = query.value;
        let top = p.iter().map(|p| y * p).fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut sum, mut absolute) = (0.0, 0.0, 0.0);
        let weights: Vec<f64> = p.iter().map(|p| core_math::exp(y * p - top)).collect();
        for (w, p) in weights.iter().zip(p) {
            total += w;
            sum += w * p;
            absolute += w * p.abs();
        }
        let center = sum / total;
        let deviation: f64 = weights.iter().zip(p).map(|(w, p)| w * (p - center).abs()).sum();
        let largest = p.iter().fold(0.0_f64, |m, p| m.max(p.abs()));
        let softmax = Softmax {
            length: p.len(),
            terms,
            largest: Up::size(largest) + key.error(&DOUBLE, terms),
            query_size: Up::size(y) + query.error(&DOUBLE, terms),
            key,
            query,
        };
        // What was computed here is off by as much as double precision allows.
        let own = softmax.rounding(&DOUBLE);
        let summed = DOUBLE.gamma(2 * p.len() + 8);
        let grown = (Up::count(1) + own.theta).over(own.theta.from_one()).over(summed.from_one());
        let mean = |sum: f64| Up::new(sum / total) * grown + own.key + own.lost;
        let (about_center, absolute) = (mean(deviation), mean(absolute));
        // |center - g| <= weights (mean |p - g|) + rest, and mean |p - g| <= mean |p - center| + |center - g|.
        let off = (own.weights * about_center + own.rest(absolute)).over(own.weights.from_one());
        let off = if center.is_finite() { off } else { Up::UNKNOWN };
        Self { center, off, deviation: about_center + off, absolute, softmax }
    }

    /// How far the id that a program computes can be from the center.
    pub fn error(&self, format: &Format) -> Up {
        self.off + self.softmax.error(format, self.deviation, self.absolute)
    }
}

/// The ids of some tokens.
pub fn ids(view: &View, stored: &Stored, tokens: &[usize]) -> Vec<Id> {
    let (keys, queries) = (Products::new(stored, &stored.key), Products::new(stored, &stored.query));
    let terms = stored.key.len();
    let mut p = Vec::with_capacity(view.ids.len());
    // The worst of each sequence stands for what any of its tokens sees.
    let mut worst = Vec::with_capacity(view.offsets.len());
    for window in view.offsets.windows(2) {
        let mut sequence = Product { value: 0.0, size: Up::ZERO, grid: ANY_GRID };
        for (place, &word) in view.ids[window[0]..window[1]].iter().enumerate() {
            let key = keys.at(word, place);
            p.push(key.value);
            sequence.size = sequence.size.max(key.size);
            sequence.grid = sequence.grid.min(key.grid);
        }
        worst.push(sequence);
    }
    let id = |&t: &usize| {
        let (sequence, place) = view.place(t);
        Id::new(&p[view.visible(t)], worst[sequence], queries.at(view.ids[t], place), terms)
    };
    tokens.par_iter().map(id).collect()
}
