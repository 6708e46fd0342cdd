//! One piecewise-linear curve per label along the ids of a token: on each run of equally labeled ids that label's curve is on
//! top. A hinge per change of label is enough.
//!
//! Let the runs have labels `l_0, l_1, ..., l_m`, the first being the label that wins without any hinge, by `a`. Between runs
//! j-1 and j the curves of their labels must cross, at the boundary b_j halfway between them. Hinges stand at t_0 just
//! before b_1, and at t_j halfway between b_j and b_(j+1). At t_j label l_j is at height h_j and all others at 0, and in
//! between everything is linear. The curves cross at b_j if `h_j / (t_j - b_j) = h_(j-1) / (b_j - t_(j-1)) = r_j`, and r_j
//! is then the rate at which the winner gains on the loser away from the boundary.
//!
//! Where the label that wins without hinges has a run in the middle, hinges lead away from it on both sides: those to its left
//! open leftward. Neither side then carries the sums of the other.

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

/// Hinges that the runs need when `base` wins without any: one per change, and one more where no run has that label.
pub fn cost(runs: &[Run], base: u32) -> usize {
    runs.len() - usize::from(middle(runs, base).is_some())
}

/// How far the first hinge can stand outside the runs: not at all where one of them has the label `base`.
pub fn overhang(runs: &[Run], base: u32) -> f64 {
    let gaps = runs.windows(2).map(|pair| pair[1].first - pair[0].last);
    if middle(runs, base).is_some() { 0.0 } else { 0.75 * gaps.reduce(f64::min).unwrap_or(1.0) }
}

/// The run with the label `base` that is nearest to the middle.
fn middle(runs: &[Run], base: u32) -> Option<usize> {
    let with_base = (0..runs.len()).filter(|&i| runs[i].label == base);
    with_base.min_by_key(|&i| (2 * i + 1).abs_diff(runs.len()))
}

/// A hinge that opens to the right of `at`, or to the left of `-at`.
#[derive(Debug, Clone, PartialEq)]
pub struct SidedHinge {
    /// Whether it opens leftward.
    pub leftward: bool,
    /// The hinge along the ids, or along their negatives.
    pub hinge: LabelHinge,
}

/// The hinges for runs, `base` winning by `a > 0` without any; [`cost`] of them. `round` gives the nearest place that a hinge
/// can stand at, along the ids or along their negatives. `None` if such places are too far apart for these runs.
pub fn hinges(runs: &[Run], base: u32, a: f64, round: impl Fn(f64) -> f64) -> Option<Vec<SidedHinge>> {
    let sided =
        |leftward: bool, list: Vec<LabelHinge>| list.into_iter().map(move |hinge| SidedHinge { leftward, hinge });
    let from = middle(runs, base).unwrap_or(0);
    let mirrored = |run: &Run| Run { label: run.label, first: -run.last, last: -run.first };
    let left: Vec<Run> = runs[..=from].iter().rev().map(mirrored).collect();
    // Without a run of the base label the hinges come from the left, all of them.
    let left = if left[0].label == base { one_sided(&left, base, a, &round)? } else { Vec::new() };
    let right = one_sided(&runs[from..], base, a, &round)?;
    Some(sided(true, left).chain(sided(false, right)).collect())
}

/// The hinges for runs from left to right.
fn one_sided(runs: &[Run], base: u32, a: f64, round: impl Fn(f64) -> f64) -> Option<Vec<LabelHinge>> {
    let gaps = runs.windows(2).map(|pair| pair[1].first - pair[0].last);
    // With no boundary there is no smallest gap, and any will do.
    let smallest = gaps.clone().fold(f64::INFINITY, f64::min);
    let smallest = if smallest.is_finite() { smallest } else { 1.0 };
    let mut labels: Vec<u32> = runs.iter().map(|run| run.label).collect();
    let mut boundaries: Vec<f64> =
        runs.windows(2).map(|pair| pair[0].last + (pair[1].first - pair[0].last) / 2.0).collect();
    if labels[0] != base {
        labels.insert(0, base);
        boundaries.insert(0, runs[0].first - smallest / 2.0);
    }
    let Some(&last) = boundaries.last() else { return Some(Vec::new()) };
    let mut places = vec![round(boundaries[0] - smallest / 4.0)];
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
        let new = vec![(labels[j], -height / (to - from)), (labels[j + 1], next / (to - from))];
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

    proptest! {
        /// Where any label will do for an id, no more hinges are needed, whatever the base label.
        #[test]
        fn an_id_left_out_adds_no_hinge(
            labels in prop::collection::vec(0_u32..4, 2..12),
            left_out in 0..12_usize,
            base in 0_u32..5,
        ) {
            let ids: Vec<(f64, u32)> = labels.iter().enumerate().map(|(i, &label)| (i as f64, label)).collect();
            let left_out = left_out % ids.len();
            let fewer = ids.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, id)| *id);
            prop_assert!(cost(&runs(fewer), base) <= cost(&runs(ids.iter().copied()), base));
        }

        /// On every run its label is on top, by half the smallest gap times the rate at least.
        #[test]
        fn each_run_is_won_by_its_label(
            ids in prop::collection::btree_set(0_i32..400, 2..30),
            labels in prop::collection::vec(0_u32..4, 30),
            base in 0_u32..4,
            a in 0.25_f64..8.0,
        ) {
            let ids: Vec<(f64, u32)> = ids.into_iter().zip(labels).map(|(x, l)| (f64::from(x), l)).collect();
            let runs = runs(ids.iter().copied());
            let hinges = hinges(&runs, base, a, |x| x).unwrap();
            prop_assert_eq!(hinges.len(), cost(&runs, base));
            for (x, label) in ids {
                let mut scores = [0.0; 4];
                scores[base as usize] = a;
                for SidedHinge { leftward, hinge } in &hinges {
                    let over = if *leftward { -x - hinge.at } else { x - hinge.at }.max(0.0);
                    hinge.bends.iter().for_each(|&(l, bend)| scores[l as usize] += bend * over);
                }
                for (other, &score) in scores.iter().enumerate() {
                    prop_assert!(other as u32 == label || scores[label as usize] > score + a / 4.0, "{scores:?} {label}");
                }
            }
        }
    }
}
