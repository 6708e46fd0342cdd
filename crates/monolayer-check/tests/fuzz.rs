//! Every reader, fed with spoiled files: an error is fine, a panic is not. A short run here; `MONOLAYER_FUZZ=1000000` makes it
//! long. The files to spoil are in fuzz/corpus, one directory per reader.

mod common;

use std::fs;

use common::spoil::fuzz;
use monolayer_check::dataset::{self, Format};
use monolayer_check::read::{json, tensors};
use monolayer_check::{Options, certificate, model, verify};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn conll() {
    fuzz("conll", 2000, |bytes| drop(dataset::parse("x", bytes, Format::Conll)));
}

#[test]
fn json_lines() {
    fuzz("jsonl", 2000, |bytes| drop(dataset::parse("x", bytes, Format::JsonLines)));
}

#[test]
fn arrays() {
    fuzz("arrays", 2000, |bytes| drop(dataset::parse("x", bytes, Format::Arrays)));
}

#[test]
fn tensor_files() {
    fuzz("tensors", 2000, |bytes| drop(tensors::parse(bytes)));
}

#[test]
fn certificates() {
    fuzz("certificate", 2000, |bytes| drop(certificate::parse(bytes)));
}

#[test]
fn configurations() {
    let honest = common::Files::honest();
    let (numbers, words) = (honest.safetensors(), honest.vocabulary.unwrap().to_string());
    fuzz("config", 2000, |bytes| {
        if let Ok(config) = json::parse(bytes) {
            drop(model::parse(&config, &numbers, Some(words.as_bytes())));
        }
    });
}

#[test]
fn exact_weights() {
    let honest = common::Files::honest();
    let config = json::parse(honest.config.to_string().as_bytes()).unwrap();
    let words = honest.vocabulary.unwrap().to_string();
    fuzz("weights", 1000, |bytes| drop(model::parse_exact(&config, bytes, Some(words.as_bytes()))));
}

#[test]
fn vocabularies() {
    let honest = common::Files::honest();
    let (numbers, config) = (honest.safetensors(), json::parse(honest.config.to_string().as_bytes()).unwrap());
    fuzz("vocabulary", 1000, |bytes| drop(model::parse(&config, &numbers, Some(bytes))));
}

/// Numbers of any kind in a well-formed model: every verdict is possible, no panic is.
#[test]
fn any_weights_give_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let honest = common::Files::honest();
    honest.write(dir.path());
    let data = dir.path().join("data.conll");
    fs::write(&data, common::DATA).unwrap();
    let header = honest.safetensors();
    let start = 8 + u64::from_le_bytes(header[..8].try_into().unwrap()) as usize;
    let count = (header.len() - start) / 4;
    let cases = std::env::var("MONOLAYER_FUZZ").ok().and_then(|n| n.parse::<u32>().ok()).unwrap_or(30_000) / 100;
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let weights = prop::collection::vec(any::<f32>(), count);
    runner
        .run(&weights, |weights| {
            let mut file = header[..start].to_vec();
            file.extend(weights.iter().flat_map(|w| w.to_le_bytes()));
            fs::write(dir.path().join("model.safetensors"), file).unwrap();
            for precision in [monolayer_check::Precision::F32, monolayer_check::Precision::Real] {
                verify(dir.path(), data.to_str(), &Options { precision: Some(precision), ..Options::default() });
            }
            Ok(())
        })
        .unwrap();
}
