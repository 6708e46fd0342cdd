//! A model in either precision, with what can be asked of it whatever that is.

use std::path::Path;

use serde_json::Value;

use super::exact::map_model;
use super::explain::{Neighbor, Trace};
use super::file::{self, Config};
use super::{Model, Predictions};
use crate::arithmetic::kernels::Real;
use crate::data::{Dataset, Vocabulary};
use crate::error::Result;

/// A model in either precision.
///
/// ```
/// use monolayer::{AnyModel, Dataset, memorize::Memorizer};
///
/// let data = Dataset::open("task:reverse:alphabet=2,length=3")?;
/// let model: AnyModel = Memorizer::default().compile(&data, &|_, _| ())?.model;
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
}

/// Calls the same code on the model in whatever precision it has.
macro_rules! with_model {
    ($any:expr, $model:ident => $body:expr) => {
        match $any {
            $crate::model::AnyModel::F32($model) => $body,
            $crate::model::AnyModel::F64($model) => $body,
        }
    };
}
pub(crate) use with_model;

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

impl AnyModel {
    /// Reads a model directory.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        file::read(dir.as_ref())
    }

    /// Writes a model directory, whole or not at all.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        with_model!(self, model => model.save(dir))
    }

    /// What config.json says of it.
    pub fn config(&self) -> Config {
        with_model!(self, model => file::config(model))
    }

    /// How many numbers it is made of.
    pub fn parameters(&self) -> usize {
        with_model!(self, model => file::tensors(model).iter().map(|(_, _, data)| data.len()).sum())
    }

    /// How many of them are not 0.
    pub fn nonzero_parameters(&self) -> usize {
        with_model!(self, model => {
            file::tensors(model).iter().flat_map(|(_, _, data)| data).filter(|&&x| x != 0.0).count()
        })
    }

    /// The names, shapes and numbers of its tensors, the numbers in double precision.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>, Vec<f64>)> {
        with_model!(self, model => {
            let wide = |data: Vec<_>| data.into_iter().map(Real::to_f64).collect();
            file::tensors(model).into_iter().map(|(name, shape, data)| (name, shape, wide(data))).collect()
        })
    }

    /// The names of its labels, where outputs are labels.
    pub fn label_names(&self) -> Option<&[String]> {
        with_model!(self, model => model.head.as_ref().map(|head| &head.labels[..]))
    }

    /// The words it knows, where inputs are words.
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        with_model!(self, model => model.words.as_ref().map(|words| &words.vocabulary))
    }

    /// The same numbers in double precision.
    pub fn widened(&self) -> Model<f64> {
        with_model!(self, model => map_model(model, |&x| Real::to_f64(x)))
    }

    /// How it was made.
    pub fn source(&self) -> &Value {
        with_model!(self, model => &model.source)
    }

    /// The same model with `W_O = 0`: what it knows without attention.
    #[must_use]
    pub fn without_attention(&self) -> Self {
        with_model!(self, model => model.with_heads(|head| head.w_o.data.fill(Default::default())).into())
    }

    /// The same model with `W_Q = 0`: every query sees the mean of its values.
    #[must_use]
    pub fn with_mean_pooling(&self) -> Self {
        with_model!(self, model => model.with_heads(|head| head.w_q.data.fill(Default::default())).into())
    }

    /// Runs the model on a dataset.
    pub fn predict(&self, data: &Dataset) -> Result<Predictions> {
        self.predict_with(data, &|_| ())
    }

    /// The same; `on_progress` hears how many more tokens are done.
    pub fn predict_with(&self, data: &Dataset, on_progress: &(dyn Fn(usize) + Sync)) -> Result<Predictions> {
        with_model!(self, model => model.predict_with(data, on_progress))
    }

    /// How many tokens of a dataset get their label; `None` where labels are not classes.
    pub fn right(&self, data: &Dataset) -> Result<Option<usize>> {
        Ok(self.predict(data)?.right(data, self.label_names()))
    }

    /// What happens to each token of a dataset's sequence `i`.
    pub fn trace(&self, data: &Dataset, i: usize) -> Result<Vec<Trace>> {
        with_model!(self, model => model.trace(data, i))
    }

    /// See [`Model::neighbors`].
    pub fn neighbors(&self, sentence: &Dataset, token: usize, id: f64, data: &Dataset) -> Result<Vec<Neighbor>> {
        with_model!(self, model => model.neighbors(sentence, token, id, data))
    }
}
