//! `monolayer verify`: the independent checker.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use monolayer::Error;
use monolayer_check::options::set_limit;
use monolayer_check::{Options, Precision};

use super::{Outcome, Shared};
use crate::output::Tokens;

/// Check a model and its certificate with an independent program, which shares no code with the compiler
///
/// The verdict is "verified" (exit code 0), "refuted" with a counterexample (1), "unknown" (1) or "error" (2). Everything is
/// recomputed from the weights and the data, with rounding errors bounded for every order in which sums can be computed.
/// Nothing in the certificate is taken on trust. "verified" means that everything that was asked was checked. Without DATA,
/// claims about labels cannot be checked, so the verdict is "unknown" unless --claims selects other kinds. If DATA is not the
/// certificate's dataset, its tokens are judged by themselves.
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
    /// Format of the file, if its extension does not tell: conll, jsonl, safetensors
    #[arg(long, value_enum, value_name = "KIND")]
    format: Option<FormatArg>,
    /// Arithmetic in which labels must be right (default: the model's own)
    #[arg(long, value_enum, help_heading = "What to check")]
    precision: Option<CheckPrecisionArg>,
    /// Largest allowed error of an output coordinate (default: the certificate's)
    #[arg(long, value_name = "X", help_heading = "What to check")]
    tolerance: Option<f64>,
    /// Check only claims of these kinds: labels, outputs, contextual-mapping, distance, rank
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', help_heading = "What to check")]
    claims: Option<Vec<String>>,
    /// Ignore the certificate and check the model alone
    #[arg(long, help_heading = "What to check")]
    ignore_certificate: bool,
    /// Also count tokens that no weights can get right
    #[arg(long, help_heading = "What to check")]
    strict: bool,
    /// One refutation is enough: others need not be looked for
    #[arg(long, help_heading = "What to check")]
    first: bool,
    /// Largest precision in bits for real arithmetic, where fewer bits do not decide
    #[arg(long, value_name = "N", default_value_t = Options::default().bits, help_heading = "Limits and output")]
    bits: usize,
    /// Change a limit on input sizes: bytes (of the weights, and of the data), json (bytes of other files), dense (bytes of
    /// sparse tensors once dense), labels, claims, tokens, length (of a sequence), pairs (of tokens of a sequence, for each head)
    #[arg(long, value_name = "NAME=N", help_heading = "Limits and output")]
    limit: Vec<String>,
    /// Write the bounds computed for every token to this file, for other programs to check
    #[arg(long, value_name = "FILE", help_heading = "Limits and output")]
    witness: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum CheckPrecisionArg {
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
            CheckPrecisionArg::F32 => Precision::F32,
            CheckPrecisionArg::F64 => Precision::F64,
            CheckPrecisionArg::Real => Precision::Real,
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
        set_limit(&mut options.limits, limit).map_err(|why| Error::setting(why, "write --limit NAME=N"))?;
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
