//! Model directories written by hand, for tests and for the attacks.

#![allow(dead_code)]

pub mod spoil;
pub mod staircase;

use std::fs;
use std::path::Path;

use monolayer_check::Format;
use monolayer_check::open_data;
use monolayer_core::read::{Limits, hash};
use serde_json::{Value, json};

/// A model directory in memory.
#[derive(Clone)]
pub struct Files {
    pub config: Value,
    pub tensors: Vec<(String, Vec<usize>, Vec<f64>)>,
    pub vocabulary: Option<Value>,
    pub f32: bool,
}

impl Files {
    /// A rank-1 model of two words and two labels that gets [`DATA`] right.
    pub fn honest() -> Self {
        let tensor = |name: &str, shape: &[usize], data: &[f64]| (name.to_owned(), shape.to_vec(), data.to_vec());
        Self {
            config: json!({
                "format": "monolayer/1", "d": 2, "dtype": "f32", "max_length": null, "labels": ["X", "Y"],
                "layers": [{"attention": {"kind": "softmax", "heads": 1, "head_size": 1, "mask": "none"}, "hidden": 1}],
                "pre_feed_forward": null, "source": {}
            }),
            tensors: vec![
                tensor("embedding.weight", &[2, 2], &[1.0, 0.0, 0.0, 1.0]),
                tensor("layers.0.attention.w_q", &[1, 1, 2], &[0.5, 0.25]),
                tensor("layers.0.attention.w_k", &[1, 1, 2], &[0.75, -0.5]),
                tensor("layers.0.attention.w_v", &[1, 1, 2], &[0.75, -0.5]),
                tensor("layers.0.attention.w_o", &[1, 2, 1], &[0.25, -0.25]),
                tensor("layers.0.feed_forward.w1", &[1, 2], &[1.0, -1.0]),
                tensor("layers.0.feed_forward.b1", &[1], &[0.1]),
                tensor("layers.0.feed_forward.w2", &[2, 1], &[0.5, 0.0]),
                tensor("layers.0.feed_forward.b2", &[2], &[0.0, 0.1]),
                tensor("head.weight", &[2, 2], &[1.0, 0.0, 0.0, 1.0]),
                tensor("head.bias", &[2], &[0.0, 0.0]),
            ],
            vocabulary: Some(json!({"a": 0, "b": 1})),
            f32: true,
        }
    }

    /// The data of a tensor.
    pub fn tensor(&mut self, name: &str) -> &mut Vec<f64> {
        &mut self.tensors.iter_mut().find(|(n, ..)| n == name).expect("a tensor of this name").2
    }

    /// The bytes of model.safetensors.
    pub fn safetensors(&self) -> Vec<u8> {
        let mut data = Vec::new();
        let mut header = serde_json::Map::new();
        for (name, shape, values) in &self.tensors {
            let begin = data.len();
            for &x in values {
                if self.f32 {
                    data.extend((x as f32).to_le_bytes());
                } else {
                    data.extend(x.to_le_bytes());
                }
            }
            let dtype = if self.f32 { "F32" } else { "F64" };
            header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()]}));
        }
        assemble(&Value::Object(header).to_string(), &data)
    }

    /// The text of weights.json.
    pub fn weights(&self) -> Value {
        let entry = |(name, shape, data): &(String, Vec<usize>, Vec<f64>)| {
            let data: Vec<String> = data.iter().map(ToString::to_string).collect();
            (name.clone(), json!({"shape": shape, "data": data}))
        };
        Value::Object(self.tensors.iter().map(entry).collect())
    }

    /// Writes the directory with numbers as text.
    pub fn write_exact(&self, dir: &Path, weights: impl AsRef<[u8]>) {
        let mut files = self.clone();
        files.config["dtype"] = json!("exact");
        files.write(dir);
        fs::remove_file(dir.join("model.safetensors")).unwrap();
        fs::write(dir.join("weights.json"), weights).unwrap();
    }

    /// Writes the directory.
    pub fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("config.json"), self.config.to_string()).unwrap();
        fs::write(dir.join("model.safetensors"), self.safetensors()).unwrap();
        if let Some(words) = &self.vocabulary {
            fs::write(dir.join("vocabulary.json"), words.to_string()).unwrap();
        }
    }
}

/// A safetensors file from its header and its data.
pub fn assemble(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// A dataset that [`Files::honest`] gets right.
pub const DATA: &str = "a X\nb Y\n\nb Y\na X\na X\n";

/// The hash of a dataset, that of its canonical form.
pub fn data_hash(data: &str) -> String {
    let format = if data.starts_with('{') { Format::JsonLines } else { Format::Conll };
    open_data::parse("data", data.as_bytes(), format, &Limits::default())
        .map_or(String::new(), |source| source.data.hash)
}

/// A certificate for the files of a directory and some data, with these claims.
pub fn certificate(dir: &Path, data: &str, claims: &Value) -> Value {
    let of = |name: &str| fs::read(dir.join(name)).ok().map(|bytes| hash(&bytes));
    json!({
        "format": "monolayer-certificate/1",
        "model": {"config": of("config.json"), "tensors": of("model.safetensors"), "vocabulary": of("vocabulary.json")},
        "data": {"hash": data_hash(data)},
        "claims": claims,
        "assumptions": {"exp_ulp": 4},
    })
}

/// Writes a certificate into a directory.
pub fn certify(dir: &Path, data: &str, claims: &Value) {
    fs::write(dir.join("certificate.json"), certificate(dir, data, claims).to_string()).unwrap();
}
