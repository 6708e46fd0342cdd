//! The example program runs, and what it asserts holds.

#[path = "../../examples/verify.rs"]
mod verify;

#[test]
fn verifying_runs() {
    verify::main().unwrap();
}
