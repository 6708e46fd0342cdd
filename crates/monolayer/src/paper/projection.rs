//! Lemmas 2 and 3: a direction along which different tokens stay apart, found by sampling and then verified.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::arithmetic::sorting;
use crate::arithmetic::{Interval, Number};
use crate::error::{Error, Result};
use crate::paper::theorem_two::query_scale;

/// A direction that satisfies Lemma 2.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// The direction; its length is at most 1, and above 1 - 1e-9.
    pub v: Vec<f64>,
    /// How many directions were tried.
    pub tries: usize,
}

/// Directions tried at most: each succeeds with probability at least 1 - 2/pi, so this many fail for no real data.
const TRIES: usize = 1000;

/// Points that Lemma 2 can be verified for.
pub trait Points {
    /// The dimension.
    fn d(&self) -> usize;
    /// Enclosures of the inner products of all points with v.
    fn project(&self, v: &[f64]) -> Vec<Interval>;
    /// An enclosure of the distance of two points.
    fn distance(&self, i: usize, j: usize) -> Interval;
    /// An upper bound of all distances.
    fn diameter(&self) -> f64;
}

/// The rows of a row-major `[N, d]` array.
struct PointRows<'a> {
    d: usize,
    rows: &'a [f64],
}

/// Lemma 2: a unit vector v with `sqrt(8 / (pi d)) / N^2 |x - x'| <= |v . (x - x')| <= |x - x'|` for all of N different points,
/// the rows of a row-major `[N, d]` array. Floats cannot be a unit vector exactly: v is a little shorter, which the upper
/// bound allows, and the lower bound is verified for v as it is.
pub fn lemma_2(d: usize, points: &[f64], seed: u64) -> Result<Direction> {
    lemma_2_for(&PointRows { d, rows: points }, seed)
}

/// Lemma 2 for any kind of points.
pub fn lemma_2_for(points: &impl Points, seed: u64) -> Result<Direction> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for tries in 1..=TRIES {
        let v = shortened((0..points.d()).map(|_| StandardNormal.sample(&mut rng)).collect());
        if holds(points, &v) {
            return Ok(Direction { v, tries });
        }
    }
    Err(Error::too_close(
        format!("no direction of {TRIES} keeps the points apart as Lemma 2 says"),
        "some are too close for double precision",
    ))
}

/// Lemma 3: with `W_K = u v^T`, `W_Q = u' v^T` and `u . u' = kappa`, any two different keys get scores more than `delta`
/// apart from every query: `|kappa (v . a - v . b) (v . c)| > delta`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Keys and queries.
    pub direction: Direction,
    /// Eq. 29, rounded up: `(|V| + 1)^4 pi d delta / (8 epsilon r_min)`.
    pub kappa: f64,
    /// A lower bound of the distances of scores; above delta.
    pub apart: f64,
}

/// Lemma 3 for a vocabulary of different vectors other than 0, the rows of a row-major `[|V|, d]` array.
pub fn lemma_3(d: usize, vocabulary: &[f64], delta: f64, seed: u64) -> Result<Scores> {
    // Lemma 2 for V and 0 bounds the queries v . c as well.
    let points: Vec<f64> = vocabulary.iter().copied().chain(std::iter::repeat_n(0.0, d)).collect();
    let direction = lemma_2(d, &points, seed)?;
    let constants = crate::data::separation::separation(d, vocabulary);
    // The constants are right to within a few roundings; Definition 1 asks for anything strictly below them.
    let below = |x: f64| x * (1.0 - 1e-12);
    let epsilon = if constants.epsilon.is_finite() { below(constants.epsilon) } else { 1.0 };
    let kappa = query_scale(vocabulary.len() / d, d, Interval::point(delta), epsilon, below(constants.r_min)).hi();
    let projected = sorted(&PointRows { d, rows: vocabulary }, &direction.v);
    let keys = projected.windows(2).map(|w| (w[1].0 - w[0].0).mignitude()).fold(f64::INFINITY, f64::min);
    let queries = projected.iter().map(|p| p.0.mignitude()).fold(f64::INFINITY, f64::min);
    let apart = if keys.is_finite() {
        (Interval::point(kappa) * Interval::point(keys) * Interval::point(queries)).lo()
    } else {
        f64::INFINITY
    };
    if apart > delta {
        return Ok(Scores { direction, kappa, apart });
    }
    Err(Error::too_close(
        "the scores could not be proved to be far enough apart in double precision",
        "there must be no zero token, and tokens must not be nearly equal",
    ))
}

/// The entries of v are multiples of this, so that projections of codes of +1 and -1 are exact in double precision.
const GRID: f64 = 1.0 / (1_u64 << 40) as f64;

/// The vector, scaled to a length just below 1, on the grid.
pub(crate) fn shortened(x: Vec<f64>) -> Vec<f64> {
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    x.into_iter().map(|x| (x / length * (1.0 - 1e-10) / GRID).trunc() * GRID).collect()
}

impl Points for PointRows<'_> {
    fn d(&self) -> usize {
        self.d
    }

    fn project(&self, v: &[f64]) -> Vec<Interval> {
        let dot = |x: &[f64]| {
            x.iter().zip(v).fold(Interval::point(0.0), |sum, (&x, &v)| sum + Interval::point(x) * Interval::point(v))
        };
        self.rows.chunks_exact(self.d).map(dot).collect()
    }

    fn distance(&self, i: usize, j: usize) -> Interval {
        let row = |i: usize| &self.rows[i * self.d..(i + 1) * self.d];
        length(row(i).iter().zip(row(j)).map(|(&x, &y)| Interval::point(x) - Interval::point(y)))
    }

    fn diameter(&self) -> f64 {
        let length = |x: &[f64]| length(x.iter().map(|&x| Interval::point(x))).hi();
        self.rows.chunks_exact(self.d).map(length).fold(0.0, f64::max) * 2.0
    }
}

/// The length of a vector.
pub(crate) fn length(x: impl Iterator<Item = Interval>) -> Interval {
    x.fold(Interval::point(0.0), |sum, x| sum + x.square()).sqrt()
}

/// Enclosures of the projections in increasing order of their centers, with the number of each.
fn sorted(points: &impl Points, v: &[f64]) -> Vec<(Interval, usize)> {
    let projected = points.project(v);
    let order = sorting::order_by_key(projected.len(), |i| projected[i].center());
    order.into_iter().map(|i| (projected[i], i)).collect()
}

/// Whether v certainly satisfies Lemma 2. Two points can only break the lower bound where their projections are within the
/// bound's smallness times the diameter: only those few pairs are looked at.
fn holds(points: &impl Points, v: &[f64]) -> bool {
    if length(v.iter().map(|&v| Interval::point(v))).hi() > 1.0 {
        return false;
    }
    let projected = sorted(points, v);
    let share = (Interval::point(8.0) / (Interval::pi() * Interval::point(points.d() as f64))).sqrt()
        / Interval::point(projected.len() as f64).square();
    let width = projected.iter().map(|p| p.0.width()).fold(0.0, f64::max);
    let near = (share * Interval::point(points.diameter())).hi() + 2.0 * width;
    for (i, a) in projected.iter().enumerate() {
        // Centers are rounded, hence the small slack.
        for b in projected[i + 1..].iter().take_while(|b| b.0.center() - a.0.center() <= near * (1.0 + 1e-9)) {
            if (b.0 - a.0).mignitude() < (share * points.distance(a.1, b.1)).hi() {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::Ball;
    use proptest::prelude::*;

    /// Both sides of Lemma 2 in balls, for all pairs.
    fn lemma_2_in_balls(d: usize, points: &[f64], v: &[f64]) -> bool {
        let ball = |x: f64| Ball::new(x, 256);
        let rows: Vec<&[f64]> = points.chunks_exact(d).collect();
        let square = |x: Ball| x.clone() * x;
        // The square of the lower bound: 8 / (pi d N^4) |x - x'|^2, with pi from below.
        let share = ball(8.0) / (ball(std::f64::consts::PI) * ball(d as f64) * ball((rows.len() as f64).powi(4)));
        rows.iter().enumerate().all(|(i, x)| {
            rows[..i].iter().all(|y| {
                let differences = || x.iter().zip(*y).map(|(&x, &y)| ball(x) - ball(y));
                let distance = differences().map(square).fold(ball(0.0), |sum, x| sum + x);
                let projected =
                    square(differences().zip(v).map(|(x, &v)| x * ball(v)).fold(ball(0.0), |sum, x| sum + x));
                !projected.certainly_less(&(share.clone() * &distance)) && !distance.certainly_less(&projected)
            })
        })
    }

    proptest! {
        #[test]
        fn lemma_2_holds_for_what_is_found(d in 1_usize..5, points in prop::collection::vec(-5_i32..5, 2..60), scale in -40..40) {
            let rows = points.len() / d;
            prop_assume!(rows > 0);
            let points: Vec<f64> = points[..rows * d].iter().map(|&x| f64::from(x) * 2_f64.powi(scale)).collect();
            let (_, first) = crate::data::context::distinct_rows(d, &points);
            let points: Vec<f64> = first.iter().flat_map(|&i| &points[i * d..(i + 1) * d]).copied().collect();
            let found = lemma_2(d, &points, 3).unwrap();
            prop_assert!(found.tries < 60);
            prop_assert!(lemma_2_in_balls(d, &points, &found.v));
        }

        #[test]
        fn lemma_3_holds_for_what_is_found(vocabulary in prop::collection::vec((1_i32..9, -9_i32..9), 1..12), delta in 0.1_f64..9.0) {
            let mut pairs = vocabulary;
            pairs.sort_unstable();
            pairs.dedup();
            let rows: Vec<f64> = pairs.iter().flat_map(|&(a, b)| [f64::from(a), f64::from(b)]).collect();
            let scores = lemma_3(2, &rows, delta, 5).unwrap();
            let dot = |x: &[f64]| x.iter().zip(&scores.direction.v).map(|(x, v)| x * v).sum::<f64>();
            for a in rows.chunks_exact(2) {
                for b in rows.chunks_exact(2).filter(|b| *b != a) {
                    for c in rows.chunks_exact(2) {
                        let apart = (scores.kappa * (dot(a) - dot(b)) * dot(c)).abs();
                        prop_assert!(apart > delta && apart >= scores.apart * (1.0 - 1e-9));
                    }
                }
            }
        }
    }

    fn holds(d: usize, rows: &[f64], v: &[f64]) -> bool {
        super::holds(&PointRows { d, rows }, v)
    }

    #[test]
    fn a_direction_that_merges_two_points_is_refused() {
        let points = [0.0, 0.0, 1.0, 1.0, 1.0, -1.0];
        assert!(!holds(2, &points, &[1.0, 0.0]));
        assert!(!holds(2, &points, &[1.0, 1.0]));
        assert!(holds(2, &points, &[0.9, 0.3]));
        // Closer than projections can be computed: not proved, so refused.
        let close = [1e6, 1.0, 1e6, 1.0 + f64::EPSILON];
        assert!(lemma_2(2, &close, 0).unwrap_err().to_string().contains("too close for double precision"));
        assert!(lemma_3(1, &[0.0, 1.0], 1.0, 0).is_err());
    }

    #[test]
    fn few_tries_are_needed() {
        let points: Vec<f64> = (0..3000).map(|i| (f64::from(i) * 0.618).fract()).collect();
        let tries: usize = (0..20).map(|seed| lemma_2(3, &points, seed).unwrap().tries).sum();
        // The expectation is at most 1 / (1 - 2/pi), about 2.75.
        assert!(tries < 20 * 4, "{tries}");
    }
}
