//! Grids adapted to a function: narrow cells where it changes, edges where it jumps, few parts where it hardly changes.
//!
//! By the Efron-Stein inequality the mean of (f - its mean)^2 over a box is at most the sum over the entries of the mean
//! variance along that entry alone. So each coordinate has a cost of its own, additive over the parts it is cut into, and the
//! best parts are found by dynamic programming. The costs are sampled: they choose a grid, and prove nothing about it.

use rand::RngExt as _;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::{Grid, rounded};
use crate::approximate::function::Function;
use crate::arithmetic::parallel;
use crate::arithmetic::sorting;

/// Edges are chosen among this many parts: a number with many divisors.
const BINS: usize = 240;

/// Jumps of a coordinate that edges are put at, at most.
const JUMPS: usize = 8;

/// Lines along an entry that are sampled.
const LINES: usize = 128;

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
    /// For each number of parts from 1 on, the cost and the edges.
    best: Vec<(f64, Vec<f64>)>,
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
            let gain = |&(k, step): &(usize, usize)| {
                let (now, next) = (sizes[k], sizes[k] + step);
                let less = self.coordinates[k].cost(now) - self.coordinates[k].cost(next);
                less / (parts(next) as f64 / parts(now) as f64).ln()
            };
            let fits = |&(k, step): &(usize, usize)| {
                let mut sizes = sizes.clone();
                sizes[k] += step;
                Parts { sizes, cost: 0.0 }.token_cells() <= token_cells
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

    /// Cells of a token.
    pub fn token_cells(&self) -> u64 {
        self.sizes.iter().map(|size| parts(*size)).fold(1, u64::saturating_mul)
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
        let bins = table.bins.len() - 1;
        let mut costs: Vec<f64> = (0..=bins).map(|end| table.cost(0, end)).collect();
        let mut starts: Vec<Vec<usize>> = vec![vec![0; bins + 1]];
        let mut best = vec![(costs[bins], vec![0.0, 1.0])];
        for parts in 2..=CHOSEN {
            // The last of `parts` parts, up to `end`, starts where all before it and itself cost least.
            let last = |end: usize| {
                let start = |start: usize| (costs[start] + table.cost(start, end), start);
                (parts - 1..end).map(start).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
            };
            let (next, start): (Vec<f64>, Vec<usize>) = (0..=bins).map(last).unzip();
            costs = next;
            starts.push(start);
            let mut edges = vec![bins];
            for start in starts.iter().rev() {
                edges.push(start[edges[edges.len() - 1]]);
            }
            best.push((costs[bins], edges.iter().rev().map(|edge| table.bins[*edge]).collect()));
        }
        Self { best }
    }

    fn cost(&self, size: usize) -> f64 {
        let (chosen, inside) = split(size);
        self.best[chosen - 1].0 / (inside as f64 * inside as f64)
    }

    fn edges(&self, size: usize) -> Vec<f64> {
        let (chosen, inside) = split(size);
        let part = |pair: &[f64]| {
            let (start, width) = (pair[0], pair[1] - pair[0]);
            (0..inside).map(move |i| rounded(start + width * i as f64 / inside as f64)).collect::<Vec<_>>()
        };
        self.best[chosen - 1].1.windows(2).flat_map(part).chain([1.0]).collect()
    }
}

/// For all pairs of bins, the mean variance along one coordinate between them, times their distance.
struct Table {
    /// The edges of the bins.
    bins: Vec<f64>,
    costs: Vec<f64>,
}

/// Lines along one coordinate of one token, the other entries random.
struct SampledLine<'a> {
    f: &'a dyn Function,
    sequence: Vec<f64>,
    outputs: Vec<f64>,
    entry: usize,
}

impl SampledLine<'_> {
    /// The outputs of all tokens with the entry at `x`.
    fn at(&mut self, x: f64) -> &[f64] {
        self.sequence[self.entry] = x;
        self.f.values(&self.sequence, &mut self.outputs);
        &self.outputs
    }
}

/// Random lines along a coordinate, of each token or, up to symmetry, of the first one.
fn lines(f: &dyn Function, coordinate: usize, seed: u64) -> Vec<SampledLine<'_>> {
    let entries = f.dim() * f.length();
    let tokens = if f.is_equivariant() { 1 } else { f.length() };
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ coordinate as u64);
    let mut line = |token: usize| SampledLine {
        f,
        sequence: (0..entries).map(|_| rng.random::<f64>()).collect(),
        outputs: vec![0.0; entries],
        entry: token * f.dim() + coordinate,
    };
    (0..tokens).flat_map(|token| [token; LINES]).map(&mut line).collect()
}

/// Where many lines jump: edges that the function asks for.
fn jumps(lines: &mut [SampledLine]) -> Vec<f64> {
    let mut found: Vec<f64> = lines.iter_mut().flat_map(jumps_of).map(rounded).collect();
    found.sort_unstable_by(f64::total_cmp);
    let near = |a: &f64, b: &f64| b - a < 1e-8;
    let mut common: Vec<&[f64]> = found.chunk_by(near).filter(|same| 8 * same.len() >= lines.len()).collect();
    sorting::sort_by_key(&mut common, |same| std::cmp::Reverse(same.len()));
    common.iter().take(JUMPS).map(|same| same[same.len() / 2]).filter(|x| *x > 0.0 && *x < 1.0).collect()
}

/// Where one line jumps: a difference between neighboring bins that stays when they come together.
fn jumps_of(line: &mut SampledLine) -> Vec<f64> {
    let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let at: Vec<Vec<f64>> = (0..=BINS).map(|bin| line.at(bin as f64 / BINS as f64).to_vec()).collect();
    let mut changes: Vec<(f64, usize)> = (0..BINS).map(|bin| (apart(&at[bin], &at[bin + 1]), bin)).collect();
    changes.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let jump = |&(change, bin): &(f64, usize)| {
        let (mut low, mut high) = (bin as f64 / BINS as f64, (bin + 1) as f64 / BINS as f64);
        let below = &at[bin];
        for _ in 0..30 {
            let middle = f64::midpoint(low, high);
            if 2.0 * apart(below, line.at(middle)) > change { high = middle } else { low = middle }
        }
        let (low_outputs, high_outputs) = (line.at(low).to_vec(), line.at(high).to_vec());
        (change > 1e-6 && 2.0 * apart(&low_outputs, &high_outputs) > change).then_some(high)
    };
    changes.iter().take(JUMPS).filter_map(jump).collect()
}

impl Table {
    fn sample(f: &dyn Function, coordinate: usize, seed: u64) -> Self {
        let mut lines = lines(f, coordinate, seed);
        let mut bins: Vec<f64> =
            (0..=BINS).map(|bin| rounded(bin as f64 / BINS as f64)).chain(jumps(&mut lines)).collect();
        bins.sort_unstable_by(f64::total_cmp);
        bins.dedup_by(|a, b| *a - *b < 1e-6);
        let last = bins.len() - 1;
        bins[last] = 1.0;
        // Sums from the first bin on, of outputs and of their squares, each bin by its width.
        let mut rng = ChaCha8Rng::seed_from_u64(!seed ^ coordinate as u64);
        let mut squares = vec![0.0; bins.len()];
        let mut sums: Vec<Vec<f64>> = Vec::new();
        for line in &mut lines {
            let first = sums.len();
            sums.resize(first + line.outputs.len(), vec![0.0; bins.len()]);
            for (bin, pair) in bins.windows(2).enumerate() {
                let width = pair[1] - pair[0];
                let outputs = line.at(pair[0] + width * rng.random::<f64>());
                for (sum, output) in sums[first..].iter_mut().zip(outputs) {
                    sum[bin + 1] = sum[bin] + width * output;
                    squares[bin + 1] += width * output * output;
                }
            }
        }
        for bin in 1..bins.len() {
            squares[bin] += squares[bin - 1];
        }
        let places = if f.is_equivariant() { f.length() } else { 1 };
        let weight = places as f64 / LINES as f64;
        let cost = |pair: usize| {
            let (start, end) = (pair / bins.len(), pair % bins.len());
            if end <= start {
                return 0.0;
            }
            let means = sums.iter().map(|sum| (sum[end] - sum[start]).powi(2)).sum::<f64>() / (bins[end] - bins[start]);
            weight * (squares[end] - squares[start] - means).max(0.0)
        };
        let costs = parallel::map(bins.len() * bins.len(), cost);
        Self { bins, costs }
    }

    fn cost(&self, start: usize, end: usize) -> f64 {
        self.costs[start * self.bins.len() + end]
    }
}
