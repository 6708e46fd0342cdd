//! Which hidden units of a first layer are off, from a table of words and a table of places.
//!
//! Before the ReLU a unit is W1 . word + W1 . place + b1 + sum over k of (W1 . `W_O`(k)) z(k), but for rounding.

use super::ball::{Ball, bits};
use super::judge::Inputs;
use super::network::{Block, Network};
use super::sum::{Arithmetic, Term, real_sum, sum};
use crate::number::Dyadic;

/// Bits of a weight and of an input in the tables.
const WEIGHT: i32 = 27;
const INPUT: i32 = 26;
/// So many products of a weight and an input fit an i64.
const MOST_COLUMNS: usize = 256;

/// A bound for every unit, as a linear function of word, place and heads' values.
///
/// **Rule 6.** Each part is a whole number of units of 2^grid, rounded up. So where the sum of a word's entry, a place's entry, the
/// bound of the heads' values and the constant is negative, the unit is off in every covered program.
pub struct OffUnits<'a> {
    network: &'a Network,
    /// An input coordinate is a whole number of units of 2^this, rounded down.
    columns: Vec<i32>,
    /// `[q, d]`: weights in units of 2^(grid - columns), rounded down.
    weights: Vec<i32>,
    /// The exponent of each unit's table entries.
    grids: Vec<i32>,
    /// b1, rounding, and what the tables themselves may be off; nothing where that does not fit: such a unit is never off.
    constants: Vec<Option<i64>>,
    places: Vec<Vec<i64>>,
    /// What the heads' values add to each unit at most, and a place.
    heads: Vec<Option<i64>>,
    greatest: Vec<i64>,
}

/// What a word adds to every unit, and the units that may be on for it.
pub struct Word {
    entries: Vec<i64>,
    open: Vec<usize>,
}

impl<'a> OffUnits<'a> {
    /// Tables for the first block, with the values that the heads have for any token. Nothing where a program may overflow.
    pub fn new<'z>(network: &'a Network, inputs: &Inputs, heads: impl Iterator<Item = &'z Vec<Ball>>) -> Option<Self> {
        let block = &network.blocks[0];
        let d = inputs.vectors.first().map(Vec::len).filter(|d| *d <= MOST_COLUMNS)?;
        let nothing = vec![Dyadic::ZERO; d];
        let longest = inputs.offsets.windows(2).map(|w| w[1] - w[0]).max()? + usize::from(inputs.start.is_some());
        let longest = if network.positions.is_some() { longest } else { 1 };
        let places = (0..longest).map(|place| network.input(&nothing, place)).collect::<Option<Vec<_>>>()?;
        let words = inputs.vectors.iter().map(|x| rounded(network.arithmetic, x)).collect::<Option<Vec<_>>>()?;
        let width = block.attention.as_ref().map_or(0, |a| a.heads * a.size);
        let z = heads.fold(vec![Ball::ZERO; width], |all, z| {
            all.iter().zip(z).map(|(all, z)| if covers(*all, *z) { *all } else { all.hull(*z) }).collect()
        });
        let (whole, off, largest) = reach(network.arithmetic, block, &words, &places, &z)?;
        let columns = largest.iter().map(|x| x.top() - INPUT).collect();
        let (weights, grids, constants) = (vec![0; block.hidden() * d], vec![], vec![]);
        let mut off_units =
            Self { network, columns, weights, grids, constants, places: vec![], heads: vec![], greatest: vec![] };
        for j in 0..block.hidden() {
            off_units.unit(block, j, &whole, &off)?;
            off_units.heads.push(off_units.of_heads(j, &z));
        }
        off_units.places = places.iter().map(|x| off_units.entries(x)).collect();
        let greatest = |j: usize| off_units.places.iter().map(|place| place[j]).max().unwrap_or(0);
        off_units.greatest = (0..block.hidden()).map(greatest).collect();
        Some(off_units)
    }

    fn unit(&mut self, block: &Block, j: usize, whole: &[Ball], off: &[Ball]) -> Option<()> {
        let part = block.part.as_ref()?;
        let bias = Term::addend(Ball::exact(part.b1.at(j)));
        let terms = part.w1.weights(j).map(|(c, w)| Term::weighted(w, whole[c])).chain([bias]);
        let rounding = Term::addend(sum(self.network.arithmetic, terms)?.rounding);
        let constant = real_sum(part.w1.weights(j).map(|(c, w)| Term::weighted(w, off[c])).chain([rounding, bias]));
        let grid = part.w1.weights(j).map(|(c, w)| w.top() + 1 + self.columns[c]).max().unwrap_or(0) - WEIGHT;
        let (mut slack, mut largest) = (0, 0_i64);
        for (c, w) in part.w1.weights(j) {
            let entry = i32::try_from(floor(w.m.into(), w.e + self.columns[c] - grid)).ok()?;
            self.weights[j * self.columns.len() + c] = entry;
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
    fn entries(&self, x: &[Dyadic]) -> Vec<i64> {
        let unit = |(x, column): (&Dyadic, &i32)| if x.is_zero() { 0 } else { floor(x.m.into(), x.e - column) as i32 };
        let x: Vec<i32> = x.iter().zip(&self.columns).map(unit).collect();
        let dot = |row: &[i32]| row.iter().zip(&x).map(|(w, x)| i64::from(*w) * i64::from(*x)).sum();
        self.weights.chunks_exact(x.len()).map(dot).collect()
    }

    /// An upper bound of what the heads' values add to unit j; nothing where it does not fit.
    fn of_heads(&self, j: usize, z: &[Ball]) -> Option<i64> {
        let mut all = 0_i64;
        for (gain, z) in self.network.blocks[0].gains[j].iter().zip(z) {
            let (_, high, e) = gain.times(*z).ends();
            // What is far below zero may be taken as less far, never what is far above it as less.
            let high = (-floor(-high, e - self.grids[j])).max(-(1 << 60));
            all = all.checked_add(i64::try_from(high).ok()?)?;
        }
        Some(all)
    }

    /// Whether a unit is off, whatever rounding does.
    fn is_off(&self, j: usize, word: i64, place: i64, heads: Option<i64>) -> bool {
        let parts = [Some(word), Some(place), heads, self.constants[j]];
        let sum = parts.into_iter().try_fold(0_i128, |sum, part| part.map(|part| sum + i128::from(part)));
        sum.is_some_and(|sum| sum < 0)
    }

    /// The table entries of a word; nothing where it overflows the format.
    pub fn word(&self, vector: &[Dyadic]) -> Option<Word> {
        let entries = self.entries(&rounded(self.network.arithmetic, vector)?);
        let off = |j: usize| self.is_off(j, entries[j], self.greatest[j], self.heads[j]);
        Some(Word { open: (0..entries.len()).filter(|&j| !off(j)).collect(), entries })
    }

    /// The units that are not off for a word at a place.
    pub fn open(&self, word: &Word, place: usize, z: &[Ball]) -> Vec<usize> {
        let place = &self.places[place.min(self.places.len() - 1)];
        let off = |j: usize| self.is_off(j, word.entries[j], place[j], self.of_heads(j, z));
        word.open.iter().copied().filter(|&j| !off(j)).collect()
    }
}

/// A vector in the arithmetic that is judged.
fn rounded(arithmetic: Arithmetic, x: &[Dyadic]) -> Option<Vec<Dyadic>> {
    x.iter().map(|x| arithmetic.round(*x)).collect()
}

/// Whether the second ball lies within the first.
fn covers(a: Ball, b: Ball) -> bool {
    let gap = a.middle().plus(b.middle().minus()).size().plus(b.spread().size());
    Ball { m: a.r as i64, r: 0, e: a.e }.plus(gap.minus()).is_not_negative()
}

/// Bounds of every coordinate of a token after attention, of what rounding adds to it on the way, and of its input.
fn reach(
    arithmetic: Arithmetic,
    block: &Block,
    words: &[Vec<Dyadic>],
    places: &[Vec<Dyadic>],
    z: &[Ball],
) -> Option<(Vec<Ball>, Vec<Ball>, Vec<Ball>)> {
    let largest = |rows: &[Vec<Dyadic>], c: usize| {
        rows.iter().map(|x| Ball::exact(x[c]).size()).reduce(|a, b| if a.is_below(b) { b } else { a })
    };
    let (mut all, mut off, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for c in 0..words[0].len() {
        let (word, place) = (largest(words, c)?, largest(places, c)?);
        // Where both add to a coordinate, their sum is rounded, by at most 2^-p times a bound of it.
        let both = !word.is_zero() && !place.is_zero();
        let x = word.plus(place).scaled(both.into()).within();
        let input = match arithmetic {
            Arithmetic::Float { format, .. } if both => x.scaled(-format.bits()),
            _ => Ball::ZERO,
        };
        let heads = block.attention.iter().flat_map(|layer| layer.writes(c));
        let terms = heads.map(|(k, w)| Term::weighted(w, z[k].within())).chain([Term::addend(x)]);
        let after = sum(arithmetic, terms)?;
        whole.push(after.computed());
        off.push(input.plus(after.rounding));
        all.push(x);
    }
    Some((whole, off, all))
}

/// m 2^by, rounded down.
fn floor(m: i128, by: i32) -> i128 {
    if by >= 0 {
        // Callers keep this below 2^62; what is larger saturates on the safe side of their check.
        return if bits(m.unsigned_abs()) + by > 126 { m.signum() << 126 } else { m << by };
    }
    m >> by.unsigned_abs().min(127)
}
