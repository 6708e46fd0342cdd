//! `monolayer predict` on a sentence: as an argument, as an option, on standard input.

use serde_json::json;

use crate::common::{Files, refused, run, run_with_input};

const DATA: &str = "May PER\nsails O\n\nin O\nMay DATE\n";

fn compiled(files: &Files) -> String {
    let model = files.path("model");
    assert_eq!(run(&["memorize", &files.put("f.conll", DATA), "--out", &model, "-q"]).code, 0);
    model
}

#[test]
fn a_sentence_is_an_argument() {
    let files = Files::new();
    let model = compiled(&files);
    let done = run(&["predict", &model, "May sails"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "May\tPER\nsails\tO\n", ""));
    let json = run(&["predict", &model, " in\tMay ", "--json"]).json();
    assert_eq!((&json["labels"], &json["tokens"]), (&json!([["O", "DATE"]]), &json!(2)));
    assert!(json["accuracy"].is_null());
    let one = run(&["predict", &model, "--sentence-text", "May", "--json"]).json();
    assert_eq!((&one["sequences"], &one["tokens"]), (&json!(1), &json!(1)));
}

#[test]
fn one_word_is_a_file_or_an_error() {
    let files = Files::new();
    let model = compiled(&files);
    refused(&["predict", &model, "May"], None, &["\"May\" is no file", "--sentence-text"]);
    refused(&["predict", &model], None, &["no dataset", "--text"]);
    refused(&["predict", &model, "--sentence-text", " "], Some("the sentence"), &["no words"]);
    refused(&["predict", &model, "May zebra"], Some("the sentence:1 (sequence 1, token 2)"), &["\"zebra\""]);
    // A file with a space in its name is a file.
    let spaced = files.put("May sails.conll", "in O\nMay DATE\n");
    assert_eq!(run(&["predict", &model, &spaced, "--json"]).json()["accuracy"], 1.0);
}

#[test]
fn standard_input_is_text_unless_said_otherwise() {
    let files = Files::new();
    let model = compiled(&files);
    let text = run_with_input(&["predict", &model, "-", "--json"], "May sails\r\n\r\nin May\r\n").json();
    assert_eq!(text["labels"], json!([["PER", "O"], ["O", "DATE"]]));
    let columns = run_with_input(&["predict", &model, "-", "--format", "conll", "--json"], DATA).json();
    assert_eq!((&columns["labels"], &columns["accuracy"]), (&text["labels"], &json!(1.0)));
}

/// A text of 4,500 words is one long sequence. Its model has a certificate, which speaks of plain sums.
#[test]
fn long_sequences_and_certificates() {
    let files = Files::new();
    let words: Vec<String> = (0..4500_u32).map(|i| format!("w{}", i * i % 211 % 60 + i / 300)).collect();
    let text = files.put("text.txt", words.join(" "));
    let model = files.path("model");
    assert_eq!(run(&["memorize", "--text", &text, "--out", &model, "-q", "--candidates", "64", "--unchecked"]).code, 0);
    let predict = |more: &[&str]| run(&[&["predict", &model, "--text", &text, "--json"], more].concat());
    let own = predict(&[]);
    let (json, said) = (own.json(), own.stderr.clone());
    assert_eq!(json["attention"], "plain sums", "{said}");
    assert!(!said.contains("linear time"));
    let linear = predict(&["--attention", "linear"]);
    assert_eq!(linear.json()["attention"], "linear time");
    assert!(linear.stderr.contains("certificates do not speak"), "{}", linear.stderr);
    assert_eq!(linear.json()["labels"], json["labels"]);
    // Without the certificate nothing is said of labels, and with other data neither.
    std::fs::remove_file(std::path::Path::new(&model).join("certificate.json")).unwrap();
    assert_eq!(predict(&[]).json()["attention"], "linear time");
    assert_eq!(predict(&["--attention", "plain"]).json()["attention"], "plain sums");
    // Short sequences are summed plainly, whatever is asked for.
    let short = run(&["predict", &model, "w1 w2", "--attention", "linear", "--json"]);
    assert_eq!(short.json()["attention"], "plain sums");
}
