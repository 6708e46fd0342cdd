//! Grids adapted to a function: narrow cells where it changes, edges where it jumps, few parts where it does not care.
//!
//! By the Efron-Stein inequality the mean of (f - its mean)^2 over a box is at most the sum over the entries of the mean
//! variance along that entry alone. So each coordinate has a cost of its own, additive over the parts it is cut into, and the
//! best parts are found by dynamic programming. The costs are sampled: they choose a grid, and prove nothing about it.

use rand::RngExt as _;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Grid, rounded};
use crate::function::Function;

/// Edges are chosen among this many parts: a number with many divisors.
const BINS: usize = 240;

/// Lines along an entry that are sampled.
const LINES: usize = 48;

/// Parts that edges are chosen for one by one; more parts are equal ones inside of these.
const CHOSEN: usize = 80;

/// Sizes ahead that are looked at.
const AHEAD: usize = 4;

/// What every way of cutting the coordinates costs.
#[derive(Debug, Clone)]
pub struct Adapted {
    coordinates: Vec<Costs>,
}

/// Costs of one coordinate.
#[derive(Debug, Clone)]
struct Costs {
    /// For each number of parts from 1 on, the cost and the edges, as bins.
    best: Vec<(f64, Vec<usize>)>,
}

impl Adapted {
    /// Samples a function.
    pub fn new(f: &dyn Function, seed: u64) -> Self {
        let coordinates = (0..f.dim()).map(|coordinate| Costs::new(&Table::sample(f, coordinate, seed))).collect();
        Self { coordinates }
    }

    /// How to cut the coordinates into at most `token_cells` cells.
    pub fn parts(&self, token_cells: u64) -> Parts {
        let mut sizes = vec![0; self.coordinates.len()];
        // A step up where it gains most for what it multiplies the cells with; a few ahead, since samples are noisy.
        loop {
            let count = |sizes: &[usize]| sizes.iter().map(|size| parts(*size)).fold(1, u64::saturating_mul);
            let gain = |&(k, step): &(usize, usize)| {
                let (now, next) = (sizes[k], sizes[k] + step);
                let less = self.coordinates[k].cost(now) - self.coordinates[k].cost(next);
                less / (parts(next) as f64 / parts(now) as f64).ln()
            };
            let fits = |&(k, step): &(usize, usize)| {
                let mut sizes = sizes.clone();
                sizes[k] += step;
                count(&sizes) <= token_cells
            };
            let steps = (0..sizes.len()).flat_map(|k| (1..=AHEAD).map(move |step| (k, step)));
            let candidates = steps.filter(|step| fits(step) && gain(step) > 0.0);
            match candidates.max_by(|a, b| gain(a).total_cmp(&gain(b)).then(b.cmp(a))) {
                Some((k, step)) => sizes[k] += step,
                None => break,
            }
        }
        let cost = self.coordinates.iter().zip(&sizes).map(|(costs, size)| costs.cost(*size)).sum();
        Parts { sizes, cost }
    }

    /// The grid that cuts the coordinates so.
    pub fn grid(&self, parts: &Parts) -> Grid {
        Grid { edges: self.coordinates.iter().zip(&parts.sizes).map(|(costs, size)| costs.edges(*size)).collect() }
    }
}

/// How to cut each coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// For each coordinate the number of a size: parts from 1 to [`CHOSEN`], and then in steps of a few percent.
    sizes: Vec<usize>,
    /// About the integral of |f - level|^2 over the cube, in all entries.
    pub cost: f64,
}

impl Parts {
    /// The number of parts of each coordinate.
    pub fn counts(&self) -> Vec<u64> {
        self.sizes.iter().map(|size| parts(*size)).collect()
    }
}

/// Chosen parts, and equal ones inside each: 1 to 80 chosen ones, then 41 to 80 with 2 inside each, with 4, and so on.
fn split(size: usize) -> (usize, u64) {
    const HALF: usize = CHOSEN / 2;
    if size < CHOSEN { (size + 1, 1) } else { (HALF + 1 + size % HALF, 2 << ((size - CHOSEN) / HALF).min(40)) }
}

/// The number of parts of a size.
fn parts(size: usize) -> u64 {
    let (chosen, inside) = split(size);
    chosen as u64 * inside
}

impl Costs {
    fn new(table: &Table) -> Self {
        let all = |end: usize| table.cost(0, end);
        let mut costs: Vec<f64> = (0..=BINS).map(|end| if end == 0 { 0.0 } else { all(end) }).collect();
        let mut starts: Vec<Vec<usize>> = vec![vec![0; BINS + 1]];
        let mut best = vec![(costs[BINS], vec![0, BINS])];
        for parts in 2..=CHOSEN {
            // The last of `parts` parts, up to `end`, starts where all before it and itself cost least.
            let last = |end: usize| {
                let start = |start: usize| (costs[start] + table.cost(start, end), start);
                (parts - 1..end).map(start).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
            };
            let (next, start): (Vec<f64>, Vec<usize>) = (0..=BINS).map(last).unzip();
            costs = next;
            starts.push(start);
            let mut edges = vec![BINS];
            for start in starts.iter().rev() {
                edges.push(start[edges[edges.len() - 1]]);
            }
            edges.reverse();
            best.push((costs[BINS], edges));
        }
        Self { best }
    }

    fn cost(&self, size: usize) -> f64 {
        let (chosen, inside) = split(size);
        self.best[chosen - 1].0 / (inside as f64 * inside as f64)
    }

    fn edges(&self, size: usize) -> Vec<f64> {
        let (chosen, inside) = split(size);
        let bins = &self.best[chosen - 1].1;
        let part = |pair: &[usize]| {
            let (start, width) = (pair[0] as f64 / BINS as f64, (pair[1] - pair[0]) as f64 / BINS as f64);
            (0..inside).map(move |i| rounded(start + width * i as f64 / inside as f64)).collect::<Vec<_>>()
        };
        bins.windows(2).flat_map(part).chain([1.0]).collect()
    }
}

/// For all pairs of bins, the mean variance along one coordinate between them, times their distance.
struct Table {
    costs: Vec<f64>,
}

impl Table {
    fn sample(f: &dyn Function, coordinate: usize, seed: u64) -> Self {
        let (d, n) = (f.dim(), f.length());
        // Up to symmetry all tokens are alike.
        let tokens = if f.is_equivariant() { 1 } else { n };
        let weight = n as f64 / tokens as f64 / (LINES * BINS) as f64;
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ coordinate as u64);
        let mut sums: Vec<[f64; BINS + 1]> = Vec::new();
        let mut squares = [0.0; BINS + 1];
        for token in (0..tokens).flat_map(|token| [token; LINES]) {
            let mut sequence: Vec<f64> = (0..d * n).map(|_| rng.random::<f64>()).collect();
            let mut outputs = vec![0.0; d * n];
            let first = sums.len();
            sums.resize(first + d * n, [0.0; BINS + 1]);
            for bin in 0..BINS {
                sequence[token * d + coordinate] = (bin as f64 + rng.random::<f64>()) / BINS as f64;
                f.values(&sequence, &mut outputs);
                for (sum, output) in sums[first..].iter_mut().zip(&outputs) {
                    sum[bin + 1] = sum[bin] + output;
                    squares[bin + 1] += output * output;
                }
            }
        }
        // A function that does not move along a line costs nothing on it.
        for bin in 0..BINS {
            squares[bin + 1] += squares[bin];
        }
        let cost = |pair: usize| {
            let (start, end) = (pair / (BINS + 1), pair % (BINS + 1));
            if end <= start {
                return 0.0;
            }
            let bins = (end - start) as f64;
            let means = sums.iter().map(|sum| (sum[end] - sum[start]).powi(2)).sum::<f64>() / bins;
            weight * (squares[end] - squares[start] - means).max(0.0)
        };
        Self { costs: (0..(BINS + 1) * (BINS + 1)).into_par_iter().map(cost).collect() }
    }

    fn cost(&self, start: usize, end: usize) -> f64 {
        self.costs[start * (BINS + 1) + end]
    }
}
