//! The stages of `memorize --effort fast` as tasks: functions of bytes, which workers of a cluster call, and the driver, which
//! asks an object of Python for tasks.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use monolayer::data::DataOptions;
use monolayer::memorize::cluster::{self, Engine};
use monolayer::memorize::{Effort, MEMORY};
use monolayer::{Dataset, Error, Memorizer, Method};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dataset::said;
use crate::job;
use crate::model::{Model, set};

/// Bytes as Python has them: an array, which is moved between processes without a copy.
type Bytes<'py> = Bound<'py, PyArray1<u8>>;

/// Runs work without the interpreter's lock, and gives its bytes to Python.
fn bytes(py: Python<'_>, work: impl FnOnce() -> monolayer::Result<Vec<u8>> + Send) -> PyResult<Bytes<'_>> {
    Ok(PyArray1::from_vec(py, said(py.detach(work))?))
}

/// Ranges of bytes of a file that can be read by themselves.
#[pyfunction]
pub fn cluster_pieces(py: Python<'_>, path: PathBuf, size: u64) -> PyResult<Vec<(u64, u64)>> {
    let pieces = said(py.detach(|| Dataset::pieces(&path, size, &DataOptions::default())))?;
    Ok(pieces.into_iter().map(|piece| (piece.start, piece.end)).collect())
}

/// A file, or a range of its bytes, as a shard; None where the file must be read as a whole.
#[pyfunction]
#[pyo3(signature = (path, range=None))]
pub fn cluster_read(py: Python<'_>, path: PathBuf, range: Option<(u64, u64)>) -> PyResult<Option<Bytes<'_>>> {
    let range = range.map(|(start, end)| start..end);
    let read = said(py.detach(|| cluster::read(&path, range, &DataOptions::default())))?;
    Ok(read.map(|bytes| PyArray1::from_vec(py, bytes)))
}

/// What all must know of a shard as it was read.
#[pyfunction]
pub fn cluster_summary<'py>(py: Python<'py>, shard: PyReadonlyArray1<'py, u8>) -> PyResult<Bytes<'py>> {
    let shard = shard.as_slice()?;
    bytes(py, || cluster::summary(shard))
}

/// The words and labels of the summary of all shards.
#[pyfunction]
pub fn cluster_names<'py>(py: Python<'py>, summary: PyReadonlyArray1<'py, u8>) -> PyResult<Bytes<'py>> {
    let summary = summary.as_slice()?;
    bytes(py, || cluster::names(summary))
}

/// How many tokens each shard has, and how many sequences, words and labels there are in all.
#[pyfunction]
pub fn cluster_counts(summary: PyReadonlyArray1<'_, u8>) -> PyResult<(Vec<usize>, [usize; 3])> {
    said(cluster::counts(summary.as_slice()?))
}

/// A shard with the numbers of the whole dataset.
#[pyfunction]
pub fn cluster_number<'py>(
    py: Python<'py>,
    shard: PyReadonlyArray1<'py, u8>,
    names: PyReadonlyArray1<'py, u8>,
    first: usize,
) -> PyResult<Bytes<'py>> {
    let (shard, names) = (shard.as_slice()?, names.as_slice()?);
    bytes(py, || cluster::number(shard, names, first))
}

/// The result of a pass for a shard.
#[pyfunction]
#[pyo3(signature = (name, request, shard, own=None))]
pub fn cluster_task<'py>(
    py: Python<'py>,
    name: &str,
    request: PyReadonlyArray1<'py, u8>,
    shard: PyReadonlyArray1<'py, u8>,
    own: Option<PyReadonlyArray1<'py, u8>>,
) -> PyResult<Bytes<'py>> {
    let (request, shard) = (request.as_slice()?, shard.as_slice()?);
    let own = own.as_ref().map_or(Ok(&[][..]), |own| own.as_slice())?;
    bytes(py, || cluster::task(name, request, shard, own))
}

/// Results of shards in a row as one.
#[pyfunction]
pub fn cluster_merge<'py>(py: Python<'py>, name: &str, parts: Vec<PyReadonlyArray1<'py, u8>>) -> PyResult<Bytes<'py>> {
    let parts = slices(&parts)?;
    bytes(py, || cluster::merge(name, &parts))
}

/// The tokens of groups of a shard, in parts by their context.
#[pyfunction]
pub fn cluster_split<'py>(
    py: Python<'py>,
    request: PyReadonlyArray1<'py, u8>,
    shard: PyReadonlyArray1<'py, u8>,
) -> PyResult<Vec<Bytes<'py>>> {
    let (request, shard) = (request.as_slice()?, shard.as_slice()?);
    let parts = said(py.detach(|| cluster::split(request, shard)))?;
    Ok(parts.into_iter().map(|part| PyArray1::from_vec(py, part)).collect())
}

/// The contexts of one part of all shards.
#[pyfunction]
pub fn cluster_resolve<'py>(py: Python<'py>, parts: Vec<PyReadonlyArray1<'py, u8>>) -> PyResult<Bytes<'py>> {
    let parts = slices(&parts)?;
    bytes(py, || cluster::resolve(&parts))
}

fn slices<'a>(arrays: &'a [PyReadonlyArray1<'_, u8>]) -> PyResult<Vec<&'a [u8]>> {
    Ok(arrays.iter().map(|array| array.as_slice()).collect::<Result<_, _>>()?)
}

/// Memorizes the shards that `engine` runs tasks over. It has the methods `each_shard`, `shuffle` and `workers`.
#[pyfunction]
#[pyo3(signature = (name, summary, engine, progress=None, **options))]
pub fn cluster_compile(
    py: Python<'_>,
    name: String,
    summary: PyReadonlyArray1<'_, u8>,
    engine: Py<PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Model> {
    let mut memorizer = Memorizer::new().method(Method::Gated).effort(Effort::Fast).memory(MEMORY);
    let mut candidates = monolayer::context_map::search::CANDIDATES;
    for (name, value) in options.into_iter().flatten() {
        let name: String = name.extract()?;
        if name == "candidates" {
            candidates = value.extract()?;
        }
        memorizer = set(memorizer, &name, &value)?;
    }
    let summary = summary.as_slice()?.to_vec();
    let engine = std::sync::Arc::new(PythonEngine { engine, failed: Mutex::new(None) });
    let tasks = std::sync::Arc::clone(&engine);
    let compiled = job::run(py, progress, candidates, move |progress| {
        let memorizer = memorizer.on_progress(|tried, _gap| progress.add(tried));
        cluster::compile(&name, &summary, &*tasks, &memorizer)
    });
    // What Python said of a task that failed says more than that it did.
    let failed = engine.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    match failed {
        Some(error) => Err(error),
        None => compiled.map(Model::compiled),
    }
}

/// An object of Python that runs tasks.
struct PythonEngine {
    engine: Py<PyAny>,
    /// The exception of a task.
    failed: Mutex<Option<PyErr>>,
}

impl PythonEngine {
    /// Calls a method that gives a list of arrays.
    fn call(
        &self,
        arguments: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>>,
    ) -> monolayer::Result<Vec<Vec<u8>>> {
        Python::attach(|py| arguments(py, self.engine.bind(py))).map_err(|error| {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            Error::setting("a task of the cluster failed", "see the error of the task")
        })
    }
}

/// The bytes of a list of arrays.
fn taken(list: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>> {
    let arrays: Vec<PyReadonlyArray1<'_, u8>> = list.extract()?;
    Ok(slices(&arrays)?.into_iter().map(<[u8]>::to_vec).collect())
}

impl Engine for PythonEngine {
    fn each_shard(
        &self,
        name: &str,
        request: Vec<u8>,
        own: Vec<Vec<u8>>,
        shrinks: bool,
    ) -> monolayer::Result<Vec<Vec<u8>>> {
        self.call(|py, engine| {
            let own: Vec<_> = own.into_iter().map(|own| PyArray1::from_vec(py, own)).collect();
            taken(&engine.call_method1("each_shard", (name, PyArray1::from_vec(py, request), own, shrinks))?)
        })
    }

    fn shuffle(&self, request: Vec<u8>, parts: usize) -> monolayer::Result<Vec<Vec<u8>>> {
        self.call(|py, engine| taken(&engine.call_method1("shuffle", (PyArray1::from_vec(py, request), parts))?))
    }

    fn workers(&self) -> usize {
        Python::attach(|py| self.engine.bind(py).call_method0("workers")?.extract()).unwrap_or(1)
    }
}
