//! Which units may be on for words at one place: most are told to be off by short numbers, many words at a time.

use super::off_units::{Ends, OffUnits, entry};
use crate::number::Dyadic;
use crate::parallel::parallel;
use crate::rules::ball::Ball;

/// What stands for a unit that is never off: entries of words are at most 2^61 in size.
const NEVER_OFF: i128 = 1 << 62;
/// Bits that short weights and short inputs leave out: they have 14 and 8, and a sign.
const WEIGHT_CUT: i32 = 13;
const INPUT_CUT: i32 = 18;
/// Columns whose products are added up together.
const CHUNK: usize = 32;
/// Parts into which the range of a head's values is cut, where there are words enough.
const KNOTS: i64 = 16;
const MANY: usize = 256;
/// Gates that are looked at together.
const BATCH: usize = 1 << 12;

/// The gates that may be open at a place.
///
/// Beside a word, a unit has at most a convex function of the one head's value: b + max(a z, c z). So over an interval it has the
/// most at one of its ends, and the same goes for the greatest over the units of a gate. Short numbers tell of most gates that they
/// are closed: with w = W 2^13 + u and x = X 2^18 + v, 0 <= u < 2^13, 0 <= v < 2^18, w x is at most (W X + |W| + |X| + 1) 2^31.
pub struct AtPlace<'a> {
    units: &'a OffUnits<'a>,
    /// What each unit has at most but for the word and the heads' values; nothing for one that is never off.
    base: Vec<Option<i64>>,
    /// Bounds of the heads' values.
    range: Vec<Ends>,
    /// Values of the one head, rising, at which gates are known; none for other numbers of heads: all values count there.
    knots: Vec<i64>,
    gates: Vec<u32>,
    /// Short weights, gate by gate, in so many columns.
    short: Vec<i16>,
    width: usize,
    /// A gate is closed at a knot where sum of W X + sum of |X| is below this.
    least: Vec<i32>,
}

/// What is known of one gate.
struct Gate {
    gate: u32,
    short: Vec<i16>,
    least: Vec<i32>,
}

/// A word and bounds of the heads' values of some of its tokens.
pub struct Item {
    word: Option<Vec<i32>>,
    z: Vec<Ends>,
}

impl<'a> OffUnits<'a> {
    /// A word, and bounds of the heads' values of some of its tokens.
    pub fn item<'z>(&self, word: &[Dyadic], mut tokens: impl Iterator<Item = &'z [Ball]>) -> Item {
        let mut z = tokens.next().map(|z| self.ends(z)).unwrap_or_default();
        for own in tokens {
            z.iter_mut().zip(self.ends(own)).for_each(|(all, own)| *all = (all.0.min(own.0), all.1.max(own.1)));
        }
        Item { word: self.word_units(word), z }
    }

    /// The gates at a place, for so many words, where the heads' values are within these.
    pub fn at_place(&'a self, place: usize, z: &[Ball], words: usize, threads: usize) -> AtPlace<'a> {
        let z = self.ends(z);
        let base: Vec<Option<i64>> = (0..self.members.len()).map(|i| self.base(i, place)).collect();
        let parts = if words < MANY { 1 } else { KNOTS };
        let mut knots = vec![];
        if let [(low, high)] = z[..] {
            let knot = |k: i64| low + ((i128::from(high) - i128::from(low)) * i128::from(k) / i128::from(parts)) as i64;
            knots = (0..=parts).map(knot).collect();
        }
        let columns = self.word_columns();
        let width = columns.max(1).next_multiple_of(CHUNK);
        let (gates, short, least) = (vec![], vec![], vec![]);
        let mut all = AtPlace { units: self, base, range: z, knots, gates, short, width, least };
        let jobs = self.gates.len().div_ceil(BATCH);
        let some = |job: usize| {
            let gates = job * BATCH..self.gates.len().min((job + 1) * BATCH);
            gates.filter_map(|gate| all.gate(gate)).collect::<Vec<Gate>>()
        };
        for gate in parallel(threads, jobs, some).into_iter().flatten() {
            all.gates.push(gate.gate);
            all.short.extend(gate.short);
            all.short.resize(all.gates.len() * width, 0);
            all.least.extend(gate.least);
        }
        all
    }
}

impl AtPlace<'_> {
    /// A gate, unless it is closed for all words.
    fn gate(&self, gate: usize) -> Option<Gate> {
        let weights = self.units.gates.weights(gate, self.units.word_columns());
        let short: Vec<i16> = weights.iter().map(|w| (w >> WEIGHT_CUT) as i16).collect();
        let sizes = || short.iter().map(|w| i64::from(w.unsigned_abs()));
        let slack: i64 = weights.iter().zip(sizes()).map(|(w, short)| short + i64::from(*w != 0)).sum();
        let most = |z: &[Ends]| {
            let unit = |i: &u32| Some(i128::from(self.base[*i as usize]?) + self.units.heads(*i as usize, z));
            self.units.of_gate(gate).iter().map(|i| unit(i).unwrap_or(NEVER_OFF)).max().unwrap_or(NEVER_OFF)
        };
        let least = |z: &[Ends]| {
            // (sum + slack) 2^31 + most < 0 if and only if sum < -floor(most / 2^31) - slack.
            let most = most(z).clamp(-NEVER_OFF, NEVER_OFF) as i64;
            (-(most >> (WEIGHT_CUT + INPUT_CUT)) - slack).clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        let least: Vec<i32> = match &self.knots[..] {
            [] => vec![least(&self.range)],
            knots => knots.iter().map(|z| least(&[(*z, *z)])).collect(),
        };
        // A short input has at most the first bits of the largest number of its column, and one more where it is negative.
        let inputs = self.units.largest.iter().map(|x| (x >> INPUT_CUT) + 1);
        let most: i64 = sizes().zip(inputs).map(|(w, x)| (w + 1) * x).sum();
        let alive = least.iter().any(|least| i64::from(*least) <= most);
        alive.then_some(Gate { gate: gate as u32, short, least })
    }

    /// The units that may be on for each item, with what its word adds to them; nothing for a word that overflows the format, and for
    /// values of the heads that are not those that the gates are about.
    pub fn among(&self, items: &[Item]) -> Vec<Option<Vec<(u32, i64)>>> {
        let (mut short, mut open) = (vec![0; items.len() * self.width], vec![vec![]; items.len()]);
        // The knots on either side, and sum of |X|.
        let (mut sides, mut slack) = (vec![(0, 0); items.len()], vec![0; items.len()]);
        for (at, item) in items.iter().enumerate() {
            for (to, x) in short[at * self.width..].iter_mut().zip(item.word.iter().flatten()) {
                *to = (x >> INPUT_CUT) as i16;
                slack[at] += i32::from(to.unsigned_abs());
            }
            if let ([(low, high)], false) = (&item.z[..], self.knots.is_empty()) {
                let below = self.knots.partition_point(|knot| knot <= low).saturating_sub(1);
                sides[at] = (below, self.knots.partition_point(|knot| knot < high).min(self.knots.len() - 1));
            }
        }
        let known = self.knots.len().max(1);
        let gates = self.short.chunks_exact(self.width).zip(self.least.chunks_exact(known)).zip(&self.gates);
        for ((row, least), gate) in gates {
            for (at, word) in short.chunks_exact(self.width).enumerate() {
                // At most 2^14 2^8 256 in size, and the slack 2^8 256.
                if dot(row, word) + slack[at] >= least[sides[at].0].min(least[sides[at].1]) {
                    open[at].push(*gate);
                }
            }
        }
        let item = |(item, gates): (&Item, Vec<u32>)| {
            let (x, mut open) = (item.word.as_ref()?, vec![]);
            let within = |(own, all): (&Ends, &Ends)| all.0 <= own.0 && own.1 <= all.1;
            if item.z.len() != self.range.len() || !item.z.iter().zip(&self.range).all(within) {
                return None;
            }
            for gate in gates {
                let word = entry(self.units.gates.weights(gate as usize, x.len()), x);
                let units = self.units.of_gate(gate as usize).iter().copied();
                open.extend(units.filter(|i| self.may(*i, word, &item.z)).map(|i| (i, word)));
            }
            open.sort_unstable();
            Some(open)
        };
        items.iter().zip(open).map(item).collect()
    }

    /// Whether a unit is not off by Rule 6.
    fn may(&self, i: u32, word: i64, z: &[Ends]) -> bool {
        let most = |base: i64| i128::from(base) + i128::from(word) + self.units.heads(i as usize, z);
        self.base[i as usize].is_none_or(|base| most(base) >= 0)
    }

    /// Of these units those that may be on where the heads have these values: their places among these, and their numbers.
    pub fn open(&self, among: &[(u32, i64)], z: &[Ball]) -> Vec<(usize, usize)> {
        let z = self.units.ends(z);
        let may = among.iter().enumerate().filter(|(_, (i, word))| self.may(*i, *word, &z));
        may.map(|(at, (i, _))| (at, self.units.index(*i))).collect()
    }
}

/// Sum of W X over rows of whole chunks.
fn dot(row: &[i16], word: &[i16]) -> i32 {
    let (rows, words) = (row.as_chunks::<CHUNK>().0, word.as_chunks::<CHUNK>().0);
    let part = |(row, word): (&[i16; CHUNK], &[i16; CHUNK])| {
        (0..CHUNK).fold(0_i32, |sum, c| sum.wrapping_add(i32::from(row[c]).wrapping_mul(i32::from(word[c]))))
    };
    rows.iter().zip(words).map(part).fold(0, i32::wrapping_add)
}
