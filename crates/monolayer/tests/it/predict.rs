//! Models and data as PyTorch wrote them, through the fast forward pass: the fixtures of `python/make_fixtures.py`.

use std::path::{Path, PathBuf};

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::model::forward::LINEAR;
use monolayer::model::{AttentionSums, Model, Predictions, Source};
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::transformer::{Layer, Transformer};
use monolayer::{AnyModel, Dataset, Mask};
use serde_json::Value;

fn fixtures() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut list: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    list.sort();
    list
}

/// What the model gives before the arg max, `[tokens, labels]` or `[tokens, d]`.
fn outputs<R: Real>(model: &Model<R>, data: &Dataset) -> Vec<Vec<f64>> {
    let inputs = model.inputs(data).unwrap();
    model.run(&inputs, |_, row| row.iter().map(|x| x.to_f64()).collect())
}

/// `max|a - b| / max|b|` over a sequence.
fn difference(a: &[Vec<f64>], b: &Value) -> f64 {
    let rows = b.as_array().unwrap();
    assert_eq!(a.len(), rows.len());
    let (mut difference, mut largest) = (0.0_f64, 0.0_f64);
    for (a, b) in a.iter().zip(rows) {
        let b: Vec<f64> = b.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            difference = difference.max((a - b).abs());
            largest = largest.max(b.abs());
        }
    }
    difference / largest
}

#[test]
fn fixtures_agree_with_pytorch() {
    assert_eq!(fixtures().len(), 8);
    for directory in fixtures() {
        let name = directory.display();
        let model = AnyModel::open(&directory).unwrap();
        let data = Dataset::open(directory.join("data.jsonl").to_str().unwrap()).unwrap();
        let expected = std::fs::read(directory.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();

        let tolerance = if matches!(model, AnyModel::F32(_)) { 1e-5 } else { 1e-12 };
        let rows = match &model {
            AnyModel::F32(model) => outputs(model, &data),
            AnyModel::F64(model) => outputs(model, &data),
            AnyModel::Exact(_) => unreachable!("the fixtures are floats"),
        };
        assert_eq!(expected["outputs"].as_array().unwrap().len(), data.sequences(), "{name}");
        for (i, range) in data.ranges().enumerate() {
            let error = difference(&rows[range], &expected["outputs"][i]);
            assert!(error <= tolerance, "{name}, sequence {}: {error:.1e}", i + 1);
        }

        match model.predict(&data).unwrap() {
            Predictions::Outputs(matrix) => assert_eq!(matrix.data, rows.concat(), "{name}"),
            Predictions::Labels(labels) => {
                let names = model.label_names().unwrap();
                let predicted = labels.iter().map(|&l| names[l as usize].as_str());
                let expected = expected["labels"].as_array().unwrap().iter();
                let expected = expected.flat_map(|list| list.as_array().unwrap()).map(|label| label.as_str().unwrap());
                assert!(predicted.eq(expected), "{name}");
            }
        }
    }
}

#[test]
fn progress_adds_up_to_all_tokens() {
    let directory = fixtures().pop().unwrap();
    let data = Dataset::open(directory.join("data.jsonl").to_str().unwrap()).unwrap();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let add = |tokens| {
        done.fetch_add(tokens, std::sync::atomic::Ordering::Relaxed);
    };
    AnyModel::open(&directory).unwrap().predict_with(&data, &add).unwrap();
    assert_eq!(done.into_inner(), data.tokens());
}

/// A layer of two heads of size 1, on vectors.
fn model(mask: &Mask, d: usize) -> Model<f64> {
    let mut numbers = crate::attention::numbers(4000, 0.7, 11).into_iter();
    let mut matrix = |rows: usize, cols: usize| Matrix::new(rows, cols, numbers.by_ref().take(rows * cols).collect());
    let layer = {
        let mut head = || {
            let [w_q, w_k, w_v] = [(); 3].map(|()| matrix(1, d));
            AttentionHead { w_q, w_k, w_v, w_o: matrix(d, 1) }
        };
        let heads = vec![head(), head()];
        let attention = Attention { kind: AttentionKind::Softmax, mask: mask.clone(), heads };
        let (w1, w2) = (matrix(7, d), matrix(d, 7));
        let feed_forward = FeedForward { w1, b1: matrix(1, 7).data, w2, b2: matrix(1, d).data };
        Layer { attention: Some(attention), feed_forward: Some(feed_forward) }
    };
    let transformer = Transformer { d, pre_feed_forward: None, layers: vec![layer] };
    let source = Source::Other(serde_json::json!({}));
    Model { words: None, positions: None, transformer, head: None, outputs: None, source }
}

/// Sequences of vectors of these lengths.
fn vectors(lengths: &[usize], d: usize) -> Dataset {
    let numbers = crate::attention::numbers(lengths.iter().sum::<usize>() * d, 0.5, 5);
    let mut rows = numbers.chunks_exact(d).map(<[f64]>::to_vec);
    let sequences: Vec<Vec<Vec<f64>>> = lengths.iter().map(|&n| rows.by_ref().take(n).collect()).collect();
    Dataset::from_vectors(&sequences, &sequences).unwrap()
}

fn predicted(model: &Model<f64>, data: &Dataset, sums: AttentionSums) -> Vec<f64> {
    match model.predict_with(data, sums, &|_| ()).unwrap() {
        Predictions::Outputs(outputs) => outputs.data,
        Predictions::Labels(_) => unreachable!("there is no head"),
    }
}

#[test]
fn both_sums_of_long_sequences_agree() {
    let d = 5;
    let data = vectors(&[3, LINEAR + 100, LINEAR - 1, LINEAR], d);
    for mask in [Mask::None, Mask::Causal, Mask::Prefix(50), Mask::Band(3, 2)] {
        let model = model(&mask, d);
        let expected = if matches!(mask, Mask::Band(..)) { AttentionSums::Plain } else { AttentionSums::LinearTime };
        assert_eq!(model.sums_for(&data), expected);
        assert_eq!(model.sums_for(&vectors(&[LINEAR - 1, 7], d)), AttentionSums::Plain);
        let [plain, linear] =
            [AttentionSums::Plain, AttentionSums::LinearTime].map(|sums| predicted(&model, &data, sums));
        let largest = plain.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let error = plain.iter().zip(&linear).fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs()));
        assert!(error <= 1e-11 * largest, "{mask:?} {error} {largest}");
        // Short sequences are computed the same way, bit for bit; the long one is not, unless it has to be.
        assert_eq!(plain[..3 * d], linear[..3 * d]);
        let short = (LINEAR + 103) * d..(2 * LINEAR + 102) * d;
        assert_eq!(plain[short.clone()], linear[short]);
        assert_eq!(plain == linear, expected == AttentionSums::Plain);
    }
}

#[test]
fn a_long_sequence_takes_seconds() {
    let d = 5;
    let data = vectors(&[100_000], d);
    let start = std::time::Instant::now();
    for mask in [Mask::None, Mask::Causal] {
        let model = model(&mask, d);
        let Predictions::Outputs(outputs) = model.predict(&data).unwrap() else { unreachable!("there is no head") };
        assert_eq!(outputs.rows, 100_000);
    }
    // Four heads; plain sums take about half a minute.
    assert!(start.elapsed().as_secs_f64() < 10.0, "{:?}", start.elapsed());
}
