//! `monolayer inspect` on bits: Remark 2's lower bound beside a compiled model.

use serde_json::{Value, json};

use crate::common::{Files, run};

/// Word a is X in three contexts and Z in one; b is Y.
const DATA: &str = "a X\n\na X\nb Y\n\na X\nc Z\n\na Z\nd Y\n";

fn bits(arguments: &[&str]) -> Value {
    let done = run(&[&["inspect"], arguments, &["--json"]].concat());
    assert_eq!(done.code, 0, "{}", done.stdout);
    done.json()["label_bits"].clone()
}

#[test]
fn bits_of_a_toy_by_hand() {
    let files = Files::new();
    let (data, model) = (files.put("data.conll", DATA), files.path("model"));
    assert_eq!(run(&["memorize", &data, "--out", &model, "--positions", "none", "-q"]).code, 0);
    let found = bits(&[&model]);
    // 7 tokens, each with a context of its own, 3 labels; one context deviates, to one of 2 labels: 7 x 2 labelings.
    assert_eq!([&found["tokens"], &found["classes"], &found["contexts"], &found["deviating"]], [7, 3, 7, 1]);
    let near = |field: &str, wanted: f64| assert!((found[field].as_f64().unwrap() - wanted).abs() < 1e-9, "{field}");
    near("labels", 7.0 * 3_f64.log2());
    near("contexts_labels", 7.0 * 3_f64.log2());
    near("given_words", 14_f64.log2());
    let parameters = run(&["inspect", &model, "--json"]).json();
    assert_eq!(found["stored"], 32 * parameters["parameters"].as_u64().unwrap());
    assert_eq!(found["stored_nonzero"], 32 * parameters["nonzero"].as_u64().unwrap());
    // 11.1 bits fit one number of 32.
    assert_eq!((&found["least_parameters"], &found["least_parameters_given_words"]), (&json!(1), &json!(1)));
    // With the data at hand the same is counted again.
    assert_eq!(bits(&[&model, "--data", &data]), found);
    let text = run(&["inspect", &model]).stdout;
    assert!(text.contains("7 tokens times log2 of 3 labels"), "{text}");
    assert!(text.contains("which 1 contexts deviate"), "{text}");
    assert_eq!(run(&["verify", &model, &data]).code, 0, "the certificate covers config.json with its counts");
}

#[test]
fn the_bound_grows_with_the_labels() {
    let files = Files::new();
    // 24 tokens of 8 labels by chance: 72 bits, three numbers of 32.
    let line = |i: usize| {
        format!("{{\"tokens\":[\"w{}\",\"w{}\"],\"labels\":[\"l{}\",\"l{}\"]}}\n", i, i + 12, i % 8, 7 - i % 8)
    };
    let data = files.put("data.jsonl", (0..12).map(line).collect::<String>());
    let model = files.path("model");
    assert_eq!(run(&["memorize", &data, "--out", &model, "-q"]).code, 0);
    let found = bits(&[&model]);
    assert_eq!(
        (&found["labels"], &found["least_parameters"], &found["bits_per_number"]),
        (&json!(72.0), &json!(3), &json!(32))
    );
    // Every word has one context, so nothing deviates.
    assert_eq!((&found["given_words"], &found["least_parameters_given_words"]), (&json!(0.0), &json!(0)));
}

#[test]
fn exact_models_store_text_and_others_know_nothing() {
    let files = Files::new();
    let data = files.put("data.conll", DATA);
    let deep = files.path("deep");
    assert_eq!(run(&["memorize", &data, "--out", &deep, "--method", "deep", "-q"]).code, 0);
    let found = bits(&[&deep]);
    let bytes = std::fs::metadata(files.0.path().join("deep/weights.json")).unwrap().len();
    assert_eq!((&found["stored"], &found["bits_per_number"]), (&json!(8 * bytes), &Value::Null));
    let map = files.path("map");
    assert_eq!(run(&["context", &data, "--out", &map, "-q"]).code, 0);
    assert_eq!(bits(&[&map]), Value::Null);
    assert_eq!(bits(&[&map, "--data", &data])["tokens"], 7);
}
