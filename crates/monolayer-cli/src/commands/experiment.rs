//! `monolayer experiment`: the figures.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use monolayer::Error;
use monolayer_lab::experiment::{self, Settings, run as frame};
use serde_json::{Map, Value, json};

use super::{DOES, Outcome, READS, ReadArgs, Shared, WRITES};
use crate::interrupt;
use crate::output::Progress;

/// Run an experiment: measurements over a grid of parameters, figures, and a summary
///
/// The results are written to a directory: config.json, points.jsonl (one line per grid point, as soon as it is known),
/// figures/*.svg and summary.md. A run that was stopped continues when it is started again with the same --out.
/// `monolayer report DIR` shows it on a page.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer experiment separation --quick --out runs/separation")]
pub struct Args {
    /// Experiment: figure1, separation, hardmax, precision, capacity, duplicates, similarity, depth, rank, fixed-projection,
    /// approximation
    #[arg(value_name = "NAME")]
    name: String,
    /// Dataset instead of the embedded or generated one (figure1, precision, depth, rank, fixed-projection)
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    /// JSON file with parameters; those not named keep their defaults
    #[arg(long, value_name = "FILE", help_heading = READS)]
    config: Option<PathBuf>,
    /// A small version that takes seconds; its figures are noisy
    #[arg(long, help_heading = DOES)]
    quick: bool,
    /// Seeds (default: 1,2,3; 1 with --quick)
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = DOES)]
    seeds: Vec<u64>,
    /// Directory of the run (default: runs/NAME, or runs/NAME-quick)
    #[arg(long, value_name = "DIR", help_heading = WRITES)]
    out: Option<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let experiment = experiment::named(&args.name)?;
    let seeds = match (&args.seeds[..], args.quick) {
        ([], true) => vec![1],
        ([], false) => vec![1, 2, 3],
        (seeds, _) => seeds.to_vec(),
    };
    let mut settings = Settings::new(experiment.as_ref(), args.quick, seeds, args.changes()?)?;
    settings.data = args.read.open_some(args.data.as_deref(), shared)?;
    if settings.data.is_some() && !experiment.takes_data() {
        return Err(Error::setting(format!("{} generates its data", args.name), "leave --data out").into());
    }
    let suffix = if args.quick { "-quick" } else { "" };
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/{}{suffix}", args.name)));
    let progress = Arc::new(Progress::new(shared, "measuring", experiment.grid(&settings)?.len(), "points"));
    let lines = Arc::clone(&progress);
    settings.say = Box::new(move |line| lines.line(line));
    interrupt::catch()?;
    settings.stop = interrupt::pressed;
    let outcome = frame::run(experiment.as_ref(), &settings, &out, &|_, _| progress.add(1))?;
    drop(progress);
    let json = json!({
        "experiment": args.name,
        "out": out,
        "points": outcome.points,
        "kept": outcome.kept,
        "figures": outcome.figures.iter().map(|figure| &figure.name).collect::<Vec<_>>(),
        "summary": outcome.summary,
    });
    let kept = if outcome.kept > 0 { format!(", {} of them from before", outcome.kept) } else { String::new() };
    let text = format!(
        "{}\n\n{} points{kept}, in {}\nnext: monolayer report {2}\n",
        outcome.summary.trim(),
        outcome.points,
        out.display()
    );
    Ok(Outcome::done(json, text))
}

impl Args {
    /// The parameters that the user changes.
    fn changes(&self) -> Result<Map<String, Value>> {
        let Some(path) = &self.config else { return Ok(Map::new()) };
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        let fail = |what: String| Error::model(path, what, "write an object such as {\"length\": [2, 4]}");
        match serde_json::from_str(&text).map_err(|e| fail(e.to_string()))? {
            Value::Object(changes) => Ok(changes),
            other => Err(fail(format!("{other} is not an object")).into()),
        }
    }
}
