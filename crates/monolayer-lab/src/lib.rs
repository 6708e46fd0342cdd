//! The lab of monolayer: the statements of the paper as runs. No printing here.

pub mod claims;
pub mod printed_units;
