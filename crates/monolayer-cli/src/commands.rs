//! The commands: one file each.

mod approximate;
mod bench;
mod claims;
mod context;
mod data;
mod demo;
mod exact_layer;
mod experiment;
mod explain;
mod hardmax;
mod inspect;
mod memorize;
mod predict;
mod report;
mod train;
mod unquantized;
mod verify;

use std::str::FromStr;

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};
use monolayer::data::Format;
use monolayer::paper::attention::Mask;
use monolayer::{Dataset, Error};

/// Compile a dataset into a Transformer with ONE rank-1 self-attention layer, and prove that it works.
///
/// Exit codes: 0 if the command succeeded and what it checked holds; 1 if something was refuted, could not be decided, or
/// falls short of what was asked; 2 if the command could not run.
#[derive(Parser)]
#[command(name = "monolayer", version, max_term_width = 110, after_help = "Start with: monolayer demo")]
pub struct Cli {
    #[command(flatten)]
    pub shared: Shared,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(clap::Args)]
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

#[derive(Subcommand)]
enum Command {
    Data(data::Args),
    Context(context::Args),
    Memorize(memorize::Args),
    Approximate(approximate::Args),
    Verify(verify::Args),
    Predict(predict::Args),
    Inspect(inspect::Args),
    Explain(explain::Args),
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
    match &cli.command {
        Command::Data(args) => data::run(args, &cli.shared),
        Command::Context(args) => context::run(args, &cli.shared),
        Command::Memorize(args) => memorize::run(args, &cli.shared),
        Command::Approximate(args) => approximate::run(args, &cli.shared),
        Command::Verify(args) => verify::run(args, &cli.shared),
        Command::Predict(args) => predict::run(args, &cli.shared),
        Command::Inspect(args) => inspect::run(args, &cli.shared),
        Command::Explain(args) => explain::run(args, &cli.shared),
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

/// A dataset on the command line.
#[derive(clap::Args)]
pub struct DataArgs {
    /// The dataset: a CoNLL file, .jsonl, .safetensors, task:NAME:alphabet=K,length=L, or - for standard input
    #[arg(value_name = "DATA")]
    data: String,
    /// Format of the file, if its extension does not tell: conll, jsonl, safetensors
    #[arg(long, value_name = "KIND", value_parser = Format::from_str)]
    format: Option<Format>,
}

impl DataArgs {
    /// Reads the dataset and passes its warnings on.
    fn open(&self, shared: &Shared) -> Result<Dataset, Error> {
        let data = Dataset::open_as(&self.data, self.format)?;
        if !shared.quiet {
            data.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        }
        Ok(data)
    }
}

/// Which tokens a token attends to.
#[derive(Clone, Copy, ValueEnum)]
pub enum MaskArg {
    /// All tokens of its sequence
    None,
    /// Itself and the tokens before it
    Causal,
}

impl From<MaskArg> for Mask {
    fn from(mask: MaskArg) -> Self {
        match mask {
            MaskArg::None => Self::None,
            MaskArg::Causal => Self::Causal,
        }
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
