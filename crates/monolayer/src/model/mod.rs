//! A model: words or vectors in, labels or vectors out, a Transformer in between.

mod any_model;
pub mod certificate;
pub mod certificate_file;
pub mod exact;
pub mod exact_file;
pub mod explain;
pub mod file;
pub mod forward;
pub mod rank;
mod source;
pub mod sparse;
mod strict_json;
pub(crate) mod tensor_file;

use std::path::Path;

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};
use crate::arithmetic::matrix::Matrix;
use crate::data::{Dataset, Labels, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::paper::attention;
use crate::paper::transformer::Transformer;
use sparse::Sparse;

pub use any_model::AnyModel;
pub use source::Source;

/// The name of the row for words that a model does not know.
pub const UNKNOWN: &str = "<unk>";

/// A Transformer with what turns a dataset into its input and its output into labels.
///
/// ```
/// use monolayer::{AnyModel, Dataset, Memorizer, Model, Precision};
///
/// let data = Dataset::open("task:reverse:alphabet=2,length=2")?;
/// let compiled = Memorizer::new().precision(Precision::F64).compile(&data)?;
/// let AnyModel::F64(model) = compiled.model() else { panic!("f64 was asked for") };
/// let model: &Model<f64> = model;
/// assert_eq!(model.transformer.layers[0].attention.as_ref().unwrap().heads[0].w_q.rows, 1);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Model<T> {
    /// The words, when inputs are words.
    pub words: Option<Words<T>>,
    /// One vector per place, from 0, added to the token there.
    pub positions: Option<Matrix<T>>,
    /// The layers.
    pub transformer: Transformer<T>,
    /// What turns outputs into labels, when outputs are labels.
    pub head: Option<LabelHead<T>>,
    /// How it was made.
    pub source: Source,
}

/// The words a model knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Words<T> {
    /// Their ids, the rows of the embedding.
    pub vocabulary: Vocabulary,
    /// Their vectors.
    pub embedding: Matrix<T>,
}

/// A linear map from outputs to a score per label. The label is the arg max; ties go to the lowest index.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelHead<T> {
    /// The label names.
    pub labels: Vec<String>,
    /// `labels x d`.
    pub weight: Matrix<T>,
    /// One number per label.
    pub bias: Vec<T>,
}

/// What a model says of each token of a dataset.
///
/// ```
/// use monolayer::{Dataset, Memorizer, Predictions};
///
/// let data = Dataset::from_sequences(&[["a", "b"]], &[["X", "Y"]])?;
/// let predictions = Memorizer::new().compile(&data)?.model().predict(&data)?;
/// assert_eq!(predictions, Predictions::Labels(vec![0, 1]));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Predictions {
    /// Labels, as indices into the model's.
    Labels(Vec<u32>),
    /// Output vectors.
    Outputs(Matrix<f64>),
}

impl<T: Clone + Default> Model<T> {
    /// The same model with `W_O = 0`.
    fn without_attention(&self) -> Self {
        self.with_heads(|head| head.w_o.data.fill(T::default()))
    }

    /// The same model with `W_Q = 0`.
    fn with_mean_pooling(&self) -> Self {
        self.with_heads(|head| head.w_q.data.fill(T::default()))
    }

    /// The same model with every attention head changed.
    fn with_heads(&self, change: impl Fn(&mut attention::AttentionHead<T>)) -> Self {
        let mut model = self.clone();
        let layers = model.transformer.layers.iter_mut();
        layers.flat_map(|layer| &mut layer.attention).flat_map(|attention| &mut attention.heads).for_each(change);
        model
    }
}

impl<R: Real> Model<R> {
    /// Writes a model directory, whole or not at all.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        crate::model::file::write(self, dir.as_ref(), |_| Ok(()))
    }

    /// The scores of the labels, or the outputs, for each token of packed inputs: `each` sees the row of a token.
    /// The hidden units of compiled models are evaluated through their gates.
    pub fn run<O: Send>(&self, inputs: &Inputs<R>, each: impl Fn(usize, &[R]) -> O + Sync) -> Vec<O> {
        self.run_with(inputs, self.sparse(inputs).as_ref(), &|_| (), each)
    }

    /// Which hidden units can fire for which of the words, where that saves work.
    pub fn sparse(&self, inputs: &Inputs<R>) -> Option<Sparse<R>> {
        let InputTokens::Words(ids) = &inputs.tokens else { return None };
        let mut used = vec![false; self.words.as_ref()?.vocabulary.len()];
        ids.iter().for_each(|&id| used[id as usize] = true);
        // The table costs about as much as running all units on each word once.
        if ids.len() < 2 * used.iter().filter(|&&used| used).count() { None } else { Sparse::new(self, &used) }
    }

    /// [`Self::run`] through the gates given, or with plain matrix products where there are none; `on_progress` hears how many
    /// more tokens are done.
    pub fn run_with<O: Send>(
        &self,
        inputs: &Inputs<R>,
        sparse: Option<&Sparse<R>>,
        on_progress: &(dyn Fn(usize) + Sync),
        each: impl Fn(usize, &[R]) -> O + Sync,
    ) -> Vec<O> {
        let blocks: Vec<Vec<O>> = forward::blocks(&inputs.offsets)
            .into_par_iter()
            .map(|sequences| {
                let offsets = &inputs.offsets[sequences.start..=sequences.end];
                let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
                let mut h = self.embed(inputs, first, last);
                match (sparse, &inputs.tokens, &self.transformer.layers[..]) {
                    (Some(sparse), InputTokens::Words(ids), [layer]) => {
                        if let Some(attention) = &layer.attention {
                            forward::attend(attention, self.transformer.d, offsets, &mut h);
                        }
                        if let Some(block) = &layer.feed_forward {
                            sparse.feed_forward(block, &ids[first..last], &mut h);
                        }
                    }
                    _ => forward::transform(&self.transformer, offsets, &mut h),
                }
                let rows = self.head.as_ref().map_or(h.clone(), |head| head.scores(&h));
                let width = rows.len() / (last - first);
                let out = rows.chunks_exact(width).enumerate().map(|(t, row)| each(first + t, row)).collect();
                on_progress(last - first);
                out
            })
            .collect();
        blocks.into_iter().flatten().collect()
    }

    /// The vectors of tokens `first..last`, positions added.
    pub(crate) fn embed(&self, inputs: &Inputs<R>, first: usize, last: usize) -> Vec<R> {
        let d = self.transformer.d;
        let mut h: Vec<R> = match (&inputs.tokens, &self.words) {
            (InputTokens::Words(ids), Some(words)) => {
                ids[first..last].iter().flat_map(|&id| words.embedding.row(id as usize)).copied().collect()
            }
            (InputTokens::Vectors(data), _) => data[first * d..last * d].to_vec(),
            (InputTokens::Words(_), None) => unreachable!("inputs were made for this model"),
        };
        if let Some(positions) = &self.positions {
            let mut sequence = inputs.offsets.partition_point(|&start| start <= first) - 1;
            for (t, row) in (first..last).zip(h.chunks_exact_mut(d)) {
                sequence += usize::from(inputs.offsets[sequence + 1] == t);
                let position = positions.row(t - inputs.offsets[sequence]);
                row.iter_mut().zip(position).for_each(|(h, &p)| *h += p);
            }
        }
        h
    }

    /// Runs the model on a dataset.
    pub fn predict(&self, data: &Dataset) -> Result<Predictions> {
        self.predict_with(data, &|_| ())
    }

    /// The same; `on_progress` hears how many more tokens are done.
    pub fn predict_with(&self, data: &Dataset, on_progress: &(dyn Fn(usize) + Sync)) -> Result<Predictions> {
        let inputs = self.inputs(data)?;
        let sparse = self.sparse(&inputs);
        let overflow = |t: usize| {
            Error::data(
                data.location(t),
                "the model's output there is not a finite number",
                "its weights overflow on this input; check the model, or use one in f64",
            )
        };
        if self.head.is_some() {
            let labels = self.run_with(&inputs, sparse.as_ref(), on_progress, |_, scores| {
                scores.iter().all(|x| x.finite()).then(|| arg_max(scores))
            });
            let bad = labels.iter().position(Option::is_none);
            bad.map_or_else(|| Ok(Predictions::Labels(labels.into_iter().flatten().collect())), |t| Err(overflow(t)))
        } else {
            let rows = self.run_with(&inputs, sparse.as_ref(), on_progress, |_, h| {
                h.iter().map(|x| x.to_f64()).collect::<Vec<f64>>()
            });
            if let Some(t) = rows.iter().position(|row| row.iter().any(|x| !x.is_finite())) {
                return Err(overflow(t));
            }
            Ok(Predictions::Outputs(Matrix::new(rows.len(), self.transformer.d, rows.concat())))
        }
    }

    /// A dataset as this model's input: words by their ids, vectors as they are, lengths checked.
    pub fn inputs(&self, data: &Dataset) -> Result<Inputs<R>> {
        if let Some(positions) = &self.positions
            && let Some(i) = (0..data.sequences()).find(|&i| data.range(i).len() > positions.rows)
        {
            let mut place = data.location(data.offsets[i]);
            place.token = None;
            return Err(Error::data(
                place,
                format!("{} tokens where the model has {} positions", data.range(i).len(), positions.rows),
                "split the sequence, or use a model with a larger max_length",
            ));
        }
        let tokens = match (&data.tokens, &self.words) {
            (Tokens::Words { word_ids: ids, vocabulary }, Some(words)) => {
                InputTokens::Words(words.translate(data, ids, vocabulary)?)
            }
            (Tokens::Vectors { d, data: vectors }, None) if *d == self.transformer.d => {
                InputTokens::Vectors(vectors.iter().map(|&x| R::from_f64(x)).collect())
            }
            (Tokens::Vectors { d, .. }, None) => {
                return Err(Error::data(
                    data.location(0),
                    format!("vectors of dimension {d} where the model takes dimension {}", self.transformer.d),
                    "give it data of its own dimension",
                ));
            }
            (Tokens::Words { .. }, None) => {
                return Err(Error::data(
                    data.location(0),
                    "words, but the model takes vectors",
                    "it has no vocabulary.json; give it JSON lines or arrays of vectors",
                ));
            }
            (Tokens::Vectors { .. }, Some(_)) => {
                return Err(Error::data(
                    data.location(0),
                    "vectors, but the model takes words",
                    "give it a dataset of words",
                ));
            }
        };
        Ok(Inputs { tokens, offsets: data.offsets.clone() })
    }
}

/// The first largest entry.
fn arg_max<R: Real>(scores: &[R]) -> u32 {
    (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best }) as u32
}

/// A dataset as a model's input.
#[derive(Debug, Clone)]
pub struct Inputs<R> {
    tokens: InputTokens<R>,
    offsets: Vec<usize>,
}

#[derive(Debug, Clone)]
enum InputTokens<R> {
    Words(Vec<u32>),
    Vectors(Vec<R>),
}

impl<T> Words<T> {
    /// A dataset's word ids as this model's; unknown words get the `<unk>` row, or are an error where there is none.
    fn translate(&self, data: &Dataset, ids: &[u32], vocabulary: &Vocabulary) -> Result<Vec<u32>> {
        let unknown = self.vocabulary.get(UNKNOWN);
        let rows: Vec<Option<u32>> =
            vocabulary.names().iter().map(|word| self.vocabulary.get(word).or(unknown)).collect();
        let row = |(t, &id): (usize, &u32)| {
            rows[id as usize].ok_or_else(|| {
                Error::data(
                    data.location(t),
                    format!("the model does not know the word {:?}", vocabulary.name(id)),
                    "it has no \"<unk>\" row; use data with its own words, or make it with `unknown`",
                )
            })
        };
        ids.iter().enumerate().map(row).collect()
    }
}

impl<R: Real> LabelHead<R> {
    /// The scores of packed outputs `[tokens, d]`: `[tokens, labels]`.
    pub(crate) fn scores(&self, h: &[R]) -> Vec<R> {
        let (d, labels) = (self.weight.cols, self.labels.len());
        let mut scores = vec![R::ZERO; h.len() / d * labels];
        kernels::product(h, &self.weight.data, d, &mut scores, false, kernels::Parallelism::None);
        for row in scores.chunks_exact_mut(labels) {
            row.iter_mut().zip(&self.bias).for_each(|(s, &b)| *s += b);
        }
        scores
    }
}

impl Predictions {
    /// How many of a dataset's tokens have the predicted label, or output to within `1e-6`; `None` where the two are not of a
    /// kind.
    pub fn right(&self, data: &Dataset, labels: Option<&[String]>) -> Option<usize> {
        Some(match (self, &data.labels, labels) {
            (Self::Labels(predicted), Labels::Classes { label_ids: ids, names }, Some(labels)) => {
                let index: Vec<Option<u32>> =
                    names.names().iter().map(|n| labels.iter().position(|l| l == n).map(|i| i as u32)).collect();
                predicted.iter().zip(ids).filter(|&(&p, &id)| index[id as usize] == Some(p)).count()
            }
            (Self::Outputs(outputs), Labels::Vectors { d, data }, _) if *d == outputs.cols => outputs
                .iter_rows()
                .zip(data.chunks_exact(*d))
                .filter(|(out, label)| out.iter().zip(*label).all(|(a, b)| (a - b).abs() <= 1e-6))
                .count(),
            _ => return None,
        })
    }

    /// The share of tokens that are right, as [`Self::right`] counts them.
    pub fn accuracy(&self, data: &Dataset, labels: Option<&[String]>) -> Option<f64> {
        Some(self.right(data, labels)? as f64 / data.tokens() as f64)
    }
}
