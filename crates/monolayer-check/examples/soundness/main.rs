//! Does the checker ever say something that is not so?
//!
//! Random small models and datasets; whatever the checker calls verified or refuted is compared with an evaluation to 2000
//! bits and with 20 programs that sum in random orders. `cargo run --release -p monolayer-check --example soundness -- --models 10000`

mod bound;
mod exact;
mod floats;
mod models;
mod random;

use monolayer_check::Precision;
use monolayer_check::dataset::Labels;
use monolayer_check::decide::Decision;
use monolayer_check::labels::Pass;

use rayon::prelude::*;

use floats::Program;
use models::Case;
use random::Random;

#[derive(Default)]
struct Tally {
    right: usize,
    wrong: usize,
    open: usize,
    exceptions: usize,
    /// Tokens whose margin is over four times the textbook bound, and how many of them stayed open.
    clear: usize,
    clear_open: usize,
}

impl Tally {
    fn plus(self, other: Self) -> Self {
        Self {
            right: self.right + other.right,
            wrong: self.wrong + other.wrong,
            open: self.open + other.open,
            exceptions: self.exceptions + other.exceptions,
            clear: self.clear + other.clear,
            clear_open: self.clear_open + other.clear_open,
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str, default: u64| {
        arguments.iter().position(|a| a == name).map_or(default, |i| arguments[i + 1].parse().expect("a number"))
    };
    let (models, seed) = (value("--models", 1000), value("--seed", 1));
    let mut failed = false;
    for precision in [Precision::F32, Precision::F64, Precision::Real] {
        let run = |i: u64| {
            let mut tally = Tally::default();
            let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(i));
            let case = models::case(&mut random);
            check(&case, precision, &mut random, &mut tally, i);
            tally
        };
        let tally = (0..models).into_par_iter().map(run).reduce(Tally::default, Tally::plus);
        println!(
            "{:>4}: {models} models: {} verified, {} refuted, {} unknown; {} exceptions; {} of {} tokens with a margin over \
             four textbook bounds unknown",
            precision.name(),
            tally.right,
            tally.wrong,
            tally.open,
            tally.exceptions,
            tally.clear_open,
            tally.clear
        );
        failed |= tally.exceptions > 0 || tally.clear_open * 100 > tally.clear;
    }
    std::process::exit(i32::from(failed));
}

fn check(case: &Case, precision: Precision, random: &mut Random, tally: &mut Tally, number: u64) {
    let rounded = case.model.clone().rounded_to_f32().expect("small numbers");
    let model = if precision == Precision::F32 { &rounded } else { &case.model };
    let dataset = &case.dataset;
    let skip = vec![false; dataset.tokens()];
    let pass = Pass {
        model: &case.model,
        dataset,
        precision,
        exp_ulp: 4.0,
        tolerance: None,
        skip: &skip,
        first: false,
        bits: 2048,
    };
    let outcome = pass.run().expect("a well-formed case");
    let Labels::Classes(classes, _) = &dataset.labels else { unreachable!() };
    for i in 0..dataset.sequences() {
        let range = dataset.range(i);
        let ids = &dataset.ids[range.clone()];
        let scores: Vec<_> = exact::sequence(model, ids).iter().map(|output| exact::scores(model, output)).collect();
        let mut seen: Vec<Vec<usize>> = scores.iter().map(|s| vec![exact::arg_max(s)]).collect();
        for _ in 0..20 {
            let labels = match precision {
                Precision::F32 => Program { random, zero: 0.0_f32 }.labels(model, ids),
                Precision::F64 => Program { random, zero: 0.0_f64 }.labels(model, ids),
                Precision::Real => break,
            };
            for (seen, label) in seen.iter_mut().zip(labels) {
                seen.push(label);
            }
        }
        for (place, t) in range.enumerate() {
            let wanted = classes[t] as usize;
            let decision = outcome.decisions[t].as_ref().expect("every token is decided");
            let exception = match decision {
                Decision::Right(_) => seen[place].iter().any(|&label| label != wanted),
                Decision::Wrong(_) => seen[place].contains(&wanted),
                Decision::Open(..) => false,
            };
            tally.right += usize::from(matches!(decision, Decision::Right(_)));
            tally.wrong += usize::from(matches!(decision, Decision::Wrong(_)));
            let open = matches!(decision, Decision::Open(..));
            tally.open += usize::from(open);
            if exception {
                tally.exceptions += 1;
                println!(
                    "exception: model {number} ({}), token {t}: {decision:?}, seen {:?}, wanted {wanted}",
                    case.kind, seen[place]
                );
            }
            let unit = match precision {
                Precision::F32 => f64::from(f32::EPSILON) / 2.0,
                _ => f64::EPSILON / 2.0,
            };
            let best = |skip: usize| {
                let others =
                    scores[place].iter().enumerate().filter(|(l, _)| *l != skip).map(|(_, s)| s.to_f64().value());
                others.fold(f64::NEG_INFINITY, f64::max)
            };
            let margin = (scores[place][wanted].to_f64().value() - best(wanted)).abs();
            if let Some(bound) = bound::bound(model, ids, place, unit, 4.0)
                && margin > 4.0 * bound
            {
                tally.clear += 1;
                tally.clear_open += usize::from(open);
            }
        }
    }
}
