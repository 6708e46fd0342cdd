//! The universal approximator (eq. 19) in enclosures: quantizer, attention, read-out, for tokens whose coordinates are known up
//! to a plateau of the quantizer.

use super::parts::Part;
use crate::attention::{Tokens, attend};
use crate::big::forward::Exact;
use crate::big::number;
use crate::dot::Care;
use crate::hinges::{Hinges, Unit};
use crate::interval::Interval;
use crate::model::{Attention, FeedForward, Model};
use crate::readout::{Readout, Reads};
use crate::rounding::{Precision, Rounding, first_place, last_bit, power_of_two, up};

/// Bits where f64 enclosures are too coarse.
const BITS: usize = 160;
/// Sums beyond this may overflow.
const LARGEST: f64 = 1e300;
/// Unit roundoff of binary64.
const UNIT: f64 = f64::EPSILON / 2.0;

/// A model of the kind of eq. 19.
pub struct Network<'a> {
    model: &'a Model,
    attention: &'a Attention,
    rounding: Rounding,
    /// One per coordinate.
    pub quantizer: Vec<Hinges>,
    quantizer_bias: &'a [f64],
    readout: Readout<'a>,
}

/// A token after the quantizer: an interval per coordinate.
pub type Code = Vec<Interval>;

fn gamma(k: u32) -> f64 {
    let ku = f64::from(k) * UNIT;
    up(ku / (1.0 - ku))
}

/// An interval and what rounding may add.
fn widened(x: Interval, by: f64) -> Interval {
    if by == 0.0 { x } else { x + Interval::new(-by, by) }
}

impl<'a> Network<'a> {
    /// Takes a model apart; what is missing where it is not of the kind.
    pub fn new(model: &'a Model, precision: Precision, exp_ulp: f64) -> Result<Self, String> {
        let quantizer = model.pre_feed_forward.as_ref().ok_or("the model has no quantizer (pre_feed_forward)")?;
        if model.embedding.is_some() || model.head.is_some() {
            return Err("the model reads words or answers with labels".into());
        }
        let [layer] = model.layers.as_slice() else { return Err("the model has not exactly one layer".into()) };
        let (Some(attention), Some(readout)) = (&layer.attention, &layer.feed_forward) else {
            return Err("the layer lacks attention or hidden units".into());
        };
        if attention.hard || attention.causal {
            return Err("the attention is not a softmax over all tokens".into());
        }
        Ok(Self {
            model,
            attention,
            rounding: Rounding::new(precision, exp_ulp),
            quantizer: tables(quantizer, model.d)?,
            quantizer_bias: &quantizer.b2,
            readout: Readout::new(readout, model.d),
        })
    }

    /// Whether rounding counts.
    fn floats(&self) -> bool {
        self.rounding.precision == Precision::F64
    }

    /// A token whose coordinates lie on the given parts, after the quantizer.
    pub fn code(&self, parts: &[&Part]) -> Code {
        let coordinate = |c: usize| {
            let mut sum = Interval::point(self.quantizer_bias[c]);
            for part in parts {
                sum = sum + part.reading.values[c];
            }
            let by = if self.floats() { self.quantizer_rounding(parts, c, sum) } else { 0.0 };
            widened(sum, by)
        };
        (0..self.model.d).map(coordinate).collect()
    }

    /// What rounding adds to a coordinate of the quantizer's output, in any order of summation.
    fn quantizer_rounding(&self, parts: &[&Part], c: usize, sum: Interval) -> f64 {
        let d = self.model.d;
        let mut terms = Terms::new(self.quantizer_bias[c], parts[c].at.magnitude());
        let mut scalings = self.quantizer_bias[c] == 0.0;
        for (table, part) in self.quantizer.iter().zip(parts) {
            let exact = table.powers_of_two;
            terms.count += if exact { part.reading.on[c] } else { table.units[c] };
            terms.size += part.reading.values[d + c].hi;
            terms.shift += if exact { 0.0 } else { table.gains[c] * 2.0 * UNIT * part.at.magnitude() };
            scalings &= table.scalings[c];
        }
        // Two terms that are not rounded themselves: one addition.
        if scalings && terms.count <= 1 { up(UNIT * sum.magnitude()) } else { terms.rounding() }
    }

    /// The output token after attention, for a sequence of codes.
    fn attended(&self, codes: &[&Code], own: usize) -> Vec<Interval> {
        let d = self.model.d;
        let mut tokens = Tokens::default();
        for x in codes.iter().copied().flatten() {
            let middle = x.middle();
            tokens.mid.push(middle);
            tokens.radius.push((*x - Interval::point(middle)).magnitude());
        }
        if tokens.mid.iter().chain(&tokens.radius).any(|x| !x.is_finite()) {
            return vec![Interval::WHOLE; d];
        }
        let after = attend(self.attention, d, &tokens, &[own], &self.rounding, Care::Fine).swap_remove(0);
        let radii = after.whole_radius(&self.attention.w_o);
        after.mid.iter().zip(radii).map(|(mid, radius)| widened(Interval::point(*mid), radius)).collect()
    }

    /// The output anywhere, for codes anywhere in the given hulls, one per token.
    pub fn anywhere(&self, codes: &[&Code], own: usize) -> Vec<Interval> {
        let (d, layer) = (self.model.d, self.attention);
        let slop = |size: f64| self.slop(codes.len(), size);
        let dot = |w: &[f64], x: &Code| {
            let products = w.iter().zip(x).filter(|(w, _)| **w != 0.0).map(|(w, x)| Interval::point(*w) * *x);
            let (sum, size) =
                products.fold((Interval::point(0.0), 0.0), |(sum, size), p| (sum + p, size + p.magnitude()));
            widened(sum, slop(size))
        };
        let mut h = codes[own].clone();
        let mut sizes: Vec<f64> = h.iter().map(|x| x.magnitude()).collect();
        for head in 0..layer.heads {
            let rows = head * layer.size..(head + 1) * layer.size;
            let least = self.least_weight(codes, own, rows.clone(), &dot);
            for row in rows {
                let values: Vec<Interval> = codes.iter().map(|x| dot(&layer.w_v[row * d..(row + 1) * d], x)).collect();
                let hull = values[1..].iter().fold(values[0], |hull, v| hull.hull(*v));
                let sum = values[1..].iter().fold(values[0], |sum, v| sum + *v);
                // Every weight is the least one and a share of the rest.
                let rest = Interval::point(1.0) - Interval::point(codes.len() as f64) * least;
                let value = (least * sum + rest * hull).meet(hull);
                let value = widened(value, slop(hull.magnitude()));
                for ((h, size), w) in h.iter_mut().zip(&mut sizes).zip(&layer.w_o[row * d..(row + 1) * d]) {
                    let product = Interval::point(*w) * value;
                    *h = *h + product;
                    *size += product.magnitude();
                }
            }
        }
        let h: Vec<Interval> = h.into_iter().zip(sizes).map(|(h, size)| widened(h, slop(size))).collect();
        self.read_out(&h)
    }

    /// What rounding adds to a projection, a mean over n tokens, or a sum over heads whose terms have the given size.
    fn slop(&self, n: usize, size: f64) -> f64 {
        let terms = 2 * n + self.model.d + self.attention.heads * self.attention.size + 6;
        if self.floats() { up(gamma(terms as u32) * size + 1e3 * f64::MIN_POSITIVE) } else { 0.0 }
    }

    /// A weight that no token's falls below: scores differ by at most delta, rounding of scores and exp included.
    fn least_weight(
        &self,
        codes: &[&Code],
        own: usize,
        rows: std::ops::Range<usize>,
        dot: &impl Fn(&[f64], &Code) -> Interval,
    ) -> Interval {
        let d = self.model.d;
        let score = |x: &Code| {
            let products = rows.clone().map(|row| {
                let of = |w: &[f64], x: &Code| dot(&w[row * d..(row + 1) * d], x);
                of(&self.attention.w_k, x) * of(&self.attention.w_q, codes[own])
            });
            products.fold((Interval::point(0.0), 0.0), |(sum, size), p| (sum + p, size + p.magnitude()))
        };
        let scores: Vec<(Interval, f64)> = codes.iter().map(|x| score(x)).collect();
        let hull = scores[1..].iter().fold(scores[0].0, |hull, (score, _)| hull.hull(*score));
        let size = scores.iter().map(|(_, size)| *size).fold(0.0, f64::max);
        let exp = if self.floats() { 4.0 * self.rounding.exp_relative } else { 0.0 };
        let delta = up(hull.width() + 4.0 * self.slop(codes.len(), size) + exp);
        let others = Interval::point((codes.len() - 1) as f64);
        let least = Interval::point(1.0) / (Interval::point(1.0) + others * Interval::point(delta).exp());
        Interval::point(if least.is_bounded() { least.lo.max(0.0) } else { 0.0 })
    }

    /// The output token after attention, in big floats, for real arithmetic.
    fn attended_exactly(&self, codes: &[&Code], own: usize) -> Vec<Interval> {
        let exact = Exact { model: self.model, bits: BITS, last_units: None };
        let big = |x: &Interval| number::Interval { lo: number::Big::from_f64(x.lo), hi: number::Big::from_f64(x.hi) };
        let tokens: Vec<Vec<number::Interval>> = codes.iter().map(|code| code.iter().map(big).collect()).collect();
        let small = |x: number::Interval| Interval::new(x.lo.enclosure().0, x.hi.enclosure().1);
        exact.attend(self.attention, &tokens, own).into_iter().map(small).collect()
    }

    /// The output, coordinate by coordinate; with big floats where f64 leaves more than `fine` open.
    pub fn output(&self, codes: &[&Code], own: usize, fine: f64) -> Vec<Interval> {
        let output = self.read_out(&self.attended(codes, own));
        let coarse = output.iter().any(|x| x.width() > fine);
        let bounded = codes.iter().all(|code| code.iter().all(|x| x.is_bounded()));
        if self.floats() || !coarse || !bounded { output } else { self.read_out(&self.attended_exactly(codes, own)) }
    }

    fn read_out(&self, h: &[Interval]) -> Vec<Interval> {
        let d = self.model.d;
        if h.iter().any(|x| !x.is_bounded()) {
            return vec![Interval::WHOLE; d];
        }
        let read = self.readout.read(h);
        let bias = self.readout.bias;
        let coordinate = |c: usize| {
            let sum = self.readout.sum(&read, c);
            if !self.floats() {
                return sum;
            }
            let mut terms = Terms::new(bias[c], h[c].magnitude());
            let mut last = last_place(h[c]);
            if bias[c] != 0.0 {
                last = last.min(last_bit(bias[c]));
            }
            for (group, (x, reading)) in self.readout.groups.iter().zip(&read).filter(|(g, _)| g.hinges.units[c] > 0) {
                let exact = group.hinges.powers_of_two && matches!(group.reads, Reads::Coordinate(_));
                last = if exact { last.min(group.hinges.last_bit(c, last_place(*x))) } else { i32::MIN };
                // The input of a unit that reads a sum is rounded up to d + 1 times.
                terms.count += if exact { reading.on[c] } else { group.hinges.units[c] + d as u32 };
                terms.size += reading.values[d + c].hi;
                terms.shift += if exact { 0.0 } else { group.hinges.gains[c] * rounding(group.reads, h) };
            }
            // Every partial sum is a sum of some of the terms: between minus the negative ones and the positive ones.
            let greatest = up(0.5 * (terms.size + sum.magnitude()));
            let exact = last > -1000 && greatest <= power_of_two(last.saturating_add(53).min(1023));
            widened(sum, if exact { 0.0 } else { terms.rounding() })
        };
        (0..d).map(coordinate).collect()
    }
}

/// Every float in an interval is a multiple of 2 to this power.
fn last_place(x: Interval) -> i32 {
    if x == Interval::point(0.0) {
        i32::MAX / 2
    } else if x.contains(0.0) {
        i32::MIN / 2
    } else {
        last_bit(first_place(x.mignitude())) - 52
    }
}

/// The terms of a sum: x from the skip, a bias, and hidden units.
struct Terms {
    /// Hidden units that are on.
    count: u32,
    /// The sum of absolute values.
    size: f64,
    /// What rounding of the units' inputs adds, beyond one part in 2^53 of each.
    shift: f64,
}

impl Terms {
    fn new(bias: f64, x: f64) -> Self {
        Self { count: 0, size: bias.abs() + x, shift: 0.0 }
    }

    /// One rounding for a unit's input, one for its product, and as many as additions.
    fn rounding(&self) -> f64 {
        let tiny = f64::from(self.count + 2) * f64::MIN_POSITIVE;
        let bound = up(gamma(self.count + 4) * (self.size + self.shift) + self.shift + tiny);
        if self.size + bound < LARGEST { bound } else { f64::INFINITY }
    }
}

/// How far a program's input of a unit may be off, the last addition's part in 2^53 of the result aside: with a bias b
/// whose unit is near being on, |b| is at most the sum of the other terms.
fn rounding(reads: Reads, h: &[Interval]) -> f64 {
    let (size, terms) = match reads {
        Reads::Coordinate(t) => (h[t].magnitude(), 1),
        Reads::Sum(row) => {
            let size = row.iter().zip(h).map(|(w, x)| w.abs() * x.magnitude()).sum::<f64>();
            (size, row.len() as u32)
        }
    };
    up(3.0 * gamma(terms + 1) * size + f64::MIN_POSITIVE)
}

/// The quantizer, coordinate by coordinate.
fn tables(part: &FeedForward, d: usize) -> Result<Vec<Hinges>, String> {
    let mut units: Vec<Vec<Unit>> = vec![vec![]; d];
    for (j, row) in part.w1.chunks_exact(d).enumerate() {
        let mut entries = (0..d).filter(|&t| row[t] != 0.0);
        let t = entries.next().unwrap_or(0);
        if entries.next().is_some() {
            return Err(format!("unit {j} of the quantizer reads more than one coordinate"));
        }
        units[t].push(Unit { w: row[t], b: part.b1[j], out: &part.w2[j * d..(j + 1) * d] });
    }
    Ok(units.iter().enumerate().map(|(t, units)| Hinges::new(units, d, Some(t))).collect())
}
