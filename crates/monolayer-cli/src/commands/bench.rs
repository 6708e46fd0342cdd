//! `monolayer bench`: measured speed, with the limit measured beside it.

mod attention;
mod edit;
mod memorize;
mod peer;
mod text;
mod train;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Subcommand;
use monolayer::arithmetic::kernels::Real;
use monolayer::context_map::Groups;
use monolayer::context_map::search::Search;
use monolayer::model::AttentionSums;
use monolayer::{AnyModel, Dataset, Error, Model};
use monolayer_lab::bench;
use monolayer_train::products_alone::fastest;
use serde_json::json;

use super::{DOES, Outcome, Shared, context};
use crate::output::table;
use monolayer::arithmetic::arg_max;

/// Measure speed, next to the machine's limit or to PyTorch, measured in the same run
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench forward")]
pub struct Args {
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    /// The feed-forward block (eq. 3), compared with the machine's peak for matrix products
    #[command(after_help = "Example: monolayer bench forward")]
    Forward {
        /// Number of tokens in a run
        #[arg(long, default_value_t = 16_384, help_heading = DOES)]
        tokens: usize,
    },
    Attention(attention::Args),
    /// The search for a contextual mapping: gap and time for growing numbers of candidates, and the time of one pass
    #[command(after_help = "Example: monolayer bench context train.conll")]
    Context(context::MapArgs),
    Edit(edit::Args),
    Memorize(memorize::Args),
    Text(text::Args),
    Train(train::Args),
    /// Running a compiled model: skipping hidden units that cannot be active, compared with plain matrix products
    #[command(after_help = "Example: monolayer bench predict model test.conll")]
    Predict {
        /// The model directory
        #[arg(value_name = "DIR")]
        model: PathBuf,
        /// The dataset
        #[arg(value_name = "DATA")]
        data: String,
    },
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    match &args.name {
        Name::Forward { tokens } => Ok(forward(*tokens)),
        Name::Attention(args) => attention::run(args, shared),
        Name::Context(map) => context_search(map, shared),
        Name::Edit(args) => edit::run(args, shared),
        Name::Memorize(args) => memorize::run(args),
        Name::Text(args) => text::run(args, shared),
        Name::Train(args) => train::run(args),
        Name::Predict { model, data } => {
            let (model, data) = (AnyModel::open(model)?, Dataset::open(data)?);
            match &model {
                AnyModel::F32(model) => predict(model, &data),
                AnyModel::F64(model) => predict(model, &data),
                AnyModel::Exact(_) => {
                    Err(Error::mismatch("an exact model is not run in floats", "give another").into())
                }
            }
        }
    }
}

/// Seconds for both ways of running a model, the table of open units included in the first, and whether they agree.
fn predict<R: Real>(model: &Model<R>, data: &Dataset) -> Result<Outcome> {
    let inputs = model.inputs(data)?;
    let label = |_: usize, scores: &[R]| arg_max(scores);
    let start = Instant::now();
    let sparse = model.sparse(&inputs);
    let gated = model.run_with(&inputs, (sparse.as_ref(), AttentionSums::Plain), &|_| {}, label);
    let gated_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let dense = model.run_with(&inputs, (None, AttentionSums::Plain), &|_| {}, label);
    let dense_seconds = start.elapsed().as_secs_f64();
    let (ratio, same) = (dense_seconds / gated_seconds, gated == dense);
    let used = if sparse.is_some() { "through the gates" } else { "no gates found, plain products" };
    let json = json!({
        "tokens": data.tokens(),
        "sparse": sparse.is_some(),
        "seconds": gated_seconds,
        "dense_seconds": dense_seconds,
        "ratio": ratio,
        "same_labels": same,
    });
    let text = format!(
        "{used}: {gated_seconds:.3} s; plain matrix products: {dense_seconds:.3} s, {ratio:.1} times as long; {}\n",
        if same { "same labels" } else { "labels DIFFER" }
    );
    Ok(Outcome::decided(json, text, same))
}

/// The gap after each doubling of the candidates, and the time of one pass.
fn context_search(args: &context::MapArgs, shared: &Shared) -> Result<Outcome> {
    let prepared = args.prepare(shared)?;
    let view = prepared.view();
    let groups = match prepared.agreement(&view) {
        Some(agreement) if args.by_label => Groups::by_label(&view, &agreement.label),
        _ => Groups::by_context(&view),
    };
    let start = Instant::now();
    let steps = std::cell::RefCell::new((0, Vec::<(usize, f64, f64)>::new()));
    let on_progress = |candidates: usize, gap: f64| {
        let (tried, list) = &mut *steps.borrow_mut();
        *tried += candidates;
        list.push((*tried, gap, start.elapsed().as_secs_f64()));
    };
    let search = Search::new().seed(args.seed).candidates(args.candidates as usize);
    let found = search.run_with(&view, &groups, &on_progress);
    let seconds = start.elapsed().as_secs_f64();
    let (_, list) = steps.into_inner();
    // The first round, each doubling, and the last.
    let mut shown: Vec<(usize, f64, f64)> = Vec::new();
    for &step in &list {
        if shown.last().is_none_or(|last| step.0 >= 2 * last.0) || step.0 == found.candidates {
            shown.push(step);
        }
    }
    let everything = Groups::by_context(&view);
    let pass = fastest(|| {
        let ids = found.projection.context_ids(&view);
        std::hint::black_box(everything.smallest_gap(|t| ids[t]));
    });
    let mut rows = vec![["candidates", "gap / sd", "seconds"].map(str::to_owned).to_vec()];
    rows.extend(shown.iter().map(|(n, gap, s)| vec![n.to_string(), format!("{gap:.3e}"), format!("{s:.2}")]));
    let step = |(candidates, gap, seconds): &(usize, f64, f64)| json!({ "candidates": candidates, "gap_over_sd": gap, "seconds": seconds });
    let json = json!({
        "threads": rayon::current_num_threads(),
        "tokens": prepared.data.tokens(),
        "labels": args.by_label,
        "search": shown.iter().map(step).collect::<Vec<_>>(),
        "search_seconds": seconds,
        "pass_seconds": pass,
        "seconds": start.elapsed().as_secs_f64(),
    });
    let which = if args.by_label { "contexts with different labels" } else { "any two contexts" };
    let text = format!(
        "smallest gap of g between {which} of one token, over the standard deviation of g (estimated on a sample)\n{}\
         one pass (g of all {} tokens and the smallest gap): {:.1} ms on {} threads\n",
        table(&rows, &[]),
        prepared.data.tokens(),
        1e3 * pass,
        rayon::current_num_threads(),
    );
    Ok(Outcome::done(json, text))
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
