//! The commands: one file each.

mod approximate;
mod bench;
mod claims;
mod context;
mod data;
mod data_args;
mod demo;
mod diff;
mod edit;
mod exact_layer;
mod experiment;
mod explain;
mod export;
mod generate;
mod hardmax;
mod inspect;
pub mod mask;
mod memorize;
mod predict;
mod report;
mod train;
mod unit_words;
mod unquantized;
mod verify;

use std::path::Path;

use anyhow::Result;
use clap::{Arg, ArgAction, CommandFactory as _, Parser, Subcommand};
use monolayer::Dataset;

use self::data_args::{DataArgs, ReadArgs};
use crate::output::{Progress, say};

/// The groups of options in `--help`, in this order.
const READS: &str = "What it reads";
const DOES: &str = "What it does";
const WRITES: &str = "What it writes";
const COMMON: &str = "Common options";

/// Behind every other option of its group.
const LAST: usize = 1000;

/// Compile a dataset into a Transformer with ONE rank-1 self-attention layer, and prove that it works.
///
/// Exit codes: 0 if the command succeeded and what it checked holds; 1 if something was refuted, could not be decided, or
/// falls short of what was asked; 2 if the command could not run.
#[derive(Parser)]
#[command(name = "monolayer", version, max_term_width = 110, after_help = "Start with: monolayer demo")]
#[command(disable_help_flag = true, disable_version_flag = true, arg = help(), arg = version())]
pub struct Cli {
    #[command(flatten)]
    pub shared: Shared,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(clap::Args)]
#[command(next_help_heading = COMMON)]
pub struct Shared {
    /// Print the result as one JSON object on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Show no warnings and no progress
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Show more detail
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Number of threads (default: all cores); results do not depend on it
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<usize>,
}

/// The last of the common options. Clap's own would stand in a group of its own.
fn help() -> Arg {
    Arg::new("help")
        .short('h')
        .long("help")
        .help("Print help: -h a summary, --help all of it")
        .action(ArgAction::Help)
        .global(true)
        .help_heading(COMMON)
        .display_order(LAST)
}

/// An option of the program alone.
fn version() -> Arg {
    Arg::new("version")
        .short('V')
        .long("version")
        .help("Print the version")
        .action(ArgAction::Version)
        .help_heading(COMMON)
        .display_order(LAST)
}

#[derive(Subcommand)]
enum Command {
    Data(data::Args),
    Context(context::Args),
    Memorize(memorize::Args),
    Approximate(approximate::Args),
    Verify(verify::Args),
    Predict(predict::Args),
    Generate(generate::Args),
    Inspect(inspect::Args),
    Explain(explain::Args),
    Edit(edit::Args),
    Diff(diff::Args),
    Export(export::Args),
    Hardmax(hardmax::Args),
    Unquantized(unquantized::Args),
    Claims(claims::Args),
    Train(Box<train::Args>),
    Experiment(experiment::Args),
    Report(report::Args),
    Demo(demo::Args),
    Bench(bench::Args),
    /// Print shell completions
    #[command(
        after_help = "Example: monolayer completions bash > ~/.local/share/bash-completion/completions/monolayer"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What a command found: for machines, for people, and the exit code.
pub struct Outcome {
    pub json: serde_json::Value,
    pub text: String,
    pub code: u8,
}

impl Outcome {
    fn done(json: serde_json::Value, text: String) -> Self {
        Self::decided(json, text, true)
    }

    /// Exit code 0 if it holds, 1 if not.
    fn decided(json: serde_json::Value, text: String, holds: bool) -> Self {
        Self { json, text, code: u8::from(!holds) }
    }
}

pub fn run(cli: &Cli) -> Result<Outcome> {
    // Whatever a command does, there is a sign of life.
    let name = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    let _alive = Progress::new(&cli.shared, &name, 0, "");
    match &cli.command {
        Command::Data(args) => data::run(args, &cli.shared),
        Command::Context(args) => context::run(args, &cli.shared),
        Command::Memorize(args) => memorize::run(args, &cli.shared),
        Command::Approximate(args) => approximate::run(args, &cli.shared),
        Command::Verify(args) => verify::run(args, &cli.shared),
        Command::Predict(args) => predict::run(args, &cli.shared),
        Command::Generate(args) => generate::run(args, &cli.shared),
        Command::Inspect(args) => inspect::run(args, &cli.shared),
        Command::Explain(args) => explain::run(args, &cli.shared),
        Command::Edit(args) => edit::run(args, &cli.shared),
        Command::Diff(args) => diff::run(args, &cli.shared),
        Command::Export(args) => export::run(args),
        Command::Hardmax(args) => hardmax::run(args, &cli.shared),
        Command::Unquantized(args) => unquantized::run(args, &cli.shared),
        Command::Claims(args) => claims::run(args, &cli.shared),
        Command::Train(args) => train::run(args, &cli.shared),
        Command::Experiment(args) => experiment::run(args, &cli.shared),
        Command::Report(args) => report::run(args, &cli.shared),
        Command::Demo(args) => demo::run(args, &cli.shared),
        Command::Bench(args) => bench::run(args, &cli.shared),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "monolayer", &mut script);
            let script = String::from_utf8(script)?;
            Ok(Outcome::done(serde_json::json!({ "script": script }), script))
        }
    }
}

/// Whether a directory has a model that would be replaced.
fn has_model(dir: &Path) -> bool {
    dir.join("config.json").exists()
}

/// Says so where a model is about to be replaced.
fn replacing(dir: &Path, shared: &Shared) {
    if has_model(dir) {
        say(shared, &format!("replacing the model in {}", dir.display()));
    }
}

/// A token of a dataset, for `--json`: where it stands, what it is, and its label.
fn place_json(data: &Dataset, t: usize) -> serde_json::Value {
    let place = data.location(t);
    serde_json::json!({
        "line": place.line,
        "sequence": place.sequence,
        "token": place.token,
        "text": data.token_text(t),
        "label": data.label_text(t),
    })
}
