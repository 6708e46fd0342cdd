//! `monolayer verify`: the independent checker.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use monolayer::Error;
use monolayer_check::options::set_limit;
use monolayer_check::{Options, Precision};

use super::{Outcome, Shared};
use crate::output::Tokens;

/// Check a model against a dataset, and its certificate, with a program that shares no code with the compiler
///
/// The verdict is "verified" (exit code 0), "refuted" with a counterexample, "unknown" (both 1), or "error" (2). Everything
/// is recomputed from the model's numbers and the data, rounding errors included; nothing that the certificate says is
/// believed. "verified" means that all that was asked was checked: without DATA, claims about labels are not checked, and
/// the verdict is "unknown" unless --claims asks for others. Data other than the certificate's is judged by itself.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer verify model train.conll --precision f32
         monolayer verify model --claims rank,distance")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// The dataset: a CoNLL file, .jsonl, .safetensors, or - for standard input
    #[arg(value_name = "DATA")]
    data: Option<String>,
    /// The kind of file, where its ending does not tell: conll, jsonl, safetensors
    #[arg(long, value_enum, value_name = "KIND")]
    format: Option<FormatArg>,
    /// The arithmetic that labels must hold in (default: the model's own)
    #[arg(long, value_enum, help_heading = "What is asked")]
    precision: Option<PrecisionArg>,
    /// How near vector outputs must be (default: what the certificate claims)
    #[arg(long, value_name = "X", help_heading = "What is asked")]
    tolerance: Option<f64>,
    /// Check claims of these kinds and nothing else: labels, outputs, contextual-mapping, distance, rank
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', help_heading = "What is asked")]
    claims: Option<Vec<String>>,
    /// Leave the certificate aside and check the model alone
    #[arg(long, help_heading = "What is asked")]
    ignore_certificate: bool,
    /// Count tokens that no weights can get right, too
    #[arg(long, help_heading = "What is asked")]
    strict: bool,
    /// Be content with the first refutation
    #[arg(long, help_heading = "What is asked")]
    first: bool,
    /// Bits up to which real arithmetic goes on where fewer cannot tell
    #[arg(long, value_name = "N", default_value_t = Options::default().bits, help_heading = "How far it goes")]
    bits: usize,
    /// Raise or lower a limit on what is read: bytes (of the numbers, and of the data), json (bytes of other files),
    /// dense (bytes of sparse tensors once dense), labels, claims, tokens, length (of a sequence), pairs
    /// (of tokens of a sequence, for each head)
    #[arg(long, value_name = "NAME=N", help_heading = "How far it goes")]
    limit: Vec<String>,
    /// Write the enclosures that were found of every token, for others to check
    #[arg(long, value_name = "FILE", help_heading = "How far it goes")]
    witness: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum PrecisionArg {
    F32,
    F64,
    Real,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatArg {
    Conll,
    Jsonl,
    Safetensors,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let progress = Tokens::new(shared, "checking");
    let on_progress = |done: usize, total: usize| progress.at(done, total);
    let default = Options::default();
    let mut options = Options {
        precision: args.precision.map(|precision| match precision {
            PrecisionArg::F32 => Precision::F32,
            PrecisionArg::F64 => Precision::F64,
            PrecisionArg::Real => Precision::Real,
        }),
        format: args.format.map(|format| match format {
            FormatArg::Conll => monolayer_check::Format::Conll,
            FormatArg::Jsonl => monolayer_check::Format::JsonLines,
            FormatArg::Safetensors => monolayer_check::Format::Arrays,
        }),
        tolerance: args.tolerance,
        strict: args.strict,
        first: args.first,
        ignore_certificate: args.ignore_certificate,
        claims: args.claims.clone(),
        bits: args.bits,
        findings: if shared.verbose { usize::MAX } else { default.findings },
        threads: shared.threads.unwrap_or(default.threads),
        limits: default.limits,
        witness: args.witness.clone(),
        on_progress: Some(&on_progress),
    };
    for limit in &args.limit {
        set_limit(&mut options.limits, limit).map_err(|why| Error::request(why, "write --limit NAME=N"))?;
    }
    let report = monolayer_check::verify(&args.model, args.data.as_deref(), &options);
    drop(options);
    drop(progress);
    let (mut text, code) = (report.text(), report.verdict.exit_code());
    if report.error.is_some() && !shared.json {
        eprint!("{}", std::mem::take(&mut text));
    }
    Ok(Outcome { json: report.json(), text, code })
}
