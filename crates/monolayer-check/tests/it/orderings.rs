//! Claims about all orderings: what is verified holds in every order that there is, by brute force, and nothing is verified of a
//! model to which places may matter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::common::{Files, certify};
use crate::masks::write_mask;
use monolayer::model::Predictions;
use monolayer::{AnyModel, Dataset, Memorizer};
use monolayer_check::{Options, Report, Verdict, verify};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Pseudo-random numbers.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Small whole numbers, whose sums are exact and often tie, or any fractions; all times `scale`.
    fn numbers(&mut self, count: usize, whole: bool, scale: f64) -> Vec<f64> {
        let fraction = |x: u64| (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        (0..count).map(|_| scale * if whole { self.below(5) as f64 - 2.0 } else { fraction(self.next()) }).collect()
    }
}

/// What a drawn model depends on places by.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Places {
    No,
    Positions,
    Masked,
}

const D: usize = 3;
const WORDS: [&str; 3] = ["a", "b", "c"];

/// A model of one to three layers, of any scale.
fn model(draw: &mut Draw, places: Places) -> Files {
    let single = draw.below(2) == 0;
    let whole = draw.below(2) == 0;
    let exponent = [-149, -60, -20, -3, 0, 0, 0, 2, 5, 20, 60][draw.below(11)];
    let scale = 2_f64.powi(exponent);
    let layers = 1 + draw.below(3);
    let start = draw.below(2) == 0;
    let rows = WORDS.len() + usize::from(start);
    let mut tensors = vec![("embedding.weight".to_owned(), vec![rows, D], draw.numbers(rows * D, whole, 1.0))];
    let masked = draw.below(layers);
    let mut config_layers = Vec::new();
    for i in 0..layers {
        let hidden = [0, 1, 2, if layers == 1 { 64 } else { 2 }][draw.below(4)];
        let kind = ["softmax", "hardmax"][draw.below(2)];
        let mask = if places == Places::Masked && i == masked { mask(draw) } else { json!("none") };
        let attention = json!({"kind": kind, "heads": 1, "head_size": 2, "mask": mask});
        config_layers.push(json!({"attention": attention, "hidden": hidden}));
        for (part, shape) in [("w_q", [1, 2, D]), ("w_k", [1, 2, D]), ("w_v", [1, 2, D]), ("w_o", [1, D, 2])] {
            let scale = if part == "w_k" { scale } else { 1.0 };
            tensors.push((format!("layers.{i}.attention.{part}"), shape.to_vec(), draw.numbers(2 * D, whole, scale)));
        }
        for (part, shape) in [("w1", vec![hidden, D]), ("b1", vec![hidden]), ("w2", vec![D, hidden]), ("b2", vec![D])] {
            if hidden > 0 {
                let count = shape.iter().product();
                tensors.push((format!("layers.{i}.feed_forward.{part}"), shape, draw.numbers(count, whole, 0.5)));
            }
        }
    }
    tensors.push(("head.weight".into(), vec![3, D], draw.numbers(3 * D, whole, 1.0)));
    tensors.push(("head.bias".into(), vec![3], draw.numbers(3, whole, 0.5)));
    let max_length = (places == Places::Positions).then_some(6);
    if max_length.is_some() {
        let scale = [0.0, 1.0][draw.below(2)];
        tensors.push(("positions.weight".into(), vec![6, D], draw.numbers(6 * D, whole, scale)));
    }
    let mut vocabulary: BTreeMap<&str, usize> = WORDS.into_iter().zip(0..).collect();
    if start {
        vocabulary.insert("<s>", WORDS.len());
    }
    let config = json!({
        "format": "monolayer/2", "d": D, "dtype": if single { "f32" } else { "f64" }, "max_length": max_length,
        "labels": ["X", "Y", "Z"], "layers": config_layers, "pre_feed_forward": null, "source": {},
        "start": start.then_some("<s>"), "outputs": null,
    });
    Files { config, tensors, vocabulary: Some(json!(vocabulary)), f32: single }
}

fn mask(draw: &mut Draw) -> Value {
    match draw.below(5) {
        0 => json!("causal"),
        1 => json!({"prefix": draw.below(3)}),
        2 => json!({"band": [draw.below(3), draw.below(3)]}),
        3 => json!({"band": [9, 9]}),
        _ => json!({"file": "mask.safetensors"}),
    }
}

type Sequence = Vec<&'static str>;

/// All orders of a sequence that look different.
fn orders(sequence: &[&'static str]) -> BTreeSet<Sequence> {
    if sequence.is_empty() {
        return BTreeSet::from([vec![]]);
    }
    let with = |at: usize| {
        let mut rest = sequence.to_vec();
        let first = rest.remove(at);
        orders(&rest).into_iter().map(move |order| [vec![first], order].concat())
    };
    (0..sequence.len()).flat_map(with).collect()
}

/// The labels that the library's own forward pass gives; nothing where it overflows.
fn given(dir: &Path, sequences: &[Sequence]) -> Option<Vec<Vec<u32>>> {
    let free: Vec<Vec<&str>> = sequences.iter().map(|s| vec!["X"; s.len()]).collect();
    let data = Dataset::from_sequences(sequences, &free).unwrap();
    let Predictions::Labels(labels) = AnyModel::open(dir).unwrap().predict(&data).ok()? else { return None };
    Some(data.ranges().map(|range| labels[range].to_vec()).collect())
}

fn claims(dir: &Path, data: &str, claim: &Value) -> Report {
    certify(dir, data, &json!([claim]));
    let file = dir.join("data.jsonl");
    fs::write(&file, data).unwrap();
    verify(dir, file.to_str(), &Options::default())
}

fn orderings(report: &Report) -> Verdict {
    report.claims.iter().find(|claim| claim.kind == "orderings").expect("the claim").verdict
}

/// Sets the bias of a label to where the label of the first token turns, or right beside it: other orders then often have
/// another.
fn aim(draw: &mut Draw, dir: &Path, files: &mut Files, sequence: &Sequence) -> Option<()> {
    let mut first = |bias: f64| {
        files.tensor("head.bias")[1] = bias;
        files.write(dir);
        Some(given(dir, std::slice::from_ref(sequence))?[0][0] == 1)
    };
    let (mut low, mut high) = (-64.0, 64.0);
    if first(low)? || !first(high)? {
        return None;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        *(if first(middle)? { &mut high } else { &mut low }) = middle;
    }
    let spacing = if files.f32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    files.tensor("head.bias")[1] = high + high.abs() * spacing * (draw.below(5) as f64 - 2.0);
    files.write(dir);
    Some(())
}

/// A random model and random sequences, with the labels that it gives them as they stand: whether the claim about all orders is
/// verified, and whether it is true for the library's forward pass.
fn case(seed: u64, places: Places, aimed: bool) -> Option<(Verdict, bool)> {
    let mut draw = Draw(seed);
    let mut files = model(&mut draw, places);
    let dir = tempfile::tempdir().unwrap();
    files.write(dir.path());
    if files.config["layers"].to_string().contains("mask.safetensors") {
        let ones = draw.below(2) == 0;
        let entries: Vec<u8> = (0..36).map(|at| u8::from(ones || at % 7 == 0 || draw.below(2) == 0)).collect();
        write_mask(dir.path(), 6, &entries);
    }
    let sequences: Vec<Sequence> =
        (0..=draw.below(3)).map(|_| (0..=draw.below(5)).map(|_| WORDS[draw.below(3)]).collect()).collect();
    if aimed {
        aim(&mut draw, dir.path(), &mut files, &sequences[0])?;
    }
    let labels = given(dir.path(), &sequences)?;
    let name = |&label: &u32| ["X", "Y", "Z"][label as usize];
    let mut data = String::new();
    for (words, labels) in sequences.iter().zip(&labels) {
        let labels: Vec<&str> = labels.iter().map(name).collect();
        data += &format!("{{\"tokens\":{},\"labels\":{}}}\n", json!(words), json!(labels));
    }
    let covered: BTreeSet<Sequence> = sequences.iter().flat_map(|sequence| orders(sequence)).collect();
    let arithmetic = if draw.below(4) == 0 { "f64" } else { files.config["dtype"].as_str().unwrap() };
    let claim = json!({"kind": "orderings", "arithmetic": arithmetic, "sequences": covered.len().to_string(), "all_lengths": null});
    let report = claims(dir.path(), &data, &claim);
    assert_ne!(report.verdict, Verdict::Error, "{}", report.text());
    // Every order has the labels of its words, of each sequence of the data that it is an order of.
    let holds = sequences.iter().zip(&labels).all(|(sequence, labels)| {
        let of_word: BTreeMap<&str, u32> = sequence.iter().copied().zip(labels.iter().copied()).collect();
        let all: Vec<Sequence> = orders(sequence).into_iter().collect();
        let wanted: Vec<Vec<u32>> = all.iter().map(|order| order.iter().map(|word| of_word[word]).collect()).collect();
        given(dir.path(), &all) == Some(wanted)
    });
    let own = arithmetic == files.config["dtype"].as_str().unwrap();
    Some((orderings(&report), holds || !own))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 400 } else { 4000 }))]

    #[test]
    fn what_is_verified_holds_in_every_order(seed: u64) {
        if let Some((verdict, holds)) = case(seed, Places::No, false) {
            prop_assert!(holds || verdict != Verdict::Verified);
        }
    }

    #[test]
    fn models_with_places_are_never_verified(seed: u64, positions: bool) {
        let places = if positions { Places::Positions } else { Places::Masked };
        if let Some((verdict, _)) = case(seed, places, false) {
            prop_assert_ne!(verdict, Verdict::Verified);
        }
    }
}

proptest! {
    // Finding where a label turns takes sixty runs of the model.
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 40 } else { 1000 }))]

    #[test]
    fn what_is_verified_holds_where_rounding_decides(seed: u64) {
        if let Some((verdict, holds)) = case(seed, Places::No, true) {
            prop_assert!(holds || verdict != Verdict::Verified);
        }
    }
}

#[test]
fn many_claims_of_random_models_are_verified() {
    let verdicts: Vec<Verdict> =
        (0..200).filter_map(|seed| case(seed, Places::No, false)).map(|(verdict, _)| verdict).collect();
    let verified = verdicts.iter().filter(|&&verdict| verdict == Verdict::Verified).count();
    assert!(verified > verdicts.len() / 3, "{verified} of {}", verdicts.len());
}

#[test]
fn rounding_tells_orders_apart_where_it_decides() {
    let cases: Vec<(Verdict, bool)> = (0..150).filter_map(|seed| case(seed, Places::No, true)).collect();
    let wrong = cases.iter().filter(|(_, holds)| !holds).count();
    assert!(wrong > cases.len() / 50 && wrong > 2, "{wrong} of {}", cases.len());
    assert!(cases.iter().all(|(verdict, holds)| *holds || *verdict != Verdict::Verified));
}

#[test]
fn compiled_tasks_are_right_in_every_order() {
    for task in ["copy", "histogram", "majority", "parity", "count", "length"] {
        for options in ["alphabet=2,length=1..5", "alphabet=3,length=2..4"] {
            let name = format!("task:{task}:{options},order=sorted");
            let sorted = Dataset::open(&name).unwrap();
            let compiled = Memorizer::new().candidates(32).compile(&sorted).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path().join("model");
            compiled.save(&dir).unwrap();
            let report = verify(&dir, Some(&name), &Options::default());
            assert_eq!(
                (report.verdict, orderings(&report)),
                (Verdict::Verified, Verdict::Verified),
                "{}",
                report.text()
            );
            let all = Dataset::open(format!("task:{task}:{options}")).unwrap();
            let said = format!("{} sequences, all of length", all.sequences());
            assert!(report.text().contains(&said), "{name}: {}", report.text());
            assert_eq!(AnyModel::open(&dir).unwrap().right(&all).unwrap(), Some(all.tokens()), "{name}");
        }
    }
}
