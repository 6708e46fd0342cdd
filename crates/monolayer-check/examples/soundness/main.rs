//! Does the checker ever say something that is not so?
//!
//! Random small datasets and models of them (compiled, gated, random, deep, trained, nudged); whatever the checker calls
//! verified or refuted is compared with an evaluation to 2000 bits and with 20 programs that sum in random orders.
//! `cargo run --release -p monolayer-check --example soundness -- --models 10000`

mod bound;
mod exact;
mod floats;
mod models;
mod random;
mod run;
mod trained;

use monolayer_check::Precision;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str, default: u64| {
        arguments.iter().position(|a| a == name).map_or(default, |i| arguments[i + 1].parse().expect("a number"))
    };
    let (models, seed) = (value("--models", 1000), value("--seed", 1));
    let mut failed = false;
    for precision in [Precision::F32, Precision::F64, Precision::Real] {
        let tally = run::run(precision, precision, models, seed);
        println!(
            "{:>4}: {models} models: {} verified, {} refuted, {} unknown; {} exceptions; {} of {} tokens with a margin over \
             four textbook bounds unknown",
            precision.name(),
            tally.right,
            tally.wrong,
            tally.open,
            tally.exceptions,
            tally.clear_open,
            tally.clear
        );
        failed |= !tally.holds();
    }
    std::process::exit(i32::from(failed));
}
