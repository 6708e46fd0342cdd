//! Every reader, fed with spoiled files: an error is fine, a panic is not. A short run here; `MONOLAYER_FUZZ=1000000` makes it
//! long. The files to spoil are in fuzz/corpus, one directory per reader.

use std::fs;

use crate::common::spoil::fuzz;
use monolayer_check::convert::{arrays, json_numbers};
use monolayer_check::{Format, Options, open_data, verify};
use monolayer_core::read::{Limits, certificate, directory, tensors};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::common;

fn parse(bytes: &[u8], format: Format) {
    if let Ok((data, canonical)) = open_data::with_canonical(bytes, format, &Limits::default()) {
        // What was read is in canonical form, and that form reads as itself.
        let again = open_data::parse("x", canonical.as_bytes(), Format::JsonLines, &Limits::default()).unwrap();
        assert_eq!((data.hash, data.tokens), (again.data.hash, again.data.tokens));
    }
}

#[test]
fn conll() {
    fuzz("conll", 2000, |bytes| parse(bytes, Format::Conll));
}

#[test]
fn json_lines_of_all_kinds() {
    fuzz("jsonl", 2000, |bytes| {
        let once = json_numbers::canonical(bytes).into_owned();
        assert_eq!(json_numbers::canonical(&once), &once[..], "a rewritten file is not rewritten again");
        parse(bytes, Format::JsonLines);
    });
}

#[test]
fn arrays_of_all_kinds() {
    fuzz("arrays", 2000, |bytes| {
        drop(arrays::canonical(bytes, &Limits::default()));
        parse(bytes, Format::Arrays);
    });
}

#[test]
fn tensor_files() {
    fuzz("tensors", 2000, |bytes| drop(tensors::safetensors(bytes)));
}

#[test]
fn certificates() {
    fuzz("certificate", 2000, |bytes| drop(certificate::parse(bytes, &Limits::default())));
}

/// Spoils one file of an honest model: 0 is config.json, 1 its numbers, 2 vocabulary.json.
fn models(reader: &str, cases: u32, which: usize, honest: &common::Files) {
    let exact = reader == "weights";
    let mut config = honest.config.clone();
    config["dtype"] = if exact { "exact" } else { "f32" }.into();
    let numbers = if exact { honest.weights().to_string().into_bytes() } else { honest.safetensors() };
    let whole =
        [config.to_string().into_bytes(), numbers, honest.vocabulary.as_ref().unwrap().to_string().into_bytes()];
    let limits = Limits::default();
    assert!(directory::model([&whole[0], &whole[1]], Some(&whole[2]), None, &limits).is_ok());
    fuzz(reader, cases, |bytes| {
        let mut files = whole.each_ref().map(Vec::as_slice);
        files[which] = bytes;
        drop(directory::model([files[0], files[1]], Some(files[2]), None, &limits));
    });
}

#[test]
fn configurations() {
    models("config", 2000, 0, &common::Files::honest());
}

#[test]
fn exact_weights() {
    models("weights", 1000, 1, &common::Files::honest());
}

#[test]
fn vocabularies() {
    models("vocabulary", 1000, 2, &common::Files::honest());
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
