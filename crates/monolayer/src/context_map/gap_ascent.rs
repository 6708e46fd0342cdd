//! Moving v so that many close pairs of contexts move apart at once.
//!
//! To first order a gap is `h + a . step`. There are as many numbers in v as coordinates, so about as many of the smallest
//! gaps can be widened together: the step that makes the smallest of them as large as possible, within a given length.

use crate::arithmetic::kernels;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::context_map::{Groups, Projection, View};

/// Pairs that a step takes care of.
const PAIRS: usize = 512;

/// Gaps that are so many widths above the smallest weigh less than a millionth, and nothing is lost without them.
const FAR: f64 = 13.815_510_557_964_274;

/// Rounds of the inner ascent.
const ROUNDS: usize = 300;

/// The smallest gaps, and how they change with v.
pub(crate) struct Slopes {
    gaps: Vec<f64>,
    /// One row for each gap.
    changes: Vec<Vec<f64>>,
    /// The same, one row for each coordinate, so that all gaps are computed side by side.
    columns: Matrix<f64>,
    /// The length of v.
    length: f64,
}

impl Slopes {
    /// The slopes at a projection with given ids.
    pub fn new(view: &View, groups: &Groups, projection: &Projection, ids: &[f64]) -> Self {
        let (p, start) = (view.project(&projection.v), view.project_start(&projection.v));
        let pairs = groups.closest_pairs(|t| ids[t], PAIRS);
        let slope = |&(_, low, high): &(f64, usize, usize)| {
            let (low, high) = [low, high].map(|token| gradient(view, projection, start, &p, token)).into();
            high.iter().zip(&low).map(|(h, l)| h - l).collect()
        };
        let gaps = pairs.iter().map(|pair| pair.0).collect();
        let length = projection.v.iter().map(|x| x * x).sum::<f64>().sqrt();
        Self::of(gaps, parallel::map_slice(&pairs, slope), length)
    }

    fn of(gaps: Vec<f64>, changes: Vec<Vec<f64>>, length: f64) -> Self {
        let d = changes.first().map_or(0, Vec::len);
        let columns = Matrix::from_fn(d, changes.len(), |c, i| changes[i][c]);
        Self { gaps, changes, columns, length }
    }

    /// The way in which gaps widen, each with a weight that falls with its distance from the smallest.
    fn direction(&self, distances: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut direction = vec![0.0; self.columns.rows];
        for (a, distance) in self.changes.iter().zip(distances).filter(|&(_, distance)| distance < FAR) {
            let weight = (-distance).exp();
            kernels::vectorized(
                #[inline(always)]
                || direction.iter_mut().zip(a).for_each(|(x, a)| *x += weight * a),
            );
        }
        direction
    }

    /// The gaps after a step.
    fn after(&self, step: &[f64], gaps: &mut [f64]) {
        kernels::vectorized(
            #[inline(always)]
            || {
                gaps.fill(0.0);
                for (column, s) in self.columns.iter_rows().zip(step) {
                    for (gap, a) in gaps.iter_mut().zip(column) {
                        *gap += a * s;
                    }
                }
                for (gap, h) in gaps.iter_mut().zip(&self.gaps) {
                    *gap += h;
                }
            },
        );
    }

    /// The step of a length, relative to v's, that widens the smallest gap most, nearly: ascent of a smooth minimum that gets
    /// sharper and sharper.
    pub fn step(&self, length: f64) -> Vec<f64> {
        let d = self.changes[0].len();
        let radius = length * self.length;
        let steepest = self.changes.iter().map(|a| a.iter().map(|x| x * x).sum::<f64>().sqrt()).fold(0.0, f64::max);
        let mut step = vec![0.0; d];
        if steepest == 0.0 {
            return step;
        }
        let mut gaps = self.gaps.clone();
        for round in 0..ROUNDS {
            let share = 1.0 - round as f64 / ROUNDS as f64;
            let smallest = gaps.iter().copied().fold(f64::INFINITY, f64::min);
            // Gaps within this of the smallest count.
            let width = 0.1 * radius * steepest * share + f64::MIN_POSITIVE;
            let direction = self.direction(gaps.iter().map(|gap| (gap - smallest) / width));
            let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm == 0.0 {
                break;
            }
            let stride = 0.2 * radius * share / norm;
            step.iter_mut().zip(&direction).for_each(|(s, x)| *s += stride * x);
            let long = step.iter().map(|x| x * x).sum::<f64>().sqrt();
            if long > radius {
                for s in &mut step {
                    *s *= radius / long;
                }
            }
            self.after(&step, &mut gaps);
        }
        step
    }
}

/// The gradient of token `t`'s `g` in v, for `v_q = kappa v`. With weights `w_i` and `y = kappa p_t`,
/// `sum_i w_i (1 + y (p_i - g)) x_i + kappa sum_i w_i (p_i - g) p_i t`.
fn gradient(view: &View, projection: &Projection, start: Option<f64>, p: &[f64], t: usize) -> Vec<f64> {
    // What is seen: projections, and the tokens that have them, where the start token is none.
    let seen: Vec<(f64, Option<usize>)> =
        start.map(|p| (p, None)).into_iter().chain(view.visible(t).map(|i| (p[i], Some(i)))).collect();
    let y = projection.kappa * p[t];
    let top = seen.iter().map(|(p, _)| y * p).fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = seen.iter().map(|(p, _)| (y * p - top).exp()).collect();
    let total: f64 = powers.iter().sum();
    let weights: Vec<f64> = powers.iter().map(|power| power / total).collect();
    let g: f64 = seen.iter().zip(&weights).map(|((p, _), w)| w * p).sum();
    let variance: f64 = seen.iter().zip(&weights).map(|((p, _), w)| w * (p - g) * p).sum();

    let mut gradient = vec![0.0; view.vectors.d()];
    let mut add = |token: Option<usize>, factor: f64| {
        let (word, place) = match (token, &view.vectors.start) {
            (None, Some(start)) => (&start[..], view.vectors.positions.as_ref().map(|positions| positions.row(0))),
            (Some(i), _) => {
                (view.vectors.words.row(view.token_ids[i] as usize), view.vectors.position(view.place(i).1))
            }
            (None, None) => return,
        };
        for row in std::iter::once(word).chain(place) {
            gradient.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
        }
    };
    for ((p, token), w) in seen.into_iter().zip(&weights) {
        add(token, w * (1.0 + y * (p - g)));
    }
    add(Some(t), projection.kappa * variance);
    gradient
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::embedding::Embedding;
    use crate::data::token_vectors::TokenVectors;
    use crate::data::{Dataset, Format};
    use crate::paper::attention::Mask;

    #[test]
    fn gradients_are_finite_differences() {
        let data = Dataset::read("test", Format::Conll, "a\nb\nc\n\na\nc\nb\nb\n".as_bytes()).unwrap();
        let places = "random:2".parse().unwrap();
        let vectors = |start| TokenVectors::with_start(start, &data, &Embedding::Random(3), &places, 0, 1).unwrap();
        for (mask, vectors) in [
            (Mask::None, vectors(None)),
            (Mask::Causal, vectors(None)),
            (Mask::Causal, vectors(Some("<s>"))),
            (Mask::Band(1, 0), vectors(Some("<s>"))),
        ] {
            let view = View::new(&data, &vectors, mask);
            let at = Projection { v: vec![0.3, -0.2, 0.5, 0.1, -0.4], kappa: 0.75 };
            let (p, start) = (view.project(&at.v), view.project_start(&at.v));
            let step = 1e-6;
            for c in 0..5 {
                let moved = |by: f64| {
                    let mut v = at.v.clone();
                    v[c] += by;
                    Projection { v, kappa: at.kappa }.context_ids(&view)
                };
                let (above, below) = (moved(step), moved(-step));
                for t in 0..data.tokens() {
                    let difference = (above[t] - below[t]) / (2.0 * step);
                    assert!((gradient(&view, &at, start, &p, t)[c] - difference).abs() < 1e-8);
                }
            }
        }
    }

    #[test]
    fn a_step_widens_the_smallest_gap() {
        // Two gaps that pull in opposite directions along the first axis, and agree along the second.
        let slopes = Slopes::of(vec![0.1, 0.1], vec![vec![1.0, 0.5], vec![-1.0, 0.5]], 1.0);
        let step = slopes.step(0.01);
        assert!(step[0].abs() < 1e-4 && (step[1] - 0.01).abs() < 1e-4, "{step:?}");
    }
}
