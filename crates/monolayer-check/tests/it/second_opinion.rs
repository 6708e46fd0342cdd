//! The checker and `tools/second_opinion.py` (intervals of its own) never contradict each other in real arithmetic, on models of
//! all scales; on ordinary ones they agree token by token.
//!
//! Needs any Python 3.11: `MONOLAYER_PYTHON` names it, else `python3` is tried.

use std::path::Path;
use std::process::Command;

use crate::soundness::adapter::{self, Judgment};
use crate::soundness::case::{Arithmetic, Claim};
use crate::soundness::cases::{self, Menu};
use crate::soundness::draw::{SCALES, Scale};
use crate::soundness::graph::Graph;
use crate::soundness::random::Random;
use monolayer_check::{Options, Precision, verify};
use serde_json::Value;

pub fn python() -> Option<String> {
    let python = std::env::var("MONOLAYER_PYTHON").unwrap_or_else(|_| "python3".into());
    let works = Command::new(&python)
        .args(["-c", "import sys; assert sys.version_info >= (3, 11)"])
        .output()
        .is_ok_and(|out| out.status.success());
    if !works {
        eprintln!("SKIPPED: no Python 3.11 (set MONOLAYER_PYTHON)");
    }
    works.then_some(python)
}

fn run(python: &str, dir: &Path, data: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/second_opinion.py");
    let out = Command::new(python).arg(script).arg(dir).arg(data).output().unwrap();
    serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)))
}

#[test]
fn random_models_get_no_other_verdict() {
    let Some(python) = python() else { return };
    let mut decided = 0;
    for seed in 0..100 {
        // A directory of its own: a mask file that no layer names is refused.
        let dir = tempfile::tempdir().unwrap();
        let (scale, name) = SCALES[seed % SCALES.len()];
        let kind = if seed % 10 == 9 { "gated" } else { "labels" };
        let menu = Menu { kinds: vec![kind], scales: vec![(scale, name)], second: adapter::SECOND_FORMAT, wide: false };
        let mut case = cases::case(&mut Random(900 + seed as u64), &menu);
        if case.model.embedding.is_none() {
            continue;
        }
        (case.arithmetic, case.claim) = (Arithmetic::Real, Claim::Labels);
        let graphs: Vec<Graph> = case.data.sequences.iter().map(|s| Graph::new(&case.model, s)).collect();
        let ours = adapter::judge(&case, &graphs, dir.path());
        let theirs = run(&python, dir.path(), &dir.path().join("data.jsonl"));
        let letters = theirs["letters"].as_str().unwrap_or_else(|| panic!("{theirs}")).as_bytes();
        for (t, (ours, &letter)) in ours.tokens.iter().zip(letters).enumerate() {
            let allowed: &[u8] = match ours {
                Judgment::Impossible => b"i",
                // With 200 bits it may leave open what more bits decide.
                Judgment::Right => b"vu",
                Judgment::Wrong => b"ru",
                Judgment::Unknown => b"vru",
            };
            assert!(allowed.contains(&letter), "seed {seed} ({name}), token {t}: {ours:?} and {}", letter as char);
            if scale == Scale::Ordinary {
                assert_ne!(letter, b'u', "seed {seed}, token {t}");
            }
            decided += usize::from(letter != b'u');
        }
    }
    assert!(decided > 100, "only {decided} tokens were decided");
}

#[test]
fn attacks_with_a_well_formed_model_get_the_same_verdict() {
    let Some(python) = python() else { return };
    for name in [
        "honest",
        "one-label-flipped",
        "one-weight-changed",
        "subnormal-trap",
        "tie-of-rounding-size",
        "label-of-no-model",
    ] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks").join(name);
        let data = dir.join("data.conll");
        let options = Options { precision: Some(Precision::Real), ignore_certificate: true, ..Options::default() };
        let ours = verify(&dir, data.to_str(), &options).verdict.name();
        assert_eq!(run(&python, &dir, &data)["verdict"], ours, "{name}");
    }
}
