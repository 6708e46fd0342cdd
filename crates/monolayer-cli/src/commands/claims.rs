//! `monolayer claims`: every statement of the paper, run.

use std::time::Instant;

use anyhow::Result;
use monolayer::Error;
use monolayer_lab::claims::{self, Claim, Context, Finding, Outcome as Found, Verdict, all};
use serde_json::json;

use super::{DOES, Outcome, READS, ReadArgs, Shared};
use crate::output::{Progress, table};

/// Test every statement of the paper numerically, and print a verdict with its evidence
///
/// A statement "holds", "holds after repair" or is "false as printed"; what is not right as printed comes with a counterexample.
/// What the paper does not say, but a reader may think, is "not in the paper". "Holds" means that no test here contradicts it:
/// that is evidence, not a proof. -v shows the printed formulas. Exit code 1 if a verdict differs from the one in docs/paper.md,
/// or if a run fails.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer claims --only theorem-1 -v")]
pub struct Args {
    /// Corpus for statements about corpora, words with class labels (default: the embedded corpus)
    #[arg(long, value_name = "FILE", help_heading = READS)]
    data: Option<String>,
    /// Run larger tests
    #[arg(long, help_heading = DOES)]
    full: bool,
    /// Run only statements whose id starts with this; may be repeated
    #[arg(long, value_name = "ID", help_heading = DOES)]
    only: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let chosen: Vec<&'static Claim> =
        all().filter(|c| args.only.is_empty() || args.only.iter().any(|id| c.id.starts_with(id.as_str()))).collect();
    if chosen.is_empty() {
        let ids: Vec<&str> = all().map(|claim| claim.id).collect();
        let what = format!("no claim begins with {}", args.only.join(" or "));
        return Err(Error::setting(what, format!("there are {}", ids.join(", "))).into());
    }
    let data = args.read.open_some(args.data.as_deref(), shared)?;
    let context = Context::new(data, args.full)?;
    let progress = Progress::new(shared, "running", chosen.len(), "claims");
    let start = Instant::now();
    let found = claims::run(&chosen, &context, || progress.add(1));
    drop(progress);
    let red = found.iter().filter(|outcome| !outcome.agrees()).count();
    let json = json!({
        "claims": found.iter().map(Found::json).collect::<Vec<_>>(),
        "data": context.data.name,
        "disagree": red,
        "seconds": start.elapsed().as_secs_f64(),
    });
    let text = if shared.verbose { found.iter().map(at_length).collect() } else { in_a_table(&found) };
    Ok(Outcome::decided(json, format!("{text}\n{}", summary(&found, red)), red == 0))
}

fn verdict(outcome: &Found) -> String {
    match (outcome.verdict(), outcome.documented) {
        (None, _) if outcome.finding.is_ok() => "DOES NOT HOLD (NOT IN THE PAPER)".to_owned(),
        (None, _) => "COULD NOT RUN".to_owned(),
        (Some(verdict), _) if outcome.agrees() => verdict.name().to_owned(),
        (Some(verdict), Some(documented)) => format!("{} (DOCUMENTED: {})", verdict.name(), documented.name()),
        (Some(verdict), None) => format!("{} (NOT DOCUMENTED)", verdict.name()),
    }
}

fn evidence(outcome: &Found) -> String {
    outcome.finding.as_ref().map_or_else(ToString::to_string, Finding::evidence)
}

/// Two lines per claim: the statement, and what was found.
fn in_a_table(found: &[Found]) -> String {
    let mut rows = vec![["claim", "verdict", "statement"].map(str::to_owned).to_vec()];
    for outcome in found {
        let claim = outcome.claim;
        rows.push(vec![claim.id.to_owned(), verdict(outcome), format!("{}: {}", claim.number, claim.statement)]);
        rows.push(vec![String::new(), String::new(), format!("  {}", clipped(&evidence(outcome)))]);
    }
    table(&rows, &[1, 2])
}

/// As much of a text as fits a line beside the other columns.
fn clipped(text: &str) -> String {
    const MOST: usize = 110;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    format!("{} ...", text.chars().take(MOST - 4).collect::<String>().trim_end_matches([' ', ';']))
}

/// All there is to say about a claim.
fn at_length(outcome: &Found) -> String {
    let claim = outcome.claim;
    let counterexample = outcome.finding.as_ref().ok().and_then(|finding| finding.counterexample.as_deref());
    let rows = [
        ("printed", claim.printed),
        ("verdict", &verdict(outcome)),
        ("run", &format!("{} ({:.2} s)", claim.run, outcome.seconds)),
        ("found", &evidence(outcome)),
        ("counterexample", counterexample.unwrap_or_default()),
        ("note", claim.note),
        ("code", &format!("{} ({})", claim.code.0, claim.code.1)),
        ("mutation", claim.mutation),
    ];
    let shown = rows.iter().filter(|row| !row.1.is_empty());
    let lines: Vec<String> = shown.map(|(name, text)| format!("  {name:<16}{text}\n")).collect();
    format!("{} ({}): {}\n{}\n", claim.id, claim.number, claim.statement, lines.concat())
}

fn summary(found: &[Found], red: usize) -> String {
    let count = |verdict: Verdict| found.iter().filter(|outcome| outcome.verdict() == Some(verdict)).count();
    let agree = if red == 0 { "all as documented".to_owned() } else { format!("{red} NOT AS DOCUMENTED") };
    format!(
        "{} statements: {} hold, {} hold after repair, {} are false as printed, {} are not in the paper; {agree}\n\
         next: monolayer claims --only ID -v, with the printed formulas\n",
        found.len(),
        count(Verdict::Holds),
        count(Verdict::HoldsAfterRepair),
        count(Verdict::FalseAsPrinted),
        count(Verdict::NotInThePaper),
    )
}
