//! A model: words or vectors in, labels or vectors out, a Transformer in between.

mod any_model;
pub mod certificate;
pub mod certificate_file;
mod decode;
pub mod directory;
pub mod exact;
pub mod exact_file;
pub mod explain;
pub mod forward;
pub mod mask_file;
pub mod names;
mod narrow;
pub mod onnx;
pub mod rank;
mod sequence_domain;
mod source;
pub mod sparse;
pub mod storage;
pub(crate) mod strict_json;
pub(crate) mod tensor_file;

use std::path::Path;

use crate::arithmetic::arg_max;
use crate::arithmetic::kernels::{self, Real};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::data::context::check_mask;
use crate::data::{Dataset, Labels, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::paper::attention;
use crate::paper::transformer::Transformer;
use sparse::Sparse;

pub use crate::data::Orderings;
pub use any_model::AnyModel;
pub use decode::{Generator, TokenFeed};
pub use forward::AttentionSums;
pub use names::ModelNames;
pub use sequence_domain::SequenceDomain;
pub use source::{Source, TextSource};
pub use storage::Storage;

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
    /// One vector per place, from 0, added to the token there. A start token takes place 0.
    pub positions: Option<Matrix<T>>,
    /// The layers.
    pub transformer: Transformer<T>,
    /// What turns outputs into labels, when outputs are labels.
    pub head: Option<LabelHead<T>>,
    /// What turns outputs into those of another dimension, where they have one.
    pub outputs: Option<OutputHead<T>>,
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
    /// The start token, where there is one: a word that every sequence is run behind. It has place 0 where positions are
    /// used, all tokens see it, and nothing is said of it.
    pub start: Option<u32>,
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

/// An affine map from the outputs of the Transformer to those of the model, which are of another dimension k.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputHead<T> {
    /// `k x d`.
    pub weight: Matrix<T>,
    /// k numbers.
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

    /// An error where a mask has no room for a sequence of a dataset.
    pub(crate) fn check_masks(&self, data: &Dataset) -> Result<()> {
        let attentions = self.transformer.layers.iter().filter_map(|layer| layer.attention.as_ref());
        attentions.map(|attention| &attention.mask).try_for_each(|mask| check_mask(data, mask))
    }

    /// The row of the start token, where there is one.
    pub fn start(&self) -> Option<u32> {
        self.words.as_ref().and_then(|words| words.start)
    }

    /// An error where there are too few positions for a sequence of a dataset and its start token.
    fn check_places(&self, data: &Dataset) -> Result<()> {
        let Some(positions) = &self.positions else { return Ok(()) };
        let most = positions.rows - usize::from(self.start().is_some());
        let Some(i) = (0..data.sequences()).find(|&i| data.range(i).len() > most) else { return Ok(()) };
        let mut place = data.location(data.offsets[i]);
        place.token = None;
        let behind = if self.start().is_some() { " behind its start token" } else { "" };
        Err(Error::data(
            place,
            format!("{} tokens where the model has {most} positions{behind}", data.range(i).len()),
            "split the sequence, or use a model with a larger max_length",
        ))
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
        crate::model::directory::write(self, dir.as_ref(), |_| Ok(()))
    }

    /// The scores of the labels, or the outputs, for each token of packed inputs: `each` sees the row of a token.
    /// The hidden units of compiled models are evaluated through their gates.
    pub fn run<O: Send>(&self, inputs: &Inputs<R>, each: impl Fn(usize, &[R]) -> O + Sync) -> Vec<O> {
        self.run_with(inputs, (self.sparse(inputs).as_ref(), AttentionSums::Plain), &|_| (), each)
    }

    /// Which hidden units can fire for which of the words, where that saves work.
    pub fn sparse(&self, inputs: &Inputs<R>) -> Option<Sparse<R>> {
        let InputTokens::Words(ids) = &inputs.tokens else { return None };
        let mut used = vec![false; self.words.as_ref()?.vocabulary.len()];
        ids.iter().for_each(|&id| used[id as usize] = true);
        // The table costs about as much as running all units on each word once.
        let few = ids.len() < 2 * used.iter().filter(|&&used| used).count();
        let long = inputs.offsets.windows(2).any(|ends| ends[1] - ends[0] > Sparse::<R>::most_tokens());
        if few || long { None } else { Sparse::of_words(self, &used) }
    }

    /// [`Self::run`] through the gates given, or with plain matrix products where there are none; `on_progress` hears how many
    /// more tokens are done.
    pub fn run_with<O: Send>(
        &self,
        inputs: &Inputs<R>,
        (sparse, sums): (Option<&Sparse<R>>, AttentionSums),
        on_progress: &(dyn Fn(usize) + Sync),
        each: impl Fn(usize, &[R]) -> O + Sync,
    ) -> Vec<O> {
        let all = forward::blocks(&inputs.offsets);
        let blocks = parallel::map(all.len(), |i| {
            let sequences = all[i].clone();
            let offsets = &inputs.offsets[sequences.start..=sequences.end];
            let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
            let mut h = self.embed(inputs, first, last);
            match (sparse, &inputs.tokens, &self.transformer.layers[..]) {
                (Some(sparse), InputTokens::Words(ids), [layer]) => {
                    if let Some(attention) = &layer.attention {
                        let d = self.transformer.d;
                        forward::attend_from(attention, d, (offsets, inputs.start), sums, &mut h);
                    }
                    if let Some(block) = &layer.feed_forward {
                        sparse.feed_forward(block, &ids[first..last], &mut h);
                    }
                }
                _ => forward::transform_from(&self.transformer, (offsets, inputs.start), sums, &mut h),
            }
            let own: Vec<_> = sequences.flat_map(|i| inputs.own(i)).collect();
            let out = self.read_rows(&h, first, &own, &each);
            on_progress(out.len());
            out
        });
        blocks.into_iter().flatten().collect()
    }

    /// What `each` makes of the tokens of a block: their numbers in the dataset and among the inputs, in order. Those of a long
    /// sequence are read out some at a time, on several threads: there may be many labels.
    fn read_rows<O: Send>(
        &self,
        h: &[R],
        first: usize,
        own: &[(usize, usize)],
        each: &(impl Fn(usize, &[R]) -> O + Sync),
    ) -> Vec<O> {
        let d = self.transformer.d;
        let some = |i: usize, h: &[R]| -> Vec<O> {
            let start = first + i * forward::BLOCK;
            let rows = self.read_out(h.to_vec());
            let width = rows.len() * d / h.len();
            let from = own.partition_point(|&(_, at)| at < start);
            let own = own[from..].iter().take_while(|&&(_, at)| at < start + h.len() / d);
            own.map(|&(t, at)| each(t, &rows[(at - start) * width..(at - start + 1) * width])).collect()
        };
        if h.len() <= forward::LONG * d {
            return some(0, h);
        }
        let parts = parallel::map_chunks(h, forward::BLOCK * d, some);
        parts.into_iter().flatten().collect()
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

    /// Runs the model on a dataset, with the sums of [`Self::sums_for`].
    pub fn predict(&self, data: &Dataset) -> Result<Predictions> {
        self.predict_with(data, self.sums_for(data), &|_| ())
    }

    /// The sums for a dataset: in linear time where sequences are long, plain where the model was computed from this dataset, for
    /// its certificate speaks of plain sums.
    pub fn sums_for(&self, data: &Dataset) -> AttentionSums {
        let linear = self.linear_sums(data);
        let computed = matches!(self.source, Source::Memorize { .. } | Source::Context { .. });
        let own = linear == AttentionSums::LinearTime && computed && self.source.data_hash() == Some(&data.hash());
        if own { AttentionSums::Plain } else { linear }
    }

    /// Linear time if some sequence of a dataset is so long that it is taken, and some head can take it.
    pub fn linear_sums(&self, data: &Dataset) -> AttentionSums {
        let linear = AttentionSums::LinearTime;
        let lengths = || data.ranges().map(|range| range.len() + usize::from(self.start().is_some()));
        let mut attentions = self.transformer.layers.iter().filter_map(|layer| layer.attention.as_ref());
        let changes = attentions.any(|attention| linear.changes(attention, lengths()));
        if changes { linear } else { AttentionSums::Plain }
    }

    /// The same with these sums; `on_progress` hears how many more tokens are done.
    pub fn predict_with(
        &self,
        data: &Dataset,
        sums: AttentionSums,
        on_progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Predictions> {
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
            let labels = self.run_with(&inputs, (sparse.as_ref(), sums), on_progress, |_, scores| {
                scores.iter().all(|x| x.finite()).then(|| arg_max(scores) as u32)
            });
            let bad = labels.iter().position(Option::is_none);
            bad.map_or_else(|| Ok(Predictions::Labels(labels.into_iter().flatten().collect())), |t| Err(overflow(t)))
        } else {
            let rows = self.run_with(&inputs, (sparse.as_ref(), sums), on_progress, |_, h| {
                h.iter().map(|x| x.to_f64()).collect::<Vec<f64>>()
            });
            if let Some(t) = rows.iter().position(|row| row.iter().any(|x| !x.is_finite())) {
                return Err(overflow(t));
            }
            let width = self.outputs.as_ref().map_or(self.transformer.d, |head| head.bias.len());
            Ok(Predictions::Outputs(Matrix::new(rows.len(), width, rows.concat())))
        }
    }

    /// What the head makes of packed outputs `[tokens, d]`: scores of labels, or outputs of another dimension.
    pub(crate) fn read_out(&self, h: Vec<R>) -> Vec<R> {
        match (&self.head, &self.outputs) {
            (Some(head), _) => head.scores(&h),
            (None, Some(head)) => affine(&head.weight, &head.bias, &h),
            (None, None) => h,
        }
    }

    /// The rows of the words of a dataset, lengths checked; nothing where the data or the model has vectors.
    pub(crate) fn word_rows(&self, data: &Dataset) -> Result<Option<Vec<u32>>> {
        self.check_masks(data)?;
        self.check_places(data)?;
        match (&data.tokens, &self.words) {
            (Tokens::Words { word_ids, vocabulary }, Some(words)) => {
                words.translate(data, word_ids, vocabulary).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A dataset as this model's input: words by their ids, vectors as they are, lengths checked.
    pub fn inputs(&self, data: &Dataset) -> Result<Inputs<R>> {
        self.check_masks(data)?;
        self.check_places(data)?;
        let start = self.start();
        let tokens = match (&data.tokens, &self.words) {
            (Tokens::Words { word_ids: ids, vocabulary }, Some(words)) => {
                InputTokens::Words(with_start(start, &words.translate(data, ids, vocabulary)?, &data.offsets))
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
        let starts = usize::from(start.is_some());
        let offsets = data.offsets.iter().enumerate().map(|(i, offset)| offset + i * starts).collect();
        Ok(Inputs { tokens, offsets, start: start.is_some() })
    }
}

/// Sequences of word ids, each behind the start token where there is one.
fn with_start(start: Option<u32>, ids: &[u32], offsets: &[usize]) -> Vec<u32> {
    offsets.windows(2).flat_map(|window| start.into_iter().chain(ids[window[0]..window[1]].iter().copied())).collect()
}

/// A dataset as a model's input.
#[derive(Debug, Clone)]
pub struct Inputs<R> {
    tokens: InputTokens<R>,
    /// Where each sequence begins, start tokens included.
    offsets: Vec<usize>,
    /// Whether each sequence begins with a start token.
    start: bool,
}

impl<R> Inputs<R> {
    /// The tokens of sequence `i` but for its start token: the number of each in the dataset, and among the inputs.
    fn own(&self, i: usize) -> impl Iterator<Item = (usize, usize)> + use<R> {
        let starts = usize::from(self.start);
        (self.offsets[i] + starts..self.offsets[i + 1]).map(move |at| (at - (i + 1) * starts, at))
    }
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
        affine(&self.weight, &self.bias, h)
    }
}

/// `W h + b` for packed `h`.
fn affine<R: Real>(weight: &Matrix<R>, bias: &[R], h: &[R]) -> Vec<R> {
    let d = weight.cols;
    let mut rows = vec![R::ZERO; h.len() / d * bias.len()];
    kernels::product(h, &weight.data, d, &mut rows, false, kernels::Parallelism::None);
    for row in rows.chunks_exact_mut(bias.len()) {
        row.iter_mut().zip(bias).for_each(|(s, &b)| *s += b);
    }
    rows
}

impl Predictions {
    /// Which of a dataset's tokens have the predicted label, or output to within `1e-6`; `None` where the two are not of a
    /// kind. A token whose label is free is not right, and not wrong either.
    pub fn right_tokens(&self, data: &Dataset, labels: Option<&[String]>) -> Option<Vec<bool>> {
        Some(match (self, &data.labels, labels) {
            (Self::Labels(predicted), Labels::Classes { label_ids: ids, names }, Some(labels)) => {
                let index: Vec<Option<u32>> =
                    names.names().iter().map(|n| labels.iter().position(|l| l == n).map(|i| i as u32)).collect();
                let right = |(&p, id): (&u32, &Option<u32>)| id.is_some_and(|id| index[id as usize] == Some(p));
                predicted.iter().zip(ids).map(right).collect()
            }
            (Self::Outputs(outputs), Labels::Vectors { d, data }, _) if *d == outputs.cols => outputs
                .iter_rows()
                .zip(data.chunks_exact(*d))
                .map(|(out, label)| out.iter().zip(label).all(|(a, b)| (a - b).abs() <= 1e-6))
                .collect(),
            _ => return None,
        })
    }

    /// How many tokens are right, as [`Self::right_tokens`] tells.
    pub fn right(&self, data: &Dataset, labels: Option<&[String]>) -> Option<usize> {
        Some(self.right_tokens(data, labels)?.into_iter().filter(|&right| right).count())
    }

    /// How many sequences have no labeled token that is wrong.
    pub fn sequences_right(&self, data: &Dataset, labels: Option<&[String]>) -> Option<usize> {
        let right = self.right_tokens(data, labels)?;
        Some(data.sequences_right(|t| right[t]))
    }

    /// The share of the labeled tokens that are right; `None` where all are free.
    pub fn accuracy(&self, data: &Dataset, labels: Option<&[String]>) -> Option<f64> {
        let labeled = data.tokens() - data.free();
        Some(self.right(data, labels)? as f64 / labeled as f64).filter(|_| labeled > 0)
    }
}
