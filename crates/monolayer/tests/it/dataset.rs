//! Datasets as a user meets them: files on disk, standard input, synthetic tasks.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::{Rows, Values};
use monolayer::data::{DataOptions, Format, Labels, Names, Tokens, Written};
use monolayer::{Dataset, Result};
use proptest::prelude::*;

/// A file of CoNLL-2003, if `MONOLAYER_CONLL` names the directory that holds it.
fn conll(file: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("MONOLAYER_CONLL");
    if directory.is_none() {
        eprintln!("SKIPPED: set MONOLAYER_CONLL to the directory of CoNLL-2003 to test on {file}");
    }
    Some(PathBuf::from(directory?).join(file))
}

#[test]
fn conll_2003_is_read_in_full() -> Result<()> {
    let Some(path) = conll("eng.train") else { return Ok(()) };
    let start = Instant::now();
    let data = Dataset::open(path.to_str().unwrap())?;
    eprintln!("eng.train read in {:.1?}", start.elapsed());
    assert_eq!((data.sequences(), data.tokens(), data.longest()), (14_041, 203_621, 113));
    let (Tokens::Words { vocabulary, .. }, Labels::Classes { names, .. }) = (&data.tokens, &data.labels) else {
        panic!("words with classes expected")
    };
    assert_eq!((vocabulary.len(), names.len()), (23_623, 8));
    assert!(data.warnings.is_empty(), "{:?}", data.warnings);
    Ok(())
}

#[test]
fn the_content_tells_the_kind_whatever_the_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let json = br#"{"tokens": ["a", "b"], "labels": ["X", "Y"]}"#;
    let rows = Rows {
        tokens: Values::Vectors(2, vec![1.0, 2.0, 3.0, 4.0]),
        labels: Some(Values::Integers(vec![1, 2])),
        free: vec![false; 2],
        offsets: vec![0, 2],
    };
    for (bytes, format) in [(b"a X\nb Y\n".as_slice(), "conll"), (json, "jsonl"), (&rows.arrays(false), "safetensors")]
    {
        let format: Format = format.parse().unwrap();
        let strict = Dataset::read("f", format, bytes).unwrap();
        for name in ["a", "a.txt", "a.conll", "a.data"] {
            let path = file(name, bytes);
            let found = Dataset::open_with(&path, &DataOptions::default()).unwrap();
            assert!(found.plain && found.format == format, "{name}");
            assert_eq!(Dataset { name: "f".into(), ..found.data }, strict, "{name}");
            let said = Dataset::open_as(&path, Some(format)).unwrap();
            assert_eq!(Dataset { name: "f".into(), ..said }, strict, "{name}");
        }
    }
    let error = Dataset::open_as(file("c.txt", &rows.arrays(false)), Some(Format::Conll)).unwrap_err().to_string();
    assert!(error.contains("c.txt: safetensors where `format` says conll; leave `format` out"), "{error}");
    let error = Dataset::open(file("c.npz", json)).map(|data| data.tokens());
    assert_eq!(error.unwrap(), 2, "the content is certain");
}

#[test]
fn sources_that_cannot_be_opened_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let error = Dataset::open(directory.path().join("none.conll").to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("none.conll: No such file"), "{error}");
    for format in [Format::Conll, Format::JsonLines, Format::Arrays] {
        let error = Dataset::open_as(directory.path().to_str().unwrap(), Some(format)).unwrap_err().to_string();
        assert!(error.starts_with(directory.path().to_str().unwrap()), "{error}");
    }
    let error = Dataset::open("task:sort").unwrap_err().to_string();
    assert!(error.starts_with("task:sort: not a task; write task:NAME:"), "{error}");
    let error = Dataset::open_as("task:sort:alphabet=2,length=2", Some(Format::Conll)).unwrap_err().to_string();
    assert!(error.contains("a task is no conll file; leave the format out"), "{error}");
    let error = "xml".parse::<Format>().unwrap_err().to_string();
    assert_eq!(
        error,
        "\"xml\" is not a format; the formats are conll, jsonl, json, csv, tsv, npy, npz and safetensors"
    );
}

#[test]
fn tasks_are_enumerated_in_full() -> Result<()> {
    let data = Dataset::open("task:sort:alphabet=4,length=1..6")?;
    assert_eq!(data.sequences(), 5460);
    assert_eq!(data.name, "task:sort:alphabet=4,length=1..6");
    Ok(())
}

const CHILD: &str = "MONOLAYER_TEST_READS_STANDARD_INPUT";

/// What a child process of the next test does; alone it does nothing.
#[test]
fn child_reads_standard_input() {
    if std::env::var_os(CHILD).is_some() {
        let data = Dataset::open("-").unwrap();
        println!("{} has {} tokens, hash {}", data.name, data.tokens(), data.hash());
    }
}

#[test]
fn standard_input_is_a_dataset() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "dataset::child_reads_standard_input", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a X\nb Y\n").unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let line = b"{\"tokens\":[\"a\",\"b\"],\"labels\":[\"X\",\"Y\"]}\n";
    let expected = format!("<stdin> has 2 tokens, hash {}", blake3::hash(line).to_hex());
    assert!(output.contains(&expected), "{output}");
}

const COLUMNS: Written = Written { tokens: Names::Strings, labels: Names::Strings };
const ARRAYS: Written = Written { tokens: Names::Strings, labels: Names::Integers };

/// The dataset that the canonical form of another one is.
fn read_back(data: &Dataset) -> Dataset {
    let mut bytes = Vec::new();
    data.write_canonical(&mut bytes).unwrap();
    Dataset::read("f", Format::JsonLines, bytes.as_slice()).unwrap()
}

proptest! {
    #[test]
    fn columns_are_read_back(rows in crate::common::columns(), crlf: bool, bom: bool) {
        let (bytes, lines) = rows.conll(crlf, bom);
        let data = Dataset::read("f", Format::Conll, bytes.as_slice()).unwrap();
        prop_assert_eq!(&data, &rows.dataset(COLUMNS, lines));
        prop_assert_eq!(read_back(&data).hash(), data.hash());
    }

    #[test]
    fn json_lines_are_read_back(rows in crate::common::anything()) {
        let (bytes, lines) = rows.json_lines();
        let data = Dataset::read("f", Format::JsonLines, bytes.as_slice()).unwrap();
        prop_assert_eq!(&data, &rows.dataset(rows.written(), lines));
        prop_assert_eq!(read_back(&data).hash(), data.hash());
    }

    #[test]
    fn arrays_are_read_back(rows in crate::common::vectors(), ragged: bool) {
        let bytes = rows.arrays(ragged);
        let data = Dataset::read("f", Format::Arrays, bytes.as_slice()).unwrap();
        prop_assert_eq!(&data, &rows.dataset(ARRAYS, vec![]));
        prop_assert_eq!(read_back(&data).hash(), data.hash());
    }

    /// Whatever the bytes, a reader returns; and what it calls a dataset is one.
    #[test]
    fn damaged_files_never_panic(
        (format, bytes) in crate::common::files(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
    ) {
        let mut bytes = bytes;
        for (at, byte, how) in damage {
            let at = at.index(bytes.len() + 1);
            match how {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.insert(at, byte),
                2 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
                _ => {}
            }
        }
        match Dataset::read("f", format, bytes.as_slice()) {
            Ok(data) => crate::common::check(&data),
            Err(error) => prop_assert!(error.to_string().starts_with('f')),
        }
    }
}
