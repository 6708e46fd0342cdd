//! Theorem 2 for given vectors: the search for a contextual map one of whose coordinates tells all ids apart.

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;

use super::free_labels::filled;
use super::plateau::Labeled;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::sorting;
use crate::context_map::search::Search;
use crate::context_map::{Projection, View, standard_deviation};
use crate::data::Dataset;
use crate::data::context::Agreement;
use crate::data::token_vectors::Projector;
use crate::error::{Error, Result};
use crate::memorize::settings::Memorizer;
use crate::paper::attention::{Attention, Mask};

/// The tokens after attention, one row per context, and how they were reached.
pub(in crate::memorize) struct Map {
    /// Keys, values and queries.
    pub projection: Projection,
    /// `W_O`.
    pub w: Vec<f64>,
    /// The coordinate that tells ids apart.
    pub coordinate: usize,
    /// One row per context.
    pub rows: Matrix<f64>,
    /// The smallest gap that matters, over the standard deviation.
    pub gap: f64,
}

/// Gaps below this part of the ids' range are rounding, not gaps.
const NOTHING: f64 = 1e-13;

/// Candidates per round, after which progress is told.
const ROUND: usize = 16;

/// A contextual map on trial.
struct MapCandidate {
    gap: CoordinateGap,
    projection: Projection,
    w: Vec<f64>,
    coordinate: usize,
    /// What attention reads, one number per context.
    g: Vec<f64>,
}

/// Searches for the projection, `W_O` and coordinate with the widest smallest gap between ids of different classes. Ids
/// without a class need not be told apart from any.
pub(in crate::memorize) fn find_map(
    data: &Dataset,
    view: &View,
    class: &[Option<u32>],
    memorizer: &Memorizer,
) -> Result<Map> {
    let first = first_tokens(view);
    let d = view.vectors.d();
    let tokens = first.iter().flat_map(|&t| view.vectors.vector(view.token_ids[t], view.place(t).1)).collect();
    let tokens = Matrix::new(first.len(), d, tokens);
    let spread: Vec<f64> = (0..d).map(|k| standard_deviation(&column(&tokens, k))).collect();
    let (search, projector, seed) = (Search::new(), Projector::new(view.vectors), memorizer.seed);
    let attempt = |number: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number as u64 + 1);
        let projection = search.random(view, &projector, &mut rng);
        let g = projection.context_ids(view);
        let g: Vec<f64> = first.iter().map(|&t| g[t]).collect();
        // Ids in which the token and its context weigh about the same.
        let scale = [0.5, 1.0, 2.0, 4.0][rng.random_range(0..4)]
            / Some(standard_deviation(&g)).filter(|&x| x > 0.0).unwrap_or(1.0);
        let w: Vec<f64> = spread.iter().map(|&s| scale * if s > 0.0 { s } else { 1.0 }).collect();
        let coordinate = rng.random_range(0..d);
        let ids: Vec<f64> = (0..g.len()).map(|c| tokens.row(c)[coordinate] + w[coordinate] * g[c]).collect();
        let gap = smallest_gap(&ids, class);
        MapCandidate { gap, projection, w, coordinate, g }
    };
    let candidates = memorizer.candidates.max(1);
    let mut best: Option<MapCandidate> = None;
    for start in (0..candidates).step_by(ROUND) {
        let tried = ROUND.min(candidates - start);
        // In order, so that the number of threads does not matter.
        for candidate in parallel::map(tried, |i| attempt(start + i)) {
            if best.as_ref().is_none_or(|best| candidate.gap.gap > best.gap.gap) {
                best = Some(candidate);
            }
        }
        memorizer.report(tried, best.as_ref().map_or(0.0, |best| best.gap.gap));
    }
    let MapCandidate { gap, projection, w, coordinate, g } = best.expect("at least one candidate");
    let rows = Matrix::from_fn(first.len(), d, |c, k| tokens.row(c)[k] + w[k] * g[c]);
    let ids = column(&rows, coordinate);
    let range = ids.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    if gap.gap * standard_deviation(&ids) <= NOTHING * range {
        let (a, b) = gap.contexts;
        return Err(Error::data(
            data.location(first[a]),
            format!("no projection of {candidates} tells this token from that of {}", data.location(first[b])),
            "use `positions` auto, or more `candidates`; a zero vector sees only the mean of its sequence",
        ));
    }
    Ok(Map { projection, w, coordinate, rows, gap: gap.gap })
}

/// The closest two ids of different classes.
struct CoordinateGap {
    /// Their distance over the standard deviation of all.
    gap: f64,
    contexts: (usize, usize),
}

/// Between two neighbors there may be ids without a class: what matters is then the widest step from one to the other.
fn smallest_gap(ids: &[f64], class: &[Option<u32>]) -> CoordinateGap {
    let order = sorting::order_by_key(ids.len(), |i| ids[i]);
    let spread = standard_deviation(ids);
    let mut smallest = CoordinateGap { gap: f64::INFINITY, contexts: (0, 0) };
    let (mut last, mut widest): (Option<usize>, f64) = (None, 0.0);
    for (i, &id) in order.iter().enumerate() {
        widest = widest.max(if i > 0 { ids[id] - ids[order[i - 1]] } else { 0.0 });
        if class[id].is_none() {
            continue;
        }
        if let Some(last) = last.filter(|&last| class[last] != class[id]) {
            let gap = if spread > 0.0 { widest / spread } else { 0.0 };
            if gap < smallest.gap {
                smallest = CoordinateGap { gap, contexts: (last, id) };
            }
        }
        (last, widest) = (Some(id), 0.0);
    }
    smallest
}

/// The first token of each context.
pub(in crate::memorize) fn first_tokens(view: &View) -> Vec<usize> {
    let mut first = vec![0; view.contexts.count];
    for (t, &context) in view.contexts.of_token.iter().enumerate().rev() {
        first[context as usize] = t;
    }
    first
}

fn column(rows: &Matrix<f64>, k: usize) -> Vec<f64> {
    rows.iter_rows().map(|row| row[k]).collect()
}

impl Map {
    /// A label for every id.
    pub fn filled(&self, agreement: &Agreement) -> Vec<u32> {
        filled(&self.rows, self.coordinate, &agreement.label)
    }

    /// The ids with their labels.
    pub fn labeled<'a>(&'a self, label: &'a [u32], points: &'a Matrix<f64>) -> Labeled<'a> {
        Labeled { rows: &self.rows, coordinate: self.coordinate, label, points }
    }

    /// Eq. 20.
    pub fn attention(&self, mask: Mask) -> Attention<f64> {
        let queries: Vec<f64> = self.projection.v.iter().map(|x| self.projection.kappa * x).collect();
        Attention::rank_one(mask, &self.projection.v, &queries, &self.w)
    }
}
