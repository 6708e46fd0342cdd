//! How long the checker takes on a dense model, as training makes them, and a dataset of the size of CoNLL-2003.
//!
//! Weights are random, in single precision; so are sentences and labels. Nearly every token should be decided, right or wrong.
//! `cargo run --release -p monolayer-check --example speed -- --hidden 256 --heads 8 --head-size 16 --layers 3`

#[allow(dead_code)]
#[path = "soundness/random.rs"]
mod random;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use monolayer_check::{Options, verify};
use random::Random;
use serde_json::{Map, Value, json};

const WORDS: usize = 23_623;
const LABELS: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str, default: usize| {
        arguments.iter().position(|a| a == name).map_or(default, |i| arguments[i + 1].parse().expect("a number"))
    };
    let (tokens, d, hidden) = (value("--tokens", 203_621), value("--d", 64), value("--hidden", 256));
    let (heads, size, layers) = (value("--heads", 1), value("--head-size", 1), value("--layers", 1));
    let options = Options { threads: value("--threads", Options::default().threads), ..Options::default() };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut random = Random(1);
    let data = dir.path().join("data.conll");
    fs::write(&data, sentences(&mut random, tokens)).expect("it can be written");
    model(&mut random, [d, hidden, heads, size, layers], dir.path());
    let report = verify(dir.path(), data.to_str(), &options);
    assert!(report.error.is_none(), "{}", report.text());
    println!(
        "{tokens} tokens, d = {d}, {hidden} hidden units, {heads} heads of size {size}, {layers} layers: {:.1} s on {} \
         threads; {} right, {} wrong, {} open",
        report.seconds, options.threads, report.verified, report.refuted, report.unknown
    );
}

/// Sentences of up to 40 words, frequent words first.
fn sentences(random: &mut Random, tokens: usize) -> String {
    let mut text = String::new();
    let mut left = 0;
    for _ in 0..tokens {
        if left == 0 {
            text.push('\n');
            left = 1 + random.below(40);
        }
        left -= 1;
        let word = (WORDS as f64 * random.signed().powi(4)) as usize;
        let _ = writeln!(text, "w{word} L{}", random.below(LABELS));
    }
    text
}

/// Writes a model of random numbers.
fn model(random: &mut Random, [d, hidden, heads, size, layers]: [usize; 5], dir: &Path) {
    let mut tensors: Vec<(String, Vec<usize>, usize)> = vec![
        ("embedding.weight".into(), vec![WORDS, d], 1),
        ("head.weight".into(), vec![LABELS, d], d),
        ("head.bias".into(), vec![LABELS], d),
    ];
    for i in 0..layers {
        let attention = |name: &str| format!("layers.{i}.attention.{name}");
        tensors.extend(["w_q", "w_k", "w_v"].map(|name| (attention(name), vec![heads, size, d], d)));
        tensors.push((attention("w_o"), vec![heads, d, size], heads * size));
        let part = |name: &str| format!("layers.{i}.feed_forward.{name}");
        tensors.extend([(part("w1"), vec![hidden, d], d), (part("b1"), vec![hidden], d)]);
        tensors.extend([(part("w2"), vec![d, hidden], hidden), (part("b2"), vec![d], hidden)]);
    }
    let (mut header, mut bytes) = (Map::new(), Vec::new());
    for (name, shape, inputs) in tensors {
        let (begin, scale) = (bytes.len(), 1.0 / (inputs as f64).sqrt());
        for _ in 0..shape.iter().product() {
            bytes.extend(((scale * random.signed()) as f32).to_le_bytes());
        }
        header.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, bytes.len()]}));
    }
    let header = Value::Object(header).to_string();
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes].concat();
    let attention = json!({"kind": "softmax", "heads": heads, "head_size": size, "mask": "none"});
    let labels: Vec<String> = (0..LABELS).map(|i| format!("L{i}")).collect();
    let config = json!({
        "format": "monolayer/1", "d": d, "dtype": "f32", "max_length": null, "labels": labels,
        "layers": vec![json!({"attention": attention, "hidden": hidden}); layers], "pre_feed_forward": null, "source": {}
    });
    let words: Map<String, Value> = (0..WORDS).map(|i| (format!("w{i}"), json!(i))).collect();
    for (name, content) in [
        ("model.safetensors", file),
        ("config.json", config.to_string().into_bytes()),
        ("vocabulary.json", Value::Object(words).to_string().into_bytes()),
    ] {
        fs::write(dir.join(name), content).expect("it can be written");
    }
}
