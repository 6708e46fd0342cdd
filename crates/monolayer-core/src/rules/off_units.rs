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
/// So many products of a weight and an input fit an i64, and so many short ones an i32.
const MOST_COLUMNS: usize = 256;
/// Bits that short weights and short inputs leave out: they have 14 and 8, and a sign.
const WEIGHT_CUT: i32 = 13;
const INPUT_CUT: i32 = 18;

/// A bound for every unit, as a linear function of word, place and heads' values.
///
/// **Rule 6.** Each part is a whole number of units of 2^grid, rounded up. So where the sum of a word's entry, a place's entry, the
/// bound of the heads' values and the constant is negative, the unit is off in every covered program.
pub struct OffUnits<'a> {
    network: &'a Network,
    /// The units that the tables are about: what follows is in this order.
    units: Vec<usize>,
    /// An input coordinate is a whole number of units of 2^this, rounded down.
    columns: Vec<i32>,
    /// `[q, d]`: weights in units of 2^(grid - columns), rounded down.
    weights: Vec<i32>,
    /// The same without their last bits, rounded down, and what that may cost a unit but for its inputs.
    short: Vec<i16>,
    short_slack: Vec<i64>,
    /// The exponent of each unit's table entries.
    grids: Vec<i32>,
    /// b1, rounding, and what the tables themselves may be off; nothing where that does not fit: such a unit is never off.
    constants: Vec<Option<i64>>,
    places: Vec<Vec<i64>>,
    /// A head's value is between whole numbers of units of 2^this.
    values: Vec<i32>,
    /// What each unit reads of the heads' values is between these, in units of 2^(grid - values).
    gains: Vec<Vec<Ends>>,
}

/// The lower and the upper end of an interval.
type Ends = (i64, i64);

/// The units that may be on for a word, with what it adds to each.
pub struct Word(Vec<(usize, i64)>);

impl<'a> OffUnits<'a> {
    /// Tables for the units of the first block, with the values that the heads have for any token. Nothing where a program may overflow.
    pub fn new<'z>(network: &'a Network, inputs: &Inputs, heads: impl Iterator<Item = &'z Vec<Ball>>) -> Option<Self> {
        Self::of(network, inputs, heads, (0..network.blocks[0].hidden()).collect())
    }

    /// The same for some of the units.
    pub fn of<'z>(
        network: &'a Network,
        inputs: &Inputs,
        heads: impl Iterator<Item = &'z Vec<Ball>>,
        units: Vec<usize>,
    ) -> Option<Self> {
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
        let size = units.len() * d;
        let mut off_units = Self {
            network,
            units,
            columns,
            weights: vec![0; size],
            short: vec![0; size],
            short_slack: vec![],
            grids: vec![],
            constants: vec![],
            places: vec![],
            values: z.iter().map(|z| z.top() - INPUT).collect(),
            gains: vec![],
        };
        for i in 0..off_units.units.len() {
            off_units.unit(block, i, &whole, &off)?;
        }
        let entries = |x: Vec<i32>| (0..off_units.units.len()).map(|i| off_units.entry(i, &x)).collect();
        off_units.places = places.iter().map(|x| entries(off_units.units(x))).collect();
        Some(off_units)
    }

    fn unit(&mut self, block: &Block, i: usize, whole: &[Ball], off: &[Ball]) -> Option<()> {
        let (part, j) = (block.part.as_ref()?, self.units[i]);
        let bias = Term::addend(Ball::exact(part.b1.at(j)));
        let terms = part.w1.weights(j).map(|(c, w)| Term::weighted(w, whole[c])).chain([bias]);
        let rounding = Term::addend(sum(self.network.arithmetic, terms)?.rounding);
        let constant = real_sum(part.w1.weights(j).map(|(c, w)| Term::weighted(w, off[c])).chain([rounding, bias]));
        let grid = part.w1.weights(j).map(|(c, w)| w.top() + 1 + self.columns[c]).max().unwrap_or(0) - WEIGHT;
        let (mut slack, mut largest, mut short_slack) = (0, 0_i64, 0);
        for (c, w) in part.w1.weights(j) {
            let entry = i32::try_from(floor(w.m.into(), w.e + self.columns[c] - grid)).ok()?;
            let short = (entry >> WEIGHT_CUT) as i16;
            short_slack += i64::from(short.unsigned_abs()) + 1;
            (self.weights[i * self.columns.len() + c], self.short[i * self.columns.len() + c]) = (entry, short);
            // Inputs are up to 2^26 units, and off by less than one; the weight is off by less than one; word and place.
            slack += 2 * (i64::from(entry.unsigned_abs()) + (1 << INPUT) + 1);
            largest += i64::from(entry.unsigned_abs()) << INPUT;
        }
        let high = outward(constant, grid).1;
        let gains = block.gains[j].iter().zip(&self.values).map(|(gain, e)| outward(*gain, grid - e));
        let gains: Vec<(i128, i128)> = gains.collect();
        let all = gains.iter().fold(high.unsigned_abs(), |all, (a, b)| all.max(a.unsigned_abs()).max(b.unsigned_abs()));
        self.grids.push(grid);
        self.short_slack.push(short_slack);
        self.gains.push(gains.into_iter().map(|(a, b)| (a as i64, b as i64)).collect());
        self.constants.push((all < 1 << 61 && largest < 1 << 61).then_some(high as i64 + slack));
        Some(())
    }

    /// An input in the units of its columns.
    fn units(&self, x: &[Dyadic]) -> Vec<i32> {
        let unit = |(x, column): (&Dyadic, &i32)| if x.is_zero() { 0 } else { floor(x.m.into(), x.e - column) as i32 };
        x.iter().zip(&self.columns).map(unit).collect()
    }

    /// W1 . x for a unit.
    fn entry(&self, j: usize, x: &[i32]) -> i64 {
        let row = &self.weights[j * x.len()..(j + 1) * x.len()];
        row.iter().zip(x).map(|(w, x)| i64::from(*w) * i64::from(*x)).sum()
    }

    /// Bounds of heads' values, in their units.
    fn ends(&self, z: &[Ball]) -> Vec<Ends> {
        let ends = |(z, e): (&Ball, &i32)| outward(*z, *e);
        z.iter().zip(&self.values).map(ends).map(|(low, high)| (low as i64, high as i64)).collect()
    }

    /// Whether a unit is off, whatever rounding does; `z` are bounds of the heads' values. A product is largest at some ends.
    fn is_off(&self, j: usize, word: i64, place: i64, z: &[Ends]) -> bool {
        let Some(constant) = self.constants[j] else { return false };
        let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
        let heads = self.gains[j].iter().zip(z).map(|(&(a, b), &(low, high))| {
            product(a, low).max(product(a, high)).max(product(b, low)).max(product(b, high))
        });
        i128::from(word) + i128::from(place) + i128::from(constant) + heads.sum::<i128>() < 0
    }

    /// The units that may be on for a word, which is at these places, where the heads have these values; nothing where it overflows
    /// the format. Short numbers tell of most units that they are off: with w = W 2^13 + u and x = X 2^18 + v, 0 <= u < 2^13,
    /// 0 <= v < 2^18, w x is at most (W X + |W| + |X| + 1) 2^31.
    pub fn word<'z>(&self, vector: &[Dyadic], at: impl Iterator<Item = (usize, &'z Vec<Ball>)>) -> Option<Word> {
        let (mut greatest, mut z) = (vec![i64::MIN; self.grids.len()], vec![(i64::MAX, i64::MIN); self.values.len()]);
        for (place, values) in at {
            greatest.iter_mut().zip(self.place(place)).for_each(|(all, own)| *all = (*all).max(*own));
            z.iter_mut().zip(self.ends(values)).for_each(|(all, own)| *all = (all.0.min(own.0), all.1.max(own.1)));
        }
        self.among(vector, &Anywhere { greatest, z })
    }

    /// All places, where the heads have these values.
    pub fn anywhere(&self, z: &[Ball]) -> Anywhere {
        let greatest = |i: usize| self.places.iter().map(|place| place[i]).max().unwrap_or(i64::MIN);
        Anywhere { greatest: (0..self.units.len()).map(greatest).collect(), z: self.ends(z) }
    }

    /// The units that may be on for a word at some place.
    pub fn among(&self, vector: &[Dyadic], Anywhere { greatest, z }: &Anywhere) -> Option<Word> {
        let x = self.units(&rounded(self.network.arithmetic, vector)?);
        let short: Vec<i16> = x.iter().map(|x| (x >> INPUT_CUT) as i16).collect();
        let slack: i64 = short.iter().map(|x| i64::from(x.unsigned_abs())).sum();
        // At most 2^14 2^8 256 in size.
        let dot = |row: &[i16]| {
            let products = row.iter().zip(&short).map(|(w, x)| i32::from(*w).wrapping_mul(i32::from(*x)));
            i64::from(products.fold(0, i32::wrapping_add))
        };
        let off = |j: usize, word: i64| self.is_off(j, word, greatest[j], z);
        let rows = self.short.chunks_exact(x.len()).enumerate();
        let rough = rows.map(|(j, row)| (j, (dot(row) + self.short_slack[j] + slack) << (WEIGHT_CUT + INPUT_CUT)));
        let open = rough.filter(|(j, word)| !off(*j, *word)).map(|(j, _)| (j, self.entry(j, &x)));
        Some(Word(open.filter(|(j, word)| !off(*j, *word)).collect()))
    }

    /// What a place adds to every unit.
    fn place(&self, place: usize) -> &[i64] {
        &self.places[place.min(self.places.len() - 1)]
    }

    /// The units that are not off for a word at a place.
    pub fn open(&self, word: &Word, place: usize, z: &[Ball]) -> Vec<usize> {
        let (place, z) = (self.place(place), self.ends(z));
        word.0.iter().filter(|(i, word)| !self.is_off(*i, *word, place[*i], &z)).map(|(i, _)| self.units[*i]).collect()
    }
}

/// The most that a place adds to each unit, and bounds of the heads' values.
pub struct Anywhere {
    greatest: Vec<i64>,
    z: Vec<Ends>,
}

impl Word {
    /// Whether all units are off, at every place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

/// Bounds of every coordinate of a token, a word's vector plus a place's, and of what rounding adds to it.
pub(super) fn inputs_within(
    arithmetic: Arithmetic,
    words: &[Vec<Dyadic>],
    places: &[Vec<Dyadic>],
) -> Option<Vec<(Ball, Ball)>> {
    let largest = |rows: &[Vec<Dyadic>], c: usize| {
        rows.iter().map(|x| Ball::exact(x[c]).size()).reduce(|a, b| if a.is_below(b) { b } else { a })
    };
    let coordinate = |c: usize| {
        let (word, place) = (largest(words, c)?, largest(places, c)?);
        // Where both add to a coordinate, their sum is rounded, by at most 2^-p times a bound of it.
        let both = !word.is_zero() && !place.is_zero();
        let x = word.plus(place).scaled(both.into()).within();
        match arithmetic {
            Arithmetic::Float { format, .. } if both => Some((x, x.scaled(-format.bits()))),
            _ => Some((x, Ball::ZERO)),
        }
    };
    (0..words.first()?.len()).map(coordinate).collect()
}

/// Bounds of every coordinate of a token after attention, of what rounding adds to it on the way, and of its input.
fn reach(
    arithmetic: Arithmetic,
    block: &Block,
    words: &[Vec<Dyadic>],
    places: &[Vec<Dyadic>],
    z: &[Ball],
) -> Option<(Vec<Ball>, Vec<Ball>, Vec<Ball>)> {
    let (mut all, mut off, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for (c, (x, input)) in inputs_within(arithmetic, words, places)?.into_iter().enumerate() {
        let heads = block.attention.iter().flat_map(|layer| layer.writes(c));
        let terms = heads.map(|(k, w)| Term::weighted(w, z[k].within())).chain([Term::addend(x)]);
        let after = sum(arithmetic, terms)?;
        whole.push(after.computed());
        off.push(input.plus(after.rounding));
        all.push(x);
    }
    Some((whole, off, all))
}

/// The ends of a ball in units of 2^e, rounded outward.
fn outward(x: Ball, e: i32) -> (i128, i128) {
    let (low, high, own) = x.ends();
    (floor(low, own - e), -floor(-high, own - e))
}

/// m 2^by, rounded down.
fn floor(m: i128, by: i32) -> i128 {
    if by >= 0 {
        // Callers keep this below 2^62; what is larger saturates on the safe side of their check.
        return if bits(m.unsigned_abs()) + by > 126 { m.signum() << 126 } else { m << by };
    }
    m >> by.unsigned_abs().min(127)
}
