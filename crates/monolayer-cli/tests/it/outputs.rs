//! Outputs of any dimension: scalars and vectors, of words and of vectors, from the data to the verdict.

use serde_json::{Value, json};

use crate::common::{Files, run};

/// Words with outputs of dimension 3, and what differs in context.
const WORDS: &str = r#"{"tokens":["a","b"],"labels":[[1.0,0.5,2],[0.0,1,1]]}
{"tokens":["b","b","a"],"labels":[[0.5,1,2],[0.5,1,2],[7,8,9.25]]}
"#;

/// Vectors of dimension 4 with a scalar each.
const SCALARS: &str = r#"{"tokens":[[0.5,1,2,3],[1,0,0,0.25]],"labels":[0.5,-1.25]}
{"tokens":[[1,0,0,0.25]],"labels":[3]}
"#;

/// Memorizes, verifies and predicts; the outputs of all tokens.
fn through(files: &Files, data: &str, k: usize, more: &[&str]) -> Value {
    let model = files.path("model");
    let _ = std::fs::remove_dir_all(&model);
    let made = run(&[&["memorize", data, "--out", &model, "--json"], more].concat());
    assert_eq!(made.code, 0, "{more:?}: {}", made.stderr);
    let config: Value = serde_json::from_slice(&std::fs::read(files.path("model/config.json")).unwrap()).unwrap();
    // A head is there only where the Transformer has another dimension.
    let head = (config["d"] != k).then_some(k);
    let version = if head.is_some() { "monolayer/2" } else { "monolayer/1" };
    assert_eq!((&config["format"], &config["outputs"]), (&json!(version), &json!(head)));
    assert_eq!(config["labels"], Value::Null);
    let checked = run(&["verify", &model, data, "--json"]);
    assert_eq!((checked.code, &checked.json()["verdict"]), (0, &json!("verified")), "{more:?}: {}", checked.json());
    let predicted = run(&["predict", &model, data, "--json"]).json();
    assert_eq!(predicted["accuracy"], 1.0, "{more:?}: {predicted}");
    predicted["outputs"].clone()
}

/// Whether two lists of lists of numbers are the same to rounding.
fn close(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        _ => (found.as_f64().unwrap() - wanted.as_f64().unwrap()).abs() < 1e-9,
    }
}

#[test]
fn words_and_vectors_with_outputs_of_other_dimensions() {
    let files = Files::new();
    let words = files.put("words.jsonl", WORDS);
    let scalars = files.put("scalars.jsonl", SCALARS);
    let three = json!([[[1, 0.5, 2], [0, 1, 1]], [[0.5, 1, 2], [0.5, 1, 2], [7, 8, 9.25]]]);
    let one = json!([[[0.5], [-1.25]], [[3]]]);
    for more in [&[][..], &["--method", "interpolate"], &["--method", "deep"]] {
        let found = through(&files, &words, 3, more);
        assert!(close(&found, &three), "{more:?}: {found}");
        let found = through(&files, &scalars, 1, more);
        assert!(close(&found, &one), "{more:?}: {found}");
    }
    // Fewer coordinates of words than of outputs: words get more, and no head is needed.
    let found = through(&files, &words, 3, &["--embedding", "sign:2"]);
    assert!(close(&found, &three), "{found}");
}

#[test]
fn a_wrong_output_is_refuted() {
    let files = Files::new();
    let (model, words) = (files.path("model"), files.put("words.jsonl", WORDS));
    assert_eq!(run(&["memorize", &words, "--out", &model, "-q"]).code, 0);
    let wrong = files.put("wrong.jsonl", WORDS.replace("9.25", "9.5"));
    let checked = run(&["verify", &model, &wrong, "--tolerance", "0.01", "--json"]);
    assert_eq!((checked.code, &checked.json()["refuted"]), (1, &json!(1)), "{}", checked.json());
}

#[test]
fn outputs_wider_than_vectors_are_refused_with_help() {
    let files = Files::new();
    let wide = files.put("wide.jsonl", "{\"tokens\":[[0.1,0.2]],\"labels\":[[1,2,3]]}\n");
    let made = run(&["memorize", &wide, "--out", &files.path("model")]);
    assert_eq!(made.code, 2);
    assert!(made.stderr.contains("labels of dimension 3 for tokens of dimension 2"), "{}", made.stderr);
    assert!(made.stderr.contains("append zeros to every token"), "{}", made.stderr);
    let trained = run(&["train", &wide, "--out", &files.path("trained")]);
    assert!(
        trained.code == 2 && trained.stderr.contains("trained outputs have that of the tokens"),
        "{}",
        trained.stderr
    );
}
