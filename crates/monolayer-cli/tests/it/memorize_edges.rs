//! `monolayer memorize` at its edges: contradictions, one word, one token, many labels, every kind of code.

use crate::common::{Files, run};
use serde_json::{Value, json};

/// Memorizes a dataset and holds the report against the model: it runs, and gets right what was said.
fn memorize(files: &Files, name: &str, text: &str, options: &[&str]) -> Value {
    let (data, model) = (files.put(&format!("{name}.conll"), text), files.path(name));
    let done = run(&[&["memorize", &data, "--out", &model, "--json", "-q"], options].concat());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{name}: {}", done.stdout);
    let json = done.json();
    assert_eq!(json["memorized"], json["possible"], "{name}");
    let accuracy = run(&["predict", &model, &data, "--json", "-q"]).json()["accuracy"].as_f64().unwrap();
    assert_eq!(accuracy, json["memorized"].as_f64().unwrap() / json["tokens"].as_f64().unwrap(), "{name}");
    json
}

/// The model directory of a dataset that was memorized, checked by the other program in its own precision.
fn verify(files: &Files, name: &str) -> Value {
    let (data, model) = (files.path(&format!("{name}.conll")), files.path(name));
    let done = run(&["verify", &model, &data, "--json"]);
    assert_eq!(done.code, 0, "{name}: {}", done.stdout);
    done.json()
}

#[test]
fn identical_sequences_with_different_labels_get_the_majority() {
    let files = Files::new();
    let text = "a X\nb Z\n\na X\nb Y\n\na X\nb Y\n";
    let json = memorize(&files, "twice", text, &[]);
    assert_eq!((&json["possible"], &json["certified"]), (&json!(5), &json!(5)));
    let conflicts = json["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1);
    let place = json!({ "line": 2, "sequence": 1, "token": 2, "text": "b", "label": "Z" });
    assert_eq!(conflicts[0], place, "the one against two, though it came first");
    let report = verify(&files, "twice");
    assert_eq!((&report["verified"], &report["impossible"]), (&json!(5), &json!(1)));
    let predicted = run(&["predict", &files.path("twice"), &files.path("twice.conll"), "--json", "-q"]).json();
    assert_eq!(predicted["labels"][0], json!(["X", "Y"]));
    // Of equally common labels, the one that came first.
    let json = memorize(&files, "tie", "a X\n\na Y\n", &[]);
    assert_eq!((&json["conflicts"][0]["line"], &json["conflicts"][0]["label"]), (&json!(3), &json!("Y")));
    let strict = run(&["memorize", &files.path("tie.conll"), "--out", &files.path("strict"), "--strict", "-q"]);
    assert_eq!(strict.code, 1, "{}", strict.stderr);
    assert!(strict.stdout.contains(
        "tie.conll:3 (sequence 2, token 1): \"a\" cannot be right: its context has another label more often"
    ));
}

#[test]
fn one_word() {
    let files = Files::new();
    // Which label depends on the place and on the length alone.
    let json = memorize(&files, "word", "a X\na Y\na X\n\na Y\n\na X\na X\n", &[]);
    assert_eq!((&json["memorized"], &json["certified"], &json["max_length"]), (&json!(6), &json!(6), &json!(3)));
    assert_eq!(verify(&files, "word")["verified"], 6);
    // Without places all of it is one context.
    let options = ["--positions", "none", "--start", "no"];
    let json = memorize(&files, "no_places", "a X\na Y\na X\n\na Y\n\na X\na X\n", &options);
    assert_eq!((&json["memorized"], &json["max_length"], &json["hidden"]), (&json!(4), &Value::Null, &json!(0)));
}

#[test]
fn one_sequence_of_one_token() {
    let files = Files::new();
    let json = memorize(&files, "one", "a X\n", &[]);
    assert_eq!((&json["memorized"], &json["certified"], &json["hidden"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(verify(&files, "one")["verified"], 1);
    // Nothing has to be told apart, and no margin has an error: JSON has no number for either.
    assert_eq!((&json["smallest_gap"], &json["smallest_margin_ratio"]), (&Value::Null, &Value::Null));
}

#[test]
fn many_labels_and_labels_seen_once() {
    let files = Files::new();
    // L0 to L149 are seen once; the label of "the" depends on the word before it.
    let mut text = String::new();
    for i in 0..150 {
        text += &format!("w{i} L{i}\nx{} M{}\n\n", i % 150, i % 150);
    }
    text += "w0 L0\nthe A\n\nw1 L1\nthe B\n";
    let json = memorize(&files, "many", &text, &[]);
    assert_eq!((&json["memorized"], &json["certified"]), (&json!(304), &json!(304)));
    // 302 labels share 32 coordinates.
    assert_eq!((&json["d"], &json["max_length"]), (&json!(64 + 1 + 32), &Value::Null));
    assert_eq!(verify(&files, "many")["verified"], 304);
}

const WORDS: &str =
    "May PER\nsails O\nin O\nMay DATE\n. O\n\nHope BOAT\nsails O\n. O\n\nHope PER\nsails O\nthe O\nHope BOAT\n. O\n";

#[test]
fn unknown_words_get_the_commonest_label_in_any_place() {
    let files = Files::new();
    memorize(&files, "open", WORDS, &["--unknown"]);
    let data = files.put("u.conll", "zebra\n\nMay\nzebra\nzebra\n");
    let labels = run(&["predict", &files.path("open"), &data, "--json", "-q"]).json();
    assert_eq!(labels["labels"][0], json!(["O"]));
    assert_eq!((&labels["labels"][1][1], &labels["labels"][1][2]), (&json!("O"), &json!("O")));
}

#[test]
fn a_free_embedding_carries_the_labels_of_words() {
    let files = Files::new();
    let hidden = |name, options: &[&str]| memorize(&files, name, WORDS, options)["units"]["words"].as_u64().unwrap();
    assert!(hidden("fixed", &["--embedding", "sign:64"]) > 0);
    assert_eq!(hidden("free", &["--embedding", "free"]), 0);
    assert_eq!(verify(&files, "free")["verified"], 13);
}

#[test]
fn every_kind_of_code() {
    let files = Files::new();
    let file = "May 1 0 0\nsails 2 1 2\nin 3 4 0\n. 4 4 2\nHope 5 1 0\nthe 6 0 2\n";
    let file = files.put("vectors.txt", file);
    for (name, options, d) in [
        ("random", ["--embedding", "random:32", "--positions", "sign:16"], Some(32 + 16 + 1 + 4)),
        ("normal", ["--embedding", "sign:16", "--positions", "random:8"], Some(16 + 8 + 1 + 4)),
        ("file", ["--embedding", &file, "--positions", "auto"], None),
    ] {
        let json = memorize(&files, name, WORDS, &options);
        assert_eq!(json["memorized"], 13, "{name}");
        if let Some(d) = d {
            assert_eq!(json["d"], d, "{name}");
        }
        assert_eq!(verify(&files, name)["verified"], 13, "{name}");
    }
}

#[test]
fn a_causal_mask_and_no_positions() {
    let files = Files::new();
    // Seen from the end, both sequences are the same multiset; their pasts differ wherever labels do.
    let text = "a X\nb X\na Y\n\na X\na X\nb Y\n";
    let json = memorize(&files, "causal", text, &["--mask", "causal", "--positions", "none"]);
    assert_eq!((&json["memorized"], &json["certified"], &json["max_length"]), (&json!(6), &json!(6), &Value::Null));
    assert_eq!(files.json("causal/config.json")["layers"][0]["attention"]["mask"], "causal");
    assert_eq!(verify(&files, "causal")["verified"], 6);
    // Without the mask each word has one context: an a and a b are in the minority.
    let json = memorize(&files, "plain", text, &["--positions", "none", "--mask", "none", "--start", "no"]);
    assert_eq!(json["memorized"], 4);
}

/// The tensors of a model by name: their bytes.
fn tensor(files: &Files, model: &str, name: &str) -> Vec<u8> {
    let bytes = std::fs::read(files.0.path().join(model).join("model.safetensors")).unwrap();
    let size = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let header: Value = serde_json::from_slice(&bytes[8..8 + size]).unwrap();
    let at = |i: usize| 8 + size + header[name]["data_offsets"][i].as_u64().unwrap() as usize;
    bytes[at(0)..at(1)].to_vec()
}

/// Codes are fixed before any label is looked at.
#[test]
fn permuted_labels_leave_the_codes_alone() {
    let files = Files::new();
    let permuted = WORDS.replace("PER", "P").replace("DATE", "PER").replace("BOAT", "DATE").replace("P\n", "BOAT\n");
    for codes in ["sign:64", "random:32"] {
        let options = ["--embedding", codes, "--positions", "auto"];
        memorize(&files, "before", WORDS, &options);
        memorize(&files, "after", &permuted, &options);
        for name in ["embedding.weight", "positions.weight"] {
            let before = tensor(&files, "before", name);
            assert!(!before.is_empty() && before == tensor(&files, "after", name), "{codes}: {name}");
        }
        assert_ne!(files.json("before/config.json")["labels"], files.json("after/config.json")["labels"]);
    }
}

#[test]
fn same_seed_same_bytes_on_one_thread_and_two() {
    let files = Files::new();
    for options in [["--embedding", "sign:64"], ["--embedding", "random:32"], ["--embedding", "free"]] {
        let make = |name: &str, threads: &str| {
            memorize(&files, name, WORDS, &[options.as_slice(), &["--threads", threads]].concat());
            files.bytes(name)
        };
        // The certificate names the data's hash, not its path, so it is the same too.
        assert_eq!(make("one", "1"), make("two", "2"), "{options:?}");
    }
}

#[test]
fn vectors_are_memorized_and_verified_by_every_method_that_writes_floats() {
    let files = Files::new();
    let text = "{\"tokens\": [[1, 2, 0, 1], [3, 4, 1, 0]], \"labels\": [[1, 0, 0, 2], [0, 5, 0, 0]]}\n\
                {\"tokens\": [[3, 4, 1, 0], [0, -1, 2, 2]], \"labels\": [[2, 2, 0, 0], [0, 0, 1, 0]]}\n";
    let data = files.put("v.jsonl", text);
    for (method, seed) in ["plateau", "interpolate"].into_iter().flat_map(|method| ["0", "1", "5"].map(|s| (method, s)))
    {
        let model = files.path(method);
        let done = run(&["memorize", &data, "--out", &model, "--method", method, "--seed", seed, "--json", "-q"]);
        let json = done.json();
        assert_eq!((done.code, &json["method"], &json["memorized"]), (0, &json!(method), &json!(4)), "{}", done.stdout);
        assert_eq!(run(&["predict", &model, &data, "--json", "-q"]).json()["accuracy"], 1.0, "{method}");
        let report = run(&["verify", &model, &data, "--json"]);
        assert_eq!((report.code, &report.json()["verified"]), (0, &json!(4)), "{}", report.stdout);
    }
    // An error of exactly 0 is a claim that can be checked, too.
    let zeros = files.put("zeros.jsonl", "{\"tokens\": [[1, 2], [3, 4]], \"labels\": [[0, 0], [0, 0]]}\n");
    let model = files.path("zeros");
    let json = run(&["memorize", &zeros, "--out", &model, "--json", "-q"]).json();
    assert_eq!((&json["method"], &json["real_error"]), (&json!("plateau"), &json!(0.0)));
    assert_eq!(run(&["verify", &model, &zeros]).code, 0);
    // Exact numbers are run as they are, and the paper's own constants fit no file.
    let exact = files.path("exact");
    assert_eq!(run(&["memorize", &data, "--out", &exact, "--method", "deep", "-q"]).code, 0);
    assert_eq!(files.json("exact/config.json")["dtype"], "exact");
    assert_eq!(run(&["predict", &exact, &data, "--json", "-q"]).json()["accuracy"], 1.0);
    let report = run(&["verify", &exact, &data, "--json"]);
    assert_eq!((report.code, &report.json()["precision"]), (0, &json!("real")), "{}", report.stdout);
    let paper = run(&["memorize", &data, "--method", "paper", "--json", "-q"]);
    assert_eq!((paper.code, &paper.json()["ids"]), (0, &json!(4)), "{}", paper.stdout);
    assert_eq!(run(&["memorize", &data, "-q"]).code, 2, "no directory to write to");
}
