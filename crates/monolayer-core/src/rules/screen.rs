//! Which hidden units of a first layer are off, from a table of words and a table of places.
//!
//! Before the ReLU a unit is W1 . word + W1 . place + b1 + sum over k of (W1 . `W_O`(k)) z(k), but for rounding. Each part is a
//! whole number of units of 2^grid, rounded up; so a sum of table entries that is negative shows that the unit is off.

use super::ball::{Ball, bits};
use super::forward::Block;
use super::prepare::{FeedForward, Row};
use super::sum::{Arithmetic, Term, real_sum, sum};
use crate::number::Dyadic;

/// Bits of a weight and of an input in the tables.
const WEIGHT: i32 = 27;
const INPUT: i32 = 26;
/// So many products of a weight and an input fit an i64.
const MOST_COLUMNS: usize = 256;

/// A bound for every unit, as a linear function of word, place and heads' values.
pub struct Screen {
    d: usize,
    /// An input coordinate is a whole number of units of 2^this, rounded down.
    columns: Vec<i32>,
    /// `[q, d]`: weights in units of 2^(grid - columns).
    weights: Vec<i32>,
    /// The exponent of each unit's table entries.
    grids: Vec<i32>,
    /// b1, rounding, and what the tables themselves may be off; nothing where that does not fit: such a unit is never off.
    constants: Vec<Option<i64>>,
}

/// What one input (a word or a place) adds to every unit.
pub type Entries = Vec<i64>;

impl Screen {
    /// Tables for a block whose inputs are at most `largest` in size in each coordinate, as are the heads' values `z`.
    ///
    /// Where both a word and a place add to a coordinate, their sum is rounded, by at most 2^-p times `largest`.
    /// Nothing where a program may overflow.
    pub fn new(arithmetic: Arithmetic, block: &Block, largest: &[Ball], both: &[bool], z: &[Ball]) -> Option<Self> {
        let (part, d) = (block.part.filter(|_| largest.len() <= MOST_COLUMNS)?, largest.len());
        let columns: Vec<i32> = largest.iter().map(|x| x.top() - INPUT).collect();
        let mut screen = Self { d, columns, weights: vec![0; part.w1.len() * d], grids: vec![], constants: vec![] };
        let (whole, off) = reach(arithmetic, block, largest, both, z)?;
        for (j, row) in part.w1.iter().enumerate() {
            screen.add(arithmetic, part, (j, row), &whole, &off)?;
        }
        Some(screen)
    }

    fn add(
        &mut self,
        arithmetic: Arithmetic,
        part: &FeedForward,
        (j, row): (usize, &Row),
        whole: &[Ball],
        off: &[Ball],
    ) -> Option<()> {
        let bias = Term::addend(Ball::exact(part.b1[j]));
        let terms = row.iter().map(|&(c, w)| Term::weighted(w, whole[c])).chain([bias]);
        let rounding = sum(arithmetic, terms)?.rounding;
        let errors = row.iter().map(|&(c, w)| Term::weighted(w, off[c])).chain([Term::addend(rounding), bias]);
        let constant = real_sum(errors);
        let tops = row.iter().map(|&(c, w)| w.top() + 1 + self.columns[c]);
        let grid = tops.max().unwrap_or(0) - WEIGHT;
        let (mut slack, mut largest) = (0, 0_i64);
        for &(c, w) in row {
            let entry = floor(w.m.into(), w.e + self.columns[c] - grid);
            let entry = i32::try_from(entry).expect("a weight has 27 bits");
            self.weights[j * self.d + c] = entry;
            // Inputs are up to 2^26 units, and off by less than one; the weight is off by less than one; word and place.
            slack += 2 * (i64::from(entry.unsigned_abs()) + (1 << INPUT) + 1);
            largest += i64::from(entry.unsigned_abs()) << INPUT;
        }
        let (_, high, e) = constant.ends();
        let high = -floor(-high, e - grid);
        self.grids.push(grid);
        let fits = high.unsigned_abs() < 1 << 61 && largest < 1 << 61;
        self.constants.push(fits.then_some(high as i64 + slack));
        Some(())
    }

    /// W1 . x for every unit.
    pub fn entries(&self, x: &[Dyadic]) -> Entries {
        let x: Vec<i32> = x
            .iter()
            .zip(&self.columns)
            .map(|(x, column)| if x.is_zero() { 0 } else { floor(x.m.into(), x.e - column) as i32 })
            .collect();
        let dot = |row: &[i32]| row.iter().zip(&x).map(|(w, x)| i64::from(*w) * i64::from(*x)).sum();
        self.weights.chunks_exact(self.d).map(dot).collect()
    }

    /// An upper bound of what the heads' values add to unit j; nothing where it does not fit.
    pub fn of_heads(&self, gains: &[Ball], z: &[Ball], j: usize) -> Option<i64> {
        let mut all = 0_i64;
        for (gain, z) in gains.iter().zip(z) {
            let (_, high, e) = gain.times(*z).ends();
            // What is far below zero may be taken as less far, never what is far above it as less.
            let high = (-floor(-high, e - self.grids[j])).max(-(1 << 60));
            all = all.checked_add(i64::try_from(high).ok()?)?;
        }
        Some(all)
    }

    /// Whether a unit is off, whatever rounding does.
    pub fn is_off(&self, j: usize, word: i64, place: i64, heads: Option<i64>) -> bool {
        let parts = [Some(word), Some(place), heads, self.constants[j]];
        let sum = parts.into_iter().try_fold(0_i128, |sum, part| part.map(|part| sum + i128::from(part)));
        sum.is_some_and(|sum| sum < 0)
    }
}

/// Bounds of every coordinate of a token after attention, and of what rounding adds to it on the way.
fn reach(
    arithmetic: Arithmetic,
    block: &Block,
    largest: &[Ball],
    both: &[bool],
    z: &[Ball],
) -> Option<(Vec<Ball>, Vec<Ball>)> {
    let (mut whole, mut off) = (Vec::new(), Vec::new());
    for (c, x) in largest.iter().enumerate() {
        let x = x.within();
        let input = match arithmetic {
            Arithmetic::Float { format, .. } if both[c] => x.scaled(-format.bits()),
            _ => Ball::ZERO,
        };
        let row = block.attention.map_or(&[][..], |a| &a.w_o[c]);
        if row.is_empty() {
            whole.push(x);
            off.push(input);
            continue;
        }
        let terms = row.iter().map(|&(k, w)| Term::weighted(w, z[k].within()));
        let sum = sum(arithmetic, terms.chain([Term::addend(x)]))?;
        whole.push(sum.computed());
        off.push(input.plus(sum.rounding));
    }
    Some((whole, off))
}

/// m 2^by, rounded down.
fn floor(m: i128, by: i32) -> i128 {
    if by >= 0 {
        // Callers keep this below 2^62; what is larger saturates on the safe side of their check.
        return if bits(m.unsigned_abs()) + by > 126 { m.signum() << 126 } else { m << by };
    }
    m >> by.unsigned_abs().min(127)
}
