//! `monolayer verify`: the independent checker.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use anyhow::Result;
use clap::ValueEnum;
use monolayer::data::{DataOptions, Format, Split};
use monolayer::{Dataset, Error};
use monolayer_check::error::Error as CheckError;
use monolayer_check::open_data::{self, Source};
use monolayer_check::options::set_limit;
use monolayer_check::{Options, Precision};

use super::data_args::tell;
use super::{DOES, Outcome, READS, ReadArgs, Shared, WRITES};
use crate::output::{Progress, with_flags};

/// Check a model and its certificate with an independent program, which shares no code with the compiler
///
/// The verdict is "verified" (exit code 0), "refuted" with a counterexample (1), "unknown" (1) or "error" (2). Everything is
/// recomputed from the weights and the data, with rounding errors bounded for every order in which sums can be computed.
/// Nothing in the certificate is taken on trust. "verified" means that everything that was asked was checked. Without DATA,
/// claims about labels cannot be checked, so the verdict is "unknown" unless --claims selects other kinds. If DATA is not the
/// certificate's dataset, its tokens are judged by themselves. With --against, the difference between two models is checked: that labels
/// change only where difference.json says so, for every sequence of the other model's words; DATA may be given as well.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer verify model train.conll --precision f32
         monolayer verify model --claims rank,distance
         monolayer verify model --text LICENSE
         monolayer verify edited --against model")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// The dataset: a file (CoNLL columns, CSV, TSV, JSON, NumPy arrays or safetensors, also compressed with gzip or zstd),
    /// task:NAME:alphabet=K,length=L, or - for standard input
    #[arg(value_name = "DATA")]
    data: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
    /// A text in place of DATA: the label of each token is the token that follows it
    #[arg(long, value_name = "FILE", conflicts_with = "data", help_heading = READS)]
    text: Option<String>,
    /// The tokens of a text: word or char (default: what the model was made from)
    #[arg(long, value_name = "KIND", value_parser = Split::from_str, help_heading = READS)]
    split: Option<Split>,
    /// Another model: check what DIR's difference.json says about both, for all sequences of its words
    #[arg(long, value_name = "DIR", help_heading = READS)]
    against: Option<PathBuf>,
    /// Arithmetic in which labels must be right (default: the model's own)
    #[arg(long, value_enum, help_heading = DOES)]
    precision: Option<CheckPrecisionArg>,
    /// Largest allowed error of an output coordinate (default: the certificate's)
    #[arg(long, value_name = "X", help_heading = DOES)]
    tolerance: Option<f64>,
    /// Check only claims of these kinds: labels, outputs, contextual-mapping, distance, rank
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', help_heading = DOES)]
    claims: Option<Vec<String>>,
    /// Ignore the certificate and check the model alone
    #[arg(long, help_heading = DOES)]
    ignore_certificate: bool,
    /// Also count tokens that no weights can get right
    #[arg(long, help_heading = DOES)]
    strict: bool,
    /// One refutation is enough: others need not be looked for
    #[arg(long, help_heading = DOES)]
    first: bool,
    /// Largest precision in bits for real arithmetic, where fewer bits do not decide
    #[arg(long, value_name = "N", default_value_t = Options::default().bits, help_heading = DOES)]
    bits: usize,
    /// Change a limit on input sizes: bytes (of the weights, and of the data), json (bytes of other files), dense (bytes of
    /// sparse tensors once dense), labels, claims, changes (between two models), tokens, length (of a sequence), pairs (of tokens of a sequence, for each head)
    #[arg(long, value_name = "NAME=N", help_heading = DOES)]
    limit: Vec<String>,
    /// Write the bounds computed for every token to this file, for other programs to check
    #[arg(long, value_name = "FILE", help_heading = WRITES)]
    witness: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum CheckPrecisionArg {
    F32,
    F64,
    Real,
}

/// What the tokens of the text were that the model says it was made from; a model that says nothing, or cannot be read, is
/// left to the checker.
fn split(model: &Path) -> Split {
    let config = std::fs::read(model.join("config.json")).ok();
    let config: Option<serde_json::Value> = config.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let source = config.map(|mut config| monolayer::Source::from_json(config["source"].take()));
    source.as_ref().and_then(monolayer::Source::text).map_or(Split::Word, |text| text.split)
}

impl Args {
    /// The data to judge tokens on.
    fn open(&self, options: &Options, shared: &Shared) -> Result<Option<Source>, CheckError> {
        if let Some(text) = &self.text {
            let words = self.split.unwrap_or_else(|| split(&self.model)) == Split::Word;
            let format = if words { monolayer_check::Format::Words } else { monolayer_check::Format::Characters };
            return open_data::open(text, Some(format), &options.limits).map(Some);
        }
        self.data.as_deref().map(|data| source(data, &self.read, options, shared)).transpose()
    }
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    if args.split.is_some() && args.text.is_none() {
        return Err(super::data_args::split_without_text().into());
    }
    let tokens = args.data.is_some() || args.text.is_some();
    let unit = match (args.against.is_some(), tokens) {
        (true, true) => "words, then tokens",
        (false, true) => "tokens",
        (_, false) => "words",
    };
    let progress = Progress::new(shared, "checking", 0, unit);
    let on_progress = |done: usize, total: usize| progress.at(done, total);
    let default = Options::default();
    let mut options = Options {
        precision: args.precision.map(|precision| match precision {
            CheckPrecisionArg::F32 => Precision::F32,
            CheckPrecisionArg::F64 => Precision::F64,
            CheckPrecisionArg::Real => Precision::Real,
        }),
        format: None,
        tolerance: args.tolerance,
        strict: args.strict,
        first: args.first,
        ignore_certificate: args.ignore_certificate,
        against: args.against.clone(),
        claims: args.claims.clone(),
        bits: args.bits,
        findings: if shared.verbose { usize::MAX } else { default.findings },
        threads: shared.threads.unwrap_or(default.threads),
        limits: default.limits,
        witness: args.witness.clone(),
        on_progress: Some(&on_progress),
    };
    for limit in &args.limit {
        set_limit(&mut options.limits, limit).map_err(|why| Error::setting(why, "write --limit NAME=N"))?;
    }
    let report = monolayer_check::verify_source(&args.model, || args.open(&options, shared), &options);
    drop(options);
    drop(progress);
    let (mut text, code) = (report.text(), report.verdict.exit_code());
    if report.error.is_some() && !shared.json {
        eprint!("{}", std::mem::take(&mut text));
    }
    Ok(Outcome { json: report.json(), text, code })
}

/// The dataset for the checker. What its own readers read, they read; everything else the library converts to the canonical
/// form, and the report says so.
fn source(name: &str, read: &ReadArgs, check: &Options, shared: &Shared) -> Result<Source, CheckError> {
    let limits = &check.limits;
    let options = DataOptions { most_bytes: Some(limits.bytes as u64), ..read.options() };
    if name.starts_with("task:") {
        Dataset::open_with(name, &options).map_err(|e| told(name, &e))?;
        return open_data::open(name, None, limits);
    }
    let bytes = open_data::bytes(name, limits)?;
    let shown = if name == "-" { "<stdin>" } else { name };
    let reading = Dataset::read_with(shown, bytes.as_slice(), &options).map_err(|e| told(shown, &e))?;
    tell(&reading, shared);
    let own = match reading.format {
        Format::Conll => Some(monolayer_check::Format::Conll),
        Format::JsonLines => Some(monolayer_check::Format::JsonLines),
        Format::Arrays => Some(monolayer_check::Format::Arrays),
        _ => None,
    };
    let hash = reading.data.hash();
    if let Some(format) = own.filter(|_| reading.plain) {
        // The checker reads it anew: both need not be in memory.
        drop(reading);
        let found = open_data::parse(shown, &bytes, format, limits)?;
        if found.data.hash != hash {
            let help = "this is a fault of the program: please report it with the file";
            return Err(CheckError::new(shown, "the checker and the library read this file differently", help));
        }
        return Ok(found);
    }
    drop(bytes);
    let kind = reading.format.title();
    let note =
        format!("converted from {kind} by the library: the verdict is about the canonical form, whose hash is {hash}");
    open_data::converted(shown, |mut to| reading.data.write_canonical(&mut to), note, limits)
}

/// An error of the library as one of the checker.
fn told(name: &str, error: &Error) -> CheckError {
    let message = with_flags(&error.to_string());
    let place = error.location().unwrap_or_else(|| name.to_owned());
    let message = message.strip_prefix(&format!("{place}: ")).unwrap_or(&message);
    let (what, help) = message.split_once("; ").unwrap_or((message, "check the file and its path"));
    CheckError::new(place, what, help)
}
