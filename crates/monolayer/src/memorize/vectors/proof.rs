//! The proof that a block of hinges gives every id its output: in real arithmetic, and in floating point with sums in any
//! order.
//!
//! In real arithmetic tokens after attention are enclosed, and the block is evaluated exactly at the enclosures. In floating
//! point the computed token is off by a bounded error, and the block is evaluated exactly at everything it can be; what the
//! block itself rounds is at most `gamma_k` times the sum of the absolute values of its k terms. Bounds are evaluated in
//! double precision and widened by a little, which covers their own rounding.

use rayon::prelude::*;

use super::hinges::{Output, Readout, ball};
use super::map::first_tokens;
use crate::arithmetic::{Ball, Interval, Magnitude, Number};
use crate::attention::Attention;
use crate::context_map::View;
use crate::error::Result;
use crate::exact::map_attention;
use crate::matrix::Matrix;
use crate::memorize::gated::proof::EXP_ULP;
use crate::model::Head;

/// Unit roundoff of double precision.
const U: f64 = f64::EPSILON / 2.0;
const SLACK: f64 = 1.01;

/// What is to be proved.
pub(super) struct Claim<'a> {
    pub view: &'a View<'a>,
    pub attention: &'a Attention<f64>,
    pub readout: &'a Readout,
    /// The label of each context.
    pub label: &'a [u32],
    /// The output of each label.
    pub points: &'a Matrix<f64>,
    /// What decodes outputs, where labels are classes; else the nearest point does.
    pub head: Option<&'a Head<f64>>,
    /// Whether ids are wanted to more than double precision.
    pub exact_ids: bool,
}

/// What was proved.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// `|F(X) - Y|` in real arithmetic is at most this, for every possible token and coordinate.
    pub real_error: f64,
    /// The same in double precision, sums in any order.
    pub float_error: f64,
    /// For each context, the distance to the next label over twice the error in double precision: where it is above 1 the
    /// nearest output (or the head) finds the label.
    pub ratio: Vec<f64>,
}

impl Proof {
    /// Whether the label of a context is proved in double precision.
    pub fn certain(&self, context: u32) -> bool {
        self.ratio[context as usize] > 1.0
    }

    /// The smallest ratio.
    pub fn smallest_ratio(&self) -> f64 {
        self.ratio.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

fn gamma(k: f64) -> f64 {
    k * U / (1.0 - k * U)
}

impl Claim<'_> {
    /// Proves what can be proved.
    pub fn prove(&self) -> Result<Proof> {
        let first = first_tokens(self.view);
        let mut inputs = if self.exact_ids {
            self.enclose::<Ball>(&first, Clone::clone)?
        } else {
            self.enclose::<Interval>(&first, |x| ball(*x))?
        };
        let target = |context: usize| self.points.row(self.label[context] as usize);
        let real = self.readout.outputs(&inputs);
        let real_error = (0..first.len()).map(|c| largest_error(&real[c], target(c))).fold(0.0, f64::max);

        for (&t, row) in first.iter().zip(&mut inputs) {
            let errors = self.input_error(t, row);
            for (h, error) in row.iter_mut().zip(errors) {
                *h = h.clone().widened(Magnitude::new(error.max(f64::MIN_POSITIVE), 0));
            }
        }
        let float = self.readout.outputs(&inputs);
        let error = |c: usize| {
            let out: &[Output] = &float[c];
            let rounding = out.iter().map(|o| SLACK * gamma(o.active as f64 + 3.0) * o.size).fold(0.0, f64::max);
            largest_error(out, target(c)) + rounding
        };
        let errors: Vec<f64> = (0..first.len()).map(error).collect();
        let decoder = Decoder::new(self.points, self.head);
        Ok(Proof {
            real_error,
            float_error: errors.iter().copied().fold(0.0, f64::max),
            ratio: errors.iter().map(|&error| decoder.ratio(error)).collect(),
        })
    }

    /// The tokens after attention, exactly.
    fn enclose<N: Number + Send + Sync>(
        &self,
        tokens: &[usize],
        ball: impl Fn(&N) -> Ball + Sync,
    ) -> Result<Vec<Vec<Ball>>> {
        let view = self.view;
        let attention = map_attention(self.attention, |&x| N::from_f64(x));
        let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); view.offsets.len() - 1];
        tokens.iter().enumerate().for_each(|(i, &t)| wanted[view.place(t).0].push(i));
        let of_sequence = |(sequence, wanted): (usize, &Vec<usize>)| -> Result<Vec<(usize, Vec<Ball>)>> {
            if wanted.is_empty() {
                return Ok(Vec::new());
            }
            let range = view.offsets[sequence]..view.offsets[sequence + 1];
            let z = Matrix {
                rows: range.len(),
                cols: view.vectors.d(),
                data: range.clone().flat_map(|t| self.token::<N>(view.ids[t], t - range.start)).collect(),
            };
            let out = attention.apply(&z)?;
            Ok(wanted.iter().map(|&i| (i, out.row(tokens[i] - range.start).iter().map(&ball).collect())).collect())
        };
        let parts: Vec<_> = wanted.par_iter().enumerate().map(of_sequence).collect::<Result<Vec<_>>>()?;
        let mut rows = vec![Vec::new(); tokens.len()];
        parts.into_iter().flatten().for_each(|(i, row)| rows[i] = row);
        Ok(rows)
    }

    /// A token with its place, the sum not rounded.
    fn token<N: Number>(&self, id: u32, place: usize) -> Vec<N> {
        let vectors = self.view.vectors;
        let word = vectors.words.row(id as usize).iter().map(|&x| N::from_f64(x));
        match &vectors.positions {
            None => word.collect(),
            Some(positions) => word.zip(positions.row(place)).map(|(x, &p)| x + N::from_f64(p)).collect(),
        }
    }

    /// How far the coordinates of a computed token after attention can be from the true ones.
    fn input_error(&self, t: usize, row: &[Ball]) -> Vec<f64> {
        let view = self.view;
        let visible = view.visible(t);
        let start = view.offsets[view.place(t).0];
        let head = &self.attention.heads[0];
        // Sequences of other lengths may share the context.
        let n = self.view.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(1) as f64;
        let d = row.len() as f64;
        // The largest sum of absolute values of a projection's terms bounds both the projection and, times gamma, its error.
        let size = |w: &[f64], x: &[f64]| w.iter().zip(x).map(|(w, x)| (w * x).abs()).sum::<f64>();
        let vector = |t: usize| view.vectors.vector(view.ids[t], t - start);
        let p = SLACK * visible.map(|t| size(head.w_k.row(0), &vector(t))).fold(0.0, f64::max);
        let q = SLACK * size(head.w_q.row(0), &vector(t));
        // One rounding more, for the sum of token and place.
        let (e_p, e_q) = (gamma(d + 1.0) * p, gamma(d + 1.0) * q);
        let e_a = p * e_q + q * e_p + e_p * e_q + U * (p + e_p) * (q + e_q);
        let e_b = SLACK * (e_a + U * (2.0 * p * q + 4.0 * e_a));
        let theta = SLACK * (e_b.exp_m1() + 2.0 * EXP_ULP * U * (1.0 + e_b.exp_m1()));
        let e_g = if theta < 0.5 {
            theta / (1.0 - theta) * 2.0 * p + 2.0 * gamma(n + 3.0) * p * (1.0 + 2.0 * theta) + e_p
        } else {
            f64::INFINITY
        };
        let error = |(w, h): (&f64, &Ball)| {
            let h = h.to_interval().magnitude();
            SLACK * (w.abs() * (e_g + 2.0 * U * (p + e_g)) + 3.0 * U * h) + f64::MIN_POSITIVE
        };
        head.w_o.data.iter().zip(row).map(error).collect()
    }
}

/// The largest distance of an output from where it should be.
fn largest_error(out: &[Output], target: &[f64]) -> f64 {
    let distance = |(o, &y): (&Output, &f64)| (o.value.clone() - Ball::new(y, 64)).to_interval().magnitude();
    out.iter().zip(target).map(distance).fold(0.0, f64::max)
}

/// How outputs become labels.
struct Decoder {
    /// The smallest distance of two points.
    apart: f64,
    d: f64,
    /// A bound on the rounding of the difference of two scores.
    rounding: f64,
}

impl Decoder {
    fn new(points: &Matrix<f64>, head: Option<&Head<f64>>) -> Self {
        let apart = crate::separation::separation(points.cols, &points.data).epsilon / SLACK;
        let d = points.cols as f64;
        let rounding = head.map_or(0.0, |head| {
            let largest = head.weight.data.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            let bias = head.bias.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
            // Outputs are within 1 of a point, or nothing is claimed.
            2.0 * SLACK * gamma(d + 1.0) * (d * largest * (largest + 1.0) + bias)
        });
        Self { apart, d, rounding }
    }

    /// The margin over the error, for an error of at most `error` in each coordinate.
    ///
    /// An output y = c + e scores `|c - c'|^2 / 2 + (c - c') . e` higher for c than for c', which is at least
    /// `D (D / 2 - sqrt(d) error)` for points at a distance D, and grows with D from the smallest D on.
    fn ratio(&self, error: f64) -> f64 {
        if self.apart.is_infinite() {
            return f64::INFINITY;
        }
        let head = self.rounding > 0.0;
        if head && error > 1.0 {
            return 0.0;
        }
        self.apart / 2.0 / (self.d.sqrt() * SLACK * error + self.rounding / self.apart)
    }
}
