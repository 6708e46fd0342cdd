//! The checker's tests: what a user would do, what an attacker would, and what other programs say of the same files.

mod attacks;
mod common;
mod differential;
mod differential_models;
mod distance;
mod examples;
mod expressions;
mod fail_closed;
mod free_labels;
mod fuzz;
mod masks;
mod orderings;
mod perturbed;
#[cfg(unix)]
mod resources;
mod second_opinion;
#[allow(dead_code)]
#[path = "../../examples/soundness/main.rs"]
mod soundness;
mod soundness_run;
mod stages;
mod storage;
#[path = "../../examples/soundness/trees.rs"]
mod trees;
mod verify;
