//! Many cases, on all cores.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use rayon::prelude::*;

use super::case::{Arithmetic, Case, Claim, Wanted};
use super::cases::{self, Menu};
use super::compare::{self, Outcome};
use super::files;
use super::random::Random;
use super::read;
use super::tally::Tally;

pub struct Tallies {
    pub all: Tally,
    pub by_kind: BTreeMap<String, Tally>,
    /// Models with a fault, by its kind.
    pub faults: BTreeMap<&'static str, usize>,
}

/// Failing models of each kind of fault that are written out.
const WRITTEN: usize = 8;

/// The name of a case: what is claimed, and how its numbers were drawn.
fn kind(case: &Case) -> String {
    let claim = match case.claim {
        Claim::Labels => "labels",
        Claim::Outputs(_) => "outputs",
        Claim::Mapping(..) => "mapping",
        Claim::Rank(..) => "rank",
        Claim::Distance(..) => "distance",
    };
    format!("{claim}, {}, {}", case.kind, case.arithmetic.name())
}

pub fn run(menu: &Menu, models: u64, evaluations: u64, seed: u64, out: &Path) -> Tallies {
    let by_kind: Mutex<BTreeMap<String, Tally>> = Mutex::default();
    let faults: Mutex<BTreeMap<&'static str, usize>> = Mutex::default();
    let each = (evaluations / models.max(1)) as usize;
    let one = |i: u64| {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(i));
        random.bits();
        let case = cases::case(&mut random, menu);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut outcome = compare::compare(&case, each, &mut random, dir.path());
        if !outcome.faults.is_empty() {
            outcome.tally.bad_models = 1;
            let mut kinds: Vec<&'static str> = outcome.faults.iter().map(|f| f.0).collect();
            kinds.dedup();
            let mut few = false;
            for kind in kinds {
                let mut faults = faults.lock().expect("no panic elsewhere");
                let count = faults.entry(kind).or_default();
                *count += 1;
                few |= *count <= WRITTEN;
            }
            if few {
                report(&case, (seed, i), &outcome, out);
            }
        }
        let mut map = by_kind.lock().expect("no panic elsewhere");
        let entry = map.entry(kind(&case)).or_default();
        *entry = entry.plus(outcome.tally);
        outcome.tally
    };
    let all = (0..models).into_par_iter().map(one).reduce(Tally::default, Tally::plus);
    let by_kind = by_kind.into_inner().expect("no panic elsewhere");
    Tallies { all, by_kind, faults: faults.into_inner().expect("no panic elsewhere") }
}

/// Writes a failing case, with what is wrong.
fn report(case: &Case, (seed, i): (u64, u64), outcome: &Outcome, out: &Path) {
    let dir = out.join(format!("seed-{seed}-model-{i}"));
    println!("model {i} of seed {seed} ({}), see {}:", kind(case), dir.display());
    let shown: Vec<String> = outcome.faults.iter().map(|(kind, what)| format!("{kind}: {what}")).collect();
    shown.iter().for_each(|fault| println!("  {fault}"));
    let text = format!("{}\n{}\n\n{}", kind(case), shown.join("\n"), outcome.report);
    if files::write(case, &dir).and_then(|()| fs::write(dir.join("faults.txt"), text)).is_err() {
        println!("  (it could not be written)");
    }
}

/// One directory of files: its labels, in the arithmetic of its numbers and in real arithmetic.
pub fn directory(dir: &Path, data: &Path, evaluations: usize) -> bool {
    let named = read::model(dir).expect("a model directory");
    let data = read::data(&named, data).expect("a dataset of this model");
    let own = if named.model.single { Arithmetic::Single } else { Arithmetic::Double };
    let outputs = matches!(data.wanted.first().and_then(|w| w.first()), Some(Wanted::Output(_)));
    let mut sound = true;
    for arithmetic in [own, Arithmetic::Real] {
        let claim = if outputs { Claim::Outputs(1e-3) } else { Claim::Labels };
        let case = Case { kind: "file", model: named.model.clone(), data: data.clone(), arithmetic, claim };
        let place = tempfile::tempdir().expect("a temporary directory");
        let outcome = compare::compare(&case, evaluations, &mut Random(1), place.path());
        println!("{}:\n{}", arithmetic.name(), outcome.tally.text());
        outcome.faults.iter().for_each(|(kind, what)| println!("  {kind}: {what}"));
        sound &= outcome.tally.sound();
    }
    sound
}
