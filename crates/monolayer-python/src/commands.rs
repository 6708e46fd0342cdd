//! The program `monolayer`, for `python -m monolayer`.

use pyo3::prelude::*;

/// Runs the program with arguments that begin with its name, and gives its exit code.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| monolayer_cli::main(arguments))
}
