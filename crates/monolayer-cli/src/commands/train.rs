//! `monolayer train`: gradient descent on the paper's architecture, or on its baselines.

mod options;
mod report;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::approximate::expression::Expression;
use monolayer::approximate::function::Function as _;
use monolayer::data::LabelScheme;
use monolayer::{Dataset, Error};
use monolayer_train::Options;
use monolayer_train::checkpoint::Progress as Checkpoint;
use monolayer_train::metrics::Metrics;
use monolayer_train::run::{Event, Job, Now, train};
use monolayer_train::training_data::{Function, Source};

use self::options::Overrides;
use super::{Outcome, READS, ReadArgs, Shared, WRITES, has_model};
use crate::interrupt;
use crate::output::{Progress, count};

/// Train a Transformer with rank-1 attention (eq. 20), or with attention of any rank
///
/// DIR becomes a model directory that predict, verify and PyTorch can read. It also contains metrics.jsonl, with one line
/// per evaluation, and checkpoint.safetensors. The checkpoint is written at each evaluation and when Ctrl-C stops the run;
/// --resume continues from it and gives the same bytes as a run that was not stopped.
///
/// Unknown words get a row of the embedding: the mean of the rows of words that occur once, or a trained row with
/// --word-dropout. The model format has no layer norm, so with --layer-norm DIR contains metrics and checkpoint only.
///
/// All options below --config can also be set in a configuration file, with _ instead of -. Options on the command line
/// take precedence.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer train train.conll --out model\n\n\
    More:\n  \
    monolayer train train.conll --out model --config configs/paper-3-layers.toml --dev dev.conll\n  \
    monolayer train train.conll --out baseline --rank full --tied=false --positions\n  \
    monolayer train train.conll --resume model --epochs 100\n  \
    monolayer train --function \"mean(x1); x1*x2\" --dim 2 --length 4 --out model")]
pub struct Args {
    /// The dataset: a file (CoNLL columns, CSV, TSV, JSON, NumPy arrays or safetensors, also compressed with gzip or zstd),
    /// task:NAME:alphabet=K,length=L, or - for standard input
    #[arg(value_name = "DATA", required_unless_present = "function", conflicts_with = "function")]
    data: Option<String>,
    /// Learn a function instead of a dataset, written as for `approximate`; every epoch samples new points of the unit cube
    #[arg(long, value_name = "EXPR", requires = "length", requires = "dim", help_heading = READS)]
    function: Option<String>,
    /// With --function: number n of tokens in a sequence
    #[arg(long, value_name = "N", requires = "function", help_heading = READS)]
    length: Option<usize>,
    /// With --function: number of sequences in an epoch
    #[arg(long, value_name = "N", default_value_t = 4096, help_heading = READS)]
    samples: usize,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE", help_heading = READS)]
    config: Option<PathBuf>,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    overrides: Overrides,
    /// The directory to write
    #[arg(long, value_name = "DIR", required_unless_present = "resume", conflicts_with = "resume", help_heading = WRITES)]
    out: Option<PathBuf>,
    /// Replace the model and the finished run in the directory, if there is one
    #[arg(long, requires = "out", help_heading = WRITES)]
    force: bool,
    /// Continue the run in this directory; only --epochs and --eval-every may change
    #[arg(long, value_name = "DIR", conflicts_with = "config", help_heading = WRITES)]
    resume: Option<PathBuf>,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let overrides = args.overrides.table()?;
    if let Some(out) = args.out.as_deref().filter(|out| !args.force && has_model(out)) {
        let help = "add --force to replace it, or choose another directory";
        return Err(Error::model(out, "a model is there already", help).into());
    }
    let options = match &args.resume {
        Some(dir) => resumed(&Checkpoint::read(dir)?.options, overrides)?,
        None => Options::read(args.config.as_deref(), overrides)?,
    };
    let dev = options.dev.as_deref().map(|dev| args.open(dev, options.labels, shared)).transpose()?;
    let out = args.resume.as_deref().or(args.out.as_deref()).expect("one of them is there");
    match (&args.data, &args.function) {
        (Some(data), _) => {
            let data = args.open(data, options.labels, shared)?;
            run_on(
                args,
                shared,
                Job { source: Source::Data(&data), dev: dev.as_ref(), options: &options, out, fixed: &[] },
            )
        }
        (None, function) => {
            let (text, dim) = (function.as_deref().unwrap_or_default(), options.dim.unwrap_or(0));
            let program = Expression::parse(text, dim)?.at_length(args.length.unwrap_or(0))?;
            let apply = |x: &[f64], y: &mut [f64]| program.values(x, y);
            let text = program.expression().text().to_owned();
            let function = Function { text, dim, length: program.length(), samples: args.samples, apply: &apply };
            run_on(
                args,
                shared,
                Job { source: Source::Function(&function), dev: dev.as_ref(), options: &options, out, fixed: &[] },
            )
        }
    }
}

/// Trains, watched and stoppable.
fn run_on(args: &Args, shared: &Shared, job: Job) -> Result<Outcome> {
    interrupt::catch()?;
    let steps = job.options.epochs * job.source.sequences().div_ceil(job.options.batch);
    let progress = Progress::new(shared, "training", steps, "steps");
    let mut done = 0;
    let finished = train(&job, args.resume.is_some(), &mut |event| {
        match event {
            Event::Step(now) => {
                let at = (now.epoch - 1) * now.steps + now.step;
                progress.say(figures(now));
                progress.add(at - done);
                done = at;
            }
            Event::Evaluated(metrics) => progress.line(&line(metrics)),
        }
        if interrupt::pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    drop(progress);
    Ok(report::outcome(&job, &args.source(), &finished))
}

/// The options of a run to go on with: only those that do not change what was done so far may be new.
fn resumed(options: &Options, overrides: toml::Table) -> Result<Options, Error> {
    let new = options.with(overrides)?;
    let same = Options { epochs: options.epochs, eval_every: options.eval_every, ..new.clone() };
    if same != *options {
        let help = "leave them out: a run goes on with the options it was started with";
        return Err(Error::setting("only --epochs and --eval-every may change when a run is resumed", help));
    }
    Ok(new)
}

impl Args {
    fn open(&self, source: &str, scheme: LabelScheme, shared: &Shared) -> Result<Dataset, Error> {
        scheme.apply(self.read.open(source, shared)?)
    }

    /// What is trained on, as it stands on the command line.
    fn source(&self) -> String {
        let function = |text: &String| format!("--function {text:?} --length {}", self.length.unwrap_or(0));
        self.data.clone().or_else(|| self.function.as_ref().map(function)).unwrap_or_default()
    }
}

/// The figures of the bar.
fn figures(now: &Now) -> String {
    let accuracy = now.accuracy.map_or_else(String::new, |share| format!("  right {share:.4}"));
    format!("epoch {}/{}  loss {:.5}{accuracy}", now.epoch, now.epochs, now.loss)
}

/// One evaluation as a line.
fn line(metrics: &Metrics) -> String {
    let mut line = format!("epoch {:>4}  loss {:.5}", metrics.epoch, metrics.train_loss);
    if let Some(accuracy) = metrics.train_accuracy {
        line += &format!("  train {accuracy:.5}");
    }
    if let Some(dev) = &metrics.dev {
        line += &dev.loss.map_or_else(String::new, |loss| format!("  dev loss {loss:.5}"));
        line += &dev.accuracy.map_or_else(String::new, |share| format!("  dev {share:.5}"));
        line += &dev.f1.map_or_else(String::new, |f1| format!("  F1 {f1:.4}"));
    }
    if let Some(rate) = metrics.tokens_per_second {
        line += &format!("  {} tokens/s", count(rate as usize));
    }
    line
}

/// A directory as it stands on a command line.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
