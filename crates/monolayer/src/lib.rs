//! monolayer turns a finite dataset, or a function, into the weights of a Transformer with ONE rank-1 self-attention
//! layer (Kajitsuka and Sato, "Are Transformers with One Layer Self-Attention Using Low-Rank Weight Matrices Universal
//! Approximators?", ICLR 2024, arXiv 2307.14023). Equation and lemma numbers in this library are the paper's.
//!
//! - The *context* of a token is the token together with the multiset of tokens it attends to (Definition 2).
//! - Attention of rank 1 reduces a context to one number, the *context id* (Theorem 2). [`context_map`] chooses weights for
//!   which the ids of different contexts differ.
//! - A feed-forward block reads the label off the id (Corollaries 1 and 2). [`memorize`] builds it.
//! - The result is proved in floating point, *in any order of summation*: a rounded sum depends on the order in which its
//!   terms are added, and the proof covers every order, so it covers every matrix library and every number of threads.
//! - [`approximate`] does the same for a function on sequences, with a bound on the distance (Proposition 1).
//!
//! The paper writes a sequence as a `d x n` matrix with one token per column; here tokens are rows, so a sequence is
//! row-major `[n, d]` and every formula appears transposed.

pub mod approximate;
pub mod arithmetic;
pub mod attention;
pub mod context_map;
pub mod data;
pub mod edit;
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
pub use model::{AnyModel, Model, ModelNames, Predictions, Source};
pub use paper::mask::Mask;

#[cfg(any(doc, doctest))]
#[doc = include_str!("../tutorial/memorize.md")]
pub mod tutorial {}
