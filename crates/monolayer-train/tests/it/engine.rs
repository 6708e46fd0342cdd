//! What a training run promises: the same on any number of threads, after a pause, with lazy or dense embedding rows; and that it
//! notices when it goes wrong.

use monolayer::arithmetic::kernels::Real;
use monolayer_train::engine::Parameters;
use monolayer_train::{Architecture, Batch, Engine, Optimizer, Targets, Tokens};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

const ADAM_W: Optimizer = Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };

fn architecture() -> Architecture {
    Architecture {
        words: Some(300),
        dim: 8,
        layers: 2,
        hidden: 16,
        heads: 1,
        head_size: 1,
        tied: true,
        causal: false,
        positions: None,
        layer_norm: false,
        labels: Some(4),
    }
}

/// Batch `i` of a made-up corpus: words of all frequencies, the label of a word in nine tokens of ten.
fn batch(i: u64) -> (Vec<usize>, Vec<u32>, Vec<Option<u32>>) {
    let mut rng = ChaCha8Rng::seed_from_u64(i);
    let (mut offsets, mut words, mut labels) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..32 {
        for _ in 0..rng.random_range(1..40) {
            words.push((300.0 * rng.random::<f64>().powi(4)) as u32);
            let noise = u32::from(rng.random_range(0..10) == 0);
            labels.push(Some((words[words.len() - 1] + noise) % 4));
        }
        offsets.push(words.len());
    }
    (offsets, words, labels)
}

fn step<R: Real>(engine: &mut Engine<R>, i: u64) -> f64 {
    let (offsets, words, labels) = batch(i);
    let batch = Batch { offsets: &offsets, tokens: Tokens::Words(&words), targets: Targets::Labels(&labels) };
    engine.step(&batch, 1e-2 / (1.0 + i as f64 / 100.0)).unwrap().loss
}

fn train<R: Real>(mut engine: Engine<R>, steps: u64) -> Parameters<R> {
    (0..steps).for_each(|i| {
        step(&mut engine, i);
    });
    engine.catch_up();
    engine.parameters().clone()
}

#[test]
fn learns() {
    let mut engine = Engine::<f32>::new(architecture(), Optimizer::default(), None, 1);
    let losses: Vec<f64> = (0..300).map(|i| step(&mut engine, i)).collect();
    assert!(losses[0] > 1.0 && losses[299] < 0.5 * losses[0], "{} to {}", losses[0], losses[299]);
}

#[test]
fn threads_do_not_matter() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| train(Engine::<f32>::new(architecture(), ADAM_W, Some(0.5), 2), 50))
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn a_pause_does_not_matter() {
    let new = || Engine::<f32>::new(architecture(), ADAM_W, None, 3);
    let whole = train(new(), 150);
    // Stopped amid steps that rows have not all seen.
    let mut before = new();
    (0..97).for_each(|i| {
        step(&mut before, i);
    });
    let mut after = Engine::<f32>::new(architecture(), ADAM_W, None, 4);
    after.restore(before.state());
    (97..150).for_each(|i| {
        step(&mut after, i);
    });
    after.catch_up();
    assert!(&whole == after.parameters());
}

#[test]
fn lazy_rows_equal_dense_rows() {
    for optimizer in [Optimizer::default(), ADAM_W, Optimizer::Sgd { momentum: 0.9 }] {
        let new = || Engine::<f64>::new(architecture(), optimizer, Some(1.0), 5);
        let (lazy, dense) = (train(new(), 300), train(new().with_dense_embedding(true), 300));
        let numbers = |p: &Parameters<f64>| [&p.embedding[..], &p.dense[..]].concat();
        let (lazy, dense) = (numbers(&lazy), numbers(&dense));
        let far = lazy.iter().zip(&dense).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < 1e-9, "{optimizer:?}: {far:e}");
    }
}

#[test]
fn clipping_bounds_the_step() {
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    let before = Engine::<f64>::new(architecture(), sgd, Some(1e-3), 6);
    let start = before.parameters().clone();
    let after = train(before, 1);
    let square = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let moved = (square(&start.embedding, &after.embedding) + square(&start.dense, &after.dense)).sqrt();
    assert!((moved / (1e-3 * 1e-2) - 1.0).abs() < 1e-2, "moved by {moved:e}");
}

#[test]
fn notices_and_names_what_diverges() {
    let (offsets, words, labels) = batch(0);
    let batch = Batch { offsets: &offsets, tokens: Tokens::Words(&words), targets: Targets::Labels(&labels) };
    let good = Engine::<f32>::new(architecture(), Optimizer::default(), None, 7);
    let layout = architecture().layout();
    for tensor in &layout.tensors {
        let mut parameters = good.parameters().clone();
        parameters.dense[tensor.range.start] = f32::NAN;
        let mut engine = Engine::from_parameters(architecture(), Optimizer::default(), None, parameters.clone());
        let error = engine.step(&batch, 1e-3).unwrap_err();
        assert_eq!((error.step, &error.tensor), (1, &tensor.name));
        assert_eq!(engine.steps(), 0, "nothing moved");
    }
    // Weights that are finite, and overflow on the way.
    let mut parameters = good.parameters().clone();
    let w1 = layout.tensors.iter().find(|t| t.name == "layers.1.feed_forward.w1").unwrap();
    parameters.dense[w1.range.clone()].fill(3e38);
    let error =
        Engine::from_parameters(architecture(), Optimizer::default(), None, parameters).step(&batch, 1e-3).unwrap_err();
    assert!(error.tensor.contains("layers.1.feed_forward"), "{error}");
}

#[test]
fn frozen_tensors_stay() {
    let new = Engine::<f32>::new(architecture(), ADAM_W, None, 8);
    let start = new.parameters().clone();
    let frozen = ["layers.0.attention.w_k".to_string(), "layers.1.feed_forward.b1".to_string()];
    let end = train(new.with_frozen(&frozen), 3);
    for tensor in &architecture().layout().tensors {
        let stayed = start.dense[tensor.range.clone()] == end.dense[tensor.range.clone()];
        assert_eq!(stayed, frozen.contains(&tensor.name), "{}", tensor.name);
    }
}
