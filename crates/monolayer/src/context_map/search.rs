//! The search for a projection that holds contexts far apart.
//!
//! For almost every v, and every kappa but finitely many, the ids of different contexts differ. How far apart they are depends
//! on v and kappa: random candidates are tried, and the best one is improved by moving the closest pairs of contexts apart, many
//! at a time. Candidates are numbered, so a seed gives the same result on any number of threads.

use rand::RngExt as _;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::context_map::gap_ascent::Slopes;
use crate::context_map::long_sequence::{LONG, LongSequence};
use crate::context_map::{Groups, Projection, View, standard_deviation};
use crate::paper::attention::Mask;

/// The entries of v are multiples of this unless asked otherwise: projections of sign codes of up to 128 coordinates are then
/// exact even in single precision, in any order of summation.
pub const SINGLE_GRID: f64 = 1.0 / 131_072.0;

/// How many candidates are tried where nothing else is asked for.
pub const CANDIDATES: usize = 256;

/// Proposals per round of refinement: enough for every core, and the same on every machine.
const ROUND: usize = 16;

/// Tokens, about, on which the spread of the ids is estimated during the search.
const SAMPLE: usize = 6_000;

/// How to search for a projection with a wide smallest gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    kappa: Option<f64>,
    grid: f64,
    seed: u64,
    candidates: usize,
}

/// How a search went.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The best projection.
    pub projection: Projection,
    /// Candidates tried.
    pub candidates: usize,
    /// Best gap over the estimated spread after each round: (candidates, gap).
    pub progress: Vec<(usize, f64)>,
}

impl Default for Search {
    fn default() -> Self {
        Self { kappa: None, grid: SINGLE_GRID, seed: 0, candidates: CANDIDATES }
    }
}

impl Search {
    /// The defaults: seed 0, on the grid of single precision.
    pub fn new() -> Self {
        Self::default()
    }

    /// The scale of queries, in place of one that is searched for.
    #[must_use]
    pub fn kappa(self, kappa: Option<f64>) -> Self {
        Self { kappa, ..self }
    }

    /// The entries of v are multiples of this.
    #[must_use]
    pub fn grid(self, grid: f64) -> Self {
        Self { grid, ..self }
    }

    /// The seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Candidates to try.
    #[must_use]
    pub fn candidates(self, candidates: usize) -> Self {
        Self { candidates, ..self }
    }

    /// The best projection of all candidates.
    pub fn run(&self, view: &View, groups: &Groups) -> SearchResult {
        self.run_with(view, groups, &|_, _| ())
    }

    /// The same. A quarter of the candidates are random; of the others half widen the best one's closest pairs, half change it at
    /// random. `on_progress` hears, after each round, how many were tried in it and the best gap over the spread of the ids.
    pub fn run_with(&self, view: &View, groups: &Groups, on_progress: &dyn Fn(usize, f64)) -> SearchResult {
        let objective = Objective::new(view, groups);
        // Where nothing must be told apart every candidate is as good as the first.
        let candidates = if groups.0.is_empty() { 1 } else { self.candidates.max(1) };
        let mut best: Option<(f64, Projection)> = None;
        let mut slopes: Option<Slopes> = None;
        let mut progress = Vec::new();
        let mut tried = 0;
        while tried < candidates {
            let round = ROUND.min(candidates - tried);
            let refine = tried >= candidates / 4;
            if let (true, None, Some((_, best))) = (refine, &slopes, &best) {
                slopes = Some(Slopes::new(view, groups, best, &objective.ids(best)));
            }
            let scored: Vec<(f64, Projection)> = (0..round)
                .into_par_iter()
                .map(|i| {
                    let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
                    rng.set_stream((tried + i) as u64 + 1);
                    let projection = match (&best, &slopes) {
                        (Some((_, best)), Some(slopes)) if i % 2 == 0 => self.widened(best, slopes, &mut rng),
                        (Some((_, best)), Some(_)) => self.changed(best, &mut rng),
                        _ => self.random(view, &mut rng),
                    };
                    (objective.value(&projection), projection)
                })
                .collect();
            for (value, projection) in scored {
                if best.as_ref().is_none_or(|(old, _)| value > *old) {
                    best = Some((value, projection));
                    slopes = None;
                }
            }
            tried += round;
            let value = best.as_ref().map_or(0.0, |(value, _)| *value);
            progress.push((tried, value));
            on_progress(round, value);
        }
        let (_, projection) = best.expect("at least one candidate");
        SearchResult { projection, candidates: tried, progress }
    }

    /// A random direction on the grid, and a scale at which scores vary by a fraction of one: where the softmax is far both
    /// from the mean (which does not see order) and from the maximum (which sees one token only).
    pub(crate) fn random(&self, view: &View, rng: &mut ChaCha8Rng) -> Projection {
        let vectors = view.vectors;
        let entry = |i: usize, rng: &mut ChaCha8Rng| {
            if i < vectors.used { self.on_grid(rng.random_range(-1.0..1.0)) } else { 0.0 }
        };
        let v: Vec<f64> = (0..vectors.d()).map(|i| entry(i, rng)).collect();
        let sample = &view.token_ids[..view.token_ids.len().min(SAMPLE)];
        let end = view.offsets.partition_point(|&start| start <= sample.len()) - 1;
        let p = vectors.project(&v, &view.token_ids[..view.offsets[end.max(1)]], &view.offsets[..=end.max(1)]);
        let square = p.iter().map(|p| p * p).sum::<f64>() / p.len() as f64;
        let spread = square.sqrt() * standard_deviation(&p);
        let tau = [0.125, 0.25, 0.5][rng.random_range(0..3)];
        // A power of two: queries are then as exact as keys.
        let kappa = if spread > 0.0 { (tau / spread).log2().round().clamp(-900.0, 900.0).exp2() } else { 1.0 };
        Projection { v, kappa: self.kappa.unwrap_or(kappa) }
    }

    /// A few entries of v, or all of them, moved by a random step.
    fn changed(&self, old: &Projection, rng: &mut ChaCha8Rng) -> Projection {
        let step = 0.5_f64.powi(rng.random_range(2..16));
        let share = [0.05, 0.2, 1.0][rng.random_range(0..3)];
        let change = |&x: &f64| {
            if x == 0.0 || rng.random::<f64>() > share {
                return x;
            }
            self.on_grid((x + step * rng.random_range(-1.0..1.0)).clamp(-1.0, 1.0))
        };
        Projection { v: old.v.iter().map(change).collect(), kappa: old.kappa }
    }

    /// The closest pairs moved apart by a step of some length.
    fn widened(&self, old: &Projection, slopes: &Slopes, rng: &mut ChaCha8Rng) -> Projection {
        let step = slopes.step(0.5_f64.powf(rng.random_range(2.0..16.0)));
        let moved = |(&x, step): (&f64, f64)| self.on_grid((x + step).clamp(-1.0, 1.0));
        Projection { v: old.v.iter().zip(step).map(moved).collect(), kappa: old.kappa }
    }

    /// The nearest multiple of the grid.
    fn on_grid(&self, x: f64) -> f64 {
        (x / self.grid).round() * self.grid
    }
}

/// The smallest gap of a candidate over the spread of its ids, evaluated on the sequences that matter only.
struct Objective<'a> {
    view: &'a View<'a>,
    groups: &'a Groups,
    /// The sequences with members, and the tokens wanted of each; then those of the sample, with all tokens wanted.
    work: Vec<(usize, Vec<usize>)>,
    sample: Vec<usize>,
    /// The long ones among the former, for which there is a faster way.
    long: Vec<LongSequence>,
}

impl<'a> Objective<'a> {
    fn new(view: &'a View<'a>, groups: &'a Groups) -> Self {
        let mut tokens: Vec<usize> = groups.0.iter().flatten().map(|m| m.token).collect();
        tokens.sort_unstable();
        let mut work: Vec<(usize, Vec<usize>)> = Vec::new();
        for t in tokens {
            let (sequence, _) = view.place(t);
            match work.last_mut() {
                Some((last, list)) if *last == sequence => list.push(t),
                _ => work.push((sequence, vec![t])),
            }
        }
        let sequences = view.offsets.len() - 1;
        let sample = (0..sequences).step_by((view.token_ids.len() / SAMPLE).max(1)).collect();
        let mut long = Vec::new();
        if all_long(view) {
            let sequence = |(sequence, tokens): &(usize, Vec<usize>)| {
                let (start, end) = (view.offsets[*sequence], view.offsets[*sequence + 1]);
                LongSequence::new(&view.token_ids[start..end], tokens.iter().map(|t| t - start))
            };
            long = work.iter().map(sequence).collect();
        }
        Self { view, groups, work, sample, long }
    }

    /// `g` of the members of the groups; other tokens have no number.
    fn ids(&self, projection: &Projection) -> Vec<f64> {
        let start = self.view.project_start(&projection.v);
        self.ids_of(projection, start, &self.view.project(&projection.v))
    }

    fn ids_of(&self, projection: &Projection, start: Option<f64>, p: &[f64]) -> Vec<f64> {
        let view = self.view;
        let (mut scores, mut wanted) = (Vec::new(), Vec::new());
        let mut g = vec![f64::NAN; view.token_ids.len()];
        for ((sequence, tokens), long) in self.work.iter().zip(&self.long) {
            let p = &p[view.offsets[*sequence]..view.offsets[*sequence + 1]];
            let ids = long.context_ids(projection.kappa, start, p);
            tokens.iter().zip(ids).for_each(|(&t, id)| g[t] = id);
        }
        for (sequence, tokens) in self.work.iter().skip(self.long.len()) {
            let (first, end) = (view.offsets[*sequence], view.offsets[*sequence + 1]);
            wanted.clear();
            projection.context_ids_at(
                &view.mask,
                start,
                &p[first..end],
                tokens.iter().map(|t| t - first),
                &mut scores,
                &mut wanted,
            );
            tokens.iter().zip(&wanted).for_each(|(&t, &id)| g[t] = id);
        }
        g
    }

    fn value(&self, projection: &Projection) -> f64 {
        let view = self.view;
        let (p, start) = (view.project(&projection.v), view.project_start(&projection.v));
        let g = self.ids_of(projection, start, &p);
        let (mut scores, mut spread) = (Vec::new(), Vec::new());
        if !self.long.is_empty() {
            // The tokens that must be told apart stand for all.
            spread.extend(self.work.iter().flat_map(|(_, tokens)| tokens).map(|&t| g[t]));
            if spread.iter().any(|id| !id.is_finite()) {
                return 0.0;
            }
        }
        for &sequence in self.sample.iter().filter(|_| self.long.is_empty()) {
            let p = &p[view.offsets[sequence]..view.offsets[sequence + 1]];
            projection.context_ids_at(&view.mask, start, p, 0..p.len(), &mut scores, &mut spread);
        }
        let gap = self.groups.smallest_gap(|t| g[t]).gap;
        if gap > 0.0 { gap / standard_deviation(&spread) } else { 0.0 }
    }
}

/// Whether all sequences are long, and of the kind for which there is a faster way.
fn all_long(view: &View) -> bool {
    let shortest = view.offsets.windows(2).map(|window| window[1] - window[0]).min().unwrap_or(0);
    view.mask == Mask::Causal && view.vectors.positions.is_none() && shortest >= LONG
}
