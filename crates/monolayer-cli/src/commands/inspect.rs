//! `monolayer inspect`: what a model is made of.

use std::path::PathBuf;

use anyhow::Result;
use monolayer::model_file::{self, Config};
use monolayer::rank::rank;
use monolayer::{AnyModel, with_model};
use serde_json::{Value, json};

use super::Outcome;
use crate::output::{count, table};

/// What a model is made of: sizes, ranks, parameters
///
/// The rank of each attention matrix is exact.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer inspect model")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
}

/// What there is to say about one tensor.
struct Tensor {
    name: String,
    shape: Vec<usize>,
    nonzero: usize,
    /// The rank of each head's matrix, for attention.
    ranks: Option<Vec<usize>>,
}

pub fn run(args: &Args) -> Result<Outcome> {
    let model = AnyModel::open(&args.model)?;
    let config = with_model!(&model, m => model_file::config(m));
    let tensors = with_model!(&model, m => {
        let wide = |(name, shape, data): (String, Vec<usize>, Vec<_>)| {
            tensor(name, shape, &data.into_iter().map(f64::from).collect::<Vec<f64>>())
        };
        model_file::tensors(m).into_iter().map(wide).collect::<Vec<Tensor>>()
    });
    let size = |t: &Tensor| t.shape.iter().product::<usize>();
    let (parameters, nonzero): (usize, usize) =
        (tensors.iter().map(size).sum(), tensors.iter().map(|t| t.nonzero).sum());
    let list: Vec<Value> = tensors
        .iter()
        .map(|t| json!({ "name": t.name, "shape": t.shape, "nonzero": t.nonzero, "ranks": t.ranks }))
        .collect();
    let json = json!({
        "d": config.d,
        "dtype": config.dtype,
        "layers": config.layers,
        "max_length": config.max_length,
        "labels": config.labels.as_ref().map(Vec::len),
        "words": with_model!(&model, m => m.words.as_ref().map(|w| w.vocabulary.len())),
        "parameters": parameters,
        "nonzero": nonzero,
        "source": config.source,
        "tensors": list,
    });

    let row = |t: &Tensor| {
        let shape: Vec<String> = t.shape.iter().map(ToString::to_string).collect();
        let ranks = t.ranks.as_ref().map_or(String::new(), |r| {
            format!("rank {}", r.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        });
        vec![t.name.clone(), shape.join(" x "), count(size(t)), count(t.nonzero), ranks]
    };
    let mut rows = vec![["tensor", "shape", "numbers", "not zero", ""].map(str::to_owned).to_vec()];
    rows.extend(tensors.iter().map(row));
    rows.push(vec!["all".to_owned(), String::new(), count(parameters), count(nonzero), String::new()]);
    Ok(Outcome::done(json, format!("{}\n{}", headline(&config), table(&rows, &[4]))))
}

fn tensor(name: String, shape: Vec<usize>, data: &[f64]) -> Tensor {
    let ranks = name.contains(".attention.").then(|| {
        let (rows, cols) = (shape[1], shape[2]);
        data.chunks_exact(rows * cols).map(|head| rank(cols, head)).collect()
    });
    Tensor { name, shape, nonzero: data.iter().filter(|&&x| x != 0.0).count(), ranks }
}

/// The model in a line.
fn headline(config: &Config) -> String {
    let layer = |l: &model_file::LayerConfig| {
        let attention = l.attention.as_ref().map(|a| {
            let kind = format!("{:?}", a.kind).to_lowercase();
            let mask = if a.mask == monolayer::attention::Mask::Causal { ", causal" } else { "" };
            format!("{kind} attention ({} of size {}{mask})", plural(a.heads, "head"), a.head_size)
        });
        let hidden = (l.hidden > 0).then(|| plural(l.hidden, "hidden unit"));
        attention.into_iter().chain(hidden).collect::<Vec<_>>().join(" + ")
    };
    let layers: Vec<String> = config.layers.iter().map(layer).collect();
    let pre = config.pre_feed_forward.as_ref().map(|p| format!("{} before; ", plural(p.hidden, "hidden unit")));
    format!(
        "{}, d = {}, {}: {}{}",
        plural(config.layers.len(), "layer"),
        config.d,
        config.dtype,
        pre.unwrap_or_default(),
        layers.join("; ")
    )
}

fn plural(n: usize, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}
