//! Judges the labels of a dataset: `judge DIR DATA f32|f64|real [THREADS]`.
use std::path::Path;
use std::time::Instant;

use monolayer_core::Format;
use monolayer_core::read::{Limits, data, directory};
use monolayer_core::rules::ball::Ball;
use monolayer_core::rules::inputs::wanted;
use monolayer_core::rules::judge::{Inputs, Judge, Verdict};
use monolayer_core::rules::prepare::Prepared;
use monolayer_core::rules::sum::Arithmetic;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let limits = Limits::default();
    let clock = Instant::now();
    let (model, _) = directory::open(Path::new(&arguments[0]), &limits).unwrap();
    let kind = if arguments[1].ends_with(".jsonl") { data::Kind::JsonLines } else { data::Kind::Conll };
    let data = data::open(Path::new(&arguments[1]), kind, &limits).unwrap();
    eprintln!("read {:?}", clock.elapsed());
    let arithmetic = match arguments[2].as_str() {
        "f32" => Arithmetic::Float { format: Format::F32, exp_ulp: 4 },
        "f64" => Arithmetic::Float { format: Format::F64, exp_ulp: 4 },
        _ => Arithmetic::Real,
    };
    let inputs = Inputs::new(&model, &data).unwrap();
    let tolerance = Ball { m: 1, r: 0, e: arguments.get(4).map_or(-20, |t| t.parse().unwrap()) };
    let wanted = wanted(&model, &data, Some(tolerance)).unwrap();
    let prepared = Prepared::new(&model, arithmetic).unwrap();
    let judge = Judge::new(&prepared, &inputs);
    eprintln!("prepared {:?}", clock.elapsed());
    let threads = arguments.get(3).map_or(2, |t| t.parse().unwrap());
    let judged = judge.judge(&wanted, threads, &|_| {});
    let count = |v: Verdict| judged.iter().filter(|j| j.verdict == v).count();
    println!(
        "right {} wrong {} unknown {} in {:?}",
        count(Verdict::Right),
        count(Verdict::Wrong),
        count(Verdict::Unknown),
        clock.elapsed()
    );
    let overflow = judged.iter().filter(|j| j.verdict == Verdict::Unknown && j.margin.is_none()).count();
    println!("unknown without a margin: {overflow}");
    for (t, j) in judged.iter().enumerate().filter(|(_, j)| j.verdict == Verdict::Unknown).take(5) {
        println!("{t} {j:?}");
    }
}
