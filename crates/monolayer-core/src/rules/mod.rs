//! The rules that bound what a covered program computes, one lemma per function, and the judge.

pub mod attention;
pub mod ball;
pub mod claims;
pub mod context;
pub mod exp;
pub mod forward;
pub mod inputs;
pub mod judge;
pub mod mapping;
pub mod parallel;
pub mod prepare;
pub mod screen;
pub mod sum;
