//! The example programs run, and what they assert holds.

#[path = "../../examples/approximate_closure.rs"]
mod approximate_closure;
#[path = "../../examples/memorize.rs"]
mod memorize;

#[test]
fn memorizing_runs() {
    memorize::main().unwrap();
}

#[test]
fn approximating_a_closure_runs() {
    approximate_closure::main().unwrap();
}
