//! `monolayer explain` and `inspect --unit`: what is said is what the weights do.

use std::collections::{HashMap, HashSet};

use monolayer::data::Split;
use monolayer::{AnyModel, Dataset};
use serde_json::{Value, json};

use crate::common::{Files, refused, run};

const HARBOR: &str = include_str!("../../../../examples/harbor.conll");
const LICENSE: &str = include_str!("../../../../LICENSE-MIT");

/// Memorizes and gives the directory.
fn memorized(files: &Files, name: &str, arguments: &[&str]) -> String {
    let dir = files.path(name);
    let done = run(&[&["memorize", "--out", &dir, "-q"], arguments].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    dir
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Whether the contributions of every token sum to its scores, within a stated rounding of at most so much of what is added; how many
/// tokens there are.
fn sums_hold(explained: &Value, tightness: f64) -> usize {
    let tokens = explained["tokens"].as_array().unwrap();
    for token in tokens {
        let (scores, rounding) = (numbers(&token["scores"]), numbers(&token["rounding"]));
        let parts: Vec<Vec<f64>> =
            token["contributions"].as_array().unwrap().iter().map(|part| numbers(&part["adds"])).collect();
        let units = token["contributions"].as_array().unwrap().iter().filter(|part| part["from"] == "unit");
        assert_eq!(units.count(), token["units"].as_array().unwrap().len());
        let labels = explained["labels"].as_array().unwrap();
        assert_eq!((scores.len(), rounding.len()), (labels.len(), labels.len()));
        for l in 0..scores.len() {
            let sum: f64 = parts.iter().map(|part| part[l]).sum();
            assert!((sum - scores[l]).abs() <= rounding[l], "{token}, label {l}: {sum} {}", scores[l]);
        }
        // A bound that says nothing would hold, too: it must be small beside what is added.
        let size = |l: usize| parts.iter().map(|part| part[l].abs()).sum::<f64>();
        let most = (0..scores.len()).map(size).fold(0.0, f64::max);
        assert!(rounding.iter().all(|&x| x <= tightness * (1.0 + most)), "{token}: {most}");
        let best = (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best });
        assert_eq!(token["label"], labels[best]);
    }
    tokens.len()
}

#[test]
fn contributions_sum_to_the_scores() {
    let files = Files::new();
    let harbor = files.put("harbor.conll", HARBOR);
    let (sort, parity) = ("task:sort:alphabet=3,length=1..4", "task:parity:alphabet=2,length=1..5");
    let license = files.put("license.txt", LICENSE);
    let models = [
        (memorized(&files, "words", &[&harbor, "--candidates", "32"]), &harbor[..], 40),
        (memorized(&files, "plateau", &[&harbor, "--method", "plateau", "--candidates", "32"]), &harbor[..], 40),
        (memorized(&files, "sort", &[sort]), sort, 60),
        (memorized(&files, "parity", &[parity]), parity, 62),
    ];
    let mut tokens = 0;
    for (model, data, most) in &models {
        let data = Dataset::open(*data).unwrap();
        let sequences = data.sequences();
        // The longest ones are last.
        for range in data.ranges().skip(sequences.saturating_sub(*most)) {
            let words: Vec<String> = range.map(|t| data.token_text(t)).collect();
            tokens += sums_hold(&run(&["explain", model, &words.join(" "), "--json", "-q"]).json(), 1e-5);
        }
    }
    let text = memorized(&files, "text", &["--text", &license]);
    tokens += sums_hold(&run(&["explain", &text, LICENSE, "--json", "-q"]).json(), 1e-5);
    assert!(tokens >= 1000, "{tokens}");
}

#[test]
fn an_explanation_in_words_says_what_the_numbers_say() {
    let files = Files::new();
    let harbor = files.put("harbor.conll", HARBOR);
    let model = memorized(&files, "model", &[&harbor]);
    let sentence = "May sails in May .";
    let json = run(&["explain", &model, sentence, "--data", &harbor, "--json", "-q"]).json();
    let first = &json["tokens"][0];
    assert_eq!((&first["label"], &json["tokens"][3]["label"]), (&json!("PER"), &json!("DATE")));
    let weights: f64 = first["attention"].as_array().unwrap().iter().map(|w| w["weight"].as_f64().unwrap()).sum();
    assert!((weights - 1.0).abs() < 1e-9);
    // The nearest context with another label lies beyond an end of the label's range.
    let other = &first["nearest_other_label"];
    assert!(other["label"] != "PER" && other["sentence"].as_str().unwrap().contains("[May]"), "{other}");
    let (by, side) =
        (other["distance"].as_f64().unwrap(), if other["distance"].as_f64() > Some(0.0) { "above" } else { "below" });
    assert!(first[side]["distance"].as_f64().unwrap().abs() <= by.abs(), "{first}");
    let text = run(&["explain", &model, sentence, "--data", &harbor, "-q"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("May: PER, by ") && lines[0].contains("; context id "), "{text}");
    for unit in first["units"].as_array().unwrap() {
        let start = format!("    unit {} fires for May", unit["unit"]);
        let line = lines.iter().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{start}: {text}"));
        assert!(line.contains("; it adds "), "{line}");
        for (field, word) in [("id_above", "above"), ("id_below", "below")] {
            assert_eq!(unit[field].is_number(), line.contains(&format!("where the context id is {word} ")), "{line}");
        }
    }
    assert!(text.contains("    sum: PER ") && text.contains("it would be ") && text.contains("(DATE)"), "{text}");
}

#[test]
fn trained_and_vector_models_are_explained_as_far_as_they_can_be() {
    let files = Files::new();
    let harbor = files.put("harbor.conll", HARBOR);
    let trained = files.path("trained");
    assert_eq!(run(&["train", &harbor, "--out", &trained, "--epochs", "3", "-q"]).code, 0);
    let json = run(&["explain", &trained, "May sails in May .", "--json", "-q"]).json();
    // Sums of a hundred units that fire, each of sixty terms that round.
    assert_eq!(sums_hold(&json, 1e-3), 5);
    let text = run(&["explain", &trained, "May sails", "-q"]).stdout;
    assert!(
        text.contains(" here where the context id is ") && text.contains(" more units fire; together they add "),
        "{text}"
    );
    let function = files.path("function");
    let made = [
        "approximate",
        "--function",
        "x1*mean(x1)",
        "--dim",
        "1",
        "--length",
        "2",
        "--grid",
        "4",
        "--out",
        &function,
        "-q",
    ];
    assert_eq!(run(&made).code, 0);
    let json = run(&["explain", &function, "0.21 0.7", "--json", "-q"]).json();
    assert_eq!(json["labels"], Value::Null);
    for (token, at) in json["tokens"].as_array().unwrap().iter().zip([0.21, 0.7]) {
        let parts = token["contributions"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| part["adds"][0].as_f64().unwrap()).sum();
        let (output, rounding) = (token["scores"][0].as_f64().unwrap(), token["rounding"][0].as_f64().unwrap());
        assert!((sum - output).abs() <= rounding && rounding < 1e-6, "{token}");
        assert!((output - at * 0.455).abs() < 0.2, "{token}");
    }
    refused(&["explain", &function, "0.2 x"], None, &["token 2", "\"x\"", "commas"]);
    refused(&["explain", &function, "0.2 0.3,1"], None, &["token 2", "2 coordinates, not 1"]);
    refused(&["explain", &function, " "], None, &["no tokens"]);
}

/// A clause of a sentence about a unit: the tokens for which it fires.
struct Clause {
    word: Option<String>,
    place: Option<usize>,
    above: Option<f64>,
    below: Option<f64>,
}

impl Clause {
    fn parse(text: &str) -> Self {
        let bound = |side: &str| format!(" where the context id is {side} ");
        let (rest, above) = cut(text, &bound("above"));
        let (rest, below) = cut(rest, &bound("below"));
        let (word, place) = cut(rest, " at place ");
        let number = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        Self {
            word: (word != "any word").then(|| unquoted(word)),
            place: place.map(|place| place.parse().unwrap()),
            above: number(above),
            below: number(below),
        }
    }

    fn holds(&self, word: &str, place: usize, id: f64) -> bool {
        self.word.as_ref().is_none_or(|own| own == word)
            && self.place.is_none_or(|own| own == place)
            && self.above.is_none_or(|bound| id > bound)
            && self.below.is_none_or(|bound| id < bound)
    }
}

/// A word as it is in the data.
fn unquoted(word: &str) -> String {
    if word.starts_with('"') { serde_json::from_str(word).unwrap() } else { word.to_owned() }
}

fn cut<'a>(text: &'a str, at: &str) -> (&'a str, Option<&'a str>) {
    text.split_once(at).map_or((text, None), |(left, right)| (left, Some(right)))
}

/// Compares every sentence of `inspect --unit` with what the model does with every token of its data.
fn sentences_hold(dir: &str, data: &Dataset) {
    let model = AnyModel::open(dir).unwrap();
    let units = model.config().layers[0].hidden - model.spare_units();
    // Who fires, for each unit: word, place from 1, id.
    let mut tokens: Vec<(String, usize, f64, HashSet<usize>)> = Vec::new();
    for (i, range) in data.ranges().enumerate() {
        for (place, (t, trace)) in range.zip(model.trace(data, i).unwrap()).enumerate() {
            let firing = trace.firing.iter().map(|&(unit, _)| unit).collect();
            tokens.push((data.token_text(t), place + 1, trace.id.unwrap(), firing));
        }
    }
    for unit in 0..units {
        let said = run(&["inspect", dir, "--unit", &unit.to_string()]).stdout;
        let said = said.strip_prefix(&format!("unit {unit} fires for ")).unwrap_or_else(|| panic!("{said}"));
        let (said, _) = said.split_once(". It ").unwrap();
        let (list, more) = cut(said, "; and ");
        let more: usize = more.map_or(0, |more| more.trim_end_matches(" more").replace(',', "").parse().unwrap());
        let clauses: Vec<Clause> =
            list.split("; ").filter(|&text| text != "no token of the data").map(Clause::parse).collect();
        let mut others: HashMap<(&str, usize), bool> = HashMap::new();
        let places = clauses.iter().any(|clause| clause.place.is_some());
        for (word, place, id, firing) in &tokens {
            let (place, id) = (*place, *id);
            let named = |clause: &&Clause| {
                clause.word.as_ref().is_none_or(|own| own == word) && clause.place.is_none_or(|own| own == place)
            };
            if clauses.iter().any(|clause| named(&clause)) {
                let says = clauses.iter().any(|clause| clause.holds(word, place, id));
                assert_eq!(says, firing.contains(&unit), "unit {unit}: {said}: {word} {place} {id}");
            } else {
                *others.entry((word, if places { place } else { 0 })).or_default() |= firing.contains(&unit);
            }
        }
        assert_eq!(others.values().filter(|&&fires| fires).count(), more, "unit {unit}: {said}");
    }
}

#[test]
fn units_fire_exactly_where_inspect_says() {
    let files = Files::new();
    let harbor = files.put("harbor.conll", HARBOR);
    sentences_hold(&memorized(&files, "harbor", &[&harbor]), &Dataset::open(&harbor).unwrap());
    for (name, task) in [("sort", "sort:alphabet=3,length=1..4"), ("dyck", "dyck:alphabet=2,length=1..5")] {
        let task = format!("task:{task}");
        sentences_hold(&memorized(&files, name, &[&task]), &Dataset::open(&task).unwrap());
    }
    let license = files.put("license.txt", LICENSE);
    let text = Dataset::from_text(LICENSE, Split::Word).unwrap();
    sentences_hold(&memorized(&files, "text", &["--text", &license]), &text);
}

#[test]
#[ignore = "slow: the corpus"]
fn units_fire_exactly_where_inspect_says_on_the_corpus() {
    let Some(dir) = std::env::var_os("MONOLAYER_CONLL") else {
        eprintln!("SKIPPED: set MONOLAYER_CONLL to a directory with eng.train");
        return;
    };
    let path = std::path::Path::new(&dir).join("eng.train").to_str().unwrap().to_owned();
    let files = Files::new();
    sentences_hold(&memorized(&files, "model", &[&path]), &Dataset::open(&path).unwrap());
}

#[test]
fn words_that_would_break_lines_are_quoted() {
    let files = Files::new();
    let data = files.put(
        "odd.jsonl",
        "{\"tokens\": [\"a\\nb\", \"\\u202eright\"], \"labels\": [\"X\\tY\", \"Z\"]}\n{\"tokens\": [\"\\u202eright\", \"a\\nb\"], \"labels\": [\"X\\tY\", \"Z\"]}\n",
    );
    let model = memorized(&files, "odd", &[&data]);
    let text = run(&["inspect", &model, "--unit", "0"]).stdout + &run(&["inspect", &model, "--word", "a\nb"]).stdout;
    assert!(!text.contains('\u{202e}') && !text.contains("a\nb"), "{text}");
}
