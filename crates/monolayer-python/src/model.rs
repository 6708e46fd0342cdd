//! Models: compiled, read, run, checked.

use std::path::PathBuf;
use std::str::FromStr as _;

use monolayer::memorize::Effort;
use monolayer::memorize::alphabet::architecture::{Gates, Reads};
use monolayer::model::certificate_file;
use monolayer::paper::transformer::Transformer;
use monolayer::{AnyModel, Compiled, Error, Mask, Memorizer, Method, Precision, Predictions};
use monolayer_check::open_data;
use monolayer_cli::MaskArg;
use numpy::{IntoPyArray as _, PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::dataset::{Dataset, said};
use crate::job::{self, MonolayerError};

/// A model, and how it was compiled where it was compiled here.
#[pyclass(frozen, module = "monolayer._native")]
pub struct Model {
    model: AnyModel,
    compiled: Option<Compiled>,
}

/// Compiles a dataset.
#[pyfunction]
#[pyo3(signature = (data, progress=None, **options))]
pub fn memorize(
    py: Python<'_>,
    data: Py<Dataset>,
    progress: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Model> {
    let mut memorizer = Memorizer::new();
    let mut candidates = monolayer::context_map::search::CANDIDATES;
    for (name, value) in options.into_iter().flatten() {
        let name: String = name.extract()?;
        if name == "candidates" {
            candidates = value.extract()?;
        }
        memorizer = set(memorizer, &name, &value)?;
    }
    let compiled = job::run(py, progress, candidates, move |progress| {
        memorizer.on_progress(|tried, _gap| progress.add(tried)).compile(&data.get().data)
    })?;
    Ok(Model::compiled(compiled))
}

impl Model {
    /// A model that was compiled here.
    pub fn compiled(compiled: Compiled) -> Self {
        Self { model: compiled.model().clone(), compiled: Some(compiled) }
    }
}

/// One option, by the name that the command line has for it.
pub fn set<'a>(memorizer: Memorizer<'a>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Memorizer<'a>> {
    let text = || value.extract::<String>();
    let unknown = || Error::setting(format!("no option `{name}`"), "see help(monolayer.memorize)");
    Ok(match name {
        "method" => memorizer.method(said(Method::from_str(&text()?))?),
        "embedding" if text()? == "free" => memorizer.free(true),
        "embedding" => memorizer.embedding(said(text()?.parse())?),
        "positions" => memorizer.positions(said(text()?.parse())?),
        "mask" => memorizer.mask(mask(value)?),
        "effort" => memorizer.effort(effort(&text()?)?),
        "start" => memorizer.start(value.extract()?),
        "reads" => memorizer.reads(said(Reads::from_str(&text()?))?),
        "gates" => memorizer.gates(said(Gates::from_str(&text()?))?),
        "precision" => memorizer.precision(precision(&text()?)?),
        "seed" => memorizer.seed(value.extract()?),
        "spare" => memorizer.spare(value.extract()?),
        "candidates" => memorizer.candidates(value.extract()?),
        "unknown" => memorizer.unknown(value.extract()?),
        "text" => memorizer.text(said(text()?.parse())?),
        _ => return said(Err(unknown())),
    })
}

/// A mask by its name, as on the command line, or a matrix [n, n] of zeros and ones.
fn mask(value: &Bound<'_, PyAny>) -> PyResult<Mask> {
    if let Ok(rows) = value.extract::<PyReadonlyArray2<'_, u8>>() {
        let [size, width] = [rows.shape()[0], rows.shape()[1]];
        if size != width {
            let what = format!("a mask of {size} rows and {width} columns");
            return said(Err(Error::setting(what, "give as many rows as columns")));
        }
        return said(Mask::matrix(size, rows.as_array().iter().copied().collect()));
    }
    let name: String = value.extract()?;
    let mask = name.parse::<MaskArg>().map_err(|help| Error::setting(format!("no mask {name:?}"), &help));
    said(mask.and_then(|mask| mask.open()))
}

fn effort(name: &str) -> PyResult<Effort> {
    let unknown = |_| Error::setting(format!("no effort {name:?}"), "give \"fast\", \"default\" or \"high\"");
    said(serde_json::from_value(serde_json::Value::from(name)).map_err(unknown))
}

fn precision(name: &str) -> PyResult<Precision> {
    match name {
        "auto" => Ok(Precision::Auto),
        "f32" => Ok(Precision::F32),
        "f64" => Ok(Precision::F64),
        "exact" => Ok(Precision::Exact),
        _ => {
            said(Err(Error::setting(format!("no precision {name:?}"), "give \"auto\", \"f32\", \"f64\" or \"exact\"")))
        }
    }
}

/// Reads a model directory.
#[pyfunction]
pub fn load(py: Python<'_>, dir: PathBuf) -> PyResult<Model> {
    Ok(Model { model: said(py.detach(|| AnyModel::open(dir)))?, compiled: None })
}

/// Checks a model directory with the independent checker: what `monolayer verify --json` prints.
#[pyfunction]
#[pyo3(signature = (dir, data=None, progress=None, *, precision=None, claims=None, ignore_certificate=false))]
pub fn verify(
    py: Python<'_>,
    dir: PathBuf,
    data: Option<Py<Dataset>>,
    progress: Option<&Bound<'_, PyAny>>,
    precision: Option<&str>,
    claims: Option<Vec<String>>,
    ignore_certificate: bool,
) -> PyResult<String> {
    let known = |name: &str| {
        monolayer_check::Precision::of(name)
            .ok_or_else(|| MonolayerError::new_err(format!("no arithmetic {name:?}; give f32, f64 or real")))
    };
    let precision = precision.map(known).transpose()?;
    job::run(py, progress, 0, move |progress| {
        let data = data.as_ref().map(|data| &data.get().data);
        let on_progress = |done: usize, total: usize| progress.at(done, total);
        let options = monolayer_check::Options {
            precision,
            claims,
            ignore_certificate,
            on_progress: Some(&on_progress),
            ..monolayer_check::Options::default()
        };
        let open = || {
            let Some(data) = data else { return Ok(None) };
            let note = "the data came from Python: the verdict is about its canonical form".to_owned();
            open_data::converted(&data.name, |mut to| data.write_canonical(&mut to), note, &options.limits).map(Some)
        };
        Ok(monolayer_check::verify_source(&dir, open, &options).json().to_string())
    })
}

#[pymethods]
impl Model {
    /// Labels, as indices into the model's, or output vectors.
    #[pyo3(signature = (data, progress=None))]
    fn predict<'py>(
        slf: Py<Self>,
        py: Python<'py>,
        data: Py<Dataset>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let predictions = job::run(py, progress, data.get().data.tokens(), move |progress| {
            slf.get().model.predict_with(&data.get().data, &|n| progress.add(n))
        })?;
        match predictions {
            Predictions::Labels(labels) => Ok(PyArray1::from_vec(py, labels).into_any()),
            Predictions::Outputs(outputs) => {
                let shape = [outputs.rows, outputs.cols];
                Ok(outputs.data.into_pyarray(py).reshape(shape)?.into_any())
            }
        }
    }

    /// Writes the model directory, with its certificate where it was compiled here.
    fn save(&self, py: Python<'_>, dir: PathBuf) -> PyResult<()> {
        said(py.detach(|| match &self.compiled {
            Some(compiled) => compiled.save(dir),
            None => self.model.save(dir),
        }))
    }

    /// The bytes of an ONNX file that computes the same.
    fn onnx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = said(py.detach(|| self.model.onnx()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// config.json, as text.
    fn config(&self) -> PyResult<String> {
        serde_json::to_string(&self.model.config()).map_err(|e| MonolayerError::new_err(e.to_string()))
    }

    /// The names of the labels, where outputs are labels.
    #[getter]
    fn labels(&self) -> Option<Vec<String>> {
        self.model.label_names().map(<[String]>::to_vec)
    }

    /// The words, by id.
    #[getter]
    fn words(&self) -> Option<Vec<String>> {
        self.model.vocabulary().map(|vocabulary| vocabulary.names().to_vec())
    }

    /// How many tokens come out right, can be right, and are proved right.
    #[getter]
    fn counts(&self) -> Option<(usize, usize, usize)> {
        self.compiled.as_ref().map(|compiled| (compiled.right(), compiled.possible(), compiled.certified()))
    }

    /// Tokens that no weights get right, by number from 0.
    #[getter]
    fn impossible(&self) -> Vec<usize> {
        self.compiled.as_ref().map_or_else(Vec::new, |compiled| compiled.impossible().to_vec())
    }

    /// Whether each token is proved right.
    fn proved<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<bool>>> {
        self.compiled.as_ref().map(|compiled| PyArray1::from_slice(py, compiled.proved()))
    }

    /// The matrix of a layer's mask [n, n], where it is one.
    fn mask_rows<'py>(&self, py: Python<'py>, layer: usize) -> PyResult<Option<Bound<'py, PyArray2<u8>>>> {
        let mask = match &self.model {
            AnyModel::F32(model) => mask_of(&model.transformer, layer),
            AnyModel::F64(model) => mask_of(&model.transformer, layer),
            AnyModel::Exact(model) => mask_of(&model.transformer, layer),
        };
        let Some(Mask::Matrix(matrix)) = mask else { return Ok(None) };
        let size = matrix.size();
        Ok(Some(PyArray1::from_slice(py, matrix.entries()).reshape([size, size])?))
    }

    /// The tensors, by name, in double precision.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tensors = PyDict::new(py);
        for (name, shape, data) in self.model.tensors() {
            tensors.set_item(name, data.into_pyarray(py).reshape(shape)?)?;
        }
        Ok(tensors)
    }
}

fn mask_of<T>(transformer: &Transformer<T>, layer: usize) -> Option<&Mask> {
    transformer.layers.get(layer)?.attention.as_ref().map(|attention| &attention.mask)
}

/// The claims of a model directory's certificate, as text.
#[pyfunction]
pub fn certificate(dir: PathBuf) -> PyResult<String> {
    Ok(said(certificate_file::read(dir.join("certificate.json")))?.to_string())
}
