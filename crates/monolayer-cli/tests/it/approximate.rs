//! `monolayer approximate` as a user runs it.

use std::process::Command;

use crate::common::{Files, python, refused, run};
use serde_json::Value;

fn approximate(files: &Files, function: &str, dim: &str, length: &str, more: &[&str]) -> crate::common::Run {
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
    case("x1 +* 2", "1", Some("character 5"), &["character 5", "expected"]);
    case("((x1)", "1", Some("character 6"), &["\")\"", "character 1"]);
    case("x1 + y", "1", Some("character 6"), &["unknown name \"y\""]);
    case("x1 + x2", "1", Some("character 6"), &["x2 with tokens of 1 coordinate"]);
    case("sin(x1, x1)", "1", Some("character 1"), &["2 arguments"]);
    case("", "1", Some("character 1"), &["found nothing"]);
    case("x1", "2", Some("character 3"), &["1 expression for tokens of 2 coordinates"]);
    case("x1; x1", "1", Some("character 5"), &["2 expressions for tokens of 1 coordinate"]);
    case("1e400", "1", Some("character 1"), &["not finite"]);
    // Undefined somewhere in the cube: with a point.
    case("1/(x1 - 0.5)", "1", None, &["not defined", "division by zero", "(0.5)"]);
    case("1/(x1 - mean(x1))", "1", None, &["not defined", "x1 - mean(x1) is 0"]);
    case("log(x1 - 0.25)", "1", None, &["not defined", "logarithm of x1 - 0.25, which is -0.25", "(0), (1)"]);
    case("sqrt(x1 - 0.001)", "1", None, &["not defined", "square root"]);
    case("(x1 - 0.5)^0.5", "1", None, &["not defined", "which is -0.5"]);
    case("tan(2*x1)", "1", None, &["not defined", "pole"]);
    case("exp(1000*x1)", "1", None, &["exp(1000*x1) is not finite", "(1)"]);
    case("1e308*10*x1", "1", None, &["not finite"]);
}

#[test]
fn what_cannot_be_decided_is_not_refused() {
    let files = Files::new();
    // Positive, by less than intervals can tell.
    let run = approximate(&files, "log(sin(x1)^2 + cos(x1)^2 - 1 + 1e-20)", "1", "2", &["--grid", "2"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let json = run.json();
    assert!(json["error"].as_str().unwrap().contains("could not be decided"), "{json}");
    assert!(json["where"].is_string() && !std::path::Path::new(&files.path("model")).exists());
}

#[test]
fn bad_numbers_are_refused() {
    let files = Files::new();
    let out = files.path("model");
    let case = |more: &[&str], words: &[&str]| {
        let sizes: &[&str] = if more.contains(&"--dim") { &[] } else { &["--dim", "1", "--length", "2"] };
        refused(&[&["approximate", "--function", "x1", "--out", &out, "-q"], sizes, more].concat(), None, words);
        assert!(!std::path::Path::new(&out).exists());
    };
    case(&["--grid", "0"], &["0 parts"]);
    case(&["--epsilon", "0"], &["--epsilon 0"]);
    case(&["--epsilon", "-1"], &["--epsilon -1"]);
    case(&["--epsilon", "nan"], &["finite number above 0"]);
    case(&["--grid", "4", "--p", "0.5"], &["p = 0.5"]);
    case(&["--grid", "4", "--dim", "0", "--length", "2"], &["0 coordinates"]);
    case(&["--grid", "4", "--dim", "1", "--length", "0"], &["0 tokens"]);
    case(&["--grid", "100000"], &["10000000000 ids", "20000000001 hidden units"]);
    case(&["--grid", "1000000000000000000"], &["more than 2^63 ids"]);
    case(&["--epsilon", "1e-9"], &["would take a grid of about", "hidden units"]);
}

/// Kinks, jumps, sorting and quotients: met, measured below the bound, and verified by the checker.
#[test]
fn unpleasant_functions_are_approximated_and_verified() {
    for (function, dim, length) in [
        ("max(0, abs(x1 - 0.5) - 0.2)*4 + min(x1)", "1", "2"),
        ("step(x1 - mean(x1))", "1", "2"),
        ("mean(step(own1 - x1))", "1", "3"),
        ("min(abs(x1 - own1) + self)", "1", "3"),
        ("log(0.01 + x1)/3 + tanh(20*(x1 - max(x1) + 0.2))", "1", "2"),
        ("sqrt(abs(x1 - mean(x1)))", "1", "2"),
        ("x1/(0.1 + sum(x1)); x2/(0.1 + sum(x2))", "2", "2"),
        ("step(x1 - x2)*mean(x1); max(x1)*min(x2)", "2", "2"),
        ("x1*place - mean(x1*ownplace)", "1", "2"),
        ("0.5", "1", "2"),
    ] {
        let files = Files::new();
        let json = approximate(&files, function, dim, length, &["--epsilon", "0.3"]).json();
        let number = |field: &str| json[field].as_f64().unwrap();
        assert!(number("measured") <= number("bound") && number("bound") <= 0.3, "{function}: {json}");
        let verified = run(&["verify", &files.path("model"), "--json"]);
        assert_eq!((verified.code, &verified.json()["verdict"]), (0, &"verified".into()), "{function}");
    }
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
    refused(
        &[&arguments[..], &["--grid", "1000", "--most-ids", "500"]].concat(),
        None,
        &["500500000 ids", "1001000001 hidden units"],
    );
}

#[test]
fn places_need_positions_and_get_them() {
    let files = Files::new();
    let json = approximate(&files, "x1*place", "1", "2", &["--grid", "6", "--points", "1024"]).json();
    assert_eq!((json["ids"].as_u64(), &json["bound_everywhere"]), (Some(2 * 36), &Value::Null));
    assert_eq!(files.json("model/config.json")["max_length"], 2);
    let asked = approximate(&files, "x1*place", "1", "2", &["--grid", "6", "--points", "1024", "--positions"]).json();
    assert_eq!(asked["bound"], json["bound"]);
    for function in ["x1*place", "sum(x1*ownplace)"] {
        let none = approximate(&files, function, "1", "2", &["--grid", "6", "--positions", "none"]);
        assert!(none.code == 2 && none.stdout.contains("uses places"), "{}", none.stdout);
    }
}

/// The numpy program that knows only docs/format.md: every center of up to 10,000 cells, permuted sequences, sequences outside.
#[test]
fn a_plain_array_program_gets_the_same() {
    let Some(python) = python() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/check_approximation.py");
    for (function, dim, length, grid) in [
        ("x1*mean(x1)", "1", "2", "100"),
        ("sin(5*x1) + max(x1)", "1", "3", "20"),
        ("x1*mean(x2); x2 - max(x1)", "2", "2", "9"),
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
