//! Labels that may be anything, from data to verdict.

use serde_json::{Value, json};

use crate::common::{Files, refused, run};

/// "May" is a person before a verb and a month after "in"; what it is elsewhere is not said.
const CORPUS: &str = "May PER\nsails O\n\nin O\nMay DATE\n\nMay _\n\nMay _\nsails _\nin _\n\nMay PER\nsails _\n";

fn fields(json: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json[name].clone()).collect()
}

#[test]
fn every_command_reports_them() {
    let files = Files::new();
    let (data, model) = (files.put("f.conll", CORPUS), files.path("model"));
    let json = run(&["data", &data, "--json"]).json();
    let names = ["tokens", "labels", "free", "possible_with_positions", "possible_without_positions"];
    assert_eq!(fields(&json, &names), [10, 3, 5, 5, 5]);
    let text = run(&["data", &data]).stdout;
    assert!(text.contains("free") && text.contains("100.000 % of labeled tokens"), "{text}");

    let json = run(&["memorize", &data, "--out", &model, "--json"]).json();
    let names = ["tokens", "possible", "memorized", "certified", "free", "sequences", "sequences_right", "checked"];
    assert_eq!(
        fields(&json, &names),
        [json!(10), json!(5), json!(5), json!(5), json!(5), json!(5), json!(5), json!("verified")]
    );
    let text = run(&["memorize", &data, "--out", &model]).stdout;
    assert!(text.contains("of 10 tokens, 5 of them possible, 5 free"), "{text}");

    let verified = run(&["verify", &model, &data, "--json"]);
    let names = ["verdict", "verified", "refuted", "unknown", "impossible", "free"];
    assert_eq!(fields(&verified.json(), &names), [json!("verified"), json!(5), json!(0), json!(0), json!(0), json!(5)]);
    assert_eq!(verified.code, 0);

    let predicted = run(&["predict", &model, &data, "--json"]).json();
    assert_eq!(fields(&predicted, &["accuracy", "free", "sequences_right"]), [json!(1.0), json!(5), json!(5)]);
    let said = run(&["predict", &model, &data]).stderr;
    assert!(said.contains("on 5 tokens, 5 more are free; 5 of 5 sequences all right"), "{said}");
    // A wrong label is wrong, and a free one beside it is not.
    let other = files.put("other.conll", "May DATE\nsails _\n\nMay _\n");
    let predicted = run(&["predict", &model, &other, "--json"]).json();
    assert_eq!(fields(&predicted, &["accuracy", "free", "sequences_right"]), [json!(0.0), json!(2), json!(1)]);
}

#[test]
fn training_leaves_them_out() {
    let files = Files::new();
    let (data, model) = (files.put("f.conll", CORPUS), files.path("model"));
    let arguments =
        ["train", &data, "--out", &model, "--epochs", "150", "--dim", "8", "--hidden", "16", "--rate", "0.02"];
    let json = run(&[&arguments[..], &["--dev", &data, "--json"]].concat()).json();
    let names = ["train_accuracy", "free", "sequences_right"];
    assert_eq!(fields(&json, &names), [json!(1.0), json!(5), json!(5)], "{json}");
    assert_eq!((&json["dev"]["accuracy"], &json["ceilings"]["without_positions"]), (&json!(1.0), &json!(1.0)));
    // None of the labels is "_".
    assert_eq!(run(&["inspect", &model, "--json"]).json()["labels"], 3);
    let none = files.put("none.conll", "a _\nb _\n");
    refused(
        &["train", &none, "--out", &files.path("no")],
        Some(&format!("{none}:1 (sequence 1, token 1)")),
        &["any label will do for every token"],
    );
}

#[test]
fn nothing_but_free_labels() {
    let files = Files::new();
    let (data, model) =
        (files.put("f.jsonl", "{\"tokens\":[\"a\",\"b\"],\"labels\":[null,null]}\n"), files.path("model"));
    let made = run(&["memorize", &data, "--out", &model, "--json"]);
    let json = made.json();
    assert_eq!(made.code, 0, "{json}");
    assert_eq!(fields(&json, &["possible", "memorized", "free", "hidden"]), [0, 0, 2, 0]);
    // Nothing was asked, so nothing is verified.
    let verified = run(&["verify", &model, &data, "--json"]);
    assert_eq!(
        (verified.code, &verified.json()["free"], &verified.json()["verdict"]),
        (1, &json!(2), &json!("unknown"))
    );
    let predicted = run(&["predict", &model, &data, "--json"]).json();
    assert_eq!((&predicted["accuracy"], &predicted["labels"]), (&Value::Null, &json!([["_", "_"]])));
}

#[test]
fn columns_keep_what_is_free() {
    let files = Files::new();
    let (data, out) = (files.put("f.conll", CORPUS), files.path("out.conll"));
    let hash = run(&["data", &data, "--out", &out, "--json"]).json()["hash"].clone();
    assert_eq!(run(&["data", &out, "--json"]).json()["hash"], hash);
    // The string "_" is a class, which columns cannot hold.
    let class = files.put("f.jsonl", "{\"tokens\":[\"a\"],\"labels\":[\"_\"]}\n");
    refused(
        &["data", &class, "--out", &out],
        Some(&format!("{class}:1 (sequence 1, token 1)")),
        &["cannot be written as columns"],
    );
}
