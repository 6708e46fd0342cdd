//! Plateaus: the output is constant around every id, and all change happens on ramps between ids.
//!
//! The skip is taken out, then a ramp stands between two neighboring ids along one coordinate where the label changes. A
//! ramp is two hinges with opposite bends, so around an id all slopes cancel exactly: what the output is there depends on
//! the ramps' heights alone, not on the id, which softmax makes transcendental.
//!
//! Two things keep the numbers small, because units far from an id cancel only up to rounding. Hinges face away from the
//! middle, so that an id sees the ramps between the middle and itself only. And where two neighbors are so close that their
//! ramp would be steep, one of them takes the other's label there, and gets its own from a bump along another coordinate,
//! one in which it has more room.

use dashu_ratio::RBig;

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::rational;
use crate::arithmetic::sorting;
use crate::model::exact::map_block;
use crate::paper::feed_forward::FeedForward;

use super::hinges::{Hinge, Readout};

/// Ramps leave this part of a gap free on both sides.
const FREE: f64 = 0.1;
/// Neighbors closer than this part of the ids' standard deviation over their number get a bump.
const TIGHT: f64 = 0.5;

/// Ids with their labels.
#[derive(Debug, Clone, Copy)]
pub struct Labeled<'a> {
    /// The token after attention of each id.
    pub rows: &'a Matrix<f64>,
    /// The coordinate along which they are told apart.
    pub coordinate: usize,
    /// Their labels, rows of `points`.
    pub label: &'a [u32],
    /// The output of each label.
    pub points: &'a Matrix<f64>,
}

/// A change of the output along a coordinate between two places, from the output of one label to that of another.
struct LabelRamp {
    coordinate: usize,
    /// +1 if its hinges are active to the right of it, -1 to the left.
    side: f64,
    from: f64,
    to: f64,
    labels: (u32, u32),
}

/// Where the output changes.
struct RampPlan {
    /// The label where all hinges are silent.
    base: u32,
    ramps: Vec<LabelRamp>,
    /// Runs of equal labels along the coordinate.
    runs: usize,
    /// A power of two beyond all coordinates.
    bound: f64,
}

/// One coordinate of all ids, sorted.
struct IdLine {
    order: Vec<usize>,
    /// The place of each id in the order.
    place: Vec<usize>,
    middle: f64,
    spread: f64,
}

/// The block, and the number of runs of equal labels along the coordinate.
pub fn plateau(ids: &Labeled) -> (Readout, usize) {
    let plan = RampPlan::new(ids);
    let b2 = ids.points.row(plan.base as usize).iter().map(|y| y + plan.bound).collect();
    let hinges = plan.ramps.iter().flat_map(|ramp| ramp.hinges(ids.points)).collect();
    (Readout { hinges, b2, bound: Some(plan.bound) }, plan.runs)
}

/// The same block with rational weights: on the plateaus it is equal to the outputs, not only close.
pub fn exact_plateau(ids: &Labeled) -> FeedForward<RBig> {
    let (readout, _) = plateau(ids);
    let plan = RampPlan::new(ids);
    let mut block = map_block(&readout.block(), |&x| rational(x));
    let point = |label: u32, i: usize| rational(ids.points.row(label as usize)[i]);
    for i in 0..ids.points.cols {
        block.b2[i] = point(plan.base, i) + rational(plan.bound);
        for (j, ramp) in plan.ramps.iter().enumerate() {
            let rise = point(ramp.labels.1, i) - point(ramp.labels.0, i);
            let bend = rational(ramp.side) * rise / (rational(ramp.to) - rational(ramp.from));
            let unit = ids.points.cols + 2 * j;
            block.w2.row_mut(i)[unit + 1] = -bend.clone();
            block.w2.row_mut(i)[unit] = bend;
        }
    }
    block
}

impl RampPlan {
    fn new(ids: &Labeled) -> Self {
        let lines: Vec<IdLine> = (0..ids.rows.cols).map(|k| IdLine::new(ids.rows, k)).collect();
        let line = &lines[ids.coordinate];
        let changes = |label: &[u32]| -> Vec<(usize, usize)> {
            let pairs = line.order.windows(2).map(|pair| (pair[0], pair[1]));
            pairs.filter(|&(a, b)| label[a] != label[b]).collect()
        };
        let (label, mut ramps) = relabel(ids, &lines);
        for (a, b) in changes(&label) {
            let place = |id: usize| ids.rows.row(id)[ids.coordinate];
            ramps.push(ramp(ids.coordinate, line.side(place(a)), place(a), place(b), (label[a], label[b])));
        }
        let largest = ids.rows.data.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
        Self {
            base: label[line.order[line.order.len() / 2]],
            ramps,
            runs: 1 + changes(ids.label).len(),
            bound: (largest.log2().floor() + 1.0).exp2(),
        }
    }
}

/// The ramp between two neighbors.
fn ramp(coordinate: usize, side: f64, left: f64, right: f64, labels: (u32, u32)) -> LabelRamp {
    let free = FREE * (right - left);
    LabelRamp { coordinate, side, from: left + free, to: right - free, labels }
}

/// The labels with which the steep ramps are gone, and the bumps that make up for the difference.
fn relabel(ids: &Labeled, lines: &[IdLine]) -> (Vec<u32>, Vec<LabelRamp>) {
    let line = &lines[ids.coordinate];
    let h = |id: usize, k: usize| ids.rows.row(id)[k];
    let tight = TIGHT * line.spread / line.order.len() as f64;
    let mut label = ids.label.to_vec();
    let mut bumps = Vec::new();
    for pair in line.order.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let gap = h(b, ids.coordinate) - h(a, ids.coordinate);
        if label[a] == label[b] || gap >= tight {
            continue;
        }
        let others = (0..lines.len()).filter(|&k| k != ids.coordinate && lines[k].spread > 0.0);
        let roomiest = others
            .map(|k| (lines[k].room(ids.rows, b, k), k))
            .max_by(|x, y| (x.0 / lines[x.1].spread).total_cmp(&(y.0 / lines[y.1].spread)));
        let Some((room, k)) = roomiest.filter(|&(room, k)| room / lines[k].spread > 2.0 * gap / line.spread) else {
            continue;
        };
        // The bump is as wide as the nearer neighbor allows, on both sides.
        let (center, side) = (h(b, k), lines[k].side(h(b, k)));
        bumps.push(ramp(k, side, center - room, center, (label[a], ids.label[b])));
        bumps.push(ramp(k, side, center, center + room, (ids.label[b], label[a])));
        label[b] = label[a];
    }
    (label, bumps)
}

impl IdLine {
    fn new(rows: &Matrix<f64>, coordinate: usize) -> Self {
        let h = |id: usize| rows.row(id)[coordinate];
        let order = sorting::order_by_key(rows.rows, h);
        let mut place = vec![0; rows.rows];
        order.iter().enumerate().for_each(|(i, &id)| place[id] = i);
        let middle = h(order[order.len() / 2]);
        let all: Vec<f64> = (0..rows.rows).map(h).collect();
        Self { order, place, middle, spread: crate::context_map::standard_deviation(&all) }
    }

    /// Away from the middle.
    fn side(&self, at: f64) -> f64 {
        if at >= self.middle { 1.0 } else { -1.0 }
    }

    /// The distance from an id to its nearest neighbor.
    fn room(&self, rows: &Matrix<f64>, id: usize, coordinate: usize) -> f64 {
        let h = |id: usize| rows.row(id)[coordinate];
        let place = self.place[id];
        let left = place.checked_sub(1).map_or(f64::INFINITY, |i| h(id) - h(self.order[i]));
        let right = self.order.get(place + 1).map_or(f64::INFINITY, |&next| h(next) - h(id));
        left.min(right)
    }
}

impl LabelRamp {
    /// Two hinges with opposite bends.
    fn hinges(&self, points: &Matrix<f64>) -> [Hinge; 2] {
        let &Self { coordinate, side, from, to, .. } = self;
        let (first, second) = if side > 0.0 { (from, to) } else { (to, from) };
        // Going left the output falls by what it rises going right.
        let (before, after) = (points.row(self.labels.0 as usize), points.row(self.labels.1 as usize));
        let bend: Vec<f64> = before.iter().zip(after).map(|(a, b)| side * (b - a) / (to - from)).collect();
        let back = bend.iter().map(|x| -x).collect();
        [Hinge { coordinate, side, at: first, bend }, Hinge { coordinate, side, at: second, bend: back }]
    }
}
