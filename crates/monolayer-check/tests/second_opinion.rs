//! The checker and `tools/second_opinion.py` (mpmath intervals) agree, token by token, in real arithmetic.
//!
//! Needs a Python with mpmath: `MONOLAYER_PYTHON` names it, else `python3` is tried.

#[path = "../examples/soundness/exact.rs"]
mod exact;
#[allow(dead_code)]
#[path = "../examples/soundness/floats.rs"]
mod floats;
#[path = "../examples/soundness/models.rs"]
mod models;
#[path = "../examples/soundness/random.rs"]
mod random;
#[path = "../examples/soundness/trained.rs"]
mod trained;

use std::fs;
use std::path::Path;
use std::process::Command;

use monolayer_check::context;
use monolayer_check::dataset::Labels;
use monolayer_check::decide::Decision;
use monolayer_check::labels::Pass;
use monolayer_check::model::{Dtype, Model};
use monolayer_check::{Options, Precision, verify};
use serde_json::{Map, Value, json};

fn python() -> Option<String> {
    let python = std::env::var("MONOLAYER_PYTHON").unwrap_or_else(|_| "python3".into());
    let works = Command::new(&python).args(["-c", "import mpmath"]).output().is_ok_and(|out| out.status.success());
    works.then_some(python)
}

fn run(python: &str, dir: &Path, data: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/second_opinion.py");
    let out = Command::new(python).arg(script).arg(dir).arg(data).output().unwrap();
    serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)))
}

/// Writes a model as the format says: `W_O` is `[heads, d, s]`, `W2` is `[d, q]`.
fn write(model: &Model, dir: &Path) {
    let d = model.d;
    let mut tensors: Vec<(String, Vec<usize>, Vec<f64>)> = Vec::new();
    let mut put = |name: String, shape: Vec<usize>, data: &[f64]| tensors.push((name, shape, data.to_vec()));
    let transposed =
        |w: &[f64], rows: usize| -> Vec<f64> { (0..w.len()).map(|i| w[(i % rows) * d + i / rows]).collect() };
    let embedding = model.embedding.as_ref().unwrap();
    put("embedding.weight".into(), vec![embedding.weight.len() / d, d], &embedding.weight);
    if let Some(p) = &model.positions {
        put("positions.weight".into(), vec![p.len() / d, d], p);
    }
    let mut layers = Vec::new();
    let named = model
        .layers
        .iter()
        .enumerate()
        .map(|(i, layer)| (format!("layers.{i}.feed_forward"), layer.feed_forward.as_ref()));
    let pre = ("pre_feed_forward".to_owned(), model.pre_feed_forward.as_ref());
    for (name, part) in named.chain([pre]).filter_map(|(name, part)| part.map(|part| (name, part))) {
        put(format!("{name}.w1"), vec![part.hidden, d], &part.w1);
        put(format!("{name}.b1"), vec![part.hidden], &part.b1);
        put(format!("{name}.w2"), vec![d, part.hidden], &transposed(&part.w2, part.hidden));
        put(format!("{name}.b2"), vec![d], &part.b2);
    }
    for (i, layer) in model.layers.iter().enumerate() {
        let hidden = layer.feed_forward.as_ref().map_or(0, |part| part.hidden);
        let Some(a) = &layer.attention else {
            layers.push(json!({"attention": null, "hidden": hidden}));
            continue;
        };
        for (name, w) in [("w_q", &a.w_q), ("w_k", &a.w_k), ("w_v", &a.w_v)] {
            put(format!("layers.{i}.attention.{name}"), vec![a.heads, a.size, d], w);
        }
        let w_o: Vec<f64> = a.w_o.chunks_exact(a.size * d).flat_map(|head| transposed(head, a.size)).collect();
        put(format!("layers.{i}.attention.w_o"), vec![a.heads, d, a.size], &w_o);
        let (kind, mask) = (if a.hard { "hardmax" } else { "softmax" }, if a.causal { "causal" } else { "none" });
        let attention = json!({"kind": kind, "heads": a.heads, "head_size": a.size, "mask": mask});
        layers.push(json!({"attention": attention, "hidden": hidden}));
    }
    let head = model.head.as_ref().unwrap();
    put("head.weight".into(), vec![head.bias.len(), d], &head.weight);
    put("head.bias".into(), vec![head.bias.len()], &head.bias);
    let (mut header, mut bytes) = (Map::new(), Vec::new());
    for (name, shape, data) in &tensors {
        let begin = bytes.len();
        bytes.extend(data.iter().flat_map(|x| x.to_le_bytes()));
        header.insert(name.clone(), json!({"dtype": "F64", "shape": shape, "data_offsets": [begin, bytes.len()]}));
    }
    let header = Value::Object(header).to_string();
    fs::write(
        dir.join("model.safetensors"),
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes].concat(),
    )
    .unwrap();
    let pre = model.pre_feed_forward.as_ref().map(|part| json!({"hidden": part.hidden}));
    let config = json!({
        "format": "monolayer/1", "d": d, "dtype": "f64", "max_length": model.max_length, "labels": head.labels,
        "layers": layers, "pre_feed_forward": pre, "source": {}
    });
    fs::write(dir.join("config.json"), config.to_string()).unwrap();
    fs::write(dir.join("vocabulary.json"), json!(embedding.vocabulary).to_string()).unwrap();
}

#[test]
fn random_models_get_the_same_verdict_token_by_token() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: no Python with mpmath (set MONOLAYER_PYTHON)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..25 {
        let case = models::case(&mut random::Random(900 + seed));
        let model = Model { dtype: Dtype::F64, ..case.model };
        write(&model, dir.path());
        let Labels::Classes(classes, names) = &case.dataset.labels else { unreachable!() };
        let mut text = String::new();
        for i in 0..case.dataset.sequences() {
            for t in case.dataset.range(i) {
                text += &[case.dataset.shown(t), " ".into(), names[classes[t] as usize].clone(), "\n".into()].concat();
            }
            text += "\n";
        }
        let data = dir.path().join("data.conll");
        fs::write(&data, text).unwrap();
        let theirs = run(&python, dir.path(), &data);
        let options = Options { precision: Some(Precision::Real), ..Options::default() };
        let ours = verify(dir.path(), data.to_str(), &options);
        for (field, count) in [("verified", ours.verified), ("refuted", ours.refuted), ("impossible", ours.impossible)]
        {
            assert_eq!(theirs[field], count, "seed {seed} ({}), {field}: {theirs} and {}", case.kind, ours.text());
        }
        let contexts = context::contexts(&case.dataset, model.positions.is_some(), model.causal());
        let skip = context::impossible(&contexts, &case.dataset.labels);
        let (dataset, precision) = (&case.dataset, Precision::Real);
        let pass = Pass {
            model: &model,
            dataset,
            precision,
            exp_ulp: 4.0,
            tolerance: None,
            skip: &skip,
            first: false,
            bits: 2048,
            comfortable: 2.0,
        };
        for (t, decision) in pass.run().unwrap().decisions.iter().enumerate() {
            let letter = theirs["letters"].as_str().unwrap().as_bytes()[t];
            let expected = match decision.as_ref().unwrap() {
                _ if skip[t] => b'i',
                Decision::Right(_) => b'v',
                Decision::Wrong(_) => b'r',
                Decision::Open(..) => b'u',
            };
            assert_eq!(letter, expected, "seed {seed}, token {t}");
        }
    }
}

#[test]
fn attacks_with_a_well_formed_model_get_the_same_verdict() {
    let Some(python) = python() else {
        eprintln!("SKIPPED: no Python with mpmath (set MONOLAYER_PYTHON)");
        return;
    };
    for name in [
        "honest",
        "one-label-flipped",
        "one-weight-changed",
        "subnormal-trap",
        "tie-of-rounding-size",
        "label-of-no-model",
    ] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks").join(name);
        let data = dir.join("data.conll");
        let options = Options { precision: Some(Precision::Real), ignore_certificate: true, ..Options::default() };
        assert_eq!(
            run(&python, &dir, &data)["verdict"],
            verify(&dir, data.to_str(), &options).verdict.name(),
            "{name}"
        );
    }
}
