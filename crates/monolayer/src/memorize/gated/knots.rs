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
