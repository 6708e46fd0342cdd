//! A feed-forward layer (eq. 3) whose units read few different numbers: a sum of piecewise linear functions, one of each
//! number, in real arithmetic.

use std::collections::BTreeMap;

use crate::hinges::{Hinges, Reading, Unit};
use crate::interval::Interval;
use crate::model::FeedForward;

/// The layer: H + W2 relu(W1 H + b1) + b2.
pub struct Readout<'a> {
    /// One per coordinate, the skip included, then one per direction of rows that read several.
    pub groups: Vec<Group<'a>>,
    /// b2.
    pub bias: &'a [f64],
}

/// Units that read the same number.
pub struct Group<'a> {
    /// The number.
    pub reads: Reads<'a>,
    /// What they add.
    pub hinges: Hinges,
}

/// What a group reads.
#[derive(Debug, Clone, Copy)]
pub enum Reads<'a> {
    /// A coordinate of the token.
    Coordinate(usize),
    /// The inner product of this row with the token.
    Sum(&'a [f64]),
}

impl Reads<'_> {
    fn of(self, h: &[Interval]) -> Interval {
        match self {
            Self::Coordinate(t) => h[t],
            Self::Sum(row) => {
                let terms = row.iter().zip(h).filter(|(w, _)| **w != 0.0);
                terms.fold(Interval::point(0.0), |sum, (w, x)| sum + Interval::point(*w) * *x)
            }
        }
    }
}

/// Units by the number that they read.
struct Sorted<'a> {
    coordinates: Vec<Vec<Unit<'a>>>,
    /// By row, up to its sign.
    sums: BTreeMap<Vec<u64>, (&'a [f64], Vec<Unit<'a>>)>,
}

impl<'a> Sorted<'a> {
    fn new(part: &'a FeedForward, d: usize) -> Self {
        let mut sorted = Self { coordinates: vec![vec![]; d], sums: BTreeMap::new() };
        for (j, row) in part.w1.chunks_exact(d).enumerate() {
            let (b, out) = (part.b1[j], &part.w2[j * d..(j + 1) * d]);
            let mut entries = (0..d).filter(|&t| row[t] != 0.0);
            let (first, second) = (entries.next().unwrap_or(0), entries.next());
            if second.is_none() {
                sorted.coordinates[first].push(Unit { w: row[first], b, out });
                continue;
            }
            let sign = row[first].signum();
            let key = row.iter().map(|w| (w * sign + 0.0).to_bits()).collect();
            let (same, units) = sorted.sums.entry(key).or_insert((row, vec![]));
            let w = if same[first].signum() == sign { 1.0 } else { -1.0 };
            units.push(Unit { w, b, out });
        }
        sorted
    }
}

impl<'a> Readout<'a> {
    /// Tabulates a layer.
    pub fn new(part: &'a FeedForward, d: usize) -> Self {
        Self::tabulate(part, d, Sorted::new(part, d))
    }

    /// The same, where rows that read several coordinates have at most this many directions.
    pub fn with_few_directions(part: &'a FeedForward, d: usize, most: usize) -> Option<Self> {
        let sorted = Sorted::new(part, d);
        (sorted.sums.len() <= most).then(|| Self::tabulate(part, d, sorted))
    }

    fn tabulate(part: &'a FeedForward, d: usize, sorted: Sorted<'a>) -> Self {
        let of_coordinate = |(t, units): (usize, Vec<Unit>)| Group {
            reads: Reads::Coordinate(t),
            hinges: Hinges::new(&units, d, Some(t)),
        };
        let of_sum = |(row, units): (&'a [f64], Vec<Unit>)| Group {
            reads: Reads::Sum(row),
            hinges: Hinges::new(&units, d, None),
        };
        let coordinates = sorted.coordinates.into_iter().enumerate().map(of_coordinate);
        Self { groups: coordinates.chain(sorted.sums.into_values().map(of_sum)).collect(), bias: &part.b2 }
    }

    /// What each group reads of a token, and adds.
    pub fn read(&self, h: &[Interval]) -> Vec<(Interval, Reading)> {
        let group = |group: &Group| {
            let x = group.reads.of(h);
            (x, group.hinges.read(x))
        };
        self.groups.iter().map(group).collect()
    }

    /// A coordinate of the output.
    pub fn sum(&self, read: &[(Interval, Reading)], c: usize) -> Interval {
        read.iter().fold(Interval::point(self.bias[c]), |sum, (_, reading)| sum + reading.values[c])
    }

    /// The output for a token, in real arithmetic; nothing where the token has no bound.
    pub fn output(&self, h: &[Interval]) -> Option<Vec<Interval>> {
        if h.iter().any(|x| !x.is_bounded()) {
            return None;
        }
        let read = self.read(h);
        Some((0..h.len()).map(|c| self.sum(&read, c)).collect())
    }
}
