//! Every reader, fed with spoiled files: an error is fine, a panic is not. A short run here; `MONOLAYER_FUZZ=1000000` makes it
//! long. The files to spoil are in fuzz/corpus, one directory per reader.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use monolayer_check::dataset::{self, Format};
use monolayer_check::read::{json, tensors};
use monolayer_check::{Options, certificate, model, verify};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// One way to spoil a file.
#[derive(Debug, Clone)]
enum Change {
    Set(u16, u8),
    Flip(u16, u8),
    Delete(u16, u8),
    Repeat(u16, u8, u8),
    Insert(u16, &'static [u8]),
}

const PIECES: [&[u8]; 18] = [
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551615",
    b"9223372036854775808",
    b"\"\"",
    b"[",
    b"{",
    b"}",
    b"]",
    b",",
    b"\n",
    b"\r\n",
    b"\xFF\xFE",
    b"\xEF\xBB\xBF",
    b"\x00",
    b"-DOCSTART-",
    b"NaN",
];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<u16>(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (any::<u16>(), any::<u8>()).prop_map(|(at, n)| Change::Delete(at, n)),
        (any::<u16>(), any::<u8>(), 1..4_u8).prop_map(|(at, n, times)| Change::Repeat(at, n, times)),
        (any::<u16>(), prop::sample::select(&PIECES[..])).prop_map(|(at, piece)| Change::Insert(at, piece)),
    ]
}

fn spoiled(content: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut out = content.to_vec();
    for change in changes {
        let place = |at: u16| at as usize % (out.len() + 1);
        match *change {
            Change::Set(at, byte) => {
                let at = place(at);
                out.splice(at..(at + 1).min(out.len()), [byte]);
            }
            Change::Flip(at, bit) => {
                let at = place(at);
                if let Some(byte) = out.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            Change::Delete(at, n) => {
                let at = place(at);
                out.drain(at..(at + n as usize).min(out.len()));
            }
            Change::Repeat(at, n, times) => {
                let at = place(at);
                let piece = out[at..(at + n as usize).min(out.len())].repeat(times as usize);
                out.splice(at..at, piece);
            }
            Change::Insert(at, piece) => {
                let at = place(at);
                out.splice(at..at, piece.iter().copied());
            }
        }
    }
    out
}

fn corpus(reader: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(reader);
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Spoils the files of a reader and reads them.
fn fuzz(reader: &str, cases: u32, read: impl Fn(&[u8])) {
    let cases = std::env::var("MONOLAYER_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    let files = corpus(reader);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let strategy = (prop::sample::select(files), prop::collection::vec(change(), 1..8));
    let test = |(file, changes): (Vec<u8>, Vec<Change>)| {
        read(&spoiled(&file, &changes));
        Ok(())
    };
    runner.run(&strategy, test).unwrap();
}

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
