//! `monolayer bench memorize`: against a PyTorch peer, and growth.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use monolayer::data::ambiguous_corpus;
use monolayer::{Compiled, Dataset, Error, Memorizer};
use serde_json::json;

use super::{Outcome, peer};
use crate::commands::memorize::EffortArg;
use crate::commands::{DOES, READS, WRITES};
use crate::output::{count, table};

/// Memorizing a corpus, compared with one epoch of training in PyTorch, and how its time grows on generated corpora
///
/// Generated corpora follow Zipf's law. About one token in a hundred has another label than its word has most often; which, is
/// decided by the word before it.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench memorize --data train.conll
         monolayer bench memorize --effort fast --tokens 2000000")]
pub struct Args {
    /// Corpus; without one, only generated corpora are used
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    /// Python with PyTorch, for the comparison (benches/peers/train_torch.py)
    #[arg(long, value_name = "PYTHON", requires = "data", help_heading = DOES)]
    python: Option<PathBuf>,
    /// Number of tokens of the largest generated corpus
    #[arg(long, default_value_t = 200_000, help_heading = DOES)]
    tokens: usize,
    /// How long to look for fewer hidden units
    #[arg(long, value_enum, default_value = "default", help_heading = DOES)]
    effort: EffortArg,
    /// Write the largest generated corpus as CoNLL columns, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "python"], help_heading = WRITES)]
    write: Option<PathBuf>,
}

/// Seconds to memorize a dataset, certificate included, file reading and writing excluded.
fn memorize_seconds(data: &Dataset, effort: EffortArg) -> Result<(f64, Compiled)> {
    let start = Instant::now();
    let compiled = Memorizer::new().effort(effort.into()).compile(data)?;
    Ok((start.elapsed().as_secs_f64(), compiled))
}

/// The hidden units of a compiled model.
fn hidden(compiled: &Compiled) -> usize {
    compiled.model().config().layers[0].hidden - compiled.spare()
}

/// The most memory that this program has had, in megabytes, where the system tells.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes / 1000)
}

/// Writes a corpus as columns.
fn write_columns(data: &Dataset, path: &Path) -> Result<Outcome> {
    let file = std::fs::File::create_new(path).map_err(|e| Error::io(path, e))?;
    let mut out = BufWriter::new(file);
    for range in data.ranges() {
        for t in range {
            writeln!(out, "{} {}", data.word(t).unwrap_or("_"), data.label(t).unwrap_or("_"))?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    let (tokens, sequences) = (data.tokens(), data.sequences());
    let json = json!({ "file": path, "tokens": tokens, "sequences": sequences });
    Ok(Outcome::done(json, format!("{}: {} tokens in {} sequences\n", path.display(), count(tokens), count(sequences))))
}

pub fn run(args: &Args) -> Result<Outcome> {
    let (source, python, tokens) = (args.data.as_deref(), args.python.as_deref(), args.tokens);
    if let Some(path) = &args.write {
        return write_columns(&ambiguous_corpus(tokens, 1), path);
    }
    let mut json = json!({ "threads": rayon::current_num_threads() });
    let mut text = String::new();
    if let Some(source) = source {
        let (seconds, compiled) = memorize_seconds(&Dataset::open(source)?, args.effort)?;
        json["corpus"] =
            json!({ "data": source, "seconds": seconds, "right": compiled.right(), "hidden": hidden(&compiled) });
        text += &format!("{source}: {} tokens right in {seconds:.2} s\n", compiled.right());
        if let Some(python) = python {
            let epoch = peer::fastest(python, source, 1, 3, 0)?.seconds_per_epoch;
            let ratio = seconds / epoch;
            json["peer"] = json!({ "seconds_per_epoch": epoch, "ratio": ratio });
            text += &format!(
                "one epoch of the 1-layer PyTorch peer: {epoch:.2} s, so memorizing takes {ratio:.2} of that\n"
            );
        }
    }
    let mut rows = vec![
        ["tokens", "seconds", "times before", "hidden units", "right", "possible", "proved", "in", "peak MB"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut runs = Vec::new();
    let mut before: Option<f64> = None;
    for tokens in [tokens / 100, tokens / 10, tokens] {
        let data = ambiguous_corpus(tokens, 1);
        let (seconds, compiled) = memorize_seconds(&data, args.effort)?;
        let (hidden, possible) = (hidden(&compiled), compiled.possible());
        let peak = peak_megabytes();
        let growth = before.map(|before| seconds / before);
        rows.push(vec![
            count(tokens),
            format!("{seconds:.2}"),
            growth.map_or(String::new(), |g| format!("{g:.1}")),
            count(hidden),
            count(compiled.right()),
            count(possible),
            count(compiled.certified()),
            compiled.model().config().dtype,
            peak.map_or(String::new(), |peak| count(peak as usize)),
        ]);
        runs.push(json!({ "tokens": tokens, "seconds": seconds, "growth": growth, "hidden": hidden, "right": compiled.right(), "possible": possible, "certified": compiled.certified(), "dtype": compiled.model().config().dtype, "peak_megabytes": peak }));
        before = Some(seconds);
    }
    json["growth"] = runs.into();
    text += &format!("made-up corpora, ten times the tokens each\n{}", table(&rows, &[]));
    Ok(Outcome::done(json, text))
}
