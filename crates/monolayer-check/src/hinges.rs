//! Hidden units that all read one number x: a piecewise linear function of it, tabulated exactly.
//!
//! sum over j of out_j relu(w_j x + b_j), plus x itself where there is a skip. Between two neighboring hinges -b_j / w_j it is
//! affine; slopes are sums of products of f64, kept exactly along the sweep from left to right, so that a plateau is a
//! plateau whatever large terms cancel in it.

use std::cmp::Ordering;

use crate::big::number::Big;
use crate::interval::Interval;
use crate::rounding::{first_place, last_bit, up};

/// One hidden unit: `out` relu(w x + b).
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// The weight of x.
    pub w: f64,
    /// The bias.
    pub b: f64,
    /// What it adds to each coordinate.
    pub out: &'a [f64],
}

/// Values per block of the table of ranges.
const BLOCK: usize = 64;
/// No last bit: there is nothing.
const NOTHING: i32 = i32::MAX / 2;

/// The table. Channels 0 to d - 1 are the coordinates of the sum; channels d to 2 d - 1 the sums of the terms' absolute values
/// (without the skip).
#[derive(Debug)]
pub struct Hinges {
    d: usize,
    /// The hinges, in order; at least one.
    pub at: Vec<Interval>,
    /// Values there, `[hinges, 2 d]`.
    values: Vec<Interval>,
    /// Slopes left of the first hinge and right of each, `[hinges + 1, 2 d]`.
    slopes: Vec<Interval>,
    /// How many units that add to a coordinate are on, `[hinges + 1, d]`.
    on: Vec<u32>,
    /// Sums of |out_j w_j| over all units, from above, `[d]`.
    pub gains: Vec<f64>,
    /// How many units add to a coordinate at all, `[d]`.
    pub units: Vec<u32>,
    /// Whether what the units add to a coordinate is x times powers of two, `[d]`: such terms are not rounded.
    pub scalings: Vec<bool>,
    /// Hulls of 64 values, of 64 such hulls, and so on, each `[blocks, 2 d]`.
    blocks: Vec<Vec<Interval>>,
    /// Whether every weight is a power of two in size.
    pub powers_of_two: bool,
    /// Per coordinate: least exponents of the last bits of out_j b_j and of out_j w_j.
    bits: Vec<(i32, i32)>,
}

/// The function over an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Ranges of all channels.
    pub values: Vec<Interval>,
    /// The most units that are on and add to a coordinate, `[d]`.
    pub on: Vec<u32>,
}

/// An affine function per channel, exactly.
struct Line {
    slope: Vec<Big>,
    rise: Vec<Big>,
}

impl Line {
    /// Adds a unit, or takes it away.
    fn switch(&mut self, unit: &Unit, on: bool) {
        let d = unit.out.len();
        let signed = |x: f64| Big::from_f64(if on { x } else { -x });
        let (w, b) = (signed(unit.w), signed(unit.b));
        for (c, out) in unit.out.iter().enumerate().filter(|(_, out)| **out != 0.0) {
            for (channel, out) in [(c, *out), (d + c, out.abs())] {
                let out = Big::from_f64(out);
                self.slope[channel] = self.slope[channel].exact_plus(&out.times(&w));
                self.rise[channel] = self.rise[channel].exact_plus(&out.times(&b));
            }
        }
    }

    fn at(&self, channel: usize, x: Interval) -> Interval {
        if !x.is_bounded() {
            return Interval::WHOLE;
        }
        let at = |x: f64| {
            let (lo, hi) = self.slope[channel].times(&Big::from_f64(x)).exact_plus(&self.rise[channel]).enclosure();
            Interval::new(lo, hi)
        };
        if x.lo == x.hi { at(x.lo) } else { at(x.lo).hull(at(x.hi)) }
    }
}

fn is_power_of_two(x: f64) -> bool {
    x.abs() == first_place(x.abs())
}

/// Whether a unit only scales x by powers of two.
fn scales(unit: &Unit, c: usize) -> bool {
    unit.b == 0.0 && is_power_of_two(unit.w) && is_power_of_two(unit.out[c])
}

/// Where a unit's input is 0.
fn place(unit: &Unit) -> Interval {
    Interval::point(-unit.b) / Interval::point(unit.w)
}

/// The order of two hinges, exactly.
fn compare(a: (&Unit, Interval), b: (&Unit, Interval)) -> Ordering {
    if a.1.hi < b.1.lo {
        return Ordering::Less;
    }
    if b.1.hi < a.1.lo {
        return Ordering::Greater;
    }
    // -b/w < -b'/w' is b' w sign(w w') < b w' sign(w w').
    let product = |x: f64, y: f64| Big::from_f64(x).times(&Big::from_f64(y));
    let (left, right) = (product(b.0.b, a.0.w), product(a.0.b, b.0.w));
    let order = left.partial_cmp(&right).expect("finite numbers are ordered");
    let order = if (a.0.w < 0.0) == (b.0.w < 0.0) { order } else { order.reverse() };
    // At one place units go off before others go on.
    order.then((a.0.w > 0.0).cmp(&(b.0.w > 0.0)))
}

impl Hinges {
    /// Tabulates units that add to d coordinates; `skip` is the coordinate that x itself is added to.
    pub fn new(units: &[Unit], d: usize, skip: Option<usize>) -> Self {
        let origin = Unit { w: 1.0, b: 0.0, out: &vec![0.0; d] };
        // A unit that reads nothing adds a constant.
        let moving: Vec<Unit> = units.iter().copied().filter(|unit| unit.w != 0.0).chain([origin]).collect();
        let mut order: Vec<(&Unit, Interval)> = moving.iter().map(|unit| (unit, place(unit))).collect();
        order.sort_by(|a, b| compare(*a, *b));

        let mut line = Line { slope: vec![Big::zero(); 2 * d], rise: vec![Big::zero(); 2 * d] };
        if let Some(c) = skip {
            line.slope[c] = Big::new(1, 0);
        }
        let mut on = vec![0_u32; d];
        let count = |on: &mut [u32], unit: &Unit, more: bool| {
            for (on, _) in on.iter_mut().zip(unit.out).filter(|(_, out)| **out != 0.0) {
                *on = if more { *on + 1 } else { *on - 1 };
            }
        };
        for unit in units.iter().filter(|unit| unit.w < 0.0 || (unit.w == 0.0 && unit.b > 0.0)) {
            line.switch(unit, true);
            count(&mut on, unit, true);
        }

        let mut table = Self {
            d,
            at: order.iter().map(|(_, at)| *at).collect(),
            values: Vec::with_capacity(order.len() * 2 * d),
            slopes: Vec::with_capacity((order.len() + 1) * 2 * d),
            on: on.clone(),
            gains: (0..d).map(|c| up(units.iter().map(|unit| unit.out[c].abs() * unit.w.abs()).sum())).collect(),
            units: (0..d).map(|c| units.iter().filter(|unit| unit.out[c] != 0.0).count() as u32).collect(),
            scalings: (0..d).map(|c| units.iter().all(|unit| unit.out[c] == 0.0 || scales(unit, c))).collect(),
            blocks: vec![],
            powers_of_two: moving.iter().all(|unit| is_power_of_two(unit.w)),
            bits: (0..d).map(|c| last_bits(units, c)).collect(),
        };
        table.note_slopes(&line);
        for (unit, at) in &order {
            table.values.extend((0..2 * d).map(|channel| line.at(channel, *at)));
            line.switch(unit, unit.w > 0.0);
            count(&mut on, unit, unit.w > 0.0);
            table.on.extend_from_slice(&on);
            table.note_slopes(&line);
        }
        table.straighten();
        table
    }

    fn note_slopes(&mut self, line: &Line) {
        self.slopes.extend(line.slope.iter().map(|slope| {
            let (lo, hi) = slope.enclosure();
            Interval::new(lo, hi)
        }));
    }

    /// Makes the ends of the hinges' enclosures increase, and fills the blocks.
    fn straighten(&mut self) {
        for i in 1..self.at.len() {
            self.at[i].hi = self.at[i].hi.max(self.at[i - 1].hi);
        }
        for i in (1..self.at.len()).rev() {
            self.at[i - 1].lo = self.at[i - 1].lo.min(self.at[i].lo);
        }
        let width = 2 * self.d;
        let mut blocks: Vec<Vec<Interval>> = Vec::new();
        loop {
            let finer = blocks.last().unwrap_or(&self.values);
            if finer.len() <= BLOCK * width {
                break;
            }
            let hull = |block: &[Interval], channel: usize| {
                let values = block.iter().skip(channel).step_by(width).copied();
                values.reduce(Interval::hull).expect("no block is empty")
            };
            let hulls = |block| (0..width).map(move |channel| hull(block, channel));
            let coarser = finer.chunks(BLOCK * width).flat_map(hulls).collect();
            blocks.push(coarser);
        }
        self.blocks = blocks;
    }

    /// The function over an interval.
    pub fn read(&self, mut x: Interval) -> Reading {
        let width = 2 * self.d;
        // Widened until no hinge's enclosure sticks out.
        let (first, last) = loop {
            let first = self.at.partition_point(|at| at.hi < x.lo);
            let last = self.at.partition_point(|at| at.lo <= x.hi);
            let low = self.at.get(first).map_or(x.lo, |at| at.lo.min(x.lo));
            let high = if last > 0 { self.at[last - 1].hi.max(x.hi) } else { x.hi };
            if (low, high) == (x.lo, x.hi) {
                break (first, last);
            }
            x = Interval::new(low, high);
        };
        let mut values: Vec<Interval> =
            (0..width).map(|c| self.value(x.lo, first, c).hull(self.value(x.hi, last, c))).collect();
        let mut i = first;
        while i < last {
            // The largest block that starts here and ends in time.
            let (mut row, mut step) = (&self.values[i * width..][..width], 1);
            for blocks in &self.blocks {
                if i % (step * BLOCK) != 0 || i + step * BLOCK > last {
                    break;
                }
                step *= BLOCK;
                row = &blocks[i / step * width..][..width];
            }
            values.iter_mut().zip(row).for_each(|(value, more)| *value = value.hull(*more));
            i += step;
        }
        let on = if last - first > BLOCK {
            self.units.clone()
        } else {
            let pieces = &self.on[first * self.d..(last + 1) * self.d];
            (0..self.d).map(|c| pieces.iter().skip(c).step_by(self.d).copied().max().unwrap_or(0)).collect()
        };
        Reading { values, on }
    }

    /// The value at a point of a piece, from the nearer hinge at its ends.
    fn value(&self, x: f64, piece: usize, channel: usize) -> Interval {
        let left = piece.checked_sub(1);
        let right = Some(piece).filter(|&i| i < self.at.len());
        let nearer = match (left, right) {
            (Some(l), Some(r)) if self.at[r].lo - x < x - self.at[l].hi => r,
            (Some(l), _) => l,
            (None, r) => r.unwrap_or(0),
        };
        let at = |i: usize| i * 2 * self.d + channel;
        self.values[at(nearer)] + self.slopes[at(piece)] * (Interval::point(x) - self.at[nearer])
    }

    /// The slope of a coordinate in a piece: piece i lies left of hinge i.
    pub fn slope(&self, piece: usize, c: usize) -> Interval {
        self.slopes[piece * 2 * self.d + c]
    }

    /// All terms of a coordinate are multiples of 2 to this power, where x is one of 2^k.
    pub fn last_bit(&self, c: usize, k: i32) -> i32 {
        let (of_b, of_w) = self.bits[c];
        of_b.min(of_w.saturating_add(k))
    }
}

fn last_bits(units: &[Unit], c: usize) -> (i32, i32) {
    let mut least = (NOTHING, NOTHING);
    for unit in units.iter().filter(|unit| unit.out[c] != 0.0) {
        let out = last_bit(unit.out[c]);
        if unit.b != 0.0 {
            least.0 = least.0.min(out + last_bit(unit.b));
        }
        if unit.w != 0.0 {
            least.1 = least.1.min(out + last_bit(unit.w));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(units: &[Unit], skip: bool, x: f64) -> f64 {
        let sum: f64 = units.iter().map(|unit| unit.out[0] * (unit.w * x + unit.b).max(0.0)).sum();
        if skip { sum + x } else { sum }
    }

    #[test]
    fn readings_contain_all_values() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 23) - 1.0
        };
        for round in 0..200 {
            let outs: Vec<[f64; 1]> = (0..200).map(|_| [random()]).collect();
            let mut unit = |out| Unit { w: if round % 2 == 0 { 1.0 } else { random() }, b: random(), out };
            let units: Vec<Unit> = outs.iter().take(round).map(|out| unit(out)).collect();
            let table = Hinges::new(&units, 1, Some(0).filter(|_| round % 3 == 0));
            for _ in 0..20 {
                let (a, b) = (3.0 * random(), 3.0 * random());
                let reading = table.read(Interval::new(a.min(b), a.max(b)));
                let point = table.read(Interval::point(a));
                for k in 0..=50 {
                    let x = a + (b - a) * f64::from(k) / 50.0;
                    let y = plain(&units, round % 3 == 0, x);
                    let slack = 1e-12;
                    let found = reading.values[0];
                    assert!(found.lo - slack <= y && y <= found.hi + slack, "{x} {y} {found:?}");
                }
                assert!(point.values[0].width() < 1e-12);
                assert!((point.values[0].middle() - plain(&units, round % 3 == 0, a)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn plateaus_are_points_whatever_cancels() {
        let (rise, fall) = ([1e15 / 3.0], [-1e15 / 3.0]);
        let width = 2_f64.powi(-20);
        let units = [Unit { w: 1.0, b: -0.5, out: &rise }, Unit { w: 1.0, b: -0.5 - width, out: &fall }];
        let table = Hinges::new(&units, 1, None);
        let plateau = table.read(Interval::new(0.6, 1e6)).values[0];
        assert_eq!(plateau, Interval::point(1e15 / 3.0 * width));
        assert_eq!(table.read(Interval::new(-5.0, 0.5)).values[0], Interval::point(0.0));
    }
}
