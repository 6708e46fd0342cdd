//! monolayer turns a finite dataset, or a function, into the weights of a Transformer with ONE rank-1 self-attention
//! layer (Kajitsuka and Sato, "Are Transformers with One Layer Self-Attention Using Low-Rank Weight Matrices Universal
//! Approximators?", ICLR 2024, arXiv 2307.14023). Equation and lemma numbers in this library are the paper's.
//!
//! The paper writes a sequence as a `d x n` matrix with one token per column; here tokens are rows, so a sequence is
//! row-major `[n, d]` and every formula appears transposed.

pub mod approximate;
pub mod arithmetic;
pub mod attention;
pub mod baseline;
pub mod bench;
pub mod boltzmann;
pub mod cells;
pub mod certificate;
pub mod coincidence;
pub mod context;
pub mod context_certificate;
pub mod context_map;
pub mod context_order;
pub mod dataset;
pub mod distance;
pub mod embedding;
pub mod error;
pub mod exact;
pub mod exact_file;
pub mod explain;
pub mod expression;
pub mod feed_forward;
pub mod forward;
pub mod function;
pub mod hardmax;
pub mod kernels;
pub mod lemmas;
pub mod matrix;
pub mod memorize;
pub mod model;
pub mod model_file;
pub mod paper_scale;
pub mod position;
pub mod printed;
pub mod projection;
pub mod rank;
pub mod search;
pub mod separation;
pub mod sparse;
mod strict_json;
mod tensor_file;
pub mod theorem_two;
pub mod tight_scale;
pub mod token_separation;
pub mod token_vectors;
pub mod transformer;
mod widen;

pub use dataset::Dataset;
pub use error::{Error, Place, Result};
pub use matrix::Matrix;
pub use model::{AnyModel, Model};

/// The tutorial's program is one of the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorial/memorize.md")]
mod tutorial {}
