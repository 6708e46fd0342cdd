//! The core stays small and free of floats: the lines of each part are counted.

use std::fs;
use std::path::{Path, PathBuf};

/// The source files of a folder, or one file.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some()).collect()
}

/// Lines that are not blank, not comments and not under `#[cfg(test)]`.
fn code(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).map(str::to_owned).collect()
}

/// Asserts that a part has at most so many lines, none of which names a float or is unsafe.
fn part(names: &[&str], most: usize) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let all = names.iter().flat_map(|name| files(&source.join(name)));
    let lines: Vec<String> = all.flat_map(|path| code(&path)).collect();
    println!("{names:?}: {} lines", lines.len());
    assert!((300..=most).contains(&lines.len()), "{names:?} has {} lines", lines.len());
    for line in &lines {
        // Names of formats in quotes are not types.
        let bare: String = line.split('"').step_by(2).collect();
        let words: Vec<&str> = bare.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        assert!(!words.contains(&"f32") && !words.contains(&"f64") && !words.contains(&"unsafe"), "{line}");
    }
}

/// Datasets are read in pieces, and sparse matrices as they are stored, so that files of any size take little memory.
#[test]
fn readers() {
    part(&["read"], 1060);
}

/// Half a million hidden units are told to be off, place by place, and sums that tokens share formed once: without that the time would
/// grow with the square of the data.
#[test]
fn rules_and_judge() {
    part(&["rules"], 2590);
}

/// Verdicts are taken one by one and not kept, and contexts sorted in parts: memory is bounded by some bytes per token.
#[test]
fn claims_numbers_and_models() {
    part(&["claims", "number.rs", "model.rs", "parallel.rs"], 1745);
}

#[test]
fn exact_numbers_expressions_and_distances() {
    part(&["exact"], 1520);
}
