//! Bad input, as a user would give it: exit code 2, and a message that says what is wrong, where, and what to do.

use crate::common::{Files, fixture, refused, run, run_with_input};

/// Asserts that `monolayer data` refuses a file at a place in it.
fn data_refused(name: &str, bytes: impl AsRef<[u8]>, place: &str, words: &[&str]) {
    let files = Files::new();
    let path = files.put(name, bytes);
    refused(&["data", &path], Some(&format!("{path}{place}")), words);
}

/// A safetensors file with one tensor.
fn array(shape: &str, numbers: &[f64]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let header = format!(r#"{{"tokens":{{"dtype":"F64","shape":{shape},"data_offsets":[0,{}]}}}}"#, bytes.len());
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes].concat()
}

#[test]
fn empty_files() {
    data_refused("f.conll", "", "", &["an empty file", "give a file with a token per line"]);
    data_refused("f.conll", "\n \n-DOCSTART- O\n", "", &["no tokens"]);
    data_refused("f.jsonl", "", "", &["an empty file", r#"{"tokens": ["a", "b"]"#]);
    data_refused("f.safetensors", "", "", &["not a safetensors file"]);
}

#[test]
fn empty_sequences() {
    let text = "{\"tokens\": [\"a\"]}\n{\"tokens\": []}\n";
    data_refused("f.jsonl", text, ":2 (sequence 2)", &["a sequence without tokens", "leave the line out"]);
    data_refused("f.safetensors", array("[2,0,3]", &[]), "", &["tokens", "a size of 0"]);
}

#[test]
fn missing_labels() {
    data_refused("f.conll", "a X\nb\n", ":2:2 (sequence 1, token 2)", &["is the label missing?"]);
    let text = r#"{"tokens": ["a", "b"], "labels": ["X"]}"#;
    data_refused("f.jsonl", text, ":1 (sequence 1, token 2)", &["1 label for 2 tokens", "give every token one label"]);
    let text = "{\"tokens\": [\"a\"], \"labels\": [\"X\"]}\n{\"tokens\": [\"b\"]}\n";
    data_refused("f.jsonl", text, ":2 (sequence 2)", &["give labels on every line or on none"]);
}

#[test]
fn ragged_vectors() {
    let text = r#"{"tokens": [[1, 2], [3]]}"#;
    let words = ["a vector of length 1 where the first of the file has length 2", "give all vectors the same length"];
    data_refused("f.jsonl", text, ":1:23 (sequence 1, token 2)", &words);
}

#[test]
fn numbers_that_are_not_finite() {
    for number in ["NaN", "Infinity"] {
        let text = format!(r#"{{"tokens": [[1, {number}]]}}"#);
        data_refused("f.jsonl", text, ":1:17 (sequence 1, token 1)", &["not finite", "JSON has no NaN or Infinity"]);
    }
    let words = ["number out of range", "end near 1.8e308"];
    data_refused("f.jsonl", r#"{"tokens": [[1e999]]}"#, ":1:18 (sequence 1, token 1)", &words);
    for x in [f64::NAN, f64::INFINITY] {
        data_refused("f.safetensors", array("[1,2,1]", &[1.0, x]), " (sequence 1, token 2)", &["finite"]);
    }
}

#[test]
fn files_that_cannot_be_opened() {
    let files = Files::new();
    let missing = files.0.path().join("missing.conll").display().to_string();
    refused(&["data", &missing], Some(&missing), &["No such file"]);
    let directory = files.0.path().display().to_string();
    refused(&["data", &directory], Some(&directory), &["directory"]);
    let good = files.put("good.conll", "a X\n");
    refused(&["predict", &missing, &good], Some(&format!("{missing}/config.json")), &["No such file"]);
    refused(&["inspect", &good], Some(&format!("{good}/config.json")), &["directory"]);
}

#[test]
fn words_the_model_does_not_know() {
    let files = Files::new();
    let data = files.put("f.conll", "call\ncall\n\nzebra\n");
    let knows = fixture("rank_one");
    let words = ["the model does not know the word \"zebra\"", "it has no \"<unk>\" row"];
    refused(&["predict", knows.to_str().unwrap(), &data], Some(&format!("{data}:4 (sequence 2, token 1)")), &words);
    // With a row for unknown words every word works, and all unknown words are alike.
    let guesses = fixture("unknown_words");
    let done = run(&["predict", guesses.to_str().unwrap(), &data, "--json"]);
    assert_eq!(done.code, 0, "{}", done.stdout);
    let others = run_with_input(&["predict", guesses.to_str().unwrap(), "-", "--json"], "call call\n\ngiraffe\n");
    assert_eq!(done.json()["labels"], others.json()["labels"]);
}

#[test]
fn sequences_longer_than_the_model_s_positions() {
    let files = Files::new();
    let model = fixture("rank_one");
    let fits = files.put("fits.conll", "call\n".repeat(16));
    assert_eq!(run(&["predict", model.to_str().unwrap(), &fits]).code, 0);
    let long = files.put("long.conll", format!("call\n\n{}", "call\n".repeat(17)));
    let words = ["17 tokens where the model has 16 positions", "split the sequence"];
    refused(&["predict", model.to_str().unwrap(), &long], Some(&format!("{long}:3 (sequence 2)")), &words);
}

#[test]
fn data_of_another_kind_than_the_model_s() {
    let files = Files::new();
    let (words, vectors) = (fixture("rank_one"), fixture("causal_vectors"));
    let text = files.put("words.conll", "call\n");
    let flat = files.put("flat.jsonl", r#"{"tokens": [[1, 2]]}"#);
    let first = |path: &str| format!("{path}:1 (sequence 1, token 1)");
    let (words, vectors) = (words.to_str().unwrap(), vectors.to_str().unwrap());
    refused(&["predict", vectors, &text], Some(&first(&text)), &["words, but the model takes vectors"]);
    refused(&["predict", words, &flat], Some(&first(&flat)), &["vectors, but the model takes words"]);
    refused(&["predict", vectors, &flat], Some(&first(&flat)), &["dimension 2 where the model takes dimension 4"]);
}

#[test]
fn models_that_do_not_fit_together() {
    let files = Files::new();
    let data = files.put("f.conll", "call\n");
    let model = files.copy("rank_one", |copy| {
        let config = std::fs::read_to_string(copy.join("config.json")).unwrap();
        std::fs::write(copy.join("config.json"), config.replace("\"hidden\": 16", "\"hidden\": 15")).unwrap();
    });
    let tensors = format!("{model}/model.safetensors");
    let words = ["tensor layers.0.feed_forward.w1 has shape [16, 6]", "[15, 6]", "are not of one model"];
    refused(&["predict", &model, &data], Some(&tensors), &words);
    refused(&["inspect", &model], Some(&tensors), &words);
    let file = std::fs::read(&tensors).unwrap();
    std::fs::write(&tensors, &file[..file.len() / 2]).unwrap();
    refused(&["predict", &model, &data], Some(&tensors), &["not a safetensors file", "truncated"]);
}

#[test]
fn outputs_that_overflow() {
    let files = Files::new();
    let data = files.put("f.jsonl", r#"{"tokens": [[1, 1, 1, 1], [1e308, 1e308, 1e308, 1e308]]}"#);
    let place = format!("{data}:1 (sequence 1, token 2)");
    let model = fixture("causal_vectors");
    refused(&["predict", model.to_str().unwrap(), &data], Some(&place), &["not a finite number", "check the model"]);
}

#[test]
fn requests_that_make_no_sense() {
    refused(&["data", "task:nonsense:alphabet=2,length=3"], None, &["no task is named \"nonsense\"", "copy, reverse"]);
    let files = Files::new();
    let data = files.put("f.conll", "a X\n");
    refused(&["data", &data, "--format", "xml"], None, &["\"xml\" is not a format", "npz and safetensors"]);
    refused(&["data", &data, "--embedding", "sign:0"], None, &["\"0\" is not a dimension"]);
    refused(&["data", &data, "--maks", "none"], None, &["--maks", "--mask"]);
    refused(&["memorise"], None, &["unrecognized subcommand"]);
    let nothing = run(&["data"]);
    assert!(nothing.code == 2 && nothing.stderr.contains("no dataset; give DATA"), "{}", nothing.stderr);
}
