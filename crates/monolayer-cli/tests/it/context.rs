//! `monolayer context` as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn run(data: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_monolayer"));
    command.arg("context").arg(data).args(["--candidates", "40", "-q"]).args(options).output().unwrap()
}

fn text(data: &Path, options: &[&str], code: i32) -> String {
    let output = run(data, options);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn json(data: &Path, options: &[&str], code: i32) -> Value {
    let options: Vec<&str> = options.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&text(data, &options, code)).unwrap()
}

const WORDS: &str = "a X\nb Y\nc X\n\na Y\nc X\nb Y\n\nb X\n";

#[test]
fn words() {
    let folder = Folder::new();
    let data = folder.file("words.conll", WORDS);
    let found = json(&data, &[], 0);
    // Labels contradict each other without places: "a" with the same words around it is X, then Y.
    assert_eq!(found["positions"], true);
    assert_eq!((&found["vocabulary"], &found["contexts"]), (&6.into(), &7.into()));
    assert_eq!(found["d"], 96);
    assert_eq!(found["contextual_map"], true);
    assert_eq!(found["ranks"], serde_json::json!([1, 1, 1, 1]));
    assert!(found["log2_gap"].as_f64().unwrap() < 3.0);
    assert!(found["log2_gap"].as_f64().unwrap() > -20.0);
    assert!(found["log2_delta_theorem"].as_f64().unwrap() < -1e4);
    assert!(found["r"].as_f64().unwrap() <= found["r_theorem"].as_f64().unwrap() * (1.0 + 1e-12));
    assert!(found["labelled_gap_over_sd"].as_f64().unwrap() >= found["gap_over_sd"].as_f64().unwrap());
    for field in ["scale", "r_min", "r_max", "epsilon", "bits", "seconds"] {
        assert!(!found[field].is_null(), "{field}");
    }
    assert_eq!(found["closest"][0]["sentence"], "[a] b c");
    let said = text(&data, &[], 0);
    assert!(said.contains("a contextual map, proved") && said.contains("[a] b c X"), "{said}");
    assert!(said.contains("Theorem 2's own weights: delta = 2^-"), "{said}");
}

#[test]
fn without_kappa_or_output() {
    let folder = Folder::new();
    let data = folder.file("words.conll", WORDS);
    let said = text(&data, &["--kappa", "0"], 1);
    assert!(said.contains("NOT a contextual map, proved") && said.contains("choose a kappa other than 0"), "{said}");
    assert!(said.contains("[a] b c") && said.contains("[a] c b"), "{said}");
    let said = text(&data, &["--w-o", "0"], 1);
    assert!(said.contains("W_O is 0: nothing of the context gets into the id"), "{said}");
    let found = json(&data, &["--w-o", "0"], 1);
    assert_eq!((&found["contextual_map"], &found["log2_gap"]), (&false.into(), &Value::Null));
}

#[test]
fn without_positions_a_context_is_a_normalized_multiset() {
    let folder = Folder::new();
    let data = folder.file("words.conll", "a\nb\n\na\nb\na\nb\n\na\nb\nb\n");
    let found = json(&data, &["--positions", "none"], 0);
    assert_eq!((&found["contexts"], &found["same_for_all_weights"]), (&4.into(), &2.into()));
    let said = text(&data, &["--positions", "none"], 0);
    assert!(said.contains("2 contexts appear as one normalized multiset of different sizes"), "{said}");
    assert!(said.contains("[a] b a b"), "{said}");
    // A causal mask: a alone, b after a, a after both, b after a and b.
    let causal = json(&data, &["--positions", "none", "--mask", "causal"], 0);
    assert_eq!(causal["contexts"], 4);
}

#[test]
fn vectors() {
    let folder = Folder::new();
    let four = "{\"tokens\": [[0.9, 0.4], [-0.7, 0.8]]}\n{\"tokens\": [[0.2, -1.1], [1.3, -0.5]]}\n\
                {\"tokens\": [[0.9, 0.4], [1.3, -0.5]]}\n";
    let data = folder.file("four.jsonl", four);
    let found = json(&data, &["--head-size", "3"], 0);
    assert_eq!((&found["vocabulary"], &found["d"], &found["longest"]), (&4.into(), &2.into(), &2.into()));
    assert_eq!(found["log2_delta_theorem"].as_f64().unwrap().round(), -12_440.0);
    assert_eq!(found["ranks"], serde_json::json!([1, 1, 1, 1]));
    assert_eq!(found["positions"], false);
}

#[test]
fn answers_at_the_edges() {
    let folder = Folder::new();
    let zero = folder.file("zero.jsonl", "{\"tokens\": [[0], [1], [4]]}\n{\"tokens\": [[0], [2], [3]]}\n");
    let said = text(&zero, &[], 1);
    assert!(said.contains("no weights tell them apart") && said.contains("asks for r_min > 0"), "{said}");
    assert!(said.contains("the zero token"), "{said}");
    let harmless = folder.file("harmless.jsonl", "{\"tokens\": [[0], [1], [4]]}\n{\"tokens\": [[0], [2], [4]]}\n");
    let said = text(&harmless, &[], 0);
    assert!(said.contains("a contextual map, proved") && said.contains("sees only the mean"), "{said}");
    let single = folder.file("single.jsonl", "{\"tokens\": [[1]]}\n{\"tokens\": [[2]]}\n");
    let said = text(&single, &[], 0);
    assert!(said.contains("delta = 0 for n = 1"), "{said}");
    assert!(json(&single, &[], 0)["log2_gap"].as_f64().unwrap() > -1.0 - 1e-9);
    let equal = folder.file("equal.jsonl", "{\"tokens\": [[1], [1]]}\n{\"tokens\": [[1]]}\n");
    let said = text(&equal, &[], 0);
    assert!(said.contains("one context only") && said.contains("all tokens are equal"), "{said}");
    assert_eq!(json(&equal, &[], 0)["epsilon"], Value::Null);
    let one = folder.file("one.conll", "a\nb\nc\n");
    assert!(text(&one, &[], 0).contains("a contextual map, proved"));
}

#[test]
fn the_layer_is_a_model() {
    let folder = Folder::new();
    let data = folder.file("words.conll", WORDS);
    let out = folder.0.path().join("map");
    let out = out.to_str().unwrap();
    json(&data, &["--out", out, "--head-size", "2"], 0);
    let bytes = |name: &str| fs::read(Path::new(out).join(name)).unwrap();
    let before = (bytes("config.json"), bytes("model.safetensors"), bytes("vocabulary.json"));
    let config: Value = serde_json::from_slice(&before.0).unwrap();
    assert_eq!((&config["labels"], &config["layers"][0]["hidden"]), (&Value::Null, &0.into()));
    assert_eq!(config["layers"][0]["attention"]["head_size"], 2);
    json(&data, &["--out", out, "--head-size", "2", "--threads", "1"], 0);
    assert!(before == (bytes("config.json"), bytes("model.safetensors"), bytes("vocabulary.json")));

    // Its outputs are the ids: the same word in two contexts, two vectors.
    let predicted =
        Command::new(env!("CARGO_BIN_EXE_monolayer")).args(["predict", out, "--json", "-q"]).arg(&data).output();
    let predicted: Value = serde_json::from_slice(&predicted.unwrap().stdout).unwrap();
    assert_ne!(predicted["outputs"][0][0], predicted["outputs"][1][0]);
    assert_eq!(predicted["outputs"][0][0].as_array().unwrap().len(), 96);
}

#[test]
fn bad_requests() {
    let folder = Folder::new();
    let data = folder.file("words.conll", "a\nb\n");
    let error = |options: &[&str]| {
        let output = run(&data, options);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["--by-label"]).contains("no labels"));
    assert!(error(&["--kappa", "inf"]).contains("between 1e-200 and 1e200"));
    assert!(error(&["--head-size", "0"]).contains("0 is not in 1..=4096"));
    assert!(error(&["--scale", "large"]).contains("possible values: tight, certified, paper"));
    assert!(error(&["--way", "direct"]).contains("--way means nothing at this scale"));
    assert!(error(&["--scale", "paper", "--kappa", "1"]).contains("use --scale tight"));
}

/// All pairs of four vectors.
const PAIRS: &str = "{\"tokens\": [[0.9, 0.4], [-0.7, 0.8]]}\n{\"tokens\": [[0.9, 0.4], [0.2, -1.1]]}\n\
    {\"tokens\": [[0.9, 0.4], [1.3, -0.5]]}\n{\"tokens\": [[-0.7, 0.8], [0.2, -1.1]]}\n\
    {\"tokens\": [[-0.7, 0.8], [1.3, -0.5]]}\n{\"tokens\": [[0.2, -1.1], [1.3, -0.5]]}\n";

#[test]
fn the_theorem_itself() {
    let folder = Folder::new();
    let data = folder.file("four.jsonl", PAIRS);
    let figure = folder.0.path().join("bits.svg");
    let found = json(&data, &["--scale", "paper", "--figure", figure.to_str().unwrap()], 0);
    let number = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", found[name]));
    assert_eq!(found["scale"], "paper");
    assert_eq!(number("log2_delta_theorem").round(), -12_440.0);
    assert!(number("log2_gap") > number("log2_delta_theorem") && number("log2_gap") < -1000.0);
    let (identity, direct) = (number("log2_gap_identity"), number("log2_gap_direct"));
    assert!((identity - direct).abs() < 1e-6 * direct.abs());
    assert!(number("bits") > -identity && number("r") <= number("r_theorem") * (1.0 + 1e-9));
    assert_eq!((&found["exceeds_theorem"], &found["contextual_map"]), (&true.into(), &true.into()));
    for field in ["r_min", "r_max", "epsilon", "vocabulary", "seconds", "kappa", "log2_gap_tight", "log2_promise"] {
        assert!(found[field].is_number(), "{field}");
    }
    let drawn = fs::read_to_string(figure).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n") && drawn.contains("four.jsonl"));
    let said = text(&data, &["--scale", "paper"], 0);
    assert!(said.contains("Theorem 2, eq. 8  2^-12440.32  12,441") && said.contains("the tight map"), "{said}");

    let certified = json(&data, &["--scale", "certified"], 0);
    assert!(certified["log2_gap"].as_f64().unwrap() > -100.0);
    assert_eq!(certified["exceeds_theorem"], true);
}

#[test]
fn more_bits_than_allowed() {
    let folder = Folder::new();
    let data = folder.file("four.jsonl", PAIRS);
    let options = ["--scale", "paper", "--way", "direct", "--max-bits", "1000"];
    let error = json(&data, &options, 2)["error"].as_str().unwrap().to_owned();
    assert!(error.contains(" bits, ") && error.contains(" bytes for each number, and --max-bits is 1000"), "{error}");
    // The identity does not care.
    let found = json(&data, &["--scale", "paper", "--max-bits", "1000"], 0);
    assert_eq!((&found["bits"], &found["log2_gap_direct"]), (&53.into(), &Value::Null));
}

#[test]
fn the_theorem_for_multisets() {
    let folder = Folder::new();
    let data = folder.file("words.conll", "a\nb\n\na\nb\na\nb\n\na\nb\nb\n\na\n");
    for scale in ["paper", "certified"] {
        let found = json(&data, &["--scale", scale, "--positions", "none"], 0);
        assert_eq!((&found["multisets"], &found["same_for_all_weights"]), (&true.into(), &2.into()));
        assert_eq!(found["exceeds_theorem"], true);
    }
    let said = text(&data, &["--scale", "certified", "--positions", "none"], 0);
    assert!(said.contains("2 contexts appear as one normalized multiset of different sizes"), "{said}");
}

#[test]
fn places_of_given_vectors_are_those_of_corollary_2() {
    let folder = Folder::new();
    let swapped = "{\"tokens\": [[1, 0], [0, 1]], \"labels\": [\"x\", \"y\"]}\n\
                   {\"tokens\": [[0, 1], [1, 0]], \"labels\": [\"x\", \"y\"]}\n";
    let data = folder.file("swapped.jsonl", swapped);
    let found = json(&data, &["--scale", "certified"], 0);
    assert_eq!((&found["positions"], &found["vocabulary"]), (&true.into(), &4.into()));
    // The step is 2 r_max + epsilon, so that epsilon stays what it was.
    assert!((found["epsilon"].as_f64().unwrap() - 2_f64.sqrt()).abs() < 1e-12);
    assert!(found["r_max"].as_f64().unwrap() > 6.0);
}

#[test]
fn a_zero_token_is_not_covered() {
    let folder = Folder::new();
    let data = folder.file("zero.jsonl", "{\"tokens\": [[0], [1]]}\n");
    let error = json(&data, &["--scale", "paper"], 2)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("asks for r_min > 0"), "{error}");
}
