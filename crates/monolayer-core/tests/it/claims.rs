//! What a claim must not be called, and how long a judgement may take.

use std::time::{Duration, Instant};

use crate::common::{Files, Random, floats};
use monolayer_core::claims::rank;
use monolayer_core::claims::{Found, Request, check};
use monolayer_core::model::Model;
use monolayer_core::read::Limits;
use monolayer_core::read::certificate;
use monolayer_core::read::data::{Data, Kind, parse};
use monolayer_core::rules::judge::Verdict;

/// What is found of the claims of these kinds, or of the tokens and all claims, in real arithmetic.
fn ask(model: &Model, data: &Data, claims: &str, kinds: Option<&[String]>) -> Found {
    let hash = &data.hash;
    let text = format!(r#"{{"format":"monolayer-certificate/1","data":{{"hash":"{hash}"}},"claims":{claims}}}"#);
    let certificate = certificate::parse(text.as_bytes(), &Limits::default()).unwrap();
    let request = Request {
        model,
        hashes: &[const { None }; 4],
        certificate: Some(&certificate),
        data: Some(data),
        arithmetic: Some(None),
        tolerance: None,
        strict: false,
        kinds,
        bits: 8192,
        threads: 1,
        tick: &|_, _| (),
        each: &|_, _, _| (),
    };
    check(&request).unwrap()
}

fn data(lines: &str) -> Data {
    parse(lines.as_bytes(), Kind::JsonLines, &Limits::default()).unwrap()
}

/// A claim of no token claims nothing: it is not verified, whatever the model does, and neither is the whole.
#[test]
fn a_claim_of_no_token_is_not_verified() {
    let model = Files::honest().read().unwrap();
    let labels = ["labels".to_owned()];
    for line in [r#"{"tokens":["a","b"],"labels":["X","Y"]}"#, r#"{"tokens":["a","b"],"labels":["Y","X"]}"#] {
        for arithmetic in ["f32", "f64", "real"] {
            let claim = format!(r#"[{{"kind":"labels","arithmetic":"{arithmetic}","right":0}}]"#);
            let found = ask(&model, &data(line), &claim, Some(&labels));
            let claim = found.claims.iter().find(|claim| claim.kind == "labels").unwrap();
            assert_eq!(claim.verdict, Verdict::Unknown, "{}", claim.why);
            assert_ne!(found.verdict, Verdict::Right);
        }
    }
}

/// Random matrices have full rank, and a prime shows it in the third power of their size.
#[test]
fn full_rank_is_shown_and_a_lower_one_refuted() {
    const N: usize = 400;
    let mut random = Random(1);
    let entries: Vec<f32> = (0..N * N).map(|_| random.below(1 << 20) as f32 - 524_288.0).collect();
    let mut files = Files::honest();
    let shape = format!(r#""d":{N}"#);
    files = files.with(r#""d":2"#, &shape).with(r#""head_size":1"#, &format!(r#""head_size":{N}"#));
    files = files.with(r#""labels":["X","Y"]"#, r#""labels":null"#).with(r#""max_length":3"#, r#""max_length":null"#);
    files = files.with(r#""hidden":2"#, r#""hidden":0"#).with(r#"{"hidden":1}"#, "null");
    let of = |name: &str| floats(&format!("layers.0.attention.{name}"), &[1, N, N], &entries);
    files.tensors = ["w_q", "w_k", "w_v", "w_o"].map(of).to_vec();
    files.words = None;
    let model = files.read().unwrap();
    let start = Instant::now();
    assert_eq!(rank::check(&model, "layers.0.attention.w_k", N), Some(true));
    assert_eq!(rank::check(&model, "layers.0.attention.w_k", N - 1), Some(false));
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// Two heads with the same weights tie in real arithmetic, and no number of bits shows it: 60 such tokens stay unknown, but not after
/// work that grows with the square of their number times that of the bits.
#[test]
fn ties_that_no_bits_decide_end_soon() {
    let mut files = Files::honest();
    files = files.with(r#""heads":1"#, r#""heads":2"#).with(r#""max_length":3"#, r#""max_length":null"#);
    files = files.with(r#""hidden":2"#, r#""hidden":0"#).with(r#"{"hidden":1}"#, "null").with(r#""d":2"#, r#""d":3"#);
    let same = |name: &str| floats(&format!("layers.0.attention.{name}"), &[2, 1, 3], &[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    files.tensors = vec![
        floats("embedding.weight", &[2, 3], &[1.0, 0.0, 0.0, 2.0, 0.0, 0.0]),
        same("w_q"),
        same("w_k"),
        same("w_v"),
        floats("layers.0.attention.w_o", &[2, 3, 1], &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
        floats("head.weight", &[2, 3], &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
        floats("head.bias", &[2], &[0.0, 0.0]),
    ];
    let words = vec![r#""a","b","a""#; 20].join(",");
    let labels = vec![r#""X""#; 60].join(",");
    let data = data(&format!(r#"{{"tokens":[{words}],"labels":[{labels}]}}"#));
    let start = Instant::now();
    let found = ask(&files.read().unwrap(), &data, "[]", None);
    assert_ne!(found.verdict, Verdict::Wrong);
    // Without an end it would take hours; a busy machine may need some seconds.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
