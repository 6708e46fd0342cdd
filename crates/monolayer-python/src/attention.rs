//! Rank-1 attention in linear time on NumPy arrays.

use monolayer::Mask;
use monolayer::arithmetic::kernels::Real;
use monolayer::attention::{FastAttention, Gradients, HeadInputs};
use numpy::{Element, IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::dataset::said;

type Numbers<'py, R> = PyReadonlyArray1<'py, R>;
type Three<'py, R> = (Bound<'py, PyArray1<R>>, Bound<'py, PyArray1<R>>, Bound<'py, PyArray1<R>>);

fn attention(causal: bool, tolerance: Option<f64>) -> FastAttention {
    let attention = FastAttention::new().mask(if causal { Mask::Causal } else { Mask::None });
    tolerance.into_iter().fold(attention, FastAttention::tolerance)
}

fn forward<'py, R: Real + Element>(
    py: Python<'py>,
    (keys, values, queries): (Numbers<R>, Numbers<R>, Numbers<R>),
    attention: &FastAttention,
) -> PyResult<(Bound<'py, PyArray1<R>>, f64)> {
    let inputs = HeadInputs { keys: keys.as_slice()?, values: values.as_slice()?, queries: queries.as_slice()? };
    let mut out = vec![R::ZERO; inputs.queries.len()];
    let work = said(py.detach(|| attention.forward(inputs, &mut out)))?;
    Ok((out.into_pyarray(py), work.bound))
}

fn backward<'py, R: Real + Element>(
    py: Python<'py>,
    (keys, values, queries, upstream): (Numbers<R>, Numbers<R>, Numbers<R>, Numbers<R>),
    attention: &FastAttention,
) -> PyResult<Three<'py, R>> {
    let inputs = HeadInputs { keys: keys.as_slice()?, values: values.as_slice()?, queries: queries.as_slice()? };
    let (upstream, mut found) = (upstream.as_slice()?, Gradients::default());
    said(py.detach(|| attention.backward(inputs, upstream, &mut found)))?;
    Ok((found.keys.into_pyarray(py), found.values.into_pyarray(py), found.queries.into_pyarray(py)))
}

/// The output of a head, and its proved error.
#[pyfunction]
pub fn attention_f32<'py>(
    py: Python<'py>,
    keys: Numbers<f32>,
    values: Numbers<f32>,
    queries: Numbers<f32>,
    causal: bool,
    tolerance: Option<f64>,
) -> PyResult<(Bound<'py, PyArray1<f32>>, f64)> {
    forward(py, (keys, values, queries), &attention(causal, tolerance))
}

/// The same in double precision.
#[pyfunction]
pub fn attention_f64<'py>(
    py: Python<'py>,
    keys: Numbers<f64>,
    values: Numbers<f64>,
    queries: Numbers<f64>,
    causal: bool,
    tolerance: Option<f64>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, f64)> {
    forward(py, (keys, values, queries), &attention(causal, tolerance))
}

/// The gradients of keys, values and queries.
#[pyfunction]
pub fn attention_gradients_f32<'py>(
    py: Python<'py>,
    keys: Numbers<f32>,
    values: Numbers<f32>,
    queries: Numbers<f32>,
    upstream: Numbers<f32>,
    causal: bool,
) -> PyResult<Three<'py, f32>> {
    backward(py, (keys, values, queries, upstream), &attention(causal, None))
}

/// The same in double precision.
#[pyfunction]
pub fn attention_gradients_f64<'py>(
    py: Python<'py>,
    keys: Numbers<f64>,
    values: Numbers<f64>,
    queries: Numbers<f64>,
    upstream: Numbers<f64>,
    causal: bool,
) -> PyResult<Three<'py, f64>> {
    backward(py, (keys, values, queries, upstream), &attention(causal, None))
}
