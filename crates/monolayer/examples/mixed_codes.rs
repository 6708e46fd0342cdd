//! Compiles datasets with codes of mixed sizes and has every certificate checked.
//!
//!     cargo run --release -p monolayer --example mixed_codes -- PATH_OF_MONOLAYER [DATASETS] [FIRST]
//!
//! Ends with code 1 if the checker refutes a token that the compiler called proved, or the certificate's claim of labels.

#[path = "../tests/it/random/mixed_codes.rs"]
mod mixed_codes;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use monolayer::{Compiled, Dataset};
use serde_json::Value;

/// What became of the datasets.
#[derive(Debug, Default)]
struct Tally {
    /// Datasets that could not be compiled, by reason, and that were.
    not_compiled: BTreeMap<String, usize>,
    compiled: usize,
    /// Of these, with every possible token proved.
    complete: usize,
    /// Tokens: possible, called proved, refuted though called proved, and left open by the checker though called proved.
    possible: usize,
    proved: usize,
    refuted: usize,
    open: usize,
    /// Claims of labels that the checker refutes, and runs of it that failed.
    false_certificates: usize,
    failed: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(verifier) = arguments.first() else {
        eprintln!("give the path of the program that verifies");
        return ExitCode::from(2);
    };
    let number = |i: usize, default: u64| arguments.get(i).and_then(|x| x.parse().ok()).unwrap_or(default);
    let (count, first) = (number(1, 1_000), number(2, 0));
    let mut tally = Tally::default();
    for number in first..first + count {
        let dir = tempfile::tempdir().expect("a directory for temporary files");
        let (data, memorizer) = mixed_codes::draw(number, dir.path());
        let compiled = match memorizer.compile(&data) {
            Ok(compiled) => compiled,
            Err(error) => {
                // Without numbers, reasons are few.
                let reason = error.to_string().replace(|c: char| c.is_ascii_digit(), "");
                *tally.not_compiled.entry(reason).or_default() += 1;
                continue;
            }
        };
        let model = dir.path().join("model");
        compiled.save(&model).expect("a writable directory");
        tally.compiled += 1;
        tally.complete += usize::from(compiled.is_proved());
        tally.possible += data.tokens() - compiled.impossible().len();
        tally.proved += compiled.certified();
        if !tally.check(verifier, &model, &data, &compiled) {
            println!("dataset {number}: a false certificate");
        }
    }
    println!("{tally:#?}");
    if tally.refuted + tally.false_certificates + tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Tally {
    /// Runs the checker, and says whether it agrees.
    fn check(&mut self, verifier: &str, model: &Path, data: &Dataset, compiled: &Compiled) -> bool {
        let output = Command::new(verifier).args(["verify", "--json"]).arg(model).arg(&data.name).output();
        let report = output.ok().and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
        let Some(report) = report.filter(|report| report["verified"].is_u64()) else {
            self.failed += 1;
            return false;
        };
        let places = |list: &str| -> Vec<usize> {
            let list = report[list].as_array().map_or(&[][..], Vec::as_slice);
            list.iter().filter_map(|x| x["token"].as_u64()).map(|t| t as usize).collect()
        };
        let refuted = places("counterexamples").iter().filter(|&&t| compiled.proved()[t]).count();
        let verified = report["verified"].as_u64().map_or(0, |n| n as usize);
        let claims = report["claims"].as_array().map_or(&[][..], Vec::as_slice);
        let is_false = |claim: &&Value| claim["kind"] == "labels" && claim["verdict"] == "refuted";
        let possible = data.tokens() - compiled.impossible().len();
        // More tokens refuted than the compiler left open, even where the report lists only some.
        let too_many = report["refuted"].as_u64().map_or(0, |n| n as usize) + compiled.certified() > possible;
        let false_claims = claims.iter().filter(is_false).count() + usize::from(too_many);
        self.refuted += refuted;
        self.open += compiled.certified().saturating_sub(verified);
        self.false_certificates += false_claims;
        refuted + false_claims == 0
    }
}
