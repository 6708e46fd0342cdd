//! The same learning as PyTorch: from the same weights, on the same batches, the same losses, step by step.
//!
//! The fixtures are written by benches/peers/export_training.py.

use std::path::{Path, PathBuf};

use monolayer::arithmetic::kernels::Real;
use monolayer::data::{Dataset, Labels, Tokens as DataTokens};
use monolayer::{AnyModel, Model};
use monolayer_train::engine::Parameters;
use monolayer_train::{Architecture, Batch, Engine, Optimizer, Targets, Tokens, export};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// A list of numbers.
fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn optimizer(options: &Value) -> Optimizer {
    let number = |name: &str| options[name].as_f64().unwrap();
    let betas = numbers(&options["betas"]);
    match options["optimizer"].as_str().unwrap() {
        "sgd" => Optimizer::Sgd { momentum: number("momentum") },
        "adam" | "adamw" => Optimizer::Adam {
            beta1: betas[0],
            beta2: betas[1],
            epsilon: number("epsilon"),
            weight_decay: number("weight_decay"),
        },
        other => panic!("{other}"),
    }
}

/// The weights before the first step; layer norms start with gains of 1 and biases of 0.
fn initial<R: Real>(model: &Model<f32>, layer_norm: bool) -> (Architecture, Parameters<R>) {
    let (plain, parameters) = export::parameters(model).unwrap();
    let architecture = Architecture { layer_norm, ..plain.clone() };
    let wide = |list: &[f32]| list.iter().map(|&x| R::from_f64(f64::from(x))).collect::<Vec<R>>();
    let (from, to) = (plain.layout(), architecture.layout());
    let mut dense = vec![R::ZERO; to.len()];
    for tensor in &to.tensors {
        let numbers = &mut dense[tensor.range.clone()];
        match from.tensors.iter().find(|t| t.name == tensor.name) {
            Some(own) => numbers.copy_from_slice(&wide(&parameters.dense[own.range.clone()])),
            None => numbers[..architecture.dim].fill(R::ONE),
        }
    }
    (architecture, Parameters { embedding: wide(&parameters.embedding), dense })
}

/// The losses of all steps; `dense` updates all embedding rows at each.
fn losses<R: Real>(case: &Path, training: &Value, dense: bool) -> Vec<f64> {
    let AnyModel::F32(model) = AnyModel::open(case).unwrap() else { panic!("the fixtures are in f32") };
    let options = &training["options"];
    let (architecture, parameters) = initial::<R>(&model, options["layer_norm"].as_bool().unwrap());
    let clip = options["clip"].as_f64();
    let engine = Engine::from_parameters(architecture, optimizer(options), clip, parameters);
    let mut engine = engine.with_dense_embedding(dense);
    let data = Dataset::open(fixtures().join("data.conll").to_str().unwrap()).unwrap();
    let (DataTokens::Words { word_ids: ids, .. }, Labels::Classes { label_ids: labels, .. }) =
        (&data.tokens, &data.labels)
    else {
        panic!("words with classes")
    };
    let step = |(batch, rate): (&Value, f64)| {
        let (mut offsets, mut words, mut targets) = (vec![0], Vec::new(), Vec::new());
        for i in batch.as_array().unwrap() {
            let range = data.range(i.as_u64().unwrap() as usize);
            words.extend_from_slice(&ids[range.clone()]);
            targets.extend_from_slice(&labels[range]);
            offsets.push(words.len());
        }
        let (tokens, targets) = (Tokens::Words(&words), Targets::Labels(&targets));
        engine.step(&Batch { offsets: &offsets, tokens, targets }, rate).unwrap().loss
    };
    training["batches"].as_array().unwrap().iter().zip(numbers(&training["rates"])).map(step).collect()
}

/// The largest relative difference over all steps.
fn worst(own: &[f64], peer: &[f64]) -> f64 {
    assert_eq!((own.len(), peer.len()), (100, 100));
    own.iter().zip(peer).map(|(a, b)| (a - b).abs() / b).fold(0.0, f64::max)
}

#[test]
fn losses_are_those_of_pytorch() {
    let mut cases = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let case = entry.unwrap().path();
        if !case.is_dir() {
            continue;
        }
        cases += 1;
        let training: Value = serde_json::from_slice(&std::fs::read(case.join("training.json")).unwrap()).unwrap();
        let (single, double) = (numbers(&training["losses_f32"]), numbers(&training["losses_f64"]));
        let in_f32 = worst(&losses::<f32>(&case, &training, false), &single);
        let in_f64 = worst(&losses::<f64>(&case, &training, true), &double);
        // Rows that wait for their word take the steps they missed at once.
        let lazy = worst(&losses::<f64>(&case, &training, false), &double);
        println!("{}: f32 {in_f32:.1e}, f64 {in_f64:.1e}, f64 with lazy rows {lazy:.1e}", case.display());
        assert!(in_f32 < 1e-4, "{}: {in_f32:e} in f32", case.display());
        assert!(in_f64 < 1e-9, "{}: {in_f64:e} in f64", case.display());
        assert!(lazy < 1e-9, "{}: {lazy:e} in f64 with lazy rows", case.display());
    }
    assert_eq!(cases, 8);
}
