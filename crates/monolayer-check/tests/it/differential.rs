//! Compiler and checker read the same bytes the same way, and what one compiles the other verifies.

use std::collections::HashSet;
use std::path::Path;

use monolayer::Memorizer;
use monolayer::data as theirs;
use monolayer::data::context::Contexts;
use monolayer::paper::attention::Mask;
use monolayer_check::open_data;
use monolayer_check::{Format, Options, Precision, Verdict, verify};
use monolayer_core::claims::context;
use monolayer_core::read::data::Data;
use monolayer_core::read::{Limits, directory};

use crate::common;
use crate::common::spoil::fuzz;
use crate::masks::core_mask;

/// A dataset in its canonical form, so that both readings can be compared.
#[derive(Debug, PartialEq)]
struct Plain {
    canonical: String,
    offsets: Vec<usize>,
    lines: Vec<usize>,
    hash: String,
}

fn their(data: &theirs::Dataset) -> Plain {
    let mut canonical = Vec::new();
    data.write_canonical(&mut canonical).unwrap();
    let (offsets, hash) = (data.offsets.clone(), data.hash());
    let lines = data.lines.iter().map(|&line| line as usize).collect();
    Plain { canonical: String::from_utf8(canonical).unwrap(), offsets, lines, hash }
}

fn our(data: &Data, canonical: String, lines: bool) -> Plain {
    let lines = (0..if lines { data.tokens.len() } else { 0 }).map(|t| data.line(t)).collect();
    Plain { canonical, offsets: data.offsets.clone(), lines, hash: data.hash.clone() }
}

fn compare(bytes: &[u8], their_format: theirs::Format, format: Format) {
    let theirs = theirs::Dataset::read("x", their_format, bytes);
    let ours = open_data::with_canonical(bytes, format, &Limits::default());
    match (theirs, ours) {
        (Ok(theirs), Ok((data, canonical))) => {
            assert_eq!(their(&theirs), our(&data, canonical, format != Format::Arrays));
        }
        (Err(_), Err(_)) => (),
        (Ok(_), Err(error)) => panic!("only the checker refuses: {error}\n{:?}", String::from_utf8_lossy(bytes)),
        (Err(error), Ok(_)) => panic!("only the compiler refuses: {error}\n{:?}", String::from_utf8_lossy(bytes)),
    }
}

#[test]
fn spoiled_columns_are_read_alike() {
    fuzz("conll", 3000, |bytes| compare(bytes, theirs::Format::Conll, Format::Conll));
}

#[test]
fn spoiled_json_lines_are_read_alike() {
    fuzz("jsonl", 3000, |bytes| compare(bytes, theirs::Format::JsonLines, Format::JsonLines));
}

#[test]
fn spoiled_arrays_are_read_alike() {
    fuzz("arrays", 3000, |bytes| compare(bytes, theirs::Format::Arrays, Format::Arrays));
}

#[test]
fn tasks_are_the_same() {
    let ordered =
        ["reverse", "shift", "shift-2", "sort", "first-occurrence", "frac-prevs", "pattern", "pattern-3", "dyck"];
    let symmetric = ["copy", "histogram", "majority", "parity", "count", "length"];
    for name in ordered.into_iter().chain(symmetric).chain(["nothing"]) {
        for options in [
            "alphabet=4,length=1..4,order=sorted",
            "order=sorted,length=3,alphabet=2",
            "alphabet=4,length=12,order=sorted",
            "alphabet=3,length=2,order=any",
            "alphabet=3,length=2,order=sorted,order=sorted",
            "alphabet=9,length=99,order=sorted",
            "alphabet=4,length=1..4",
            "length=03,alphabet=2",
            "alphabet=30,length=2",
            "alphabet=3,length=2",
            "alphabet=0,length=2",
            "alphabet=9,length=99",
            "length=2",
        ] {
            let text = format!("task:{name}:{options}");
            match (theirs::Dataset::open(&text), open_data::open(&text, None, &Limits::default())) {
                (Ok(theirs), Ok(ours)) => {
                    // The canonical form has the same hash.
                    let (their, name) = (their(&theirs), theirs.name);
                    assert_eq!(blake3::hash(their.canonical.as_bytes()).to_hex().as_str(), their.hash);
                    assert_eq!((our(&ours.data, their.canonical.clone(), false), ours.name), (their, name));
                }
                (theirs, ours) => assert!(theirs.is_err() && ours.is_err(), "{text}"),
            }
        }
    }
}

/// A matrix for sequences of up to 4 tokens.
fn matrix() -> Mask {
    Mask::matrix(4, vec![1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1]).unwrap()
}

#[test]
fn the_same_tokens_are_impossible() {
    for task in ["reverse", "histogram", "sort", "parity"] {
        let text = format!("task:{task}:alphabet=3,length=1..4");
        let (theirs, ours) =
            (theirs::Dataset::open(&text).unwrap(), open_data::open(&text, None, &Limits::default()).unwrap());
        let (theirs::Tokens::Words { word_ids: ids, .. }, theirs::Labels::Classes { label_ids: labels, .. }) =
            (&theirs.tokens, &theirs.labels)
        else {
            unreachable!()
        };
        let masks = [Mask::None, Mask::Causal, Mask::Prefix(2), Mask::Band(1, 0), Mask::Band(0, 2), matrix()];
        for (positions, mask) in masks.iter().flat_map(|mask| [(false, mask), (true, mask)]) {
            let theirs = Contexts::new(ids, &theirs.offsets, mask, positions);
            let names: Vec<u64> = (0..ours.data.different() as u64).collect();
            let contexts = context::contexts(&ours.data, &names, positions, &[&core_mask(mask)], 2);
            // The same tokens share a context, whatever it is called.
            let pairs: HashSet<_> = theirs.of_token.iter().zip(&contexts).collect();
            let different: HashSet<_> = contexts.iter().collect();
            assert_eq!((pairs.len(), different.len()), (theirs.count, theirs.count), "{text}, {positions}, {mask:?}");
            // Some of them free.
            let some: Vec<Option<u32>> = (0..).zip(labels).map(|(t, label)| label.filter(|_| t % 3 != 1)).collect();
            assert_eq!(ours.data.labels.as_ref(), Some(labels));
            let expected = theirs.agree(&some).impossible;
            let mut found = vec![];
            context::disagree(&contexts, &some, |t, own, favored| {
                assert!(some[t] == Some(own) && own != favored);
                found.push(t);
            });
            found.sort_unstable();
            assert_eq!(expected, found, "{text}, positions {positions}, {mask:?}");
        }
    }
}

/// Whether the compiler and the checker accept a model directory.
fn both_accept(dir: &Path) -> (bool, bool) {
    let theirs = monolayer::model::directory::read(dir).is_ok() || monolayer::model::exact_file::read(dir).is_ok();
    (theirs, directory::open(dir, &Limits::default()).is_ok())
}

#[test]
fn hostile_models_are_refused_by_both() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../attacks")).unwrap() {
        let dir = entry.unwrap().path();
        if dir.is_dir() {
            let (theirs, ours) = both_accept(&dir);
            assert_eq!(theirs, ours, "{}: compiler {theirs}, checker {ours}", dir.display());
        }
    }
}

#[test]
fn what_the_compiler_refuses_the_checker_refuses() {
    let dir = tempfile::tempdir().unwrap();
    for (reader, file) in
        [("config", "config.json"), ("vocabulary", "vocabulary.json"), ("tensors", "model.safetensors")]
    {
        common::Files::honest().write(dir.path());
        fuzz(reader, 1000, |bytes| {
            std::fs::write(dir.path().join(file), bytes).unwrap();
            // The checker may be stricter (it refuses unknown fields that appear twice), never more lenient.
            let (theirs, ours) = both_accept(dir.path());
            assert!(theirs || !ours, "only the compiler refuses: {:?}", String::from_utf8_lossy(bytes));
        });
    }
}

#[test]
fn compiled_models_are_verified_in_every_arithmetic() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = [
        "histogram:alphabet=3,length=4",
        "reverse:alphabet=3,length=3",
        "sort:alphabet=3,length=1..3",
        "dyck:alphabet=2,length=1..5",
    ];
    for (i, task) in tasks.iter().enumerate() {
        let text = format!("task:{task}");
        let data = theirs::Dataset::open(&text).unwrap();
        let compiled = Memorizer::new().candidates(8).compile(&data).unwrap();
        let out = dir.path().join(i.to_string());
        compiled.save(&out).unwrap();
        for precision in [None, Some(Precision::F64), Some(Precision::Real)] {
            let report = verify(&out, Some(&text), &Options { precision, ..Options::default() });
            assert_eq!(report.verdict, Verdict::Verified, "{text}: {}", report.text());
            assert_eq!(report.impossible, compiled.impossible().len());
        }
    }
}
