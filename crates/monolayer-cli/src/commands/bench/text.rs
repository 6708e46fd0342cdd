//! `monolayer bench text`: a long text memorized, recited and checked.

use std::time::Instant;

use anyhow::Result;
use monolayer::data::{Split, word_majority};
use monolayer::model::AttentionSums;
use monolayer::{Compiled, Dataset, Error, Memorizer, Precision};
use monolayer_check::{Options, Report};
use monolayer_lab::text_bench::{Recitation, recite, zipf_text};
use serde_json::json;

use super::Outcome;
use crate::commands::{DOES, Shared};
use crate::output::{Progress, count, percent};

/// A made-up text: memorized, recited token by token, and checked
///
/// The words of the text follow Zipf's law, from a seed. Printed are the accuracy with attention off, how far the text is recited
/// without an error, how many tokens are certified, and what each step takes. The verdict is the checker's.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench text --tokens 5000")]
pub struct Args {
    /// Number of tokens of the text
    #[arg(long, default_value_t = 5_000, help_heading = DOES)]
    tokens: usize,
    /// Seed of the text
    #[arg(long, default_value_t = 1, help_heading = DOES)]
    seed: u64,
    /// Arithmetic of the model; auto: f32 where every possible token is proved in it, else f64
    #[arg(long, value_parser = ["auto", "f32", "f64"], default_value = "auto", help_heading = DOES)]
    precision: String,
    /// Do not run the checker, which takes the longest
    #[arg(long, help_heading = DOES)]
    unchecked: bool,
}

/// A text that was memorized, and the seconds that it took.
struct MemorizedText {
    data: Dataset,
    compiled: Compiled,
    seconds: f64,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    if args.tokens == 0 {
        return Err(Error::setting("`tokens` of 0", "try 5000").into());
    }
    let start = Instant::now();
    let data = zipf_text(args.tokens, args.seed)?;
    let precision = match args.precision.as_str() {
        "f32" => Precision::F32,
        "f64" => Precision::F64,
        _ => Precision::Auto,
    };
    let progress = Progress::new(shared, "searching", 0, "projections");
    let memorizer = Memorizer::new().text(Split::Word).precision(precision);
    let compiled = memorizer.on_progress(|tried, _gap| progress.add(tried)).compile(&data)?;
    drop(progress);
    let text = MemorizedText { data, compiled, seconds: start.elapsed().as_secs_f64() };
    let progress = Progress::new(shared, "reciting", args.tokens, "tokens");
    let recited = recite(text.compiled.model(), &text.data, |tokens| progress.add(tokens))?;
    drop(progress);
    let off = text.compiled.model().without_attention();
    let off = off.predict_by(&text.data, AttentionSums::LinearTime, &|_| ())?;
    let off = off.accuracy(&text.data, text.compiled.model().label_names()).unwrap_or(0.0);
    let report = if args.unchecked { None } else { Some(check(&text, shared)?) };
    let possible = text.compiled.possible();
    let holds = report.as_ref().is_none_or(|report| report.refuted == 0 && report.error.is_none())
        && text.compiled.right() == possible;
    Ok(Outcome::decided(
        json_of(args, &text, &recited, off, report.as_ref(), start.elapsed().as_secs_f64()),
        text_of(&text, &recited, off, report.as_ref()),
        holds,
    ))
}

/// What the checker says of the model and its text, all pairs of tokens allowed.
fn check(text: &MemorizedText, shared: &Shared) -> Result<Report> {
    let scratch = tempfile::tempdir()?;
    let dir = scratch.path().join("model");
    text.compiled.save(&dir)?;
    let path = scratch.path().join("text.jsonl");
    text.data.write_canonical(&mut std::fs::File::create(&path)?)?;
    let progress = Progress::new(shared, "checking", 0, "tokens");
    let on_progress = |done: usize, total: usize| progress.at(done, total);
    let mut default = Options::default();
    default.limits.pairs = default.limits.pairs.max(text.data.tokens().saturating_mul(text.data.tokens()));
    let threads = shared.threads.unwrap_or(default.threads);
    let options = Options { on_progress: Some(&on_progress), threads, ..default };
    Ok(monolayer_check::verify(&dir, path.to_str(), &options))
}

fn json_of(
    args: &Args,
    text: &MemorizedText,
    recited: &Recitation,
    off: f64,
    report: Option<&Report>,
    seconds: f64,
) -> serde_json::Value {
    let config = text.compiled.model().config();
    json!({
        "threads": rayon::current_num_threads(),
        "tokens": text.data.tokens(),
        "seed": args.seed,
        "words": text.compiled.model().vocabulary().map(monolayer::data::Vocabulary::len),
        "dtype": config.dtype,
        "hidden": config.layers[0].hidden - text.compiled.spare(),
        "memorized": text.compiled.right(),
        "possible": text.compiled.possible(),
        "certified": text.compiled.certified(),
        "word_majority": word_majority(&text.data, &text.data),
        "attention_off": off,
        "recites": recited.right,
        "whole": recited.whole,
        "memorize_seconds": text.seconds,
        "recite_seconds": recited.seconds,
        "attention_seconds": recited.attention_seconds,
        "attention_share": recited.attention_seconds / recited.seconds.max(f64::MIN_POSITIVE),
        "verdict": report.map(|report| report.verdict.name()),
        "verified": report.map(|report| report.verified),
        "unknown": report.map(|report| report.unknown),
        "refuted": report.map(|report| report.refuted),
        "smallest_margin_ratio": report.and_then(|report| report.smallest_margin_ratio),
        "check_seconds": report.map(|report| report.seconds),
        "error": report.and_then(|report| report.error.as_ref().map(|(what, _)| what)),
        "seconds": seconds,
    })
}

fn text_of(text: &MemorizedText, recited: &Recitation, off: f64, report: Option<&Report>) -> String {
    let (tokens, possible) = (text.data.tokens(), text.compiled.possible());
    let config = text.compiled.model().config();
    let mut out = format!(
        "{} tokens, {} of {} possible memorized in {:.1} s: {}, {} hidden units, {} certified ({})\n\
         with attention off {:.2} % right\n\
         recited {} tokens without an error{} in {:.1} s, {:.0} % of it attention\n",
        count(tokens),
        count(text.compiled.right()),
        count(possible),
        text.seconds,
        config.dtype,
        count(config.layers[0].hidden - text.compiled.spare()),
        count(text.compiled.certified()),
        percent(text.compiled.certified(), tokens),
        100.0 * off,
        count(recited.right),
        if recited.whole { ", to the end," } else { "" },
        recited.seconds,
        100.0 * recited.attention_seconds / recited.seconds.max(f64::MIN_POSITIVE),
    );
    if let Some(report) = report {
        out += &format!(
            "the checker: {}, {} tokens verified, {} unknown, {} refuted, in {:.1} s\n",
            report.verdict.name(),
            count(report.verified),
            count(report.unknown),
            count(report.refuted),
            report.seconds,
        );
        out += &report.error.as_ref().map_or(String::new(), |(what, _)| format!("{what}\n"));
    }
    out
}
