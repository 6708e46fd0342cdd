//! The rules that bound what a covered program computes, one rule per function, and the judge.

pub mod attention;
pub mod ball;
pub mod by_word;
pub mod exp;
pub mod gates;
pub mod judge;
pub mod matrix;
pub mod network;
pub mod off_units;
pub mod prefixes;
pub mod read_out;
pub mod rivals;
pub mod sum;
pub mod two_models;
pub mod winners;
