//! Which units may be on for words at places: most are told to be off by short numbers, many words at a time.

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
/// Parts into which the range of a head's values is cut.
const KNOTS: i64 = 16;
/// Gates that are looked at together.
const BATCH: usize = 1 << 12;

/// The gates of all units, where the heads' values are within bounds.
///
/// Beside a word and a place, a unit has at most a convex function of the one head's value: b + max(a z, c z). So over an interval it has
/// the most at one of its ends, and the same goes for the greatest over the units of a gate, at their greatest places. Short numbers tell
/// of most gates that they are closed: with w = W 2^13 + u and x = X 2^18 + v, 0 <= u < 2^13, 0 <= v < 2^18, w x is at most
/// (W X + |W| + |X| + 1) 2^31.
pub struct Screen<'a> {
    units: &'a OffUnits<'a>,
    /// Bounds of the heads' values.
    range: Vec<Ends>,
    /// Values of the one head, rising, at which gates are known; none for other numbers of heads: all values count there.
    knots: Vec<i64>,
    /// Short weights, gate by gate, in so many columns.
    short: Vec<i16>,
    width: usize,
    /// A gate is closed at a knot where sum of W X + sum of |X| is below this.
    least: Vec<i32>,
}

/// A word and some of its tokens, in runs: each is at one place, and the heads' values are within bounds.
pub struct Item {
    word: Option<Vec<i32>>,
    runs: Vec<(usize, Vec<Ends>)>,
}

impl<'a> OffUnits<'a> {
    /// A word in runs: each has a place, and tokens with their heads' values.
    pub fn item<'z, T: Iterator<Item = &'z [Ball]>>(
        &self,
        word: &[Dyadic],
        runs: impl Iterator<Item = (usize, T)>,
    ) -> Item {
        let run = |(place, mut tokens): (usize, T)| {
            let mut z = tokens.next().map(|z| self.ends(z)).unwrap_or_default();
            for own in tokens {
                z.iter_mut().zip(self.ends(own)).for_each(|(all, own)| *all = (all.0.min(own.0), all.1.max(own.1)));
            }
            (place, z)
        };
        Item { word: self.word_units(word), runs: runs.map(run).collect() }
    }

    /// The gates, where the heads' values are within these.
    pub fn screen(&'a self, z: &[Ball], threads: usize) -> Screen<'a> {
        let range = self.ends(z);
        let mut knots = vec![];
        if let [(low, high)] = range[..] {
            let knot = |k: i64| low + ((i128::from(high) - i128::from(low)) * i128::from(k) / i128::from(KNOTS)) as i64;
            knots = (0..=KNOTS).map(knot).collect();
        }
        let columns = self.word_columns();
        let width = columns.max(1).next_multiple_of(CHUNK);
        let mut all = Screen { units: self, range, knots, short: vec![], width, least: vec![] };
        let jobs = self.gates.len().div_ceil(BATCH);
        let some = |job: usize| {
            let gates = job * BATCH..self.gates.len().min((job + 1) * BATCH);
            gates.map(|gate| all.gate(gate)).collect::<Vec<(Vec<i16>, Vec<i32>)>>()
        };
        for (short, least) in parallel(threads, jobs, some).into_iter().flatten() {
            all.short.extend(short);
            all.least.extend(least);
            all.short.resize(all.short.len().next_multiple_of(width), 0);
        }
        if columns == 0 {
            all.short = vec![0; self.gates.len() * width];
        }
        all
    }
}

impl Screen<'_> {
    /// The short weights of a gate, and the least sums with which it may be open.
    fn gate(&self, gate: usize) -> (Vec<i16>, Vec<i32>) {
        let weights = self.units.gates.weights(gate, self.units.word_columns());
        let short: Vec<i16> = weights.iter().map(|w| (w >> WEIGHT_CUT) as i16).collect();
        let slack = |(w, short): (&i32, &i16)| i64::from(short.unsigned_abs()) + i64::from(*w != 0);
        let slack: i64 = weights.iter().zip(&short).map(slack).sum();
        let greatest = |i: usize| (0..self.units.places()).map(|place| self.units.base(i, place)).max().flatten();
        let units: Vec<(usize, Option<i64>)> =
            self.units.of_gate(gate).iter().map(|i| (*i as usize, greatest(*i as usize))).collect();
        let least = |z: &[Ends]| {
            let unit = |(i, base): &(usize, Option<i64>)| Some(i128::from((*base)?) + self.units.heads(*i, z));
            let most = units.iter().map(|own| unit(own).unwrap_or(NEVER_OFF)).max().unwrap_or(NEVER_OFF);
            // (sum + slack) 2^31 + most < 0 if and only if sum < -floor(most / 2^31) - slack.
            let most = most.clamp(-NEVER_OFF, NEVER_OFF) as i64;
            (-(most >> (WEIGHT_CUT + INPUT_CUT)) - slack).clamp(i32::MIN.into(), i32::MAX.into()) as i32
        };
        let least = match &self.knots[..] {
            [] => vec![least(&self.range)],
            knots => knots.iter().map(|z| least(&[(*z, *z)])).collect(),
        };
        (short, least)
    }

    /// For each item, and each of its runs, the units that may be on, with what the word adds to them; nothing for a word that overflows
    /// the format, and for values of the heads that are not those that the gates are about.
    pub fn among(&self, items: &[Item]) -> Vec<Vec<Among>> {
        let (mut short, mut open) = (vec![0; items.len() * self.width], vec![vec![]; items.len()]);
        // The knots on either side, and sum of |X|.
        let (mut sides, mut slack) = (vec![(0, 0); items.len()], vec![0; items.len()]);
        for (at, item) in items.iter().enumerate() {
            for (to, x) in short[at * self.width..].iter_mut().zip(item.word.iter().flatten()) {
                *to = (x >> INPUT_CUT) as i16;
                slack[at] += i32::from(to.unsigned_abs());
            }
            let ends = || item.runs.iter().filter_map(|(_, z)| z.first());
            if let (Some(low), Some(high), false) =
                (ends().map(|z| z.0).min(), ends().map(|z| z.1).max(), self.knots.is_empty())
            {
                let below = self.knots.partition_point(|knot| *knot <= low).saturating_sub(1);
                sides[at] = (below, self.knots.partition_point(|knot| *knot < high).min(self.knots.len() - 1));
            }
        }
        let rows = self.short.chunks_exact(self.width).zip(self.least.chunks_exact(self.knots.len().max(1)));
        for (gate, (row, least)) in rows.enumerate() {
            for (at, word) in short.chunks_exact(self.width).enumerate() {
                // At most 2^14 2^8 256 in size, and the slack 2^8 256.
                if dot(row, word) + slack[at] >= least[sides[at].0].min(least[sides[at].1]) {
                    open[at].push(gate);
                }
            }
        }
        items.iter().zip(open).map(|(item, gates)| self.runs(item, &gates)).collect()
    }

    /// The units of some gates that may be on for the runs of an item.
    fn runs(&self, item: &Item, gates: &[usize]) -> Vec<Among> {
        let within = |(own, all): (&Ends, &Ends)| all.0 <= own.0 && own.1 <= all.1;
        let covered = |z: &[Ends]| z.len() == self.range.len() && z.iter().zip(&self.range).all(within);
        let Some(x) = item.word.as_ref().filter(|_| item.runs.iter().all(|(_, z)| covered(z))) else {
            return item.runs.iter().map(|_| None).collect();
        };
        let mut open = vec![vec![]; item.runs.len()];
        for &gate in gates {
            let word = entry(self.units.gates.weights(gate, x.len()), x);
            for i in self.units.of_gate(gate) {
                for (open, (place, z)) in open.iter_mut().zip(&item.runs) {
                    if self.may(*i, word, *place, z) {
                        open.push((*i, word));
                    }
                }
            }
        }
        open.iter_mut().for_each(|open| open.sort_unstable());
        open.into_iter().map(Some).collect()
    }

    /// Whether a unit is not off by Rule 6.
    fn may(&self, i: u32, word: i64, place: usize, z: &[Ends]) -> bool {
        let most = |base: i64| i128::from(base) + i128::from(word) + self.units.heads(i as usize, z);
        self.units.base(i as usize, place).is_none_or(|base| most(base) >= 0)
    }

    /// Of these units those that may be on at a place where the heads have these values: where they stand among these, and their numbers.
    pub fn open(&self, among: &[(u32, i64)], place: usize, z: &[Ball]) -> Vec<(usize, usize)> {
        let z = self.units.ends(z);
        let may = among.iter().enumerate().filter(|(_, (i, word))| self.may(*i, *word, place, &z));
        may.map(|(at, (i, _))| (at, self.units.index(*i))).collect()
    }
}

/// The units that may be on for a run, with what its word adds to each; nothing where all are to be looked at.
pub type Among = Option<Vec<(u32, i64)>>;

/// Sum of W X over rows of whole chunks.
fn dot(row: &[i16], word: &[i16]) -> i32 {
    let (rows, words) = (row.as_chunks::<CHUNK>().0, word.as_chunks::<CHUNK>().0);
    let part = |(row, word): (&[i16; CHUNK], &[i16; CHUNK])| {
        (0..CHUNK).fold(0_i32, |sum, c| sum.wrapping_add(i32::from(row[c]).wrapping_mul(i32::from(word[c]))))
    };
    rows.iter().zip(words).map(part).fold(0, i32::wrapping_add)
}
