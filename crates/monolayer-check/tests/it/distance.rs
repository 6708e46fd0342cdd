//! The claim of a distance from a function, on a model written by hand: true claims are verified, false ones never.

use crate::common::staircase::{FUNCTION, distance, staircase};
use crate::common::{Files, certify};
use monolayer_check::{Options, Report, Verdict, verify};
use serde_json::{Value, json};

/// Verifies one claim about a model.
fn judged(files: &Files, claim: &Value) -> Report {
    let dir = tempfile::tempdir().unwrap();
    files.write(dir.path());
    certify(dir.path(), "", &json!([claim]));
    verify(dir.path(), None, &Options::default())
}

fn claim(bound: f64, function: &str) -> Value {
    json!({"kind": "distance", "arithmetic": "f64", "p": 2, "bound": bound, "function": function, "length": 2})
}

#[test]
fn true_claims_are_verified_and_false_ones_refuted() {
    let truth = distance();
    for arithmetic in ["f64", "real"] {
        for (factor, verdict) in [(1.01, Verdict::Verified), (0.95, Verdict::Refuted), (0.5, Verdict::Refuted)] {
            let mut claim = claim(factor * truth, FUNCTION);
            claim["arithmetic"] = json!(arithmetic);
            let report = judged(&staircase(), &claim);
            assert_eq!(report.verdict, verdict, "{factor}: {}", report.text());
            let bound = report.claims[1].bound.unwrap();
            assert!(bound > 0.9999 * truth, "{bound} is below the truth, {truth}");
        }
    }
    // Closer to the truth than the ramps: never verified.
    let report = judged(&staircase(), &claim(0.9999 * truth, FUNCTION));
    assert_ne!(report.verdict, Verdict::Verified, "{}", report.text());
}

#[test]
fn other_exponents() {
    // d_p grows with p on a set of measure 2 like 2^(1/p); the staircase's error is at most the largest slope times half a part.
    for p in [1.0, 1.5, 3.0, 5.0] {
        let mut loose = claim(2.0 * 1.5 * 0.125, FUNCTION);
        loose["p"] = json!(p);
        assert_eq!(judged(&staircase(), &loose).verdict, Verdict::Verified, "p = {p}");
        let mut tight = claim(0.3 * distance(), FUNCTION);
        tight["p"] = json!(p);
        // The fifth power of the error is less than what the ramps may hide.
        let verdict = if p < 5.0 { Verdict::Refuted } else { Verdict::Unknown };
        assert_eq!(judged(&staircase(), &tight).verdict, verdict, "p = {p}");
    }
}

#[test]
fn a_changed_weight_is_noticed() {
    let bound = 1.01 * distance();
    let names = staircase().tensors.iter().map(|tensor| tensor.0.clone()).collect::<Vec<_>>();
    for name in names {
        let mut files = staircase();
        let at = files.tensor(&name).len() / 3;
        let weight = &mut files.tensor(&name)[at];
        // Scores that are a little larger move ids, but not off their plateaus.
        let factor = if name.ends_with("w_q") || name.ends_with("w_k") { 40.0 } else { 4.0 };
        *weight = if *weight == 0.0 { 0.5 } else { factor * *weight };
        let report = judged(&files, &claim(bound, FUNCTION));
        assert_ne!(report.verdict, Verdict::Verified, "{name}: {}", report.text());
    }
}

#[test]
fn another_function_is_noticed() {
    let bound = 1.01 * distance();
    for function in ["x1*mean(x1) + 0.05", "x1*max(x1)", "own1*x1", "mean(x1)", "x1*mean(x1)*(1 + step(x1 - 0.9))"] {
        let report = judged(&staircase(), &claim(bound, function));
        assert_eq!(report.verdict, Verdict::Refuted, "{function}: {}", report.text());
    }
    // The same function in other words.
    for function in ["x1*(sum(x1)/2)", "mean(x1*own1)", "(x1^2 + x1*(sum(x1) - x1))/2"] {
        let report = judged(&staircase(), &claim(bound, function));
        assert_eq!(report.verdict, Verdict::Verified, "{function}: {}", report.text());
    }
}

#[test]
fn undefined_functions_are_never_verified() {
    for function in [
        "log(x1)",
        "x1/(x1 - own1)",
        "0*log(x1 - 2)",
        "step(log(0 - x1))",
        "sqrt(x1 - 1)",
        "1/x1",
        "exp(1000000000*x1)",
    ] {
        let report = judged(&staircase(), &claim(1e9, function));
        assert_eq!(report.verdict, Verdict::Unknown, "{function}: {}", report.text());
    }
}

#[test]
fn hostile_functions_are_never_verified() {
    let deep = format!("{}x1{}", "(".repeat(100_000), ")".repeat(100_000));
    let signs = format!("{}x1", "-".repeat(60_000));
    let powers = format!("x1{}", "^x1".repeat(20_000));
    let strange = ["", ";", "x1;x1", "x2", "x1 +", "f(x1)", "sin x1", "max()", "sum(x1, x1)", "x1)", "x\u{0}1", "x1²"];
    let texts = [&deep, &signs, &powers].into_iter().map(String::as_str).chain(strange);
    for function in texts {
        let report = judged(&staircase(), &claim(1.0, function));
        assert_eq!(report.verdict, Verdict::Unknown, "{}", report.text());
    }
}

#[test]
fn wide_and_nested_functions_come_to_an_end() {
    // A number beyond every float is a number.
    assert_eq!(judged(&staircase(), &claim(1.0, &"9".repeat(400))).verdict, Verdict::Refuted);
    let wide = format!("x1*mean(x1){}", " + 0*x1".repeat(5_000));
    let nested = (0..90).fold("x1".to_owned(), |inner, _| format!("mean({inner})*own1"));
    for (function, verdict) in [(wide, Verdict::Verified), (nested, Verdict::Refuted)] {
        let report = judged(&staircase(), &claim(1.01 * distance(), &function));
        assert_eq!(report.verdict, verdict, "{}", report.text());
    }
}

#[test]
fn powers_that_overflow_or_underflow_prove_nothing() {
    // Far below the truth, but both powers are 0 in f64; and a bound whose square is infinite, for a function that is
    // defined nowhere.
    for (p, bound, function) in [(1000.0, 1e-3, FUNCTION), (2.0, 1e-170, "x1*mean(x1)"), (2.0, 1e200, "log(x1 - 2)")] {
        let mut claim = claim(bound, function);
        claim["p"] = json!(p);
        let report = judged(&staircase(), &claim);
        assert_ne!(report.verdict, Verdict::Verified, "{}", report.text());
    }
}

#[test]
fn claims_that_mean_nothing() {
    for (field, value) in [("p", json!(0.5)), ("p", json!(-1)), ("bound", json!(-1.0))] {
        let mut claim = claim(1.0, FUNCTION);
        claim[field] = value;
        assert_eq!(judged(&staircase(), &claim).verdict, Verdict::Unknown, "{field}");
    }
    for (field, value) in
        [("length", json!(0)), ("length", json!(1_000_000)), ("length", Value::Null), ("p", Value::Null)]
    {
        let mut claim = claim(1.0, FUNCTION);
        claim[field] = value;
        let report = judged(&staircase(), &claim);
        assert_eq!(report.verdict, Verdict::Unknown, "{field}: {}", report.text());
    }
}

#[test]
fn models_of_another_kind_are_not_judged() {
    let mut causal = staircase();
    causal.config["layers"][0]["attention"]["mask"] = json!("causal");
    let mut hard = staircase();
    hard.config["layers"][0]["attention"]["kind"] = json!("hardmax");
    for files in [causal, hard] {
        let report = judged(&files, &claim(1.0, FUNCTION));
        assert_eq!(report.verdict, Verdict::Unknown, "{}", report.text());
    }
}
