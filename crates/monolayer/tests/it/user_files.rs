//! Files as users have them (those of the command line's tests), damaged and repacked: readers never panic, never read one file in
//! two ways, and give the same data whatever it is packed in.

use std::io::{self, Read, Write as _};
use std::path::Path;

use monolayer::Dataset;
use monolayer::data::{DataOptions, Format, Reading};
use proptest::prelude::*;

/// The options that a line of `NAME.expected` gives.
fn options(line: &str) -> DataOptions {
    let mut options = DataOptions::default();
    let (flags, words): (Vec<&str>, Vec<&str>) = line.split_whitespace().partition(|word| *word == "--documents");
    options.documents = !flags.is_empty();
    for pair in words.chunks(2) {
        let value = pair[1];
        match pair[0] {
            "--columns" => options.columns = value.split(',').map(|column| column.parse().unwrap()).collect(),
            "--sentence" => options.sentence = Some(value.parse().unwrap()),
            "--tokens-from" => options.tokens_from = Some(value.to_owned()),
            "--labels-from" => options.labels_from = Some(value.to_owned()),
            "--label-at" => options.label_at = Some(value.parse().unwrap()),
            "--padding" => options.padding = Some(value.to_owned()),
            "--format" => options.format = Some(value.parse().unwrap()),
            other => panic!("{other}"),
        }
    }
    options
}

/// A file with options: its name, its bytes, and whether it is read.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    bytes: Vec<u8>,
    options: DataOptions,
    read: bool,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../monolayer-cli/tests/data-as-users-have-it");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(expected) = std::fs::read_to_string(format!("{}.expected", path.display())) else { continue };
        let (name, bytes) = (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap());
        let lines: Vec<&str> = expected.lines().collect();
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with('$')) {
            let read = lines[i + 1].starts_with("line: ");
            cases.push(Case { name: name.clone(), bytes: bytes.clone(), options: options(&line[1..]), read });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() > 50 && cases.iter().any(|case| case.read) && cases.iter().any(|case| !case.read));
    cases
}

/// Gives a few bytes at a time.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// What came of reading, to be compared.
fn outcome(found: &monolayer::Result<Reading>) -> String {
    match found {
        Ok(reading) => format!("{} {} {:?}", reading.line(), reading.data.hash(), reading.data.warnings),
        Err(error) => error.to_string(),
    }
}

/// The canonical form of what was read is read as the same data, by its own reader and by looking at it.
fn is_stable(reading: &Reading) {
    let mut canonical = Vec::new();
    reading.data.write_canonical(&mut canonical).unwrap();
    let again = Dataset::read("f", Format::JsonLines, canonical.as_slice()).unwrap();
    assert_eq!(again.hash(), reading.data.hash());
    let looked = Dataset::read_with("<stdin>", canonical.as_slice(), &DataOptions::default()).unwrap();
    assert!(looked.plain && looked.format == Format::JsonLines, "{}", looked.line());
    assert_eq!(looked.data.hash(), reading.data.hash());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_a_file_is_packed_in_changes_nothing() {
    let (mut repacked, mut ended) = (0, 0);
    for Case { name, bytes, options, read } in cases() {
        let found = Dataset::read_with(&name, bytes.as_slice(), &options);
        assert_eq!(found.is_ok(), read, "{name}: {}", outcome(&found));
        let Ok(found) = found else { continue };
        is_stable(&found);
        let hash = |name: &str, bytes: &[u8]| {
            let other = Dataset::read_with(name, bytes, &options);
            other.map_or_else(|error| format!("{name}: {error}"), |other| other.data.hash())
        };
        assert_eq!(hash(&format!("{name}.gz"), &gzip(&bytes)), found.data.hash());
        repacked += 1;
        let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains(['\r', '\0', '\u{feff}']));
        if let Some(text) = text {
            assert_eq!(hash(&name, text.replace('\n', "\r\n").as_bytes()), found.data.hash());
            assert_eq!(hash(&name, format!("\u{feff}{text}").as_bytes()), found.data.hash());
            assert_eq!(hash(&name, text.trim_end().as_bytes()), found.data.hash());
            ended += 1;
        }
    }
    assert!(repacked > 30 && ended > 20, "{repacked} {ended}");
}

/// Archives have checksums: a wrong byte is an error, or stands where it changes nothing (dates, names of systems).
#[test]
fn one_wrong_byte_in_an_archive_is_seen() {
    let archives: Vec<Case> = cases()
        .into_iter()
        .filter(|case| case.read && [Some("npz"), Some("gz")].contains(&case.name.rsplit('.').next()))
        .collect();
    assert!(archives.len() > 4);
    for Case { name, bytes, options, .. } in archives {
        let hash = |bytes: &[u8]| Dataset::read_with(&name, bytes, &options).map(|found| found.data.hash());
        let right = hash(&bytes).unwrap();
        let flipped = |i: usize| {
            let mut wrong = bytes.clone();
            wrong[i] ^= 0x15;
            hash(&wrong)
        };
        let seen = (0..bytes.len()).map(flipped).filter(|found| found.as_ref().map_or(true, |found| *found != right));
        let (wrong, errors): (Vec<_>, Vec<_>) = seen.partition(Result::is_ok);
        assert!(wrong.is_empty() && errors.len() * 3 > bytes.len(), "{name}: {} read otherwise", wrong.len());
    }
}

/// A change of a file.
#[derive(Debug, Clone)]
enum Damage {
    Cut(prop::sample::Index),
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, &'static str),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
}

/// What readers look for.
const PIECES: [&str; 24] = [
    "\t",
    ",",
    ";",
    "|",
    "\"",
    "\n",
    "\n\n",
    "\r",
    "# ",
    "[",
    "{",
    "}",
    "]",
    "\0",
    "NaN",
    "-100",
    "_",
    "1",
    "word",
    "tag",
    "null",
    "-DOCSTART-",
    "\u{feff}",
    " ",
];

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        1 => at().prop_map(Damage::Cut),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        4 => (at(), prop::sample::select(&PIECES[..])).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        2 => (at(), 1..20_usize).prop_map(|(at, n)| Damage::Remove(at, n)),
        1 => (at(), 1..40_usize).prop_map(|(at, n)| Damage::Repeat(at, n)),
    ]
}

fn damaged(bytes: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for damage in damages {
        let place = |at: &prop::sample::Index| at.index(bytes.len() + 1);
        match damage {
            Damage::Cut(at) => bytes.truncate(place(at)),
            Damage::Set(at, byte) => {
                let at = place(at);
                bytes.get_mut(at).into_iter().for_each(|old| *old = *byte);
            }
            Damage::Insert(at, piece) => {
                let at = place(at);
                bytes.splice(at..at, piece.bytes());
            }
            Damage::Remove(at, n) => {
                let at = place(at);
                bytes.drain(at..bytes.len().min(at + n));
            }
            Damage::Repeat(at, n) => {
                let at = place(at);
                let part = bytes[at..bytes.len().min(at + n)].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn damaged_files_are_read_in_one_way_or_refused(
        case in prop::sample::select(cases()),
        damages in prop::collection::vec(damage(), 0..4),
        step in 1..70_usize,
        named: bool,
    ) {
        let bytes = damaged(&case.bytes, &damages);
        let name = if named { case.name.as_str() } else { "<stdin>" };
        let found = Dataset::read_with(name, bytes.as_slice(), &case.options);
        let trickled = Dataset::read_with(name, Trickle(&bytes, step), &case.options);
        prop_assert_eq!(outcome(&found), outcome(&trickled));
        match &found {
            Ok(reading) => {
                crate::common::check(&reading.data);
                is_stable(reading);
                // What is called plain is what the reader of the format reads to the letter.
                if reading.plain {
                    let strict = Dataset::read(name, reading.format, bytes.as_slice()).unwrap();
                    prop_assert_eq!(strict.hash(), reading.data.hash());
                }
            }
            Err(error) => prop_assert!(error.to_string().starts_with(name), "{}", error),
        }
    }
}

/// What comes after the first 64 KiB is looked at as what comes before: comments that start there are skipped, and a long first line
/// does not hide the others.
#[test]
fn the_rest_of_a_file_is_looked_at_too() {
    let read = |name: &str, text: &str| Dataset::read_with(name, text.as_bytes(), &DataOptions::default());
    let sentences = 10_000;
    let text = "a NN\nb VB\n\n".repeat(sentences) + "# text = a b c\n#\na NN\n";
    let reading = read("f.conll", &text).unwrap();
    assert_eq!((reading.data.sequences(), reading.data.tokens()), (sentences + 1, 2 * sentences + 1));
    assert!(!reading.plain && reading.line().ends_with("2 lines of comments skipped"), "{}", reading.line());
    let plain = read("f.conll", &"a NN\n# NN\n\n".repeat(sentences)).unwrap();
    assert!(plain.plain && plain.data.word(1) == Some("#"), "{}", plain.line());
    // Cells that are empty between tabs, far down.
    let tabs = "a\tNN\nb\tVB\n\n".repeat(sentences) + "c\t\tNN\n";
    let error = read("f", &tabs).unwrap_err().to_string();
    assert!(error.starts_with(&format!("f:{}: an empty or quoted cell", 3 * sentences + 1)), "{error}");
    let said = DataOptions { format: Some(Format::Conll), ..DataOptions::default() };
    assert_eq!(Dataset::read_with("f", tabs.as_bytes(), &said).unwrap().data.tokens(), 2 * sentences + 1);

    let tokens = 50_000;
    let line = format!("{{\"tokens\": [{}]}}\n", vec!["\"a\""; tokens].join(", "));
    let reading = read("f", &line.repeat(2)).unwrap();
    assert!(reading.plain && reading.format == Format::JsonLines, "{}", reading.line());
    assert_eq!((reading.data.sequences(), reading.data.tokens()), (2, 2 * tokens));
}
