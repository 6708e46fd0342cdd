//! `monolayer approximate` as a user runs it.

mod common;

use std::process::Command;

use common::{Files, python, refused, run};
use serde_json::Value;

fn approximate(files: &Files, function: &str, dim: &str, length: &str, more: &[&str]) -> common::Run {
    let out = files.path("model");
    let fixed =
        ["approximate", "--function", function, "--dim", dim, "--length", length, "--out", &out, "--json", "-q"];
    run(&[&fixed, more].concat())
}

#[test]
fn a_function_becomes_a_model_with_a_bound() {
    let files = Files::new();
    let json = approximate(&files, "x1*mean(x1)", "1", "2", &["--epsilon", "0.1"]).json();
    for field in
        ["grid", "ramp", "ids", "hidden", "p", "bound", "measured", "measured_error", "bound_everywhere", "seconds"]
    {
        assert!(json[field].is_number(), "{field}: {json}");
    }
    let number = |field: &str| json[field].as_f64().unwrap();
    assert!(number("measured") <= number("bound") && number("bound") <= 0.1, "{json}");
    assert!(number("bound") <= number("bound_everywhere") && number("hidden") <= 2.0 * number("ids") + 1.0);
    assert_eq!(json["ids"], json["grid"].as_u64().unwrap().pow(2));
    assert_eq!(json["edges"][0].as_array().unwrap().len() as u64, json["grid"].as_u64().unwrap() + 1);
    assert_eq!((&json["arithmetic"], &json["p"]), (&"f64".into(), &2.0.into()));
    let certificate = files.json("model/certificate.json");
    let claim = &certificate["claims"][0];
    assert_eq!((&claim["kind"], &claim["bound"]), (&"distance".into(), &json["bound"]), "{claim}");
    assert_eq!(claim["function"], "x1*mean(x1)");
    assert_eq!(files.json("model/config.json")["pre_feed_forward"]["hidden"], json["quantizer_hidden"]);
    let picture = std::fs::read_to_string(files.path("model/figure.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let files = Files::new();
    let tensors = |threads: &str| {
        let more = ["--grid", "2", "--effort", "1", "--points", "256", "--threads", threads];
        approximate(&files, "x1*mean(x2); x2 - max(x1)", "2", "3", &more);
        std::fs::read(files.path("model/model.safetensors")).unwrap()
    };
    assert!(tensors("1") == tensors("2"));
}

#[test]
fn bad_functions_are_refused_where_they_are_bad() {
    let files = Files::new();
    let out = files.path("model");
    let case = |function: &str, dim: &str, place: Option<&str>, words: &[&str]| {
        let arguments =
            ["approximate", "--function", function, "--dim", dim, "--length", "2", "--grid", "2", "--out", &out];
        refused(&[&arguments[..], &["-q"]].concat(), place, words);
        assert!(!std::path::Path::new(&out).exists());
    };
    case("x1 +* 2", "1", Some("character 5"), &["character 5"]);
    case("x1 + y", "1", Some("character 6"), &["y"]);
    case("1/(x1 - 0.5)", "1", None, &["not defined", "0.5"]);
    case("log(x1 - 0.25)", "1", None, &["not defined", "log"]);
    let short = run(&["approximate", "--function", "x1", "--dim", "2", "--length", "2", "--grid", "2", "--out", &out]);
    assert_eq!(short.code, 2, "{}", short.stderr);
    let long =
        run(&["approximate", "--function", "x1; x1", "--dim", "1", "--length", "2", "--grid", "2", "--out", &out]);
    assert_eq!(long.code, 2, "{}", long.stderr);
}

#[test]
fn what_it_would_take_is_told() {
    let files = Files::new();
    let out = files.path("model");
    let arguments = ["approximate", "--function", "x1*mean(x1)", "--dim", "1", "--length", "3", "--out", &out, "-q"];
    refused(
        &[&arguments[..], &["--epsilon", "1e-4", "--most-ids", "500"]].concat(),
        None,
        &["would take", "hidden units"],
    );
    refused(&[&arguments[..], &["--grid", "1000", "--most-ids", "500"]].concat(), None, &["500500000 ids"]);
}

#[test]
fn places_need_positions_and_get_them() {
    let files = Files::new();
    let json = approximate(&files, "x1*place", "1", "2", &["--grid", "6", "--points", "1024"]).json();
    assert_eq!((json["ids"].as_u64(), &json["bound_everywhere"]), (Some(2 * 36), &Value::Null));
    assert_eq!(files.json("model/config.json")["max_length"], 2);
    let refused = approximate(&files, "x1*place", "1", "2", &["--grid", "6", "--positions", "none"]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
}

/// The numpy program that knows only docs/format.md: every cell's center, permuted sequences, sequences outside.
#[test]
fn a_plain_array_program_gets_the_same() {
    let Some(python) = python() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/check_approximation.py");
    for (function, dim, length, grid) in [
        ("x1*mean(x1)", "1", "2", "20"),
        ("sin(5*x1) + max(x1)", "1", "3", "9"),
        ("x1*mean(x2); x2 - max(x1)", "2", "2", "5"),
        ("x1*mean(x2); x2 - max(x1)", "2", "3", "3"),
        ("x1*place", "1", "2", "8"),
    ] {
        let files = Files::new();
        let made = approximate(&files, function, dim, length, &["--grid", grid, "--effort", "1", "--points", "256"]);
        assert_eq!(made.code, 0, "{}", made.stdout);
        let output = Command::new(&python).args([script, &files.path("model")]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{function}: {text} {}", String::from_utf8_lossy(&output.stderr));
    }
}
