//! Gradients against finite differences, and the chunks and threads that must not matter.

use monolayer_train::engine::Parameters;
use monolayer_train::{Architecture, Batch, Engine, Optimizer, Targets, Tokens};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// One step of SGD with rate 1 takes the gradient off the parameters.
fn gradient(architecture: &Architecture, parameters: &Parameters<f64>, batch: &Batch<f64>) -> Parameters<f64> {
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    let mut engine = Engine::from_parameters(architecture.clone(), sgd, None, parameters.clone());
    engine.step(batch, 1.0).unwrap();
    let difference = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
    Parameters {
        embedding: difference(&parameters.embedding, &engine.parameters().embedding),
        dense: difference(&parameters.dense, &engine.parameters().dense),
    }
}

fn loss(architecture: &Architecture, parameters: &Parameters<f64>, batch: &Batch<f64>) -> f64 {
    let engine = Engine::from_parameters(architecture.clone(), Optimizer::default(), None, parameters.clone());
    engine.evaluate(batch).loss
}

/// Every parameter of one architecture.
fn check(architecture: &Architecture, seed: u64) {
    check_free(architecture, seed, 0);
}

/// The same where any label will do for one token of `free`.
fn check_free(architecture: &Architecture, seed: u64, free: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Sequences of 1, of a full block of queries, of one more, and some between.
    let lengths = [1, 16, 17, 5, 3];
    let mut offsets = vec![0];
    lengths.iter().for_each(|n| offsets.push(offsets[offsets.len() - 1] + n));
    let (tokens, d) = (offsets[lengths.len()], architecture.dim);
    let words: Vec<u32> = (0..tokens).map(|_| rng.random_range(0..architecture.words.unwrap_or(1) as u32)).collect();
    let vectors: Vec<f64> = (0..tokens * d).map(|_| rng.random_range(-1.0..1.0)).collect();
    let wanted: Vec<f64> = (0..tokens * d).map(|_| rng.random_range(-1.0..1.0)).collect();
    let mut label = || Some(rng.random_range(0..architecture.labels.unwrap_or(1) as u32));
    let labels: Vec<Option<u32>> = (0..tokens).map(|t| label().filter(|_| free == 0 || t % free > 0)).collect();
    let batch = Batch {
        offsets: &offsets,
        tokens: if architecture.words.is_some() { Tokens::Words(&words) } else { Tokens::Vectors(&vectors) },
        targets: if architecture.labels.is_some() { Targets::Labels(&labels) } else { Targets::Vectors(&wanted) },
    };
    let parameters = Engine::<f64>::new(architecture.clone(), Optimizer::default(), None, seed).parameters().clone();
    let gradient = gradient(architecture, &parameters, &batch);
    let step = 1e-6;
    let compare = |number: &dyn Fn(&mut Parameters<f64>) -> &mut f64, exact: f64, name: &str| {
        let at = |offset: f64| {
            let mut moved = parameters.clone();
            *number(&mut moved) += offset;
            loss(architecture, &moved, &batch)
        };
        let slope = (at(step) - at(-step)) / (2.0 * step);
        assert!((slope - exact).abs() < 1e-8 + 1e-6 * exact.abs(), "{architecture:?}, {name}: {slope} against {exact}");
    };
    let layout = architecture.layout();
    for tensor in &layout.tensors {
        for i in tensor.range.clone() {
            compare(&|p| &mut p.dense[i], gradient.dense[i], &format!("{}[{}]", tensor.name, i - tensor.range.start));
        }
    }
    for i in 0..parameters.embedding.len() {
        compare(&|p| &mut p.embedding[i], gradient.embedding[i], &format!("embedding[{i}]"));
    }
}

/// The reference configuration, small.
fn small() -> Architecture {
    Architecture {
        words: Some(11),
        dim: 4,
        layers: 1,
        hidden: 6,
        heads: 1,
        head_size: 1,
        tied: true,
        causal: false,
        positions: None,
        layer_norm: false,
        labels: Some(3),
    }
}

#[test]
fn rank_one() {
    check(&small(), 1);
}

#[test]
fn free_labels() {
    check_free(&small(), 11, 3);
    check_free(&Architecture { causal: true, layers: 2, ..small() }, 12, 2);
}

#[test]
fn three_layers() {
    check(&Architecture { layers: 3, ..small() }, 2);
}

#[test]
fn several_heads_untied() {
    check(&Architecture { heads: 2, head_size: 3, tied: false, ..small() }, 3);
}

#[test]
fn full_rank_tied() {
    check(&Architecture { head_size: 4, ..small() }, 4);
}

#[test]
fn causal_with_positions() {
    check(&Architecture { causal: true, positions: Some(20), ..small() }, 5);
}

#[test]
fn layer_norm() {
    check(&Architecture { layer_norm: true, layers: 2, tied: false, ..small() }, 6);
}

#[test]
fn vectors_to_vectors() {
    check(&Architecture { words: None, labels: None, layers: 2, ..small() }, 7);
}

#[test]
fn vectors_to_labels_and_words_to_vectors() {
    check(&Architecture { words: None, ..small() }, 8);
    check(&Architecture { labels: None, positions: Some(17), ..small() }, 9);
}

#[test]
fn attention_alone() {
    check(&Architecture { hidden: 0, layers: 2, ..small() }, 10);
}
