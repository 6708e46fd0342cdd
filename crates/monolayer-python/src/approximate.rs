//! A Python function, approximated.

use std::path::PathBuf;

use monolayer::approximate::SmallestGrid;
use monolayer::{Approximation, Approximator, Error, Lipschitz};
use numpy::PyArray3;
use parking::Failure;
use pyo3::prelude::*;

use crate::dataset::said;
use crate::job;

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
    let failure = Failure::default();
    let call = |sequence: &[f64], outputs: &mut [f64]| failure.keep(evaluate(&f, (dim, length), sequence, outputs));
    let function = Lipschitz { name, dim, length, equivariant, constant: lipschitz, f: call };
    let result = job::run(py, progress, 0, |progress| {
        let approximator = Approximator::new().p(p).seed(seed).on_progress(|_| progress.add(1));
        let approximation = compile(&approximator, &function, grid, epsilon)?;
        if failure.none() {
            approximation.save(&out)?;
        }
        Ok((approximation.certified(), approximation.floats, approximation.order.len(), approximation.units().1))
    });
    // An exception of the function says more than what came of it.
    failure.raise().and(result)
}

fn compile(
    approximator: &Approximator,
    function: &Lipschitz<impl Fn(&[f64], &mut [f64]) + Sync>,
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

/// One sequence through the function.
fn evaluate(f: &Py<PyAny>, (dim, length): (usize, usize), sequence: &[f64], outputs: &mut [f64]) -> PyResult<()> {
    Python::attach(|py| {
        let batch = PyArray3::from_vec3(py, &[sequence.chunks(dim).map(<[f64]>::to_vec).collect()])?;
        let result = f.bind(py).call1((batch,))?;
        let result: numpy::PyReadonlyArray3<'_, f64> = result.extract()?;
        let found = result.as_slice()?;
        if found.len() != dim * length {
            let what = "the function gives an array of another shape than [batch, n, d]";
            return said(Err(Error::setting(what, "give an output of dimension d for every token")));
        }
        if found.iter().any(|x| !x.is_finite()) {
            return said(Err(Error::setting("the function gives a number that is not finite", "change it there")));
        }
        outputs.copy_from_slice(found);
        Ok(())
    })
}

/// Exceptions of a function that is called from many threads.
mod parking {
    use std::sync::{Mutex, PoisonError};

    use pyo3::prelude::*;

    /// The first exception, kept until the work is over.
    #[derive(Default)]
    pub struct Failure(Mutex<Option<PyErr>>);

    impl Failure {
        /// Keeps an exception, if there is one and none was kept.
        pub fn keep(&self, result: PyResult<()>) {
            if let Err(error) = result {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }

        /// Whether there was none.
        pub fn none(&self) -> bool {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
        }

        /// The exception, if there was one.
        pub fn raise(self) -> PyResult<()> {
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
        }
    }
}
