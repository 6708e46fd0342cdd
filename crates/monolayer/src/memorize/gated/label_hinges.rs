//! One piecewise-linear curve per label along the ids of a token: on each run of equally labeled ids that label's curve is on
//! top. The fewest hinges that do are counted by [`super::knots`]; their bends come from [`super::heights`].
//!
//! Without any hinge the base label wins, by `a`, and all others are equal. Hinges that open rightward and leftward leave some run
//! of the base label flat, and lead away from it on both sides; neither side then carries the sums of the other. Where no
//! run of the base label is worth that, all hinges come from the left, and the first stands outside the ids.
//!
//! Several labels in one segment may need slopes that machine numbers do not bear. How many there may be is the caller's choice:
//! with two there is a hinge per change of label, and this always does: see [`one_per_change`].

use super::heights::{Demand, heights};
use super::knots::{Start, knots};

/// A run of ids with one label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Their label.
    pub label: u32,
    /// The lowest id.
    pub first: f64,
    /// The highest id.
    pub last: f64,
}

/// A hinge at `at`: to its right the label curves bend by these slopes.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelHinge {
    /// Where it stands.
    pub at: f64,
    /// The change of slope of each label's curve it bends.
    pub bends: Vec<(u32, f64)>,
}

/// A hinge that opens to the right of `at`, or to the left of `-at`.
#[derive(Debug, Clone, PartialEq)]
pub struct SidedHinge {
    /// Whether it opens leftward.
    pub leftward: bool,
    /// The hinge along the ids, or along their negatives.
    pub hinge: LabelHinge,
}

/// How many runs may have a part in the segment between two hinges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MostRuns(pub usize);

impl MostRuns {
    /// Any number.
    pub const ANY: Self = Self(usize::MAX);
    /// A hinge per change of label.
    pub const TWO: Self = Self(2);

    /// The next smaller one to try.
    pub fn fewer(self) -> Option<Self> {
        [6, 4, 3, 2].into_iter().find(|&most| most < self.0).map(Self)
    }
}

/// The runs of ids, sorted, with their labels.
pub fn runs(sorted: impl Iterator<Item = (f64, u32)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (id, label) in sorted {
        match runs.last_mut() {
            Some(run) if run.label == label => run.last = id,
            _ => runs.push(Run { label, first: id, last: id }),
        }
    }
    runs
}

/// Hinges that the runs need when `base` wins without any.
pub fn cost(runs: &[Run], base: u32, most: MostRuns) -> usize {
    let labels: Vec<u32> = runs.iter().map(|run| run.label).collect();
    Layout::new(&labels, base, most).count()
}

/// The same of the labels of runs alone.
pub fn label_cost(labels: &[u32], base: u32) -> usize {
    Layout::new(labels, base, MostRuns::ANY).count()
}

/// How far the first hinge can stand outside the runs: not at all where one of them is flat.
pub fn overhang(runs: &[Run], base: u32, most: MostRuns) -> f64 {
    let labels: Vec<u32> = runs.iter().map(|run| run.label).collect();
    if Layout::new(&labels, base, most).flat.is_some() { 0.0 } else { outside(runs, most) }
}

fn outside(runs: &[Run], most: MostRuns) -> f64 {
    let near = 0.75 * smallest_gap(runs);
    if most > MostRuns::TWO { near.max((runs[runs.len() - 1].last - runs[0].first) / 8.0) } else { near }
}

/// With no boundary there is no smallest gap, and any will do.
fn smallest_gap(runs: &[Run]) -> f64 {
    let gaps = runs.windows(2).map(|pair| pair[1].first - pair[0].last);
    gaps.reduce(f64::min).unwrap_or(1.0)
}

/// Which run is flat, and the runs that hold a knot, counted from it: 0 is the flat run, which stands outside where it is none of
/// those given.
#[derive(Debug, Clone, PartialEq)]
struct Layout {
    flat: Option<usize>,
    left: Vec<usize>,
    right: Vec<usize>,
}

/// As many runs of the base label are tried as the flat one, at most.
const MOST_FLAT: usize = 5;

impl Layout {
    fn new(given: &[u32], base: u32, most: MostRuns) -> Self {
        let mut names: Vec<u32> = given.iter().copied().chain([base]).collect();
        names.sort_unstable();
        names.dedup();
        let number = |label: &u32| names.binary_search(label).expect("one of them") as u32;
        let labels: Vec<u32> = given.iter().map(number).collect();
        let side = |runs: &[u32]| knots(runs, names.len(), Start::Flat, most.0);
        let base = number(&base);
        let with_base: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] == base).collect();
        // The first, the last, and some between; one in the middle keeps sums short.
        let tried = with_base.len().min(MOST_FLAT);
        let pick = |i: usize| with_base[if tried > 1 { i * (with_base.len() - 1) / (tried - 1) } else { 0 }];
        let mut found: Vec<Self> = (0..tried)
            .map(pick)
            .map(|i| {
                let left: Vec<u32> = labels[..=i].iter().rev().copied().collect();
                Self { flat: Some(i), left: side(&left), right: side(&labels[i..]) }
            })
            .collect();
        let from_outside: Vec<u32> = std::iter::once(base).chain(labels.iter().copied()).collect();
        found.push(Self { flat: None, left: Vec::new(), right: side(&from_outside) });
        let off_center = |layout: &Self| layout.left.len().abs_diff(layout.right.len());
        found.into_iter().min_by_key(|layout| (layout.count(), off_center(layout))).expect("one at least")
    }

    fn count(&self) -> usize {
        self.left.len() + self.right.len()
    }
}

/// The hinges for runs, `base` winning by `a > 0` without any; [`cost`] of them. `round` gives the nearest place that a hinge
/// can stand at, along the ids or along their negatives. `None` if such places are too far apart for these runs, or if slopes that do
/// were not found.
pub fn hinges(runs: &[Run], base: u32, a: f64, most: MostRuns, round: impl Fn(f64) -> f64) -> Option<Vec<SidedHinge>> {
    let sided =
        |leftward: bool, list: Vec<LabelHinge>| list.into_iter().map(move |hinge| SidedHinge { leftward, hinge });
    let labels: Vec<u32> = runs.iter().map(|run| run.label).collect();
    let layout = Layout::new(&labels, base, most);
    let mirrored = |run: &Run| Run { label: run.label, first: -run.last, last: -run.first };
    let side = |runs: &[Run], knots: &[usize]| {
        if most == MostRuns::TWO { one_per_change(runs, a, &round) } else { one_side(runs, knots, a, &round) }
    };
    if let Some(flat) = layout.flat {
        let left: Vec<Run> = runs[..=flat].iter().rev().map(mirrored).collect();
        let (left, right) = (side(&left, &layout.left)?, side(&runs[flat..], &layout.right)?);
        return Some(sided(true, left).chain(sided(false, right)).collect());
    }
    // The flat run ends so far outside that the first hinge is within the overhang.
    let end = runs[0].first - outside(runs, most) / 0.75;
    let flat = Run { label: base, first: end, last: end };
    let all: Vec<Run> = std::iter::once(flat).chain(runs.iter().copied()).collect();
    Some(sided(false, side(&all, &layout.right)?).collect())
}

/// Where neighboring runs are told apart: halfway between them.
fn boundaries(runs: &[Run]) -> Vec<f64> {
    runs.windows(2).map(|pair| pair[0].last + (pair[1].first - pair[0].last) / 2.0).collect()
}

/// The hinges for runs from left to right, the first being flat, with knots in the runs named.
fn one_side(runs: &[Run], knots: &[usize], a: f64, round: impl Fn(f64) -> f64) -> Option<Vec<LabelHinge>> {
    if knots.is_empty() {
        return Some(Vec::new());
    }
    let mut names: Vec<u32> = runs.iter().map(|run| run.label).collect();
    names.sort_unstable();
    names.dedup();
    let number = |label: u32| names.binary_search(&label).expect("one of them");
    let boundaries = boundaries(runs);
    // The first stands as far to the right as it can.
    let mut places = vec![round(boundaries[0] - (runs[1].first - runs[0].last) / 4.0)];
    places.extend(knots[1..].iter().map(|&j| round(boundaries[j - 1] + (boundaries[j] - boundaries[j - 1]) / 2.0)));
    let inside = |(place, &j): (&f64, &usize)| {
        (j == 0 && runs[0].last <= *place || j > 0 && boundaries[j - 1] < *place) && *place < boundaries[j]
    };
    if !places.iter().zip(knots).all(inside) {
        return None;
    }
    let end = runs[runs.len() - 1].last;
    let nodes: Vec<f64> = places.iter().copied().chain([end]).collect();
    let scale = end - places[0];
    let widths: Vec<f64> = nodes.windows(2).map(|pair| (pair[1] - pair[0]) / scale).collect();
    let mut first = vec![0.0; names.len()];
    first[number(runs[0].label)] = a;
    let ask = |power: f64| heights(&first, &widths, &demands(runs, &nodes, (a, power), &number, names.len()));
    // Near small gaps less is asked for; how much less is tried out.
    let found = POWERS.into_iter().find_map(ask)?;
    let levels: Vec<&[f64]> = std::iter::once(&first[..]).chain(found.chunks_exact(names.len())).collect();
    let mut slopes = vec![0.0; names.len()];
    let mut hinges = Vec::new();
    for (k, at) in places.into_iter().enumerate() {
        let next: Vec<f64> =
            (0..names.len()).map(|l| (levels[k + 1][l] - levels[k][l]) / (nodes[k + 1] - nodes[k])).collect();
        let bends = (0..names.len()).map(|l| (names[l], next[l] - slopes[l])).collect();
        hinges.push(LabelHinge { at, bends });
        slopes = next;
    }
    Some(hinges)
}

/// Margins are asked for in proportion to a power of the nearest gap.
const POWERS: [f64; 3] = [0.5, 1.0, 0.0];

/// What is asked of the curves: at both ends of each run and at the knots between them its label is above all others. Near
/// small gaps less is asked for.
fn demands(
    runs: &[Run],
    nodes: &[f64],
    (a, power): (f64, f64),
    number: &impl Fn(u32) -> usize,
    labels: usize,
) -> Vec<Demand> {
    let gaps: Vec<f64> = runs.windows(2).map(|pair| pair[1].first - pair[0].last).collect();
    let widest = gaps.iter().copied().fold(0.0, f64::max);
    let share = |gap: f64| a / 4.0 * (gap / widest).powf(power);
    let (mut all, mut node) = (Vec::new(), 1);
    for (j, run) in runs.iter().enumerate().skip(1) {
        let [before, after] = [gaps[j - 1], gaps.get(j).copied().unwrap_or(widest)].map(share);
        let between = nodes.iter().copied().filter(|&x| run.first < x && x < run.last);
        let mut places = vec![(run.first, before)];
        places.extend(between.map(|x| (x, before.min(after))));
        places.push((run.last, after));
        places.dedup_by(|b, a| {
            a.1 = if a.0 == b.0 { a.1.min(b.1) } else { a.1 };
            a.0 == b.0
        });
        for (x, margin) in places {
            while node + 1 < nodes.len() && nodes[node] < x {
                node += 1;
            }
            let weights = [nodes[node] - x, x - nodes[node - 1]].map(|part| part / (nodes[node] - nodes[node - 1]));
            let above = number(run.label);
            let others = (0..labels).filter(|&below| below != above);
            all.extend(others.map(|below| Demand { node, weights, above, below, margin }));
        }
    }
    all
}

/// The hinges for runs from left to right, the first being flat: one per change of label.
///
/// Between runs j-1 and j the curves of their labels cross at the boundary b_j halfway between them. Hinges stand at t_0 just
/// before b_1, and at t_j halfway between b_j and b_(j+1). At t_j the label of run j is at height h_j and all others at 0, and in
/// between everything is linear. The curves cross at b_j if `h_j / (t_j - b_j) = h_(j-1) / (b_j - t_(j-1)) = r_j`, and r_j
/// is then the rate at which the winner gains on the loser away from the boundary.
fn one_per_change(runs: &[Run], a: f64, round: impl Fn(f64) -> f64) -> Option<Vec<LabelHinge>> {
    let boundaries = boundaries(runs);
    let Some(&last) = boundaries.last() else { return Some(Vec::new()) };
    let mut places = vec![round(boundaries[0] - smallest_gap(runs) / 4.0)];
    places.extend(boundaries.windows(2).map(|pair| round(pair[0] + (pair[1] - pair[0]) / 2.0)));
    places.push(2.0 * last - places[places.len() - 1]);
    let ordered = (0..boundaries.len()).all(|j| places[j] < boundaries[j] && boundaries[j] < places[j + 1]);
    if !ordered {
        return None;
    }
    let mut height = a;
    let mut slopes: Vec<(u32, f64)> = Vec::new();
    let mut hinges = Vec::new();
    for (j, &boundary) in boundaries.iter().enumerate() {
        let (from, to) = (places[j], places[j + 1]);
        let rate = height / (boundary - from);
        let next = rate * (to - boundary);
        let new = vec![(runs[j].label, -height / (to - from)), (runs[j + 1].label, next / (to - from))];
        let mut bends: Vec<(u32, f64)> = slopes.iter().map(|&(label, slope)| (label, -slope)).collect();
        for &(label, slope) in &new {
            match bends.iter_mut().find(|(l, _)| *l == label) {
                Some((_, bend)) => *bend += slope,
                None => bends.push((label, slope)),
            }
        }
        hinges.push(LabelHinge { at: from, bends });
        (height, slopes) = (next, new);
    }
    Some(hinges)
}
