//! One piecewise-linear curve per label along the ids of a token: on each run of equally labeled ids that label's curve is on
//! top. The fewest hinges that do are counted by [`super::knots`]; their bends come from `heights`.
//!
//! Without any hinge the base label wins, by `a`, and all others are equal. Hinges that open rightward and leftward leave some run
//! of the base label flat, and lead away from it on both sides; neither side then carries the sums of the other. Where no
//! run of the base label is worth that, all hinges come from the left, and the first stands outside the ids.
//!
//! Several labels in one segment may need slopes that machine numbers do not bear. How many there may be is the caller's choice:
//! with two there is a hinge per change of label, and this always does: see `one_per_change`.

use super::heights::{Demand, heights};
use super::knots::knots;

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
    KnotLayout::new(&labels, base, most).count()
}

/// The same of the labels of runs alone.
pub fn label_cost(labels: &[u32], base: u32) -> usize {
    KnotLayout::new(labels, base, MostRuns::ANY).count()
}

/// How far the first hinge can stand outside the runs: not at all where one of them is flat.
pub fn overhang(runs: &[Run], base: u32, most: MostRuns) -> f64 {
    let labels: Vec<u32> = runs.iter().map(|run| run.label).collect();
    if KnotLayout::new(&labels, base, most).flat.is_some() { 0.0 } else { outside(runs, most) }
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

/// Labels as numbers that are small: of runs, of the base label, and how many there can be.
fn numbered(labels: &[u32], base: u32) -> (Vec<u32>, u32, usize) {
    const SMALL: u32 = 32;
    let largest = labels.iter().copied().fold(base, u32::max);
    if largest < SMALL {
        return (labels.to_vec(), base, largest as usize + 1);
    }
    let mut names: Vec<u32> = labels.iter().copied().chain([base]).collect();
    names.sort_unstable();
    names.dedup();
    let number = |label: &u32| names.binary_search(label).expect("one of them") as u32;
    (labels.iter().map(number).collect(), number(&base), names.len())
}

/// Which run is flat, and the runs that hold a knot, counted from it: 0 is the flat run, which stands outside where it is none of
/// those given.
#[derive(Debug, Clone, PartialEq)]
struct KnotLayout {
    flat: Option<usize>,
    left: Vec<usize>,
    right: Vec<usize>,
}

/// As many runs of the base label are tried as the flat one, at most.
const MOST_FLAT: usize = 3;

impl KnotLayout {
    fn new(given: &[u32], base: u32, most: MostRuns) -> Self {
        let (labels, base, count) = numbered(given, base);
        let side = |runs: &[u32]| knots(runs, count, most.0);
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
    let layout = KnotLayout::new(&labels, base, most);
    let mirrored = |run: &Run| Run { label: run.label, first: -run.last, last: -run.first };
    let side = |runs: &[Run], knots: &[usize]| {
        if most == MostRuns::TWO { one_per_change(runs, a, &round) } else { one_side(runs, knots, a, &round) }
    };
    if let Some(flat) = layout.flat {
        let left: Vec<Run> = runs[..=flat].iter().rev().map(mirrored).collect();
        let (left, right) = (side(&left, &layout.left)?, side(&runs[flat..], &layout.right)?);
        let hinges: Vec<SidedHinge> = sided(true, left).chain(sided(false, right)).collect();
        return (most == MostRuns::TWO || all_win(runs, &hinges, base, a)).then_some(hinges);
    }
    // The flat run ends so far outside that the first hinge is within the overhang.
    let end = runs[0].first - outside(runs, most) / 0.75;
    let flat = Run { label: base, first: end, last: end };
    let all: Vec<Run> = std::iter::once(flat).chain(runs.iter().copied()).collect();
    let hinges: Vec<SidedHinge> = sided(false, side(&all, &layout.right)?).collect();
    (most == MostRuns::TWO || all_win(runs, &hinges, base, a)).then_some(hinges)
}

/// Whether every run is won by its label, by more than sums in double precision can be off.
fn all_win(runs: &[Run], hinges: &[SidedHinge], base: u32, a: f64) -> bool {
    let largest = runs.iter().map(|run| run.label).fold(base, u32::max) as usize;
    let terms = (hinges.len() + 2) as f64;
    let wins = |x: f64, label: u32| {
        // The last is a label without runs.
        let (mut scores, mut sizes) = (vec![0.0; largest + 2], vec![0.0; largest + 2]);
        (scores[base as usize], sizes[base as usize]) = (a, a);
        for SidedHinge { leftward, hinge } in hinges {
            let over = if *leftward { -x - hinge.at } else { x - hinge.at }.max(0.0);
            for &(l, bend) in hinge.bends.iter().filter(|_| over > 0.0) {
                scores[l as usize] += bend * over;
                sizes[l as usize] += (bend * over).abs();
            }
        }
        let own = label as usize;
        let beats = |l: usize| scores[own] - scores[l] > terms * f64::EPSILON * (sizes[own] + sizes[l]);
        (0..largest + 2).all(|l| l == own || beats(l))
    };
    runs.iter().all(|run| wins(run.first, run.label) && wins(run.last, run.label))
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
    // One curve more: that of all labels that have no run here. In the end it is taken from all others, and is 0.
    let curves = names.len() + 1;
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
    let mut first = vec![0.0; curves];
    first[number(runs[0].label)] = a;
    let ask = |power: f64| heights(&first, &widths, &demands(runs, &nodes, (a, power), &number, curves));
    // Near small gaps less is asked for; how much less is tried out.
    let found = POWERS.into_iter().find_map(ask)?;
    let levels: Vec<&[f64]> = std::iter::once(&first[..]).chain(found.chunks_exact(curves)).collect();
    let mut slopes = vec![0.0; curves];
    let mut hinges = Vec::new();
    for (k, at) in places.into_iter().enumerate() {
        let next: Vec<f64> =
            (0..curves).map(|l| (levels[k + 1][l] - levels[k][l]) / (nodes[k + 1] - nodes[k])).collect();
        let common = next[names.len()] - slopes[names.len()];
        let bends = names.iter().enumerate().map(|(l, &name)| (name, next[l] - slopes[l] - common)).collect();
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
    curves: usize,
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
            let others = (0..curves).filter(|&below| below != above);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The smallest distance of the right label's score from another's, over the sizes of what is added up.
    fn worst(ids: &[(f64, u32)], hinges: &[SidedHinge], base: u32, a: f64) -> (f64, f64) {
        let (mut margin, mut size) = (f64::INFINITY, 0.0_f64);
        for &(x, label) in ids {
            let mut scores = [0.0; 9];
            scores[base as usize] = a;
            for SidedHinge { leftward, hinge } in hinges {
                let over = if *leftward { -x - hinge.at } else { x - hinge.at }.max(0.0);
                for &(l, bend) in &hinge.bends {
                    scores[l as usize] += bend * over;
                    size = size.max((bend * over).abs());
                }
            }
            let others = (0..9).filter(|&other| other != label as usize);
            margin = others.map(|other| scores[label as usize] - scores[other]).fold(margin, f64::min);
        }
        (margin, size)
    }

    /// Runs of one or two ids with distances over so many orders of magnitude.
    fn ids(labels: &[u32], distances: &[f64], orders: f64) -> Vec<(f64, u32)> {
        let mut x = 0.0;
        let mut out: Vec<(f64, u32)> = Vec::new();
        for (&label, pair) in labels.iter().zip(distances.chunks_exact(2)) {
            x += 10.0_f64.powf(-orders * pair[0]);
            out.push((x, label));
            if pair[1] > 0.5 {
                x += 10.0_f64.powf(-orders * (2.0 * pair[1] - 1.0));
                out.push((x, label));
            }
        }
        out
    }

    proptest! {
        /// Where any label will do for an id, no more hinges are needed than before, but for what the choice of the flat run costs.
        #[test]
        fn an_id_left_out_adds_no_hinge(
            labels in prop::collection::vec(0_u32..4, 2..12),
            left_out in 0..12_usize,
            base in 0_u32..5,
        ) {
            let ids: Vec<(f64, u32)> = labels.iter().enumerate().map(|(i, &label)| (i as f64, label)).collect();
            let left_out = left_out % ids.len();
            let fewer = ids.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, id)| *id);
            let (fewer, all) = (runs(fewer), runs(ids.iter().copied()));
            prop_assert!(cost(&fewer, base, MostRuns::TWO) <= cost(&all, base, MostRuns::TWO));
            prop_assert!(cost(&fewer, base, MostRuns::ANY) <= cost(&all, base, MostRuns::ANY) + 1);
        }

        /// With a hinge per change every run is won by its label, at all scales.
        #[test]
        fn each_run_is_won_by_its_label(
            ids in prop::collection::btree_set(0_i32..400, 2..30),
            labels in prop::collection::vec(0_u32..4, 30),
            base in 0_u32..4,
            a in 0.25_f64..8.0,
        ) {
            let ids: Vec<(f64, u32)> = ids.into_iter().zip(labels).map(|(x, l)| (f64::from(x), l)).collect();
            let runs = runs(ids.iter().copied());
            let hinges = hinges(&runs, base, a, MostRuns::TWO, |x| x).unwrap();
            prop_assert_eq!(hinges.len(), cost(&runs, base, MostRuns::TWO));
            prop_assert!(worst(&ids, &hinges, base, a).0 > a / 4.0);
        }

        /// Whatever the distances: with the most that are found as many hinges are built as are counted, and every run is won by its
        /// label, by more than sums of that size can be off. There are no more than one per change.
        #[test]
        fn few_hinges_do(
            labels in prop::collection::vec(0_u32..8, 2..40),
            distances in prop::collection::vec(0.0..1.0_f64, 80),
            orders in 0.0..12.0_f64,
            kinds in 2_u32..9,
            base in 0_u32..9,
        ) {
            let labels: Vec<u32> = labels.into_iter().map(|label| label % kinds).collect();
            let ids = ids(&labels, &distances, orders);
            let runs = runs(ids.iter().copied());
            let mut most = MostRuns::ANY;
            let found = loop {
                let found = hinges(&runs, base, 0.25, most, |x| x);
                if let Some(found) = found.filter(|_| most > MostRuns::TWO) {
                    break found;
                }
                let Some(fewer) = most.fewer() else { return Ok(()) };
                most = fewer;
            };
            prop_assert_eq!(found.len(), cost(&runs, base, most));
            prop_assert!(found.len() <= cost(&runs, base, MostRuns::TWO));
            let (margin, size) = worst(&ids, &found, base, 0.25);
            prop_assert!(margin > 0.0, "{margin} {size}");
        }

        /// Where distances are alike and labels few, the fewest hinges are found, with wide margins.
        #[test]
        fn the_fewest_are_found_for_even_distances(
            labels in prop::collection::vec(0_u32..4, 2..24),
            distances in prop::collection::vec(0.0..1.0_f64, 48),
            base in 0_u32..4,
        ) {
            let ids = ids(&labels, &distances, 0.5);
            let runs = runs(ids.iter().copied());
            let found = hinges(&runs, base, 0.25, MostRuns::ANY, |x| x).expect("hinges");
            let (margin, size) = worst(&ids, &found, base, 0.25);
            prop_assert!(margin > 1e-9 * size.max(0.25), "{margin} {size}");
        }
    }
}
