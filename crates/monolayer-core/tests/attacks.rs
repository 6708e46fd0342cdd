//! The hostile directories of attacks/: a model that must be an error is refused for the reason given, all others are read.

use std::fs;
use std::path::{Path, PathBuf};

use monolayer_core::read::{Limits, directory, json};

fn attacks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks")
}

/// Errors that are not of the files by themselves: data that the model cannot take, or functions that are no expressions.
const LATER: [&str; 4] = ["no-labels", "unknown-word", "distance-of-a-deep-function", "distance-of-an-unknown-name"];

#[test]
fn every_attack_is_read_or_refused() {
    let mut refused = 0;
    let mut failures = Vec::new();
    for entry in fs::read_dir(attacks()).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(expected) = fs::read(dir.join("expect.json")) else { continue };
        let expected = json::parse(&expected).unwrap();
        let (verdict, says) = (expected.get("verdict").text().unwrap(), expected.get("says").text().unwrap());
        let limits = Limits::default();
        let found = directory::open(&dir, &limits).map(|_| ());
        let must_fail = verdict == "error" && !LATER.iter().any(|name| dir.ends_with(name));
        match found {
            Err(e) if must_fail && e.to_string().contains(says) => refused += 1,
            Ok(()) if !must_fail => {}
            found => failures.push(format!("{}: expected {verdict} ({says:?}), got {found:?}", dir.display())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(refused > 35, "only {refused} were refused");
}
