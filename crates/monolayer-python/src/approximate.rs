//! A Python function, approximated. It is called for many sequences at once: calls are what costs.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use monolayer::approximate::SmallestGrid;
use monolayer::approximate::function::Values;
use monolayer::{Approximation, Approximator, Error, Function, Lipschitz};
use numpy::{PyArray1, PyArrayMethods as _, PyReadonlyArray3, PyUntypedArrayMethods as _};
use pyo3::prelude::*;

use crate::dataset::said;
use crate::job::{self, Progress};

/// Cells that are looked at together, and so about the sequences of a call.
const TOGETHER: usize = 4096;

/// Approximates `f`, which takes an array [batch, n, d] and gives one of the same shape, and writes the model directory. Gives
/// the bound on d_p, whether it holds in double precision, the number of ids, and the hidden units.
#[pyfunction]
#[pyo3(signature = (f, name, dim, length, out, progress=None, *, grid=None, epsilon=None, lipschitz, equivariant=true, p=2.0, seed=0))]
#[allow(clippy::too_many_arguments, reason = "one keyword for each option")]
pub fn approximate(
    py: Python<'_>,
    f: Py<PyAny>,
    name: String,
    dim: usize,
    length: usize,
    out: PathBuf,
    progress: Option<&Bound<'_, PyAny>>,
    grid: Option<usize>,
    epsilon: Option<f64>,
    lipschitz: f64,
    equivariant: bool,
    p: f64,
    seed: u64,
) -> PyResult<(f64, bool, usize, usize)> {
    said(check(dim, length, lipschitz))?;
    let failure = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&failure);
    let result = job::run(py, progress, 0, move |progress| {
        let f = PythonFunction { f, dim, length, progress, failure: &kept };
        let function = Lipschitz { name, dim, length, equivariant, constant: lipschitz, f };
        let approximator = Approximator::new().p(p).seed(seed).on_progress(|_| progress.add(1));
        let approximation = compile(&approximator, &function, grid, epsilon)?;
        // Nothing is written that is not wanted any more.
        progress.listen();
        approximation.save(&out)?;
        Ok((approximation.certified(), approximation.floats, approximation.order.len(), approximation.units().1))
    });
    // An exception of the function says more than what came of it.
    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    failure.map_or(result, Err)
}

fn check(dim: usize, length: usize, lipschitz: f64) -> monolayer::Result<()> {
    if dim == 0 || length == 0 {
        return Err(Error::setting(format!("`dim` {dim} and `length` {length}"), "give numbers from 1 on"));
    }
    if !(lipschitz >= 0.0 && lipschitz.is_finite()) {
        return Err(Error::setting(format!("`lipschitz` {lipschitz}"), "give a finite number from 0 on"));
    }
    Ok(())
}

fn compile(
    approximator: &Approximator,
    function: &dyn Function,
    grid: Option<usize>,
    epsilon: Option<f64>,
) -> monolayer::Result<Approximation> {
    match (grid, epsilon) {
        (Some(grid), None) => approximator.compile(function, grid),
        (None, Some(epsilon)) => match approximator.compile_within(function, epsilon)? {
            SmallestGrid::Met(approximation) => Ok(*approximation),
            SmallestGrid::TooFine { .. } => {
                let what = format!("`epsilon` {epsilon} needs more cells than there is room for");
                Err(Error::setting(what, "give a larger `epsilon`, or a `grid`"))
            }
        },
        _ => Err(Error::setting("both or none of `grid` and `epsilon`", "give one of them")),
    }
}

/// What calls a Python function, for sequences of one shape.
struct PythonFunction<'a> {
    f: Py<PyAny>,
    dim: usize,
    length: usize,
    progress: &'a Progress,
    /// The first exception, kept until the work is over.
    failure: &'a Mutex<Option<PyErr>>,
}

impl Values for PythonFunction<'_> {
    /// An exception ends the work.
    fn values(&self, sequences: &[f64], outputs: &mut [f64]) {
        self.progress.listen();
        if let Err(error) = Python::attach(|py| self.call(py, sequences, outputs)) {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            resume_unwind(Box::new("an exception of the function"))
        }
    }

    fn together(&self) -> usize {
        TOGETHER
    }
}

impl PythonFunction<'_> {
    fn call(&self, py: Python<'_>, sequences: &[f64], outputs: &mut [f64]) -> PyResult<()> {
        let shape = [sequences.len() / (self.dim * self.length), self.length, self.dim];
        let batch = PyArray1::from_slice(py, sequences).reshape(shape)?;
        let found: PyReadonlyArray3<'_, f64> = self.f.bind(py).call1((batch,))?.extract()?;
        if found.shape() != shape {
            let what = format!("the function gives an array {:?} for one of {shape:?}", found.shape());
            return said(Err(Error::setting(what, "give an output of dimension d for every token")));
        }
        let found = found.as_slice()?;
        if let Some(x) = found.iter().find(|x| !x.is_finite()) {
            return said(Err(Error::setting(format!("the function gives {x}"), "it must be finite on the cube")));
        }
        outputs.copy_from_slice(found);
        Ok(())
    }
}
