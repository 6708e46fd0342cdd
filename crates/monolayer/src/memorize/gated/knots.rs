//! The fewest knots that piecewise-linear curves need, one curve per label, if on each run of ids its label's curve is on top.
//!
//! Between two neighboring knots every curve is a straight line of any slope, so that two curves cross once at most. Lines that
//! cross each other one after the other show any labels on top, each once, in any order: five labels in a row need no knot.
//!
//! **Pairs.** Call the pieces between knots *segments*. Where two labels take turns, their curves cross between the last id of the
//! one and the next id of the other, and in no segment twice. So each turn of each pair needs a segment of its own, one of those
//! between these two ids.
//!
//! **As late as possible.** Going along the runs, a knot is put before the run that some pair has no segment for, and every turn
//! takes the first segment it can. No knots are fewer ([`fewest_knots`]): number the segments from left to right, and compare with
//! any other knots. Claim: each id is in a segment of the same number there, or of a higher one, and so is each turn. Let it be true
//! up to a run. A turn comes after the last turn of its pair, and not before the segment of the id that it leaves: by the claim its
//! number there is not lower. A knot is put here only where the number of some turn is above that of the segment: there, too, the
//! segment of the run has the number of that turn at least. So the claim is true of this run.
//!
//! [`knots`] are for units. Where no unit is open, all curves are flat, `base` above all others, which are equal. In the segment
//! next to it only the turn of `base` and one other label is possible: all other curves meet at its end. And a knot is put into the
//! run before the one that needs it, where the curve on top is known. Pairs are all that is looked at: three labels can need a knot
//! more, and then no heights are found for these.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// The runs that hold a knot, in order, where no unit is open at the first run: labels of runs are below `labels`, and at most `most`
/// runs have a part in a segment.
pub fn knots(runs: &[u32], labels: usize, most: usize) -> Vec<usize> {
    let mut state = Pairs::new(runs, labels, Start::Flat);
    let (mut found, mut first) = (Vec::new(), 0);
    for (j, &label) in runs.iter().enumerate().skip(1) {
        if j - first >= most || !state.has_segments(label) {
            state.knot_within();
            found.push(j - 1);
            first = j - 1;
        }
        state.show(label);
    }
    found
}

/// No fewer knots do, wherever they are, for curves that start from any heights with any slopes.
pub fn fewest_knots(runs: &[u32], labels: usize) -> usize {
    let mut state = Pairs::new(runs, labels, Start::Free);
    let mut found = 0;
    for &label in runs.iter().skip(1) {
        if !state.has_segments(label) {
            state.knot();
            found += 1;
        }
        state.show(label);
    }
    found
}

/// Where the curves start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// From any heights with any slopes.
    Free,
    /// The first run is the base label's, and no unit is open there.
    Flat,
}

/// Which segment each pair of labels took its last turn in.
///
/// All that is asked is whether that is the segment of now. A turn takes the segment after the last one of its pair, or that in
/// which the label that it leaves was last shown, whichever is later. So a pair whose turn is in a segment before the one of then
/// is as free afterwards as one without any turn: its next turn leaves a label that was shown later than that. Only labels shown
/// in this segment and the one before take part.
struct Pairs {
    start: Start,
    base: u32,
    segment: u32,
    last_turn: LastTurns,
    /// The label of each run, and the segment that the run ends in.
    shown: Vec<(u32, u32)>,
    /// The run after the last one of each label, from 1; 0: there is none.
    after: Vec<usize>,
}

/// The segment of a pair's last turn; 0: as at the start. A table where it is small.
enum LastTurns {
    Table { labels: usize, turns: Vec<u32> },
    Few(HashMap<u64, u32, BuildHasherDefault<PairHasher>>),
}

/// A hash of one number: a multiplication, and the upper half of the product for the lower.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

impl LastTurns {
    fn new(labels: usize) -> Self {
        const SMALL: usize = 128;
        if labels > SMALL {
            return Self::Few(HashMap::default());
        }
        Self::Table { labels, turns: vec![0; labels * labels] }
    }

    fn get(&self, a: u32, b: u32) -> u32 {
        match self {
            Self::Table { labels, turns } => turns[a.min(b) as usize * labels + a.max(b) as usize],
            Self::Few(turns) => turns.get(&key(a, b)).copied().unwrap_or(0),
        }
    }

    fn set(&mut self, a: u32, b: u32, segment: u32) {
        match self {
            Self::Table { labels, turns } => turns[a.min(b) as usize * *labels + a.max(b) as usize] = segment,
            Self::Few(turns) => _ = turns.insert(key(a, b), segment),
        }
    }
}

fn key(a: u32, b: u32) -> u64 {
    u64::from(a.min(b)) << 32 | u64::from(a.max(b))
}

impl Pairs {
    fn new(runs: &[u32], labels: usize, start: Start) -> Self {
        let base = runs.first().copied().unwrap_or(0);
        // Segment 0 is the flat one, where there is one.
        let segment = u32::from(start == Start::Free);
        let mut after = vec![0; labels];
        after[base as usize] = 1;
        Self { start, base, segment, last_turn: LastTurns::new(labels), shown: vec![(base, segment)], after }
    }

    /// The runs after the last one of `label` that end in segment `first` or later.
    fn since(&self, label: u32, first: u32) -> Range<usize> {
        let count = self.shown[self.after[label as usize]..].iter().rev().take_while(|run| run.1 >= first).count();
        self.shown.len() - count..self.shown.len()
    }

    /// The segment that a pair takes its next turn in, from a label whose last run ends in a segment.
    fn turn(&self, (from, ends_in): (u32, u32), to: u32) -> u32 {
        let last = self.last_turn.get(from, to);
        let flat = self.start == Start::Flat && from != self.base && to != self.base;
        (last.max(u32::from(flat)) + 1).max(ends_in)
    }

    fn has_segments(&self, label: u32) -> bool {
        self.shown[self.since(label, self.segment)].iter().all(|&other| self.turn(other, label) <= self.segment)
    }

    /// A knot after the last run.
    fn knot(&mut self) {
        self.segment += 1;
    }

    /// A knot in the last run.
    fn knot_within(&mut self) {
        self.knot();
        if let Some(last) = self.shown.last_mut() {
            last.1 = self.segment;
        }
    }

    fn show(&mut self, label: u32) {
        for run in self.since(label, self.segment.saturating_sub(1)) {
            let (other, _) = self.shown[run];
            if self.after[other as usize] == run + 1 {
                let turn = self.turn(self.shown[run], label);
                self.last_turn.set(other, label, turn);
            }
        }
        self.shown.push((label, self.segment));
        self.after[label as usize] = self.shown.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// All orders of some labels.
    fn orders(labels: u32) -> Vec<Vec<u32>> {
        let Some(last) = labels.checked_sub(1) else { return vec![Vec::new()] };
        let into = |order: Vec<u32>| {
            (0..=order.len()).map(move |i| {
                let mut longer = order.clone();
                longer.insert(i, last);
                longer
            })
        };
        orders(last).into_iter().flat_map(into).collect()
    }

    /// Whether lines from heights in one order to heights in another can show labels one after the other: those shown are in
    /// order at the start, in reverse order at the end, and no other is above one of them at both ends.
    fn can_show(from: &[u32], to: &[u32], shown: &[u32]) -> bool {
        let above = |order: &[u32], a: u32, b: u32| {
            let place = |label: u32| order.iter().position(|&other| other == label);
            place(a) < place(b)
        };
        let crossed = shown.windows(2).all(|pair| above(from, pair[0], pair[1]) && above(to, pair[1], pair[0]));
        let others = from.iter().filter(|label| !shown.contains(label));
        let hidden = others
            .clone()
            .all(|&other| shown.iter().all(|&label| above(from, label, other) || above(to, label, other)));
        crossed && hidden && from[0] == shown[0] && to[0] == shown[shown.len() - 1]
    }

    /// The fewest knots in runs by trying all: every run that can hold a knot, with heights in every order.
    fn by_exhaustion(runs: &[u32], labels: u32) -> usize {
        let orders = orders(labels);
        let mut reached: BTreeSet<(usize, usize)> = (0..orders.len()).map(|order| (0, order)).collect();
        let mut current = reached.clone();
        for count in 0..runs.len() {
            let mut next = BTreeSet::new();
            for &(run, from) in &current {
                for end in run..runs.len() {
                    for (to, order) in orders.iter().enumerate() {
                        if can_show(&orders[from], order, &runs[run..=end]) {
                            if end + 1 == runs.len() {
                                return count;
                            }
                            if reached.insert((end, to)) {
                                next.insert((end, to));
                            }
                        }
                    }
                }
            }
            current = next;
        }
        unreachable!("a knot per run is enough")
    }

    /// [`knots`] and [`fewest_knots`], with the last turns of all pairs written down.
    fn by_all_pairs(runs: &[u32], labels: usize, most: usize, start: Start) -> Vec<usize> {
        let flat = start == Start::Flat;
        let base = runs[0] as usize;
        let mut last_turn = vec![vec![u32::from(flat); labels]; labels];
        (0..labels).for_each(|other| (last_turn[base][other], last_turn[other][base]) = (0, 0));
        let (mut segment, mut first, mut found) = (u32::from(!flat), 0, Vec::new());
        let mut ends_in = vec![0; labels];
        ends_in[base] = segment;
        for j in 1..runs.len() {
            let label = runs[j] as usize;
            let since = || runs[..j].iter().rev().map(|&other| other as usize).take_while(|&other| other != label);
            let others: BTreeSet<usize> = since().collect();
            let turn = |other: usize, last: &[Vec<u32>], ends: &[u32]| (last[other][label] + 1).max(ends[other]);
            let full = others.iter().any(|&other| turn(other, &last_turn, &ends_in) > segment);
            if full || (flat && j - first >= most) {
                segment += 1;
                found.push(j - 1);
                if flat {
                    ends_in[runs[j - 1] as usize] = segment;
                    first = j - 1;
                }
            }
            for other in others {
                let turn = turn(other, &last_turn, &ends_in);
                (last_turn[other][label], last_turn[label][other]) = (turn, turn);
            }
            ends_in[label] = segment;
        }
        found
    }

    fn without_repetitions(mut labels: Vec<u32>) -> Vec<u32> {
        labels.dedup();
        labels
    }

    #[test]
    fn labels_in_a_row_need_no_knot_and_turns_one_each() {
        let fewest = |runs: &[u32]| fewest_knots(runs, 8);
        let flat = |runs: &[u32]| knots(runs, 8, usize::MAX).len();
        assert_eq!(fewest(&[3, 1, 4, 0, 5, 2]), 0);
        assert_eq!(flat(&[3, 1, 4, 0, 5, 2]), 2);
        assert_eq!(fewest(&[0, 1, 0, 1, 0, 1]), 4);
        assert_eq!(flat(&[0, 1, 0, 1, 0, 1]), 5);
        // Back in reverse order: one knot turns all lines round.
        assert_eq!(fewest(&[0, 1, 2, 3, 2, 1, 0]), 1);
        // In the same order again: all heights must be turned round first.
        assert_eq!(fewest(&[0, 1, 2, 0, 1, 2]), 2);
        // Pairs alone do not tell: with five labels three knots are needed here.
        let runs = [1, 4, 2, 1, 0, 3, 4, 0];
        assert_eq!((fewest(&runs), by_exhaustion(&runs, 5)), (2, 3));
    }

    proptest! {
        /// Labels of long ago take no part.
        #[test]
        fn as_by_all_pairs(labels in prop::collection::vec(0_u32..9, 1..120), few in 2..10_u32, most in 2..9_usize) {
            let runs = without_repetitions(labels.into_iter().map(|label| label % few).collect());
            for most in [most, usize::MAX] {
                prop_assert_eq!(knots(&runs, 9, most), by_all_pairs(&runs, 9, most, Start::Flat));
            }
            prop_assert_eq!(fewest_knots(&runs, 9), by_all_pairs(&runs, 9, usize::MAX, Start::Free).len());
            // However many labels there might be.
            prop_assert_eq!(knots(&runs, 500, most), knots(&runs, 9, most));
        }

        /// No fewer knots do, over all orders of heights at all knots.
        #[test]
        fn no_fewer_by_exhaustion(labels in prop::collection::vec(0_u32..4, 1..10)) {
            let runs = without_repetitions(labels);
            prop_assert!(fewest_knots(&runs, 4) <= by_exhaustion(&runs, 4));
        }

        /// Fewer ids need no more knots, and from right to left they need as many; units need no fewer, and with a limit one per change.
        #[test]
        fn knots_are_monotone(labels in prop::collection::vec(0_u32..8, 1..40), left_out in 0..40_usize, most in 2..6_usize) {
            let runs = without_repetitions(labels.clone());
            let fewest = fewest_knots(&runs, 8);
            let mut fewer = labels;
            fewer.remove(left_out % fewer.len());
            prop_assert!(fewest_knots(&without_repetitions(fewer), 8) <= fewest);
            let reversed: Vec<u32> = runs.iter().rev().copied().collect();
            prop_assert_eq!(fewest_knots(&reversed, 8), fewest);
            prop_assert_eq!(knots(&runs, 8, 2).len(), runs.len() - 1);
            let count = |most| knots(&runs, 8, most).len();
            prop_assert!(fewest <= count(usize::MAX) && count(usize::MAX) <= count(most));
        }
    }
}
