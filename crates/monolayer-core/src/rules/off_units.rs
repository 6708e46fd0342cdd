//! Which hidden units of a first layer are off, from a table of words and a table of places.
//!
//! Before the ReLU a unit is W1 . word + W1 . place + b1 + sum over k of (W1 . `W_O`(k)) z(k), but for rounding.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use super::ball::{Ball, bits};
use super::judge::Inputs;
use super::network::{Block, Network};
use super::sum::{Arithmetic, Term, real_sum, sum};
use crate::number::Dyadic;
use crate::parallel::parallel;

/// Bits of a weight and of an input in the tables.
const WEIGHT: i32 = 27;
const INPUT: i32 = 26;
/// So many products of a weight and an input fit an i64, and so many short ones an i32.
const MOST_COLUMNS: usize = 256;
/// More numbers than this, of units at places, are not kept.
const MOST_KEPT: usize = 1 << 25;
/// Units that tables are made for at a time.
const BATCH: usize = 1 << 14;

/// A bound for every unit, as a linear function of word, place and heads' values.
///
/// **Rule 6.** Each part is a whole number of units of 2^grid, rounded up. So where the sum of a word's entry, a place's entry, the
/// bound of the heads' values and the constant is negative, the unit is off in every covered program.
///
/// Units with the same grid and the same weights for the columns that words have share a *gate*: a word's entry is the same for all of
/// them, and is looked at once.
pub struct OffUnits<'a> {
    network: &'a Network,
    /// The units that the tables are about: what follows is in this order.
    units: Vec<usize>,
    /// An input coordinate is a whole number of units of 2^this, rounded down.
    columns: Vec<i32>,
    /// The columns in which some word is not zero, and those in which some place is not.
    own: [Vec<usize>; 2],
    pub(super) gates: Gates,
    /// The units of each gate, one after another, and where they start.
    pub(super) members: Vec<u32>,
    starts: Vec<u32>,
    /// b1, rounding, and what the tables themselves may be off; nothing where that does not fit: such a unit is never off.
    constants: Vec<Option<i64>>,
    /// What each unit has at most at each place but for the word and the heads' values, unit by unit; the largest number for one that is
    /// never off. Where that is too much, the weights for the columns of places.
    base: Vec<i64>,
    place_weights: Vec<i32>,
    /// The columns of each place.
    places: Vec<Vec<i32>>,
    /// A head's value is between whole numbers of units of 2^this.
    values: Vec<i32>,
    /// What each unit reads of the heads' values is between these, in units of 2^(grid - values), unit by unit.
    gains: Vec<Ends>,
}

/// The lower and the upper end of an interval.
pub(super) type Ends = (i64, i64);

/// The different weights that units have for words.
#[derive(Default)]
pub(super) struct Gates {
    /// Weights in units of 2^(grid - columns), rounded down, for the columns of words, gate by gate.
    weights: Vec<i32>,
    /// The exponent of a gate's entries.
    grids: Vec<i32>,
    /// By a hash of the above: where nothing but hashes agree, gates are compared.
    found: HashMap<u64, Vec<u32>>,
}

/// What is found of one unit.
struct Entries {
    grid: i32,
    word: Vec<i32>,
    place: Vec<i32>,
    gains: Vec<Ends>,
    constant: Option<i64>,
}

/// The units that may be on for a word, with what it adds to each.
pub struct Word(Vec<(usize, i64)>);

impl<'a> OffUnits<'a> {
    /// Tables for the units of the first block, with the values that the heads have for any token. Nothing where a program may overflow.
    pub fn new(network: &'a Network, inputs: &Inputs, z: &[Ball], threads: usize) -> Option<Self> {
        let units = (0..network.blocks[0].hidden()).filter(|j| network.blocks[0].may_fire(*j)).collect();
        Self::of(network, inputs, z, units, threads)
    }

    /// The same for some of the units.
    pub fn of(network: &'a Network, inputs: &Inputs, z: &[Ball], units: Vec<usize>, threads: usize) -> Option<Self> {
        let block = &network.blocks[0];
        let d = inputs.vectors.dimension().filter(|d| *d <= MOST_COLUMNS)?;
        let nothing = vec![Dyadic::ZERO; d];
        let longest = inputs.offsets.windows(2).map(|w| w[1] - w[0]).max()? + usize::from(inputs.start.is_some());
        let longest = if network.positions.is_some() { longest } else { 1 };
        let places = (0..longest).map(|place| network.input(&nothing, place)).collect::<Option<Vec<_>>>()?;
        let mut words = Largest::new(d);
        for word in 0..inputs.vectors.len() {
            words.add(&rounded(network.arithmetic, &inputs.vectors.get(word))?);
        }
        let placed = Largest::of(&places)?;
        let (whole, off, largest) = reach(network.arithmetic, block, &words, &placed, z)?;
        let mut all = Self {
            network,
            units,
            columns: largest.iter().map(|x| x.top() - INPUT).collect(),
            own: [&words, &placed].map(|of| (0..d).filter(|c| !of.0[*c].is_zero()).collect()),
            gates: Gates::default(),
            members: vec![],
            starts: vec![],
            constants: vec![],
            base: vec![],
            place_weights: vec![],
            places: vec![],
            values: z.iter().map(|z| z.top() - INPUT).collect(),
            gains: vec![],
        };
        all.places = places.iter().map(|x| all.inputs(x, 1)).collect();
        let kept = all.units.len().saturating_mul(all.places.len()) <= MOST_KEPT;
        let mut gate = vec![];
        for first in (0..all.units.len()).step_by(BATCH) {
            let count = BATCH.min(all.units.len() - first);
            for found in parallel(threads, count, |i| all.unit(block, first + i, (&whole, &off))) {
                let found = found?;
                gate.push(all.gates.add(found.grid, &found.word));
                if kept {
                    let base = |x: &Vec<i32>| found.constant.map_or(i64::MAX, |c| c + entry(&found.place, x));
                    all.base.extend(all.places.iter().map(base));
                } else {
                    all.place_weights.extend(found.place);
                }
                all.gains.extend(found.gains);
                all.constants.push(found.constant);
            }
        }
        all.gates.found = HashMap::new();
        all.starts = vec![0; all.gates.len() + 1];
        gate.iter().for_each(|gate| all.starts[*gate as usize + 1] += 1);
        (0..all.gates.len()).for_each(|at| all.starts[at + 1] += all.starts[at]);
        let mut next = all.starts.clone();
        all.members = vec![0; gate.len()];
        for (i, gate) in gate.iter().enumerate() {
            all.members[next[*gate as usize] as usize] = i as u32;
            next[*gate as usize] += 1;
        }
        Some(all)
    }

    fn unit(&self, block: &Block, i: usize, (whole, off): (&[Ball], &[Ball])) -> Option<Entries> {
        let (part, j) = (block.part.as_ref()?, self.units[i]);
        let weights: Vec<(usize, Dyadic)> = part.w1.weights(j).collect();
        let bias = Term::addend(Ball::exact(part.b1.at(j)));
        let terms = weights.iter().map(|(c, w)| Term::weighted(*w, whole[*c])).chain([bias]);
        let rounding = Term::addend(sum(self.network.arithmetic, terms)?.rounding);
        let constant = real_sum(weights.iter().map(|(c, w)| Term::weighted(*w, off[*c])).chain([rounding, bias]));
        let grid = weights.iter().map(|(c, w)| w.top() + 1 + self.columns[*c]).max().unwrap_or(0) - WEIGHT;
        let (mut row, mut slack, mut largest) = (vec![0; self.columns.len()], 0, 0_i64);
        for (c, w) in &weights {
            let entry = i32::try_from(floor(w.m.into(), w.e + self.columns[*c] - grid)).ok()?;
            row[*c] = entry;
            // Inputs are up to 2^26 units, and off by less than one; the weight is off by less than one; word and place.
            slack += 2 * (i64::from(entry.unsigned_abs()) + (1 << INPUT) + 1);
            largest += i64::from(entry.unsigned_abs()) << INPUT;
        }
        let high = outward(constant, grid).1;
        let gains = block.gains[j].iter().zip(&self.values).map(|(gain, e)| outward(*gain, grid - e));
        let gains: Vec<(i128, i128)> = gains.collect();
        let all = gains.iter().fold(high.unsigned_abs(), |all, (a, b)| all.max(a.unsigned_abs()).max(b.unsigned_abs()));
        let [word, place] = [0, 1].map(|of| self.own[of].iter().map(|c| row[*c]).collect::<Vec<i32>>());
        Some(Entries {
            grid,
            word,
            place,
            gains: gains.into_iter().map(|(a, b)| (a as i64, b as i64)).collect(),
            constant: (all < 1 << 61 && largest < 1 << 61).then_some(high as i64 + slack),
        })
    }

    /// The columns of an input that words have (0) or that places have (1), in their units.
    fn inputs(&self, x: &[Dyadic], of: usize) -> Vec<i32> {
        let unit =
            |c: &usize| if x[*c].is_zero() { 0 } else { floor(x[*c].m.into(), x[*c].e - self.columns[*c]) as i32 };
        self.own[of].iter().map(unit).collect()
    }

    /// A word in the units of its columns; nothing where it overflows the format.
    pub(super) fn word_units(&self, x: &[Dyadic]) -> Option<Vec<i32>> {
        Some(self.inputs(&rounded(self.network.arithmetic, x)?, 0))
    }

    /// Bounds of heads' values, in their units.
    pub(super) fn ends(&self, z: &[Ball]) -> Vec<Ends> {
        let ends = |(z, e): (&Ball, &i32)| outward(*z, *e);
        z.iter().zip(&self.values).map(ends).map(|(low, high)| (low as i64, high as i64)).collect()
    }

    /// What heads' values add to a unit at most, between these bounds. A product is largest at some ends.
    pub(super) fn heads(&self, i: usize, z: &[Ends]) -> i128 {
        let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
        let gains = &self.gains[i * self.values.len()..(i + 1) * self.values.len()];
        let heads = gains.iter().zip(z).map(|(&(a, b), &(low, high))| {
            product(a, low).max(product(a, high)).max(product(b, low)).max(product(b, high))
        });
        heads.sum()
    }

    /// What a unit has at most at a place but for the word and the heads' values; nothing for one that is never off.
    pub(super) fn base(&self, i: usize, place: usize) -> Option<i64> {
        let place = place.min(self.places.len() - 1);
        if let Some(base) = self.base.get(i * self.places.len() + place) {
            return Some(*base).filter(|base| *base != i64::MAX);
        }
        let weights = &self.place_weights[i * self.own[1].len()..(i + 1) * self.own[1].len()];
        Some(self.constants[i]? + entry(weights, &self.places[place]))
    }

    /// The units of a gate.
    pub(super) fn of_gate(&self, gate: usize) -> &[u32] {
        &self.members[self.starts[gate] as usize..self.starts[gate + 1] as usize]
    }

    /// How many columns words have.
    pub(super) fn word_columns(&self) -> usize {
        self.own[0].len()
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// The number of a unit in the network.
    pub(super) fn index(&self, i: u32) -> usize {
        self.units[i as usize]
    }

    /// The most that each unit has at any place but for the word, where the heads have these values.
    pub fn anywhere(&self, z: &[Ball]) -> Anywhere {
        let z = self.ends(z);
        let most = |i: usize| {
            let places = (0..self.places.len()).map(|place| self.base(i, place)).max()??;
            Some(i128::from(places) + self.heads(i, &z))
        };
        Anywhere((0..self.units.len()).map(most).collect())
    }

    /// The units that may be on for a word at some place; nothing where it overflows the format.
    pub fn among(&self, vector: &[Dyadic], anywhere: &Anywhere) -> Option<Word> {
        let (x, mut open) = (self.word_units(vector)?, vec![]);
        for gate in 0..self.gates.len() {
            let word = entry(self.gates.weights(gate, x.len()), &x);
            let units = self.of_gate(gate).iter().map(|i| *i as usize);
            let may = |i: &usize| anywhere.0[*i].is_none_or(|most| most + i128::from(word) >= 0);
            open.extend(units.filter(may).map(|i| (i, word)));
        }
        open.sort_unstable();
        Some(Word(open))
    }

    /// The units that are not off for a word at a place.
    pub fn open(&self, word: &Word, place: usize, z: &[Ball]) -> Vec<usize> {
        let z = self.ends(z);
        let most = |i: usize| Some(i128::from(self.base(i, place)?) + self.heads(i, &z));
        let may = |(i, word): &&(usize, i64)| most(*i).is_none_or(|most| most + i128::from(*word) >= 0);
        word.0.iter().filter(may).map(|(i, _)| self.units[*i]).collect()
    }
}

/// The most that each unit has beside a word; nothing for one that is never off.
pub struct Anywhere(Vec<Option<i128>>);

impl Gates {
    /// The number of a gate, a new one if need be.
    fn add(&mut self, grid: i32, weights: &[i32]) -> u32 {
        let (hash, width) = (BuildHasherDefault::<DefaultHasher>::default().hash_one((grid, weights)), weights.len());
        let known = self.found.entry(hash).or_default();
        let same = |gate: &&u32| {
            let at = **gate as usize;
            self.grids[at] == grid && self.weights[at * width..(at + 1) * width] == *weights
        };
        if let Some(gate) = known.iter().find(same) {
            return *gate;
        }
        let gate = self.grids.len() as u32;
        known.push(gate);
        self.grids.push(grid);
        self.weights.extend_from_slice(weights);
        gate
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.grids.len()
    }

    pub(super) fn weights(&self, gate: usize, width: usize) -> &[i32] {
        &self.weights[gate * width..(gate + 1) * width]
    }
}

/// W1 . x for a unit.
pub(super) fn entry(row: &[i32], x: &[i32]) -> i64 {
    row.iter().zip(x).map(|(w, x)| i64::from(*w) * i64::from(*x)).sum()
}

impl Word {
    /// Whether all units are off, at every place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The largest size of a coordinate among vectors.
pub(super) struct Largest(Vec<Ball>);

impl Largest {
    fn new(d: usize) -> Self {
        Self(vec![Ball::ZERO; d])
    }

    /// Of all rows; nothing where there are none.
    pub(super) fn of(rows: &[Vec<Dyadic>]) -> Option<Self> {
        let mut all = Self::new(rows.first()?.len());
        rows.iter().for_each(|row| all.add(row));
        Some(all)
    }

    fn add(&mut self, x: &[Dyadic]) {
        for (largest, x) in self.0.iter_mut().zip(x) {
            let size = Ball::exact(*x).size();
            // Most vectors have the same few numbers.
            if size != *largest && largest.is_below(size) {
                *largest = size;
            }
        }
    }
}

/// A vector in the arithmetic that is judged.
fn rounded(arithmetic: Arithmetic, x: &[Dyadic]) -> Option<Vec<Dyadic>> {
    x.iter().map(|x| arithmetic.round(*x)).collect()
}

/// Bounds of every coordinate of a token, a word's vector plus a place's, and of what rounding adds to it.
pub(super) fn inputs_within(arithmetic: Arithmetic, words: &Largest, places: &Largest) -> Vec<(Ball, Ball)> {
    let coordinate = |(word, place): (&Ball, &Ball)| {
        // Where both add to a coordinate, their sum is rounded, by at most 2^-p times a bound of it.
        let both = !word.is_zero() && !place.is_zero();
        let x = word.plus(*place).scaled(both.into()).within();
        match arithmetic {
            Arithmetic::Float { format, .. } if both => (x, x.scaled(-format.bits())),
            _ => (x, Ball::ZERO),
        }
    };
    words.0.iter().zip(&places.0).map(coordinate).collect()
}

/// Bounds of every coordinate of a token after attention, of what rounding adds to it on the way, and of its input.
fn reach(
    arithmetic: Arithmetic,
    block: &Block,
    words: &Largest,
    places: &Largest,
    z: &[Ball],
) -> Option<(Vec<Ball>, Vec<Ball>, Vec<Ball>)> {
    let (mut all, mut off, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for (c, (x, input)) in inputs_within(arithmetic, words, places).into_iter().enumerate() {
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
