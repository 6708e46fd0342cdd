//! Files of fuzz/corpus, spoiled at random.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// One way to spoil a file.
#[derive(Debug, Clone)]
pub enum Change {
    Set(u16, u8),
    Flip(u16, u8),
    Delete(u16, u8),
    Repeat(u16, u8, u8),
    Insert(u16, &'static [u8]),
    /// Another digit in the place of the next one: what is left is often a file as it should be, with other numbers.
    Digit(u16, u8),
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

pub fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<u16>(), 0..8_u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (any::<u16>(), any::<u8>()).prop_map(|(at, n)| Change::Delete(at, n)),
        (any::<u16>(), any::<u8>(), 1..4_u8).prop_map(|(at, n, times)| Change::Repeat(at, n, times)),
        (any::<u16>(), prop::sample::select(&PIECES[..])).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<u16>(), b'0'..=b'9').prop_map(|(at, digit)| Change::Digit(at, digit)),
    ]
}

pub fn spoiled(content: &[u8], changes: &[Change]) -> Vec<u8> {
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
            Change::Digit(at, digit) => {
                let at = place(at);
                out[at..].iter_mut().find(|byte| byte.is_ascii_digit()).into_iter().for_each(|byte| *byte = digit);
            }
        }
    }
    out
}

pub fn corpus(reader: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(reader);
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Spoils the files of a reader and reads them.
pub fn fuzz(reader: &str, cases: u32, read: impl Fn(&[u8])) {
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
