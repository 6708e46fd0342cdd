//! What becomes of a token in contexts of other ids. With one head of size 1 the context enters through the id alone, so for a
//! token at a place each hidden unit is a hinge along the id, and each score is piecewise linear.

use super::contributions::ReadOut;
use super::{Pass, Trace};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::sorting;
use crate::model::Model;

/// The ids for which a unit fires, for a token at its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IdBound {
    /// All: it does not read the id.
    Any,
    /// Those above.
    Above(f64),
    /// Those below.
    Below(f64),
}

/// Where a token's label ends along the id.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelRange {
    /// No context, whatever its words, has an id below the first or above the second.
    pub reach: [f64; 2],
    /// The nearest id below the token's own from which another label follows, and that label.
    pub below: Option<(f64, usize)>,
    /// The same above.
    pub above: Option<(f64, usize)>,
}

/// A hidden unit along the id: the distance from the token's id at which it starts or stops to fire, and how the scores' slopes
/// change there, away from the token's id.
struct Turn {
    distance: f64,
    slopes: Vec<f64>,
}

impl<R: Real> Model<R> {
    /// The ids that contexts can have: means of the values of words at places.
    pub(super) fn reach(&self) -> Option<[f64; 2]> {
        let (head, _) = self.only_head()?;
        let w_v: Vec<f64> = head.w_v.row(0).iter().map(|x| x.to_f64()).collect();
        let ends = |rows: &Matrix<R>| {
            let products = rows.iter_rows().map(|row| product(&w_v, row));
            products.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)])
        };
        let [low, high] = ends(&self.words.as_ref()?.embedding);
        let [first, last] = self.positions.as_ref().map_or([0.0, 0.0], ends);
        Some([low + first, high + last])
    }

    /// Where the units that fire for a token do so, and where its label ends.
    pub(super) fn along_id(
        &self,
        pass: &Pass<R>,
        t: usize,
        trace: &Trace,
        reach: Option<[f64; 2]>,
    ) -> (Vec<IdBound>, Option<LabelRange>) {
        let (Some((head, _)), Some(id)) = (self.only_head(), trace.id) else { return (Vec::new(), None) };
        let d = self.transformer.d;
        let w_o: Vec<f64> = head.w_o.data.iter().map(|x| x.to_f64()).collect();
        let h: Vec<f64> = pass.attended[t * d..(t + 1) * d].iter().map(|x| x.to_f64()).collect();
        let block = self.transformer.layers[0].feed_forward.as_ref();
        // Each unit's value at the token's id, and its slope along the id.
        let unit = |j: usize| {
            let block = block.expect("units");
            (product(&h, block.w1.row(j)) + block.b1[j].to_f64(), product(&w_o, block.w1.row(j)))
        };
        let bound = |&(j, _): &(usize, f64)| match unit(j) {
            (_, 0.0) => IdBound::Any,
            (value, slope) if slope > 0.0 => IdBound::Above(id - value / slope),
            (value, slope) => IdBound::Below(id - value / slope),
        };
        let bounds = trace.firing.iter().map(bound).collect();
        let (Some(_), Some(reach)) = (&self.head, reach) else { return (bounds, None) };
        let read = ReadOut::of(self);
        let writes = |j: usize, factor: f64| read.read(|c| factor * block.expect("units").w2.row(c)[j].to_f64());
        let mut slopes = read.read(|c| w_o[c]);
        let (mut below, mut above) = (Vec::new(), Vec::new());
        for j in 0..block.map_or(0, |block| block.b1.len()) {
            let (value, slope) = unit(j);
            if value > 0.0 && slope != 0.0 {
                slopes.iter_mut().zip(writes(j, slope)).for_each(|(sum, x)| *sum += x);
            }
            let at = id - value / slope;
            if slope == 0.0 || !(reach[0]..=reach[1]).contains(&at) {
                continue;
            }
            // Away from the id, a unit that fires stops, and one that does not starts: either way the slope turns by as much.
            let turn = Turn { distance: (value / slope).abs(), slopes: writes(j, slope.abs()) };
            if (value > 0.0) == (slope > 0.0) { below.push(turn) } else { above.push(turn) }
        }
        let downward = slopes.iter().map(|x| -x).collect();
        let range = LabelRange {
            reach,
            below: end(&trace.scores, downward, below, id - reach[0]).map(|(by, label)| (id - by, label)),
            above: end(&trace.scores, slopes, above, reach[1] - id).map(|(by, label)| (id + by, label)),
        };
        (bounds, Some(range))
    }
}

/// How far away from the token's id, up to `most`, another score becomes the largest, and which.
fn end(scores: &[f64], mut slopes: Vec<f64>, mut turns: Vec<Turn>, most: f64) -> Option<(f64, usize)> {
    sorting::sort_by(&mut turns, |a, b| a.distance.total_cmp(&b.distance));
    let best = (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best });
    let mut scores = scores.to_vec();
    let mut from = 0.0;
    let stops: Vec<f64> = turns.iter().map(|turn| turn.distance).chain([most]).collect();
    for (k, to) in stops.into_iter().enumerate() {
        // Where the score of label l reaches that of the best, within this piece.
        let meets = |l: usize| {
            let (lead, gain) = (scores[best] - scores[l], slopes[l] - slopes[best]);
            (l != best && gain > 0.0).then(|| (lead.max(0.0) / gain, l))
        };
        let first = (0..scores.len()).filter_map(meets).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((after, label)) = first.filter(|&(after, _)| from + after < to) {
            return Some((from + after, label));
        }
        scores.iter_mut().zip(&slopes).for_each(|(score, slope)| *score += slope * (to - from));
        if let Some(turn) = turns.get(k) {
            slopes.iter_mut().zip(&turn.slopes).for_each(|(slope, x)| *slope += x);
        }
        from = to;
    }
    None
}

fn product<R: Real>(x: &[f64], y: &[R]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y.to_f64()).sum()
}
