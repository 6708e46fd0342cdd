//! Every hostile directory of attacks/ gets the verdict it deserves, for the reason it deserves, without a panic.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common;
use monolayer_check::{Options, Precision, Verdict, verify};
use serde_json::Value;

fn attacks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks")
}

#[test]
fn every_attack_gets_its_verdict() {
    let mut count = 0;
    let mut failures = Vec::new();
    for entry in fs::read_dir(attacks()).unwrap() {
        let dir = entry.unwrap().path();
        if !dir.is_dir() {
            continue;
        }
        let expected = serde_json::from_slice::<Value>(&fs::read(dir.join("expect.json")).unwrap()).unwrap();
        // Claims about functions need no data.
        let data = ["data.conll", "data.jsonl"].map(|name| dir.join(name)).into_iter().find(|data| data.exists());
        let precision = expected["precision"].as_str().and_then(Precision::of);
        // Claims about two models have the first in a directory of its own.
        let against = Some(dir.join("before")).filter(|before| before.exists());
        let options = Options { precision, against, ..Options::default() };
        let report = verify(&dir, data.as_ref().and_then(|data| data.to_str()), &options);
        // One verdict, or a list of those that are true where not every checker must decide.
        let verdict = &expected["verdict"];
        let verdicts: Vec<&str> = match verdict.as_array() {
            Some(list) => list.iter().filter_map(Value::as_str).collect(),
            None => verdict.as_str().into_iter().collect(),
        };
        let says = expected["says"].as_str().unwrap();
        if !verdicts.contains(&report.verdict.name()) || !report.text().contains(says) {
            failures.push(format!("{}: expected {verdicts:?} ({says:?}), got {}", dir.display(), report.text()));
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 220, "only {count} attacks were found");
}

#[cfg(unix)]
#[test]
fn links_to_devices_and_pipes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors", "vocabulary.json", "certificate.json"] {
        let path = dir.path().join(file.replace('.', "-"));
        common::Files::honest().write(&path);
        fs::write(path.join("data.conll"), common::DATA).unwrap();
        let _ = fs::remove_file(path.join(file));
        std::os::unix::fs::symlink("/dev/zero", path.join(file)).unwrap();
        let report = verify(&path, path.join("data.conll").to_str(), &Options::default());
        assert_eq!(report.verdict, Verdict::Error, "{file}");
        assert!(report.text().contains("not a regular file"), "{}", report.text());
    }
}

#[test]
fn overflow_and_underflow_are_decided_in_real_arithmetic() {
    for (name, verdict) in [("overflow-in-one-order", Verdict::Refuted), ("subnormal-trap", Verdict::Refuted)] {
        let dir = attacks().join(name);
        let options = Options { precision: Some(Precision::Real), ..Options::default() };
        let report = verify(&dir, dir.join("data.conll").to_str(), &options);
        assert_eq!(report.verdict, verdict, "{name}: {}", report.text());
        assert_eq!(report.unknown, 0);
    }
}
