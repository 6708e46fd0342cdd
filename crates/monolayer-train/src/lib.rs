//! Trains rank-1 and full-rank Transformers.

pub mod ceilings;
pub mod entities;
pub mod labels;
