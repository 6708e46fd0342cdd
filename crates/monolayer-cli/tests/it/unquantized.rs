//! `monolayer unquantized`, as a user runs it.

use crate::common::{fixture, refused, run};
use serde_json::json;

#[test]
fn random_layers() {
    let json = run(&["unquantized", "--draws", "60", "--seed", "4", "--json"]).json();
    assert_eq!((&json["draws"], &json["collide"]), (&json!(60), &json!(60)));
    assert!(json["singular"].as_u64().unwrap() > 5 && json["witness"]["holds"] == true, "{json}");
    assert!(json["exact"] == true && json["bound"].as_f64().unwrap() >= 0.5, "{json}");
    let away = &json["theorem_b"];
    assert_eq!((&away["collide"], &away["same_scores"]), (&json!(60), &json!(60)));
    assert_eq!((&away["bound"], &away["instance"]["gap"]), (&json!(0.125), &json!("9/20")));
    assert_eq!(away["instance"]["sequences"], json!([[["17/10"], ["6/5"]], [["19/10"], ["3/2"]]]));
    let text = run(&["unquantized", "--draws", "10", "--length", "5"]);
    assert!(text.code == 0 && text.stdout.contains("equal as rational numbers"), "{}", text.stdout);
}

#[test]
fn layers_of_models() {
    for name in ["hardmax_ties", "hardmax_causal", "unknown_words", "rank_one"] {
        let done = run(&["unquantized", fixture(name).to_str().unwrap(), "--length", "3", "--json"]);
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
        let json = done.json();
        assert_eq!(json["witness"]["outputs"][0], json["witness"]["outputs"][1], "{name}");
        assert!(json["bound"].as_f64().unwrap() >= 0.5 && json["exact"] == true, "{name}: {json}");
        let away = &json["theorem_b"];
        assert!(
            away["same_scores"] == true && away["witness"]["distance_at_least"].as_f64().unwrap() > 0.2499,
            "{away}"
        );
    }
}

#[test]
fn what_cannot_be_asked() {
    refused(&["unquantized", "--length", "1"], None, &["--length"]);
    refused(&["unquantized", "--draws", "0"], None, &["--draws"]);
    let model = fixture("rank_one");
    let config = model.join("config.json");
    refused(&["unquantized", model.to_str().unwrap(), "--layer", "7"], config.to_str(), &["there is no layer 7"]);
}
