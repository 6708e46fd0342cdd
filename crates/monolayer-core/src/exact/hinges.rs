//! A feed-forward block (eq. 3) whose units each read one coordinate: a sum of piecewise linear functions, one per coordinate.
//!
//! Between two neighboring hinges -b / w a piece is affine; slopes and rises are sums of products of floats, kept exactly, so that a
//! plateau is a plateau whatever large terms cancel in it.

use super::big::Big;
use super::real::{Real, Scaled};
use crate::model::{FeedForward, Numbers};
use crate::number::Dyadic;

/// Bits of readings.
const BITS: usize = 200;
/// In floats, weights are below 2 to this power: what underflows in a unit then adds less than 2^-1000.
const LARGEST: i32 = 70;

/// The units of one coordinate. Channels 0 to d - 1 are the coordinates of the sum, the rest the sums of the terms' sizes.
pub(super) struct Hinges {
    /// Where units go on or off, in order.
    pub places: Vec<Scaled>,
    /// Slope and rise of each channel, left of the first hinge and right of each.
    pub lines: Vec<Vec<(Scaled, Scaled)>>,
}

/// A block, and how far programs may be off: by so much of the terms' sizes, and so much beside.
pub(super) struct Block {
    pub tables: Vec<Hinges>,
    bias: Vec<Dyadic>,
    off: [Real; 2],
}

/// w, b, and what a unit adds to each coordinate.
type Unit = (Dyadic, Dyadic, Vec<Dyadic>);

/// Puts a unit on, or off.
fn switch(line: &mut [(Scaled, Scaled)], (w, b, outs): &Unit, on: bool) {
    let signed = |x: &Dyadic| Scaled::from(Dyadic { m: if on { x.m } else { -x.m }, ..*x });
    for (c, out) in outs.iter().enumerate().filter(|(_, out)| !out.is_zero()) {
        for (channel, m) in [(c, out.m), (outs.len() + c, out.m.abs())] {
            let (out, (slope, rise)) = (Scaled::from(Dyadic { m, ..*out }), &mut line[channel]);
            (*slope, *rise) = (slope.plus(&out.times(&signed(w))), rise.plus(&out.times(&signed(b))));
        }
    }
}

impl Hinges {
    /// `skip` is the coordinate that the number itself is added to.
    fn new(units: &[Unit], d: usize, skip: usize) -> Self {
        let mut line = vec![(Scaled::ZERO, Scaled::ZERO); 2 * d];
        line[skip].0 = Scaled::new(Big::ONE, 0);
        for unit in units.iter().filter(|(w, b, _)| w.m < 0 || (w.m == 0 && b.m > 0)) {
            switch(&mut line, unit, true);
        }
        let turning = units.iter().filter(|(w, ..)| w.m != 0);
        let place = |(w, b, _): &Unit| Scaled::new(Big::from(-b.m * w.m), i64::from(b.e) - i64::from(w.e));
        let mut order: Vec<(Scaled, &Unit)> = turning.map(|unit| (place(unit), unit)).collect();
        order.sort_by(|a, b| a.0.cmp(&b.0));
        let mut table = Self { places: vec![], lines: vec![line.clone()] };
        for (place, unit) in order {
            switch(&mut line, unit, unit.0.m > 0);
            table.places.push(place);
            table.lines.push(line.clone());
        }
        table
    }

    /// All channels over an interval: affine between its ends and the hinges inside.
    fn read(&self, x: &Real) -> Option<Vec<Real>> {
        let (lo, hi) = x.ends()?;
        let (first, last) = (self.places.partition_point(|p| p < lo), self.places.partition_point(|p| p <= hi));
        let inner = (first..last).map(|i| (i, &self.places[i]));
        let points: Vec<(usize, &Scaled)> = inner.chain([(first, lo), (last, hi)]).collect();
        let value = |channel: usize| {
            let line = |piece: usize| &self.lines[piece][channel];
            let values = points.iter().map(|(piece, x)| Real::point(line(*piece).0.times(x).plus(&line(*piece).1)));
            values.reduce(|a, b| a.hull(&b)).map(|all| all.plus(&Real::ZERO, BITS))
        };
        (0..self.lines[0].len()).map(value).collect()
    }
}

impl Block {
    /// Tabulates a block of floats; nothing where a unit reads several coordinates, or with a weight that is no power of two.
    pub fn new<'a>(part: &'a FeedForward, d: usize, floats: bool) -> Option<Self> {
        let float = |numbers: &'a Numbers| if let Numbers::Floats(tensor) = numbers { Some(tensor) } else { None };
        let (w1, b1, w2, b2) = (float(&part.w1)?, float(&part.b1)?, float(&part.w2)?, float(&part.b2)?);
        let mut units = vec![Vec::new(); d];
        for j in 0..part.hidden {
            let outs: Vec<Dyadic> = (0..d).map(|c| w2.get(c * part.hidden + j)).collect();
            let mut reads = (0..d).map(|t| (t, w1.get(j * d + t))).filter(|(_, w)| !w.is_zero());
            let (t, w) = reads.next().unwrap_or_default();
            let large = outs.iter().chain([&w, &b1.get(j)]).any(|x| !x.is_zero() && x.top() >= LARGEST);
            if reads.next().is_some() || w.m.abs() > 1 || (floats && large) {
                return None;
            }
            units[t].push((w, b1.get(j), outs));
        }
        let tables = units.iter().enumerate().map(|(t, units)| Hinges::new(units, d, t)).collect();
        let (power, q) = (|e: i64| Real::point(Scaled::new(Big::ONE, e)), Real::whole(part.hidden as i64 + 4));
        let off = [q.over(&power(53).minus(&q, BITS), BITS), q.times(&power(-1000), BITS)];
        let off = off.map(|off| if floats { off } else { Real::ZERO });
        Some(Self { tables, bias: (0..d).map(|c| b2.get(c)).collect(), off })
    }

    /// Every coordinate of the block's output, for coordinates in these intervals; in floats, as any program computes it.
    ///
    /// Lemma (binary64, any order, any fusing). A unit's product w x is exact, its sum with b and its product with out are rounded
    /// once each, and rounding keeps signs, so that the units that are on are those of real arithmetic. The terms (skip, bias, and at
    /// most q units) are added with at most q + 1 roundings each: together the result is off by at most g S,
    /// g = (q + 4) / (2^53 - q - 4), S the sum of their sizes, and by 2^-1000 per term where something underflows.
    pub fn apply(&self, x: &[Real]) -> Option<Vec<Real>> {
        let reads = self.tables.iter().zip(x).map(|(table, x)| table.read(x)).collect::<Option<Vec<_>>>()?;
        let total = |start: Real, channel: usize| reads.iter().fold(start, |sum, read| sum.plus(&read[channel], BITS));
        let coordinate = |c: usize| {
            let bias = Real::point(self.bias[c].into());
            let size = total(bias.abs().plus(&x[c].abs(), BITS), x.len() + c);
            // Nothing overflows.
            size.ends().filter(|(_, hi)| self.off[0] == Real::ZERO || hi.top() <= 1000)?;
            let off = self.off[0].times(&size, BITS).plus(&self.off[1], BITS);
            Some(total(bias, c).plus(&off.hull(&off.negated()), BITS))
        };
        (0..x.len()).map(coordinate).collect()
    }
}
