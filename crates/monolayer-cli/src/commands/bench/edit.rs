//! `monolayer bench edit`: random edits of a model compiled from data.

use std::time::Instant;

use anyhow::Result;
use monolayer::edit::Outcome as EditOutcome;
use monolayer::{Dataset, Memorizer};
use monolayer_lab::edit_bench::{self, EditRuns};
use serde_json::{Value, json};

use super::super::{DOES, Outcome, READS, Shared};
use crate::output::{Progress, count, percent};

/// Random edits of a model compiled from data, one at a time and all at once: how many are certified, and what they cost
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench edit --data train.conll --edits 1000")]
pub struct Args {
    /// The dataset
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: String,
    /// Number of edits
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = DOES)]
    edits: usize,
    /// Seed of the edits
    #[arg(long, default_value_t = 0, help_heading = DOES)]
    seed: u64,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let data = Dataset::open(&args.data)?;
    let start = Instant::now();
    let compiled = Memorizer::new().compile(&data)?;
    let compile_seconds = start.elapsed().as_secs_f64();
    let progress = Progress::new(shared, "editing", args.edits, "edits");
    let runs = edit_bench::run(compiled.model(), &data, args.edits, args.seed, &|n| progress.add(n))?;
    drop(progress);
    let json = json!({
        "threads": rayon::current_num_threads(),
        "tokens": data.tokens(),
        "dtype": compiled.model().config().dtype,
        "compile_seconds": compile_seconds,
        "load_seconds": runs.load_seconds,
        "single": summary(&runs.single, &[
            ("milliseconds", mean(&runs.milliseconds).into()),
            ("milliseconds_most", runs.milliseconds.iter().copied().fold(0.0, f64::max).into()),
        ]),
        "together": summary(&runs.together, &[
            ("seconds", runs.seconds.into()),
            ("other_tokens_changed", runs.changed.into()),
            ("edited_tokens_wrong", runs.missed.into()),
        ]),
        "seconds": start.elapsed().as_secs_f64(),
    });
    let holds = runs.changed == 0 && runs.missed == 0;
    Ok(Outcome::decided(json, text(&runs), holds))
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

/// How many edits were made, and the units that each took on average.
fn made(outcomes: &[EditOutcome]) -> (usize, f64) {
    let units = |outcome: &EditOutcome| match outcome {
        EditOutcome::Made { units } => Some(*units as f64),
        EditOutcome::Unchanged => Some(0.0),
        EditOutcome::Refused { .. } => None,
    };
    let units: Vec<f64> = outcomes.iter().filter_map(units).collect();
    (units.len(), mean(&units))
}

fn summary(outcomes: &[EditOutcome], more: &[(&str, Value)]) -> Value {
    let (certified, units) = made(outcomes);
    let refused = |outcome: &EditOutcome| match outcome {
        EditOutcome::Refused { why, found, needed } => {
            Some(json!({ "why": why, "distance_found": found, "distance_needed": needed }))
        }
        _ => None,
    };
    let mut json = json!({
        "edits": outcomes.len(),
        "certified": certified,
        "share": certified as f64 / outcomes.len().max(1) as f64,
        "units_per_edit": units,
        "refused": outcomes.iter().filter_map(refused).collect::<Vec<_>>(),
    });
    more.iter().for_each(|(name, value)| json[*name] = value.clone());
    json
}

fn text(runs: &EditRuns) -> String {
    let line = |outcomes: &[EditOutcome]| {
        let (certified, units) = made(outcomes);
        let (share, all) = (percent(certified, outcomes.len()), outcomes.len());
        format!("{} of {} edits certified ({share}), {units:.2} units each", count(certified), count(all))
    };
    let slowest = runs.milliseconds.iter().copied().fold(0.0, f64::max);
    let mut text = format!(
        "one at a time: {}, {:.1} ms each, at most {slowest:.1}\n",
        line(&runs.single),
        mean(&runs.milliseconds)
    );
    for outcome in &runs.single {
        if let EditOutcome::Refused { why, found, needed } = outcome {
            let number = |x: &Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2e}"));
            text += &format!("  refused: {why}; distance found {}, needed {}\n", number(found), number(needed));
        }
    }
    text += &format!("all at once: {}, {:.2} s\n", line(&runs.together), runs.seconds);
    text += &format!(
        "run on the data: {} tokens of other contexts changed, {} tokens of edited contexts without their label\n",
        count(runs.changed),
        count(runs.missed)
    );
    text
}
