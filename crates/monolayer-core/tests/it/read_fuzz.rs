//! Spoiled files are refused or read, and never make a reader panic.

use std::fs;
use std::path::Path;

use crate::common::{Files, Random, floats, integers, pack};
use monolayer_core::read::data::{self, Data, Kind, Reader};
use monolayer_core::read::{Error, Limits, certificate, directory, json};

/// A model that uses everything of format /2.
fn newest() -> Files {
    let mut files = Files::newer()
        .with(r#""none""#, r#"{"file":"mask.safetensors"}"#)
        .with(r#""source""#, r#""start":"b","source""#)
        .with(r#"["X","Y"]"#, r#"null,"outputs":2"#);
    files.mask = Some(pack(&[("mask".into(), "U8".into(), vec![2, 2], vec![1, 0, 1, 1])]));
    let name = "layers.0.feed_forward.w1";
    files.tensors.retain(|tensor| tensor.0 != name);
    files.tensors.push(floats(&format!("{name}.values"), &[3], &[1.0, -1.0, 3.0]));
    files.tensors.push(integers(&format!("{name}.columns"), &[0, 1, 1]));
    files.tensors.push(integers(&format!("{name}.rows"), &[0, 2, 3]));
    files
}

#[test]
fn spoiled_models() {
    let limits = Limits { dense: 1 << 20, ..Limits::default() };
    let mut random = Random(7);
    let (mut read, mut refused) = (0, 0);
    for files in [Files::honest(), newest()] {
        assert!(files.read().is_ok());
        let tensors = pack(&files.tensors);
        for round in 0..20_000 {
            let whole = [files.config.clone().into_bytes(), tensors.clone()];
            let [mut config, mut numbers] = whole;
            let (mut words, mut mask) = (files.words.clone().map(String::into_bytes), files.mask.clone());
            match round % 4 {
                0 => config = random.spoil(&config),
                1 => numbers = random.spoil(&numbers),
                2 => words = words.map(|words| random.spoil(&words)),
                _ => mask = mask.map(|mask| random.spoil(&mask)),
            }
            match directory::model([&config, &numbers], words.as_deref(), mask.as_deref(), &limits) {
                Ok(_) => read += 1,
                Err(e) => {
                    assert!(!e.place.is_empty() && !e.what.is_empty());
                    refused += 1;
                }
            }
        }
    }
    // Both happen often: a change of a weight is no fault of the file.
    assert!(read > 1000 && refused > 10_000, "{read} {refused}");
}

#[test]
fn spoiled_exact_models() {
    let attack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks/exact-honest");
    let [config, numbers, words] =
        ["config.json", "weights.json", "vocabulary.json"].map(|name| fs::read(attack.join(name)).unwrap());
    let mut random = Random(8);
    assert!(directory::model([&config, &numbers], Some(&words), None, &Limits::default()).is_ok());
    for _ in 0..5000 {
        let spoiled = random.spoil(&numbers);
        let _ = directory::model([&config, &spoiled], Some(&words), None, &Limits::default());
    }
}

#[test]
fn every_truncation_of_a_model_is_refused() {
    for files in [Files::honest(), newest()] {
        let (tensors, words) = (pack(&files.tensors), files.words.clone().unwrap());
        let read = |config: &[u8], numbers: &[u8], words: &[u8]| {
            directory::model([config, numbers], Some(words), files.mask.as_deref(), &Limits::default())
        };
        let (config, words) = (files.config.as_bytes(), words.as_bytes());
        (0..config.len()).for_each(|n| assert!(read(&config[..n], &tensors, words).is_err(), "config {n}"));
        (0..tensors.len()).for_each(|n| assert!(read(config, &tensors[..n], words).is_err(), "tensors {n}"));
        (0..words.len()).for_each(|n| assert!(read(config, &tensors, &words[..n]).is_err(), "words {n}"));
        assert!(read(config, &tensors, words).is_ok());
    }
}

#[test]
fn spoiled_data() {
    let limits = Limits::default();
    let mut random = Random(9);
    let texts = [
        (Kind::Conll, "-DOCSTART- O\n\na X\nb\tY\n\nc _\r\n caf\u{e9}  Z\n"),
        (
            Kind::JsonLines,
            "{\"tokens\":[\"a\",\"b\\u00e9\\ud83d\\ude00\"],\"labels\":[\"X\",null]}\n{\"tokens\":[\"c\"],\"labels\":[\"Y\"]}\n",
        ),
        (Kind::JsonLines, "{\"tokens\":[1,2],\"labels\":[-100,7]}\n"),
        (Kind::JsonLines, "{\"tokens\":[[0.1,-2.5e-3],[1e22,0]],\"labels\":[[1.5],null]}\n"),
    ];
    for (kind, text) in texts {
        let mut read = 0;
        for _ in 0..10_000 {
            let spoiled = random.spoil(text.as_bytes());
            let whole = Reader::new(kind, &limits).with_canonical(&spoiled);
            in_pieces(&mut random, &spoiled, kind, whole.as_ref().map(|(data, _)| data));
            let Ok((found, canonical)) = whole else { continue };
            read += 1;
            // Whatever was read is whole, and its canonical form says the same.
            assert_eq!(found.offsets.last(), Some(&found.tokens.len()));
            assert_eq!(found.lines.len() + 1, found.offsets.len());
            assert!(found.labels.as_ref().is_none_or(|labels| labels.len() == found.tokens.len()));
            let again = data::parse(canonical.as_bytes(), Kind::JsonLines, &limits).unwrap();
            assert_eq!(again.hash, found.hash);
            assert_eq!((again.tokens, again.labels, again.offsets), (found.tokens, found.labels, found.offsets));
        }
        assert!(read > 100, "{read}");
    }
}

#[test]
fn spoiled_certificates() {
    let attacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks");
    let mut random = Random(10);
    for name in ["honest", "honest-gap", "honest-distance"] {
        let bytes = fs::read(attacks.join(name).join("certificate.json")).unwrap();
        for _ in 0..5000 {
            let spoiled = random.spoil(&bytes);
            let _ = certificate::parse(&spoiled, &Limits::default());
            let _ = json::parse(&spoiled);
        }
    }
}

/// A file that comes in pieces is read, or refused, as the whole is.
fn in_pieces(random: &mut Random, bytes: &[u8], kind: Kind, whole: Result<&Data, &Error>) {
    let limits = Limits::default();
    let (mut reader, mut rest, mut found) = (Reader::new(kind, &limits), bytes, Ok(()));
    while !rest.is_empty() && found.is_ok() {
        let (piece, more) = rest.split_at(1 + random.below(rest.len().min(9)));
        (found, rest) = (reader.feed(piece), more);
    }
    let found = found.and_then(|()| reader.end());
    assert_eq!(found.as_ref(), whole);
}
