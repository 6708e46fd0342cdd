//! Models and data as PyTorch wrote them, through the fast forward pass: the fixtures of `python/make_fixtures.py`.

use std::path::{Path, PathBuf};

use monolayer::arithmetic::kernels::Real;
use monolayer::model::{Model, Predictions};
use monolayer::{AnyModel, Dataset};
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
