//! The hostile directories of attacks/: files that must be an error are refused for the reason given, all others are read.

use std::fs;
use std::path::{Path, PathBuf};

use monolayer_core::read::certificate::Claim;
use monolayer_core::read::data::Kind;
use monolayer_core::read::{Limits, at, certificate, data, difference, directory, file, json};

fn attacks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks")
}

/// Errors that are not of the files by themselves: data that the model cannot take, functions that are no expressions, differences between
/// other models, or none.
const LATER: [&str; 9] = [
    "no-labels",
    "unknown-word",
    "distance-of-a-deep-function",
    "distance-of-an-unknown-name",
    "difference-of-no-word",
    "difference-to-no-label",
    "difference-at-no-place",
    "difference-longer-than-places",
    "difference-missing",
];

fn read(dir: &Path) -> Result<(), String> {
    let limits = Limits::default();
    let fault = |e: monolayer_core::read::Error| e.to_string();
    directory::open(dir, &limits).map_err(fault)?;
    let data = dir.join("data.conll");
    if data.exists() {
        let bytes = file(&data, "bytes", limits.bytes).map_err(fault)?;
        at(data.display(), data::parse(&bytes, Kind::Conll, &limits)).map_err(fault)?;
    }
    let claims = dir.join("certificate.json");
    if claims.exists() {
        let bytes = file(&claims, "json", limits.json).map_err(fault)?;
        certificate::parse(&bytes, &limits).map_err(fault)?;
    }
    let changes = dir.join("difference.json");
    if changes.exists() {
        let bytes = file(&changes, "json", limits.json).map_err(fault)?;
        difference::parse(&bytes, &limits).map_err(fault)?;
        directory::open(&dir.join("before"), &limits).map_err(fault)?;
    }
    Ok(())
}

#[test]
fn every_attack_is_read_or_refused() {
    let mut refused = 0;
    let mut failures = Vec::new();
    for entry in fs::read_dir(attacks()).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(expected) = fs::read(dir.join("expect.json")) else { continue };
        let expected = json::parse(&expected).unwrap();
        // Several verdicts may be allowed; being refused is then none of them.
        let verdict = expected.get("verdict").text().unwrap_or("one of several");
        let says = expected.get("says").text().unwrap_or("");
        let must_fail = verdict == "error" && !LATER.iter().any(|name| dir.ends_with(name));
        match read(&dir) {
            Err(e) if must_fail && e.contains(says) => refused += 1,
            Ok(()) if !must_fail => {}
            found => failures.push(format!("{}: expected {verdict} ({says:?}), got {found:?}", dir.display())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(refused > 40, "only {refused} were refused");
}

#[test]
fn hashes_are_those_of_the_certificates() {
    let limits = Limits::default();
    for name in ["honest", "honest-gap", "honest-distance"] {
        let dir = attacks().join(name);
        let (_, hashes) = directory::open(&dir, &limits).unwrap();
        let bytes = fs::read(dir.join("certificate.json")).unwrap();
        let certificate = certificate::parse(&bytes, &limits).unwrap();
        assert_eq!(certificate.model, hashes, "{name}");
        assert!(!certificate.claims.is_empty());
        assert!(!certificate.claims.iter().any(|claim| matches!(claim, Claim::Other(_))), "{name}: {certificate:?}");
        assert_eq!(certificate.exp_ulp, Some(4));
    }
}
