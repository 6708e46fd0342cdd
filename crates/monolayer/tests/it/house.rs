//! The house rules that a program can check: one name for one thing, functions that fit on a screen, a small root with an
//! example for each of its types.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The checker's crates count their own lines.
const CRATES: [&str; 4] = ["monolayer", "monolayer-train", "monolayer-lab", "monolayer-cli"];

/// The sources below a directory.
fn sources(directory: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
}

fn of_crate(name: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &mut files);
    assert!(files.len() > 5, "{name}");
    files
}

/// The name that a line declares with one of some keywords.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (keyword, rest) = line.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    keywords.contains(&keyword).then_some(&rest[..end])
}

#[test]
fn a_type_name_means_one_thing_per_crate() {
    for name in CRATES {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, text) in of_crate(name) {
            for line in text.lines() {
                // Every command has its arguments.
                if let Some(found) = declared(line, &["struct", "enum", "trait"]).filter(|&found| found != "Args") {
                    places.entry(found.to_owned()).or_default().push(path.display().to_string());
                }
            }
        }
        let twice: Vec<_> = places.iter().filter(|(_, paths)| paths.len() > 1).collect();
        assert!(twice.is_empty(), "{name}: {twice:#?}");
        assert!(name != "monolayer" || places.contains_key("Compiled"));
    }
}

#[test]
fn functions_fit_on_a_screen_and_files_are_read_in_one_sitting() {
    let mut functions = 0;
    for (path, text) in CRATES.into_iter().flat_map(of_crate) {
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= 500, "{}: {} lines", path.display(), lines.len());
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| declared(line, &["fn"]).is_some()) {
            let indent = &line[..line.len() - line.trim_start().len()];
            let end = lines[i..].iter().position(|line| *line == format!("{indent}}}")).unwrap_or(0);
            let only_declared = lines[i..].iter().take(end).any(|line| {
                line.ends_with(';')
                    && line.starts_with(indent)
                    && (line.len() == indent.len() || !line[indent.len()..].starts_with(' '))
            });
            assert!(only_declared || end < 60, "{}:{}: {} lines", path.display(), i + 1, end + 1);
            functions += 1;
        }
    }
    assert!(functions > 500, "{functions}");
}

#[test]
fn the_root_is_small_and_its_types_have_examples() {
    let files = of_crate("monolayer");
    let (_, root) = files.iter().find(|(path, _)| path.ends_with("src/lib.rs")).unwrap();
    let modules = root.lines().filter(|line| line.starts_with("pub mod ")).count();
    let names: Vec<&str> = root
        .lines()
        .filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';'))
        .flat_map(|path| {
            let list = path.rsplit_once("::").map_or(path, |(before, last)| {
                path.split_once('{').map_or(last, |(_, list)| if before.contains('{') { list } else { last })
            });
            list.trim_matches(['{', '}']).split(", ").collect::<Vec<_>>()
        })
        .collect();
    assert!(names.len() > 20 && modules + names.len() <= 80, "{modules} modules, {names:?}");
    for name in names.iter().filter(|name| **name != "Result") {
        let found = files.iter().find_map(|(_, text)| {
            let lines: Vec<&str> = text.lines().collect();
            let at = lines.iter().position(|line| {
                line.starts_with("pub ") && declared(line, &["struct", "enum", "trait"]) == Some(name)
            })?;
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with("///") || line.starts_with("#["));
            Some(above.filter(|line| line.starts_with("/// ```")).count())
        });
        assert!(found.is_some_and(|fences| fences >= 2), "{name}: {found:?}");
    }
}
