//! Edits as a user makes them: what is printed, what is written, what is refused.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Files, refused, run};

const HARBOR: &str = include_str!("../../../../examples/harbor.conll");

/// A compiled model, and its data.
fn harbor(files: &Files) -> (String, String) {
    let (data, model) = (files.put("harbor.conll", HARBOR), files.path("model"));
    let done = run(&["memorize", &data, "--out", &model, "--json", "-q", "--unchecked"]);
    assert_eq!(done.code, 0, "{}", done.stdout);
    assert_eq!(done.json()["spare"], 64);
    let stored = files.json("model/config.json")["layers"][0]["hidden"].as_u64().unwrap();
    assert_eq!(done.json()["hidden"].as_u64().unwrap() + 64, stored);
    (data, model)
}

#[test]
fn a_label_is_set_told_and_taken_back() {
    let files = Files::new();
    let (data, model) = harbor(&files);
    let (out, back) = (files.path("edited"), files.path("back"));
    let set = "May sails in May .:1=DATE";
    let json = run(&["edit", &model, "--set", set, "--data", &data, "--out", &out, "--json", "-q"]).json();
    let counts = ["edits", "made", "unchanged", "units_added", "spare", "compared"].map(|name| json[name].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(0), Some(3), Some(61), Some(243)]);
    assert_eq!(json["refused"], json!([]));
    let difference = files.json("edited/difference.json");
    assert_eq!(difference["changes"], json["changes"]);
    let change = &json["changes"][0];
    let named = ["word", "place", "from", "to"].map(|name| &change[name]);
    assert_eq!(named, [&json!("May"), &json!(0), &json!("PER"), &json!("DATE")]);
    assert_eq!((&difference["units"], &difference["arithmetic"]), (&json!("filled"), &json!("f32")));
    assert!(!Path::new(&out).join("certificate.json").exists());

    let told = run(&["diff", &model, &out, &data, "--json", "-q"]).json();
    assert_eq!(told["changes"], json["changes"]);
    let tokens = told["tokens"].as_array().unwrap();
    assert!(!tokens.is_empty() && tokens.iter().all(|t| t["from"] == "PER" && t["to"] == "DATE"), "{tokens:?}");
    let text = run(&["diff", &model, &out]).stdout;
    assert!(text.contains("May at place 1 with context id in [") && text.contains("PER -> DATE"), "{text}");
    let reversed = run(&["diff", &out, &model, "--json"]).json();
    assert_eq!(reversed["changes"][0]["to"], "PER");

    let done = run(&["edit", &out, "--undo", "--out", &back]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for file in ["config.json", "model.safetensors", "vocabulary.json"] {
        let read = |dir: &str| std::fs::read(Path::new(dir).join(file)).unwrap();
        assert_eq!(read(&model), read(&back), "{file}");
    }
    let same = run(&["diff", &model, &back, "--json"]).json();
    assert_eq!((&same["changes"], &same["parts"]), (&Value::Null, &json!([])));
}

#[test]
fn edits_from_a_file_and_new_sequences() {
    let files = Files::new();
    let (data, model) = harbor(&files);
    let edits = files.put(
        "edits.jsonl",
        "{\"tokens\": [\"May\", \"sails\", \"in\", \"May\", \".\"], \"place\": 3, \"label\": \"PER\"}\n\n{\"set\": \"May sails .:1=LOC\"}\n",
    );
    let json = run(&["edit", &model, "--edits", &edits, "--out", &files.path("a"), "--json", "-q"]).json();
    assert_eq!((&json["edits"], &json["made"], &json["compared"]), (&json!(2), &json!(2), &Value::Null));
    let new = files.put("new.conll", "Zeppelin BOAT\nsails O\n. O\n");
    let out = files.path("b");
    let json = run(&["edit", &model, "--add", &new, "--data", &data, "--out", &out, "--json", "-q"]).json();
    assert_eq!((&json["words_added"], &json["refused"]), (&json!(1), &json!([])));
    assert_eq!(run(&["predict", &out, &new, "--json", "-q"]).json()["accuracy"], 1.0);
    assert_eq!(run(&["edit", &out, "--undo", "--out", &files.path("c")]).code, 0);
    let bad = files.put("bad.jsonl", "{\"set\": \"May sails .:1=O\"}\n{\"tokens\": 1}\n");
    let done = run(&["edit", &model, "--edits", &bad, "--out", &files.path("d")]);
    assert!(done.code == 2 && done.stderr.contains("bad.jsonl:2"), "{}", done.stderr);
    assert!(!Path::new(&files.path("d")).exists());
}

#[test]
fn a_model_forgets() {
    let files = Files::new();
    let (data, model) = harbor(&files);
    let mut sentences = HARBOR.split("\n\n");
    let secret = sentences.next().unwrap();
    let secret_file = files.put("secret.conll", format!("{secret}\n"));
    let rest: Vec<&str> = sentences.filter(|s| s.trim() != secret.trim()).collect();
    let rest = files.put("rest.conll", rest.join("\n\n"));
    let (out, like, fresh) = (files.path("out"), files.path("like"), files.path("fresh"));
    let json = run(&["edit", &model, "--forget", &secret_file, "--data", &data, "--out", &out, "--json", "-q"]).json();
    assert_eq!((&json["certified"], &json["fresh"]), (&json["possible"], &json!(false)));
    assert!(json["sequences_forgotten"].as_u64().unwrap() >= 1);
    let done = run(&["memorize", &rest, "--like", &model, "--out", &like, "--unchecked", "-q"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let tensors = |dir: &str| std::fs::read(Path::new(dir).join("model.safetensors")).unwrap();
    assert_eq!(tensors(&out), tensors(&like));
    let all = ["edit", &model, "--forget", &secret_file, "--data", &data, "--out", &fresh, "--fresh", "5"];
    let done = run(&all);
    assert!(done.code == 0 && tensors(&fresh) != tensors(&like), "{}", done.stderr);
    assert_eq!(run(&["verify", &fresh, &rest]).code, 0);
    let done = run(&["edit", &model, "--forget", &secret_file, "--out", &files.path("x")]);
    assert!(done.code == 2 && done.stderr.contains("--data"), "{}", done.stderr);
}

/// With a fresh seed the settings of the model stay, and nothing else.
#[test]
fn a_fresh_model_keeps_its_settings() {
    let files = Files::new();
    let data = files.put("harbor.conll", HARBOR);
    let secret = files.put("secret.conll", format!("{}\n", HARBOR.split("\n\n").next().unwrap()));
    let settings: [&[&str]; 3] = [
        &[
            "--precision",
            "f64",
            "--embedding",
            "sign:96",
            "--positions",
            "sign:48",
            "--candidates",
            "9",
            "--spare",
            "5",
        ],
        &["--embedding", "one-hot", "--positions", "none", "--mask", "causal", "--start", "--unknown"],
        &["--embedding", "random:80", "--positions", "one-hot", "--candidates", "12"],
    ];
    for (i, settings) in settings.into_iter().enumerate() {
        let names = ["old", "new"].map(|name| format!("{name}{i}"));
        let [old, new] = names.each_ref().map(|name| files.path(name));
        let done = run(&[&["memorize", &data, "--out", &old, "--unchecked", "-q"], settings].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        let done = run(&["edit", &old, "--forget", &secret, "--data", &data, "--fresh", "7", "--out", &new, "-q"]);
        assert!(done.code < 2, "{}", done.stderr);
        let [a, b] = names.each_ref().map(|name| files.json(&format!("{name}/config.json")));
        let kept = |config: &Value| {
            let (layer, source) = (&config["layers"][0], &config["source"]);
            let parts =
                [&config["dtype"], &config["start"], &layer["attention"], &source["method"], &source["candidates"]];
            (parts.map(Value::clone), config["max_length"].is_null())
        };
        assert_eq!(kept(&a), kept(&b));
        let [a, b] = [&old, &new].map(|dir| run(&["inspect", dir, "--json", "-q"]).json());
        assert_eq!(a["spare"], b["spare"]);
        let kinds = |dir: &str| {
            let names = files.json(&format!("{dir}/names.json"));
            let kind = |c: &Value| c["kind"].as_str().unwrap().to_owned();
            let mut kinds: Vec<String> = names["coordinates"].as_array().unwrap().iter().map(kind).collect();
            // One coordinate for each word and each place: fewer words, fewer coordinates.
            if i > 0 {
                kinds.dedup();
            }
            kinds
        };
        assert_eq!(kinds(&names[0]), kinds(&names[1]));
        assert_eq!(files.json(&format!("{}/config.json", names[1]))["source"]["seed"], 7);
    }
}

#[test]
fn what_is_no_edit_is_refused() {
    let files = Files::new();
    let (_, model) = harbor(&files);
    let out = files.path("out");
    let edit = |more: &[&str], words: &[&str]| {
        refused(&[&["edit", &model, "--out", &out], more].concat(), None, words);
        assert!(!Path::new(&out).exists());
    };
    edit(&[], &["no edits"]);
    edit(&["--set", "May sails"], &["is no edit"]);
    edit(&["--set", "May sails:1=NOPE"], &["no label", "PER"]);
    edit(&["--set", "May sails:3=PER"], &["token 3 of 2"]);
    edit(&["--set", "Zeppelin sails:1=PER"], &["does not know", "Zeppelin"]);
    edit(&["--set", "May sails:1=PER", "--set", "May sails:1=DATE"], &["two labels for one context"]);
    edit(&["--set", &format!("{} .:1=PER", "May ".repeat(200).trim())], &["places"]);
    refused(&["edit", &model, "--set", "May sails:1=DATE", "--out", &model], None, &["there already"]);
}

/// Models whose hidden units no gate holds to a word and a place.
#[test]
fn models_without_gates_are_refused() {
    let files = Files::new();
    let (data, gated) = harbor(&files);
    let secret = files.put("secret.conll", format!("{}\n", HARBOR.split("\n\n").next().unwrap()));
    let out = files.path("out");
    let made = |name: &str, arguments: &[&str]| {
        let dir = files.path(name);
        let done = run(&[arguments, &["--out", &dir, "-q"]].concat());
        assert_eq!(done.code, 0, "{}", done.stderr);
        dir
    };
    let refuses = |model: &str, why: &str| {
        let there = || std::fs::read_dir(files.0.path()).unwrap().count();
        let before = there();
        let edit = ["edit", model, "--out", &out];
        for what in [&["--set", "May sails:1=PER"][..], &["--add", &data], &["--forget", &secret, "--data", &data]] {
            refused(&[&edit[..], what].concat(), None, &["cannot be edited", why]);
        }
        // Nothing is written, not half of it, either.
        assert_eq!(there(), before);
    };
    refuses(&made("trained", &["train", &data, "--epochs", "2"]), "no compiled model");
    refuses(&made("plateau", &["memorize", &data, "--method", "plateau", "--candidates", "32"]), "no compiled model");
    refuses(&made("deep", &["memorize", &data, "--method", "deep"]), "numbers are exact");
    let context = made("context", &["context", &data]);
    refuses(&context, "outputs are vectors");
    let arrays = files.put("v.jsonl", "{\"tokens\": [[0.5], [2.0]], \"labels\": [[1.0], [-1.0]]}\n");
    refuses(&made("vectors", &["memorize", &arrays]), "inputs are vectors");
    let hardmax = files.path("hardmax");
    std::fs::create_dir(&hardmax).unwrap();
    for file in ["config.json", "model.safetensors", "vocabulary.json"] {
        let bytes = std::fs::read(Path::new(&gated).join(file)).unwrap();
        let text = String::from_utf8_lossy(&bytes).replace("\"softmax\"", "\"hardmax\"");
        let bytes = if file == "config.json" { text.into_bytes() } else { bytes };
        std::fs::write(Path::new(&hardmax).join(file), bytes).unwrap();
    }
    refuses(&hardmax, "one softmax head");
}

/// An edited model is a model: every command takes it.
#[test]
fn an_edited_model_is_a_whole_model() {
    let files = Files::new();
    let (data, model) = harbor(&files);
    let (out, back, onnx) = (files.path("edited"), files.path("back"), files.path("edited.onnx"));
    let sentence = "May sails in May .";
    let set = format!("{sentence}:1=DATE");
    let text = run(&["edit", &model, "--set", &set, "--data", &data, "--out", &out]).stdout;
    assert!(text.contains("no certificate.json") && text.contains("--against"), "{text}");
    // names.json says what the new units do, and nothing else has changed in it.
    let (old, new) = (files.json("model/names.json"), files.json("edited/names.json"));
    let units = |names: &Value| names["units"].as_array().unwrap().clone();
    let added = units(&new).split_off(units(&old).len());
    assert_eq!(units(&new)[..units(&old).len()], units(&old)[..]);
    assert_eq!(added.len(), 3);
    for (i, unit) in added.iter().enumerate() {
        assert_eq!(unit["unit"].as_u64().unwrap() as usize, units(&old).len() + i);
        assert_eq!((&unit["words"], &unit["place"]), (&json!(["May"]), &json!(0)));
        assert_eq!(unit["adds"].as_object().unwrap().keys().collect::<Vec<_>>(), ["DATE"]);
    }
    let json = run(&["explain", &out, sentence, "--json", "-q"]).json();
    assert_eq!(json["tokens"][0]["label"], "DATE");
    assert!(run(&["explain", &out, sentence, "-q"]).stdout.contains("DATE"));
    assert_eq!(run(&["predict", &out, &data, "--json", "-q"]).json()["tokens"], 243);
    assert_eq!(run(&["inspect", &out, "--json", "-q"]).json()["spare"], 61);
    assert_eq!(run(&["inspect", &out, "--unit", "11", "--json", "-q"]).json()["units"][0], added[0]);
    let done = run(&["export", &out, "--onnx", &onnx, "-q"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    // The edited tokens alone differ from the data.
    let verify = run(&["verify", &out, &data, "--json", "-q"]);
    let told = run(&["diff", &model, &out, &data, "--json", "-q"]).json()["tokens"].as_array().unwrap().len();
    assert_eq!((verify.code, verify.json()["refuted"].as_u64()), (1, Some(told as u64)));
    assert_eq!(run(&["verify", &out, "--against", &model, "-q"]).code, 0);
    assert_eq!(run(&["edit", &out, "--undo", "--out", &back, "-q"]).code, 0);
    assert_eq!(files.json("back/names.json"), old);
}
