//! The files of grammar/: the core reads and refuses what expected.json says, and finds the canonical form of datasets.

use std::fs;
use std::path::{Path, PathBuf};

use monolayer_core::read::certificate;
use monolayer_core::read::data::{Kind, Reader};
use monolayer_core::read::json::{self, Json};
use monolayer_core::read::{Limits, directory};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../grammar")
}

/// Whether the core is among the readers of a case.
fn reads(case: &Json) -> bool {
    case.get("readers").list().is_some_and(|readers| readers.iter().any(|reader| reader.text() == Some("core")))
}

/// What is wrong with the answer to a case.
fn judge(name: &str, case: &Json, answer: Result<(), String>) -> Option<String> {
    match answer {
        Ok(()) if !reads(case) => Some(format!("{name} is read: {}", case.get("why").text()?)),
        Err(error) if reads(case) => Some(format!("{name} is refused: {error}")),
        _ => None,
    }
}

#[test]
fn models() {
    let expected = fs::read(folder().join("expected.json")).unwrap();
    let expected = json::parse(&expected).unwrap();
    let cases = expected.get("models").object().unwrap();
    let open = |name: &str| directory::open(&folder().join("models").join(name), &Limits::default());
    let answer = |name: &str| open(name).map(|_| ()).map_err(|e| e.to_string());
    let wrong: Vec<String> = cases.iter().filter_map(|(name, case)| judge(name, case, answer(name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 100 && cases.iter().any(|(_, case)| reads(case)));
}

#[test]
fn certificates() {
    let expected = fs::read(folder().join("expected.json")).unwrap();
    let expected = json::parse(&expected).unwrap();
    let cases = expected.get("certificates").object().unwrap();
    let answer = |name: &str| {
        let bytes = fs::read(folder().join("certificates").join(format!("{name}.json"))).unwrap();
        certificate::parse(&bytes, &Limits::default()).map(|_| ()).map_err(|e| e.to_string())
    };
    let wrong: Vec<String> = cases.iter().filter_map(|(name, case)| judge(name, case, answer(name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 30 && cases.iter().any(|(_, case)| reads(case)));
}

#[test]
fn datasets() {
    let expected = fs::read(folder().join("expected.json")).unwrap();
    let expected = json::parse(&expected).unwrap();
    let cases = expected.get("data").object().unwrap();
    let answer = |name: &str, case: &Json| {
        let kind = if name.ends_with("jsonl") { Kind::JsonLines } else { Kind::Conll };
        let bytes = fs::read(folder().join("data").join(name)).unwrap();
        let read = Reader::new(kind, &Limits::default()).with_canonical(&bytes);
        let (_, found) = read.map_err(|e| e.to_string())?;
        let canonical = case.get("canonical").text();
        if canonical.is_some_and(|text| text != found) {
            return Err(format!("the canonical form {found:?}"));
        }
        Ok(())
    };
    // Arrays are converted before they come here.
    let text = cases.iter().filter(|(name, _)| !name.ends_with("safetensors"));
    let wrong: Vec<String> = text.clone().filter_map(|(name, case)| judge(name, case, answer(name, case))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(text.clone().count() > 40 && text.clone().any(|(_, case)| reads(case)));
}
