//! monolayer turns a finite dataset, or a function, into the weights of a Transformer with ONE rank-1 self-attention
//! layer (Kajitsuka and Sato, "Are Transformers with One Layer Self-Attention Using Low-Rank Weight Matrices Universal
//! Approximators?", ICLR 2024, arXiv 2307.14023). Equation and lemma numbers in this library are the paper's.
//!
//! The paper writes a sequence as a `d x n` matrix with one token per column; here tokens are rows, so a sequence is
//! row-major `[n, d]` and every formula appears transposed.

pub mod approximate;
pub mod arithmetic;
pub mod context_map;
pub mod data;
pub mod error;
pub mod fs;
pub mod memorize;
pub mod model;
pub mod paper;

pub use arithmetic::Matrix;
pub use data::Dataset;
pub use error::{Error, Place, Result};
pub use model::{AnyModel, Model};

#[cfg(any(doc, doctest))]
#[doc = include_str!("../tutorial/memorize.md")]
pub mod tutorial {}
