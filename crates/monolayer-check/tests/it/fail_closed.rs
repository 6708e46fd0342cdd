//! What was not asked, not checked or not there is never called verified.

use std::fs;
use std::process::Command;

use crate::common::{DATA, Files, certify};
use monolayer_check::{Options, Report, Verdict, verify};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The honest model with a certificate of these claims.
fn certified(claims: &Value) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    Files::honest().write(dir.path());
    fs::write(dir.path().join("data.conll"), DATA).unwrap();
    certify(dir.path(), DATA, claims);
    dir
}

fn asked(dir: &TempDir, kinds: &[&str]) -> Report {
    let claims = Some(kinds.iter().map(|&kind| kind.to_owned()).collect());
    verify(dir.path(), dir.path().join("data.conll").to_str(), &Options { claims, ..Options::default() })
}

#[test]
fn a_kind_that_no_claim_has_is_said_and_not_verified() {
    let dir = certified(&json!([{"kind": "labels", "arithmetic": "f32", "right": 5}]));
    for kind in ["outputs", "contextual-mapping", "distance", "rank"] {
        for kinds in [&[kind][..], &["labels", kind], &[kind, "labels"]] {
            let report = asked(&dir, kinds);
            assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::Unknown, 1), "{}", report.text());
            assert_eq!(report.not_checked, [format!("{kind}: the certificate has no such claim")]);
            assert!(report.text().contains("not checked: "), "{}", report.text());
        }
    }
    assert_eq!(asked(&dir, &["labels"]).verdict, Verdict::Verified);
    // Nothing at all is no kind.
    assert_eq!(asked(&dir, &[""]).verdict, Verdict::Error);
    let nothing = asked(&dir, &[]);
    assert_eq!(nothing.verdict, Verdict::Unknown, "{}", nothing.text());
}

#[test]
fn the_program_says_it_with_its_exit_code() {
    let dir = certified(&json!([{"kind": "labels", "arithmetic": "f32", "right": 5}]));
    let run = |kinds: &str| {
        let program = env!("CARGO_BIN_EXE_monolayer-check");
        let data = dir.path().join("data.conll");
        Command::new(program).arg(dir.path()).arg(data).args(["--claims", kinds]).output().unwrap()
    };
    for (kinds, code, says) in [
        ("labels", 0, "verified"),
        ("rank", 1, "unknown: not checked: rank: the certificate has no such claim"),
        ("labels,rank", 1, "unknown: not checked: rank: the certificate has no such claim"),
        ("ranks", 2, "there are no claims of kind \"ranks\""),
        ("", 2, "there are no claims of kind \"\""),
    ] {
        let found = run(kinds);
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        assert_eq!(found.status.code(), Some(code), "{kinds}: {text}");
        assert!(text.contains(says), "{kinds}: {text}");
    }
}

#[test]
fn a_certificate_of_nothing_is_unknown() {
    let dir = certified(&json!([]));
    let alone = verify(dir.path(), None, &Options::default());
    assert_eq!(alone.verdict, Verdict::Unknown, "{}", alone.text());
    assert_eq!(asked(&dir, &["labels"]).verdict, Verdict::Unknown);
    // With data the tokens are judged.
    let data = dir.path().join("data.conll");
    assert_eq!(verify(dir.path(), data.to_str(), &Options::default()).verdict, Verdict::Verified);
}

#[test]
fn data_of_free_labels_alone_proves_nothing() {
    let dir = certified(&json!([]));
    let data = dir.path().join("free.conll");
    fs::write(&data, "a _\nb _\n").unwrap();
    let options = Options { ignore_certificate: true, ..Options::default() };
    let report = verify(dir.path(), data.to_str(), &options);
    assert_eq!((report.verdict, report.free, report.verified), (Verdict::Unknown, 2, 0), "{}", report.text());
}

#[test]
fn a_model_without_labels_gives_none() {
    let mut files = Files::honest();
    files.config["labels"] = Value::Null;
    files.vocabulary = None;
    files.tensors.retain(|(name, ..)| !name.starts_with("head") && !name.starts_with("embedding"));
    let dir = tempfile::tempdir().unwrap();
    files.write(dir.path());
    let data = dir.path().join("data.jsonl");
    fs::write(&data, "{\"tokens\":[[1.0,0.0]],\"labels\":[[9.0,9.0]]}\n").unwrap();
    let options = Options { tolerance: Some(1e-3), ..Options::default() };
    let report = verify(dir.path(), data.to_str(), &options);
    assert_eq!((report.verdict, report.refuted), (Verdict::Refuted, 1), "{}", report.text());
    assert_eq!(report.counterexamples[0].given, None);
    assert_eq!(report.json()["counterexamples"][0]["given"], Value::Null);
}
