//! The search for a projection that holds contexts far apart.
//!
//! For almost every v and every kappa but finitely many the ids of different contexts differ; how far is luck, and luck can be
//! searched for. Effort is counted in candidates, and candidates are numbered, so a seed gives the same result on any
//! number of threads.

use rand::RngExt as _;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::context_map::{Groups, Projection, View, standard_deviation};

/// The entries of v are multiples of this: projections of sign codes of up to 128 coordinates are then exact even in single
/// precision, in any order of summation.
const GRID: f64 = 1.0 / 131_072.0;

/// Proposals per round of refinement: enough for every core, and the same on every machine.
const ROUND: usize = 16;

/// Tokens, about, on which the spread of the ids is estimated during the search.
const SAMPLE: usize = 6_000;

/// How a search went.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The best projection.
    pub projection: Projection,
    /// Candidates tried.
    pub candidates: usize,
    /// Best gap over the estimated spread after each round: (candidates, gap).
    pub progress: Vec<(usize, f64)>,
}

/// Searches for a projection with a wide smallest gap: a quarter of the candidates are random, the others change the best.
pub fn search(view: &View, groups: &Groups, seed: u64, candidates: usize, tell: &dyn Fn(usize, f64)) -> Found {
    let objective = Objective::new(view, groups);
    let mut best: Option<(f64, Projection)> = None;
    let mut progress = Vec::new();
    let mut tried = 0;
    while tried < candidates.max(1) {
        let round = ROUND.min(candidates.max(1) - tried);
        let refine = tried >= candidates / 4;
        let scored: Vec<(f64, Projection)> = (tried..tried + round)
            .into_par_iter()
            .map(|number| {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(number as u64 + 1);
                let projection = match &best {
                    Some((_, best)) if refine => changed(best, &mut rng),
                    _ => random(view, &mut rng),
                };
                (objective.value(&projection), projection)
            })
            .collect();
        for (value, projection) in scored {
            if best.as_ref().is_none_or(|(old, _)| value > *old) {
                best = Some((value, projection));
            }
        }
        tried += round;
        let value = best.as_ref().map_or(0.0, |(value, _)| *value);
        progress.push((tried, value));
        tell(round, value);
    }
    let (_, projection) = best.expect("at least one candidate");
    Found { projection, candidates: tried, progress }
}

/// A random direction on the grid, and a scale at which scores vary by a fraction of one: where the softmax is far both from
/// the mean (which does not see order) and from the maximum (which sees one token only).
pub(crate) fn random(view: &View, rng: &mut ChaCha8Rng) -> Projection {
    let vectors = view.vectors;
    let entry =
        |i: usize, rng: &mut ChaCha8Rng| if i < vectors.used { on_grid(rng.random_range(-1.0..1.0)) } else { 0.0 };
    let v: Vec<f64> = (0..vectors.d()).map(|i| entry(i, rng)).collect();
    let sample = &view.ids[..view.ids.len().min(SAMPLE)];
    let end = view.offsets.partition_point(|&start| start <= sample.len()) - 1;
    let p = vectors.project(&v, &view.ids[..view.offsets[end.max(1)]], &view.offsets[..=end.max(1)]);
    let square = p.iter().map(|p| p * p).sum::<f64>() / p.len() as f64;
    let spread = square.sqrt() * standard_deviation(&p);
    let tau = [0.125, 0.25, 0.5][rng.random_range(0..3)];
    // A power of two: queries are then as exact as keys.
    let kappa = if spread > 0.0 { (tau / spread).log2().round().clamp(-200.0, 200.0).exp2() } else { 1.0 };
    Projection { v, kappa }
}

/// A few entries of v drawn anew, or all of them moved a little.
fn changed(old: &Projection, rng: &mut ChaCha8Rng) -> Projection {
    let step = 0.5_f64.powi(rng.random_range(0..8));
    let share = [0.05, 0.2, 1.0][rng.random_range(0..3)];
    let change = |&x: &f64| {
        if x == 0.0 || rng.random::<f64>() > share {
            return x;
        }
        on_grid((x + step * rng.random_range(-1.0..1.0)).clamp(-1.0, 1.0))
    };
    Projection { v: old.v.iter().map(change).collect(), kappa: old.kappa }
}

/// The nearest multiple of [`GRID`].
fn on_grid(x: f64) -> f64 {
    (x / GRID).round() * GRID
}

/// The smallest gap of a candidate over the spread of its ids, evaluated on the sequences that matter only.
struct Objective<'a> {
    view: &'a View<'a>,
    groups: &'a Groups,
    /// The sequences with members, and the tokens wanted of each; then those of the sample, with all tokens wanted.
    work: Vec<(usize, Vec<usize>)>,
    sample: Vec<usize>,
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
        let sample = (0..sequences).step_by((view.ids.len() / SAMPLE).max(1)).collect();
        Self { view, groups, work, sample }
    }

    fn value(&self, projection: &Projection) -> f64 {
        let view = self.view;
        let p = view.project(&projection.v);
        let (mut scores, mut wanted, mut spread) = (Vec::new(), Vec::new(), Vec::new());
        let mut g = vec![f64::NAN; view.ids.len()];
        for (sequence, tokens) in &self.work {
            let (start, end) = (view.offsets[*sequence], view.offsets[*sequence + 1]);
            wanted.clear();
            projection.ids_at(view.mask, &p[start..end], tokens.iter().map(|t| t - start), &mut scores, &mut wanted);
            tokens.iter().zip(&wanted).for_each(|(&t, &id)| g[t] = id);
        }
        for &sequence in &self.sample {
            let p = &p[view.offsets[sequence]..view.offsets[sequence + 1]];
            projection.ids_at(view.mask, p, 0..p.len(), &mut scores, &mut spread);
        }
        self.groups.smallest_gap(|t| g[t]).gap / standard_deviation(&spread)
    }
}
