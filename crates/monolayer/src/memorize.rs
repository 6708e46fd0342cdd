//! Corollaries 1 and 2: any consistent dataset into one rank-1 attention layer and one feed-forward block, without training.

pub mod cover;
pub mod gated;
pub mod zigzag;

use serde_json::json;

use crate::attention::{Attention, Mask};
use crate::context::{Agreement, Contexts};
use crate::context_map::{Groups, Projection, View, standard_deviation};
use crate::dataset::{Dataset, Labels, Tokens, Vocabulary};
use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::feed_forward::FeedForward;
use crate::kernels::Real;
use crate::matrix::Matrix;
use crate::model::{Head, Model, UNKNOWN, Words};
use crate::position::Positions;
use crate::search::{self, Found};
use crate::token_vectors::TokenVectors;
use crate::transformer::{Layer, Transformer};
use gated::{Gated, Plan};

/// How a dataset is memorized.
#[derive(Debug, Clone)]
pub struct Memorizer {
    /// Vectors for words.
    pub embedding: Embedding,
    /// Whether the embedding may carry labels: it is then chosen by the compiler, not fixed in advance.
    pub free: bool,
    /// Vectors for places.
    pub positions: Positions,
    /// Which tokens a query sees.
    pub mask: Mask,
    /// The seed of codes and search.
    pub seed: u64,
    /// How many projections to try.
    pub candidates: usize,
    /// Whether to add a row for unknown words, which get the commonest label.
    pub unknown: bool,
}

impl Default for Memorizer {
    fn default() -> Self {
        Self {
            embedding: Embedding::Sign(64),
            free: false,
            positions: Positions::Auto,
            mask: Mask::None,
            seed: 0,
            candidates: 256,
            unknown: false,
        }
    }
}

/// A compiled model and what is known of it.
#[derive(Debug, Clone)]
pub struct Compiled<R> {
    /// The model.
    pub model: Model<R>,
    /// Its hidden units and where they fire.
    pub gated: Gated,
    /// What labels the contexts allow.
    pub agreement: Agreement,
    /// The search that found the projection.
    pub found: Found,
    /// The id of each token.
    pub ids: Vec<f64>,
    /// The smallest gap between differently labeled contexts of one token, over the standard deviation of the ids.
    pub gap: f64,
}

impl Memorizer {
    /// Compiles a dataset of words with classes: the proof of Corollary 2, in order.
    pub fn compile<R: Real>(&self, data: &Dataset, tell: &dyn Fn(usize, f64)) -> Result<Compiled<R>> {
        let (Tokens::Words { vocabulary, .. }, Labels::Classes { ids: labels, names }) = (&data.tokens, &data.labels)
        else {
            return Err(Error::request("gated units need words with classes", "use --method plateau or interpolate"));
        };
        let label_codes = label_codes(names, self.seed)?;
        let positions = self.positions(data, labels);
        // One more coordinate for the id, then those of the labels.
        let vectors = TokenVectors::new(data, &self.embedding, &positions, 1 + label_codes.cols, self.seed)?;
        // Definition 2: what attention can see of each token, and which labels that allows.
        let view = View::new(data, &vectors, self.mask);
        let agreement = view.contexts.agree(labels);
        // Lemmas 2 and 3: a projection that keeps differently labeled contexts apart.
        let groups = Groups::by_label(&view, &agreement.label);
        let found = search::search(&view, &groups, self.seed, self.candidates, tell);
        // Theorem 2: the ids.
        let ids = found.projection.ids(&view);
        let gap = groups.smallest_gap(|t| ids[t]).gap / standard_deviation(&ids);
        // Corollary 1: hidden units that turn ids into labels.
        let plan = Plan {
            view: &view,
            ids: &ids,
            label: &agreement.label,
            default: commonest(labels, names.len()),
            labels: names.len(),
            free: self.free,
            round: |x| R::from_f64(x).to_f64(),
        };
        let gated = plan.build()?;
        let model = self.assemble(&vectors, vocabulary, names, &label_codes, &found.projection, &gated);
        Ok(Compiled { model, gated, agreement, found, ids, gap })
    }

    /// Positions are used by default where contexts contradict each other without them.
    fn positions(&self, data: &Dataset, labels: &[u32]) -> Positions {
        if self.positions != Positions::Auto {
            return self.positions.clone();
        }
        let ids = data.token_ids();
        let conflicts =
            |positions| Contexts::new(&ids, &data.offsets, self.mask, positions).agree(labels).impossible.len();
        if conflicts(false) > conflicts(true) { Positions::Auto } else { Positions::None }
    }

    /// Codes, attention, hidden units and head as one model.
    fn assemble<R: Real>(
        &self,
        vectors: &TokenVectors,
        vocabulary: &Vocabulary,
        names: &Vocabulary,
        label_codes: &Matrix<f64>,
        projection: &Projection,
        gated: &Gated,
    ) -> Model<R> {
        let d = vectors.d();
        let (id, first_label) = (vectors.used, vectors.used + 1);
        let real = |x: f64| R::from_f64(x);
        let spread = |labels: &[(u32, f64)]| {
            let mut out = vec![0.0; label_codes.cols];
            for &(label, strength) in labels {
                out.iter_mut().zip(label_codes.row(label as usize)).for_each(|(o, c)| *o += strength * c);
            }
            out
        };
        let mut words = vocabulary.clone();
        let mut embedding = vectors.words.clone();
        if self.free {
            for (w, &label) in gated.base.iter().enumerate().filter(|&(_, &label)| label != gated.default.0) {
                embedding.row_mut(w)[first_label..].copy_from_slice(&spread(&[(label, 1.0)]));
            }
        }
        if self.unknown && words.get(UNKNOWN).is_none() {
            // No unit fires for the code 0.
            words.add(UNKNOWN);
            embedding.data.resize(embedding.data.len() + d, 0.0);
            embedding.rows += 1;
        }
        let v: Vec<R> = projection.v.iter().map(|&x| real(x)).collect();
        let queries: Vec<R> = projection.v.iter().map(|&x| real(projection.kappa * x)).collect();
        let w_o: Vec<R> = (0..d).map(|i| if i == id { R::ONE } else { R::ZERO }).collect();
        let q = gated.units.len();
        let mut block = FeedForward {
            w1: Matrix::new(q, d, vec![R::ZERO; q * d]),
            b1: gated.units.iter().map(|unit| real(unit.bias)).collect(),
            w2: Matrix::new(d, q, vec![R::ZERO; q * d]),
            b2: vec![R::ZERO; d],
        };
        for (j, unit) in gated.units.iter().enumerate() {
            let row = block.w1.row_mut(j);
            row.iter_mut().zip(&unit.code).for_each(|(w, &x)| *w = real(x));
            row[id] = real(unit.id);
            for (c, x) in spread(&unit.labels).into_iter().enumerate() {
                block.w2.row_mut(first_label + c)[j] = real(x);
            }
        }
        for (c, x) in spread(&[gated.default]).into_iter().enumerate() {
            block.b2[first_label + c] = real(x);
        }
        let feed_forward = (q > 0).then_some(block);
        let weight = Matrix::from_fn(names.len(), d, |l, i| {
            real(if i < first_label { 0.0 } else { label_codes.row(l)[i - first_label] })
        });
        Model {
            words: Some(Words { vocabulary: words, embedding: embedding.map(|&x| real(x)) }),
            positions: vectors.positions.as_ref().map(|p| p.map(|&x| real(x))),
            transformer: Transformer {
                d,
                pre_feed_forward: None,
                layers: vec![Layer {
                    attention: Some(Attention::rank_one(self.mask, &v, &queries, &w_o)),
                    feed_forward,
                }],
            },
            head: Some(Head { labels: names.names().to_vec(), weight, bias: vec![R::ZERO; names.len()] }),
            source: json!({}),
        }
    }
}

/// Up to so many labels get a coordinate each.
const ONE_HOT: usize = 16;
/// The dimension of sign codes for more labels.
const LABEL_DIMENSION: usize = 32;

/// A vector per label: a coordinate of its own, or a sign code where there are many.
fn label_codes(names: &Vocabulary, seed: u64) -> Result<Matrix<f64>> {
    if names.len() <= ONE_HOT {
        return Ok(Matrix::from_fn(names.len(), names.len(), |i, j| if i == j { 1.0 } else { 0.0 }));
    }
    Embedding::Sign(LABEL_DIMENSION).codes(names, seed)
}

/// The commonest of `count` labels; the first among equals.
fn commonest(labels: &[u32], count: usize) -> u32 {
    let mut counts = vec![0; count];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    (0..count as u32).max_by_key(|&l| (counts[l as usize], std::cmp::Reverse(l))).unwrap_or(0)
}
