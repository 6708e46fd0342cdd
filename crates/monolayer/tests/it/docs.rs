//! The documentation and the files agree: tests that it names exist, and so does every file of the architecture.

use std::collections::BTreeSet;
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

#[test]
fn the_files_of_where_is_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let (_, section) = page.split_once("\n## Where is ...?\n").expect("a section of questions");
    let (section, _) = section.split_once("\n## ").unwrap();
    let answers = section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let mut questions = 0;
    for (question, answer) in answers.filter(|(question, _)| *question != "question") {
        let paths: Vec<&str> = answer.split('`').skip(1).step_by(2).collect();
        assert!(!paths.is_empty(), "{question}: no file");
        for path in paths {
            assert!(root.join(path).is_file(), "{question}: there is no {path}");
        }
        questions += 1;
    }
    assert!(questions >= 10, "{questions}");
}

/// The source of a package must not need files of the repository around it.
#[test]
fn sources_reach_no_files_outside_of_their_crate() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        let mut files = BTreeSet::new();
        below(&source, "", &mut files);
        for file in files.iter().filter(|file| Path::new(file).extension().is_some_and(|e| e == "rs")) {
            let depth = file.matches('/').count() + 1;
            let text = std::fs::read_to_string(source.join(file)).unwrap();
            for macro_name in ["include_str!(\"", "include_bytes!(\""] {
                for (at, _) in text.match_indices(macro_name) {
                    let path = &text[at + macro_name.len()..];
                    let up = path.split('/').take_while(|part| *part == "..").count();
                    assert!(up <= depth, "{}/{file} reads a file outside of its crate", source.display());
                }
            }
        }
    }
}

/// The files of a tree in a code block: a line per file or folder, two spaces deeper inside a folder.
fn listed(block: &str) -> BTreeSet<String> {
    let (mut folders, mut files) = (Vec::new(), BTreeSet::new());
    for line in block.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2 - 1;
        let name = line.split_whitespace().next().unwrap();
        folders.truncate(depth);
        assert_eq!(folders.len(), depth, "{line}");
        match name.strip_suffix('/') {
            Some(folder) => folders.push(folder),
            None => assert!(files.insert([&folders[..], &[name]].concat().join("/")), "{name} stands there twice"),
        }
    }
    files
}

fn below(directory: &Path, prefix: &str, files: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().display());
        if path.is_dir() {
            below(&path, &format!("{name}/"), files);
        } else {
            files.insert(name);
        }
    }
}

#[test]
fn the_architecture_lists_every_file() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(crates.join("../docs/architecture.md")).unwrap();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let package = entry.unwrap().path();
        let name = package.file_name().unwrap().display().to_string();
        let (_, block) = page.split_once(&format!("```text\ncrates/{name}/src\n")).expect("a block with the files");
        let (block, _) = block.split_once("```").unwrap();
        let mut files = BTreeSet::new();
        below(&package.join("src"), "", &mut files);
        let listed = listed(block);
        let missing: Vec<_> = files.difference(&listed).collect();
        let gone: Vec<_> = listed.difference(&files).collect();
        assert!(
            missing.is_empty() && gone.is_empty(),
            "{name}: not listed: {missing:?}; listed, but no file: {gone:?}"
        );
        let top: Vec<_> = files.iter().filter(|file| !file.contains('/')).collect();
        let few = ["lib.rs", "error.rs", "fs.rs"];
        assert!(name != "monolayer" || top.iter().all(|file| few.contains(&file.as_str())), "{top:?}");
    }
}
