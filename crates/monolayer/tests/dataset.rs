//! Datasets as a user meets them: files on disk.

use std::path::PathBuf;
use std::time::Instant;

use monolayer::dataset::{Labels, Tokens};
use monolayer::{Dataset, Result};

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
    assert_eq!(data.hash, blake3::hash(&std::fs::read(path).unwrap()).to_hex().as_str());
    Ok(())
}
