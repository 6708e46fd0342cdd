//! How far two functions are from each other, measured: d_p of eq. 1 by quasi-Monte-Carlo.
//!
//! A rank-1 lattice of Korobov's form, shifted at random: each shift gives an unbiased estimate of the integral, and their
//! spread says how good the mean of them is.

use crate::arithmetic::is_prime;
use crate::arithmetic::parallel;
use rand::RngExt as _;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// Shifts of the lattice.
const SHIFTS: usize = 16;

/// Generators of lattices to choose from.
const GENERATORS: u64 = 24;

/// A measured distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The estimate of d_p.
    pub distance: f64,
    /// Its standard error.
    pub error: f64,
    /// Sequences evaluated.
    pub points: usize,
}

/// A function on sequences, row-major, into outputs of all tokens.
pub type Evaluate<'a> = dyn Fn(&[f64], &mut [f64]) + Sync + 'a;

/// d_p between f and g over the cube `[0, 1]^entries`, from about `points` points in 16 shifted lattices.
pub fn distance(f: &Evaluate, g: &Evaluate, entries: usize, p: f64, points: usize, seed: u64) -> Measured {
    let lattice = Lattice::new((points / SHIFTS).clamp(3, 1 << 30) as u64, entries);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let shifts: Vec<Vec<f64>> = (0..SHIFTS).map(|_| (0..entries).map(|_| rng.random::<f64>()).collect()).collect();
    let integrals: Vec<f64> = parallel::map_slice(&shifts, |shift| lattice.integral(f, g, shift, p));
    let mean = integrals.iter().sum::<f64>() / SHIFTS as f64;
    let variance = integrals.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (SHIFTS - 1) as f64;
    let distance = mean.powf(1.0 / p);
    // The delta method: the derivative of x^(1/p) is x^(1/p) / (p x).
    let error = if mean > 0.0 { (variance / SHIFTS as f64).sqrt() * distance / (p * mean) } else { 0.0 };
    Measured { distance, error, points: SHIFTS * lattice.size as usize }
}

/// The points `(k / size) (1, a, a^2, ...)` modulo 1.
struct Lattice {
    size: u64,
    generator: Vec<u64>,
}

impl Lattice {
    /// The best of some lattices of about `size` points.
    fn new(size: u64, entries: usize) -> Self {
        // Bertrand: there is a prime below twice any number.
        let size = (size..2 * size).find(|n| is_prime(*n)).expect("at least 2");
        // Multipliers spread over the residues by the golden ratio.
        let multiplier = |i: u64| 1 + (((i + 1) as f64 * 0.618_033_988_749_894_9).fract() * (size - 2) as f64) as u64;
        let lattices = (0..GENERATORS).map(|i| Self::korobov(size, multiplier(i), entries));
        lattices.min_by(|a, b| a.worst_case().total_cmp(&b.worst_case())).expect("at least one")
    }

    fn korobov(size: u64, multiplier: u64, entries: usize) -> Self {
        let next = |a: &u64| Some(a * multiplier % size);
        Self { size, generator: std::iter::successors(Some(1), next).take(entries).collect() }
    }

    /// P_2, the squared error for the worst function of bounded mixed derivatives: the mean of the products of
    /// `1 + 2 pi^2 B_2(x_i)`, with B_2 the second Bernoulli polynomial.
    fn worst_case(&self) -> f64 {
        let factor = |x: f64| 1.0 + 2.0 * std::f64::consts::PI.powi(2) * (x * x - x + 1.0 / 6.0);
        let product = |k: u64| self.generator.iter().map(|a| factor(self.coordinate(k, *a))).product::<f64>();
        (0..self.size).map(product).sum::<f64>() / self.size as f64
    }

    fn coordinate(&self, k: u64, a: u64) -> f64 {
        (k * a % self.size) as f64 / self.size as f64
    }

    /// The mean of |f - g|^p, summed over the entries, over the shifted points.
    fn integral(&self, f: &Evaluate, g: &Evaluate, shift: &[f64], p: f64) -> f64 {
        let mut point = vec![0.0; shift.len()];
        let (mut first, mut second) = (point.clone(), point.clone());
        let mut sum = 0.0;
        for k in 0..self.size {
            for ((x, a), shift) in point.iter_mut().zip(&self.generator).zip(shift) {
                *x = (self.coordinate(k, *a) + shift).fract();
            }
            f(&point, &mut first);
            g(&point, &mut second);
            sum += first.iter().zip(&second).map(|(a, b)| (a - b).abs().powf(p)).sum::<f64>();
        }
        sum / self.size as f64
    }
}
