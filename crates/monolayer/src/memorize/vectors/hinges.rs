//! Hidden units that read one coordinate each: `relu(h_k - t)` or `relu(t - h_k)`, and what such a block gives, enclosed.
//!
//! A unit's row of W1 has a single entry, +1 or -1. So its input is rounded once, in any order of summation and whatever
//! stands in the other coordinates, and all units of a coordinate see the same float.

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Interval, Magnitude, Number as _};
use crate::paper::feed_forward::FeedForward;

/// Bits for the running sums of weights: sums of floats of like size are exact.
const PRECISION: usize = 320;

/// A hidden unit `relu(side (h_k - at))`, which adds `bend` times its value to the output.
#[derive(Debug, Clone, PartialEq)]
pub struct Hinge {
    /// The coordinate k.
    pub coordinate: usize,
    /// +1 or -1.
    pub side: f64,
    /// Where it stands.
    pub at: f64,
    /// Its column of W2.
    pub bend: Vec<f64>,
}

/// A feed-forward block of hinges.
#[derive(Debug, Clone, PartialEq)]
pub struct Readout {
    /// The hinges.
    pub hinges: Vec<Hinge>,
    /// The output bias.
    pub b2: Vec<f64>,
    /// With a bound B on the inputs' coordinates, d more units `relu(h_i + B)`, `W2 = -I`, take the skip out.
    pub bound: Option<f64>,
}

impl Readout {
    /// The block (3).
    pub fn block(&self) -> FeedForward<f64> {
        let d = self.b2.len();
        let skip = if self.bound.is_some() { d } else { 0 };
        let q = skip + self.hinges.len();
        let mut block = FeedForward {
            w1: Matrix::new(q, d, vec![0.0; q * d]),
            b1: vec![self.bound.unwrap_or(0.0); q],
            w2: Matrix::new(d, q, vec![0.0; q * d]),
            b2: self.b2.clone(),
        };
        for i in 0..skip {
            block.w1.row_mut(i)[i] = 1.0;
            block.w2.row_mut(i)[i] = -1.0;
        }
        for (j, hinge) in self.hinges.iter().enumerate() {
            block.w1.row_mut(skip + j)[hinge.coordinate] = hinge.side;
            block.b1[skip + j] = -hinge.side * hinge.at;
            hinge.bend.iter().enumerate().for_each(|(i, &bend)| block.w2.row_mut(i)[skip + j] = bend);
        }
        block
    }

    /// The exact output of the block for inputs that are known to lie in the given balls.
    pub fn outputs(&self, inputs: &[Vec<Ball>]) -> Vec<Vec<Output>> {
        let d = self.b2.len();
        let curves = self.curves();
        let intervals: Vec<Vec<Interval>> =
            inputs.iter().map(|row| row.iter().map(Ball::to_interval).collect()).collect();
        let columns: Vec<Vec<Output>> = parallel::map(d, |i| {
            let mut out: Vec<Output> =
                inputs.iter().zip(&intervals).map(|(h, known)| self.without_hinges(i, &h[i], known[i])).collect();
            for curve in &curves {
                curve.add(i, inputs, &intervals, &mut out);
            }
            out
        });
        (0..inputs.len()).map(|t| columns.iter().map(|column| column[t].clone()).collect()).collect()
    }

    /// Output i where no hinge is active: skip, bias, and the units that take the skip out.
    fn without_hinges(&self, i: usize, h: &Ball, known: Interval) -> Output {
        let b2 = Ball::new(self.b2[i], PRECISION);
        let skip = known.magnitude();
        match self.bound {
            None => Output { value: h.clone() + &b2, size: skip + self.b2[i].abs(), active: 2 },
            // h + B > 0, so that h - (h + B) is -B exactly, whatever h is.
            Some(bound) if known.lo() > -bound => Output {
                value: b2 - Ball::new(bound, PRECISION),
                size: 2.0 * skip + bound + self.b2[i].abs(),
                active: 3,
            },
            Some(_) => Output { value: Ball::whole(PRECISION), size: f64::INFINITY, active: 3 },
        }
    }

    /// The hinges by coordinate and side, in the order in which they become active.
    fn curves(&self) -> Vec<Curve<'_>> {
        let mut curves: Vec<Curve> = Vec::new();
        for hinge in &self.hinges {
            let curve = curves.iter_mut().find(|c| c.coordinate == hinge.coordinate && c.side == hinge.side);
            match curve {
                Some(curve) => curve.hinges.push(hinge),
                None => curves.push(Curve { coordinate: hinge.coordinate, side: hinge.side, hinges: vec![hinge] }),
            }
        }
        for curve in &mut curves {
            let side = curve.side;
            sorting::sort_by(&mut curve.hinges, |a, b| (side * a.at).total_cmp(&(side * b.at)));
        }
        curves
    }
}

/// One coordinate of an output.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its exact value.
    pub value: Ball,
    /// An upper bound, but for a few roundings, of the sum of the absolute values of all terms.
    pub size: f64,
    /// At most so many terms are not 0.
    pub active: usize,
}

/// The hinges of one coordinate and side. Together they are a piecewise-linear curve: where the hinges `t_j` are active,
/// `side (h sum_j bend_j - sum_j bend_j t_j)`. On a plateau the first sum is exactly 0, and h drops out.
struct Curve<'a> {
    coordinate: usize,
    side: f64,
    hinges: Vec<&'a Hinge>,
}

impl Curve<'_> {
    /// Adds the curve of output `i` at all inputs.
    fn add(&self, i: usize, inputs: &[Vec<Ball>], intervals: &[Vec<Interval>], out: &mut [Output]) {
        let side = self.side;
        let known = |t: usize| {
            let h = intervals[t][self.coordinate];
            if side > 0.0 { (h.lo(), h.hi()) } else { (-h.hi(), -h.lo()) }
        };
        let order = sorting::order_by_key(inputs.len(), |t| known(t).0);
        let zero = || Ball::new(0.0, PRECISION);
        let (mut slope, mut offset) = (zero(), zero());
        let (mut slopes, mut offsets) = (Interval::point(0.0), Interval::point(0.0));
        let mut passed = 0;
        for t in order {
            let (lo, hi) = known(t);
            while passed < self.hinges.len() && side * self.hinges[passed].at <= lo {
                let Hinge { at, bend, .. } = self.hinges[passed];
                let bend = Ball::new(bend[i], PRECISION);
                offset = offset + bend.clone() * Ball::new(*at, PRECISION);
                slope = slope + bend;
                let size = Interval::point(self.hinges[passed].bend[i].abs());
                slopes = slopes + size;
                offsets = offsets + size * Interval::point(side * at);
                passed += 1;
            }
            let h = &inputs[t][self.coordinate];
            let mut value = slope.clone() * h - &offset;
            let mut size = (slopes * Interval::point(hi) - offsets).hi();
            // Hinges that may or may not be active.
            let doubtful = self.hinges[passed..].iter().take_while(|hinge| side * hinge.at < hi);
            let mut doubts = 0;
            for hinge in doubtful {
                let above = (h.clone() - Ball::new(hinge.at, PRECISION)) * Ball::new(side, PRECISION);
                value = value + above.max(&zero()) * Ball::new(side * hinge.bend[i], PRECISION);
                size += hinge.bend[i].abs() * (hi - side * hinge.at);
                doubts += 1;
            }
            let out = &mut out[t];
            out.value = out.value.clone() + value * Ball::new(side, PRECISION);
            out.size += size;
            out.active += passed + doubts;
        }
    }
}

/// The ball around an interval.
pub fn ball(x: Interval) -> Ball {
    let center = x.center();
    let radius = (Interval::new(x.lo(), x.hi()) - Interval::point(center)).magnitude();
    let radius = if radius == 0.0 { Magnitude::ZERO } else { Magnitude::new(radius.max(f64::MIN_POSITIVE), 0) };
    Ball::new(center, 64).widened(radius)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hinge() -> impl Strategy<Value = Hinge> {
        let bend = prop::collection::vec(-1e3_f64..1e3, 2);
        (0..2_usize, any::<bool>(), -2.0..2.0, bend).prop_map(|(coordinate, right, at, bend)| Hinge {
            coordinate,
            side: if right { 1.0 } else { -1.0 },
            at,
            bend,
        })
    }

    proptest! {
        /// The enclosures hold the value of the block in exact arithmetic at any point of the input balls, and are narrow.
        #[test]
        fn outputs_are_those_of_the_block(
            hinges in prop::collection::vec(hinge(), 0..12),
            inputs in prop::collection::vec(prop::collection::vec(-3.0..3.0, 2), 1..9),
            wide in 0.0..0.5,
            skip: bool,
        ) {
            let readout = Readout { hinges, b2: vec![0.25, -3.0], bound: (!skip).then_some(8.0) };
            let block = readout.block();
            let exact = FeedForward {
                w1: block.w1.map(|&x| Ball::new(x, 200)),
                b1: block.b1.iter().map(|&x| Ball::new(x, 200)).collect(),
                w2: block.w2.map(|&x| Ball::new(x, 200)),
                b2: block.b2.iter().map(|&x| Ball::new(x, 200)).collect(),
            };
            let point = |row: &Vec<f64>| row.iter().map(|&x| Ball::new(x, 200)).collect::<Vec<_>>();
            let points: Vec<Vec<Ball>> = inputs.iter().map(point).collect();
            let balls: Vec<Vec<Ball>> = inputs
                .iter()
                .map(|row| row.iter().map(|&x: &f64| ball(Interval::new(x - wide, x + wide / 2.0))).collect())
                .collect();
            let (narrow, broad) = (readout.outputs(&points), readout.outputs(&balls));
            for (t, input) in points.iter().enumerate() {
                let terms: Vec<f64> = inputs[t].iter().enumerate().map(|(i, h)| {
                    let hidden = |j: usize| (block.w1.row(j)[0] * inputs[t][0] + block.w1.row(j)[1] * inputs[t][1] + block.b1[j]).max(0.0);
                    h.abs() + block.b2[i].abs() + (0..block.b1.len()).map(|j| block.w2.row(i)[j].abs() * hidden(j)).sum::<f64>()
                }).collect();
                for (i, value) in exact.apply_token(input).iter().enumerate() {
                    let value = value.to_interval();
                    let (narrow, broad) = (&narrow[t][i], &broad[t][i]);
                    prop_assert!((narrow.value.to_interval() - value).magnitude() < 1e-10);
                    let broad_value = broad.value.to_interval();
                    prop_assert!(broad_value.lo() <= value.lo() + 1e-10 && value.hi() <= broad_value.hi() + 1e-10);
                    prop_assert!(narrow.size >= terms[i] * (1.0 - 1e-9) && broad.size >= terms[i] * (1.0 - 1e-9));
                }
            }
        }
    }
}
