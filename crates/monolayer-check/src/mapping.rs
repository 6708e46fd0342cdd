//! Contextual mappings (Definition 2): outputs of attention inside a ball of radius r, and more than delta apart where
//! contexts differ. Sorted along one direction, only near neighbors have to be compared; those that f64 enclosures cannot
//! tell apart go on to big floats.

use std::cmp::Ordering;
use std::collections::HashSet;

use rayon::prelude::*;

use crate::big::forward::Exact;
use crate::big::number::{Big, Interval};
use crate::context::{self, Context};
use crate::dataset::Dataset;
use crate::dot::{Care, dot};
use crate::error::Result;
use crate::forward::{Network, Query, Rows};
use crate::model::Model;
use crate::report::Verdict;
use crate::rounding::{Precision, Rounding, up};

/// More near pairs than this are not compared.
const MOST_PAIRS: usize = 50_000_000;
/// More contexts than this do not go on to big floats.
const MOST_BIG: usize = 20_000;

/// A token whose output is compared.
struct Point {
    token: usize,
    context: Context,
}

/// Checks that the attention of a layer is an (r, delta)-contextual mapping of the dataset, in real arithmetic.
pub fn check(
    model: &Model,
    dataset: &Dataset,
    layer: usize,
    claimed: (f64, f64),
    bits: usize,
) -> Result<(Verdict, String)> {
    let Some(model) = upto(model, layer) else {
        return Ok((Verdict::Refuted, format!("the model has no attention in layer {layer}")));
    };
    let (log2_r, log2_delta) = claimed;
    if !log2_r.is_finite() || log2_delta.is_nan() || log2_delta.abs() > 1e15 {
        return Ok((Verdict::Unknown, "log2_r or log2_delta is out of range".into()));
    }
    let rows = Rows::new(&model, dataset, Precision::Real)?;
    crate::plan::blocks(&model, dataset, |_| 0)?;
    let search = Search { model: &model, dataset, rows: &rows, points: points(&model, dataset, layer) };
    let outputs = search.outputs();
    let r = core_math::exp2(log2_r.min(1023.9));
    for (point, (mid, radius)) in search.points.iter().zip(&outputs) {
        let norm =
            |sign: f64| mid.iter().zip(radius).map(|(m, r)| (m.abs() + sign * r).max(0.0).powi(2)).sum::<f64>().sqrt();
        if norm(-1.0) * (1.0 - 1e-9) > r * (1.0 + 1e-9) {
            let what =
                format!("the output at {} has norm {:.6e}, above r = {r:.6e}", dataset.place(point.token), norm(-1.0));
            return Ok((Verdict::Refuted, what));
        }
        if up(norm(1.0)).is_nan() || up(norm(1.0)) >= r * (1.0 - 1e-9) {
            return Ok((
                Verdict::Unknown,
                format!("the output at {} may reach r = {r:.6e}", dataset.place(point.token)),
            ));
        }
    }
    Ok(search.apart(&outputs, claimed, bits))
}

/// The model up to the attention of a layer.
fn upto(model: &Model, layer: usize) -> Option<Model> {
    model.layers.get(layer)?.attention.as_ref()?;
    let mut layers = model.layers[..=layer].to_vec();
    layers[layer].feed_forward = None;
    let (embedding, positions) = (model.embedding.clone(), model.positions.clone());
    let pre_feed_forward = model.pre_feed_forward.clone();
    Some(Model { embedding, positions, pre_feed_forward, layers, head: None, ..*model })
}

/// One token per context. Deeper causal layers see the order of tokens too, so there every token counts.
fn points(model: &Model, dataset: &Dataset, layer: usize) -> Vec<Point> {
    let contexts = context::contexts(dataset, model.positions.is_some(), model.causal());
    let every = layer > 0 && model.layers.iter().any(|l| l.attention.as_ref().is_some_and(|a| a.causal));
    let mut seen = HashSet::new();
    let tokens = contexts.into_iter().enumerate().map(|(token, context)| Point { token, context });
    tokens.filter(|point| every || seen.insert(point.context)).collect()
}

struct Search<'a> {
    model: &'a Model,
    dataset: &'a Dataset,
    rows: &'a Rows,
    points: Vec<Point>,
}

type Ball = (Vec<f64>, Vec<f64>);

impl Search<'_> {
    /// Midpoints and radii of all outputs.
    fn outputs(&self) -> Vec<Ball> {
        let rounding = Rounding::new(Precision::Real, 1.0);
        let network = Network::new(self.model, &rounding);
        let one = |point: &Point| {
            let (sequence, position) = self.dataset.locate(point.token);
            let query = Query { sequence, positions: vec![position] };
            let output = network.run(self.dataset, self.rows, &[query], Care::Fine).swap_remove(0);
            (output.mid, output.radius)
        };
        self.points.par_iter().map(one).collect()
    }

    /// Whether all points of different contexts are more than delta apart.
    fn apart(&self, outputs: &[Ball], (log2_r, log2_delta): (f64, f64), most_bits: usize) -> (Verdict, String) {
        let delta = Delta::new(log2_delta);
        let direction = direction(self.model.d);
        let Some(mut near) = self.near_in_f64(outputs, &direction, &delta) else {
            return (Verdict::Unknown, "too many contexts lie too close along every direction that was tried".into());
        };
        let needed = (log2_r - log2_delta).max(0.0).ceil() as usize + 64;
        let mut bits = 256;
        while !near.is_empty() && needed <= most_bits.max(256) {
            if near.len() > MOST_BIG {
                return (Verdict::Unknown, format!("{} contexts are too close for f64 enclosures", near.len()));
            }
            match self.near_in_big(&near, &direction, &delta, bits) {
                Ok(left) => near = left,
                Err((i, j)) => {
                    let place = |i: usize| self.dataset.place(self.points[i].token);
                    return (Verdict::Refuted, format!("{} and {} are not delta apart", place(i), place(j)));
                }
            }
            if bits >= most_bits {
                break;
            }
            bits = (bits * 4).min(most_bits);
        }
        let contexts = self.points.len();
        match near.first() {
            None => (Verdict::Verified, format!("{contexts} contexts, all inside the ball and delta apart")),
            Some(&i) => {
                let place = self.dataset.place(self.points[i].token);
                let near = near.len();
                let what = format!("{near} contexts are not told apart with {most_bits} bits, such as {place}");
                let what = format!("{what}; delta is a matter of about {needed} bits");
                (Verdict::Unknown, what)
            }
        }
    }

    /// The points that f64 enclosures do not show to be apart from some point of another context.
    fn near_in_f64(&self, outputs: &[Ball], direction: &[f64], delta: &Delta) -> Option<Vec<usize>> {
        let rounding = Rounding::new(Precision::Real, 1.0);
        let mut ends: Vec<(f64, f64, usize)> = Vec::with_capacity(outputs.len());
        for (i, (mid, radius)) in outputs.iter().enumerate() {
            let s = dot(direction, mid, radius, 0.0, &rounding, Care::Coarse);
            ends.push((s.mid - up(s.radius() + s.mid.abs() * 1e-15), s.mid + up(s.radius() + s.mid.abs() * 1e-15), i));
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let span = up(direction.iter().map(|x| x * x).sum::<f64>().sqrt()) * delta.above;
        let (mut near, mut pairs) = (HashSet::new(), 0);
        for (at, &(_, high, i)) in ends.iter().enumerate() {
            // Written so that a bound that is not a number stays in.
            let within = |&&(low, ..): &&(f64, f64, usize)| (low - high).partial_cmp(&span) != Some(Ordering::Greater);
            for &(_, _, j) in ends[at + 1..].iter().take_while(within) {
                pairs += 1;
                if pairs > MOST_PAIRS {
                    return None;
                }
                if self.points[i].context != self.points[j].context && !far(&outputs[i], &outputs[j], delta.above) {
                    near.extend([i, j]);
                }
            }
        }
        let mut near: Vec<usize> = near.into_iter().collect();
        near.sort_unstable();
        Some(near)
    }

    /// The same among some points, with big floats; a pair that is certainly too close is an error.
    fn near_in_big(
        &self,
        near: &[usize],
        direction: &[f64],
        delta: &Delta,
        bits: usize,
    ) -> std::result::Result<Vec<usize>, (usize, usize)> {
        let exact = Exact { model: self.model, bits, last_units: None };
        let evaluate = |&i: &usize| {
            let (sequence, position) = self.dataset.locate(self.points[i].token);
            let ids = &self.dataset.ids[self.dataset.range(sequence)];
            let rows: Vec<&[f64]> = ids.iter().map(|&id| self.rows.row(id, self.model.d)).collect();
            let output = exact.run(&rows, position);
            (exact.dot(direction, &output, Interval::from_f64(0.0)), output, i)
        };
        let mut ends: Vec<(Interval, Vec<Interval>, usize)> = near.par_iter().map(evaluate).collect();
        ends.sort_by(|a, b| a.0.lo.partial_cmp(&b.0.lo).expect("big floats are ordered"));
        let span = Interval::from_f64(direction.len() as f64).times(&Interval::point(delta.big_above.clone()), bits).hi;
        let mut left = HashSet::new();
        for (at, (s, output, i)) in ends.iter().enumerate() {
            let window = ends[at + 1..].iter().take_while(|(t, ..)| t.minus(s, bits).lo <= span);
            for (_, other, j) in window.filter(|(.., j)| self.points[*i].context != self.points[*j].context) {
                let square = output.iter().zip(other).fold(Interval::from_f64(0.0), |sum, (a, b)| {
                    let difference = a.minus(b, bits);
                    let above = difference.relu();
                    let below = Interval::from_f64(0.0).minus(&difference, bits).relu();
                    let size = above.plus(&below, bits);
                    sum.plus(&size.times(&size, bits), bits)
                });
                let bound = |delta: &Big| Interval::point(delta.clone()).times(&Interval::point(delta.clone()), 256);
                if square.hi < bound(&delta.big_below).lo {
                    return Err((*i, *j));
                }
                if square.lo <= bound(&delta.big_above).hi {
                    left.extend([*i, *j]);
                }
            }
        }
        let mut left: Vec<usize> = left.into_iter().collect();
        left.sort_unstable();
        Ok(left)
    }
}

/// 2^`log2_delta` from below and above.
struct Delta {
    above: f64,
    big_above: Big,
    big_below: Big,
}

impl Delta {
    fn new(log2: f64) -> Self {
        let (whole, part) = (log2.floor(), core_math::exp2(log2 - log2.floor()));
        let big = |x: f64| Big::from_f64(x).scaled(whole as i64);
        let above = if log2 < -1000.0 { f64::MIN_POSITIVE } else { core_math::exp2(log2) * (1.0 + 1e-12) };
        Self { above, big_above: big(part * (1.0 + 1e-12)), big_below: big(part * (1.0 - 1e-12)) }
    }
}

/// Whether two balls are certainly more than delta apart.
fn far(a: &Ball, b: &Ball, delta: f64) -> bool {
    let gap = |c: usize| ((a.0[c] - b.0[c]).abs() * (1.0 - 1e-12) - up(a.1[c] + b.1[c])).max(0.0);
    (0..a.0.len()).map(|c| gap(c).powi(2)).sum::<f64>().sqrt() * (1.0 - 1e-9) > delta
}

/// A fixed direction with entries between 1/2 and 1 in size, so that no two contexts agree along it by accident.
fn direction(d: usize) -> Vec<f64> {
    let entry = |c: usize| {
        let hash = (c as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let size = 0.5 + (hash >> 12) as f64 / (1_u64 << 53) as f64;
        if hash & 1 == 0 { size } else { -size }
    };
    (0..d).map(entry).collect()
}
