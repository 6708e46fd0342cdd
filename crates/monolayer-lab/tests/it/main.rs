//! Claims, experiments and the report page. One program, so that everything is linked once.

mod approximation_study;
mod claims;
mod experiments;
mod numbers;
mod report;
