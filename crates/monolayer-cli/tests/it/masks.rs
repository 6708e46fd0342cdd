//! `--mask`: every kind of mask through every command.

use serde_json::{Value, json};

use crate::common::{Files, run};

/// Labels that no model without a mask can give: seen whole, the sequences are the same multiset.
const DATA: &str = "a X\nb Y\nc X\n\nc Y\na X\nb X\n\nb X\nc X\na Y\n\na X\nb Y\n";

/// What config.json says of each mask, and how it is asked for.
fn masks(files: &Files) -> Vec<(&'static str, String, Value)> {
    let matrix = files.put("mask.txt", "100\n110\n011\n");
    vec![
        ("prefix", "prefix:2".to_owned(), json!({"prefix": 2})),
        ("band", "band:1,0".to_owned(), json!({"band": [1, 0]})),
        ("matrix", matrix, json!({"file": "mask.safetensors"})),
    ]
}

#[test]
fn masks_go_through_every_command() {
    let files = Files::new();
    let data = files.put("data.conll", DATA);
    for (name, mask, config) in masks(&files) {
        let model = files.path(name);
        let done = run(&["memorize", &data, "--out", &model, "--mask", &mask, "--json", "-q"]);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{name}: {}", done.stdout);
        let memorized = done.json();
        assert_eq!((&memorized["dtype"], &memorized["certified"]), (&json!("f32"), &memorized["possible"]), "{name}");
        let written = files.json(&format!("{name}/config.json"));
        assert_eq!(written["layers"][0]["attention"]["mask"], config, "{name}");
        assert_eq!(written["format"], "monolayer/2", "{name}");
        let verified = run(&["verify", &model, &data, "--json"]);
        assert_eq!(
            (verified.code, &verified.json()["verdict"]),
            (0, &json!("verified")),
            "{name}: {}",
            verified.stdout
        );
        let predicted = run(&["predict", &model, &data, "--json", "-q"]).json();
        let share = memorized["possible"].as_f64().unwrap() / memorized["tokens"].as_f64().unwrap();
        assert_eq!(predicted["accuracy"].as_f64(), Some(share), "{name}");
        let inspected = run(&["inspect", &model]).stdout;
        let shown = if name == "matrix" { "mask matrix".to_owned() } else { format!("mask {mask}") };
        assert!(inspected.contains(&shown), "{name}: {inspected}");
        assert_eq!(run(&["explain", &model, "a b c"]).code, 0, "{name}");
        let page = files.path(&format!("{name}.html"));
        let report = run(&["report", &model, "--data", &data, "--out", &page, "-q"]);
        assert_eq!(report.code, 0, "{name}: {}{}", report.stdout, report.stderr);
    }
}

#[test]
fn a_mask_file_is_kept_and_certified() {
    let files = Files::new();
    let (data, mask) = (files.put("data.conll", DATA), files.put("mask.txt", "1 0 0\n1 1 0\n0,1,1\n"));
    for (command, out) in [("memorize", "memorized"), ("context", "mapped")] {
        let model = files.path(out);
        let options = ["--mask", &mask, "--positions", "none", "--out", &model, "-q"];
        assert_eq!(run(&[&[command, &data], &options[..]].concat()).code, 0, "{command}");
        let bytes = std::fs::read(files.0.path().join(out).join("mask.safetensors")).unwrap();
        let hash = blake3::hash(&bytes).to_hex().to_string();
        assert_eq!(files.json(&format!("{out}/certificate.json"))["model"]["mask"], hash, "{command}");
        assert!(bytes.ends_with(&[1, 0, 0, 1, 1, 0, 0, 1, 1]));
        let verified = run(&["verify", &model, &data, "--json"]);
        assert_eq!(verified.json()["verdict"], "verified", "{command}: {}", verified.stdout);
    }
    // The file that was written is one that can be given.
    let again = files.path("memorized/mask.safetensors");
    let counted = |mask: &str| run(&["data", &data, "--mask", mask, "--json"]).json();
    assert_eq!(counted(&again), counted(&mask));
    assert_ne!(counted(&mask)["possible_without_positions"], counted("none")["possible_without_positions"]);
}

#[test]
fn band_and_prefix_are_what_matrices_say() {
    let files = Files::new();
    let data = files.put("data.conll", DATA);
    for (mask, matrix) in [
        ("none", "111\n111\n111\n"),
        ("causal", "100\n110\n111\n"),
        ("prefix:2", "110\n110\n111\n"),
        ("band:1,0", "100\n110\n011\n"),
        ("band:0,1", "110\n011\n001\n"),
    ] {
        let file = files.put("same.txt", matrix);
        let map = |mask: &str| {
            let found = run(&["context", &data, "--mask", mask, "--candidates", "20", "--json", "-q"]).json();
            (found["contexts"].clone(), found["log2_gap"].clone(), found["positions"].clone())
        };
        assert_eq!(map(mask), map(&file), "{mask}");
    }
}

#[test]
fn masks_that_cannot_be_are_refused() {
    let files = Files::new();
    let (data, out) = (files.put("data.conll", DATA), files.path("out"));
    let fails = |arguments: &[&str], words: &[&str]| {
        let done = run(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
        assert!(words.iter().all(|word| done.stderr.contains(word)), "{arguments:?}: {}", done.stderr);
    };
    let memorize = |mask: &str, words: &[&str]| fails(&["memorize", &data, "--out", &out, "--mask", mask], words);
    memorize("prefix:x", &["not a number of tokens"]);
    memorize("band:1", &["band:B,A"]);
    memorize("sometimes", &["none, causal, prefix:K, band:B,A"]);
    memorize("no/such.file", &["no/such.file"]);
    let blind = files.put("blind.txt", "111\n000\n111\n");
    memorize(&blind, &["hides every token from token 2"]);
    let small = files.put("small.txt", "11\n11\n");
    for command in ["memorize", "context", "data"] {
        let options: &[&str] = if command == "memorize" { &["--out", &out] } else { &[] };
        let arguments = [&[command, &data, "--mask", &small], options].concat();
        fails(&arguments, &["data.conll:1 (sequence 1)", "3 tokens where the mask is for 2"]);
    }
    assert!(!files.0.path().join("out").exists());
}
