//! What the Python package `monolayer` calls in Rust. Python converts what users have to words, numbers and offsets; everything
//! else happens here, outside of the interpreter's lock, and can be interrupted.

#![allow(clippy::needless_pass_by_value, reason = "Python hands over what was extracted from its objects")]

mod approximate;
mod attention;
mod cluster;
mod commands;
mod dataset;
mod job;
mod model;

use pyo3::prelude::*;

/// The module `monolayer._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::approximate::approximate;
    #[pymodule_export]
    use super::attention::{attention_f32, attention_f64, attention_gradients_f32, attention_gradients_f64};
    #[pymodule_export]
    use super::cluster::{
        cluster_compile, cluster_counts, cluster_merge, cluster_names, cluster_number, cluster_pieces, cluster_read,
        cluster_resolve, cluster_split, cluster_summary, cluster_task,
    };
    #[pymodule_export]
    use super::commands::main;
    #[pymodule_export]
    use super::dataset::Dataset;
    #[pymodule_export]
    use super::job::{_fault, MonolayerError};
    #[pymodule_export]
    use super::model::{Model, certificate, load, memorize, verify};
}
