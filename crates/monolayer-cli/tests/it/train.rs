//! `monolayer train` as a user runs it.

use crate::common::{Files, refused, run};

const DATA: &str = "task:reverse:alphabet=4,length=4";

/// Entities in sentences: a name is a person after "Mr" and a place otherwise.
fn corpus() -> String {
    let sentence = |i: usize| match i % 4 {
        0 => "Mr O\nPaul I-PER\nsleeps O\n",
        1 => "Paul I-LOC\nis O\nbig O\n",
        2 => "Mr O\nRome I-PER\nis O\nhere O\n",
        _ => "Rome I-LOC\nParis B-LOC\nsleep O\n",
    };
    (0..40).map(sentence).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_trained_model_can_be_used() {
    let files = Files::new();
    let (data, out) = (files.put("train.conll", corpus()), files.path("model"));
    let dev = files.put("dev.conll", "Mr O\nPaul I-PER\nspeaks I-NEW\n");
    let arguments = ["train", &data, "--out", &out, "--epochs", "40", "--eval-every", "20", "--rate", "0.01"];
    let json = run(&[&arguments[..], &["--dim", "8", "--hidden", "16", "--dev", &dev, "--json"]].concat()).json();
    assert_eq!((&json["end"], &json["epochs"]), (&"done".into(), &40.into()), "{json}");
    assert_eq!((&json["dev_unknown_words"], &json["dev_unknown_labels"]), (&1.into(), &1.into()));
    assert!(json["train_accuracy"].as_f64().unwrap() > 0.98, "{json}");
    assert!(json["ceilings"]["word_majority"].as_f64().unwrap() < 0.9);
    assert!(json["dev"]["f1"].as_f64().unwrap() > 0.0, "{json}");
    assert!(["loss", "tokens_per_second", "seconds"].iter().all(|name| json[name].is_number()), "{json}");
    // The figures are in the file too, a line for each evaluation.
    assert_eq!(std::fs::read_to_string(files.0.path().join("model/metrics.jsonl")).unwrap().lines().count(), 2);

    let predicted = run(&["predict", &out, &data, "--json"]).json();
    assert_eq!(predicted["accuracy"], json["train_accuracy"]);
    let verified = run(&["verify", &out, &data, "--json"]).json();
    let right = (json["train_accuracy"].as_f64().unwrap() * verified["tokens"].as_f64().unwrap()).round();
    assert!(
        verified["verified"].as_f64().unwrap() <= right && verified["verified"].as_f64().unwrap() > 0.0,
        "{verified}"
    );
    // Words that it does not know have a row.
    assert_eq!(run(&["predict", &out, &dev, "--json"]).code, 0);
}

#[test]
fn a_model_of_another_label_scheme_is_checked_against_a_converted_file() {
    let files = Files::new();
    let (data, out, converted) = (files.put("train.conll", corpus()), files.path("model"), files.path("iob2.conll"));
    let train =
        run(&["train", &data, "--out", &out, "--epochs", "2", "--dim", "4", "--hidden", "4", "--labels", "iob2"]);
    assert!(
        train.stdout.contains(&format!("monolayer data {data} --labels iob2 --out iob2.conll")),
        "{}",
        train.stdout
    );
    let json = run(&["data", &data, "--labels", "iob2", "--out", &converted, "--json"]).json();
    let again = run(&["data", &converted, "--json"]).json();
    for name in ["tokens", "sequences", "labels", "possible_without_positions", "word_majority"] {
        assert_eq!(json[name], again[name], "{name}");
    }
    assert!(std::fs::read_to_string(&converted).unwrap().starts_with("Mr O\nPaul B-PER\n"));
    assert_eq!(run(&["verify", &out, &converted, "--json"]).json()["tokens"], json["tokens"]);
    let spaced = files.put("spaced.jsonl", r#"{"tokens": ["New York"], "labels": ["X"]}"#);
    refused(
        &["data", &spaced, "--out", &converted],
        Some(&format!("{spaced}:1 (sequence 1, token 1)")),
        &["New York", "columns"],
    );
}

#[test]
fn a_finished_run_goes_on_with_more_epochs() {
    let files = Files::new();
    let (short, long) = (files.path("short"), files.path("long"));
    let options = ["--dim", "6", "--hidden", "8", "--eval-every", "2", "--positions", "-q"];
    let train = |more: &[&str]| run(&[&["train", DATA], more, &options[..]].concat());
    assert_eq!(train(&["--out", &short, "--epochs", "2"]).code, 0);
    assert_eq!(run(&["train", DATA, "--resume", &short, "--epochs", "4", "-q"]).code, 0);
    assert_eq!(train(&["--out", &long, "--epochs", "4"]).code, 0);
    for name in ["config.json", "model.safetensors", "vocabulary.json"] {
        let read = |dir: &str| std::fs::read(files.0.path().join(dir).join(name)).unwrap();
        assert!(read("short") == read("long"), "{name}");
    }
    refused(&["train", DATA, "--resume", &short, "--rate", "0.1"], None, &["only --epochs and --eval-every"]);
}

#[test]
fn options_come_from_a_file_and_the_command_line_wins() {
    let files = Files::new();
    let config = files.put("run.toml", "dim = 6\nhidden = 8\nepochs = 9\nrank = \"full\"\n");
    let arguments = ["train", DATA, "--out", &files.path("model"), "--config", &config, "--epochs", "1", "--json"];
    let options = run(&arguments).json()["options"].clone();
    assert_eq!((&options["dim"], &options["epochs"], &options["rank"]), (&6.into(), &1.into(), &"full".into()));
    let bad = files.put("bad.toml", "dims = 6\n");
    let arguments = ["train", DATA, "--out", &files.path("other"), "--config", &bad];
    refused(&arguments, Some(&bad), &["line 1", "dims"]);
    // A model is replaced only where that is asked for.
    let model = files.path("model");
    let again = ["train", DATA, "--out", &model, "--config", &config, "--num-epochs", "1", "--lr", "0.01"];
    refused(&again, Some(&model), &["--force"]);
    let forced = run(&[&again[..], &["--force", "--json"]].concat()).json();
    assert_eq!((&forced["options"]["rate"], &forced["options"]["epochs"]), (&0.01.into(), &1.into()));
}

#[test]
fn divergence_is_named_and_ends_with_1() {
    let files = Files::new();
    let out = files.path("model");
    let arguments = ["train", DATA, "--out", &out, "--optimizer", "sgd", "--rate", "1e12", "--epochs", "3"];
    let run = run(&[&arguments[..], &["--json"]].concat());
    let json = run.json();
    assert_eq!((run.code, &json["end"]), (1, &"diverged".into()), "{json}");
    assert!(json["diverged"]["tensor"].is_string() && json["diverged"]["step"].as_u64() > Some(0), "{json}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_writes_a_checkpoint_that_goes_on() {
    use std::time::{Duration, Instant};
    let files = Files::new();
    let out = files.path("model");
    let options = ["--dim", "16", "--hidden", "32", "--epochs", "100000", "--eval-every", "1", "--json"];
    let child = crate::common::command(&[&["train", DATA, "--out", &out], &options[..]].concat()).spawn().unwrap();
    let metrics = files.0.path().join("model/metrics.jsonl");
    let start = Instant::now();
    // Once there is an evaluation the run is on its way.
    while std::fs::read(&metrics).map_or(0, |bytes| bytes.len()) == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no evaluation within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["end"], "stopped");
    let done = json["epochs"].as_u64().unwrap();
    let more = (done + 1).to_string();
    let resumed = run(&["train", DATA, "--resume", &out, "--epochs", &more, "--json"]).json();
    assert_eq!((&resumed["end"], resumed["epochs"].as_u64()), (&"done".into(), Some(done + 1)));
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let files = Files::new();
    let out = files.path("model");
    let plain = files.put("plain.conll", "a\nb\n");
    refused(&["train", &plain, "--out", &out], Some(&format!("{plain}:1 (sequence 1, token 1)")), &["no labels"]);
    refused(
        &["train", DATA, "--out", &out, "--labels", "iob2"],
        Some("task:reverse:alphabet=4,length=4 (sequence 1, token 1)"),
        &["neither O nor"],
    );
    refused(&["train", DATA, "--out", &out, "--batch", "0"], None, &["batch", "at least 1"]);
    refused(&["train", DATA, "--out", &out, "--heads", "3", "--rank", "full"], None, &["full rank", "64"]);
    assert!(!files.0.path().join("model").exists());
}

#[test]
fn a_function_is_learned() {
    let files = Files::new();
    let out = files.path("model");
    let function = ["--function", "x1^2; x2", "--dim", "2", "--length", "3", "--samples", "128"];
    let arguments = ["--hidden", "8", "--epochs", "30", "--eval-every", "1", "--rate", "0.01", "--json"];
    let json = run(&[&["train", "--out", &out], &function[..], &arguments[..]].concat()).json();
    assert_eq!((&json["end"], &json["train_accuracy"], &json["tokens"]), (&"done".into(), &().into(), &384.into()));
    let text = std::fs::read_to_string(files.0.path().join("model/metrics.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(json["loss"].as_f64() < first["train_loss"].as_f64(), "{json}");
    // The model takes vectors and gives vectors.
    let data = files.put("point.jsonl", "{\"tokens\": [[0.5, 0.1], [0.2, 0.3]]}\n");
    assert_eq!(run(&["predict", &out, &data, "--json"]).json()["outputs"][0].as_array().unwrap().len(), 2);
    refused(&["train", "--function", "1/0", "--dim", "1", "--length", "2", "--out", &files.path("other")], None, &[]);
}
