//! Where the ids lie among the floats, and how far a computed one can be from the true one.
//!
//! Everything is measured in quanta: one quantum is the distance of neighboring floats where ids are. The quantizer puts a
//! token of code A at `C + F U A`, F quanta to a unit, C so large that ids lie between 2^52 and 2^53 quanta. There a float is
//! a whole number of quanta, whatever was rounded before, and the sums of the read-out can be exact in any order.

use super::codes::CellCodes;
use super::quantizer::Quantizer;
use crate::arithmetic::Interval;
use crate::arithmetic::float_model::{DOUBLE, Up};
use crate::arithmetic::softmax_error::{normalized, product_error, weight_error};

/// Ids lie from here on, in quanta.
pub const FIRST: f64 = (1_u64 << 52) as f64;
/// Computed ids may lie so far below the first, in quanta, and still above 2^52.
const MARGIN: f64 = (1_u64 << 28) as f64;
/// The room for ids, in quanta: an eighth of the binade.
pub const ROOM: f64 = (1_u64 << 49) as f64;
/// The part of the gap between two ids that a ramp takes.
pub const RAMP: f64 = 0.25;

/// What a quantum is at least, so that the coordinates of tokens are small beside ids.
pub const SMALLEST_QUANTUM: f64 = 1.0 / (1_u64 << 40) as f64;

/// The scales of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Tokens of a sequence: n.
    pub length: usize,
    /// Quanta to a unit of codes, a power of two: F.
    pub unit: f64,
    /// The quantizer's output at code 0, in quanta: C.
    pub offset: f64,
    /// What the own code counts more: U.
    pub own: f64,
    /// The largest code: R.
    pub largest: f64,
    /// Keys per quantum, a power of two.
    pub key: f64,
    /// Queries are this many times keys.
    pub kappa: f64,
}

impl Layout {
    /// The layout with `unit` quanta to a unit; `None` if ids do not fit.
    pub fn new(codes: &CellCodes, length: usize, unit: f64) -> Option<Self> {
        let (n, own, largest) = (length as f64, codes.own as f64, codes.largest as f64);
        // Ids start at C + n C / U; both terms are whole numbers of quanta.
        let step = own.max(65_536.0);
        let offset = ((FIRST + MARGIN) * own / (own + n) / step).ceil() * step;
        let mut layout = Self { length, unit, offset, own, largest, key: 0.0, kappa: 1.0 };
        if layout.last() > FIRST + ROOM || unit * own * largest >= FIRST {
            return None;
        }
        if codes.contrast == 0.0 {
            // Keys so small that softmax bends ids by less than a hundredth of a unit, and at most about 1.
            let near = |key: f64| Self { key, ..layout.clone() }.bend() < 0.01;
            layout.key = (0..200).map(|e| (-f64::from(e)).exp2() / FIRST).find(|&key| near(key))?;
        } else {
            // kappa (key C) (key F U R) is the contrast, with kappa from 1 to 4.
            let product = codes.contrast / (offset * unit * own * largest);
            layout.key = (product.log2() / 2.0).floor().exp2();
            layout.kappa = product / (layout.key * layout.key);
        }
        Some(layout)
    }

    /// The id of the smallest code everywhere, in quanta: a whole number.
    pub fn first(&self) -> f64 {
        self.offset + self.length as f64 * self.offset / self.own
    }

    /// The id of the largest code everywhere, in quanta.
    pub fn last(&self) -> f64 {
        self.first() + self.unit * (self.own + self.length as f64) * self.largest
    }

    /// How far codes move a token, and the largest token, in quanta.
    fn reach(&self) -> (Up, Up) {
        let rise = Up::new(self.unit) * Up::new(self.own) * Up::new(self.largest);
        (rise, Up::new(self.offset) + rise)
    }

    /// By how much scores of one query can differ.
    fn contrast(&self) -> Up {
        let ((rise, top), key) = (self.reach(), Up::new(self.key));
        Up::new(self.kappa) * key * top * key * rise
    }

    /// How far, in units, softmax can bend an id away from the one with even weights: weights are within a factor
    /// `e^contrast` of 1 / n.
    pub fn bend(&self) -> f64 {
        let excess = Interval::point(self.contrast().get()).exp() - Interval::point(1.0);
        (Up::count(self.length) * Up::new(excess.hi()) * Up::new(self.largest)).over(2.0).get()
    }

    /// How far a computed id can be from the true one, in quanta, in any order of summation, for tokens on plateaus of the
    /// quantizer (the steps are those of [`crate::arithmetic::softmax_error`]). Infinite where nothing is known.
    pub fn id_error(&self, quantizer: &Quantizer) -> f64 {
        let (u, n) = (Up::new(DOUBLE.u), self.length);
        let (rise, top) = self.reach();
        let e_z = quantizer.rounding(top);
        // Keys and values p, queries q = kappa p; the key is a power of two, so p rounds nowhere.
        let (key, kappa) = (Up::new(self.key), Up::new(self.kappa));
        let p = key * (top + e_z);
        let e_p = key * e_z;
        let e_q = kappa * (e_p + u * p);
        let e_a = product_error(&DOUBLE, (p, e_p), (kappa * p, e_q));
        let e_b = Up::count(2) * e_a + u * (self.contrast() + Up::count(4) * e_a);
        let theta = weight_error(&DOUBLE, e_b);
        if !theta.is_known() || theta.get() > 0.5 {
            return f64::INFINITY;
        }
        let spread = key * rise + e_p + e_p;
        let sums = (DOUBLE.gamma(n) + DOUBLE.gamma(n + 2)) * p * (Up::count(1) + theta + theta);
        let e_g = normalized(theta) * spread + sums + e_p;
        let value = Up::count(n).over(self.own).over(self.key);
        (e_z + value * (e_g + u * (p + e_g)) + u * Up::new(self.last())).get()
    }
}
