//! What readers of datasets and certificates read and refuse.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use crate::common::Random;
use monolayer_core::read::certificate::{self, Certificate, Claim};
use monolayer_core::read::data::{self, Data, Kind, Reader};
use monolayer_core::read::decimal::nearest;
use monolayer_core::read::{Limits, Result};
use monolayer_core::{Dyadic, Format};

fn conll(text: &[u8]) -> Result<Data> {
    data::parse(text, Kind::Conll, &Limits::default())
}

fn canonical_form(text: &[u8], kind: Kind) -> String {
    Reader::new(kind, &Limits::default()).with_canonical(text).unwrap().1
}

fn lines(text: &str) -> Result<Data> {
    data::parse(text.as_bytes(), Kind::JsonLines, &Limits::default())
}

#[test]
fn columns_sequences_and_separators() {
    let text = b"\xEF\xBB\xBF-DOCSTART- -X- O\r\n\r\na X O\r\nb\tY  P\r\n \t\nc X _\n-DOCSTART-\n d X O ";
    let data = conll(text).unwrap();
    assert_eq!(data.offsets, [0, 2, 3, 4]);
    assert_eq!([0, 1, 2, 3].map(|t| data.line(t)), [3, 4, 6, 8]);
    assert_eq!(data.values.names, ["a", "b", "c", "d"]);
    assert_eq!(data.tokens, [0, 1, 2, 3]);
    assert_eq!(data.labels, Some(vec![Some(0), Some(1), None, Some(0)]));
    assert_eq!(data.label_values.names, ["O", "P"]);
    let canonical = "{\"tokens\":[\"a\",\"b\"],\"labels\":[\"O\",\"P\"]}\n{\"tokens\":[\"c\"],\"labels\":[null]}\n{\"tokens\":[\"d\"],\"labels\":[\"O\"]}\n";
    assert_eq!(canonical_form(text, Kind::Conll), canonical);
    assert_eq!(data.hash, blake3::hash(canonical.as_bytes()).to_hex().as_str());
    // The canonical form is its own canonical form, and the same data.
    let again = lines(canonical).unwrap();
    assert_eq!((&again.hash, &again.tokens, &again.labels), (&data.hash, &data.tokens, &data.labels));
    let bare = conll(b"a\n_\n\nb").unwrap();
    assert_eq!(bare.labels, None);
    let bare = canonical_form(b"a\n_\n\nb", Kind::Conll);
    assert_eq!(bare, "{\"tokens\":[\"a\",\"_\"]}\n{\"tokens\":[\"b\"]}\n");
}

#[test]
fn lines_that_are_not_utf8_are_latin1() {
    let data = conll(b"caf\xE9 O\ncaf\xC3\xA9 O\n\xC3\xA9\xFF \xE9\n").unwrap();
    assert_eq!(data.values.names, ["caf\u{e9}", "\u{c3}\u{a9}\u{ff}"]);
    assert_eq!(data.label_values.names, ["O", "\u{e9}"]);
    assert_eq!(data.latin, [1, 3]);
    // A no-break space and a carriage return inside a line are parts of words.
    assert_eq!(conll("a\u{a0}b X\nc\rd\r X".as_bytes()).unwrap().values.names, ["a\u{a0}b", "c\rd\r"]);
}

#[test]
fn columns_are_refused() {
    for (text, says) in [
        (&b""[..], "no sequence"),
        (b"\n \n-DOCSTART- x\n", "no sequence"),
        (b"a O\nb\n", "line 2: 1 columns here, but 2 in line 1"),
        (b"a O\n\nb x y z O\n", "line 3"),
        (b"a O\n\0\n", "line 2: a NUL byte"),
        (b"{\"tokens\": [\"a\"]}", "JSON lines"),
        (b"\n{\"labels\": [\"a\"]}", "JSON lines"),
    ] {
        let e = conll(text).unwrap_err().to_string();
        assert!(e.contains(says), "{e}");
    }
    let long = [b"a ".repeat(8 << 20), b" ".to_vec()].concat();
    assert!(conll(&long).is_err());
}

#[test]
fn json_lines_of_all_kinds() {
    let text =
        "\u{feff}{\"tokens\": [\"a\", \"b\"], \"labels\": [3, -100]}\r\n\n \t\n{\"labels\":[null],\"tokens\":[\"\"]}";
    let data = lines(text).unwrap();
    assert_eq!((&data.tokens[..], [0, 1, 2].map(|t| data.line(t))), (&[0, 1, 2][..], [1, 1, 4]));
    assert_eq!((data.labels, &data.label_values.names[..]), (Some(vec![Some(0), None, None]), &["3".to_owned()][..]));
    assert_eq!(
        canonical_form(text.as_bytes(), Kind::JsonLines),
        "{\"tokens\":[\"a\",\"b\"],\"labels\":[3,null]}\n{\"tokens\":[\"\"],\"labels\":[null]}\n"
    );
    let text = "{\"tokens\":[7,-100,18446744073709551615,7]}";
    let data = lines(text).unwrap();
    assert_eq!((&data.tokens[..], &data.values.names[1][..]), (&[0, 1, 2, 0][..], "-100"));
    assert_eq!((data.labels, canonical_form(text.as_bytes(), Kind::JsonLines)), (None, format!("{text}\n")));
    let text = "{\"tokens\":[[0.0,1],[-0.0,1e0],[0.5,2]],\"labels\":[[1],null,[1.0]]}";
    let data = lines(text).unwrap();
    assert_eq!((&data.tokens[..], data.values.d, data.values.entries.len()), (&[0, 0, 1][..], 2, 4));
    assert_eq!(data.values.entries[2], Dyadic { m: 1, e: -1 });
    assert_eq!((data.labels, data.label_values.d), (Some(vec![Some(0), None, Some(0)]), 1));
    assert_eq!(canonical_form(text.as_bytes(), Kind::JsonLines), format!("{text}\n"));
    let all = lines("{\"tokens\":[\"a\"],\"labels\":[null]}").unwrap();
    assert_eq!(all.labels, Some(vec![None]));
    let escapes = "{\"tokens\":[\"\\u0041\\/\\\"\\\\\\b\\t\\n\\f\\r\\u001F\\u0000\u{7f}\u{2028}\\ud83d\\ude00\"]}";
    assert_eq!(
        canonical_form(escapes.as_bytes(), Kind::JsonLines),
        "{\"tokens\":[\"A/\\\"\\\\\\b\\t\\n\\f\\r\\u001f\\u0000\u{7f}\u{2028}\u{1F600}\"]}\n"
    );
    assert_eq!(lines("{\"tokens\":[\"_\"],\"labels\":[\"_\"]}").unwrap().label_values.names, ["_"]);
}

#[test]
fn json_lines_are_refused() {
    for (text, says) in [
        ("", "no sequence"),
        ("{\"tokens\":[]}", "empty"),
        ("{\"tokens\":[\"a\"],\"labels\":[1,2]}", "2 labels for 1"),
        ("{\"tokens\":[\"a\"],\"labels\":[1]}\n{\"tokens\":[\"a\"]}", "line 2: labels on some"),
        ("{\"tokens\":[\"a\"]}\n{\"tokens\":[\"a\"],\"labels\":[1]}", "line 2: labels on some"),
        ("{\"tokens\":[\"a\"],\"labels\":null}", "not a list"),
        ("{\"tokens\":\"a\"}", "not a list"),
        ("{\"labels\":[\"a\"]}", "it is not an object of exactly"),
        ("{\"tokens\":[\"a\"],\"id\":1}", "it is not an object of exactly"),
        ("[\"a\"]", "it is not an object of exactly"),
        ("{\"tokens\":[\"a\"],\"tokens\":[\"a\"]}", "appears twice"),
        ("{\"tokens\":[\"a\",1]}", "integers here, strings before"),
        ("{\"tokens\":[1,[1]]}", "vectors here, integers before"),
        ("{\"tokens\":[\"a\",null]}", "an item"),
        ("{\"tokens\":[true]}", "an item"),
        ("{\"tokens\":[{}]}", "an item"),
        ("{\"tokens\":[1.0]}", "an item"),
        ("{\"tokens\":[1e2]}", "an item"),
        ("{\"tokens\":[-0]}", "an item"),
        ("{\"tokens\":[18446744073709551616]}", "an item"),
        ("{\"tokens\":[\"a\",\"b\"],\"labels\":[1,\"X\"]}", "strings here"),
        ("{\"tokens\":[\"a\",\"b\"],\"labels\":[\"X\",-100]}", "integers here"),
        ("{\"tokens\":[\"a\"],\"labels\":[1.5]}", "an item"),
        ("{\"tokens\":[[1],[1,2]]}", "length 2 here, 1 before"),
        ("{\"tokens\":[[]]}", "length 0"),
        ("{\"tokens\":[[\"1\"]]}", "not a number"),
        ("{\"tokens\":[[1e999]]}", "range"),
        ("{\"tokens\":[[NaN]]}", "expected"),
        ("{\"tokens\":[\"\\ud800\"]}", "surrogate"),
        ("{\"tokens\":[\"a\"]} {\"tokens\":[\"a\"]}", "nothing more"),
        ("\u{feff}\u{feff}{\"tokens\":[\"a\"]}", "expected"),
        ("{\"tokens\":[\"\0\"]}", "NUL"),
    ] {
        let e = lines(text).expect_err(text).to_string();
        assert!(e.contains(says), "{text}: {e}");
    }
    let number = format!("{{\"tokens\":[[0.{}]]}}", "1".repeat(1300));
    assert!(lines(&number).unwrap_err().what.contains("too long"));
    assert!(data::parse(b"{\"tokens\":[\"\xFF\"]}", Kind::JsonLines, &Limits::default()).is_err());
}

#[test]
fn limits_have_names() {
    let limits = Limits::default();
    let text = b"a X\nb Y\n\nc Z\n";
    let limit = |limits: Limits| data::parse(text, Kind::Conll, &limits).unwrap_err().limit;
    assert_eq!(limit(Limits { bytes: 12, ..limits }), Some("bytes"));
    assert_eq!(limit(Limits { tokens: 2, ..limits }), Some("tokens"));
    assert_eq!(limit(Limits { length: 1, ..limits }), Some("length"));
    assert_eq!(limit(Limits { labels: 2, ..limits }), Some("labels"));
    let enough = Limits { bytes: 13, tokens: 3, length: 2, labels: 3, ..limits };
    assert!(data::parse(text, Kind::Conll, &enough).is_ok());
}

/// Nearest floats as the standard library finds them.
#[test]
fn decimals_are_read_to_the_nearest_float() {
    let check = |text: &str| {
        let x: f64 = text.parse().unwrap();
        assert_eq!(nearest(text), Dyadic::from_bits(Format::F64, x.to_bits()), "{text}");
    };
    let texts = "0 -0 -0.0e5 0e999999999999999999999 1 -1 0.1 123456789012345678901234567890 1e22 1e23 \
        9007199254740993 9007199254740992.9999 9007199254740995 5e-324 2.5e-324 2.4703282292062327e-324 \
        2.4703282292062328e-324 2.2250738585072011e-308 2.2250738585072014e-308 1.7976931348623157e308 \
        1.7976931348623158e308 1.797693134862315807e308 1.7976931348623159e308 1e309 1e-400 -1e400 \
        1e-99999999999999999999 1e99999999999999999999 0.000000000000000000000000000001e30 1E+2 1.50";
    for text in texts.split_whitespace() {
        check(text);
    }
    // A tie of subnormals, written out in full, and a last digit that breaks it.
    let tie = format!("{:.1080}", f64::from_bits(1)).trim_end_matches('0').to_owned();
    check(&tie);
    check(&format!("{tie}1"));
    let mut random = Random(1);
    for round in 0..20_000 {
        let bits =
            (random.below(1 << 31) as u64) << 33 ^ (random.below(1 << 31) as u64) << 12 ^ random.below(4096) as u64;
        let x = f64::from_bits(bits);
        if !x.is_finite() {
            continue;
        }
        check(&format!("{x:?}"));
        check(&format!("{x:e}"));
        // Halfway to the next number, exactly where it has few bits.
        let small = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | (1023 + 52 - 10 + round % 20) << 52);
        check(&format!("{small}{}5", if small.fract() == 0.0 { "." } else { "" }));
        let digits: String = (0..=random.below(40)).map(|_| char::from(b'0' + random.below(10) as u8)).collect();
        let digits = format!("1{digits}");
        check(&format!("{digits}e{}", random.below(700) as i64 - 370));
    }
}

fn naive(text: &str) -> (usize, usize, usize, usize) {
    let (mut tokens, mut sequences, mut inside) = (0, 0, false);
    let (mut words, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if columns.is_empty() || line.starts_with("-DOCSTART-") {
            inside = false;
            continue;
        }
        tokens += 1;
        sequences += usize::from(!inside);
        inside = true;
        words.insert(columns[0]);
        labels.insert(*columns.last().unwrap());
    }
    (tokens, sequences, words.len(), labels.len())
}

fn counts(data: &Data) -> (usize, usize, usize, usize) {
    (data.tokens.len(), data.offsets.len() - 1, data.values.names.len(), data.label_values.names.len())
}

#[test]
fn the_harbor_corpus() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/harbor.conll");
    let bytes = std::fs::read(path).unwrap();
    let data = conll(&bytes).unwrap();
    assert_eq!(counts(&data), naive(std::str::from_utf8(&bytes).unwrap()));
    assert_eq!(counts(&data), (243, 40, 77, 5));
    let again = lines(&canonical_form(&bytes, Kind::Conll)).unwrap();
    assert_eq!((&again.hash, &again.tokens, &again.labels), (&data.hash, &data.tokens, &data.labels));
    // Line ends, blank lines and a byte order mark change nothing.
    let other = format!("\u{feff}\n\n{}\n\n", std::str::from_utf8(&bytes).unwrap().replace('\n', "\r\n"));
    assert_eq!(conll(other.as_bytes()).unwrap().hash, data.hash);
}

/// Where MONOLAYER_CONLL names the directory of CoNLL-2003.
#[test]
fn the_conll_corpus_is_read_quickly() {
    let Ok(path) = std::env::var("MONOLAYER_CONLL") else {
        eprintln!("SKIPPED: set MONOLAYER_CONLL to the directory that holds eng.train");
        return;
    };
    let bytes = std::fs::read(std::path::Path::new(&path).join("eng.train")).unwrap();
    let started = Instant::now();
    let data = conll(&bytes).unwrap();
    let seconds = started.elapsed().as_secs_f64();
    println!("read in {seconds:.3} s");
    assert_eq!(counts(&data), naive(&String::from_utf8_lossy(&bytes)));
    assert_eq!(data.tokens.len(), 203_621);
    assert_eq!((data.offsets.len() - 1, data.values.names.len()), (14_041, 23_623));
    // It takes 0.2 s; other tests run beside it.
    assert!(seconds < 3.0, "{seconds} s");
}

fn certified(claims: &str, more: &str) -> String {
    format!(r#"{{"format":"monolayer-certificate/1","model":{{"config":"aa"}},"claims":[{claims}]{more}}}"#)
}

fn parse(text: &str) -> Result<Certificate<'_>> {
    certificate::parse(text.as_bytes(), &Limits::default())
}

#[test]
fn claims_are_read() {
    let claims = r#"{"kind":"labels","arithmetic":"f32","right":5,"undecided":[[1,2]],"smallest_margin_ratio":1.5},
        {"kind":"labels","arithmetic":"real","right":5},{"kind":"outputs","arithmetic":"f64","tolerance":1e-3},
        {"kind":"contextual-mapping","layer":0,"arithmetic":"real","log2_r":3,"log2_delta":-40.5},
        {"kind":"distance","p":2,"bound":0.1,"function":"x1","length":2},{"kind":"rank","tensor":"a","rank":1}"#;
    let text =
        certified(claims, r#","data":{"hash":"bb","tokens":5},"assumptions":{"exp_ulp":4.0},"hints":{"length":3}"#);
    let found = parse(&text).unwrap();
    assert_eq!(found.model, [Some("aa".into()), None, None, None]);
    assert_eq!((found.data.as_deref(), found.counts), (Some("bb"), [Some(5), None, None, None]));
    assert_eq!((found.exp_ulp, found.hints.get("length").size()), (Some(4), Some(3)));
    let (single, double) = (Some(Format::F32), Some(Format::F64));
    assert!(matches!(&found.claims[0], Claim::Labels(a, 5, Some(_)) if *a == single));
    assert!(matches!(&found.claims[1], Claim::Labels(None, 5, None)));
    assert!(matches!(&found.claims[2], Claim::Outputs(a, _) if *a == double));
    assert!(matches!(&found.claims[3], Claim::ContextualMapping(0, ..)));
    assert!(matches!(&found.claims[4], Claim::Distance { arithmetic: None, length: 2, .. }));
    assert!(matches!(&found.claims[5], Claim::Rank(name, 1) if name == "a"));
    let hinted = certified(r#"{"kind":"distance","p":2,"bound":0,"function":"x1"}"#, r#","hints":{"length":3}"#);
    assert!(matches!(parse(&hinted).unwrap().claims[0], Claim::Distance { length: 3, .. }));
}

#[test]
fn claims_that_stay_unknown() {
    for claim in [
        "5",
        "{}",
        r#"{"kind":"truth"}"#,
        r#"{"kind":"labels","right":5}"#,
        r#"{"kind":"labels","arithmetic":"f16","right":5}"#,
        r#"{"kind":"labels","arithmetic":"f32","right":-5}"#,
        r#"{"kind":"labels","arithmetic":"f32","right":5.0}"#,
        r#"{"kind":"labels","arithmetic":"f32","right":5,"smallest_margin_ratio":"1"}"#,
        r#"{"kind":"outputs","arithmetic":"f32"}"#,
        r#"{"kind":"outputs","arithmetic":"f32","tolerance":"1"}"#,
        r#"{"kind":"outputs","arithmetic":"f32","tolerance":1e99999999}"#,
        r#"{"kind":"contextual-mapping","layer":0,"arithmetic":"f32","log2_r":3,"log2_delta":-40}"#,
        r#"{"kind":"contextual-mapping","layer":0,"arithmetic":"real","log2_r":3}"#,
        r#"{"kind":"distance","p":2,"bound":0.1,"function":"x1"}"#,
        r#"{"kind":"distance","p":2,"bound":0.1,"function":"x1","length":null}"#,
        r#"{"kind":"distance","p":2,"bound":0.1,"function":"x1","length":2,"arithmetic":"f16"}"#,
        r#"{"kind":"rank","tensor":"a"}"#,
    ] {
        let text = certified(claim, "");
        assert!(matches!(parse(&text).unwrap().claims[..], [Claim::Other(_)]), "{claim}");
    }
}

#[test]
fn certificates_are_refused() {
    let rank = r#"{"kind":"rank","tensor":"a","rank":1}"#;
    assert_eq!(parse(&certified(&vec![rank; 64].join(","), "")).unwrap().claims.len(), 64);
    assert_eq!(parse(&certified(&vec![rank; 65].join(","), "")).unwrap_err().limit, Some("claims"));
    for text in [
        certified("", "").replace("/1", "/2"),
        certified("", "").replace("[]", "{}"),
        certified("", "").replace(r#""aa""#, "5"),
        certified("", "").replace(r#"{"config":"aa"}"#, "[]"),
        certified("", r#","data":{"hash":5}"#),
        certified("", r#","data":{"tokens":-1}"#),
        certified("", r#","data":{"tokens":"5"}"#),
        certified("", r#","data":"x""#),
        certified("", r#","assumptions":[]"#),
        certified("", r#","assumptions":{"exp_ulp":-1}"#),
        certified("", r#","assumptions":{"exp_ulp":1025}"#),
        certified("", r#","assumptions":{"exp_ulp":"4"}"#),
        certified("", r#","assumptions":{"exp_ulp":1e9}"#),
        certified("", r#","data":null,"data":null"#),
    ] {
        assert!(parse(&text).is_err(), "{text}");
    }
    assert!(parse(&certified("", "")).is_ok());
}
