//! `monolayer bench`: measured speed, with the limit measured beside it.

use std::time::Instant;

use anyhow::Result;
use clap::Subcommand;
use monolayer::bench;
use serde_json::json;

use super::Outcome;
use crate::output::table;

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
}

pub fn run(args: &Args) -> Result<Outcome> {
    match args.name {
        Name::Forward { tokens } => Ok(forward(tokens)),
    }
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
