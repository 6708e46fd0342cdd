//! What labels are as outputs of a feed-forward block: vectors are themselves, classes are points with a head that finds the
//! nearest.

use std::borrow::Cow;

use crate::arithmetic::matrix::Matrix;
use crate::data::{Dataset, Labels, Vocabulary};
use crate::error::{Error, Location, Result};
use crate::memorize::model_labels;
use crate::model::{LabelHead, OutputHead};

/// What the labels of a dataset are as outputs.
pub(in crate::memorize) enum Outputs<'a> {
    /// Vectors: themselves, and zeros where the Transformer has more coordinates.
    Vectors(Matrix<f64>),
    /// Classes: points of a grid, and a head that finds the nearest.
    Classes(Cow<'a, Vocabulary>),
}

/// The number of each token's label, none where any will do, and what labels are as outputs.
pub(in crate::memorize) fn labels_and_outputs(data: &Dataset) -> Result<(Vec<Option<u32>>, Outputs<'_>)> {
    match &data.labels {
        Labels::None => {
            Err(Error::data(Location::file(&data.name), "it has no labels", "memorizing needs a label for every token"))
        }
        Labels::Classes { label_ids, names } => Ok((label_ids.clone(), Outputs::Classes(model_labels(names)))),
        Labels::Vectors { d, data: vectors } => {
            let (ids, first) = crate::data::context::distinct_rows(*d, vectors);
            let rows = first.iter().flat_map(|&t| &vectors[t * d..(t + 1) * d]).copied().collect();
            Ok((ids.into_iter().map(Some).collect(), Outputs::Vectors(Matrix::new(first.len(), *d, rows))))
        }
    }
}

impl Outputs<'_> {
    /// The output of each label in dimension d. Classes get the unit vectors if there are enough, else the corners of the
    /// smallest grid of whole numbers with enough of them, around 0.
    pub fn points(&self, d: usize) -> Matrix<f64> {
        match self {
            Self::Vectors(points) => {
                Matrix::from_fn(points.rows, d, |l, i| points.row(l).get(i).copied().unwrap_or(0.0))
            }
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

    /// How many coordinates outputs need: as many as vectors have, and one for classes.
    pub fn dimension(&self) -> usize {
        if let Self::Vectors(points) = self { points.cols } else { 1 }
    }

    /// The head that leaves the first coordinates, where vectors have fewer than d.
    pub fn output_head(&self, d: usize) -> Option<OutputHead<f64>> {
        let Self::Vectors(points) = self else { return None };
        let k = points.cols;
        let weight = || Matrix::from_fn(k, d, |i, j| if i == j { 1.0 } else { 0.0 });
        (k != d).then(|| OutputHead { weight: weight(), bias: vec![0.0; k] })
    }

    /// The head that finds the nearest point: `c . y - |c|^2 / 2` is largest for the nearest c.
    pub fn head(&self, points: &Matrix<f64>) -> Option<LabelHead<f64>> {
        let Self::Classes(names) = self else { return None };
        let bias = points.iter_rows().map(|c| -c.iter().map(|x| x * x).sum::<f64>() / 2.0).collect();
        Some(LabelHead { labels: names.names().to_vec(), weight: points.clone(), bias })
    }
}
