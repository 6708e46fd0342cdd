//! The open question of section 6: how far does one rank-1 layer get without the quantizer F1?
//!
//! Without F1 a token x leaves attention as `h = x + w g(y)`. The feed-forward block reads it as Corollary 1 does, through one
//! projection s = a.h: s = a.x + beta g, beta = a.w. Of all functions of s the mean of f given s is nearest to f in d_2, so
//! what is left of f then is a floor for every read-out of that s; for d = 1 it is a floor for every feed-forward block.
//! The mean is estimated in bins of s and compiled into hinges, and the weights of attention are searched for.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use monolayer::approximate::distance::{Evaluate, Measured, distance};
use monolayer::approximate::function::Function;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::model::forward;
use monolayer::paper::attention::{Attention, Mask};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::transformer::{Layer, Transformer};

/// How far it gets.
#[derive(Debug, Clone)]
pub struct Quantizerless {
    /// The model: one attention layer and one feed-forward block.
    pub model: Transformer<f64>,
    /// What queries are of keys.
    pub kappa: f64,
    /// How much of the context the read-out sees beside a.x.
    pub beta: f64,
    /// Hidden units.
    pub hidden: usize,
    /// About the least d_2 of any read-out of this s: the root of E Var(f | s), from the samples in narrow bins.
    pub floor: f64,
    /// d_2 of the model, measured on other points.
    pub measured: Measured,
    /// d_2 of the mean of f: no model at all.
    pub constant: Measured,
}

/// Sequences to estimate with.
const SAMPLES: usize = 20_000;
/// Starts of the search, and steps from the best.
const DRAWS: usize = 192;
const STEPS: usize = 96;
/// Bins for the floor, of a few dozen samples each.
const NARROW: usize = 1000;
/// Takes the skip out: `relu(x + SKIP) - SKIP` is x.
const SKIP: f64 = 1024.0;

/// Compiles f into one layer without quantizer, with at most `hidden` hidden units, and measures it with about `points`
/// sequences, the same as [`super::Row`] does.
pub fn without_quantizer(f: &dyn Function, hidden: usize, points: usize, seed: u64) -> Quantizerless {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let samples = Samples::new(f, &mut rng);
    let bins = hidden.saturating_sub(f.dim()).max(2);
    let mut best = best_of((0..DRAWS).map(|_| Weights::draw(f.dim(), &mut rng)).collect(), &samples, bins);
    for step in 0..STEPS / 8 {
        let size = 0.5 * 0.75_f64.powi(step as i32);
        let near = (0..8).map(|_| best.weights.near(size, &mut rng)).collect();
        let next = best_of(near, &samples, bins);
        best = if next.left < best.left { next } else { best };
    }
    let model = best.model();
    let (n, entries) = (f.length(), f.length() * f.dim());
    let measure = |g: &Evaluate| distance(&|x, y| f.values(x, y), g, entries, 2.0, points, 1);
    let run = |x: &[f64], y: &mut [f64]| {
        y.copy_from_slice(x);
        forward::transform(&model, &[0, n], y);
    };
    let means = samples.means();
    let constant = |_: &[f64], y: &mut [f64]| y.chunks_exact_mut(means.len()).for_each(|y| y.copy_from_slice(&means));
    Quantizerless {
        kappa: best.weights.kappa,
        beta: best.weights.beta,
        hidden: model.layers[0].feed_forward.as_ref().map_or(0, |block| block.b1.len()),
        floor: (Fit::new(best.weights.clone(), &samples, NARROW).left * n as f64).sqrt(),
        measured: measure(&run),
        constant: measure(&constant),
        model,
    }
}

/// The best of some weights.
fn best_of(weights: Vec<Weights>, samples: &Samples, bins: usize) -> Fit {
    let fits: Vec<Fit> = weights.into_par_iter().map(|weights| Fit::new(weights, samples, bins)).collect();
    fits.into_iter().min_by(|a, b| a.left.total_cmp(&b.left)).expect("some weights")
}

/// Random sequences with the outputs of f, both row-major `[samples, n, d]`.
struct Samples {
    d: usize,
    offsets: Vec<usize>,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Samples {
    fn new(f: &dyn Function, rng: &mut ChaCha8Rng) -> Self {
        let entries = f.dim() * f.length();
        let x: Vec<f64> = (0..SAMPLES * entries).map(|_| rng.random_range(0.0..1.0)).collect();
        let mut y = vec![0.0; x.len()];
        x.chunks_exact(entries).zip(y.chunks_exact_mut(entries)).for_each(|(x, y)| f.values(x, y));
        Self { d: f.dim(), offsets: (0..=SAMPLES).map(|i| i * f.length()).collect(), x, y }
    }

    /// The mean of each output coordinate.
    fn means(&self) -> Vec<f64> {
        let tokens = (self.y.len() / self.d) as f64;
        (0..self.d).map(|i| self.y.iter().skip(i).step_by(self.d).sum::<f64>() / tokens).collect()
    }
}

/// Weights of attention and the projection that reads it.
#[derive(Debug, Clone)]
struct Weights {
    /// Keys and values: v_1.
    v: Vec<f64>,
    /// The projection: a.
    a: Vec<f64>,
    /// Queries are kappa v_1.
    kappa: f64,
    /// a.w.
    beta: f64,
}

impl Weights {
    fn draw(d: usize, rng: &mut ChaCha8Rng) -> Self {
        let mut unit = |fixed: bool| {
            let x: Vec<f64> = (0..d).map(|_| if fixed { 1.0 } else { rng.random_range(-1.0..1.0) }).collect();
            let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-3);
            x.iter().map(|x| x / norm).collect::<Vec<f64>>()
        };
        let (v, a) = (unit(d == 1), unit(d == 1));
        let mut sized = |low: f64, high: f64| {
            let size = low * (high / low).powf(rng.random_range(0.0..1.0));
            if rng.random_range(0.0..1.0) < 0.5 { -size } else { size }
        };
        Self { v, a, kappa: sized(0.1, 200.0), beta: sized(0.05, 50.0) }
    }

    fn near(&self, size: f64, rng: &mut ChaCha8Rng) -> Self {
        let mut moved = |x: f64| x * (size * rng.random_range(-1.0..1.0_f64)).exp();
        let (kappa, beta) = (moved(self.kappa), moved(self.beta));
        let mut turned = |x: &[f64]| x.iter().map(|x| x + 0.3 * size * rng.random_range(-1.0..1.0)).collect();
        let (v, a) =
            if self.v.len() == 1 { (self.v.clone(), self.a.clone()) } else { (turned(&self.v), turned(&self.a)) };
        Self { v, a, kappa, beta }
    }

    /// Eq. 20, with W_O along a.
    fn attention(&self) -> Attention<f64> {
        let norm: f64 = self.a.iter().map(|a| a * a).sum();
        let query: Vec<f64> = self.v.iter().map(|v| self.kappa * v).collect();
        let w: Vec<f64> = self.a.iter().map(|a| self.beta * a / norm).collect();
        Attention::rank_one(Mask::None, &self.v, &query, &w)
    }
}

/// The mean of f given s, for some weights.
struct Fit {
    weights: Weights,
    /// Middles of bins, increasing.
    s: Vec<f64>,
    /// Means there, row-major `[bins, d]`.
    y: Vec<f64>,
    /// E Var(f | s): what is left of f, summed over the coordinates of a token.
    left: f64,
}

impl Fit {
    fn new(weights: Weights, samples: &Samples, bins: usize) -> Self {
        let d = samples.d;
        let mut h = samples.x.clone();
        forward::attend(&weights.attention(), d, &samples.offsets, &mut h);
        let project = |h: &[f64]| h.iter().zip(&weights.a).map(|(h, a)| h * a).sum::<f64>();
        let mut pairs: Vec<(f64, &[f64])> = h.chunks_exact(d).map(project).zip(samples.y.chunks_exact(d)).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut s, mut y, mut left) = (Vec::new(), Vec::new(), 0.0);
        for bin in pairs.chunks(pairs.len().div_ceil(bins)) {
            let count = bin.len() as f64;
            let middle = bin.iter().map(|pair| pair.0).sum::<f64>() / count;
            let means: Vec<f64> = (0..d).map(|i| bin.iter().map(|pair| pair.1[i]).sum::<f64>() / count).collect();
            // Without the bias of a mean taken from the same samples.
            let squares =
                bin.iter().flat_map(|pair| pair.1.iter().zip(&means)).map(|(y, mean)| (y - mean) * (y - mean));
            left += squares.sum::<f64>() * count / (count - 1.0).max(1.0);
            if s.last().is_none_or(|&last| middle > last) {
                s.push(middle);
                y.extend(means);
            }
        }
        let tokens = pairs.len() as f64;
        Self { weights, s, y, left: left / tokens }
    }

    /// Attention, and hinges through the means, flat beyond the ends.
    fn model(&self) -> Transformer<f64> {
        let (d, a) = (self.weights.a.len(), &self.weights.a);
        let slope = |j: usize, i: usize| (self.y[(j + 1) * d + i] - self.y[j * d + i]) / (self.s[j + 1] - self.s[j]);
        let last = self.s.len() - 1;
        let bend = |j: usize, i: usize| {
            let (before, after) = (if j > 0 { slope(j - 1, i) } else { 0.0 }, if j < last { slope(j, i) } else { 0.0 });
            after - before
        };
        let q = d + self.s.len();
        let block = FeedForward {
            w1: Matrix::from_fn(q, d, |j, t| if j < d { f64::from(u8::from(j == t)) } else { a[t] }),
            b1: (0..q).map(|j| if j < d { SKIP } else { -self.s[j - d] }).collect(),
            w2: Matrix::from_fn(d, q, |t, j| if j < d { -f64::from(u8::from(j == t)) } else { bend(j - d, t) }),
            b2: (0..d).map(|t| SKIP + self.y[t]).collect(),
        };
        let layer = Layer { attention: Some(self.weights.attention()), feed_forward: Some(block) };
        Transformer { d, pre_feed_forward: None, layers: vec![layer] }
    }
}
