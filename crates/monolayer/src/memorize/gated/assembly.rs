//! Codes, attention, hidden units and head as one model.

use super::Gated;
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::context_map::ContextMap;
use crate::data::Vocabulary;
use crate::data::embedding::Embedding;
use crate::data::token_vectors::TokenVectors;
use crate::error::Result;
use crate::model::{LabelHead, Model, Source, UNKNOWN, Words};
use crate::paper::attention::Attention;
use crate::paper::feed_forward::FeedForward;
use crate::paper::mask::Mask;
use crate::paper::transformer::{Layer, Transformer};

/// What a gated model is made of, but for its hidden units.
pub struct Assembly<'a> {
    /// The codes of words and places.
    pub vectors: &'a TokenVectors,
    /// The attention layer.
    pub map: &'a ContextMap,
    /// Which tokens a query sees.
    pub mask: &'a Mask,
    /// The words.
    pub vocabulary: &'a Vocabulary,
    /// The name of the start token, where there is one.
    pub start: Option<&'a str>,
    /// The labels.
    pub names: &'a Vocabulary,
    /// A vector per label.
    pub label_codes: &'a Matrix<f64>,
    /// The commonest label.
    pub default: u32,
    /// Whether the embedding carries the base labels of words.
    pub free: bool,
    /// Whether there is a row for unknown words.
    pub unknown: bool,
    /// How many spare units there are to be.
    pub spare: usize,
    /// How the model was made.
    pub source: Source,
}

impl Assembly<'_> {
    /// The model.
    pub fn model<R: Real>(&self, gated: &Gated) -> Model<R> {
        let map = self.map;
        let real = |x: f64| R::from_f64(x);
        let [v, queries, w_o] = [&map.v, &map.v_q, &map.w].map(|row| row.iter().map(|&x| real(x)).collect::<Vec<R>>());
        Model {
            words: Some(self.words(gated)),
            positions: self.vectors.positions.as_ref().map(|p| p.map(|&x| real(x))),
            transformer: Transformer {
                d: self.vectors.d(),
                pre_feed_forward: None,
                layers: vec![Layer {
                    attention: Some(Attention::rank_one(self.mask.clone(), &v, &queries, &w_o)),
                    feed_forward: (gated.units.len() + self.spare > 0).then(|| self.block(gated)),
                }],
            },
            head: Some(self.head(gated)),
            outputs: None,
            source: self.source.clone(),
        }
    }

    /// The words with their codes, and labels in them where the embedding is free.
    fn words<R: Real>(&self, gated: &Gated) -> Words<R> {
        let vectors = self.vectors;
        let (d, first_label) = (vectors.d(), vectors.used + 1);
        let mut vocabulary = self.vocabulary.clone();
        let mut embedding = vectors.words.map(|&x| R::from_f64(x));
        if self.free {
            for (w, &label) in gated.base.iter().enumerate().filter(|&(_, &label)| label != self.default) {
                let code = self.label_codes.row(label as usize);
                embedding.row_mut(w)[first_label..].iter_mut().zip(code).for_each(|(x, &c)| *x = R::from_f64(c));
            }
        }
        // Units may fire for the start token: nothing is said of it.
        let start = self.start.map(|name| vocabulary.add(name));
        embedding.data.extend(vectors.start.iter().flatten().map(|&x| R::from_f64(x)));
        embedding.rows = vocabulary.len();
        if self.unknown && vocabulary.get(UNKNOWN).is_none() {
            // No unit fires for the code 0.
            vocabulary.add(UNKNOWN);
            embedding.data.resize(embedding.data.len() + d, R::ZERO);
            embedding.rows += 1;
        }
        Words { vocabulary, embedding, start }
    }

    /// The hidden units: each reads codes and the context id, and writes to the coordinates of labels. Spare ones are last.
    fn block<R: Real>(&self, gated: &Gated) -> FeedForward<R> {
        let (d, q) = (self.vectors.d(), gated.units.len() + self.spare);
        let (id, first_label) = (self.vectors.used, self.vectors.used + 1);
        let real = |x: f64| R::from_f64(x);
        let mut block = FeedForward {
            w1: Matrix::new(q, d, vec![R::ZERO; q * d]),
            b1: gated.units.iter().map(|unit| real(unit.bias)).chain(vec![R::ZERO; self.spare]).collect(),
            w2: Matrix::new(d, q, vec![R::ZERO; q * d]),
            b2: vec![R::ZERO; d],
        };
        for (j, unit) in gated.units.iter().enumerate() {
            let row = block.w1.row_mut(j);
            row.iter_mut().zip(&*unit.code).for_each(|(w, &x)| *w = real(x));
            row[id] = real(unit.id);
            for (c, &x) in unit.output.iter().enumerate() {
                block.w2.row_mut(first_label + c)[j] = real(x);
            }
        }
        block
    }

    /// A score per label: how much of its code there is. The default label wins where nothing else is said.
    fn head<R: Real>(&self, gated: &Gated) -> LabelHead<R> {
        let (label_codes, first_label) = (self.label_codes, self.vectors.used + 1);
        let real = |x: f64| R::from_f64(x);
        let bias = label_codes.iter_rows().map(|code| real(code.iter().zip(&gated.default).map(|(c, x)| c * x).sum()));
        let weight = Matrix::from_fn(self.names.len(), self.vectors.d(), |l, i| {
            real(if i < first_label { 0.0 } else { label_codes.row(l)[i - first_label] })
        });
        LabelHead { labels: self.names.names().to_vec(), bias: bias.collect(), weight }
    }
}

/// Up to so many labels get a coordinate each.
const ONE_HOT: usize = 16;
/// The dimension of sign codes for more labels.
const LABEL_DIMENSION: usize = 32;

/// A vector per label: a coordinate of its own, or a sign code where there are many.
pub fn label_codes(names: &Vocabulary, seed: u64) -> Result<Matrix<f64>> {
    if names.len() <= ONE_HOT {
        return Ok(Matrix::from_fn(names.len(), names.len(), |i, j| if i == j { 1.0 } else { 0.0 }));
    }
    Embedding::Sign(LABEL_DIMENSION).codes(names, seed)
}
