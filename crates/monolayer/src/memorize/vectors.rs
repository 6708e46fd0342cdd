//! Corollary 1 for given vectors: tokens as they are, of any dimension, labels that are classes or vectors.
//!
//! `W_O = w` adds `w_k g` to every coordinate, so that each coordinate `x_k + w_k g` of a token after attention is an id of
//! its own for (token, context). One of them, chosen with v by search, tells all ids apart; the feed-forward block is made
//! of [hinges](super::hinges) along it.

use dashu_ratio::RBig;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::json;

use super::interpolate::interpolate;
use super::plateau::{Labeled, exact_plateau, plateau};
use super::vectors_proof::{Claim, Proof};
use crate::attention::{Attention, Mask};
use crate::context::{Agreement, Contexts};
use crate::context_map::{Projection, View, standard_deviation};
use crate::dataset::{Dataset, Labels, Tokens};
use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::exact::{map_attention, map_head, rational};
use crate::matrix::Matrix;
use crate::model::{Head, Model, Words};
use crate::position::Positions;
use crate::search;
use crate::token_vectors::TokenVectors;
use crate::transformer::{Layer, Transformer};

/// What the feed-forward block does between ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Constant around ids, ramps between them: [`super::plateau`].
    Plateau,
    /// A curve through all ids: [`super::interpolate`].
    Interpolate,
}

/// How a dataset is memorized.
#[derive(Debug, Clone)]
pub struct VectorOptions {
    /// Plateaus or a curve.
    pub method: Method,
    /// Vectors for words, when tokens are words.
    pub embedding: Embedding,
    /// Vectors for places.
    pub positions: Positions,
    /// Which tokens a query sees.
    pub mask: Mask,
    /// The seed of codes and search.
    pub seed: u64,
    /// How many projections to try.
    pub candidates: usize,
}

impl Default for VectorOptions {
    fn default() -> Self {
        Self {
            method: Method::Plateau,
            embedding: Embedding::Sign(64),
            positions: Positions::Auto,
            mask: Mask::None,
            seed: 0,
            candidates: 64,
        }
    }
}

/// A model for given vectors and what is known of it.
#[derive(Debug, Clone)]
pub struct VectorMemo {
    /// The model.
    pub model: Model<f64>,
    /// What labels the contexts allow.
    pub agreement: Agreement,
    /// How many different ids there are.
    pub distinct: usize,
    /// The id of each token: a coordinate of it after attention.
    pub ids: Vec<f64>,
    /// The smallest gap between ids that must be told apart, over the standard deviation of all ids; infinite where nothing
    /// must be.
    pub gap: f64,
    /// Runs of equal labels along the ids.
    pub runs: usize,
    /// How many projections were tried.
    pub candidates: usize,
    /// What was proved.
    pub proof: Proof,
}

/// The tokens after attention, one row per context, and how they were reached.
pub(super) struct Map {
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

/// Memorizes a dataset: the proof of Corollary 1, in order.
pub fn memorize_vectors(data: &Dataset, options: &VectorOptions, tell: &dyn Fn(usize, f64)) -> Result<VectorMemo> {
    let Prepared { labels, outputs, vectors, map } = prepare(data, options, options.method == Method::Plateau, tell)?;
    let view = View::new(data, &vectors, options.mask);
    let agreement = view.contexts.agree(&labels);
    let points = outputs.points(vectors.d());
    let (readout, runs) = match options.method {
        Method::Plateau => plateau(&map.labeled(&agreement, &points)),
        Method::Interpolate => {
            let rows = agreement.label.iter().flat_map(|&l| points.row(l as usize)).copied().collect();
            let targets = Matrix::new(agreement.label.len(), points.cols, rows);
            (interpolate(&map.rows, map.coordinate, &targets), agreement.label.len())
        }
    };
    let attention = map.attention(options.mask);
    let layers = vec![Layer { attention: Some(attention.clone()), feed_forward: Some(readout.block()) }];
    let method = match options.method {
        Method::Plateau => "plateau",
        Method::Interpolate => "interpolate",
    };
    let model = assemble(data, &vectors, layers, outputs.head(&points), source(data, options, method));
    let claim = Claim {
        view: &view,
        attention: &attention,
        readout: &readout,
        label: &agreement.label,
        points: &points,
        head: model.head.as_ref(),
        exact_ids: options.method == Method::Interpolate,
    };
    let proof = claim.prove()?;
    let ids = view.contexts.of_token.iter().map(|&c| map.rows.row(c as usize)[map.coordinate]).collect();
    Ok(VectorMemo {
        model,
        distinct: view.contexts.count,
        agreement,
        ids,
        gap: map.gap,
        runs,
        candidates: options.candidates.max(1),
        proof,
    })
}

/// A model with rational weights and what is known of it.
#[derive(Debug, Clone)]
pub struct ExactMemo {
    /// The model.
    pub model: Model<RBig>,
    /// What labels the contexts allow.
    pub agreement: Agreement,
    /// How many different ids there are.
    pub distinct: usize,
    /// The smallest gap between ids that must be told apart, over the standard deviation of all ids.
    pub gap: f64,
}

/// Plateaus with rational weights: evaluated by [`crate::exact`], outputs are equal to the labels.
pub fn memorize_exactly(data: &Dataset, options: &VectorOptions, tell: &dyn Fn(usize, f64)) -> Result<ExactMemo> {
    let Prepared { labels, outputs, vectors, map } = prepare(data, options, true, tell)?;
    let view = View::new(data, &vectors, options.mask);
    let agreement = view.contexts.agree(&labels);
    let points = outputs.points(vectors.d());
    let block = exact_plateau(&map.labeled(&agreement, &points));
    let attention = Some(map_attention(&map.attention(options.mask), |&x| rational(x)));
    let layers = vec![Layer { attention, feed_forward: Some(block) }];
    let head = outputs.head(&points).map(|head| map_head(&head, |&x| rational(x)));
    let model = assemble(data, &vectors, layers, head, source(data, options, "plateau"));
    Ok(ExactMemo { model, agreement, distinct: view.contexts.count, gap: map.gap })
}

/// What every method starts from.
pub(super) struct Prepared<'a> {
    /// The number of each token's label.
    pub labels: Vec<u32>,
    /// What labels are as outputs.
    pub outputs: Outputs<'a>,
    /// The tokens.
    pub vectors: TokenVectors,
    /// The contextual map.
    pub map: Map,
}

/// Tokens, and the contextual map that tells contexts with different labels apart, or, unless `by_label`, all contexts.
pub(super) fn prepare<'a>(
    data: &'a Dataset,
    options: &VectorOptions,
    by_label: bool,
    tell: &dyn Fn(usize, f64),
) -> Result<Prepared<'a>> {
    let (labels, outputs) = labels_and_outputs(data)?;
    let attempt = |positions: &Positions| -> Result<(TokenVectors, Map)> {
        let vectors = TokenVectors::new(data, &options.embedding, positions, 0, options.seed)?;
        let view = View::new(data, &vectors, options.mask);
        let class =
            if by_label { view.contexts.agree(&labels).label } else { (0..view.contexts.count as u32).collect() };
        let map = find_map(data, &view, &class, options.seed, options.candidates, tell)?;
        Ok((vectors, map))
    };
    let positions = needed(data, &labels, options);
    let (vectors, map) = match attempt(&positions) {
        // Ids that coincide without positions: a zero vector sees the mean of its sequence only, for example.
        Err(_) if options.positions == Positions::Auto && positions == Positions::None => attempt(&Positions::Auto)?,
        result => result?,
    };
    Ok(Prepared { labels, outputs, vectors, map })
}

/// Positions are used by default where contexts contradict each other without them.
fn needed(data: &Dataset, labels: &[u32], options: &VectorOptions) -> Positions {
    if options.positions != Positions::Auto {
        return options.positions.clone();
    }
    let ids = data.token_ids();
    let conflicts =
        |positions| Contexts::new(&ids, &data.offsets, options.mask, positions).agree(labels).impossible.len();
    if conflicts(false) > conflicts(true) { Positions::Auto } else { Positions::None }
}

/// What the labels of a dataset are as outputs.
pub(super) enum Outputs<'a> {
    /// Vectors: themselves.
    Vectors(Matrix<f64>),
    /// Classes: points of a grid, and a head that finds the nearest.
    Classes(&'a [String]),
}

/// The number of each token's label, and what labels are as outputs.
pub(super) fn labels_and_outputs(data: &Dataset) -> Result<(Vec<u32>, Outputs<'_>)> {
    match &data.labels {
        Labels::None => Err(Error::data(
            crate::error::Place::file(&data.name),
            "it has no labels",
            "memorizing needs a label for every token",
        )),
        Labels::Classes { ids, names } => Ok((ids.clone(), Outputs::Classes(names.names()))),
        Labels::Vectors { d, data: vectors } => {
            if let Tokens::Words { .. } = data.tokens {
                let help = "give classes as labels, or vectors as tokens";
                return Err(Error::request("words with vectors as labels", help));
            }
            let (ids, first) = crate::context::distinct_rows(*d, vectors);
            let rows = first.iter().flat_map(|&t| &vectors[t * d..(t + 1) * d]).copied().collect();
            Ok((ids, Outputs::Vectors(Matrix::new(first.len(), *d, rows))))
        }
    }
}

impl Outputs<'_> {
    /// The output of each label in dimension d. Classes get the unit vectors if there are enough, else the corners of the
    /// smallest grid of whole numbers with enough of them, around 0.
    pub fn points(&self, d: usize) -> Matrix<f64> {
        match self {
            Self::Vectors(points) => points.clone(),
            Self::Classes(names) if names.len() <= d => {
                Matrix::from_fn(names.len(), d, |l, i| if l == i { 1.0 } else { 0.0 })
            }
            Self::Classes(names) => {
                let enough = |side: usize| (side as f64).powi(d as i32) >= names.len() as f64;
                let side = (2..=names.len()).find(|&side| enough(side)).unwrap_or(2);
                let digit = |l: usize, i: usize| l / side.saturating_pow(i as u32) % side;
                Matrix::from_fn(names.len(), d, |l, i| digit(l, i) as f64 - (side / 2) as f64)
            }
        }
    }

    /// The head that finds the nearest point: `c . y - |c|^2 / 2` is largest for the nearest c.
    pub fn head(&self, points: &Matrix<f64>) -> Option<Head<f64>> {
        let Self::Classes(names) = self else { return None };
        let bias = points.iter_rows().map(|c| -c.iter().map(|x| x * x).sum::<f64>() / 2.0).collect();
        Some(Head { labels: names.to_vec(), weight: points.clone(), bias })
    }
}

/// Searches for the projection, `W_O` and coordinate with the widest smallest gap between ids of different classes.
pub(super) fn find_map(
    data: &Dataset,
    view: &View,
    class: &[u32],
    seed: u64,
    candidates: usize,
    tell: &dyn Fn(usize, f64),
) -> Result<Map> {
    let first = first_tokens(view);
    let d = view.vectors.d();
    let tokens = first.iter().flat_map(|&t| view.vectors.vector(view.ids[t], view.place(t).1)).collect();
    let tokens = Matrix::new(first.len(), d, tokens);
    let spread: Vec<f64> = (0..d).map(|k| standard_deviation(&column(&tokens, k))).collect();
    let attempt = |number: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number as u64 + 1);
        let projection = search::random(view, &mut rng);
        let g = projection.ids(view);
        let g: Vec<f64> = first.iter().map(|&t| g[t]).collect();
        // Ids in which the token and its context weigh about the same.
        let scale = [0.5, 1.0, 2.0, 4.0][rng.random_range(0..4)]
            / Some(standard_deviation(&g)).filter(|&x| x > 0.0).unwrap_or(1.0);
        let w: Vec<f64> = spread.iter().map(|&s| scale * if s > 0.0 { s } else { 1.0 }).collect();
        let coordinate = rng.random_range(0..d);
        let ids: Vec<f64> = (0..g.len()).map(|c| tokens.row(c)[coordinate] + w[coordinate] * g[c]).collect();
        let gap = smallest_gap(&ids, class);
        (gap, projection, w, coordinate, g)
    };
    let all = (0..candidates.max(1)).into_par_iter().map(attempt);
    // The first among equals, so that the number of threads does not matter.
    let best = all.enumerate().reduce_with(|a, b| match b.1.0.gap.total_cmp(&a.1.0.gap) {
        std::cmp::Ordering::Greater => b,
        std::cmp::Ordering::Equal if b.0 < a.0 => b,
        _ => a,
    });
    let (_, (gap, projection, w, coordinate, g)) = best.expect("at least one candidate");
    tell(candidates.max(1), gap.gap);
    let rows = Matrix::from_fn(first.len(), d, |c, k| tokens.row(c)[k] + w[k] * g[c]);
    let ids = column(&rows, coordinate);
    let range = ids.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    if gap.gap * standard_deviation(&ids) <= NOTHING * range {
        let (a, b) = gap.contexts;
        return Err(Error::data(
            data.place(first[a]),
            format!("no projection of {} tells this token from that of {}", candidates.max(1), data.place(first[b])),
            "use --positions auto, or more --candidates; a zero vector sees only the mean of its sequence",
        ));
    }
    Ok(Map { projection, w, coordinate, rows, gap: gap.gap })
}

/// The closest two ids of different classes.
struct Gap {
    /// Their distance over the standard deviation of all.
    gap: f64,
    contexts: (usize, usize),
}

fn smallest_gap(ids: &[f64], class: &[u32]) -> Gap {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by(|&a, &b| ids[a].total_cmp(&ids[b]));
    let spread = standard_deviation(ids);
    let mut smallest = Gap { gap: f64::INFINITY, contexts: (0, 0) };
    for pair in order.windows(2).filter(|pair| class[pair[0]] != class[pair[1]]) {
        let gap = ids[pair[1]] - ids[pair[0]];
        let gap = if spread > 0.0 { gap / spread } else { 0.0 };
        if gap < smallest.gap {
            smallest = Gap { gap, contexts: (pair[0], pair[1]) };
        }
    }
    smallest
}

/// The first token of each context.
pub(super) fn first_tokens(view: &View) -> Vec<usize> {
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
    /// The ids with their labels.
    pub fn labeled<'a>(&'a self, agreement: &'a Agreement, points: &'a Matrix<f64>) -> Labeled<'a> {
        Labeled { rows: &self.rows, coordinate: self.coordinate, label: &agreement.label, points }
    }

    /// Eq. 20.
    pub fn attention(&self, mask: Mask) -> Attention<f64> {
        let queries: Vec<f64> = self.projection.v.iter().map(|x| self.projection.kappa * x).collect();
        Attention::rank_one(mask, &self.projection.v, &queries, &self.w)
    }
}

/// Tokens, layers and head as one model, over the floats or the rationals.
pub(super) fn assemble<T: From64>(
    data: &Dataset,
    vectors: &TokenVectors,
    layers: Vec<Layer<T>>,
    head: Option<Head<T>>,
    source: serde_json::Value,
) -> Model<T> {
    let lift = |m: &Matrix<f64>| m.map(|&x| T::from_f64(x));
    let words = match &data.tokens {
        Tokens::Words { vocabulary, .. } => {
            Some(Words { vocabulary: vocabulary.clone(), embedding: lift(&vectors.words) })
        }
        Tokens::Vectors { .. } => None,
    };
    let transformer = Transformer { d: vectors.d(), pre_feed_forward: None, layers };
    Model { words, positions: vectors.positions.as_ref().map(lift), transformer, head, source }
}

/// Numbers of a model that hold every float.
pub(super) trait From64: Clone {
    /// The number `x`, exactly.
    fn from_f64(x: f64) -> Self;
}

impl From64 for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }
}

impl From64 for RBig {
    fn from_f64(x: f64) -> Self {
        rational(x)
    }
}

/// How a model was made.
pub(super) fn source(data: &Dataset, options: &VectorOptions, method: &str) -> serde_json::Value {
    json!({
        "command": "memorize",
        "method": method,
        "version": env!("CARGO_PKG_VERSION"),
        "seed": options.seed,
        "candidates": options.candidates.max(1),
        "data": data.hash,
    })
}
