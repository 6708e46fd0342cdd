//! `monolayer memorize` as a user runs it: what it writes is right, is what it says, and is the same every time.

use std::process::Command;

use crate::common::{Files, conll, python, refused, run, run_with_input};
use serde_json::{Value, json};

/// Sorting all sequences of three letters: the label depends on the place and on all other tokens.
const TASK: &str = "task:sort:alphabet=3,length=3";

#[test]
fn everything_possible_is_memorized_by_one_rank_1_layer() {
    let files = Files::new();
    let model = files.path("model");
    let done = run(&["memorize", TASK, "--out", &model, "--json", "-q"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let json = done.json();
    let counts =
        json!({ "tokens": 81, "sequences": 27, "memorized": 81, "possible": 81, "conflicts": [], "certified": 81 });
    for (field, value) in counts.as_object().unwrap() {
        assert_eq!(&json[field], value, "{field}");
    }
    for field in ["hidden", "d", "parameters", "nonzero", "paper_parameters", "smallest_gap", "seconds"] {
        assert!(json[field].as_f64().unwrap() > 0.0, "{field}");
    }

    assert_eq!(run(&["predict", &model, TASK, "--json"]).json()["accuracy"], 1.0);
    let config = files.json("model/config.json");
    assert_eq!(config["layers"].as_array().unwrap().len(), 1);
    let attention = json!({"kind": "softmax", "heads": 1, "head_size": 1, "mask": "none"});
    assert_eq!(config["layers"][0]["attention"], attention);
    let inspected = run(&["inspect", &model, "--json"]).json();
    assert_eq!(inspected["parameters"], json["parameters"]);
    for tensor in inspected["tensors"].as_array().unwrap() {
        assert!(tensor["ranks"].is_null() || tensor["ranks"] == json!([1]), "{tensor}");
    }
}

#[test]
fn the_certificate_is_of_these_files() {
    let files = Files::new();
    let model = files.path("model");
    assert_eq!(run(&["memorize", TASK, "--out", &model]).code, 0);
    let certificate = files.json("model/certificate.json");
    assert_eq!(certificate["format"], "monolayer-certificate/1");
    for (field, name) in
        [("config", "config.json"), ("tensors", "model.safetensors"), ("vocabulary", "vocabulary.json")]
    {
        let bytes = std::fs::read(files.0.path().join("model").join(name)).unwrap();
        assert_eq!(certificate["model"][field], blake3::hash(&bytes).to_hex().as_str(), "{name}");
    }
    let data = json!({
        "hash": run(&["data", TASK, "--json"]).json()["hash"], "tokens": 81, "sequences": 27, "impossible": 0,
    });
    assert_eq!(certificate["data"], data);
    let kinds: Vec<&str> =
        certificate["claims"].as_array().unwrap().iter().map(|claim| claim["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"labels") && kinds.contains(&"rank"), "{kinds:?}");
}

#[test]
fn same_seed_same_bytes_on_any_number_of_threads() {
    let files = Files::new();
    let make = |name: &str, more: &[&str]| {
        let path = files.path(name);
        assert_eq!(run(&[&["memorize", TASK, "--out", &path], more].concat()).code, 0);
        files.bytes(name)
    };
    let first = make("a", &["--seed", "3"]);
    assert_eq!(first, make("b", &["--seed", "3", "--threads", "1"]));
    assert_ne!(first[1], make("c", &["--seed", "4"])[1]);
}

/// The second "b" contradicts the first and the last.
const CONFLICT: &str = "a X\nb Y\n\nb X\na X\n\nb X\n\nb Y\na X\n";

#[test]
fn conflicts_are_named() {
    let files = Files::new();
    let (data, model) = (files.put("f.conll", CONFLICT), files.path("model"));
    let memorize = ["memorize", &data, "--out", &model, "--positions", "none"];
    let json = run(&[memorize.as_slice(), &["--json"]].concat());
    assert_eq!(json.code, 0);
    let json = json.json();
    assert_eq!((&json["memorized"], &json["possible"]), (&json!(6), &json!(6)));
    let conflicts = json["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1);
    assert_eq!((&conflicts[0]["line"], &conflicts[0]["text"]), (&json!(4), &json!("b")));
    // Strictly, a contradiction falls short of what was asked.
    let strict = run(&[memorize.as_slice(), &["--strict"]].concat());
    assert_eq!(strict.code, 1);
    assert!(strict.stdout.contains(&format!("{data}:4 (sequence 2, token 1): \"b\"")), "{}", strict.stdout);
}

#[test]
fn unknown_words_only_where_they_were_asked_for() {
    let files = Files::new();
    let (plain, open) = (files.path("plain"), files.path("open"));
    let data = files.put("f.conll", "a X\nb Y\nc X\n");
    let unknown = files.put("u.conll", "zebra X\n");
    assert_eq!(run(&["memorize", &data, "--out", &plain]).code, 0);
    let place = format!("{unknown}:1 (sequence 1, token 1)");
    refused(&["predict", &plain, &unknown], Some(&place), &["\"zebra\"", "make it with --unknown"]);
    assert_eq!(run(&["memorize", &data, "--out", &open, "--unknown"]).code, 0);
    let labels = run(&["predict", &open, &unknown, "--json"]).json();
    assert_eq!(labels["labels"], json!([["X"]]), "the commonest label");
    assert_eq!(run(&["predict", &open, &data, "--json"]).json()["accuracy"], 1.0);
}

#[test]
fn what_cannot_be_memorized_is_refused_and_nothing_is_written() {
    let files = Files::new();
    let plain = files.put("plain.conll", "a\nb\n");
    let model = files.path("model");
    let unlabeled = run(&["memorize", &plain, "--out", &model]);
    assert_eq!(unlabeled.code, 2, "{}", unlabeled.stdout);
    assert!(!files.0.path().join("model").exists());
    // A directory with something else in it stays as it is.
    std::fs::create_dir(&model).unwrap();
    std::fs::write(files.0.path().join("model/notes.txt"), "mine").unwrap();
    refused(&["memorize", TASK, "--out", &model, "-q"], Some(&model), &["is not a model", "choose another directory"]);
    assert_eq!(std::fs::read_dir(&model).unwrap().count(), 1);
}

/// Another program, in single precision, adding in random orders, gives the same labels.
#[test]
fn numpy_agrees_in_any_order_of_summation() {
    let Some(python) = python() else { return };
    let files = Files::new();
    let model = files.path("model");
    // The task as a file, which is what the other program reads.
    let letters = ["a", "b", "c"];
    let mut text = String::new();
    for code in 0..27 {
        let sequence = [letters[code / 9], letters[code / 3 % 3], letters[code % 3]];
        let mut sorted = sequence;
        sorted.sort_unstable();
        text.extend(sequence.iter().zip(sorted).map(|(x, y)| format!("{x} {y}\n")));
        text += "\n";
    }
    let data = files.put("sort.conll", &text);
    assert_eq!(run_with_input(&["memorize", "-", "--out", &model], &text).code, 0);
    assert_eq!(files.json("model/config.json")["dtype"], "f32");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/reference.py");
    for order in ["1", "2"] {
        let done =
            Command::new(&python).args([script, &model, &data, "--order", order, "--json", "-"]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(report["accuracy"], 1.0);
    }
}

#[test]
#[ignore = "slow: tools/test --slow"]
fn conll_2003_is_memorized_and_proved_in_f32() {
    let Some(data) = conll("eng.train") else { return };
    let files = Files::new();
    let model = files.path("model");
    let json = run(&["memorize", &data, "--out", &model, "--json", "-q"]).json();
    for field in ["memorized", "possible", "certified"] {
        assert_eq!(json[field], 203_619, "{field}");
    }
    assert_eq!(json["dtype"], "f32");
    assert!(json["hidden"].as_u64().unwrap() <= 2200, "{}", json["hidden"]);
    assert!(json["smallest_margin_ratio"].as_f64().unwrap() > 1.0);
    let lines: Vec<&Value> = json["conflicts"].as_array().unwrap().iter().map(|c| &c["line"]).collect();
    assert_eq!(lines, [73_188, 151_985]);
    let accuracy = run(&["predict", &model, &data, "--json", "-q"]).json()["accuracy"].as_f64().unwrap();
    assert_eq!(accuracy, 203_619.0 / 203_621.0);
}

#[test]
fn sorted_sequences_are_memorized_in_every_order() {
    let files = Files::new();
    let model = files.path("model");
    let sorted = "task:parity:alphabet=3,length=1..4,order=sorted";
    let done = run(&["memorize", sorted, "--out", &model, "--candidates", "32", "-q"]);
    assert!(done.code == 0 && done.stdout.contains("120  sequences in any order: all sequences of length 1 to 4"));
    let verified = run(&["verify", &model, sorted, "--claims", "orderings", "--json"]);
    assert_eq!((verified.code, &verified.json()["verdict"]), (0, &json!("verified")));
    let all = "task:parity:alphabet=3,length=1..4";
    assert_eq!(run(&["predict", &model, all, "--json"]).json()["accuracy"], 1.0);
    let json = run(&["memorize", sorted, "--out", &model, "--candidates", "32", "--json", "-q"]).json();
    assert_eq!(json["orderings"], json!({"sequences": "120", "all_lengths": [1, 4]}));
    // The same said of a file, and what would tell orders apart.
    let data = files.path("data.jsonl");
    std::fs::write(&data, "{\"tokens\":[\"a\",\"b\"],\"labels\":[\"X\",\"Y\"]}\n").unwrap();
    let done = run(&["memorize", &data, "--orderings", "all", "--out", &model, "--json", "-q"]);
    assert_eq!((done.code, &done.json()["orderings"]["sequences"]), (0, &json!("2")));
    refused(&["memorize", sorted, "--mask", "causal", "--out", &model], None, &["--mask", "orderings"]);
    let sort = "task:sort:alphabet=2,length=2,order=sorted";
    refused(&["memorize", sort, "--out", &model], None, &["depend on the order"]);
}

#[test]
#[ignore = "slow: tools/test --slow"]
fn conll_2003_needs_fewer_units_with_a_free_embedding_and_with_effort() {
    let Some(data) = conll("eng.train") else { return };
    let files = Files::new();
    let hidden = |options: &[&str]| {
        let model = files.path("model");
        let json = run(&[&["memorize", &data, "--out", &model, "--json", "-q"][..], options].concat()).json();
        assert_eq!((&json["certified"], &json["dtype"]), (&203_619.into(), &"f32".into()));
        json["hidden"].as_u64().unwrap()
    };
    let (fast, free) = (hidden(&["--effort", "fast"]), hidden(&["--embedding", "free"]));
    assert!(fast <= 2814 && free <= 1400, "{fast} and {free}");
    let high = hidden(&["--effort", "high", "--embedding", "free"]);
    assert!(high < free, "{high} and {free}");
}
