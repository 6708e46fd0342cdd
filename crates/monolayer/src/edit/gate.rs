//! What holds a new unit shut for every word at every place but its own, whatever the context and the order of summation.

use std::collections::HashMap;
use std::sync::Mutex;

use super::along::Ids;
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, Up, sum_above, sum_below};
use crate::arithmetic::matrix::Matrix;
use crate::memorize::gated::code_points::Codes;
use crate::memorize::gated::stored::Stored;
use crate::memorize::gated::{Unit, alone};

/// Finds gates, and remembers them.
pub struct GateFinder {
    words: Codes,
    places: Option<Codes>,
    /// The largest sum of absolute values of a word's and of a place's code.
    sizes: (Up, Up),
    format: FloatFormat,
    round: fn(f64) -> f64,
    found: [Mutex<HashMap<usize, Option<GatePart>>>; 2],
}

/// Weights on the codes of words, or of places, that one of them has the largest product with.
#[derive(Debug, Clone)]
struct GatePart {
    normal: Vec<f64>,
    /// The product with its own code: a float near it, and how far that is off.
    own: f64,
    off: f64,
    /// At least the product with any other code.
    others: f64,
    /// The largest weight, without its sign.
    largest: f64,
}

/// Weights that are larger in sum at one word and place than at all others.
#[derive(Debug, Clone)]
pub struct Gate {
    /// The weights.
    pub code: Vec<f64>,
    /// The sum at its own token, nearly.
    pub own: f64,
    /// At least the sum at any other token.
    others: f64,
    /// At least the sum of the absolute values of the terms, at any token.
    size: Up,
    format: FloatFormat,
}

impl GateFinder {
    /// For the words and places of a model whose numbers `round` rounds to.
    pub fn new(stored: &Stored, format: FloatFormat, round: fn(f64) -> f64) -> Self {
        let largest = |m: &Matrix<f64>| {
            m.iter_rows().map(|row| row.iter().map(|&x| Up::size(x)).sum::<Up>()).fold(Up::ZERO, Up::max)
        };
        let places = (stored.places.cols > 0).then(|| Codes::new(stored.places.clone()));
        Self {
            words: Codes::new(stored.words.clone()),
            places,
            sizes: (largest(&stored.words), largest(&stored.places)),
            format,
            round,
            found: [Mutex::default(), Mutex::default()],
        }
    }

    /// The gate of a word at a place; none where no weights tell its codes from all others by more than rounding.
    pub fn gate(&self, word: u32, place: usize) -> Option<Gate> {
        let word = self.part(0, &self.words, word as usize)?;
        let place = self.places.as_ref().map(|codes| self.part(1, codes, place));
        let place = match place {
            Some(part) => part?,
            None => GatePart { normal: Vec::new(), own: 0.0, off: 0.0, others: f64::NEG_INFINITY, largest: 0.0 },
        };
        let others = sum_above(word.others, sum_above(place.own, place.off).max(place.others))
            .max(sum_above(sum_above(word.own, word.off), place.others));
        let size = Up::new(word.largest) * self.sizes.0 + Up::new(place.largest) * self.sizes.1;
        let code = [word.normal, place.normal].concat();
        Some(Gate { code, own: word.own + place.own, others, size, format: self.format })
    }

    fn part(&self, which: usize, codes: &Codes, number: usize) -> Option<GatePart> {
        if let Some(found) = self.found[which].lock().expect("no panic with the lock").get(&number) {
            return found.clone();
        }
        let part = self.find(codes, number);
        self.found[which].lock().expect("no panic with the lock").insert(number, part.clone());
        part
    }

    fn find(&self, codes: &Codes, number: usize) -> Option<GatePart> {
        let all: Vec<(u32, u32)> = (0..codes.count() as u32).map(|i| (i, 0)).collect();
        let normal: Vec<f64> = alone(codes, &all, number)?.normal.into_iter().map(self.round).collect();
        let product = |i: usize| {
            let terms = || normal.iter().zip(codes.row(i)).map(|(w, x)| w * x);
            let size: Up = Up::new(terms().map(f64::abs).sum::<f64>() * (1.0 + 1e-9));
            (terms().sum::<f64>(), DOUBLE.sum_error(normal.len(), size).get())
        };
        let (own, off) = product(number);
        let other = |i: usize| {
            let (value, off) = product(i);
            sum_above(value, off)
        };
        let others = 0..codes.count();
        let others = match codes.sign_products(&normal) {
            // All have terms of the same sizes.
            Some(all) => {
                others.filter(|&i| i != number).map(|i| sum_above(all[i], off)).fold(f64::NEG_INFINITY, f64::max)
            }
            None => others.filter(|&i| i != number).map(other).fold(f64::NEG_INFINITY, f64::max),
        };
        let largest = normal.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        (sum_below(own, -off) > others && largest.is_finite()).then_some(GatePart { normal, own, off, others, largest })
    }
}

impl Gate {
    /// How much lower the sum is at every other token, at least; infinite where there is none.
    pub fn drop(&self) -> f64 {
        sum_below(self.own, -self.others)
    }

    /// Whether a unit with these weights on codes certainly computes nothing above 0 at every other token, for all ids of a range.
    pub fn shuts(&self, unit: &Unit, (low, high): Ids) -> bool {
        let ids = Up::size(unit.id) * Up::size(low).max(Up::size(high));
        let size = self.size + Up::size(unit.bias) + ids;
        let terms = self.code.len() + 2;
        let error = self.format.sum_error(terms, size) + DOUBLE.sum_error(4, size);
        let id = (unit.id * low).max(unit.id * high);
        self.others == f64::NEG_INFINITY || sum_above(self.others + unit.bias + id, error.get()) <= 0.0
    }
}
