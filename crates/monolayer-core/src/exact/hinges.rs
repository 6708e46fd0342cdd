//! A feed-forward block (eq. 3) whose units each read one coordinate: a sum of piecewise linear functions, one per coordinate.
//!
//! Between two neighboring hinges -b / w a piece is affine; slopes and rises are sums of products of floats, kept exactly, so that a
//! plateau is a plateau whatever large terms cancel in it.

use super::big::Big;
use super::real::{Real, Scaled, Way};
use crate::model::{FeedForward, Numbers};
use crate::number::Dyadic;

/// Bits of readings.
const BITS: usize = 200;
/// In floats, weights are below 2 to this power: what underflows in a unit then adds less than 2^-1000.
const LARGEST: i32 = 70;

/// The units of one coordinate. Channels 0 to d - 1 are the coordinates of the sum, d to 2 d - 1 the sums of the terms' sizes.
pub(super) struct Hinges {
    /// Where units go on or off, in order.
    pub places: Vec<Scaled>,
    /// Slope and rise of each channel, left of the first hinge and right of each.
    pub lines: Vec<Vec<(Scaled, Scaled)>>,
    /// How many units that add to a coordinate are on there.
    on: Vec<Vec<usize>>,
    /// Per coordinate: least exponents of the last bits of out b and of out w, and whether no unit has a bias.
    bits: Vec<(i64, i64, bool)>,
}

/// A block, and whether programs round.
pub(super) struct Block {
    pub tables: Vec<Hinges>,
    bias: Vec<Dyadic>,
    floats: bool,
}

/// A number beyond all exponents.
const NEVER: i64 = 1 << 40;

impl Hinges {
    /// `units` are w, b, and what each adds; `skip` is the coordinate that the number itself is added to.
    fn new(units: &[(Dyadic, Dyadic, Vec<Dyadic>)], d: usize, skip: usize) -> Self {
        let mut line = vec![(Scaled::ZERO, Scaled::ZERO); 2 * d];
        line[skip].0 = Scaled::new(Big::ONE, 0);
        let (mut on, mut bits) = (vec![0; d], vec![(NEVER, NEVER, true); d]);
        let switch = |line: &mut Vec<(Scaled, Scaled)>,
                      on: &mut Vec<usize>,
                      unit: &(Dyadic, Dyadic, Vec<Dyadic>),
                      more: bool| {
            let sign = |x: Dyadic| if more { Scaled::from(x) } else { Scaled::from(x).negated() };
            for (c, out) in unit.2.iter().enumerate().filter(|(_, out)| !out.is_zero()) {
                on[c] = if more { on[c] + 1 } else { on[c] - 1 };
                for (channel, m) in [(c, out.m), (d + c, out.m.abs())] {
                    let out = Scaled::from(Dyadic { m, ..*out });
                    let (slope, rise) = &mut line[channel];
                    (*slope, *rise) = (slope.plus(&out.times(&sign(unit.0))), rise.plus(&out.times(&sign(unit.1))));
                }
            }
        };
        let mut order = Vec::new();
        for unit in units {
            let (w, b, outs) = unit;
            if w.m < 0 || (w.m == 0 && b.m > 0) {
                switch(&mut line, &mut on, unit, true);
            }
            if w.m != 0 {
                order.push((Scaled::new(Big::from(-b.m * w.m), i64::from(b.e) - i64::from(w.e)), unit));
            }
            for (bits, out) in bits.iter_mut().zip(outs).filter(|(_, out)| !out.is_zero()) {
                let last = |x: &Dyadic| if x.is_zero() { NEVER } else { i64::from(out.e) + i64::from(x.e) };
                *bits = (bits.0.min(last(b)), bits.1.min(last(w)), bits.2 && b.is_zero() && out.m.abs() == 1);
            }
        }
        // At one place units go off before others go on.
        order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.0.m.cmp(&b.1.0.m)));
        let mut table = Self { places: vec![], lines: vec![line.clone()], on: vec![on.clone()], bits };
        for (place, unit) in order {
            switch(&mut line, &mut on, unit, unit.0.m > 0);
            table.places.push(place);
            table.lines.push(line.clone());
            table.on.push(on.clone());
        }
        table
    }

    /// All channels over an interval, and how many units may be on; nothing where it is unbounded.
    fn read(&self, x: &Real) -> Option<(Vec<Real>, Vec<usize>)> {
        let (lo, hi) = x.ends()?;
        let first = self.places.partition_point(|place| place < lo);
        let last = self.places.partition_point(|place| place <= hi);
        let at = |piece: usize, channel: usize, x: &Scaled| {
            let (slope, rise) = &self.lines[piece][channel];
            slope.times(x).plus(rise)
        };
        let value = |channel: usize| {
            // Affine between these points.
            let ends = [at(first, channel, lo), at(last, channel, hi)];
            let inner = (first..last).map(|i| at(i, channel, &self.places[i]));
            let all: Vec<Scaled> = ends.into_iter().chain(inner).collect();
            let (least, most) = (all.iter().min()?.clone(), all.iter().max()?.clone());
            Some(Real::new(least.rounded(BITS, Way::Down), most.rounded(BITS, Way::Up)))
        };
        let values = (0..self.lines[0].len()).map(value).collect::<Option<_>>()?;
        let on = (0..self.bits.len()).map(|c| self.on[first..=last].iter().map(|on| on[c]).max().unwrap_or(0));
        Some((values, on.collect()))
    }
}

impl Block {
    /// Tabulates a block of floats; nothing where a unit reads several coordinates, or with a weight that is no power of two.
    pub fn new(part: &FeedForward, d: usize, floats: bool) -> Option<Self> {
        let (Numbers::Floats(w1), Numbers::Floats(b1), Numbers::Floats(w2), Numbers::Floats(b2)) =
            (&part.w1, &part.b1, &part.w2, &part.b2)
        else {
            return None;
        };
        let mut units = vec![Vec::new(); d];
        for j in 0..part.hidden {
            let row: Vec<Dyadic> = (0..d).map(|t| w1.get(j * d + t)).collect();
            let mut entries = (0..d).filter(|&t| !row[t].is_zero());
            let t = entries.next().unwrap_or(0);
            let out: Vec<Dyadic> = (0..d).map(|c| w2.get(c * part.hidden + j)).collect();
            let large = out.iter().chain([&row[t], &b1.get(j)]).any(|x| !x.is_zero() && x.top() >= LARGEST);
            if entries.next().is_some() || row[t].m.abs() > 1 || (floats && large) {
                return None;
            }
            units[t].push((row[t], b1.get(j), out));
        }
        let tables = units.iter().enumerate().map(|(t, units)| Hinges::new(units, d, t)).collect();
        Some(Self { tables, bias: (0..d).map(|c| b2.get(c)).collect(), floats })
    }

    /// Every coordinate of the block's output, for coordinates in these intervals; in floats, as any program computes it.
    ///
    /// Lemma (binary64, any order, any fusing). A unit's product w x is exact, its sum with b and its product with out are rounded
    /// once each, and rounding keeps signs, so that the units that are on are those of real arithmetic. The terms (skip, bias, and k
    /// units) are added with at most k + 1 roundings each: together the result is off by at most g S, g = (k + 4) / (2^53 - k - 4),
    /// S the sum of their sizes, and by 2^-1000 per term where something underflows. Two terms that are not rounded themselves (no
    /// bias, powers of two) make one addition: u |sum|. Where all terms are multiples of 2^a and the positive ones and the
    /// negative ones each come to at most 2^(a + 53), every partial sum is a float: nothing is rounded.
    pub fn apply(&self, x: &[Real]) -> Option<Vec<Real>> {
        let d = x.len();
        let reads = self.tables.iter().zip(x).map(|(table, x)| table.read(x)).collect::<Option<Vec<_>>>()?;
        let coordinate = |c: usize| {
            let bias = Real::point(self.bias[c].into());
            let sum = reads.iter().fold(bias.clone(), |sum, (values, _)| sum.plus(&values[c], BITS));
            if !self.floats {
                return Some(sum);
            }
            let skip = bias.abs().plus(&x[c].abs(), BITS);
            let size = reads.iter().fold(skip, |size, (values, _)| size.plus(&values[d + c], BITS));
            let count: usize = reads.iter().map(|(_, on)| on[c]).sum();
            let mut last = last_place(&x[c])?.min(if self.bias[c].is_zero() { NEVER } else { self.bias[c].e.into() });
            for (table, x) in self.tables.iter().zip(x) {
                let (of_b, of_w, _) = table.bits[c];
                last = last.min(of_b).min(if of_w == NEVER { NEVER } else { of_w + last_place(x)? });
            }
            let half = size.plus(&sum.abs(), BITS).ends()?.1.scaled(-1);
            let plain = count <= 1 && self.bias[c].is_zero() && self.tables.iter().all(|table| table.bits[c].2);
            if size.ends()?.1.top() > 1000 {
                return None;
            }
            let unit = Real::point(Scaled::new(Big::ONE, -53));
            let off = if last > -1000 && half <= Scaled::new(Big::ONE, last.min(NEVER) + 53) {
                Real::ZERO
            } else if plain {
                sum.abs().times(&unit, BITS)
            } else {
                let k = Real::whole(count as i64 + 4);
                let g = k.over(&Real::point(Scaled::new(Big::ONE, 53)).minus(&k, BITS), BITS);
                let tiny = Real::point(Scaled::new(Big::from(count as i64 + 2), -1000));
                g.times(&size, BITS).plus(&tiny, BITS)
            };
            let most = off.ends()?.1;
            Some(sum.plus(&Real::new(most.negated(), most.clone()), BITS))
        };
        (0..d).map(coordinate).collect()
    }
}

/// Every float in an interval is a multiple of 2 to this power.
fn last_place(x: &Real) -> Option<i64> {
    let least = x.abs();
    let (least, most) = least.ends()?;
    let zero = |x: &Scaled| x.parts().0.is_zero();
    Some(if zero(most) {
        NEVER
    } else if zero(least) {
        -NEVER
    } else {
        least.top() - 53
    })
}
