//! `monolayer bench train`: the trainer against the arithmetic it cannot do without, and against PyTorch.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::data::Labels;
use monolayer::data::zipf_corpus;
use monolayer::{Dataset, Error};
use monolayer_lab::bench;
use monolayer_train::engine::{CHUNK, Times};
use monolayer_train::options::Rank;
use monolayer_train::run::{Job, train};
use monolayer_train::training_data::Source;
use monolayer_train::{Options, products_alone};
use serde_json::{Value, json};

use super::super::data::write;
use super::{Outcome, peer};
use crate::commands::{DOES, READS};
use crate::output::{count, table};

/// Training: seconds per epoch and tokens per second, compared with its matrix products alone and with PyTorch
///
/// Both sides train with d = 64, q = 256, batches of 32 sequences, Adam at 0.001 and no positions; without PyTorch other sizes may be
/// chosen. Rates are of the fastest epoch; loading and evaluation are excluded.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer bench train --data train.conll --python benches/peers/.venv/bin/python")]
pub struct Args {
    /// CoNLL file (default: a generated corpus of 200,000 tokens)
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    /// Numbers of layers
    #[arg(long, value_name = "L,...", value_delimiter = ',', default_values_t = [1, 3, 6], help_heading = DOES)]
    layers: Vec<usize>,
    /// Dimension d
    #[arg(long, default_value_t = 64, help_heading = DOES, conflicts_with = "python")]
    dim: usize,
    /// Hidden units q of a feed-forward block
    #[arg(long, default_value_t = 256, help_heading = DOES, conflicts_with = "python")]
    hidden: usize,
    /// Attention heads
    #[arg(long, default_value_t = 1, help_heading = DOES, conflicts_with = "python")]
    heads: usize,
    /// Rank of a head's weights: a number, or `full`; above 1 values have weights of their own
    #[arg(long, default_value = "1", help_heading = DOES, conflicts_with = "python")]
    rank: Rank,
    /// Sequences of a batch
    #[arg(long, default_value_t = 32, help_heading = DOES, conflicts_with = "python")]
    batch: usize,
    /// Cut the data into sequences of this many tokens instead of its own
    #[arg(long, value_name = "TOKENS", help_heading = DOES, conflicts_with = "python")]
    length: Option<usize>,
    /// Number of epochs of each run
    #[arg(long, default_value_t = 5, help_heading = DOES)]
    epochs: usize,
    /// Python with PyTorch, for the comparison (benches/peers/train_torch.py: eager and compiled, one and two threads)
    #[arg(long, value_name = "PYTHON", help_heading = DOES)]
    python: Option<PathBuf>,
    /// Number of steps of a PyTorch epoch (0: all of the data); 220 are enough to measure a rate
    #[arg(long, default_value_t = 220, help_heading = DOES)]
    peer_steps: usize,
}

pub fn run(args: &Args) -> Result<Outcome> {
    let scratch = tempfile::tempdir()?;
    let mut data = match &args.data {
        Some(source) => Dataset::open(source)?,
        None => zipf_corpus(200_000, 1),
    };
    if let Some(length) = args.length {
        if length == 0 {
            return Err(Error::setting("--length 0", "give at least 1").into());
        }
        let tokens = data.tokens();
        data.offsets = (0..tokens).step_by(length).chain([tokens]).collect();
    }
    let Labels::Classes { names, .. } = &data.labels else {
        return Err(Error::mismatch(format!("{}: no classes as labels", data.name), "give a CoNLL file").into());
    };
    let file = if let Some(source) = &args.data {
        source.clone()
    } else {
        let path = scratch.path().join("corpus.conll");
        write(&data, &path)?;
        path.display().to_string()
    };
    let peak = [512, 1024, 2048].map(bench::square_product).into_iter().fold(0.0, f64::max);
    let measured = args
        .layers
        .iter()
        .map(|&layers| Measured::new(args, &data, names.len(), &file, layers, scratch.path()))
        .collect::<Result<Vec<_>>>()?;
    let mut rows = vec![heading(args.python.is_some())];
    rows.extend(measured.iter().map(|m| m.row(peak)));
    let mut parts = vec![measured[0].parts().iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()];
    parts[0].insert(0, "layers".into());
    parts.extend(measured.iter().map(Measured::parts_row));
    let runs: Vec<Value> = measured.iter().map(|m| m.json(peak)).collect();
    let zeros: String = measured.iter().map(Measured::zeros).collect();
    let threads = rayon::current_num_threads();
    let json: Value =
        json!({ "threads": threads, "data": data.name, "tokens": data.tokens(), "peak_gflops": peak, "runs": runs });
    let text = format!(
        "{}, {} tokens, {threads} threads; peak {peak:.1} GFLOP/s\n{}\
         products: the matrix products of an epoch alone, at the model's shapes; peak: their operations at the peak of large products\n\n{}\
         seconds of the epoch by part, all threads together divided by their number; rest: waiting, and all else\n{zeros}",
        data.name,
        count(data.tokens()),
        table(&rows, &[7]),
        table(&parts, &[]),
    );
    Ok(Outcome::done(json, text))
}

/// A model of some layers, trained.
struct Measured {
    layers: usize,
    /// Seconds of an epoch, and its tokens per second.
    seconds: f64,
    rate: f64,
    /// Where the time went, on all threads together.
    times: Times,
    /// Seconds of its matrix products alone, and their operations.
    products: f64,
    operations: f64,
    /// The share of hidden units above zero, and seconds of a block's gradient with and without the others.
    firing: f64,
    gradient: [f64; 2],
    peer: Option<peer::Peer>,
}

impl Measured {
    fn new(args: &Args, data: &Dataset, labels: usize, file: &str, layers: usize, scratch: &Path) -> Result<Self> {
        let options = Options {
            layers,
            dim: Some(args.dim),
            hidden: args.hidden,
            heads: args.heads,
            rank: args.rank,
            tied: args.rank == Rank::Of(1),
            batch: args.batch,
            epochs: args.epochs,
            eval_every: 0,
            ..Options::default()
        };
        let out = scratch.join(format!("model-{layers}"));
        let job = Job { source: Source::Data(data), dev: None, options: &options, out: &out, fixed: &[] };
        let report = train(&job, false, &mut |_| ControlFlow::Continue(()))?;
        let architecture = options.architecture(Some(1), None, Some(labels), data.longest())?;
        let (tokens, rate) = (data.tokens() as f64, report.progress.tokens_per_second.unwrap_or(0.0));
        let firing = report.progress.history.last().map_or(0.0, |last| last.firing);
        let peer = args.python.as_ref().map(|python| peer::fastest(python, file, layers, args.epochs, args.peer_steps));
        let mut peer = peer.transpose()?;
        // The peer's epochs may end early; its rate is that of whole ones.
        peer.iter_mut().for_each(|peer| peer.seconds_per_epoch = tokens / peer.tokens_per_second);
        Ok(Self {
            layers,
            seconds: tokens / rate,
            rate,
            times: report.fastest,
            products: tokens * products_alone::seconds_per_token(&architecture, CHUNK),
            operations: tokens * products_alone::operations(&architecture),
            firing,
            gradient: products_alone::skipping_zeros(&architecture, CHUNK, firing),
            peer,
        })
    }

    /// The parts of an epoch with their seconds, which add up to those of the epoch.
    fn parts(&self) -> Vec<(&'static str, f64)> {
        let threads = rayon::current_num_threads() as f64;
        let mut parts = self.times.parts().map(|(name, seconds)| (name, seconds / threads)).to_vec();
        parts.push(("rest", self.seconds - parts.iter().map(|(_, seconds)| seconds).sum::<f64>()));
        parts
    }

    fn parts_row(&self) -> Vec<String> {
        let seconds = self.parts().into_iter().map(|(_, seconds)| format!("{seconds:.4}"));
        std::iter::once(self.layers.to_string()).chain(seconds).collect()
    }

    /// Seconds of the operations at the machine's peak, in GFLOP/s.
    fn at_peak(&self, peak: f64) -> f64 {
        self.operations / (peak * 1e9)
    }

    fn ratio(&self) -> Option<f64> {
        self.peer.as_ref().map(|peer| self.rate / peer.tokens_per_second)
    }

    fn row(&self, peak: f64) -> Vec<String> {
        let mut row = vec![
            self.layers.to_string(),
            format!("{:.3}", self.seconds),
            count(self.rate as usize),
            format!("{:.3}", self.products),
            format!("{:.2}", self.seconds / self.products),
            format!("{:.3}", self.at_peak(peak)),
        ];
        if let (Some(peer), Some(ratio)) = (&self.peer, self.ratio()) {
            row.push(count(peer.tokens_per_second as usize));
            row.push(format!("{}, {} threads", peer.mode, peer.threads));
            row.push(format!("{ratio:.2}"));
        }
        row
    }

    fn json(&self, peak: f64) -> Value {
        json!({
            "layers": self.layers,
            "seconds_per_epoch": self.seconds,
            "tokens_per_second": self.rate,
            "parts": self.parts().into_iter().map(|(name, seconds)| (name.to_owned(), json!(seconds))).collect::<serde_json::Map<_, _>>(),
            "products_seconds": self.products,
            "over_products": self.seconds / self.products,
            "peak_seconds": self.at_peak(peak),
            "over_peak": self.seconds / self.at_peak(peak),
            "firing": self.firing,
            "whole_gradient_seconds": self.gradient[0],
            "skipping_gradient_seconds": self.gradient[1],
            "peer": self.peer,
            "ratio": self.ratio(),
        })
    }

    /// What hidden units at zero could save.
    fn zeros(&self) -> String {
        format!(
            "{} layers: {:.0} % of the hidden units are above zero; the gradient of a feed-forward block takes {:.2} us for a token \
             with whole products, {:.2} us without the zeros\n",
            self.layers,
            100.0 * self.firing,
            1e6 * self.gradient[0],
            1e6 * self.gradient[1],
        )
    }
}

fn heading(peer: bool) -> Vec<String> {
    let mut names = vec!["layers", "s per epoch", "tokens/s", "products, s", "times", "at the peak, s"];
    if peer {
        names.extend(["PyTorch tokens/s", "in mode", "ratio"]);
    }
    names.into_iter().map(str::to_owned).collect()
}
