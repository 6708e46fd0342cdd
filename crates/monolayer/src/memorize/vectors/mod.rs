//! Corollary 1 for given vectors: tokens as they are, of any dimension, labels that are classes or vectors.
//!
//! `W_O = w` adds `w_k g` to every coordinate, so that each coordinate `x_k + w_k g` of a token after attention is an id of
//! its own for (token, context). One of them, chosen with v by search, tells all ids apart; the feed-forward block is made
//! of [`hinges`] along it.

pub mod hinges;
pub mod interpolate;
pub(super) mod map;
pub(super) mod outputs;
pub mod plateau;
pub mod proof;

use dashu_ratio::RBig;
use serde_json::json;

use crate::arithmetic::matrix::Matrix;
use crate::context_map::View;
use crate::data::context::{Agreement, Contexts};
use crate::data::embedding::Embedding;
use crate::data::positions::Positions;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Tokens};
use crate::error::{Error, Result};
use crate::model::exact::{map_attention, map_head, rational};
use crate::model::{Head, Model, Words};
use crate::paper::attention::Mask;
use crate::paper::transformer::{Layer, Transformer};
use interpolate::interpolate;
use map::{Map, find_map};
use outputs::{Outputs, labels_and_outputs};
use plateau::{exact_plateau, plateau};
use proof::{Claim, Proof};

/// What the feed-forward block does between ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Constant around ids, ramps between them: [`plateau`](mod@plateau).
    Plateau,
    /// A curve through all ids: [`interpolate`](mod@interpolate).
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
    /// Possible tokens whose label is not proved in double precision.
    pub undecided: Vec<usize>,
}

/// Ids times dimensions, at most: hinges and what is proved of them take a few hundred bytes for each.
const LARGEST: usize = 1 << 21;

/// Memorizes a dataset: the proof of Corollary 1, in order.
pub fn memorize_vectors(
    data: &Dataset,
    options: &VectorOptions,
    on_progress: &dyn Fn(usize, f64),
) -> Result<VectorMemo> {
    let Prepared { labels, outputs, vectors, map } =
        prepare(data, options, options.method == Method::Plateau, on_progress)?;
    let view = View::new(data, &vectors, options.mask);
    if view.contexts.count * vectors.d() > LARGEST {
        let what = format!("{} ids in {} dimensions are too many for this method", view.contexts.count, vectors.d());
        return Err(Error::request(
            what,
            "for words with classes use `method` gated, or an `embedding` of fewer dimensions",
        ));
    }
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
    if !proof.real_error.is_finite() {
        return Err(Error::request(
            "the numbers of this dataset, or their products, overflow double precision",
            "scale the vectors to a size near 1",
        ));
    }
    let possible = |t: &usize| !agreement.impossible.contains(t);
    let uncertain = |t: &usize| !proof.certain(view.contexts.of_token[*t]);
    let undecided = (0..data.tokens()).filter(uncertain).filter(possible).collect();
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
        undecided,
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

/// Plateaus with rational weights: evaluated by [`crate::model::exact`], outputs are equal to the labels.
pub fn memorize_exactly(
    data: &Dataset,
    options: &VectorOptions,
    on_progress: &dyn Fn(usize, f64),
) -> Result<ExactMemo> {
    let Prepared { labels, outputs, vectors, map } = prepare(data, options, true, on_progress)?;
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
    on_progress: &dyn Fn(usize, f64),
) -> Result<Prepared<'a>> {
    let (labels, outputs) = labels_and_outputs(data)?;
    let attempt = |positions: &Positions| -> Result<(TokenVectors, Map)> {
        let vectors = TokenVectors::new(data, &options.embedding, positions, 0, options.seed)?;
        let view = View::new(data, &vectors, options.mask);
        let class =
            if by_label { view.contexts.agree(&labels).label } else { (0..view.contexts.count as u32).collect() };
        let map = find_map(data, &view, &class, options.seed, options.candidates, on_progress)?;
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
        "data": data.hash(),
    })
}
