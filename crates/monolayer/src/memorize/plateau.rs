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

use crate::matrix::Matrix;

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

/// A change of the output along a coordinate, by `rise` between two places.
struct Ramp {
    coordinate: usize,
    /// +1 if its hinges are active to the right of it, -1 to the left.
    side: f64,
    from: f64,
    to: f64,
    rise: Vec<f64>,
}

/// One coordinate of all ids, sorted.
struct Line {
    order: Vec<usize>,
    /// The place of each id in the order.
    place: Vec<usize>,
    middle: f64,
    spread: f64,
}

/// The block, and the number of runs of equal labels along the coordinate.
pub fn plateau(ids: &Labeled) -> (Readout, usize) {
    let d = ids.rows.cols;
    let lines: Vec<Line> = (0..d).map(|k| Line::new(ids.rows, k)).collect();
    let line = &lines[ids.coordinate];
    let h = |id: usize, k: usize| ids.rows.row(id)[k];
    let sorted_labels = |label: &[u32]| line.order.iter().map(|&id| label[id]).collect::<Vec<u32>>();
    let count = |labels: &[u32]| 1 + labels.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let runs = count(&sorted_labels(ids.label));

    let (label, bumps) = relabel(ids, &lines);
    let mut ramps = bumps;
    for pair in line.order.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        if label[a] != label[b] {
            let rise = difference(ids.points, label[a], label[b]);
            let (left, right) = (h(a, ids.coordinate), h(b, ids.coordinate));
            ramps.push(ramp(ids.coordinate, line.side(left), left, right, rise));
        }
    }
    let bound = bound(ids.rows);
    // The label where all hinges are silent: that of the id in the middle.
    let base = ids.points.row(label[line.order[line.order.len() / 2]] as usize);
    let b2 = base.iter().map(|y| y + bound).collect();
    let hinges = ramps.iter().flat_map(Ramp::hinges).collect();
    (Readout { hinges, b2, bound: Some(bound) }, runs)
}

/// A power of two beyond all coordinates.
fn bound(rows: &Matrix<f64>) -> f64 {
    let largest = rows.data.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
    (largest.log2().floor() + 1.0).exp2()
}

/// The change of the output from label `a` to label `b`.
fn difference(points: &Matrix<f64>, a: u32, b: u32) -> Vec<f64> {
    points.row(b as usize).iter().zip(points.row(a as usize)).map(|(b, a)| b - a).collect()
}

/// The ramp between two neighbors.
fn ramp(coordinate: usize, side: f64, left: f64, right: f64, rise: Vec<f64>) -> Ramp {
    let free = FREE * (right - left);
    Ramp { coordinate, side, from: left + free, to: right - free, rise }
}

/// The labels with which the steep ramps are gone, and the bumps that make up for the difference.
fn relabel(ids: &Labeled, lines: &[Line]) -> (Vec<u32>, Vec<Ramp>) {
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
        let rise = difference(ids.points, label[a], ids.label[b]);
        let fall = rise.iter().map(|x| -x).collect();
        bumps.push(ramp(k, side, center - room, center, rise));
        bumps.push(ramp(k, side, center, center + room, fall));
        label[b] = label[a];
    }
    (label, bumps)
}

impl Line {
    fn new(rows: &Matrix<f64>, coordinate: usize) -> Self {
        let h = |id: usize| rows.row(id)[coordinate];
        let mut order: Vec<usize> = (0..rows.rows).collect();
        order.sort_by(|&a, &b| h(a).total_cmp(&h(b)));
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

impl Ramp {
    /// Two hinges with opposite bends.
    fn hinges(&self) -> [Hinge; 2] {
        let &Self { coordinate, side, from, to, .. } = self;
        let (first, second) = if side > 0.0 { (from, to) } else { (to, from) };
        // Going left the output falls by what it rises going right.
        let bend: Vec<f64> = self.rise.iter().map(|rise| side * rise / (to - from)).collect();
        let back = bend.iter().map(|x| -x).collect();
        [Hinge { coordinate, side, at: first, bend }, Hinge { coordinate, side, at: second, bend: back }]
    }
}
