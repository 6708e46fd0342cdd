//! The fewest knots that piecewise-linear curves need, one curve per label, if on each run of ids its label's curve is on top.
//!
//! Between two neighboring knots every curve is a straight line of any slope, so that two curves cross once at most. Lines that
//! cross each other one after the other show any labels on top, each once, in any order: five labels in a row need no knot.
//!
//! **Pairs.** Call the pieces between knots *segments*. Where two labels take turns, their curves cross between the last id of the
//! one and the next id of the other, and in no segment twice. So each turn of each pair needs a segment of its own, one of those
//! between these two ids.
//!
//! **As late as possible.** Going along the runs, a knot is put into the run before the one that some pair has no segment for, and
//! every turn takes the first segment it can. No knots are fewer: by induction over the runs, any other knots are more up to this
//! run, or as many, and then every pair that has used up the current segment here has used it up there. (A pair uses up the
//! current segment if both labels have runs in it, or if it took its turn from a label whose last run is in the segment before,
//! which that pair had used up. With the last knot further left, both remain true.) If some pair has no segment left here, it has
//! none there either.
//!
//! Units add a restriction. Where no unit is open, all curves are flat, `base` above all others, which are equal. In the segment
//! next to it only the turn of `base` and one other label is possible: all other curves meet at its end.

/// Where the curves start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// From any heights with any slopes.
    Free,
    /// The first run is the base label's, and no unit is open there.
    Flat,
}

/// The runs that hold a knot, in order, for labels of runs below `labels`, at most `most` runs having a part in a segment.
pub fn knots(runs: &[u32], labels: usize, start: Start, most: usize) -> Vec<usize> {
    let mut state = Pairs::new(runs, labels, start);
    let (mut found, mut first) = (Vec::new(), 0);
    for j in 1..runs.len() {
        if j - first >= most || !state.has_segments(runs[j]) {
            state.knot(runs[j - 1]);
            found.push(j - 1);
            first = j - 1;
        }
        state.show(runs[j]);
    }
    found
}

/// Which segment each pair of labels took its last turn in.
struct Pairs {
    labels: usize,
    segment: u32,
    /// By pair, the smaller label first.
    last_turn: Vec<u32>,
    /// The segment that the last run of each label ends in.
    ends_in: Vec<u32>,
    /// The labels shown, the last one at the end.
    shown: Vec<u32>,
}

impl Pairs {
    fn new(runs: &[u32], labels: usize, start: Start) -> Self {
        // Segment 0 is the flat one, where there is one.
        let mut last_turn = vec![u32::from(start == Start::Flat); labels * labels];
        let base = runs.first().map_or(0, |&label| label as usize);
        for other in 0..labels {
            last_turn[base * labels + other] = 0;
            last_turn[other * labels + base] = 0;
        }
        let segment = u32::from(start == Start::Free);
        let mut ends_in = vec![0; labels];
        ends_in[base] = segment;
        Self { labels, segment, last_turn, ends_in, shown: vec![base as u32] }
    }

    fn pair(&self, a: u32, b: u32) -> usize {
        a.min(b) as usize * self.labels + a.max(b) as usize
    }

    /// The labels that were shown after `label` was.
    fn since(&self, label: u32) -> impl Iterator<Item = u32> + '_ {
        self.shown.iter().rev().copied().take_while(move |&other| other != label)
    }

    /// The segment that a pair takes its next turn in.
    fn turn(&self, from: u32, to: u32) -> u32 {
        (self.last_turn[self.pair(from, to)] + 1).max(self.ends_in[from as usize])
    }

    fn has_segments(&self, label: u32) -> bool {
        self.since(label).all(|other| self.turn(other, label) <= self.segment)
    }

    /// A knot in the current run.
    fn knot(&mut self, current: u32) {
        self.segment += 1;
        self.ends_in[current as usize] = self.segment;
    }

    fn show(&mut self, label: u32) {
        for i in (0..self.shown.len()).rev() {
            let other = self.shown[i];
            if other == label {
                self.shown.remove(i);
                break;
            }
            let pair = self.pair(other, label);
            self.last_turn[pair] = self.turn(other, label);
        }
        self.shown.push(label);
        self.ends_in[label as usize] = self.segment;
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

    /// The fewest knots by trying all: every run that can hold a knot, with heights in every order.
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

    fn without_repetitions(mut labels: Vec<u32>) -> Vec<u32> {
        labels.dedup();
        labels
    }

    #[test]
    fn labels_in_a_row_need_no_knot_and_turns_one_each() {
        let count = |runs: &[u32], start| knots(runs, 8, start, usize::MAX).len();
        assert_eq!(count(&[3, 1, 4, 0, 5, 2], Start::Free), 0);
        assert_eq!(count(&[3, 1, 4, 0, 5, 2], Start::Flat), 2);
        assert_eq!(count(&[0, 1, 0, 1, 0, 1], Start::Free), 4);
        assert_eq!(count(&[0, 1, 0, 1, 0, 1], Start::Flat), 5);
        // Back in reverse order: one knot turns all lines round.
        assert_eq!(count(&[0, 1, 2, 3, 2, 1, 0], Start::Free), 1);
        // In the same order again: all heights must be turned round first.
        assert_eq!(count(&[0, 1, 2, 0, 1, 2], Start::Free), 2);
    }

    proptest! {
        /// No fewer knots do, and as few do, over all orders of heights at all knots.
        #[test]
        fn as_few_as_by_exhaustion(labels in prop::collection::vec(0_u32..4, 1..10)) {
            let runs = without_repetitions(labels);
            prop_assert_eq!(knots(&runs, 4, Start::Free, usize::MAX).len(), by_exhaustion(&runs, 4));
        }

        /// Fewer runs need no more knots, nor do they from right to left; a limit costs knots, down to one per change.
        #[test]
        fn knots_are_monotone(labels in prop::collection::vec(0_u32..8, 1..40), left_out in 0..40_usize, most in 2..6_usize) {
            let runs = without_repetitions(labels.clone());
            let count = |runs: &[u32], start, most| knots(runs, 8, start, most).len();
            let all = count(&runs, Start::Free, usize::MAX);
            let mut fewer = labels;
            fewer.remove(left_out % fewer.len());
            if !fewer.is_empty() {
                prop_assert!(count(&without_repetitions(fewer), Start::Free, usize::MAX) <= all);
            }
            let reversed: Vec<u32> = runs.iter().rev().copied().collect();
            prop_assert_eq!(count(&reversed, Start::Free, usize::MAX), all);
            prop_assert!(count(&runs, Start::Free, most) >= all);
            prop_assert_eq!(count(&runs, Start::Flat, 2), runs.len() - 1);
            let flat = count(&runs, Start::Flat, usize::MAX);
            prop_assert!(all <= flat && flat <= all + 2);
        }
    }
}
