//! What a user would do: verify a model directory against a dataset.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::common::{DATA, Files, certify, data_hash};
use monolayer_check::options::set_limit;
use monolayer_check::{Format, Options, Precision, Report, Verdict, judge_tokens, verify};
use serde_json::{Value, json};

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
        finding.what.starts_with("wanted \"X\", the model gives \"Y\" (margin -") && finding.given == Some("Y".into()),
        "{}",
        finding.what
    );
    assert!(report.text().starts_with("refuted in f32 arithmetic: 1 of 2 tokens are wrong, 1 are right and proved\n"));
    assert_eq!(report.json()["counterexamples"][0]["given"], "Y");
    assert_eq!(report.json()["counterexamples"][0]["sequence"], 0);
}

#[test]
fn impossible_tokens_count_only_when_strict() {
    let data = "a X\nb Y\n\nb Y\na X\n\nb Y\na Y\n";
    let report = check(&Files::honest(), data, &Options::default());
    assert_eq!((report.verdict, report.impossible, report.verified), (Verdict::Verified, 1, 5));
    assert_eq!(report.impossible_tokens.len(), 1);
    assert!(report.impossible_tokens[0].what.starts_with("wanted \"Y\", the model gives \"X\""), "{}", report.text());
    let strict = check(&Files::honest(), data, &Options { strict: true, ..Options::default() });
    assert_eq!((strict.verdict, strict.refuted), (Verdict::Refuted, 1));
}

#[test]
fn the_first_refutation_is_enough_and_no_token_is_left_out() {
    let data = "a X\nb X\n\na X\nb Y\nb Y\n";
    let report = check(&Files::honest(), data, &Options { first: true, ..Options::default() });
    assert_eq!((report.verdict, report.refuted, report.verified, report.unchecked), (Verdict::Refuted, 1, 4, 0));
}

#[test]
fn free_labels_are_counted_and_never_wrong() {
    let report = check(&Files::honest(), "a X\nb _\n\nb Y\na _\n", &Options::default());
    assert_eq!((report.verdict, report.verified, report.free), (Verdict::Verified, 2, 2), "{}", report.text());
    assert_eq!(report.json()["free"], 2);
    let report = check(&Files::honest(), "a _\nb _\n", &Options::default());
    assert_eq!(report.verdict, Verdict::Unknown, "nothing was asked: {}", report.text());
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
    assert!(report.counterexamples[0].what.contains("coordinate 2 is not within the tolerance"), "{}", report.text());
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
    fs::write(&path, crate::common::assemble(header, &data)).unwrap();
    let options = Options { tolerance: Some(0.125), ..Options::default() };
    let report = verify(dir.path(), path.to_str(), &options);
    assert_eq!((report.verified, report.refuted), (1, 1), "{}", report.text());
    let forced = Options { format: Some(Format::Conll), ..options };
    assert_eq!(verify(dir.path(), path.to_str(), &forced).verdict, Verdict::Error);
}

#[test]
fn what_was_not_checked_is_said_and_not_verified() {
    let (dir, path) = written(&Files::honest(), DATA, "data.conll");
    let claims = json!([{"kind": "rank", "tensor": "layers.0.attention.w_o", "rank": 1}, {"kind": "labels", "arithmetic": "f32", "right": 5}]);
    certify(dir.path(), DATA, &claims);
    let asked = |kinds: &[&str]| Options {
        claims: Some(kinds.iter().map(|&kind| kind.to_owned()).collect()),
        ..Options::default()
    };
    let report = verify(dir.path(), None, &Options::default());
    assert_eq!((report.verdict, report.claims.len()), (Verdict::Unknown, 2), "{}", report.text());
    assert_eq!(report.not_checked, ["labels in f32 arithmetic: no data was given"]);
    assert!(report.text().contains("not checked: labels"), "{}", report.text());
    let report = verify(dir.path(), None, &asked(&["rank"]));
    assert_eq!((report.verdict, report.not_checked.len()), (Verdict::Verified, 0), "{}", report.text());
    let report = verify(dir.path(), None, &asked(&["rank", "labels"]));
    assert_eq!(report.verdict, Verdict::Unknown, "{}", report.text());
    assert_eq!(verify(dir.path(), path.to_str(), &asked(&["rank", "labels"])).verdict, Verdict::Verified);
    let report = verify(dir.path(), path.to_str(), &asked(&["rank", "distance"]));
    assert_eq!((report.verdict, report.not_checked.len()), (Verdict::Unknown, 1), "{}", report.text());
    assert_eq!(verify(dir.path(), None, &asked(&["ranks"])).verdict, Verdict::Error);
    fs::remove_file(dir.path().join("certificate.json")).unwrap();
    assert_eq!(verify(dir.path(), None, &Options::default()).verdict, Verdict::Error);
    assert_eq!(verify(dir.path(), path.to_str(), &asked(&["rank"])).verdict, Verdict::Error);
}

#[test]
fn other_data_is_judged_by_itself() {
    let (dir, _) = written(&Files::honest(), DATA, "data.conll");
    certify(dir.path(), DATA, &json!([{"kind": "labels", "arithmetic": "f32", "right": 5}]));
    let other = dir.path().join("other.conll");
    for (text, verdict) in [("a X\nb Y\n", Verdict::Verified), ("a X\nb X\n", Verdict::Refuted)] {
        fs::write(&other, text).unwrap();
        let report = verify(dir.path(), other.to_str(), &Options::default());
        assert_eq!((report.verdict, report.other_data), (verdict, true), "{}", report.text());
        assert_eq!(report.not_checked, ["labels in f32 arithmetic: the data given is not the certificate's"]);
        assert!(report.text().contains("the data is not the certificate's (its hash differs)"), "{}", report.text());
    }
    // The same data in another file.
    fs::write(&other, DATA.replace('\n', "\r\n").replace(' ', "\tNN ")).unwrap();
    let report = verify(dir.path(), other.to_str(), &Options::default());
    assert_eq!((report.verdict, report.other_data, report.claims.len()), (Verdict::Verified, false, 3));
}

#[test]
fn limits_name_the_option_that_raises_them() {
    let (dir, path) = written(&Files::honest(), DATA, "data.conll");
    certify(dir.path(), DATA, &json!([{"kind": "labels", "arithmetic": "f32", "right": 5}]));
    for limit in ["bytes=10", "json=10", "labels=1", "claims=0", "tokens=4", "length=2", "pairs=12"] {
        let mut options = Options::default();
        set_limit(&mut options.limits, limit).unwrap();
        let report = verify(dir.path(), path.to_str(), &options);
        let name = limit.split('=').next().unwrap();
        assert_eq!(report.verdict, Verdict::Error, "{limit}");
        assert!(report.text().contains(&format!("--limit {name}=N raises it")), "{}", report.text());
    }
    for wrong in ["bytes", "bites=3", "bytes=-1", "bytes=many"] {
        assert!(set_limit(&mut Options::default().limits, wrong).is_err(), "{wrong}");
    }
    // A task is not even enumerated.
    let report = verify(dir.path(), Some("task:copy:alphabet=2,length=60"), &Options::default());
    assert!(report.text().contains("--limit tokens=N raises it"), "{}", report.text());
}

#[test]
fn progress_ends_with_all_tokens_and_threads_change_nothing() {
    let (dir, path) = written(&Files::honest(), DATA, "data.conll");
    let last = Mutex::new((0, 0));
    let tell = |done: usize, total: usize| *last.lock().unwrap() = (done, total);
    let options = Options { on_progress: Some(&tell), threads: 1, ..Options::default() };
    let one = verify(dir.path(), path.to_str(), &options);
    assert_eq!(*last.lock().unwrap(), (5, 5));
    let many = verify(dir.path(), path.to_str(), &Options { threads: 7, ..Options::default() });
    assert_eq!(Report { seconds: 0.0, ..one }, Report { seconds: 0.0, ..many });
}

#[test]
fn tokens_are_judged_one_by_one() {
    let (dir, path) = written(&Files::honest(), "a X\nb X\n\nb _\n", "data.conll");
    let tokens = judge_tokens(dir.path(), path.to_str().unwrap(), Precision::F32).unwrap();
    let verdicts: Vec<_> = tokens.iter().map(|token| token.verdict).collect();
    assert_eq!(verdicts, [Some(Verdict::Verified), Some(Verdict::Refuted), None]);
    assert!(tokens[0].ratio().unwrap() > 1000.0 && tokens[1].ratio().unwrap() < -1000.0);
    assert_eq!((tokens[0].given.as_deref(), tokens[1].given.as_deref()), (Some("X"), Some("Y")));
    assert!(judge_tokens(dir.path(), "nowhere", Precision::F32).is_err());
}

#[test]
fn a_missing_directory_is_an_error() {
    let report = verify(Path::new("nowhere"), None, &Options::default());
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::Error, 2));
    assert!(report.json()["where"].as_str().unwrap().contains("config.json"));
}

/// Sequences that only many bits can tell apart: the scores reach 600, so contexts differ by e^-600.
#[test]
fn contextual_mappings_beyond_f64_are_decided_with_more_bits() {
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

#[test]
fn ranks_are_exact() {
    let last = f64::from(1.0_f32.next_up());
    for (weights, rank) in [
        ([1.0, 0.0, 0.0, 1.0], 2),
        ([1.0, 2.0, -3.0, -6.0], 1),
        ([1.0, 1.0, 1.0, last], 2),
        ([1e-45, 3e38, 1e-45, 3e38], 1),
        ([0.0; 4], 0),
    ] {
        let mut files = Files::honest();
        *files.tensor("head.weight") = weights.to_vec();
        let (dir, _) = written(&files, DATA, "data.conll");
        for claimed in 0..3 {
            certify(dir.path(), DATA, &json!([{"kind": "rank", "tensor": "head.weight", "rank": claimed}]));
            let report = verify(dir.path(), None, &Options::default());
            let verdict = if claimed == rank { Verdict::Verified } else { Verdict::Refuted };
            assert_eq!(report.verdict, verdict, "{weights:?}: {}", report.text());
        }
    }
}

#[test]
fn witnesses_are_written_for_every_token() {
    let (dir, path) = written(&Files::honest(), DATA, "data.conll");
    let file = dir.path().join("witness.jsonl");
    let options = Options { witness: Some(file.clone()), ..Options::default() };
    let report = verify(dir.path(), path.to_str(), &options);
    assert_eq!(report.verdict, Verdict::Verified, "{}", report.text());
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["format"], &lines[0]["data"]), (&json!("monolayer-witness/1"), &json!(data_hash(DATA))));
    assert_eq!(lines.len(), 1 + 5);
    // The label scores of the first token are apart, as the report says.
    let end = |label: usize, side: usize| {
        let ball = &lines[1]["labels"][label];
        ball[side].as_f64().unwrap() * 2_f64.powi(i32::try_from(ball[2].as_i64().unwrap()).unwrap())
    };
    assert!(end(0, 0) > end(1, 1), "{}", lines[1]);
    // Exact numbers, and no data, are refused.
    assert_eq!(verify(dir.path(), None, &options).verdict, Verdict::Error);
}
