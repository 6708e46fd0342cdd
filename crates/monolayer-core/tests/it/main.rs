//! The tests of the trusted core: what it reads and refuses, what its rules must never say, how long it is.

mod adversary;
mod attacks;
mod by_word;
mod claims;
mod common;
mod compact;
mod difference;
mod fixed;
mod grammar;
mod lines;
mod long;
mod off_units;
mod read_data;
mod read_fuzz;
mod read_model;
mod trees;
