//! `monolayer bench`: measured speed, with the limit measured beside it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use monolayer::memorize::{Compiled, Memorizer};
use monolayer::{Dataset, bench};
use serde_json::json;

use super::Outcome;
use crate::output::{count, table};

/// Measured speed, with the machine's limit measured beside it in the same run
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench forward")]
pub struct Args {
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    /// The feed-forward block (3) against the machine's peak at matrix products
    Forward {
        /// Tokens in a run
        #[arg(long, default_value_t = 16_384)]
        tokens: usize,
    },
    /// Memorizing: seconds on a corpus against three epochs of training in PyTorch, and growth on made-up corpora
    Memorize {
        /// A corpus; without one, only growth is measured
        #[arg(long, value_name = "DATA")]
        data: Option<String>,
        /// A Python with PyTorch, for the peer: benches/peers/train_torch.py
        #[arg(long, value_name = "PYTHON", requires = "data")]
        python: Option<PathBuf>,
        /// Tokens of the largest made-up corpus
        #[arg(long, default_value_t = 200_000)]
        tokens: usize,
    },
}

pub fn run(args: &Args) -> Result<Outcome> {
    match &args.name {
        Name::Forward { tokens } => Ok(forward(*tokens)),
        Name::Memorize { data, python, tokens } => memorize(data.as_deref(), python.as_deref(), *tokens),
    }
}

/// Seconds to memorize a dataset with default options, certificate included, file reading and writing excluded.
fn memorize_seconds(data: &Dataset) -> Result<(f64, Compiled)> {
    let start = Instant::now();
    let compiled = Memorizer::default().compile(data, &|_, _| {})?;
    Ok((start.elapsed().as_secs_f64(), compiled))
}

fn memorize(source: Option<&str>, python: Option<&Path>, tokens: usize) -> Result<Outcome> {
    let mut json = json!({ "threads": rayon::current_num_threads() });
    let mut text = String::new();
    if let Some(source) = source {
        let (seconds, compiled) = memorize_seconds(&Dataset::open(source)?)?;
        json["corpus"] = json!({ "data": source, "seconds": seconds, "right": compiled.right, "hidden": compiled.units.iter().sum::<usize>() });
        text += &format!("{source}: {} tokens right in {seconds:.2} s\n", compiled.right);
        if let Some(python) = python {
            let epoch = peer_epoch(python, source)?;
            let ratio = seconds / (3.0 * epoch);
            json["peer"] = json!({ "seconds_per_epoch": epoch, "three_epochs": 3.0 * epoch, "ratio": ratio });
            text += &format!(
                "three epochs of the 1-layer PyTorch peer: {:.2} s, so memorizing takes {ratio:.2} of that\n",
                3.0 * epoch
            );
        }
    }
    let mut rows =
        vec![["tokens", "seconds", "times before", "hidden units", "right", "possible"].map(str::to_owned).to_vec()];
    let mut runs = Vec::new();
    let mut before: Option<f64> = None;
    for tokens in [tokens / 100, tokens / 10, tokens] {
        let data = bench::zipf_corpus(tokens, 1);
        let (seconds, compiled) = memorize_seconds(&data)?;
        let (hidden, possible) = (compiled.units.iter().sum::<usize>(), tokens - compiled.impossible.len());
        let growth = before.map(|before| seconds / before);
        rows.push(vec![
            count(tokens),
            format!("{seconds:.2}"),
            growth.map_or(String::new(), |g| format!("{g:.1}")),
            count(hidden),
            count(compiled.right),
            count(possible),
        ]);
        runs.push(json!({ "tokens": tokens, "seconds": seconds, "growth": growth, "hidden": hidden, "right": compiled.right, "possible": possible }));
        before = Some(seconds);
    }
    json["growth"] = runs.into();
    text += &format!("made-up corpora, ten times the tokens each\n{}", table(&rows, &[]));
    Ok(Outcome::done(json, text))
}

/// Seconds per epoch of the peer in its fastest mode.
fn peer_epoch(python: &Path, data: &str) -> Result<f64> {
    let script = Path::new("benches/peers/train_torch.py");
    let mut best = f64::INFINITY;
    for mode in ["eager", "compile"] {
        for threads in ["1", "2"] {
            let arguments = ["--data", data, "--layers", "1", "--epochs", "3", "--mode", mode, "--threads", threads];
            let output = Command::new(python).arg(script).args(arguments).output();
            let output = output.with_context(|| format!("could not run {} {}", python.display(), script.display()))?;
            let line = String::from_utf8_lossy(&output.stdout);
            let report: Option<serde_json::Value> = line.lines().last().and_then(|l| serde_json::from_str(l).ok());
            if let Some(seconds) = report.as_ref().and_then(|r| r["seconds_per_epoch"].as_f64()) {
                best = best.min(seconds);
            }
        }
    }
    if best.is_infinite() {
        bail!("{} printed no figure; run it by hand to see why (from the root of the repository)", script.display());
    }
    Ok(best)
}

fn forward(tokens: usize) -> Outcome {
    let start = Instant::now();
    let peaks: Vec<(usize, f64)> = [512, 1024, 2048, 4096].map(|n| (n, bench::square_product(n))).to_vec();
    let peak = peaks.iter().map(|&(_, rate)| rate).fold(0.0, f64::max);
    let mut rows = vec![["d", "q", "GFLOP/s", "of the peak"].map(str::to_owned).to_vec()];
    let mut runs = Vec::new();
    for (d, q) in [(64, 256), (96, 256), (128, 256), (64, 10_000), (96, 10_000), (128, 10_000)] {
        let rate = bench::feed_forward(tokens, d, q);
        rows.push(vec![d.to_string(), q.to_string(), format!("{rate:.1}"), format!("{:.0} %", 100.0 * rate / peak)]);
        runs.push(json!({ "d": d, "q": q, "gflops": rate, "of_peak": rate / peak }));
    }
    let json = json!({
        "threads": rayon::current_num_threads(),
        "tokens": tokens,
        "peak_gflops": peak,
        "peaks": peaks.iter().map(|(n, rate)| json!({ "n": n, "gflops": rate })).collect::<Vec<_>>(),
        "feed_forward": runs,
        "seconds": start.elapsed().as_secs_f64(),
    });
    let text = format!(
        "peak {peak:.1} GFLOP/s: the best of n x n products in f32, n = 512 to 4096, {} threads\n\
         feed-forward block, f32, {tokens} tokens\n{}",
        rayon::current_num_threads(),
        table(&rows, &[])
    );
    Outcome::done(json, text)
}
