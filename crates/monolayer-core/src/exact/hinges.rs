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

/// The units of one coordinate. Channels 0 to d - 1 are the coordinates of the sum, d to 2 d - 1 the sums of the terms' sizes,
/// the rest how many terms there are.
pub(super) struct Hinges {
    /// Where units go on or off, in order.
    pub places: Vec<Scaled>,
    /// Slope and rise of each channel, left of the first hinge and right of each.
    pub lines: Vec<Vec<(Scaled, Scaled)>>,
    /// What the units add to each coordinate.
    terms: Vec<Terms>,
}

/// Terms of a sum.
#[derive(Clone, Copy)]
struct Terms {
    /// Least exponents of the last bits of out b and of out w.
    last: (i64, i64),
    /// How many units have a weight below 0, and above; whether one has a bias, or a weight other than 1 and -1.
    signs: (usize, usize),
    rounded: bool,
}

/// A block, and whether programs round.
pub(super) struct Block {
    pub tables: Vec<Hinges>,
    bias: Vec<Dyadic>,
    floats: bool,
}

/// Beyond all exponents.
const NEVER: i64 = 1 << 40;

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
        let count = &mut line[2 * outs.len() + c].1;
        *count = count.plus(&signed(&Dyadic::new(1, 0)));
    }
}

impl Hinges {
    /// `skip` is the coordinate that the number itself is added to.
    fn new(units: &[Unit], d: usize, skip: usize) -> Self {
        let mut line = vec![(Scaled::ZERO, Scaled::ZERO); 3 * d];
        line[skip].0 = Scaled::new(Big::ONE, 0);
        let mut terms = vec![Terms { last: (NEVER, NEVER), signs: (0, 0), rounded: false }; d];
        let mut order = Vec::new();
        for unit in units {
            let (w, b, outs) = unit;
            if w.m < 0 || (w.m == 0 && b.m > 0) {
                switch(&mut line, unit, true);
            }
            if w.m != 0 {
                order.push((Scaled::new(Big::from(-b.m * w.m), i64::from(b.e) - i64::from(w.e)), unit));
            }
            for (terms, out) in terms.iter_mut().zip(outs).filter(|(_, out)| !out.is_zero()) {
                let last = |x: &Dyadic| if x.is_zero() { NEVER } else { i64::from(out.e) + i64::from(x.e) };
                terms.last = (terms.last.0.min(last(b)), terms.last.1.min(last(w)));
                terms.signs = (terms.signs.0 + usize::from(w.m < 0), terms.signs.1 + usize::from(w.m > 0));
                terms.rounded |= !b.is_zero() || [w, out].iter().any(|x| (x.m.abs(), x.e) != (1, 0));
            }
        }
        order.sort_by(|a, b| a.0.cmp(&b.0));
        let mut table = Self { places: vec![], lines: vec![line.clone()], terms };
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
            let (row, out) = (|t: usize| w1.get(j * d + t), |c: usize| w2.get(c * part.hidden + j));
            let unit: Unit =
                ((0..d).map(row).find(|w| !w.is_zero()).unwrap_or_default(), b1.get(j), (0..d).map(out).collect());
            let reads: Vec<usize> = (0..d).filter(|&t| !row(t).is_zero()).collect();
            let large = unit.2.iter().chain([&unit.0, &unit.1]).any(|x| !x.is_zero() && x.top() >= LARGEST);
            if reads.len() > 1 || unit.0.m.abs() > 1 || (floats && large) {
                return None;
            }
            units[reads.first().copied().unwrap_or(0)].push(unit);
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
    /// bias, weights 1 and -1) make one addition: u |sum|. Where all terms are multiples of 2^a and the positive ones and the
    /// negative ones each come to at most 2^(a + 53), every partial sum is a float: nothing is rounded.
    pub fn apply(&self, x: &[Real]) -> Option<Vec<Real>> {
        let reads = self.tables.iter().zip(x).map(|(table, x)| table.read(x)).collect::<Option<Vec<_>>>()?;
        let total = |start: Real, channel: usize| reads.iter().fold(start, |sum, read| sum.plus(&read[channel], BITS));
        let coordinate = |c: usize| {
            let bias = Real::point(self.bias[c].into());
            let (sum, count) = (total(bias.clone(), c), total(Real::whole(4), 2 * x.len() + c));
            let size = total(bias.abs().plus(&x[c].abs(), BITS), x.len() + c);
            let off = if self.floats { self.off(c, x, (&sum, &size, &count))? } else { Real::ZERO };
            Some(sum.plus(&off.hull(&off.negated()), BITS))
        };
        (0..x.len()).map(coordinate).collect()
    }

    /// How far a program's sum may be off, given the sum of its terms' sizes and k + 4.
    fn off(&self, c: usize, x: &[Real], (sum, size, k): (&Real, &Real, &Real)) -> Option<Real> {
        let power = |e: i64| Real::point(Scaled::new(Big::ONE, e));
        let terms: Vec<Terms> = self.tables.iter().map(|table| table.terms[c]).collect();
        let mut last = last_place(&x[c])?.min(if self.bias[c].is_zero() { NEVER } else { self.bias[c].e.into() });
        for (terms, x) in terms.iter().zip(x) {
            last =
                last.min(terms.last.0).min(if terms.last.1 == NEVER { NEVER } else { terms.last.1 + last_place(x)? });
        }
        let (most, largest) = (size.plus(&sum.abs(), BITS), size.ends()?.1.top());
        let alone = |terms: &Terms| !terms.rounded && terms.signs.0 <= 1 && terms.signs.1 <= 1;
        let readers = terms.iter().filter(|terms| terms.signs != (0, 0)).count();
        Some(if largest > 1000 {
            Real::UNBOUNDED
        } else if last > -1000 && most.ends()?.1.top() <= last.saturating_add(54) {
            Real::ZERO
        } else if readers <= 1 && terms.iter().all(alone) && self.bias[c].is_zero() {
            sum.abs().times(&power(-53), BITS)
        } else {
            let g = k.over(&power(53).minus(k, BITS), BITS);
            g.times(size, BITS).plus(&k.times(&power(-1000), BITS), BITS)
        })
    }
}

/// Every float in an interval is a multiple of 2 to this power.
fn last_place(x: &Real) -> Option<i64> {
    let least = x.abs();
    let zero = |x: &Scaled| x.parts().0.is_zero();
    Some(match least.ends()? {
        (_, most) if zero(most) => NEVER,
        (least, _) if zero(least) => -NEVER,
        (least, _) => least.top() - 53,
    })
}
