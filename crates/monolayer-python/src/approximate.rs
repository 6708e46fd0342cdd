//! A Python function, approximated. It is called for many sequences at once: calls are what costs.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use monolayer::approximate::SmallestGrid;
use monolayer::approximate::function::{Asked, Enclosure};
use monolayer::arithmetic::Interval;
use monolayer::{Approximation, Approximator, Error, Function};
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
        let function = PythonFunction { f, name, dim, length, equivariant, lipschitz, progress, failure: &kept };
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

/// A Python function with a constant that its author vouches for.
struct PythonFunction<'a> {
    f: Py<PyAny>,
    name: String,
    dim: usize,
    length: usize,
    equivariant: bool,
    lipschitz: f64,
    progress: &'a Progress,
    /// The first exception, kept until the work is over.
    failure: &'a Mutex<Option<PyErr>>,
}

impl PythonFunction<'_> {
    /// The outputs of many sequences, one after the other. An exception ends the work.
    fn call(&self, sequences: Vec<f64>) -> Vec<f64> {
        self.progress.listen();
        match Python::attach(|py| self.call_python(py, sequences)) {
            Ok(outputs) => outputs,
            Err(error) => {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                resume_unwind(Box::new("an exception of the function"))
            }
        }
    }

    fn call_python(&self, py: Python<'_>, sequences: Vec<f64>) -> PyResult<Vec<f64>> {
        let shape = [sequences.len() / (self.dim * self.length), self.length, self.dim];
        let batch = PyArray1::from_vec(py, sequences).reshape(shape)?;
        let found: PyReadonlyArray3<'_, f64> = self.f.bind(py).call1((batch,))?.extract()?;
        if found.shape() != shape {
            let what = format!("the function gives an array {:?} for one of {shape:?}", found.shape());
            return said(Err(Error::setting(what, "give an output of dimension d for every token")));
        }
        let found = found.as_slice()?;
        if let Some(x) = found.iter().find(|x| !x.is_finite()) {
            return said(Err(Error::setting(format!("the function gives {x}"), "it must be finite on the cube")));
        }
        Ok(found.to_vec())
    }
}

impl Function for PythonFunction<'_> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn length(&self) -> usize {
        self.length
    }

    fn is_equivariant(&self) -> bool {
        self.equivariant
    }

    fn values(&self, sequence: &[f64], outputs: &mut [f64]) {
        outputs.copy_from_slice(&self.call(sequence.to_vec()));
    }

    fn enclose(&self, sequence: &[Interval], token: usize, output: usize) -> Enclosure {
        self.enclose_all(&[Asked { sides: sequence, token, output }]).remove(0)
    }

    fn enclose_all(&self, asked: &[Asked]) -> Vec<Enclosure> {
        let centers = asked.iter().flat_map(|asked| asked.sides.iter().map(|side| side.center())).collect();
        let outputs = self.call(centers);
        let outputs = outputs.chunks_exact(self.dim * self.length);
        let enclose = |(asked, outputs): (&Asked, &[f64])| {
            Enclosure::lipschitz(asked.sides, outputs[asked.token * self.dim + asked.output], self.lipschitz)
        };
        asked.iter().zip(outputs).map(enclose).collect()
    }

    fn together(&self) -> usize {
        TOGETHER
    }

    fn description(&self) -> String {
        self.name.clone()
    }

    fn assumption(&self) -> Option<String> {
        let equivariant = if self.equivariant { ", it is equivariant" } else { "" };
        Some(format!(
            "the function is Lipschitz with constant {} in the sup norm{equivariant}, and its values are exact",
            self.lipschitz
        ))
    }
}
