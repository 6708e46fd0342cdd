//! The proof that a block of hinges gives every id its output: in real arithmetic, and in floating point with sums in any
//! order.
//!
//! In real arithmetic tokens after attention are enclosed, and the block is evaluated exactly at the enclosures. In floating
//! point the computed token is off by a bounded error, and the block is evaluated exactly at everything it can be; what the
//! block itself rounds is at most `gamma_k` times the sum of the absolute values of its k terms. Bounds are
//! rounded up (`arithmetic::float_model`), and one that is not a finite number proves nothing.

use super::hinges::{Output, Readout, ball};
use super::map_search::first_tokens;
use crate::arithmetic::float_model::{DOUBLE, Up};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::softmax_error::Softmax;
use crate::arithmetic::{Ball, Interval, Magnitude, Number};
use crate::context_map::View;
use crate::error::Result;
use crate::model::LabelHead;
use crate::model::exact::map_attention;
use crate::paper::attention::Attention;

/// What is to be proved.
pub(super) struct OutputProver<'a> {
    pub view: &'a View<'a>,
    pub attention: &'a Attention<f64>,
    pub readout: &'a Readout,
    /// The label of each context; nothing is to be proved of one without.
    pub label: &'a [Option<u32>],
    /// The output of each label.
    pub points: &'a Matrix<f64>,
    /// What decodes outputs, where labels are classes; else the nearest point does.
    pub head: Option<&'a LabelHead<f64>>,
    /// Whether a head chooses some of the coordinates, its sums rounded.
    pub chosen: bool,
    /// Whether ids are wanted to more than double precision.
    pub exact_ids: bool,
}

/// What was proved.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputProof {
    /// `|F(X) - Y|` in real arithmetic is at most this, for every possible token and coordinate.
    pub real_error: f64,
    /// The same in double precision, sums in any order.
    pub float_error: f64,
    /// For each context, the distance to the next label over twice the error in double precision: where it is above 1 the
    /// nearest output (or the head) finds the label.
    pub ratio: Vec<f64>,
}

impl OutputProof {
    /// Whether the label of a context is proved in double precision.
    pub fn certain(&self, context: u32) -> bool {
        self.ratio[context as usize] > 1.0
    }

    /// The smallest ratio.
    pub fn smallest_ratio(&self) -> f64 {
        self.ratio.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl OutputProver<'_> {
    /// Proves what can be proved.
    pub fn prove(&self) -> Result<OutputProof> {
        let first = first_tokens(self.view);
        let mut inputs = if self.exact_ids {
            self.enclose::<Ball>(&first, Clone::clone)?
        } else {
            self.enclose::<Interval>(&first, |x| ball(*x))?
        };
        let target = |context: usize| self.label[context].map(|label| self.points.row(label as usize));
        let real = self.readout.outputs(&inputs);
        let real_error = (0..first.len()).filter_map(|c| Some(largest_error(&real[c], target(c)?))).fold(0.0, f64::max);

        for (&t, row) in first.iter().zip(&mut inputs) {
            let errors = self.input_error(t, row);
            for (h, error) in row.iter_mut().zip(errors) {
                *h = h.clone().widened(Magnitude::new(error.get().max(f64::MIN_POSITIVE), 0));
            }
        }
        let float = self.readout.outputs(&inputs);
        let error = |c: usize| {
            let target = target(c)?;
            let rounding = float[c].iter().map(rounding).fold(Up::ZERO, Up::max);
            Some(Up::new(largest_error(&float[c], target)) + rounding)
        };
        let errors: Vec<Option<Up>> = (0..first.len()).map(error).collect();
        let float_error = errors.iter().flatten().copied().fold(Up::ZERO, Up::max);
        let decoder = Decoder::new(self.points, self.head);
        Ok(OutputProof {
            real_error,
            float_error: (float_error + self.choice_error(float_error)).get(),
            ratio: errors.iter().map(|error| error.map_or(f64::INFINITY, |error| decoder.ratio(error))).collect(),
        })
    }

    /// How far a head that chooses coordinates rounds: one term of each sum is an output, the others are 0.
    fn choice_error(&self, error: Up) -> Up {
        let largest = self.points.data.iter().map(|&x| Up::size(x)).fold(Up::ZERO, Up::max);
        if self.chosen { DOUBLE.sum_error(self.points.cols + 1, largest + error) } else { Up::ZERO }
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
        let of_sequence = |sequence: usize| -> Result<Vec<(usize, Vec<Ball>)>> {
            let wanted = &wanted[sequence];
            if wanted.is_empty() {
                return Ok(Vec::new());
            }
            let range = view.offsets[sequence]..view.offsets[sequence + 1];
            let z = Matrix {
                rows: range.len(),
                cols: view.vectors.d(),
                data: range.clone().flat_map(|t| self.token::<N>(view.token_ids[t], t - range.start)).collect(),
            };
            let out = attention.apply(&z)?;
            Ok(wanted.iter().map(|&i| (i, out.row(tokens[i] - range.start).iter().map(&ball).collect())).collect())
        };
        let parts = parallel::try_map(wanted.len(), of_sequence)?;
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
    fn input_error(&self, t: usize, row: &[Ball]) -> Vec<Up> {
        let view = self.view;
        let start = view.offsets[view.place(t).0];
        let head = &self.attention.heads[0];
        // Sequences of other lengths may share the context.
        let length = self.view.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(1);
        // The sum of a token and its place is rounded once, here as in the program.
        let rounded = Up::new(1.0 + f64::EPSILON);
        let size = |w: &[f64], t: usize| {
            let x = view.vectors.vector(view.token_ids[t], t - start);
            w.iter().zip(x).map(|(&w, x)| Up::size(w) * Up::size(x)).sum::<Up>() * rounded
        };
        // The largest sum of absolute values of a projection's terms bounds both the projection and its error.
        let keys = view.visible(t).map(|t| size(head.w_k.row(0), t)).fold(Up::ZERO, Up::max);
        let p = keys.max(view.visible(t).map(|t| size(head.w_v.row(0), t)).fold(Up::ZERO, Up::max));
        let softmax = Softmax::new(length, row.len() + 1, p, size(head.w_q.row(0), t));
        let e_g = softmax.error(&DOUBLE, p + p, p);
        let error = |(&w, h): (&f64, &Ball)| {
            let (w, h) = (Up::size(w), Up::new(h.to_interval().magnitude()));
            // The token is at most as large as what comes out and what is added. It is rounded once before.
            let moved = w * (p + e_g);
            w * e_g + DOUBLE.sum_error(3, (h + w * p) * rounded + moved)
        };
        head.w_o.data.iter().zip(row).map(error).collect()
    }
}

/// How far rounding can move an output. All numbers are sums of nonnegative ones, each rounded some times at most.
fn rounding(output: &Output) -> Up {
    let size = Up::new(output.size).over(DOUBLE.gamma(2 * output.active + 8).below_one());
    DOUBLE.sum_error(output.active + 3, size)
}

/// The largest distance of an output from where it should be.
fn largest_error(out: &[Output], target: &[f64]) -> f64 {
    let distance = |(o, &y): (&Output, &f64)| (o.value.clone() - Ball::new(y, 64)).to_interval().magnitude();
    out.iter().zip(target).map(distance).fold(0.0, f64::max)
}

/// How outputs become labels.
struct Decoder {
    /// A lower bound of the smallest distance of two points.
    apart: f64,
    d: usize,
    /// A bound on the rounding of the difference of two scores, where there is a head.
    rounding: Option<Up>,
}

impl Decoder {
    fn new(points: &Matrix<f64>, head: Option<&LabelHead<f64>>) -> Self {
        let d = points.cols;
        let epsilon = crate::data::separation::separation(d, &points.data).epsilon;
        let apart = epsilon * DOUBLE.gamma(d + 8).below_one();
        let rounding = head.map(|head| {
            let size = |list: &[f64]| list.iter().map(|&x| Up::size(x)).fold(Up::ZERO, Up::max);
            let (largest, bias) = (size(&head.weight.data), size(&head.bias));
            // Outputs are within 1 of a point, or nothing is claimed.
            let error = DOUBLE.sum_error(d + 1, Up::count(d) * largest * (largest + Up::count(1)) + bias);
            error + error
        });
        Self { apart, d, rounding }
    }

    /// The margin over the error, for an error of at most `error` in each coordinate.
    ///
    /// An output y = c + e scores `|c - c'|^2 / 2 + (c - c') . e` higher for c than for c', which is at least
    /// `D (D / 2 - sqrt(d) error)` for points at a distance D, and grows with D from the smallest D on.
    fn ratio(&self, error: Up) -> f64 {
        let too_far = if self.rounding.is_some() { error.get() > 1.0 } else { !error.is_known() };
        if too_far {
            return 0.0;
        }
        if self.apart.is_infinite() {
            return f64::INFINITY;
        }
        let taken = Up::count(self.d).root() * error + self.rounding.unwrap_or(Up::ZERO).over(self.apart);
        let (half, taken) = (self.apart / 2.0, taken.get());
        // Above 1 only where that is so for the bounds themselves.
        if half > taken { (half / taken).max(1.0_f64.next_up()) } else { (half / taken).clamp(0.0, 1.0) }
    }
}
