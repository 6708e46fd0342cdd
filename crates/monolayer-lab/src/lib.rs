//! The lab of monolayer: the statements of the paper as runs, figures, the experiments, and the report page. No printing
//! here.

pub mod approximation_study;
pub mod attention_bench;
pub mod bench;
pub mod claims;
pub mod edit_bench;
pub mod example;
pub mod experiment;
pub mod picture;
pub mod plot;
pub mod printed_units;
pub mod report;
pub mod text_bench;
