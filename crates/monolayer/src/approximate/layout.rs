//! Where the ids lie among the floats, and how far a computed one can be from the true one.
//!
//! Everything is measured in quanta: one quantum is the distance of neighboring floats where ids are. The quantizer puts a
//! token of code A at `C + F U A`, F quanta to a unit, C so large that ids lie between 2^52 and 2^53 quanta. There a float is
//! a whole number of quanta, whatever was rounded before, and the sums of the read-out can be exact in any order.

use super::codes::Codes;
use super::quantizer::Quantizer;
use crate::memorize::gated::proof::EXP_ULP;

/// Unit roundoff of double precision.
const ROUNDOFF: f64 = f64::EPSILON / 2.0;
/// Covers the rounding of the bounds themselves.
const SLACK: f64 = 1.001;
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
    pub fn new(codes: &Codes, length: usize, unit: f64) -> Option<Self> {
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

    /// How many quanta of an id a quantum of a key's token counts, over all tokens: n / U.
    fn share(&self) -> f64 {
        self.length as f64 / self.own
    }

    /// By how much scores of one query can differ.
    fn contrast(&self) -> f64 {
        let top = self.offset + self.unit * self.own * self.largest;
        SLACK * self.kappa * self.key * top * self.key * (top - self.offset)
    }

    /// How far, in units, softmax can bend an id away from the one with even weights: weights are within a factor
    /// `e^contrast` of 1 / n.
    pub fn bend(&self) -> f64 {
        SLACK * self.length as f64 * self.contrast().exp_m1() * self.largest / 2.0
    }

    /// How far a computed id can be from the true one, in quanta, in any order of summation, for tokens on plateaus of the
    /// quantizer (THEORY of rounding: docs/format.md).
    pub fn id_error(&self, quantizer: &Quantizer) -> f64 {
        let u = ROUNDOFF;
        let n = self.length as f64;
        let top = self.offset + self.unit * self.own * self.largest;
        let e_z = quantizer.rounding(top);
        // Keys and values p, queries q = kappa p; the key is a power of two, so p rounds nowhere.
        let p = self.key * (top + e_z);
        let e_p = self.key * e_z;
        let e_q = self.kappa * (e_p + u * p);
        let e_a = p * e_q + self.kappa * p * e_p + e_p * e_q + u * (p + e_p) * (self.kappa * p + e_q);
        let e_b = 2.0 * e_a + u * (self.contrast() + 4.0 * e_a);
        let theta = SLACK * (e_b.exp_m1() + 2.0 * EXP_ULP * u * (1.0 + e_b.exp_m1()));
        if theta > 0.5 {
            return f64::INFINITY;
        }
        let spread = self.key * (top - self.offset) + 2.0 * e_p;
        let e_g = theta / (1.0 - theta) * spread + (gamma(n) + gamma(n + 2.0)) * p * (1.0 + 2.0 * theta) + e_p;
        let value = self.share() / self.key;
        SLACK * (e_z + value * (e_g + u * (p + e_g)) + u * self.last())
    }
}

/// `k u / (1 - k u)`.
pub fn gamma(k: f64) -> f64 {
    k * ROUNDOFF / (1.0 - k * ROUNDOFF)
}
