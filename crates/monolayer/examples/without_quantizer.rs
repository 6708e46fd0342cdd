//! The open question of section 6: how far does one rank-1 layer get without the quantizer F1?
//!
//!     cargo run --release -p monolayer --example without_quantizer
//!
//! Without F1 a token of one coordinate leaves attention as s = x + beta g(kappa x), and the feed-forward block is a function
//! of s. The best such function in the mean of squares is the mean of f given s: it is estimated in bins of s and read out by
//! hinges. kappa and beta are searched for; what is measured is the distance of the compiled model from f, on other points,
//! beside the norm of f less its mean (no model at all) and a model with the quantizer and as many hidden units.

use monolayer::approximate::Approximator;
use monolayer::attention::{Attention, Mask};
use monolayer::distance::distance;
use monolayer::expression::{Expression, Program};
use monolayer::feed_forward::FeedForward;
use monolayer::forward;
use monolayer::function::Function as _;
use monolayer::matrix::Matrix;
use monolayer::transformer::{Layer, Transformer};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

const FUNCTIONS: [&str; 8] = [
    "x1 + mean(x1)",
    "sin(2*pi*x1)*mean(x1)",
    "2*(x1 - mean(x1))",
    "max(x1) - min(x1)",
    "exp(-10*((x1 - 0.5)^2 + var(x1)))",
    "sin(2*pi*x1 + pi*mean(x1))",
    "tanh(6*(x1 - mean(x1)))",
    "(1 - cos(pi*sum(step(x1 - 0.5))))/2",
];
/// Sequences to estimate with, bins of s, sequences to measure with.
const SAMPLES: usize = 20_000;
const BINS: usize = 200;
const POINTS: usize = 16_384;

fn main() -> monolayer::Result<()> {
    println!(
        "d_2 of f from: its mean, a model without quantizer (kappa, beta), one with a quantizer of {} hidden units or fewer",
        2 * BINS
    );
    for text in FUNCTIONS {
        for n in [2, 3] {
            let f = Expression::parse(text, 1)?.at_length(n)?;
            let sequences = samples(&f);
            let kappas = [-32.0, -8.0, -2.0, 0.0, 0.5, 2.0, 8.0, 32.0, 128.0];
            let betas = [-16.0, -4.0, -2.0, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0];
            let all = kappas.iter().flat_map(|&kappa| betas.iter().map(move |&beta| (kappa, beta)));
            let fits = all.map(|(kappa, beta)| Fit::new(&sequences, n, kappa, beta));
            let best = fits.min_by(|a, b| a.error.total_cmp(&b.error)).expect("some were tried");
            let model = best.model();
            let without = measure(&f, &|x, y| {
                y.copy_from_slice(x);
                forward::transform(&model, &[0, n], y);
            });
            let mean = sequences.iter().flat_map(|s| &s.1).sum::<f64>() / (n * SAMPLES) as f64;
            let nothing = measure(&f, &|_, y| y.fill(mean));
            let approximator = Approximator { effort: 4, ..Approximator::default() };
            let grid = (1..=BINS as u64)
                .take_while(|&grid| approximator.ids(&f, grid).is_some_and(|ids| ids <= BINS as u64))
                .last();
            let with = approximator.compile(&f, grid.unwrap_or(1) as usize, &|_| ())?;
            let with = measure(&f, &|x, y| with.evaluate(x, y));
            println!(
                "{text:<40} n = {n}  mean {nothing:.4}  without {without:.4} ({}, {})  with {with:.4}",
                best.kappa, best.beta
            );
        }
    }
    Ok(())
}

fn measure(f: &Program, g: &monolayer::distance::Evaluate) -> f64 {
    distance(&|x, y| f.values(x, y), g, f.length(), 2.0, POINTS, 5).distance
}

/// Random sequences with the outputs of f.
fn samples(f: &Program) -> Vec<(Vec<f64>, Vec<f64>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let one = |_| {
        let x: Vec<f64> = (0..f.length()).map(|_| rng.random_range(0.0..1.0)).collect();
        let mut y = vec![0.0; f.length()];
        f.values(&x, &mut y);
        (x, y)
    };
    (0..SAMPLES).map(one).collect()
}

/// The mean of f given s, for one choice of attention.
struct Fit {
    kappa: f64,
    beta: f64,
    /// Middles of bins and means there.
    curve: Vec<(f64, f64)>,
    /// What is left of f, in the mean of squares.
    error: f64,
}

impl Fit {
    fn new(sequences: &[(Vec<f64>, Vec<f64>)], n: usize, kappa: f64, beta: f64) -> Self {
        let attention = attention(kappa, beta);
        let mut pairs: Vec<(f64, f64)> = Vec::with_capacity(n * sequences.len());
        for (x, y) in sequences {
            let mut s = x.clone();
            forward::attend(&attention, 1, &[0, n], &mut s);
            pairs.extend(s.into_iter().zip(y.iter().copied()));
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut curve, mut error) = (Vec::new(), 0.0);
        for bin in pairs.chunks(pairs.len().div_ceil(BINS)) {
            let mean = |of: &dyn Fn(&(f64, f64)) -> f64| bin.iter().map(of).sum::<f64>() / bin.len() as f64;
            let (s, y) = (mean(&|p| p.0), mean(&|p| p.1));
            error += bin.iter().map(|p| (p.1 - y) * (p.1 - y)).sum::<f64>();
            if curve.last().is_none_or(|&(last, _)| s > last) {
                curve.push((s, y));
            }
        }
        Self { kappa, beta, curve, error }
    }

    /// Attention, and hinges through the curve, flat beyond its ends.
    fn model(&self) -> Transformer<f64> {
        const SKIP: f64 = 1024.0;
        let slopes: Vec<f64> = self.curve.windows(2).map(|w| (w[1].1 - w[0].1) / (w[1].0 - w[0].0)).collect();
        let at = |j: usize| if j == 0 { 0.0 } else { slopes.get(j - 1).copied().unwrap_or(0.0) };
        let bends: Vec<f64> = (0..self.curve.len()).map(|j| slopes.get(j).copied().unwrap_or(0.0) - at(j)).collect();
        let q = 1 + bends.len();
        let block = FeedForward {
            w1: Matrix::new(q, 1, vec![1.0; q]),
            b1: std::iter::once(SKIP).chain(self.curve.iter().map(|p| -p.0)).collect(),
            w2: Matrix::new(1, q, std::iter::once(-1.0).chain(bends).collect()),
            b2: vec![SKIP + self.curve[0].1],
        };
        let layer = Layer { attention: Some(attention(self.kappa, self.beta)), feed_forward: Some(block) };
        Transformer { d: 1, pre_feed_forward: None, layers: vec![layer] }
    }
}

fn attention(kappa: f64, beta: f64) -> Attention<f64> {
    Attention::rank_one(Mask::None, &[1.0], &[kappa], &[beta])
}
