//! `monolayer hardmax`, as a user runs it.

use crate::common::{Files, fixture, refused, run};
use serde_json::json;

#[test]
fn random_layers() {
    let json = run(&["hardmax", "--draws", "50", "--seed", "3", "--json"]).json();
    assert_eq!((&json["draws"], &json["blind"]), (&json!(50), &json!(50)));
    assert_eq!(json["printed_pair"]["outputs"], json!([[["19/3"]], [["20/3"]]]));
    assert_eq!((&json["printed_pair"]["equal"], &json["witness"]["equal"]), (&json!(false), &json!(true)));
    assert!(json["softmax"]["gap"][0].as_f64().unwrap() > 0.01);
    let text = run(&["hardmax", "--draws", "50", "--length", "7"]);
    assert!(text.code == 0 && text.stdout.contains("50 give equal outputs"), "{}", text.stdout);
}

#[test]
fn layers_of_models() {
    for (name, shared, kind) in [
        ("hardmax_ties", json!([1, 2, 5]), "hardmax"),
        ("hardmax_causal", json!([5]), "hardmax"),
        ("unknown_words", json!([1, 2, 5]), "softmax"),
    ] {
        let model = fixture(name);
        let done = run(&["hardmax", model.to_str().unwrap(), "--length", "5", "--json"]);
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
        let json = done.json();
        assert_eq!((&json["blind"], &json["draws"], &json["kind"]), (&json!(20), &json!(20), &json!(kind)), "{name}");
        let witness = &json["witness"];
        assert_eq!((&witness["shared"], &witness["equal"]), (&shared, &json!(true)), "{name}");
        assert_eq!(witness["outputs"][0], witness["outputs"][1], "{name}");
        assert_ne!(witness["sequences"][0], witness["sequences"][1], "{name}");
    }
    let text = run(&["hardmax", fixture("rank_one").to_str().unwrap()]).stdout;
    assert!(text.contains("equal as rational numbers") && text.contains("read as those of a hardmax"), "{text}");
}

#[test]
fn what_cannot_be_asked() {
    let model = fixture("rank_one");
    let (model, config) = (model.to_str().unwrap(), model.join("config.json"));
    let config = config.to_str();
    refused(&["hardmax", model, "--layer", "7"], config, &["there is no layer 7", "the last one is"]);
    refused(&["hardmax", "--length", "3"], None, &["fewer than 4 tokens", "three heads"]);
    assert_eq!(run(&["hardmax", "--layer", "0"]).code, 2);
    let parts = fixture("parts_alone");
    let config = parts.join("config.json");
    refused(&["hardmax", parts.to_str().unwrap(), "--layer", "0"], config.to_str(), &["layer 0 has no", "layer 1 has"]);
    refused(&["hardmax", "--draws", "0"], None, &["--draws"]);
    // Feed-forward layers alone: the deep memorizer after its first layer.
    let files = Files::new();
    let data = files.put("f.jsonl", r#"{"tokens": [[1, 2, 3, 4], [2, 1, 0, 1]], "labels": ["a", "b"]}"#);
    let deep = files.path("deep");
    assert_eq!(run(&["memorize", &data, "--method", "deep", "--out", &deep]).code, 0);
    let found = run(&["hardmax", &deep, "--json"]).json();
    assert_eq!(found["blind"], found["draws"]);
    let config = format!("{deep}/config.json");
    refused(&["hardmax", &deep, "--layer", "1"], Some(&config), &["layer 1 has no attention", "layer 0 has"]);
    refused(&["hardmax", &files.path("none")], Some(&files.path("none/config.json")), &["No such file"]);
}
