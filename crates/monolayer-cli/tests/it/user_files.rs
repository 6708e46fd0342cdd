//! Files as users have them: each is read right, with the line that says how, or refused with the option that would help.
//!
//! Beside every file stands NAME.expected: blocks that start with `$` and options, then either `line:` (how the line about it
//! starts, after the file's name), `warning:` lines and the canonical form, or `error:` (how the message starts; FILE is the path).

use std::path::{Path, PathBuf};

use crate::commands::groups;
use crate::common::{Files, run, run_with_bytes};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data-as-users-have-it")
}

/// What is expected of a file with some options.
struct Expected {
    options: Vec<String>,
    line: String,
    error: String,
    warnings: Vec<String>,
    canonical: String,
}

fn expected(text: &str) -> Vec<Expected> {
    let mut blocks: Vec<Expected> = Vec::new();
    for line in text.lines() {
        if let Some(options) = line.strip_prefix('$') {
            let options = options.split_whitespace().map(str::to_owned).collect();
            let (line, error, warnings, canonical) = Default::default();
            blocks.push(Expected { options, line, error, warnings, canonical });
            continue;
        }
        let block = blocks.last_mut().expect("a block starts with $");
        match line.split_once(": ") {
            Some(("line", rest)) => rest.clone_into(&mut block.line),
            Some(("error", rest)) => rest.clone_into(&mut block.error),
            Some(("warning", rest)) => block.warnings.push(rest.to_owned()),
            _ => block.canonical += &format!("{line}\n"),
        }
    }
    blocks
}

/// All files with what is expected of them.
fn cases() -> Vec<(PathBuf, Vec<Expected>)> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "expected") {
            let beside = PathBuf::from(format!("{}.expected", path.display()));
            let text = std::fs::read_to_string(&beside).unwrap_or_else(|_| panic!("no {}", beside.display()));
            cases.push((path, expected(&text)));
        }
    }
    assert!(cases.len() >= 25, "{}", cases.len());
    cases
}

/// What is wrong with how a file is read, if anything.
fn fault(path: &str, case: &Expected, files: &Files) -> Option<String> {
    let out = files.path("canonical.jsonl");
    let _ = std::fs::remove_file(&out);
    let mut arguments = vec!["data", path, "--canonical", &out];
    arguments.extend(case.options.iter().map(String::as_str));
    let run = run(&arguments);
    let told = format!("exit code {}\n{}", run.code, run.stderr);
    if !case.error.is_empty() {
        let message = format!("error: {}", case.error.replace("FILE", path));
        return (run.code != 2 || !run.stderr.starts_with(&message)).then(|| format!("expected {message}\n{told}"));
    }
    let line = format!("{path}: {}", case.line);
    let warnings: Vec<&str> = run.stderr.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
    if run.code != 0 || !run.stderr.starts_with(&line) || warnings != case.warnings {
        return Some(format!("expected {line}\n{told}"));
    }
    let canonical = std::fs::read_to_string(&out).unwrap();
    (canonical != case.canonical).then(|| format!("read as\n{canonical}"))
}

#[test]
fn every_file_is_read_right_or_refused_with_help() {
    let files = Files::new();
    let mut wrong = Vec::new();
    for (path, blocks) in cases() {
        assert!(!blocks.is_empty(), "{}", path.display());
        for case in blocks {
            let fault = fault(path.to_str().unwrap(), &case, &files);
            wrong.extend(fault.map(|fault| format!("{} {}: {fault}", path.display(), case.options.join(" "))));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Standard input has no name, so that the content alone decides: it is read alike, or refused where the name was a hint.
#[test]
fn standard_input_is_read_alike() {
    let (mut read, mut refused) = (0, 0);
    for (path, blocks) in cases() {
        for case in blocks {
            let mut arguments = vec!["data", "-", "--json"];
            arguments.extend(case.options.iter().map(String::as_str));
            let run = run_with_bytes(&arguments, &std::fs::read(&path).unwrap());
            let json = run.json();
            if run.code == 2 {
                refused += 1;
                continue;
            }
            assert_eq!(case.error, "", "{} is read from standard input", path.display());
            let hash = blake3::hash(case.canonical.as_bytes()).to_hex();
            assert_eq!(json["hash"], hash.as_str(), "{}", path.display());
            read += 1;
        }
    }
    assert!(read > 30 && refused > 20, "{read} read, {refused} refused");
}

/// The same data from several containers: one certificate, which the checker confirms for each of them.
#[test]
fn verify_reads_every_format() {
    let files = Files::new();
    let model = files.path("model");
    let same = ["columns.conll.gz", "columns.zst", "table.csv.gz", "array.json", "array-without-an-ending"];
    let paths: Vec<String> = same.iter().map(|name| folder().join(name).to_str().unwrap().to_owned()).collect();
    assert_eq!(run(&["memorize", &paths[0], "--out", &model, "-q"]).code, 0);
    for path in &paths {
        let checked = run(&["verify", &model, path, "--json"]);
        let json = checked.json();
        assert_eq!(
            (checked.code, &json["verdict"], &json["other_data"]),
            (0, &"verified".into(), &false.into()),
            "{path}: {json}"
        );
        let note = json["warnings"][0].as_str().unwrap();
        assert!(note.starts_with("converted from ") && note.contains("by the library"), "{note}");
    }
    // What the checker reads itself, it reads itself.
    let plain = files.put("plain.txt", "May PER\nsails O\n\nin O\nMay DATE\n");
    let json = run(&["verify", &model, &plain, "--json"]).json();
    assert_eq!((&json["verdict"], json["warnings"].as_array().map(Vec::len)), (&"verified".into(), Some(0)), "{json}");
    let people = run(&["verify", &model, &paths[2]]);
    assert!(people.stderr.contains("table.csv.gz: gzip, CSV, 2 sequences"), "{}", people.stderr);
    assert!(people.stdout.contains("converted from CSV by the library: the verdict is about the canonical form"));
    let refused = run(&["verify", &model, &folder().join("poem.txt").to_string_lossy()]);
    assert!(refused.code == 2 && refused.stderr.contains("use --text, or give --format conll"), "{}", refused.stderr);
}

#[test]
fn all_commands_that_read_data_have_the_same_options() {
    let commands = [
        "data",
        "context",
        "memorize",
        "verify",
        "predict",
        "inspect",
        "explain",
        "train",
        "claims",
        "experiment",
        "report",
    ];
    for command in commands {
        let help = run(&[command, "--help"]).stdout;
        let groups = groups(&help);
        let (_, group) = groups.iter().find(|(heading, _)| *heading == "What it reads").expect(command);
        for option in
            ["--format", "--columns", "--sentence", "--tokens-from", "--labels-from", "--label-at", "--padding"]
        {
            assert!(group.contains(&format!("{option} <")), "{command} {option}");
        }
    }
}

/// What `data --out` writes comes back as the same words and labels, or nothing is written.
#[test]
fn columns_that_would_be_read_as_other_data_are_not_written() {
    let files = Files::new();
    let out = files.path("out.conll");
    for (name, text) in [
        ("mark.jsonl", "{\"tokens\": [\"\\ufeffa\", \"a\"], \"labels\": [\"X\", \"Y\"]}\n"),
        ("header.jsonl", "{\"tokens\": [\"word\", \"c\", \"d\"], \"labels\": [\"tag\", \"Y\", \"Y\"]}\n"),
    ] {
        let path = files.put(name, text);
        let refused = run(&["data", &path, "--out", &out]);
        assert!(refused.code == 2 && !Path::new(&out).exists(), "{}", refused.stderr);
        assert!(refused.stderr.contains("would be read as other data; leave --out out"), "{}", refused.stderr);
    }
    let text = "{\"tokens\": [\"a\", \"\\ufeffword\"], \"labels\": [1, 2]}\n{\"tokens\": [\"#\"], \"labels\": [1]}\n";
    assert_eq!(run(&["data", &files.put("right.jsonl", text), "--out", &out]).code, 0);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "a 1\n\u{feff}word 2\n\n# 1\n\n");
}

/// The limit on the bytes of the data holds for what is inside of a packed file.
#[test]
fn the_limit_of_verify_holds_for_what_is_unpacked() {
    let files = Files::new();
    let model = files.path("model");
    let path = folder().join("columns.conll.gz").to_str().unwrap().to_owned();
    assert_eq!(run(&["memorize", &path, "--out", &model, "-q"]).code, 0);
    let file = folder().join("late-number.conll.gz").to_str().unwrap().to_owned();
    let limit = std::fs::metadata(&file).unwrap().len() + 1;
    let refused = run(&["verify", &model, &file, "--format", "conll", "--limit", &format!("bytes={limit}")]);
    assert!(refused.stderr.contains(&format!("more than {limit} bytes once it is unpacked")), "{}", refused.stderr);
}
