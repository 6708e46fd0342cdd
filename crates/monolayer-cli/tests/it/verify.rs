//! The independent checker, and the commands that look into a model, as a user runs them on the example corpus.

use crate::common::{Files, fixture, refused, run};
use serde_json::{Value, json};

/// The corpus of `monolayer demo`, memorized, with the paths of model and data.
fn harbor() -> (Files, String, String) {
    let files = Files::new();
    let data = files.put("harbor.conll", include_str!("../../../../examples/harbor.conll"));
    let model = files.path("model");
    assert_eq!(run(&["memorize", &data, "--out", &model, "-q"]).code, 0);
    (files, model, data)
}

/// Changes the sign of the first weight of a tensor of 32-bit floats that is not 0.
fn change_a_weight(files: &Files, name: &str) {
    let path = files.0.path().join("model/model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let size = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let header: Value = serde_json::from_slice(&bytes[8..8 + size]).unwrap();
    assert_eq!(header[name]["dtype"], "F32");
    let at = |i: usize| 8 + size + header[name]["data_offsets"][i].as_u64().unwrap() as usize;
    let weight = (at(0)..at(1)).step_by(4).find(|&i| bytes[i..i + 4] != [0; 4]).unwrap();
    bytes[weight + 3] ^= 0x80;
    std::fs::write(path, bytes).unwrap();
}

/// The verdict on each claim of a kind.
fn verdicts<'a>(report: &'a Value, kind: &str) -> Vec<&'a str> {
    let claims = report["claims"].as_array().unwrap().iter().filter(|claim| claim["kind"] == kind);
    claims.map(|claim| claim["verdict"].as_str().unwrap()).collect()
}

#[test]
fn what_was_memorized_is_verified_in_every_arithmetic() {
    let (_files, model, data) = harbor();
    for precision in ["f32", "f64", "real"] {
        let done = run(&["verify", &model, &data, "--precision", precision, "--json"]);
        assert_eq!(done.code, 0, "{}", done.stdout);
        let report = done.json();
        let counts = json!({
            "verdict": "verified", "precision": precision, "tokens": 243, "sequences": 40, "verified": 241, "refuted": 0,
            "unknown": 0, "impossible": 2, "unchecked": 0, "counterexamples": [], "open": [],
        });
        for (field, value) in counts.as_object().unwrap() {
            assert_eq!(&report[field], value, "{precision}: {field}");
        }
        assert!(report["smallest_margin_ratio"].as_f64().unwrap() > 1.0 && report["seconds"].is_number());
        for (kind, count) in [("model", 1), ("data", 1), ("labels", 2), ("rank", 4)] {
            assert_eq!(verdicts(&report, kind), vec!["verified"; count], "{precision}: {kind}");
        }
    }
    let text = run(&["verify", &model, &data]);
    assert_eq!((text.code, text.stdout.lines().next()), (0, Some("verified in f32 arithmetic")));
    // Without data, labels are not checked, and that is said; ranks can be asked for alone.
    let done = run(&["verify", &model, "--json"]);
    let report = done.json();
    assert_eq!((done.code, &report["verdict"], &report["tokens"]), (1, &json!("unknown"), &json!(0)));
    assert_eq!((verdicts(&report, "rank"), verdicts(&report, "labels").len()), (vec!["verified"; 4], 0));
    let left_out = ["f32", "f64"].map(|name| format!("labels in {name} arithmetic: no data was given"));
    assert_eq!(report["not_checked"], json!(left_out), "{report}");
    let people = run(&["verify", &model]).stdout;
    let told: Vec<&str> = people.lines().filter_map(|line| line.strip_prefix("  not checked: ")).collect();
    assert_eq!(told, left_out, "{people}");
    let done = run(&["verify", &model, "--claims", "rank", "--json"]);
    assert_eq!((done.code, &done.json()["verdict"]), (0, &json!("verified")));
    assert_eq!(run(&["verify", &model, "--claims", "ranks"]).code, 2);
    // Strictly, the two tokens that contradict themselves are wrong.
    let strict = run(&["verify", &model, &data, "--strict", "--json"]);
    assert_eq!((strict.code, &strict.json()["refuted"]), (1, &json!(2)));
}

#[test]
fn a_changed_weight_is_refuted_with_the_place() {
    let (files, model, data) = harbor();
    change_a_weight(&files, "layers.0.feed_forward.w2");
    let done = run(&["verify", &model, &data, "--json", "-v"]);
    let report = done.json();
    assert_eq!((done.code, &report["verdict"]), (1, &json!("refuted")));
    assert_eq!(verdicts(&report, "model"), ["refuted"], "other bytes than the certificate's");
    // The weights themselves are refuted, by the very tokens that `predict` now gets wrong.
    let predicted = run(&["predict", &model, &data, "--json", "-q"]).json();
    let list = |field: &str| -> Vec<(usize, usize)> {
        let at = |finding: &Value, name: &str| finding[name].as_u64().unwrap() as usize;
        report[field].as_array().unwrap().iter().map(|f| (at(f, "sequence"), at(f, "position"))).collect()
    };
    let text = std::fs::read_to_string(&data).unwrap();
    let mut wrong = Vec::new();
    for (i, sequence) in text.trim().split("\n\n").enumerate() {
        let labels = sequence.lines().map(|line| line.split(' ').nth(1).unwrap());
        let differ = labels.enumerate().filter(|&(j, label)| predicted["labels"][i][j] != label);
        wrong.extend(differ.map(|(j, _)| (i, j)).filter(|token| !list("impossible_tokens").contains(token)));
    }
    assert!(!wrong.is_empty() && wrong == list("counterexamples"), "{wrong:?}");
    for finding in report["counterexamples"].as_array().unwrap() {
        let (i, j) = (finding["sequence"].as_u64().unwrap() as usize, finding["position"].as_u64().unwrap() as usize);
        let place = finding["place"].as_str().unwrap();
        let named = format!(" (sequence {}, token {})", i + 1, j + 1);
        assert!(place.starts_with(&format!("{data}:")) && place.ends_with(&named), "{place}");
        let winner = predicted["labels"][i][j].as_str().unwrap();
        assert!(
            finding["what"].as_str().unwrap().contains(&format!("the model gives {winner:?}"))
                && finding["given"] == winner,
            "{finding}"
        );
    }
    // Without the certificate, the weights alone.
    let alone = run(&["verify", &model, &data, "--ignore-certificate", "--json"]);
    assert_eq!((alone.code, &alone.json()["refuted"]), (1, &report["refuted"]));
    let first = run(&["verify", &model, &data, "--first"]);
    assert_eq!(first.code, 1);
    assert!(
        first.stdout.starts_with("refuted in f32 arithmetic: ") && first.stdout.contains(&data),
        "{}",
        first.stdout
    );
}

#[test]
fn other_data_is_not_what_was_certified() {
    let (files, model, data) = harbor();
    let text = std::fs::read_to_string(&data).unwrap();
    // One label is another: the hash differs, and the token is named.
    let changed = files.put("changed.conll", text.replacen("sails O", "sails PER", 1));
    let done = run(&["verify", &model, &changed, "--json"]);
    let report = done.json();
    assert_eq!((done.code, &report["verdict"], &report["refuted"]), (1, &json!("refuted"), &json!(1)));
    assert_eq!((verdicts(&report, "model"), verdicts(&report, "labels").len()), (vec!["verified"], 0));
    assert_eq!((&report["other_data"], report["not_checked"].as_array().unwrap().len()), (&json!(true), 2), "{report}");
    assert_eq!(report["counterexamples"][0]["place"], format!("{changed}:2 (sequence 1, token 2)"));
    // Fewer sentences: every token holds, and it is said that the certificate is about others.
    let part = files.put("part.conll", text.split_inclusive("\n\n").take(6).collect::<String>());
    let done = run(&["verify", &model, &part]);
    assert_eq!(done.code, 0, "{}", done.stdout);
    assert!(done.stdout.starts_with("verified in f32 arithmetic: the tokens given, which are not the certificate's\n"));
    for name in ["f32", "f64"] {
        let line = format!("not checked: labels in {name} arithmetic: the data given is not the certificate's");
        assert_eq!(done.stdout.matches(&line).count(), 1, "{}", done.stdout);
    }
    // The same tokens in another file are the certificate's data.
    let same = files.put("same.conll", text.replace('\n', "\r\n"));
    let report = run(&["verify", &model, &same, "--json"]).json();
    assert_eq!((&report["verdict"], verdicts(&report, "data")), (&json!("verified"), vec!["verified"]));
    assert_eq!((&report["verified"], &report["other_data"]), (&json!(241), &json!(false)));
}

#[test]
fn what_cannot_be_checked_is_an_error() {
    let (files, model, data) = harbor();
    let unknown = files.put("unknown.conll", "zebra O\n");
    for (arguments, words) in [
        (["verify", &model, &unknown], ["unknown.conll:1", "zebra"]),
        (["verify", &model, "missing.conll"], ["missing.conll", ""]),
        (["verify", "missing", &data], ["missing", "config.json"]),
    ] {
        let people = run(&arguments);
        assert_eq!((people.code, people.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(
            people.stderr.contains("error: ") && words.iter().all(|w| people.stderr.contains(w)),
            "{}",
            people.stderr
        );
        let machines = run(&[arguments.as_slice(), &["--json"]].concat());
        let json = machines.json();
        assert_eq!((machines.code, &json["verdict"]), (2, &json!("error")));
        assert!(json["error"].is_string() && json["where"].is_string(), "{json}");
    }
}

#[test]
fn inspect_says_what_the_attention_is_worth() {
    let (_files, model, data) = harbor();
    let json = run(&["inspect", &model, "--data", &data, "--json", "-q"]).json();
    let worth = &json["worth"];
    assert_eq!((&worth["tokens"], &worth["right"]), (&json!(243), &json!(241)));
    // Without attention a word at a place has one label: the ceiling of that is below.
    for field in ["right_without_attention", "right_with_mean_pooling"] {
        assert!(worth[field].as_u64().unwrap() < 241, "{field}");
    }
    // 4(s + d) + d(2nN + d) with s = 1, n = 8, N = 40.
    let d = json["d"].as_u64().unwrap();
    assert_eq!(worth["paper_parameters"].as_u64(), Some(4 * (1 + d) + d * (2 * 8 * 40 + d)));
    assert_eq!(worth["kim_attention_layers"], 16);
    // |V|^d + 1, V at least the words.
    let least = json["d"].as_f64().unwrap() * json["words"].as_f64().unwrap().log10();
    assert!(worth["log10_yun_attention_layers"].as_f64().unwrap() >= least, "{worth}");
    let text = run(&["inspect", &model, "--data", &data, "-q"]);
    assert!(text.stdout.contains("tokens right") && text.stdout.contains("attention switched off"), "{}", text.stdout);
    assert!(run(&["inspect", &model, "--json"]).json().get("worth").is_none());
    refused(&["inspect", &model, "--data", "missing.conll", "-q"], Some("missing.conll"), &["missing.conll"]);
}

#[test]
fn explain_follows_each_token() {
    let (_files, model, data) = harbor();
    let sentence = "May sails in May .";
    let json = run(&["explain", &model, sentence, "--data", &data, "--json"]).json();
    let tokens = json["tokens"].as_array().unwrap();
    let words: Vec<&str> = tokens.iter().map(|t| t["token"].as_str().unwrap()).collect();
    assert_eq!(words, ["May", "sails", "in", "May", "."]);
    let hidden = run(&["inspect", &model, "--json"]).json()["layers"][0]["hidden"].as_u64().unwrap();
    for (token, label) in tokens.iter().zip(["PER", "O", "O", "DATE", "O"]) {
        assert_eq!(token["label"], label, "the first sentence of the corpus");
        let mut scores: Vec<f64> = token["scores"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        scores.sort_by(f64::total_cmp);
        assert_eq!(token["margin"].as_f64(), Some(scores[4] - scores[3]));
        assert!(token["id"].is_number());
        for unit in token["units"].as_array().unwrap() {
            assert!(unit["unit"].as_u64().unwrap() < hidden && unit["value"].as_f64().unwrap() > 0.0, "{unit}");
        }
    }
    // The nearest other context of a word: another sentence of the corpus, with the word marked.
    let nearest = &tokens[0]["nearest"];
    assert!(nearest["sentence"].as_str().unwrap().contains("[May]"), "{nearest}");
    assert!(nearest["distance"].as_f64().unwrap() != 0.0);
    let text = run(&["explain", &model, sentence]).stdout;
    assert!(text.contains("fires for May") && text.contains("DATE"), "{text}");
}

#[test]
fn what_cannot_be_explained_is_said() {
    let (_files, model, _data) = harbor();
    refused(
        &["explain", &model, "May zebra"],
        Some("the sentence:1 (sequence 1, token 2)"),
        &["\"zebra\"", "--unknown"],
    );
    refused(&["explain", &model, " "], None, &["the sentence has no words"]);
    let vectors = fixture("causal_vectors");
    let refusal = run(&["explain", vectors.to_str().unwrap(), "May"]);
    assert_eq!(refusal.code, 2, "{}", refusal.stdout);
}

#[test]
fn the_demo_compiles_runs_checks_and_breaks() {
    let json = run(&["demo", "--json"]);
    assert_eq!(json.code, 0);
    let json = json.json();
    assert_eq!((&json["memorize"]["memorized"], &json["right"]), (&json!(241), &json!(241)));
    assert!(json["right_without_attention"].as_u64().unwrap() < 241);
    assert_eq!((&json["verify"]["verdict"], &json["verify"]["verified"]), (&json!("verified"), &json!(241)));
    assert_eq!(json["verify_broken"]["verdict"], "refuted");
    let text = run(&["demo"]).stdout;
    for words in ["Run: 241 tokens right", "Check, by a program", ": verified;", "Break it", "harbor.conll:", "next: "]
    {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn a_contextual_map_is_verified_and_a_forged_distance_is_not() {
    let files = Files::new();
    let data = files.put("harbor.conll", include_str!("../../../../examples/harbor.conll"));
    let map = files.path("map");
    assert_eq!(run(&["context", &data, "--candidates", "20", "--out", &map, "-q"]).code, 0);
    let report = run(&["verify", &map, &data, "--json"]).json();
    assert_eq!(report["verdict"], "verified", "{report}");
    assert_eq!((verdicts(&report, "contextual-mapping"), verdicts(&report, "rank").len()), (vec!["verified"], 4));
    let path = files.0.path().join("map/certificate.json");
    let mut certificate: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let delta = &mut certificate["claims"][0]["log2_delta"];
    *delta = json!(delta.as_f64().unwrap() + 4.0);
    std::fs::write(&path, certificate.to_string()).unwrap();
    let forged = run(&["verify", &map, &data, "--json"]);
    assert_eq!((forged.code, verdicts(&forged.json(), "contextual-mapping")), (1, vec!["refuted"]));
}

#[test]
fn maps_at_the_scales_of_the_theorem_have_certificates() {
    let files = Files::new();
    let tokens = [[0.9, 0.4], [-0.7, 0.8], [0.2, -1.1], [1.3, -0.5], [-1.2, -0.3]];
    let pairs = |n: usize| (0..n).flat_map(move |i| (i + 1..n).map(move |j| [i, j]));
    let line = |pair: [usize; 2]| json!({ "tokens": pair.map(|i| tokens[i]) }).to_string() + "\n";
    let [four, five] = [4, 5].map(|n| files.put(&format!("{n}.jsonl"), pairs(n).map(line).collect::<String>()));
    // The ids of five vectors are 2^-20268 apart: beyond the bits that the checker goes to unless told.
    let cases = [
        ("certified", &four, "8192", 0, "verified"),
        ("paper", &four, "8192", 0, "verified"),
        ("paper", &five, "8192", 1, "unknown"),
        ("paper", &five, "32768", 0, "verified"),
    ];
    for (at, (scale, data, bits, code, verdict)) in cases.into_iter().enumerate() {
        let map = files.path(&format!("map{at}"));
        let context = run(&["context", data, "--scale", scale, "--out", &map, "--json"]);
        assert_eq!(context.code, 0, "{}", context.stdout);
        let done = run(&["verify", &map, data, "--bits", bits, "--json"]);
        let report = done.json();
        assert_eq!((done.code, verdicts(&report, "contextual-mapping")), (code, vec![verdict]), "{report}");
        assert_eq!(verdicts(&report, "rank"), ["verified"; 4]);
    }
}

#[test]
fn exact_numbers_are_verified_and_a_flipped_label_is_refuted() {
    let files = Files::new();
    let text = include_str!("../../../../examples/harbor.conll");
    let short: String = text.split_inclusive("\n\n").take(6).collect();
    let data = files.put("harbor.conll", &short);
    let model = files.path("deep");
    let memorized = run(&["memorize", &data, "--method", "deep", "--out", &model, "-q"]);
    assert_eq!(memorized.code, 0, "{}", memorized.stdout);
    let done = run(&["verify", &model, &data, "--json"]);
    let report = done.json();
    assert_eq!(
        (done.code, &report["verdict"], &report["precision"]),
        (0, &json!("verified"), &json!("real")),
        "{report}"
    );
    assert_eq!(report["verified"].as_u64().unwrap() + report["impossible"].as_u64().unwrap(), report["tokens"]);
    assert_eq!(verdicts(&report, "labels"), ["verified"]);
    // "May" as a person in the first sentence.
    let flipped = files.put("flipped.conll", short.replacen("May PER", "May DATE", 1));
    let done = run(&["verify", &model, &flipped, "--ignore-certificate", "--json"]);
    assert_eq!((done.code, &done.json()["refuted"]), (1, &json!(1)), "{}", done.stdout);
    assert_eq!(done.json()["counterexamples"][0]["text"], "May");
    let floats = run(&["verify", &model, &data, "--precision", "f64", "--json"]);
    assert_eq!(floats.code, 2);
    assert!(
        floats.json()["error"].as_str().unwrap().contains("exact numbers are run in real arithmetic only"),
        "{}",
        floats.stdout
    );
    let report = run(&["inspect", &model, "--json"]).json();
    assert_eq!((&report["dtype"], &report["tensors"][0]["name"]), (&json!("exact"), &json!("embedding.weight")));
    refused(
        &["explain", &model, "May sails"],
        Some(&format!("{model}/config.json")),
        &["numbers are exact", "predict"],
    );
}

/// More tokens than would be evaluated with big floats one by one.
#[test]
fn outputs_of_many_units_are_decided_to_the_last_token_in_real_arithmetic() {
    let files = Files::new();
    let mut state = 1_u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 44) as u32) / f64::from(1 << 19) - 1.0
    };
    let mut vector = || [number(), number()];
    let line = |_| json!({"tokens": [vector(), vector()], "labels": [vector(), vector()]}).to_string() + "\n";
    let data = files.put("data.jsonl", (0..2200).map(line).collect::<String>());
    for method in ["plateau", "interpolate"] {
        let model = files.path(method);
        let memorized = run(&["memorize", &data, "--method", method, "--out", &model, "--json", "-q"]);
        assert_eq!((memorized.code, &memorized.json()["ids"]), (0, &json!(4400)), "{}", memorized.stdout);
        let report = run(&["verify", &model, &data, "--json"]).json();
        assert_eq!(verdicts(&report, "outputs"), ["verified", "verified"], "{report}");
    }
}

#[test]
fn two_models_differ_where_it_is_said() {
    let attack = |name: &str| format!("{}/../../attacks/difference-{name}", env!("CARGO_MANIFEST_DIR"));
    let verify = |name: &str, more: &[&str]| {
        let (second, first) = (attack(name), format!("{}/before", attack(name)));
        run(&[&["verify", &second, "--against", &first, "--json"], more].concat())
    };
    let done = verify("honest", &[]);
    let report = done.json();
    assert_eq!((done.code, &report["verdict"], report["claims"].as_array().unwrap().len()), (0, &json!("verified"), 1));
    let claim = &report["claims"][0];
    for (field, value) in [("changes", 1), ("units", 3), ("pairs", 9), ("length", 3)] {
        assert_eq!(claim[field], json!(value), "{field}");
    }
    assert_eq!(claim["kind"], "difference");
    let done = verify("left-out", &[]);
    assert_eq!((done.code, &done.json()["verdict"]), (1, &json!("refuted")));
    assert_eq!(verify("narrowed-between-ids", &[]).code, 1);
    let done = verify("missing", &[]);
    assert_eq!((done.code, &done.json()["verdict"]), (2, &json!("error")));
    // With data both must hold: the tokens, and the difference.
    let files = Files::new();
    let (right, wrong) = (files.put("right.conll", "b Y\na Y\n"), files.put("wrong.conll", "b Y\na X\n"));
    let done = verify("honest", &[&right]);
    let report = done.json();
    assert_eq!((done.code, &report["verdict"], &report["tokens"]), (0, &json!("verified"), &json!(2)), "{report}");
    assert_eq!(verdicts(&report, "difference"), ["verified"]);
    assert_eq!(verify("honest", &[&wrong]).json()["verdict"], "refuted");
    assert_eq!(verify("left-out", &[&right]).json()["verdict"], "refuted");
    let here = attack("honest");
    assert_eq!(run(&["verify", &here, "--against", &here, "--json"]).json()["verdict"], "refuted");
    assert_eq!(run(&["verify", &here, "--against", &files.path("nowhere"), "--json"]).code, 2);
}
