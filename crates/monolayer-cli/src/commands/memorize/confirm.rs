//! The checker is run on what was compiled before anything is claimed about it.

use std::path::Path;

use anyhow::Result;
use monolayer::Dataset;
use monolayer_check::{Options, Verdict};
use serde_json::Value;

use super::Args;
use crate::commands::{Outcome, Shared};
use crate::output::Progress;

/// Adds what the checker says to an outcome; a certificate that it does not confirm is taken away.
pub fn confirm(args: &Args, dir: &Path, data: &Dataset, shared: &Shared, mut outcome: Outcome) -> Result<Outcome> {
    if args.unchecked {
        outcome.json["checked"] = Value::Null;
        outcome.text += "not checked: the certificate is the compiler's own proof; monolayer verify checks it\n";
        return Ok(outcome);
    }
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile()?;
    data.write_canonical(&mut file)?;
    let progress = Progress::new(shared, "checking", 0, "tokens");
    let on_progress = |done: usize, total: usize| progress.at(done, total);
    let mut default = Options::default();
    // Limits are there for files of strangers: what was just compiled is looked at whole.
    let pairs = data.ranges().map(|range| range.len().saturating_mul(range.len())).fold(0, usize::saturating_add);
    default.limits.pairs = default.limits.pairs.max(pairs);
    let threads = shared.threads.unwrap_or(default.threads);
    let options = Options { on_progress: Some(&on_progress), threads, ..default };
    let report = monolayer_check::verify(dir, file.path().to_str(), &options);
    drop(options);
    drop(progress);
    let open: Vec<&str> =
        report.claims.iter().filter(|c| c.verdict != Verdict::Verified).map(|c| c.kind.as_str()).collect();
    let confirmed = report.error.is_none() && report.not_checked.is_empty() && open.is_empty();
    outcome.json["checked"] = report.verdict.name().into();
    if confirmed {
        let margin = margin(report.smallest_margin_ratio);
        outcome.text += &format!("checked: every claim of the certificate{margin}, in {:.1} s\n", report.seconds);
        return Ok(outcome);
    }
    std::fs::remove_file(dir.join("certificate.json"))?;
    let why = report.error.map_or_else(|| open.join(", "), |(what, _)| what);
    outcome.text += &format!("the checker does not confirm the certificate ({why}): it was taken away\n");
    outcome.code = outcome.code.max(1);
    Ok(outcome)
}

/// The checker's smallest margin, for people.
pub fn margin(ratio: Option<f64>) -> String {
    let number = |ratio: f64| if ratio < 1e4 { format!("{ratio:.2}") } else { format!("{ratio:.1e}") };
    ratio.map_or(String::new(), |ratio| format!("; margins are at least {} times their error bounds", number(ratio)))
}
