//! The tests that the documentation names exist.

use std::fmt::Write as _;
use std::path::Path;

/// The text of all Rust files below a directory, and the names of all directories.
fn sources(directory: &Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            writeln!(text, "directory {}", path.file_name().unwrap().display()).unwrap();
            sources(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn named_tests_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut code = String::new();
    sources(&root.join("crates"), &mut code);
    let mut named = 0;
    for page in ["docs/paper.md", "docs/errata.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for row in text.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() >= 2) {
            let last = row.trim_end_matches('|').rsplit(" | ").next().unwrap();
            // Between backticks: `name`, `file: name`, or `file: name_*`.
            for quoted in last.split('`').skip(1).step_by(2) {
                let name = quoted.rsplit(": ").next().unwrap();
                let found = code.contains(&format!("fn {}", name.trim_end_matches('*')))
                    || code.contains(&format!("directory {name}\n"));
                assert!(found, "{page} names {name}, which is no test and no fixture");
                named += 1;
            }
        }
    }
    assert!(named > 30, "{named}");
}
