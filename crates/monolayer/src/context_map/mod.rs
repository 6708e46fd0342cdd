//! The contextual map of Theorem 2: one rank-1 attention layer that gives every token in every context an id of its own.
//! Weights are found by search, small enough for floats, or taken from the theorem; the gaps between ids are proved.

pub mod coincidence;
pub mod float_weights;
mod gap_ascent;
mod long_sequence;
mod map;
pub mod order;
pub mod proved_gaps;
pub mod search;
pub mod theorem_weights;
pub mod token_separation;

pub(crate) use map::seen_projections;
pub use map::{ContextMap, Gap, Groups, Member, Projection, View, standard_deviation};
