//! What a user would do: verify a model directory against a dataset.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{DATA, Files, certify};
use monolayer_check::{Format, Options, Precision, Report, Verdict, verify};
use serde_json::json;

fn written(files: &Files, data: &str, name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    files.write(dir.path());
    let path = dir.path().join(name);
    fs::write(&path, data).unwrap();
    (dir, path)
}

fn check(files: &Files, data: &str, options: &Options) -> Report {
    let (dir, path) = written(files, data, "data.conll");
    verify(dir.path(), path.to_str(), options)
}

#[test]
fn an_honest_model_is_verified_in_every_arithmetic() {
    for precision in [Precision::F32, Precision::F64, Precision::Real] {
        let options = Options { precision: Some(precision), ..Options::default() };
        let report = check(&Files::honest(), DATA, &options);
        assert_eq!((report.verdict, report.tokens, report.verified), (Verdict::Verified, 5, 5), "{}", report.text());
        assert!(report.smallest_margin_ratio.unwrap() > 1000.0);
    }
}

#[test]
fn a_counterexample_names_token_place_and_scores() {
    let report = check(&Files::honest(), "a X\nb X\n", &Options::default());
    assert_eq!((report.verdict, report.refuted, report.verified), (Verdict::Refuted, 1, 1));
    let finding = &report.counterexamples[0];
    assert_eq!((finding.token, finding.position, finding.text.as_str()), (1, (0, 1), "b"));
    assert!(
        finding.what.contains("wanted \"X\" scores") && finding.what.contains("but \"Y\" scores"),
        "{}",
        finding.what
    );
    assert_eq!(report.json()["counterexamples"][0]["sequence"], 0);
}

#[test]
fn impossible_tokens_count_only_when_strict() {
    let data = "a X\nb Y\n\nb Y\na X\n\nb Y\na Y\n";
    let report = check(&Files::honest(), data, &Options::default());
    assert_eq!((report.verdict, report.impossible, report.verified), (Verdict::Verified, 1, 5));
    assert_eq!(report.impossible_tokens.len(), 1);
    let strict = check(&Files::honest(), data, &Options { strict: true, ..Options::default() });
    assert_eq!((strict.verdict, strict.refuted), (Verdict::Refuted, 1));
}

#[test]
fn first_stops_early() {
    // Enough different sequences for many blocks; the wrong label is in the first.
    let mut data = "a X\nb X\n\n".to_owned();
    for (a, b) in (1..60).flat_map(|a| (1..60).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        data += &("a X\n".repeat(a) + &"b Y\n".repeat(b) + "\n");
    }
    let count = |report: &Report| (report.verdict, report.refuted, report.unknown);
    let report = check(&Files::honest(), &data, &Options { first: true, ..Options::default() });
    assert_eq!(count(&report), (Verdict::Refuted, 1, 0));
    assert!(report.unchecked > 0 && report.verified + report.unchecked + report.impossible + 1 == report.tokens);
    let report = check(&Files::honest(), &data, &Options::default());
    assert_eq!((count(&report), report.unchecked), ((Verdict::Refuted, 1, 0), 0));
}

/// A model without a head: attention that does nothing, so that outputs are the inputs.
fn identity() -> Files {
    let mut files = Files::honest();
    files.config["labels"] = json!(null);
    files.config["layers"][0]["hidden"] = json!(0);
    files.tensors.retain(|(name, ..)| name.starts_with("layers.0.attention"));
    *files.tensor("layers.0.attention.w_o") = vec![0.0, 0.0];
    files.vocabulary = None;
    files
}

#[test]
fn vector_outputs_are_checked_within_a_tolerance() {
    let data = "{\"tokens\": [[1, 2], [3, 4]], \"labels\": [[1, 2], [3, 4.25]]}\n";
    let (dir, path) = written(&identity(), data, "data.jsonl");
    let at =
        |tolerance| verify(dir.path(), path.to_str(), &Options { tolerance: Some(tolerance), ..Options::default() });
    assert_eq!(at(0.25).verdict, Verdict::Verified);
    let report = at(0.125);
    assert_eq!((report.verdict, report.verified, report.refuted), (Verdict::Refuted, 1, 1));
    assert!(report.counterexamples[0].what.contains("coordinate 1 is 4"), "{}", report.text());
    let claims = json!([{"kind": "outputs", "arithmetic": "f32", "tolerance": 0.25}]);
    certify(dir.path(), data, &claims);
    let report = verify(dir.path(), path.to_str(), &Options::default());
    assert_eq!(report.verdict, Verdict::Verified, "{}", report.text());
}

#[test]
fn arrays_are_read_like_json_lines() {
    let header = r#"{"tokens":{"dtype":"F32","shape":[1,2,2],"data_offsets":[0,16]},"labels":{"dtype":"F32","shape":[1,2,2],"data_offsets":[16,32]}}"#;
    let data: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.25].iter().flat_map(|x| x.to_le_bytes()).collect();
    let (dir, _) = written(&identity(), "", "unused");
    let path = dir.path().join("data.safetensors");
    fs::write(&path, common::assemble(header, &data)).unwrap();
    let options = Options { tolerance: Some(0.125), ..Options::default() };
    let report = verify(dir.path(), path.to_str(), &options);
    assert_eq!((report.verified, report.refuted), (1, 1), "{}", report.text());
    let forced = Options { format: Some(Format::Conll), ..options };
    assert_eq!(verify(dir.path(), path.to_str(), &forced).verdict, Verdict::Error);
}

#[test]
fn claims_without_data_are_those_about_the_model() {
    let (dir, _) = written(&Files::honest(), DATA, "data.conll");
    let claims = json!([{"kind": "rank", "tensor": "layers.0.attention.w_o", "rank": 1}, {"kind": "labels", "arithmetic": "f32", "right": 5}]);
    certify(dir.path(), DATA, &claims);
    let report = verify(dir.path(), None, &Options::default());
    assert_eq!((report.verdict, report.claims.len()), (Verdict::Verified, 2), "{}", report.text());
    fs::remove_file(dir.path().join("certificate.json")).unwrap();
    assert_eq!(verify(dir.path(), None, &Options::default()).verdict, Verdict::Error);
}

#[test]
fn a_missing_directory_is_an_error() {
    let report = verify(Path::new("nowhere"), None, &Options::default());
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::Error, 2));
    assert!(report.json()["where"].as_str().unwrap().contains("config.json"));
}

/// Sequences that only big floats can tell apart: the scores reach 600, so contexts differ by e^-600.
#[test]
fn contextual_mappings_beyond_f64_are_decided_with_big_floats() {
    let mut files = Files::honest();
    *files.tensor("layers.0.attention.w_q") = vec![600.0, 600.0];
    let data = "a X\nb Y\n\na X\na X\nb Y\n";
    let (dir, path) = written(&files, data, "data.conll");
    for (log2_delta, verdict) in [(-1200.0, Verdict::Verified), (-1000.0, Verdict::Refuted)] {
        let claims = json!([{"kind": "contextual-mapping", "layer": 0, "arithmetic": "real", "log2_r": 2, "log2_delta": log2_delta}]);
        certify(dir.path(), data, &claims);
        let report = verify(dir.path(), path.to_str(), &Options::default());
        assert_eq!(report.claims[2].verdict, verdict, "{}", report.text());
    }
}
