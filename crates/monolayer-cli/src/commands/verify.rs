//! `monolayer verify`: the independent checker.

use std::path::PathBuf;

use clap::ValueEnum;
use monolayer_check::{Options, Precision};

use super::{Outcome, Shared};

/// Check a model against a dataset, and its certificate, with a program that shares no code with the compiler
///
/// The verdict is "verified" (exit code 0), "refuted" with a counterexample, "unknown" (both 1), or "error" (2). Everything
/// is recomputed from the model's numbers and the data, rounding errors included; nothing that the certificate says is
/// believed. Without DATA only claims that need none are checked.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer verify model train.conll --precision f32")]
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
    #[arg(long, value_enum)]
    precision: Option<PrecisionArg>,
    /// How near vector outputs must be (default: what the certificate claims)
    #[arg(long, value_name = "X")]
    tolerance: Option<f64>,
    /// Count tokens that no weights can get right, too
    #[arg(long)]
    strict: bool,
    /// Stop at the first refutation
    #[arg(long)]
    first: bool,
    /// Bits up to which real arithmetic goes on where f64 cannot tell
    #[arg(long, value_name = "N", default_value_t = Options::default().bits)]
    bits: usize,
    /// Leave the certificate aside and check the model alone
    #[arg(long)]
    ignore_certificate: bool,
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

pub fn run(args: &Args, shared: &Shared) -> Outcome {
    let options = Options {
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
        bits: args.bits,
        findings: if shared.verbose { usize::MAX } else { Options::default().findings },
    };
    let report = monolayer_check::verify(&args.model, args.data.as_deref(), &options);
    let (mut text, code) = (report.text(), report.verdict.exit_code());
    if report.error.is_some() && !shared.json {
        eprint!("{}", std::mem::take(&mut text));
    }
    Outcome { json: report.json(), text, code }
}
