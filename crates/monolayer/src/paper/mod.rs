//! The paper's objects and lemmas, plain and generic over [`Number`](crate::arithmetic::Number), each with its equation
//! number, to be read beside the paper.

pub mod attention;
pub mod boltzmann;
pub mod counterexamples;
pub mod feed_forward;
pub mod hardmax;
pub mod lemmas;
pub mod mask;
pub mod projection;
pub mod theorem_two;
pub mod transformer;
pub mod unquantized;
