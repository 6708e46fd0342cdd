//! The readers stay small and free of floats.

use std::fs;
use std::path::{Path, PathBuf};

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some()).collect()
}

/// Lines that are not blank, not comments and not under `#[cfg(test)]`.
fn code(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).map(str::to_owned).collect()
}

#[test]
fn readers_are_at_most_900_lines_without_floats() {
    let read = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/read");
    let lines: Vec<String> = files(&read).iter().flat_map(|path| code(path)).collect();
    assert!((300..=900).contains(&lines.len()), "{} lines", lines.len());
    for line in &lines {
        // Names of formats in quotes are not types.
        let bare: String = line.split('"').step_by(2).collect();
        let words: Vec<&str> = bare.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        assert!(!words.contains(&"f32") && !words.contains(&"f64") && !words.contains(&"unsafe"), "{line}");
    }
}
