//! A short run of the soundness comparison; `MONOLAYER_SOUNDNESS=10000` makes it long.

#[path = "../examples/soundness/bound.rs"]
mod bound;
#[path = "../examples/soundness/exact.rs"]
mod exact;
#[path = "../examples/soundness/floats.rs"]
mod floats;
#[path = "../examples/soundness/models.rs"]
mod models;
#[path = "../examples/soundness/random.rs"]
mod random;
#[path = "../examples/soundness/run.rs"]
mod run;
#[path = "../examples/soundness/trained.rs"]
mod trained;

use monolayer_check::Precision;

#[test]
fn whatever_is_decided_is_so_and_clear_tokens_are_decided() {
    let models = std::env::var("MONOLAYER_SOUNDNESS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    for precision in [Precision::F32, Precision::F64, Precision::Real] {
        let tally = run::run(precision, precision, models, 7);
        assert!(
            tally.holds(),
            "{}: {} exceptions, {} of {} open",
            precision.name(),
            tally.exceptions,
            tally.clear_open,
            tally.clear
        );
        assert!(tally.right > 0 && tally.wrong > 0);
    }
}

#[test]
fn the_comparison_catches_bounds_that_are_too_small() {
    // Bounds for real arithmetic say nothing about programs in binary32, and some of those do come out otherwise.
    let tally = run::run(Precision::Real, Precision::F32, 120, 7);
    assert!(tally.exceptions > 0);
}
