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
mod error;
pub mod fs;
pub mod memorize;
pub mod model;
pub mod paper;

pub use approximate::expression::Expression;
pub use approximate::function::{Function, Lipschitz};
pub use approximate::{Approximation, Approximator};
pub use arithmetic::Matrix;
pub use data::embedding::Embedding;
pub use data::positions::Positions;
pub use data::{Dataset, Labels, Tokens, Vocabulary};
pub use error::{Error, Location, Result};
pub use memorize::{Compiled, Memorizer, Method, Precision};
pub use model::certificate::Claim;
pub use model::{AnyModel, Model, Predictions, Source};
pub use paper::attention::Mask;

/// The tutorial's program is one of the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorial/memorize.md")]
mod tutorial {}
