//! `monolayer bench attention`: rank-1 attention in linear time against direct sums, the bytes and PyTorch.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use monolayer::arithmetic::kernels::Real;
use monolayer::attention::{FastAttention, Gradients, Route};
use monolayer::{Error, Mask};
use monolayer_lab::attention_bench::{Measured, Numbers, figure, measure};
use serde_json::{Value, json};

use super::Outcome;
use crate::commands::{DOES, Shared, WRITES};
use crate::output::{count, say, table};

/// The peer takes minutes beyond this.
const LARGEST_PEER: usize = 1 << 16;

/// Rank-1 attention: its time, its error against direct sums, and the time of one pass over the bytes
///
/// Normal keys, values and queries, scaled so that the largest score is the range. The time is that of the fastest run. Errors are
/// against direct sums in double precision, of all queries up to 8,192 tokens, of a random 4,096 beyond, of fewer above two
/// million. With --figure, runs from 128 tokens up by factors of two.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench attention --tokens 65536 --range 20
         monolayer bench attention --tokens 16777216 --python target/extras-venv/bin/python --figure docs/img/attention.svg")]
pub struct Args {
    /// Number of tokens
    #[arg(long, default_value_t = 65_536, help_heading = DOES)]
    tokens: usize,
    /// The largest absolute value of a score
    #[arg(long, value_name = "S", default_value_t = 20.0, help_heading = DOES)]
    range: f64,
    /// Each query sees the keys up to its own
    #[arg(long, help_heading = DOES)]
    causal: bool,
    /// Forward and backward
    #[arg(long, help_heading = DOES)]
    backward: bool,
    /// The type of the numbers
    #[arg(long, value_parser = ["f32", "f64"], default_value = "f32", help_heading = DOES)]
    dtype: String,
    /// Python with PyTorch, for the comparison (benches/peers/rank1_torch.py)
    #[arg(long, value_name = "PYTHON", help_heading = DOES)]
    python: Option<PathBuf>,
    /// Draw the time against the number of tokens, from 128 up to `--tokens`; the measured numbers go into a file beside it
    #[arg(long, value_name = "SVG", help_heading = WRITES)]
    figure: Option<PathBuf>,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    if args.tokens == 0 || !(args.range >= 0.0 && args.range <= 1e30) {
        return Err(Error::setting("`tokens` of 0, or a `range` that is not from 0 to 1e30", "try 65536 and 20").into());
    }
    if let Some(path) = &args.figure {
        return draw(args, path, shared);
    }
    let (measured, peer) = one(args, args.tokens)?;
    Ok(Outcome::done(json_of(args, &measured, peer.as_ref()), text_of(args, &measured, peer.as_ref())))
}

fn one(args: &Args, tokens: usize) -> Result<(Measured, Option<Value>)> {
    if args.dtype == "f64" { typed::<f64>(args, tokens) } else { typed::<f32>(args, tokens) }
}

fn typed<R: Real>(args: &Args, tokens: usize) -> Result<(Measured, Option<Value>)> {
    let numbers = Numbers::<R>::new(tokens, args.range, 1);
    let measured = measure(&numbers, args.causal, args.backward)?;
    let peer = match &args.python {
        Some(python) if tokens <= LARGEST_PEER => Some(peer(args, python, &numbers)?),
        _ => None,
    };
    Ok((measured, peer))
}

/// The same numbers through PyTorch.
fn peer<R: Real>(args: &Args, python: &Path, numbers: &Numbers<R>) -> Result<Value> {
    let scratch = tempfile::tempdir()?;
    let write = |name: &str, numbers: &[R]| std::fs::write(scratch.path().join(name), R::to_bytes(numbers));
    write("keys.bin", &numbers.keys)?;
    write("values.bin", &numbers.values)?;
    write("queries.bin", &numbers.queries)?;
    write("upstream.bin", &numbers.upstream)?;
    let attention = FastAttention::new().mask(if args.causal { Mask::Causal } else { Mask::None });
    let mut out = vec![R::ZERO; numbers.keys.len()];
    attention.forward(numbers.inputs(), &mut out)?;
    write("out.bin", &out)?;
    if args.backward {
        let mut gradients = Gradients::default();
        attention.backward(numbers.inputs(), &numbers.upstream, &mut gradients)?;
        write("dk.bin", &gradients.keys)?;
        write("dv.bin", &gradients.values)?;
        write("dy.bin", &gradients.queries)?;
    }
    let script = Path::new("benches/peers/rank1_torch.py");
    let mut command = Command::new(python);
    command.arg(script).arg(scratch.path()).args(["--dtype", R::NAME, "--tokens", &out.len().to_string()]);
    command.args(["--threads", &rayon::current_num_threads().to_string()]);
    command.args(args.causal.then_some("--causal")).args(args.backward.then_some("--backward"));
    let output =
        command.output().with_context(|| format!("could not run {} {}", python.display(), script.display()))?;
    let line = String::from_utf8_lossy(&output.stdout);
    let Some(report) = line.lines().last().and_then(|line| serde_json::from_str(line).ok()) else {
        bail!("{} printed no figure; run it by hand to see why (from the root of the repository)", script.display());
    };
    Ok(report)
}

fn json_of(args: &Args, measured: &Measured, peer: Option<&Value>) -> Value {
    let peer_seconds = peer.and_then(|peer| peer["seconds"].as_f64());
    json!({
        "threads": rayon::current_num_threads(),
        "tokens": measured.tokens,
        "range": args.range,
        "dtype": args.dtype,
        "causal": args.causal,
        "backward": args.backward,
        "seconds": measured.seconds,
        "max_error": measured.max_error,
        "gradient_error": measured.gradient_error,
        "bound": measured.work.bound,
        "route": if measured.work.route == Route::Direct { "direct" } else { "moments" },
        "nodes": measured.work.nodes,
        "bins": measured.work.bins,
        "direct_seconds": measured.direct_seconds,
        "direct_queries": measured.direct_queries,
        "bytes_seconds": measured.bytes_seconds,
        "push_seconds": measured.push_seconds,
        "peer_seconds": peer_seconds,
        "ratio": peer_seconds.map(|seconds| seconds / measured.seconds),
        "peer": peer,
    })
}

fn text_of(args: &Args, measured: &Measured, peer: Option<&Value>) -> String {
    let Measured { tokens, seconds, max_error, work, direct_seconds, direct_queries, bytes_seconds, .. } = measured;
    let how = match work.route {
        Route::Direct => "direct sums".to_owned(),
        Route::Moments => format!("{} bins, {} nodes", work.bins, work.nodes),
    };
    let what = if args.backward { "forward and backward" } else { "forward" };
    let scaled =
        if direct_queries < tokens { format!(", from {} queries", count(*direct_queries)) } else { String::new() };
    let mut text = format!(
        "{} tokens, {}, scores up to {}, {} threads\n{what}: {:.3} ms ({how})\n\
         error {max_error:.1e} of the largest value, at most {:.1e} proved before the result is rounded to its type\n\
         direct sums {:.3} ms forward{scaled}; one pass over the bytes {:.3} ms\n",
        count(*tokens),
        args.dtype,
        args.range,
        rayon::current_num_threads(),
        1e3 * seconds,
        work.bound,
        1e3 * direct_seconds,
        1e3 * bytes_seconds,
    );
    if let Some(push) = measured.push_seconds {
        text += &format!("a token of a stream {:.2} microseconds\n", 1e6 * push);
    }
    if let Some([keys, values, queries]) = measured.gradient_error {
        text += &format!(
            "gradients off by {keys:.1e} (keys), {values:.1e} (values), {queries:.1e} (queries) of their largest entry\n"
        );
    }
    if let Some(peer_seconds) = peer.and_then(|peer| peer["seconds"].as_f64()) {
        text += &format!("PyTorch {:.3} ms, {:.0} times as long\n", 1e3 * peer_seconds, peer_seconds / seconds);
    }
    text
}

/// Runs from 128 tokens up by factors of 4, and their figure.
fn draw(args: &Args, path: &Path, shared: &Shared) -> Result<Outcome> {
    let (mut runs, mut tokens) = (Vec::new(), 128);
    while tokens <= args.tokens {
        say(shared, &format!("{} tokens", count(tokens)));
        let (measured, peer) = one(args, tokens)?;
        say(shared, text_of(args, &measured, peer.as_ref()).trim_end());
        runs.push((measured, peer));
        tokens *= 2;
    }
    if runs.is_empty() {
        return Err(Error::setting("a figure of fewer than 128 `tokens`", "try 65536").into());
    }
    let list: Vec<Value> = runs.iter().map(|(measured, peer)| json_of(args, measured, peer.as_ref())).collect();
    let text = table_of(&runs);
    let points: Vec<_> =
        runs.into_iter().map(|(run, peer)| (run, peer.and_then(|peer| peer["seconds"].as_f64()))).collect();
    let svg = figure(&points).scene(720.0, 440.0).svg_file("Time of rank-1 attention against the number of tokens");
    monolayer::fs::replace_file(path, svg.as_bytes())?;
    let json = json!({ "runs": list, "file": path });
    let numbers = path.with_extension("json");
    monolayer::fs::replace_file(&numbers, format!("{json:#}\n").as_bytes())?;
    Ok(Outcome::done(json, format!("{text}wrote {} and {}\n", path.display(), numbers.display())))
}

/// A row for each run.
fn table_of(runs: &[(Measured, Option<Value>)]) -> String {
    let titles = ["tokens", "ms", "ns per token", "error", "direct sums, ms", "one pass, ms", "PyTorch, ms", "ratio"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for (run, peer) in runs {
        let peer = peer.as_ref().and_then(|peer| peer["seconds"].as_f64());
        let ms = |seconds: f64| format!("{:.3}", 1e3 * seconds);
        rows.push(vec![
            count(run.tokens),
            ms(run.seconds),
            format!("{:.1}", 1e9 * run.seconds / run.tokens as f64),
            format!("{:.1e}", run.max_error),
            ms(run.direct_seconds),
            ms(run.bytes_seconds),
            peer.map_or(String::new(), ms),
            peer.map_or(String::new(), |peer| format!("{:.1}", peer / run.seconds)),
        ]);
    }
    table(&rows, &[])
}
