//! Does the checker ever say something that is not so?
//!
//! Random models with numbers from subnormal to overflow, and programs that are covered by a certificate and climb towards a
//! contradiction: any order of summation, any fusing, an exponential off by its ulps, weights normalized before or after.
//! Whatever the checker says (of tokens, claims, and every quantity it encloses) is compared with what they do.
//!
//! `cargo run --release -p monolayer-check --example soundness -- --models 100000 --evaluations 10000000`
//!
//! `--kinds labels,outputs,mapping,rank,distance,compiled,gated,library` and `--scales ordinary,wild,mixed,balanced,saturated,edge`
//! choose what is drawn; `--directory DIR DATA` looks at one directory instead; failing models are written to `--out DIR`.

pub(crate) mod adapter;
pub(crate) mod case;
pub(crate) mod cases;
pub(crate) mod climb;
pub(crate) mod compare;
pub(crate) mod compiled;
pub(crate) mod draw;
pub(crate) mod exact;
pub(crate) mod files;
pub(crate) mod float;
pub(crate) mod functions;
pub(crate) mod graph;
pub(crate) mod program;
pub(crate) mod random;
pub(crate) mod read;
pub(crate) mod run;
pub(crate) mod sum;
pub(crate) mod tally;
pub(crate) mod truth;

use std::path::PathBuf;
use std::time::Instant;

use cases::{KINDS, Menu};
use draw::SCALES;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let number = |name: &str, default: u64| after(name).map_or(default, |x| x.parse().expect("a number"));
    let out = PathBuf::from(after("--out").map_or("target/soundness", |s| s.as_str()));
    if let Some(dir) = after("--directory") {
        let at = arguments.iter().position(|a| a == "--directory").expect("it is there");
        let data = arguments.get(at + 2).expect("a dataset after the directory");
        std::process::exit(i32::from(!run::directory(
            dir.as_ref(),
            data.as_ref(),
            number("--evaluations", 2000) as usize,
        )));
    }
    let mut menu = Menu { second: adapter::SECOND_FORMAT, ..Menu::default() };
    if let Some(list) = after("--kinds") {
        menu.kinds = KINDS.into_iter().filter(|k| list.split(',').any(|x| x == *k)).collect();
    }
    if let Some(list) = after("--scales") {
        menu.scales = SCALES.into_iter().filter(|(_, k)| list.split(',').any(|x| x == *k)).collect();
    }
    assert!(!menu.kinds.is_empty() && !menu.scales.is_empty(), "nothing to draw from: see the names in main.rs");
    let (models, seed) = (number("--models", 1000), number("--seed", 1));
    let evaluations = number("--evaluations", 100 * models);
    let start = Instant::now();
    let tallies = run::run(&menu, models, evaluations, seed, &out);
    for (kind, tally) in &tallies.by_kind {
        println!("{kind}:\n{}\n", tally.text());
    }
    for (kind, count) in &tallies.faults {
        println!("{kind}: {count} models");
    }
    println!("all:\n{}\n{:.1} seconds", tallies.all.text(), start.elapsed().as_secs_f64());
    std::process::exit(i32::from(!tallies.all.sound()));
}
