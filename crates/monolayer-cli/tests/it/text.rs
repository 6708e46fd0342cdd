//! A text memorized and recited, as a user does it.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Files, refused, run, run_with_input};

const TEXT: &str = "To be, or not to be, that is the question:\r\nWhether 'tis nobler in the mind to suffer\r\n\r\n\
The slings and arrows of outrageous fortune,\r\nOr to take arms against a sea of troubles — and by opposing\tend them.\r\n";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Memorizes a text, and gives the model's directory and the report.
fn memorized(files: &Files, name: &str, text: &str, more: &[&str]) -> (String, Value) {
    let (file, model) = (files.put(&format!("{name}.txt"), text), files.path(name));
    let done = run(&[&["memorize", "--text", &file, "--out", &model, "--json", "-q"], more].concat());
    assert_eq!(done.code, 0, "{}", done.stdout);
    (model, done.json())
}

#[test]
fn a_text_is_recited_from_its_first_word() {
    let files = Files::new();
    let (model, json) = memorized(&files, "hamlet", TEXT, &[]);
    let count = words(TEXT).len();
    for field in ["tokens", "memorized", "possible", "certified", "recites"] {
        assert_eq!(json[field], count, "{field}");
    }
    assert_eq!(json["checked"], "verified");
    let majority = json["word_majority"].as_f64().unwrap();
    assert!(0.0 < majority && majority < 1.0, "attention has something to do: {majority}");

    let done = run(&["generate", &model]);
    assert_eq!((done.code, words(&done.stdout)), (0, words(TEXT)));
    let dtype = json["dtype"].as_str().unwrap();
    assert_eq!(done.stderr, format!("{count} tokens, {count} certified in {dtype}\n"));
    let mut fields = run(&["generate", &model, "--json", "-q"]).json();
    let mut seconds = |name: &str| fields.as_object_mut().unwrap().remove(name).and_then(|s| s.as_f64()).unwrap();
    let (all, attention) = (seconds("seconds"), seconds("attention_seconds"));
    assert!(0.0 < attention && attention < all, "{attention} of {all}");
    let expected = json!({
        "text": words(TEXT).join(" "), "tokens": count, "certified": count, "arithmetic": dtype, "ended": true,
        "outside": 0,
    });
    assert_eq!(fields, expected);

    let file = files.path("hamlet.txt");
    assert_eq!(run(&["verify", &model, "--text", &file]).code, 0);
    assert_eq!(run(&["predict", &model, "--text", &file, "--json"]).json()["accuracy"], 1.0);
    let config = files.json("hamlet/config.json");
    assert_eq!(config["source"]["text"], json!({ "split": "word", "first": "To", "end": "<end of text>" }));
    assert_eq!((&config["max_length"], &config["layers"][0]["attention"]["mask"]), (&Value::Null, &json!("causal")));
    let inspected = run(&["inspect", &model]).stdout;
    assert!(inspected.contains("recite a text of words that starts with \"To\""), "{inspected}");
    let explained = run(&["explain", &model, "To be, or", "--json"]).json();
    let labels: Vec<&Value> = explained["tokens"].as_array().unwrap().iter().map(|t| &t["label"]).collect();
    assert_eq!(labels, ["be,", "or", "not"]);
}

#[test]
fn characters_come_back_byte_for_byte() {
    let files = Files::new();
    let (model, json) = memorized(&files, "chars", TEXT, &["--split", "char"]);
    assert_eq!((&json["tokens"], &json["checked"]), (&json!(TEXT.chars().count()), &json!("verified")));
    assert_eq!(run(&["generate", &model, "-q"]).stdout, TEXT);
    assert_eq!(run(&["generate", &model, "To be,", "-q"]).stdout, TEXT);
    // The model knows what its tokens are.
    assert_eq!(run(&["verify", &model, "--text", &files.path("chars.txt")]).code, 0);
    assert_eq!(run(&["predict", &model, "--sentence-text", "To", "--json"]).json()["labels"], json!([["o", " "]]));
    assert_eq!(run(&["predict", &model, "--sentence-text", "To"]).stdout, "T\to\no\t\" \"\n");
    assert_eq!(run_with_input(&["predict", &model, "-", "--json"], "To\n").json()["tokens"], 3);
    let explained = run(&["explain", &model, "To", "--json"]).json();
    assert_eq!(explained["tokens"][1]["label"], " ");
}

#[test]
fn what_is_certified_is_what_the_certificate_is_about() {
    let files = Files::new();
    let (model, _) = memorized(&files, "hamlet", TEXT, &[]);
    let certified = |arguments: &[&str]| {
        let json = run(&[&["generate", &model, "--json", "-q"], arguments].concat()).json();
        (json["tokens"].as_u64().unwrap(), json["certified"].as_u64().unwrap(), json["ended"] == true)
    };
    let all = words(TEXT).len() as u64;
    assert_eq!(certified(&["To", "be, or not"]), (all, all, true));
    assert_eq!(certified(&["--tokens", "5"]), (5, 5, false));
    assert_eq!(certified(&["--tokens", "500"]), (all, all, true));
    // It goes on from anywhere, but that is not what was memorized.
    let (tokens, covered, _) = certified(&["be,", "that"]);
    assert!(tokens > 2 && covered == 0);
    let people = run(&["generate", &model, "be,", "that", "--tokens", "9"]);
    assert!(people.stderr.contains("9 tokens, none certified: this is not the memorized text"), "{}", people.stderr);
    assert_eq!(words(&people.stdout).len(), 9);

    // A certificate of other files covers nothing, nor does one that is not there.
    let certificate = Path::new(&model).join("certificate.json");
    let text = std::fs::read_to_string(&certificate).unwrap();
    let hash = files.json("hamlet/certificate.json")["model"]["tensors"].as_str().unwrap().to_owned();
    std::fs::write(&certificate, text.replace(&hash, &"0".repeat(64))).unwrap();
    assert_eq!(certified(&[]), (all, 0, true));
    std::fs::write(&certificate, text.replace("\"undecided\": []", "\"undecided\": [[1, 2], [1, 9]]")).unwrap();
    assert_eq!((certified(&[]), certified(&["--tokens", "5"])), ((all, all - 2, true), (5, 4, false)));
    std::fs::remove_file(&certificate).unwrap();
    assert_eq!(certified(&[]), (all, 0, true));
}

#[test]
fn what_cannot_be_recited_is_said() {
    let files = Files::new();
    for (name, text, recites) in [("same", "a a a a", 4), ("repeat", "a a a b", 3), ("pair", "A B A B", 4)] {
        let (model, json) = memorized(&files, name, text, &[]);
        assert_eq!((&json["recites"], &json["possible"]), (&json!(recites), &json!(3)), "{text}");
        assert_eq!(run(&["verify", &model, "--text", &files.path(&format!("{name}.txt"))]).code, 0);
        let generated = run(&["generate", &model, "--json", "-q"]).json();
        assert_eq!((&generated["tokens"], &generated["certified"]), (&json!(4), &json!(0)), "{text}");
        let people = run(&["memorize", "--text", &files.path(&format!("{name}.txt")), "--out", &model, "-q"]).stdout;
        assert!(people.contains(&format!("goes wrong after token {recites} of 4")), "{people}");
        assert!(people.contains("start token"), "{people}");
    }
    // Given what cannot be told, the rest comes.
    let (model, json) = memorized(&files, "later", "a a a b c a d", &[]);
    assert_eq!((&json["recites"], &json["certified"]), (&json!(3), &json!(6)));
    let people = run(&["memorize", "--text", &files.path("later.txt"), "--out", &model, "-q"]).stdout;
    assert!(people.contains("if it is given the first 4 tokens"), "{people}");
    let given = run(&["generate", &model, "a a a b", "--json", "-q"]).json();
    assert_eq!((&given["text"], &given["certified"]), (&json!("a a a b c a d"), &json!(6)));
    assert_eq!(run(&["generate", &model, "--json", "-q"]).json()["certified"], 0);

    let (model, json) = memorized(&files, "one", "word", &[]);
    assert_eq!((&json["certified"], &json["recites"]), (&json!(1), &json!(1)));
    assert_eq!(run(&["generate", &model]).stdout, "word\n");
}

#[test]
fn no_word_is_taken_for_the_end() {
    let files = Files::new();
    let text = "<end> of <end of text> <unk> <s> _ -100 null \" \\ <end>";
    let (model, json) = memorized(&files, "ends", text, &[]);
    assert_eq!(json["checked"], "verified");
    assert_eq!(run(&["generate", &model, "-q"]).stdout, format!("{text}\n"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let files = Files::new();
    let out = files.path("m");
    for (name, bytes, what) in
        [("empty", &b""[..], "no words"), ("blank", b" \r\n", "no words"), ("latin", b"caf\xe9", "UTF-8")]
    {
        let file = files.put(name, bytes);
        let place = if what == "UTF-8" { format!("{file}:1") } else { file.clone() };
        refused(&["memorize", "--text", &file, "--out", &out], Some(&place), &[what]);
    }
    let file = files.put("f.txt", "a b c a");
    let conflict = |arguments: &[&str], words: [&str; 2]| {
        let done = run(&[&["memorize", "--out", &out], arguments].concat());
        assert!(done.code == 2 && words.iter().all(|word| done.stderr.contains(word)), "{}", done.stderr);
    };
    conflict(&["--text", &file, "--mask", "none"], ["--mask", "--text"]);
    conflict(&["--text", &file, "--positions", "auto"], ["--positions", "--text"]);
    conflict(&[&file, "--text", &file], ["DATA", "--text"]);
    refused(&["memorize", &file, "--split", "char", "--out", &out], None, &["--split is for texts", "--text FILE"]);
    refused(&["verify", &out, &file, "--split", "char"], None, &["--split is for texts"]);
    refused(&["memorize", "--text", &file, "--split", "line", "--out", &out], None, &["word or char"]);
    refused(&["memorize", "--out", &out], None, &["no dataset"]);

    let (model, _) = memorized(&files, "abc", "a b c a", &[]);
    refused(&["generate", &model, "zebra"], None, &["does not know the word \"zebra\""]);
    refused(&["generate", &model, "a", "b", "--tokens", "1"], None, &["2 tokens are given"]);
    let labels = files.path("labels");
    let data = files.put("f.jsonl", r#"{"tokens": ["a", "b", "a"], "labels": ["b", "a", "<end>"]}"#);
    assert_eq!(run(&["memorize", &data, "--out", &labels, "--mask", "none", "-q"]).code, 0);
    refused(&["generate", &labels, "a"], None, &["see those that come later", "--mask causal"]);
    // A next-token model made by hand writes its text, too; where that starts is not known.
    assert_eq!(run(&["memorize", &data, "--out", &labels, "--mask", "causal", "--positions", "none", "-q"]).code, 0);
    refused(&["generate", &labels], None, &["give its first words"]);
    let json = run(&["generate", &labels, "a", "--json", "-q"]).json();
    assert_eq!((&json["text"], &json["certified"]), (&json!("a b a"), &json!(3)));
}

#[test]
fn texts_come_from_standard_input_too() {
    let files = Files::new();
    let model = files.path("m");
    assert_eq!(run_with_input(&["memorize", "--text", "-", "--out", &model], "one two one three").code, 0);
    assert_eq!(run(&["generate", &model, "-q"]).stdout, "one two one three\n");
    assert_eq!(run_with_input(&["verify", &model, "--text", "-"], "one\ntwo\none\nthree\n").code, 0);
    assert_eq!(run_with_input(&["verify", &model, "--text", "-"], "one two one two").code, 1);
    let data = run_with_input(&["data", "--text", "-", "--json"], "one two one three").json();
    assert_eq!((&data["tokens"], &data["possible_without_positions"]), (&json!(4), &json!(4)));
}

/// English-like text: words drawn with the frequencies of a language, in sentences.
fn english(count: usize) -> String {
    let syllables =
        ["ba", "con", "de", "ing", "er", "lo", "mi", "nu", "or", "pre", "qua", "ri", "sta", "tion", "un", "ver"];
    let word = |mut rank: usize| {
        let mut word = String::new();
        loop {
            word += syllables[rank % syllables.len()];
            rank /= syllables.len();
            if rank == 0 {
                return word;
            }
        }
    };
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut text = String::new();
    for i in 0..count {
        // Zipf: the density of ranks falls as 1 / rank.
        let rank = (3000_f64.powf(random())) as usize - 1;
        text += &word(rank);
        text += if i + 1 == count || random() < 0.07 { ".\n" } else { " " };
    }
    text
}

#[test]
#[ignore = "slow: tools/test --slow"]
fn five_thousand_words_are_recited_and_verified() {
    let files = Files::new();
    let text = english(5000);
    let (model, json) = memorized(&files, "long", &text, &[]);
    for field in ["tokens", "memorized", "certified", "recites"] {
        assert_eq!(json[field], 5000, "{field}");
    }
    assert_eq!(json["checked"], "verified");
    let done = run(&["generate", &model]);
    assert_eq!(words(&done.stdout), words(&text));
    // A slow machine hears of the time that passed, before and after this line.
    assert!(done.stderr.lines().any(|line| line == "5,000 tokens, 5,000 certified in f64"), "{}", done.stderr);
    let verified = run(&["verify", &model, "--text", &files.path("long.txt"), "--json", "-q"]).json();
    assert_eq!((&verified["verdict"], &verified["verified"]), (&json!("verified"), &json!(5000)));
}
