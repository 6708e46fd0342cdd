//! Rational weights: outputs equal to labels, not only close; the deep method; weights.json.

use std::path::Path;

use dashu_ratio::RBig;
use monolayer::arithmetic::rational;
use monolayer::data::{Format, Labels};
use monolayer::memorize::deep::nonzero;
use monolayer::model::exact::{self, map_model};
use monolayer::model::exact_file;
use monolayer::{AnyModel, Compiled, Dataset, Memorizer, Method, Model, Precision};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

fn memorizer(method: Method) -> Memorizer<'static> {
    Memorizer::new().method(method).candidates(32)
}

/// The rational weights of a model.
fn exact_model(compiled: &Compiled) -> &Model<RBig> {
    let AnyModel::Exact(model) = compiled.model() else { panic!("floats") };
    model
}

/// Random vectors with one of `labels` random outputs, or classes.
fn random(sequences: usize, n: usize, d: usize, labels: usize, classes: bool) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut vector = || (0..d).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f64>>();
    let outputs: Vec<Vec<f64>> = (0..labels).map(|_| vector()).collect();
    let tokens: Vec<Vec<Vec<f64>>> = (0..sequences).map(|_| (0..n).map(|_| vector()).collect()).collect();
    let mut label = || {
        let l = rng.random_range(0..labels);
        if classes { json!(l) } else { json!(outputs[l]) }
    };
    let line = |tokens: &Vec<Vec<f64>>| {
        let labels: Vec<Value> = tokens.iter().map(|_| label()).collect();
        json!({"tokens": tokens, "labels": labels}).to_string()
    };
    let lines: Vec<String> = tokens.iter().map(line).collect();
    Dataset::read("random", Format::JsonLines, lines.join("\n").as_bytes()).unwrap()
}

/// Every possible token's output equals its label, exactly.
fn check(data: &Dataset, compiled: &Compiled) {
    assert!(compiled.is_proved());
    let model = exact_model(compiled);
    let possible = |t: &usize| !compiled.impossible().contains(t);
    match &data.labels {
        Labels::Vectors { d, data: wanted } => {
            let outputs = exact::outputs(model, data).unwrap();
            for t in (0..data.tokens()).filter(possible) {
                let wanted: Vec<RBig> = wanted[t * d..(t + 1) * d].iter().map(|&x| rational(x)).collect();
                assert_eq!(outputs[t], wanted, "token {t}");
            }
        }
        Labels::Classes { label_ids: ids, .. } => {
            let labels = exact::labels(model, data).unwrap();
            assert!((0..data.tokens()).filter(possible).all(|t| Some(labels[t]) == ids[t]));
        }
        Labels::None => unreachable!(),
    }
}

fn plateaus(data: &Dataset) -> Compiled {
    memorizer(Method::Plateau).precision(Precision::Exact).compile(data).unwrap()
}

fn deep(data: &Dataset) -> Compiled {
    memorizer(Method::Deep).compile(data).unwrap()
}

#[test]
fn plateaus_are_exact_at_20_sequences() {
    let data = random(20, 16, 8, 10, false);
    let memo = plateaus(&data);
    assert_eq!(memo.context_ids(), 320);
    check(&data, &memo);
}

#[test]
fn deep_is_exact_at_a_thousand_ids_and_smaller_than_one_layer() {
    let data = random(100, 10, 4, 10, true);
    let memo = deep(&data);
    assert_eq!(memo.context_ids(), 1000);
    check(&data, &memo);
    let memo = memo.deep().unwrap();
    let wide = plateaus(&data);
    let wide = nonzero(exact_model(&wide).transformer.layers[0].feed_forward.as_ref().unwrap());
    assert!(memo.nonzero < memo.one_layer && memo.one_layer < wide, "{} {} {wide}", memo.nonzero, memo.one_layer);
    // Few ids are cheaper in one layer.
    let few = deep(&random(10, 10, 4, 10, true));
    let few = few.deep().unwrap();
    assert!(few.nonzero > few.one_layer, "{} {}", few.nonzero, few.one_layer);
}

#[test]
fn deep_writes_vectors_too() {
    let data = random(10, 5, 5, 6, false);
    check(&data, &deep(&data));
}

#[test]
fn deep_needs_four_registers() {
    let error = memorizer(Method::Deep).compile(&random(2, 2, 3, 2, true)).unwrap_err().to_string();
    assert!(error.contains("four registers"), "{error}");
}

#[test]
fn a_curve_through_irrational_ids_is_not_rational() {
    let data = random(2, 2, 2, 3, false);
    let model = memorizer(Method::Interpolate).compile(&data).unwrap().model().widened();
    let error = exact::outputs(&map_model(&model, |&x| rational(x)), &data).unwrap_err().to_string();
    assert!(error.contains("(sequence ") && error.contains("irrational"), "{error}");
}

#[test]
fn float_plateaus_are_rational_and_nearly_right() {
    let data = random(6, 4, 2, 5, false);
    let model = memorizer(Method::Plateau).compile(&data).unwrap().model().widened();
    let outputs = exact::outputs(&map_model(&model, |&x| rational(x)), &data).unwrap();
    let Labels::Vectors { data: wanted, .. } = &data.labels else { unreachable!() };
    for (x, y) in outputs.iter().flatten().zip(wanted) {
        assert!((x.to_f64().value() - y).abs() < 1e-12);
    }
}

fn write(compiled: &Compiled, dir: &Path) {
    exact_file::write(exact_model(compiled), dir, |_| Ok(())).unwrap();
}

#[test]
fn exact_models_survive_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("model");
    for compiled in [deep(&random(4, 3, 4, 3, true)), plateaus(&random(3, 2, 2, 3, false))] {
        write(&compiled, &dir);
        assert!(exact_file::is_exact(&dir).unwrap());
        assert_eq!(&exact_file::read(&dir).unwrap(), exact_model(&compiled));
        assert_eq!(&AnyModel::open(&dir).unwrap(), compiled.model());
    }
    let words = plateaus(&Dataset::open("task:reverse:alphabet=2,length=2").unwrap());
    write(&words, &dir);
    assert_eq!(&exact_file::read(&dir).unwrap(), exact_model(&words));
}

#[test]
fn damaged_weights_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("model");
    write(&plateaus(&random(2, 2, 2, 2, true)), &dir);
    let path = dir.join("weights.json");
    let sound: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let after = |damage: &dyn Fn(&mut Value)| {
        let mut weights = sound.clone();
        damage(&mut weights);
        std::fs::write(&path, weights.to_string()).unwrap();
        exact_file::read(&dir).unwrap_err().to_string()
    };
    let error = after(&|w| w["head.bias"]["data"][0] = json!("1/0"));
    assert!(error.contains("head.bias") && error.contains("\"1/0\""), "{error}");
    let error = after(&|w| w["head.bias"]["shape"][0] = json!(3));
    assert!(error.contains("head.bias") && error.contains("2 numbers"), "{error}");
    let error = after(&|w| w["head.bias"] = json!({"shape": [3], "data": ["1", "2", "3"]}));
    assert!(error.contains("head.bias") && error.contains("[2]"), "{error}");
    let error = after(&|w| drop(w.as_object_mut().unwrap().remove("head.bias")));
    assert!(error.contains("head.bias is missing"), "{error}");
    let error = after(&|w| w["other"] = json!({"shape": [0], "data": []}));
    assert!(error.contains("other: a size of 0"), "{error}");
    let error = after(&|w| w["other"] = json!({"shape": [1], "data": ["1"]}));
    assert!(error.contains("other has no place"), "{error}");
    let error = after(&|w| w["head.bias"]["data"][0] = json!(1.5));
    assert!(error.contains("weights.json"), "{error}");
}

/// Tokens from a small grid, so that duplicates, conflicts and shared contexts are common.
fn small() -> impl Strategy<Value = Dataset> {
    let token = prop::collection::vec((1..4_i32).prop_map(f64::from), 4);
    let sequence = (1..5_usize).prop_flat_map(move |n| {
        (prop::collection::vec(token.clone(), n), prop::collection::vec((0..5_i32).prop_map(|l| json!(l)), n))
    });
    prop::collection::vec(sequence, 1..6).prop_map(|sequences| {
        let lines: Vec<String> = sequences.iter().map(|(t, l)| json!({"tokens": t, "labels": l}).to_string()).collect();
        Dataset::read("small", Format::JsonLines, lines.join("\n").as_bytes()).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn both_methods_are_exact(data in small()) {
        check(&data, &plateaus(&data));
        check(&data, &deep(&data));
    }
}
