//! A dataset, from what Python has in memory or from a file.

use std::collections::HashMap;
use std::str::FromStr as _;

use monolayer::data::{DataOptions, LabelAt, Names, Orderings, Split, Written};
use monolayer::{Labels, Tokens, Vocabulary};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::job::MonolayerError;

/// The integer that stands for a label that may be anything.
const FREE: i64 = -100;

/// Sequences of tokens, with labels or without.
#[pyclass(frozen, module = "monolayer._native")]
pub struct Dataset {
    pub data: monolayer::Dataset,
}

/// An error of the library as an exception.
pub fn said<T>(result: monolayer::Result<T>) -> PyResult<T> {
    result.map_err(|error| MonolayerError::new_err(error.to_string()))
}

#[pymethods]
impl Dataset {
    /// All tokens and labels in one row, and how many tokens each sequence has. Words and classes are lists of strings, `None`
    /// for a label that may be anything, or arrays of integers, -100 for such a label; vectors are arrays [tokens, d]. With
    /// `all_orders` every sequence stands for all its orderings.
    #[new]
    #[pyo3(signature = (tokens, lengths, labels=None, *, all_orders=false))]
    fn new(
        tokens: &Bound<'_, PyAny>,
        lengths: Vec<usize>,
        labels: Option<&Bound<'_, PyAny>>,
        all_orders: bool,
    ) -> PyResult<Self> {
        let mut offsets = vec![0];
        for (i, &length) in lengths.iter().enumerate() {
            if length == 0 {
                return Err(MonolayerError::new_err(format!("sequence {}: no tokens; leave it out", i + 1)));
            }
            offsets.push(offsets[i] + length);
        }
        let total = offsets[lengths.len()];
        if total == 0 {
            return Err(MonolayerError::new_err("no sequences; give at least one"));
        }
        let (tokens, token_names) = tokens_of(tokens)?;
        let (labels, label_names) = labels.map_or(Ok((Labels::None, Names::Strings)), labels_of)?;
        check(total, count(&tokens), "tokens")?;
        labeled(&labels).map_or(Ok(()), |labels| check(total, labels, "labels"))?;
        let written = Written { tokens: token_names, labels: label_names };
        let orderings = if all_orders { Orderings::All } else { Orderings::Given };
        let name = "<memory>".to_owned();
        let data = monolayer::Dataset {
            name,
            tokens,
            labels,
            offsets,
            lines: Vec::new(),
            warnings: Vec::new(),
            written,
            orderings,
        };
        Ok(Self { data })
    }

    /// A file, or a task by its name, read as the command line reads it.
    #[staticmethod]
    #[pyo3(signature = (source, *, format=None, columns=None, tokens_from=None, labels_from=None, sentence=None, documents=false, label_at=None, padding=None))]
    #[allow(clippy::too_many_arguments, reason = "one keyword for each option of a file")]
    fn open(
        py: Python<'_>,
        source: &str,
        format: Option<&str>,
        columns: Option<Vec<String>>,
        tokens_from: Option<String>,
        labels_from: Option<String>,
        sentence: Option<&str>,
        documents: bool,
        label_at: Option<&str>,
        padding: Option<String>,
    ) -> PyResult<Self> {
        let columns = columns.unwrap_or_default().into_iter().map(|column| column.parse());
        let options = DataOptions {
            format: said(format.map(monolayer::data::Format::from_str).transpose())?,
            columns: said(columns.collect())?,
            tokens_from,
            labels_from,
            sentence: said(sentence.map(str::parse).transpose())?,
            documents,
            label_at: said(label_at.map(LabelAt::from_str).transpose())?,
            padding,
            most_bytes: None,
        };
        let reading = said(py.detach(|| monolayer::Dataset::open_with(source, &options)))?;
        Ok(Self { data: reading.data })
    }

    /// A text to recite: the label of each token is the token that follows it.
    #[staticmethod]
    fn text(text: &str, split: &str) -> PyResult<Self> {
        let split = said(Split::from_str(split))?;
        Ok(Self { data: said(monolayer::Dataset::from_text(text, split))? })
    }

    /// How many sequences there are.
    #[getter]
    fn sequences(&self) -> usize {
        self.data.sequences()
    }

    /// How many tokens there are.
    #[getter]
    fn tokens(&self) -> usize {
        self.data.tokens()
    }

    /// How many tokens each sequence has.
    #[getter]
    fn lengths(&self) -> Vec<usize> {
        self.data.ranges().map(|range| range.len()).collect()
    }

    /// The hash of the canonical form, as in certificates.
    #[getter]
    fn hash(&self, py: Python<'_>) -> String {
        py.detach(|| self.data.hash())
    }

    /// What a person should know about how it was read.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.data.warnings.clone()
    }

    /// The canonical form: one JSON line per sequence.
    fn canonical(&self, py: Python<'_>) -> PyResult<String> {
        let mut bytes = Vec::new();
        py.detach(|| self.data.write_canonical(&mut bytes))?;
        Ok(String::from_utf8(bytes)?)
    }
}

/// Words as a list, ids or vectors as an array; and how they were written.
fn tokens_of(tokens: &Bound<'_, PyAny>) -> PyResult<(Tokens, Names)> {
    let mut vocabulary = Vocabulary::default();
    if let Ok(list) = tokens.cast::<PyList>() {
        let word = |word: Bound<'_, PyAny>| Ok(vocabulary.add(word.cast::<PyString>()?.to_str()?));
        let word_ids = list.iter().map(word).collect::<PyResult<_>>()?;
        return Ok((Tokens::Words { word_ids, vocabulary }, Names::Strings));
    }
    if let Ok(ids) = tokens.extract::<PyReadonlyArray1<'_, i64>>() {
        let mut seen = HashMap::new();
        let id = |id: &i64| *seen.entry(*id).or_insert_with(|| vocabulary.add(&id.to_string()));
        let word_ids = ids.as_slice()?.iter().map(id).collect();
        return Ok((Tokens::Words { word_ids, vocabulary }, Names::Integers));
    }
    let (d, data) = vectors(tokens)?;
    Ok((Tokens::Vectors { d, data }, Names::Strings))
}

/// Classes as a list or an array of integers, or vectors as an array; and how they were written.
fn labels_of(labels: &Bound<'_, PyAny>) -> PyResult<(Labels, Names)> {
    let mut names = Vocabulary::default();
    if let Ok(list) = labels.cast::<PyList>() {
        let class = |name: Bound<'_, PyAny>| {
            Ok(if name.is_none() { None } else { Some(names.add(name.cast::<PyString>()?.to_str()?)) })
        };
        let label_ids = list.iter().map(class).collect::<PyResult<_>>()?;
        return Ok((Labels::Classes { label_ids, names }, Names::Strings));
    }
    if let Ok(classes) = labels.extract::<PyReadonlyArray1<'_, i64>>() {
        let mut seen = HashMap::from([(FREE, None)]);
        let class = |class: &i64| *seen.entry(*class).or_insert_with(|| Some(names.add(&class.to_string())));
        let label_ids = classes.as_slice()?.iter().map(class).collect();
        return Ok((Labels::Classes { label_ids, names }, Names::Integers));
    }
    let (d, data) = vectors(labels)?;
    Ok((Labels::Vectors { d, data }, Names::Strings))
}

/// The rows of an array, finite. Negative zero becomes zero, as in files.
fn vectors(array: &Bound<'_, PyAny>) -> PyResult<(usize, Vec<f64>)> {
    let array: PyReadonlyArray2<'_, f64> = array.extract()?;
    let (d, data) = (array.shape()[1], array.as_slice()?);
    if let Some(at) = data.iter().position(|x| !x.is_finite()) {
        let what = format!("token {}: the number {}; give finite numbers", at / d.max(1) + 1, data[at]);
        return Err(MonolayerError::new_err(what));
    }
    if d == 0 {
        return Err(MonolayerError::new_err("vectors without entries; give at least one"));
    }
    Ok((d, data.iter().map(|x| x + 0.0).collect()))
}

fn count(tokens: &Tokens) -> usize {
    match tokens {
        Tokens::Words { word_ids, .. } => word_ids.len(),
        Tokens::Vectors { d, data } => data.len() / d,
    }
}

fn labeled(labels: &Labels) -> Option<usize> {
    match labels {
        Labels::None => None,
        Labels::Classes { label_ids, .. } => Some(label_ids.len()),
        Labels::Vectors { d, data } => Some(data.len() / d),
    }
}

fn check(total: usize, found: usize, what: &str) -> PyResult<()> {
    if found == total {
        return Ok(());
    }
    Err(MonolayerError::new_err(format!(
        "{found} {what} for sequences of {total} tokens in all; give one for each token"
    )))
}
