//! Start tokens, sparse storage and the domain as a user meets them.

use crate::common::{Files, refused, run};
use serde_json::json;

/// Counting needs a start token, or positions.
const TASK: &str = "task:histogram:alphabet=2,length=1..4";

#[test]
fn counting_behind_a_start_token() {
    let files = Files::new();
    let model = files.path("model");
    let done = run(&["memorize", TASK, "--start", "--positions", "none", "--out", &model, "--json", "-q"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    let json = done.json();
    assert_eq!(json["certified"], json["tokens"]);
    assert_eq!(json["checked"], "verified");
    let config = files.json("model/config.json");
    assert_eq!((&config["start"], &config["format"]), (&json!("<s>"), &json!("monolayer/2")));
    assert_eq!(config["source"]["domain"], json!({ "shortest": 1, "longest": 4, "orderings": "all" }));
    assert_eq!(run(&["predict", &model, TASK, "--json"]).json()["accuracy"], 1.0);
    let verified = run(&["verify", &model, TASK, "--json"]);
    assert_eq!((verified.code, &verified.json()["verdict"]), (0, &json!("verified")));
    let explained = run(&["explain", &model, "a b a", "--data", TASK, "--json"]).json();
    let labels: Vec<_> = explained["tokens"].as_array().unwrap().iter().map(|t| t["label"].clone()).collect();
    assert_eq!(labels, ["2", "1", "2"]);
    assert_eq!((&explained["certain"], &explained["outside"]), (&json!(3), &json!(false)));
    assert_eq!(run(&["report", &model, "--data", TASK, "--out", &files.path("page.html")]).code, 0);
    let inspected = run(&["inspect", &model, "--data", TASK, "--json"]).json();
    assert_eq!(inspected["start"], "<s>");
    assert_eq!(inspected["label_bits"]["contexts"], config["source"]["labels"]["contexts"]);
    let shown = run(&["inspect", &model]).stdout;
    assert!(shown.contains("behind the start token \"<s>\""), "{shown}");
}

#[test]
fn other_methods_refuse_it() {
    let files = Files::new();
    let model = files.path("model");
    refused(
        &["memorize", TASK, "--start", "--method", "plateau", "--out", &model],
        None,
        &["start", "plateau", "gated"],
    );
    assert!(!std::path::Path::new(&model).exists());
}

#[test]
fn sizes_and_storage() {
    let files = Files::new();
    let make = |name: &str, storage: &str| {
        let model = files.path(name);
        let command = ["memorize", TASK, "--positions", "sign:16", "--storage", storage, "--out", &model, "--json"];
        let json = run(&command).json();
        let bytes = std::fs::metadata(files.0.path().join(name).join("model.safetensors")).unwrap().len();
        assert_eq!(json["bytes"], bytes);
        assert!(json["labels_gzip"].as_u64().unwrap() > 20);
        assert_eq!(run(&["verify", &model, TASK]).code, 0);
        (bytes, files.json(&format!("{name}/config.json"))["format"].clone())
    };
    let (dense, sparse) = (make("dense", "dense"), make("sparse", "sparse"));
    assert_eq!((&dense.1, &sparse.1), (&json!("monolayer/1"), &json!("monolayer/2")));
    assert!(sparse.0 < dense.0, "{sparse:?} {dense:?}");
    let small = make("small", "small");
    assert!(small.0 < sparse.0 && small.1 == "monolayer/2", "{small:?} {sparse:?}");
    assert_eq!(make("auto", "auto"), dense);
    let text = run(&["memorize", TASK, "--out", &files.path("text")]).stdout;
    assert!(text.contains("model.safetensors: ") && text.contains("in gzip"), "{text}");
}

#[test]
fn units_by_name() {
    let files = Files::new();
    let model = files.path("model");
    let json = run(&["memorize", TASK, "--out", &model, "--json"]).json();
    let units = json["hidden"].as_u64().unwrap();
    let said = run(&["inspect", &model, "--unit", "0"]);
    assert!(said.stdout.starts_with("unit 0 fires for ") && said.stdout.contains("It adds "), "{}", said.stdout);
    let named = run(&["inspect", &model, "--unit", "0", "--json"]).json();
    assert_eq!((&named["units"][0]["unit"], named["units"].as_array().unwrap().len()), (&json!(0), 1));
    assert_eq!(named["units"][0], files.json("model/names.json")["units"][0]);
    let of_word = run(&["inspect", &model, "--word", "a"]);
    assert!(of_word.code == 0 && of_word.stdout.contains("fires for"), "{}", of_word.stdout);
    refused(&["inspect", &model, "--word", "zebra"], None, &["\"zebra\" is no word of the model"]);
    refused(&["inspect", &model, "--unit", &units.to_string()], None, &["units are counted from 0"]);
    std::fs::remove_file(files.0.path().join("model/names.json")).unwrap();
    refused(&["inspect", &model, "--unit", "0"], None, &["no names.json"]);
}

#[test]
fn lengths_that_a_model_was_not_made_for() {
    let files = Files::new();
    let model = files.path("model");
    assert_eq!(run(&["memorize", TASK, "--start", "--positions", "none", "--out", &model]).code, 0);
    let inside = run(&["predict", &model, "a b", "--json"]);
    assert!(!inside.stderr.contains("warning"), "{}", inside.stderr);
    assert_eq!(inside.json()["outside"], 0);
    let beyond = run(&["predict", &model, "a b a b a", "--json"]);
    assert_eq!((beyond.code, &beyond.json()["outside"]), (0, &json!(1)));
    let warning = "warning: 1 of 1 sequences are not of the lengths that the model was made for (1 to 4)";
    assert!(beyond.stderr.contains(warning), "{}", beyond.stderr);
    assert!(run(&["predict", &model, "a b a b a", "-q"]).stderr.is_empty());
    let explained = run(&["explain", &model, "a b a b a", "--json"]);
    assert!(explained.stderr.contains(warning), "{}", explained.stderr);
    assert_eq!(explained.json()["outside"], true);
}

#[test]
fn texts_longer_than_the_one_memorized() {
    let files = Files::new();
    let (text, model) = (files.put("t.txt", "a b c a b d"), files.path("model"));
    assert_eq!(run(&["memorize", "--text", &text, "--start", "--out", &model]).code, 0);
    let recited = run(&["generate", &model, "--json"]);
    assert_eq!((&recited.json()["text"], &recited.json()["outside"]), (&json!("a b c a b d"), &json!(0)));
    assert!(!recited.stderr.contains("warning"), "{}", recited.stderr);
    let longer = run(&["generate", &model, "a b c a b d a b", "--tokens", "8", "--json"]);
    assert_eq!(longer.json()["outside"], 2);
    assert!(longer.stderr.contains("made for texts of 6 tokens at most"), "{}", longer.stderr);
}
