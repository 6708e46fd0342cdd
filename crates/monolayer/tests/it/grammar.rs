//! The files of grammar/: the library reads and refuses what expected.json says, and knows the canonical form of datasets.

use std::path::{Path, PathBuf};

use monolayer::data::Format;
use monolayer::model::{certificate_file, exact_file};
use monolayer::{AnyModel, Dataset};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../grammar")
}

/// The cases of a kind: name, what is expected, whether the library reads it.
fn cases(kind: &str) -> Vec<(String, Value, bool)> {
    let text = std::fs::read(folder().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let reads = |case: &Value| case["readers"].as_array().is_some_and(|readers| readers.contains(&"library".into()));
    let case = |(name, case): (&String, &Value)| (name.clone(), case.clone(), reads(case));
    expected[kind].as_object().unwrap().iter().map(case).collect()
}

fn open(directory: &Path) -> monolayer::Result<()> {
    if exact_file::is_exact(directory)? {
        exact_file::read(directory).map(|_| ())
    } else {
        AnyModel::open(directory).map(|_| ())
    }
}

#[test]
fn models() {
    let cases = cases("models");
    let mut wrong = Vec::new();
    for (name, case, reads) in &cases {
        match open(&folder().join("models").join(name)) {
            Ok(()) if !reads => wrong.push(format!("{name} is read: {}", case["why"])),
            Err(error) if *reads => wrong.push(format!("{name} is refused: {error}")),
            _ => (),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 100 && cases.iter().any(|(_, _, reads)| *reads));
}

#[test]
fn certificates() {
    let cases = cases("certificates");
    for (name, case, reads) in &cases {
        let found = certificate_file::read(folder().join("certificates").join(format!("{name}.json")));
        assert_eq!(found.is_ok(), *reads, "{name}: {}: {found:?}", case["why"]);
    }
    assert!(cases.len() > 30 && cases.iter().any(|(_, _, reads)| *reads));
}

#[test]
fn datasets() {
    let cases = cases("data");
    let mut wrong = Vec::new();
    for (name, case, reads) in &cases {
        // The grammar is about files of known formats: nothing is looked at.
        let format = match name.rsplit_once('.').unwrap().1 {
            "jsonl" => Format::JsonLines,
            "safetensors" => Format::Arrays,
            _ => Format::Conll,
        };
        let file = std::fs::File::open(folder().join("data").join(name)).unwrap();
        match Dataset::read(name, format, file) {
            Ok(_) if !reads => wrong.push(format!("{name} is read: {}", case["why"])),
            Err(error) if *reads => wrong.push(format!("{name} is refused: {error}")),
            Ok(data) => {
                let mut canonical = Vec::new();
                data.write_canonical(&mut canonical).unwrap();
                if canonical != case["canonical"].as_str().unwrap().as_bytes() {
                    wrong.push(format!("{name} is {:?}", String::from_utf8_lossy(&canonical)));
                }
                assert_eq!(data.hash(), blake3::hash(&canonical).to_hex().as_str());
            }
            Err(_) => (),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 40 && cases.iter().any(|(_, _, reads)| *reads));
}
