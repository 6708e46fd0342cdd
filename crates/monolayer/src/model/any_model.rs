//! A model in any of the three kinds of numbers, with what can be asked of it whatever they are.

use std::borrow::Cow;
use std::path::Path;

use dashu_ratio::RBig;

use super::directory::{self, Config};
use super::exact::{self, map_model};
use super::explain::{Explanation, Neighbor, Trace};
use super::source::Source;
use super::{AttentionSums, Model, Predictions, Storage, exact_file};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::data::context::START;
use crate::data::{Dataset, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::paper::feed_forward::FeedForward;

/// A model in single or double precision, or with exact numbers.
///
/// ```
/// use monolayer::{AnyModel, Dataset, Memorizer};
///
/// let data = Dataset::open("task:reverse:alphabet=2,length=3")?;
/// let compiled = Memorizer::new().compile(&data)?;
/// let model: &AnyModel = compiled.model();
/// assert_eq!(model.config().layers.len(), 1);
/// assert_eq!(model.right(&data)?, Some(data.tokens()));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum AnyModel {
    /// Single precision.
    F32(Model<f32>),
    /// Double precision.
    F64(Model<f64>),
    /// Rational numbers. The model is evaluated in exact arithmetic, which fails where an output is irrational.
    Exact(Model<RBig>),
}

/// Calls the same code on the model, whatever its numbers are.
macro_rules! with_model {
    ($any:expr, $model:ident => $body:expr) => {
        match $any {
            $crate::model::AnyModel::F32($model) => $body,
            $crate::model::AnyModel::F64($model) => $body,
            $crate::model::AnyModel::Exact($model) => $body,
        }
    };
}

/// Calls the same code on a model of floats, and other code on an exact one.
macro_rules! with_floats {
    ($any:expr, $model:ident => $body:expr, $exact:ident => $other:expr) => {
        match $any {
            $crate::model::AnyModel::F32($model) => $body,
            $crate::model::AnyModel::F64($model) => $body,
            $crate::model::AnyModel::Exact($exact) => $other,
        }
    };
}

impl From<Model<f32>> for AnyModel {
    fn from(model: Model<f32>) -> Self {
        Self::F32(model)
    }
}

impl From<Model<f64>> for AnyModel {
    fn from(model: Model<f64>) -> Self {
        Self::F64(model)
    }
}

impl From<Model<RBig>> for AnyModel {
    fn from(model: Model<RBig>) -> Self {
        Self::Exact(model)
    }
}

impl AnyModel {
    /// Reads a model directory.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        directory::read(dir.as_ref())
    }

    /// Writes a model directory, whole or not at all.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.save_with(dir, |_| Ok(()))
    }

    /// The same; `more` may add files to the directory.
    pub fn save_with(&self, dir: impl AsRef<Path>, more: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.save_as(Storage::Auto, dir, more)
    }

    /// The same, with the numbers stored in a given way. Exact numbers are written in full.
    pub fn save_as(
        &self,
        storage: Storage,
        dir: impl AsRef<Path>,
        more: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        let dir = dir.as_ref();
        with_floats!(self, model => directory::write_as(model, storage, dir, more), model => exact_file::write(model, dir, more))
    }

    /// The bytes of an ONNX file that computes the same; see [`super::onnx`].
    pub fn onnx(&self) -> Result<Vec<u8>> {
        with_floats!(self, model => Ok(super::onnx::onnx(model)), _model => Err(not_floats()))
    }

    /// What config.json says of it.
    pub fn config(&self) -> Config {
        with_floats!(self, model => directory::config(model), model => directory::config_as(model, exact_file::DTYPE))
    }

    /// How many numbers it is made of.
    pub fn parameters(&self) -> usize {
        with_model!(self, model => directory::tensors(model).iter().map(|(_, _, data)| data.len()).sum())
    }

    /// How many of them are not 0.
    pub fn nonzero_parameters(&self) -> usize {
        with_floats!(
            self,
            model => directory::tensors(model).iter().flat_map(|(_, _, data)| data.iter()).filter(|&&x| x != 0.0).count(),
            model => directory::tensors(model).iter().flat_map(|(_, _, data)| data.iter()).filter(|x| !x.is_zero()).count()
        )
    }

    /// The names, shapes and numbers of its tensors, the numbers in double precision.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>, Vec<f64>)> {
        let own = |(name, shape, data): (_, _, Cow<[f64]>)| (name, shape, data.into_owned());
        directory::tensors(&self.widened()).into_iter().map(own).collect()
    }

    /// How many hidden units at the end of its last layer are spare: all of their weights are 0, and edits fill them.
    pub fn spare_units(&self) -> usize {
        fn spare<T: Clone + Default + PartialEq>(model: &Model<T>) -> usize {
            let block = model.transformer.layers.last().and_then(|layer| layer.feed_forward.as_ref());
            block.map_or(0, FeedForward::spare_units)
        }
        with_model!(self, model => spare(model))
    }

    /// The names of its labels, where outputs are labels.
    pub fn label_names(&self) -> Option<&[String]> {
        with_model!(self, model => model.head.as_ref().map(|head| &head.labels[..]))
    }

    /// The words it knows, where inputs are words.
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        with_model!(self, model => model.words.as_ref().map(|words| &words.vocabulary))
    }

    /// The id of its start token among those of a dataset's tokens, where it has one.
    pub fn start_in(&self, data: &Dataset) -> Option<u32> {
        let start = with_model!(self, model => model.start())?;
        let known = if let Tokens::Words { vocabulary, .. } = &data.tokens { Some(vocabulary) } else { None };
        known.zip(self.vocabulary()).and_then(|(data, own)| data.get(own.name(start))).or(Some(START))
    }

    /// The rows of the words of a dataset, lengths checked; nothing where the data or the model has vectors.
    pub(crate) fn word_rows(&self, data: &Dataset) -> Result<Option<Vec<u32>>> {
        with_floats!(self, model => model.word_rows(data), _model => Ok(None))
    }

    /// The same numbers in double precision; exact ones are rounded.
    pub fn widened(&self) -> Model<f64> {
        with_floats!(
            self,
            model => map_model(model, |&x| Real::to_f64(x)),
            model => map_model(model, |x| x.to_f64().value())
        )
    }

    /// How it was made.
    pub fn source(&self) -> &Source {
        with_model!(self, model => &model.source)
    }

    pub(crate) fn source_mut(&mut self) -> &mut Source {
        with_model!(self, model => &mut model.source)
    }

    /// The same model with `W_O = 0`: what it knows without attention.
    #[must_use]
    pub fn without_attention(&self) -> Self {
        with_model!(self, model => model.without_attention().into())
    }

    /// The same model with `W_Q = 0`: every query sees the mean of its values.
    #[must_use]
    pub fn with_mean_pooling(&self) -> Self {
        with_model!(self, model => model.with_mean_pooling().into())
    }

    /// Runs the model on a dataset, with the sums of [`Self::sums_for`].
    pub fn predict(&self, data: &Dataset) -> Result<Predictions> {
        self.predict_with(data, &|_| ())
    }

    /// The same; `on_progress` hears how many more tokens are done.
    pub fn predict_with(&self, data: &Dataset, on_progress: &(dyn Fn(usize) + Sync)) -> Result<Predictions> {
        self.predict_by(data, self.sums_for(data), on_progress)
    }

    /// How attention is computed on a dataset: in linear time where sequences are long, by plain sums where the model was
    /// computed from this dataset, for its certificate speaks of plain sums. Exact models know no other.
    pub fn sums_for(&self, data: &Dataset) -> AttentionSums {
        with_floats!(self, model => model.sums_for(data), _model => AttentionSums::Plain)
    }

    /// Linear time if some sequence of a dataset is so long that it is taken, and some head can take it.
    pub fn linear_sums(&self, data: &Dataset) -> AttentionSums {
        with_floats!(self, model => model.linear_sums(data), _model => AttentionSums::Plain)
    }

    /// Runs the model on a dataset with these sums; `on_progress` hears how many more tokens are done.
    pub fn predict_by(
        &self,
        data: &Dataset,
        sums: AttentionSums,
        on_progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Predictions> {
        with_floats!(self, model => model.predict_with(data, sums, on_progress), model => predict_exactly(model, data))
    }

    /// How many tokens of a dataset get their label; `None` where the data has no labels of the model's kind.
    pub fn right(&self, data: &Dataset) -> Result<Option<usize>> {
        Ok(self.predict(data)?.right(data, self.label_names()))
    }

    /// What happens to each token of a dataset's sequence `i`.
    pub fn trace(&self, data: &Dataset, i: usize) -> Result<Vec<Trace>> {
        with_floats!(self, model => model.trace(data, i), _model => Err(not_floats()))
    }

    /// What happens to each token of a dataset's sequence `i`, and why.
    pub fn explain(&self, data: &Dataset, i: usize) -> Result<Vec<Explanation>> {
        with_floats!(self, model => model.explain(data, i), _model => Err(not_floats()))
    }

    /// See [`Model::neighbors`].
    pub fn neighbors(&self, sentence: &Dataset, token: usize, id: f64, data: &Dataset) -> Result<Vec<Neighbor>> {
        with_floats!(self, model => model.neighbors(sentence, token, id, data), _model => Err(not_floats()))
    }
}

/// Labels, or outputs rounded to double precision, by exact arithmetic.
fn predict_exactly(model: &Model<RBig>, data: &Dataset) -> Result<Predictions> {
    if model.head.is_some() {
        return Ok(Predictions::Labels(exact::labels(model, data)?));
    }
    let rows = exact::outputs(model, data)?;
    let numbers = rows.iter().flatten().map(|x| x.to_f64().value()).collect();
    let width = model.outputs.as_ref().map_or(model.transformer.d, |head| head.bias.len());
    Ok(Predictions::Outputs(Matrix::new(rows.len(), width, numbers)))
}

fn not_floats() -> Error {
    Error::mismatch("explanations are made in floats, and this model is exact", "take one in f32 or f64")
}
