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

/// What Python calls, for one type of numbers.
macro_rules! functions {
    ($type:ty, $attention:ident, $gradients:ident) => {
        /// The output of a head, and its proved error.
        #[pyfunction]
        pub fn $attention<'py>(
            py: Python<'py>,
            keys: Numbers<$type>,
            values: Numbers<$type>,
            queries: Numbers<$type>,
            causal: bool,
            tolerance: Option<f64>,
        ) -> PyResult<(Bound<'py, PyArray1<$type>>, f64)> {
            forward(py, (keys, values, queries), &attention(causal, tolerance))
        }

        /// The gradients of keys, values and queries.
        #[pyfunction]
        pub fn $gradients<'py>(
            py: Python<'py>,
            keys: Numbers<$type>,
            values: Numbers<$type>,
            queries: Numbers<$type>,
            upstream: Numbers<$type>,
            causal: bool,
        ) -> PyResult<Three<'py, $type>> {
            backward(py, (keys, values, queries, upstream), &attention(causal, None))
        }
    };
}

functions!(f32, attention_f32, attention_gradients_f32);
functions!(f64, attention_f64, attention_gradients_f64);
