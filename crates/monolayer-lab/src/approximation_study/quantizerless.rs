//! The open question of section 6: how far does one rank-1 layer get without the quantizer F1?
//!
//! Without F1 a token x leaves attention as `h = x + w g(y)`, d numbers, and the feed-forward block reads all of them. Of all
//! functions of h the mean of f given h is nearest to f in d_2, so what is left of f then is a floor for every feed-forward block
//! after the same attention. The floor is estimated in small cells of h, and the weights of attention are searched for with it.
//! Hidden units with random directions are then fitted to f by least squares.

mod readout;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rayon::prelude::*;

use monolayer::approximate::function::Function;
use monolayer::approximate::measured_distance::{Evaluate, Measured, distance};
use monolayer::model::forward;
use monolayer::paper::attention::{Attention, Mask};
use monolayer::paper::transformer::{Layer, Transformer};

use self::readout::{fitted_block, left_in_cells};

/// How far it gets.
#[derive(Debug, Clone)]
pub struct Quantizerless {
    /// The model: one attention layer and one feed-forward block.
    pub model: Transformer<f64>,
    /// The length of the query's vector.
    pub kappa: f64,
    /// The length of W_O.
    pub beta: f64,
    /// Hidden units.
    pub hidden: usize,
    /// About the least d_2 of any read-out of this h: the root of E Var(f | h), from samples that took no part in the search.
    pub floor: f64,
    /// d_2 of the model, measured on other points.
    pub measured: Measured,
    /// d_2 of the mean of f: no model at all.
    pub constant: Measured,
}

/// Sequences to search with, and to estimate the floor and fit the read-out with.
const FEW: usize = 8000;
const MANY: usize = 40_000;
/// Starts of the search, steps from the best, and how many are tried in a step.
const DRAWS: usize = 256;
const STEPS: usize = 24;
const TRIES: usize = 16;
/// Tokens in a cell.
const CELL: usize = 32;

/// Compiles f into one layer without quantizer, with at most `hidden` hidden units, and measures it with about `points`
/// sequences, the same as [`super::Row`] does.
pub fn without_quantizer(f: &dyn Function, hidden: usize, points: usize, seed: u64) -> Quantizerless {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (few, many) = (Samples::new(f, FEW, &mut rng), Samples::new(f, MANY, &mut rng));
    let weights = search(f.dim(), &few, &mut rng);
    let h = many.attended(&weights);
    let block = fitted_block(f.dim(), &h, &many.y, hidden, &mut rng);
    let units = block.b1.len();
    let layer = Layer { attention: Some(weights.attention()), feed_forward: Some(block) };
    let model = Transformer { d: f.dim(), pre_feed_forward: None, layers: vec![layer] };
    let (n, entries) = (f.length(), f.length() * f.dim());
    let measure = |g: &Evaluate| distance(&|x, y| f.values(x, y), g, entries, 2.0, points, 1);
    let run = |x: &[f64], y: &mut [f64]| {
        y.copy_from_slice(x);
        forward::transform(&model, &[0, n], y);
    };
    let means = many.means();
    let constant = |_: &[f64], y: &mut [f64]| y.chunks_exact_mut(means.len()).for_each(|y| y.copy_from_slice(&means));
    Quantizerless {
        kappa: length(&weights.query),
        beta: length(&weights.w),
        hidden: units,
        floor: (many.left(&h) * n as f64).sqrt(),
        measured: measure(&run),
        constant: measure(&constant),
        model,
    }
}

/// The weights with the least left of f: random ones, then steps from the best that become smaller.
fn search(d: usize, samples: &Samples, rng: &mut ChaCha8Rng) -> Weights {
    let best_of = |tried: Vec<Weights>| {
        let left = |weights: Weights| (samples.left(&samples.attended(&weights)), weights);
        let all: Vec<(f64, Weights)> = tried.into_par_iter().map(left).collect();
        all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("some weights")
    };
    let mut best = best_of((0..DRAWS).map(|_| Weights::draw(d, rng)).collect());
    for step in 0..STEPS {
        let size = 0.8_f64.powi(step as i32);
        let next = best_of((0..TRIES).map(|_| best.1.near(size, rng)).collect());
        best = if next.0 < best.0 { next } else { best };
    }
    best.1
}

fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Random sequences with the outputs of f, both row-major `[samples, n, d]`.
struct Samples {
    d: usize,
    offsets: Vec<usize>,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Samples {
    fn new(f: &dyn Function, count: usize, rng: &mut ChaCha8Rng) -> Self {
        let entries = f.dim() * f.length();
        let x: Vec<f64> = (0..count * entries).map(|_| rng.random_range(0.0..1.0)).collect();
        let mut y = vec![0.0; x.len()];
        x.chunks_exact(entries).zip(y.chunks_exact_mut(entries)).for_each(|(x, y)| f.values(x, y));
        Self { d: f.dim(), offsets: (0..=count).map(|i| i * f.length()).collect(), x, y }
    }

    /// All tokens after attention.
    fn attended(&self, weights: &Weights) -> Vec<f64> {
        let mut h = self.x.clone();
        forward::attend(&weights.attention(), self.d, &self.offsets, &mut h);
        h
    }

    /// E Var(f | h), summed over the coordinates of a token. Of each sequence one token counts, at one place after another: two
    /// tokens of a sequence may have nearly the same h and the same f, and a cell with both would seem to know f.
    fn left(&self, h: &[f64]) -> f64 {
        let (d, n) = (self.d, self.offsets[1]);
        let one = |of: &[f64]| -> Vec<f64> {
            let sequences = of.chunks_exact(n * d).enumerate();
            sequences.flat_map(|(i, x)| x[i % n * d..][..d].to_vec()).collect()
        };
        left_in_cells(d, &one(h), &one(&self.y), CELL)
    }

    /// The mean of each output coordinate.
    fn means(&self) -> Vec<f64> {
        let tokens = (self.y.len() / self.d) as f64;
        (0..self.d).map(|i| self.y.iter().skip(i).step_by(self.d).sum::<f64>() / tokens).collect()
    }
}

/// Weights of attention (20).
#[derive(Debug, Clone)]
struct Weights {
    /// Keys and values: v_1, of length 1.
    v: Vec<f64>,
    /// Queries: v_2.
    query: Vec<f64>,
    /// W_O.
    w: Vec<f64>,
}

impl Weights {
    fn draw(d: usize, rng: &mut ChaCha8Rng) -> Self {
        let mut vector = |low: f64, high: f64| {
            let x: Vec<f64> = (0..d).map(|_| rng.random_range(-1.0..1.0)).collect();
            let size = low * (high / low).powf(rng.random_range(0.0..1.0)) / length(&x).max(1e-3);
            x.into_iter().map(|x| x * size).collect::<Vec<f64>>()
        };
        Self { v: vector(1.0, 1.0), query: vector(0.01, 200.0), w: vector(0.05, 50.0) }
    }

    /// Other lengths and directions, by about `size` of their own.
    fn near(&self, size: f64, rng: &mut ChaCha8Rng) -> Self {
        let mut moved = |x: &[f64]| {
            let (factor, step) = ((size * rng.random_range(-1.0..1.0_f64)).exp(), 0.5 * size * length(x));
            x.iter().map(|x| factor * x + step * rng.random_range(-1.0..1.0)).collect::<Vec<f64>>()
        };
        let (query, w, v) = (moved(&self.query), moved(&self.w), moved(&self.v));
        let norm = length(&v).max(1e-3);
        Self { v: v.into_iter().map(|x| x / norm).collect(), query, w }
    }

    fn attention(&self) -> Attention<f64> {
        Attention::rank_one(Mask::None, &self.v, &self.query, &self.w)
    }
}
