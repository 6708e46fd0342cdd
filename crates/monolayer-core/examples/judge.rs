//! Judges the labels of a dataset: `judge DIR DATA f32|f64|real [THREADS]`.
use std::path::Path;
use std::time::Instant;

use monolayer_core::Format;
use monolayer_core::exact::real::Rational;
use monolayer_core::read::{Limits, certificate, data, directory};
use monolayer_core::rules::claims::{Request, check};
use monolayer_core::rules::judge::Verdict;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let limits = Limits::default();
    let clock = Instant::now();
    let (model, hashes) = directory::open(Path::new(&arguments[0]), &limits).unwrap();
    let kind = if arguments[1].ends_with(".jsonl") { data::Kind::JsonLines } else { data::Kind::Conll };
    let data = data::parse(&std::fs::read(&arguments[1]).unwrap(), kind, &limits).unwrap();
    let bytes = std::fs::read(Path::new(&arguments[0]).join("certificate.json")).ok();
    let certificate = bytes.as_ref().map(|bytes| certificate::parse(bytes, &limits).unwrap());
    eprintln!("read {:?}", clock.elapsed());
    let request = Request {
        model: &model,
        hashes: &hashes,
        certificate: certificate.as_ref(),
        data: Some(&data),
        arithmetic: match arguments[2].as_str() {
            "f32" => Some(Some(Format::F32)),
            "f64" => Some(Some(Format::F64)),
            "real" => Some(None),
            _ => None,
        },
        tolerance: arguments.get(4).and_then(|t| Rational::parse(t, &mut 1000)),
        strict: false,
        kinds: None,
        bits: 8192,
        threads: arguments.get(3).map_or(2, |t| t.parse().unwrap()),
        tick: &|_, _| {},
    };
    let found = check(&request).unwrap();
    println!("{:?} not checked {:?}", found.verdict, found.not_checked);
    for claim in &found.claims {
        println!("{claim:?}");
    }
    let Some(pass) = &found.pass else { return };
    let count = |v: Verdict| pass.tokens.iter().filter(|j| j.verdict == v).count();
    let (right, wrong, unknown) = (count(Verdict::Right), count(Verdict::Wrong), count(Verdict::Unknown));
    let hopeless = found.impossible.iter().filter(|x| **x).count();
    println!("right {right} wrong {wrong} unknown {unknown} impossible {hopeless} in {:?}", clock.elapsed());
    for (t, j) in pass.tokens.iter().enumerate().filter(|(_, j)| j.verdict == Verdict::Unknown).take(5) {
        println!("{t} {j:?}");
    }
}
