//! The search for a projection that holds contexts far apart.
//!
//! For almost every v, and every kappa but finitely many, the ids of different contexts differ. How far apart they are depends
//! on v and kappa: random candidates are tried, and the best one is improved by moving the closest pairs of contexts apart, many
//! at a time. Candidates are numbered, so a seed gives the same result on any number of threads.

use rand::RngExt as _;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::arithmetic::parallel;
use crate::arithmetic::sorting;
use crate::context_map::gap_ascent::Slopes;
use crate::context_map::long_sequence::{LONG, LongSequence};
use crate::context_map::{Groups, Member, Projection, View, standard_deviation};
use crate::data::token_vectors::Projector;
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
        let mut order = objective.largest_first();
        let mut progress = Vec::new();
        let mut tried = 0;
        while tried < candidates {
            let round = ROUND.min(candidates - tried);
            let refine = tried >= candidates / 4;
            if let (true, None, Some((_, best))) = (refine, &slopes, &best) {
                let ids = objective.ids(best);
                order = objective.closest_first(&ids);
                slopes = Some(Slopes::new(view, groups, best, &ids));
            }
            let scored = parallel::map(round, |i| {
                let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
                rng.set_stream((tried + i) as u64 + 1);
                let projection = match (&best, &slopes) {
                    (Some((_, best)), Some(slopes)) if i % 2 == 0 => self.widened(best, slopes, &mut rng),
                    (Some((_, best)), Some(_)) => self.changed(best, &mut rng),
                    _ => self.random(view, &objective.projector, &mut rng),
                };
                (objective.value(&projection, &order, best.as_ref().map(|(value, _)| *value)), projection)
            });
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
    pub(crate) fn random(&self, view: &View, projector: &Projector, rng: &mut ChaCha8Rng) -> Projection {
        let vectors = view.vectors;
        let entry = |i: usize, rng: &mut ChaCha8Rng| {
            if i < vectors.used { self.on_grid(rng.random_range(-1.0..1.0)) } else { 0.0 }
        };
        let v: Vec<f64> = (0..vectors.d()).map(|i| entry(i, rng)).collect();
        let sample = &view.token_ids[..view.token_ids.len().min(SAMPLE)];
        let end = view.offsets.partition_point(|&start| start <= sample.len()) - 1;
        let p = projector.project(&v, &view.token_ids[..view.offsets[end.max(1)]], &view.offsets[..=end.max(1)]);
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
    projector: Projector<'a>,
    groups: &'a Groups,
    /// The sequence of each member, and its place there.
    places: Vec<Vec<(usize, usize)>>,
    /// The sequences of the sample.
    sample: Vec<usize>,
    /// The sequences with members and the tokens wanted of each, where all are long, for which there is a faster way.
    long: Vec<(LongSequence, Vec<usize>)>,
}

/// A candidate, ready to be asked for ids.
struct CandidateTokens<'a> {
    projection: &'a Projection,
    start: Option<f64>,
    p: Vec<f64>,
}

impl<'a> Objective<'a> {
    fn new(view: &'a View<'a>, groups: &'a Groups) -> Self {
        let sequences = view.offsets.len() - 1;
        let sample = (0..sequences).step_by((view.token_ids.len() / SAMPLE).max(1)).collect();
        let places = groups.0.iter().map(|group| group.iter().map(|m| view.place(m.token)).collect()).collect();
        let long = if all_long(view) { long_sequences(view, groups) } else { Vec::new() };
        Self { view, projector: Projector::new(view.vectors), groups, places, sample, long }
    }

    /// The numbers of the groups, those with the most members first.
    fn largest_first(&self) -> Vec<usize> {
        let size = |g: usize| self.groups.0[g].len();
        sorting::order_by(self.groups.0.len(), &|a, b| size(b).cmp(&size(a)))
    }

    /// The numbers of the groups, those whose members are closest first.
    fn closest_first(&self, ids: &[f64]) -> Vec<usize> {
        let gap = |group: &Vec<Member>| smallest_gap(group, group.iter().map(|m| ids[m.token]), &mut Vec::new());
        let gaps: Vec<f64> = self.groups.0.iter().map(gap).collect();
        sorting::order_by_key(gaps.len(), |g| gaps[g])
    }

    fn projected<'b>(&self, projection: &'b Projection) -> CandidateTokens<'b> {
        let start = self.view.project_start(&projection.v);
        let p = self.projector.project(&projection.v, &self.view.token_ids, self.view.offsets);
        CandidateTokens { projection, start, p }
    }

    /// `g` of the members of the groups; other tokens have no number.
    fn ids(&self, projection: &Projection) -> Vec<f64> {
        let projected = self.projected(projection);
        if !self.long.is_empty() {
            return self.long_ids(&projected);
        }
        let mut g = vec![f64::NAN; self.view.token_ids.len()];
        let mut room = Room::default();
        for (n, group) in self.groups.0.iter().enumerate() {
            self.group_ids(&projected, n, &mut room);
            group.iter().zip(&room.ids).for_each(|(member, &id)| g[member.token] = id);
        }
        g
    }

    fn long_ids(&self, projected: &CandidateTokens) -> Vec<f64> {
        let view = self.view;
        let mut g = vec![f64::NAN; view.token_ids.len()];
        for (long, tokens) in &self.long {
            let (sequence, _) = view.place(tokens[0]);
            let p = &projected.p[view.offsets[sequence]..view.offsets[sequence + 1]];
            let ids = long.context_ids(projected.projection.kappa, projected.start, p);
            tokens.iter().zip(ids).for_each(|(&t, id)| g[t] = id);
        }
        g
    }

    /// The ids of the members of a group, in `room`.
    fn group_ids(&self, projected: &CandidateTokens, group: usize, room: &mut Room) {
        let CandidateTokens { projection, start, p } = projected;
        room.ids.clear();
        for &(sequence, place) in &self.places[group] {
            let p = &p[self.view.offsets[sequence]..self.view.offsets[sequence + 1]];
            let places = std::iter::once(place);
            projection.context_ids_at(&self.view.mask, *start, p, places, &mut room.scores, &mut room.ids);
        }
    }

    /// The value of a candidate; where it is not above that of the best one, some number that is not, either: a gap that is too
    /// small ends the search for a smaller one. Groups are looked at in an order that leads to it soon.
    fn value(&self, projection: &Projection, order: &[usize], best: Option<f64>) -> f64 {
        let view = self.view;
        let projected = self.projected(projection);
        if !self.long.is_empty() {
            let g = self.long_ids(&projected);
            // The tokens that must be told apart stand for all.
            let spread: Vec<f64> = self.long.iter().flat_map(|(_, tokens)| tokens).map(|&t| g[t]).collect();
            if spread.iter().any(|id| !id.is_finite()) {
                return 0.0;
            }
            let gap = self.groups.smallest_gap(|t| g[t]).gap;
            return if gap > 0.0 { gap / standard_deviation(&spread) } else { 0.0 };
        }
        let (mut room, mut spread) = (Room::default(), Vec::new());
        for &sequence in &self.sample {
            let p = &projected.p[view.offsets[sequence]..view.offsets[sequence + 1]];
            let places = 0..p.len();
            projection.context_ids_at(&view.mask, projected.start, p, places, &mut room.scores, &mut spread);
        }
        let deviation = standard_deviation(&spread);
        let value = |gap: f64| if gap > 0.0 { gap / deviation } else { 0.0 };
        let mut smallest = f64::INFINITY;
        for &g in order {
            self.group_ids(&projected, g, &mut room);
            let gap = smallest_gap(&self.groups.0[g], room.ids.iter().copied(), &mut room.sorted);
            smallest = smallest.min(gap);
            if best.is_some_and(|best| value(smallest) <= best) {
                break;
            }
        }
        value(smallest)
    }
}

/// What the ids of a group are computed in.
#[derive(Default)]
struct Room {
    scores: Vec<f64>,
    ids: Vec<f64>,
    sorted: Vec<(f64, u32)>,
}

/// The smallest distance of the ids of two members with different classes.
fn smallest_gap(group: &[Member], ids: impl Iterator<Item = f64>, sorted: &mut Vec<(f64, u32)>) -> f64 {
    sorted.clear();
    sorted.extend(ids.zip(group).map(|(id, member)| (id, member.class)));
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let differ = sorted.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    differ.map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min)
}

/// The sequences with members, and the tokens wanted of each.
fn long_sequences(view: &View, groups: &Groups) -> Vec<(LongSequence, Vec<usize>)> {
    let mut tokens: Vec<usize> = groups.0.iter().flatten().map(|m| m.token).collect();
    tokens.sort_unstable();
    let of_sequence = |tokens: &[usize]| {
        let (sequence, _) = view.place(tokens[0]);
        let (start, end) = (view.offsets[sequence], view.offsets[sequence + 1]);
        (LongSequence::new(&view.token_ids[start..end], tokens.iter().map(|t| t - start)), tokens.to_vec())
    };
    tokens.chunk_by(|&a, &b| view.place(a).0 == view.place(b).0).map(of_sequence).collect()
}

/// Whether all sequences are long, and of the kind for which there is a faster way.
fn all_long(view: &View) -> bool {
    let shortest = view.offsets.windows(2).map(|window| window[1] - window[0]).min().unwrap_or(0);
    view.mask == Mask::Causal && view.vectors.positions.is_none() && shortest >= LONG
}
