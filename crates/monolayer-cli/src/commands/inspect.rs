//! `monolayer inspect`: what a model is made of.

mod label_bits;
mod named_units;

use std::path::{Path, PathBuf};

use anyhow::Result;
use dashu_ratio::RBig;
use monolayer::arithmetic::rational;
use monolayer::data::Split;
use monolayer::memorize::paper_parameters;
use monolayer::model::directory::{self, Config};
use monolayer::model::mask_file::MaskConfig;
use monolayer::model::rank::rank;
use monolayer::{AnyModel, Dataset, Error};
use serde_json::{Value, json};

use self::label_bits::LabelBits;
use super::{DOES, Outcome, READS, ReadArgs, Shared};
use crate::output::{Progress, count, table};

/// Describe a model: sizes, exact ranks, parameters, the bits of its labels, and how much its accuracy depends on attention
///
/// For a memorized dataset, it prints how many bits the labels take, how many bits the model stores, and the smallest number of
/// parameters that could store the labels, by counting (the lower bound of Remark 2).
/// With --data, the model is also run with W_O = 0 (no attention) and with kappa = 0 (attention averages all tokens
/// equally), and the accuracies are compared. Its size is compared with what the paper and earlier constructions need for
/// the same data.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer inspect model --data train.conll")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// Dataset to run the model on
    #[arg(long, value_name = "DATA", help_heading = READS)]
    data: Option<String>,
    /// Say what one hidden unit does, by its number from 0, and nothing else
    #[arg(long, value_name = "N", help_heading = DOES)]
    unit: Option<usize>,
    /// Say which hidden units fire for a word, and what they do, and nothing else
    #[arg(long, value_name = "WORD", help_heading = DOES)]
    word: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
}

/// What there is to say about one tensor.
struct Tensor {
    name: String,
    shape: Vec<usize>,
    nonzero: usize,
    /// The rank of each head's matrix, for attention.
    ranks: Option<Vec<usize>>,
}

/// A model directory, looked into.
struct Inspected {
    model: AnyModel,
    config: Config,
    words: Option<usize>,
    tensors: Vec<Tensor>,
}

impl Inspected {
    fn open(dir: &Path) -> Result<Self> {
        let model = AnyModel::open(dir)?;
        let config = model.config();
        let words = model.vocabulary().map(monolayer::data::Vocabulary::len);
        let tensors = match &model {
            AnyModel::Exact(model) => {
                directory::tensors(model).into_iter().map(|(name, shape, data)| exact(name, shape, &data)).collect()
            }
            floats => floats.tensors().into_iter().map(|(name, shape, data)| tensor(name, shape, &data)).collect(),
        };
        Ok(Self { model, config, words, tensors })
    }
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let Inspected { model, config, words, tensors } = Inspected::open(&args.model)?;
    if args.unit.is_some() || args.word.is_some() {
        let (json, text) = named_units::about(&args.model, &model, args.unit, args.word.as_deref())?;
        return Ok(Outcome::done(json, text));
    }
    let size = |t: &Tensor| t.shape.iter().product::<usize>();
    let (parameters, nonzero): (usize, usize) =
        (tensors.iter().map(size).sum(), tensors.iter().map(|t| t.nonzero).sum());
    let list: Vec<Value> = tensors
        .iter()
        .map(|t| json!({ "name": t.name, "shape": t.shape, "nonzero": t.nonzero, "ranks": t.ranks }))
        .collect();
    let mut json = json!({
        "d": config.d,
        "dtype": config.dtype,
        "layers": config.layers,
        "spare": model.spare_units(),
        "max_length": config.max_length,
        "start": config.start,
        "labels": config.labels.as_ref().map(Vec::len),
        "words": words,
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
    let recites = model.source().text().map_or(String::new(), |text| {
        let tokens = if text.split == Split::Word { "words" } else { "characters" };
        format!("made to recite a text of {tokens} that starts with {:?}: monolayer generate\n", text.first)
    });
    let mut text = format!("{}\n{recites}{}", headline(&config, model.spare_units()), table(&rows, &[4]));
    let data = args.read.open_some(args.data.as_deref(), shared)?;
    let bits = LabelBits::new(&args.model, &model, &config, [parameters, nonzero], data.as_ref())?;
    text += &bits.as_ref().map_or(String::new(), LabelBits::text);
    json["label_bits"] = json!(bits.as_ref().map(LabelBits::json));
    if let Some(data) = &data {
        if let AnyModel::Exact(_) = model {
            let what = "what attention is worth is measured in floats, and this model is exact";
            return Err(Error::mismatch(what, "leave --data out").into());
        }
        let worth = Worth::measure(&model, data, &config, shared)?;
        text += &worth.text();
        json["worth"] = worth.json();
    }
    Ok(Outcome::done(json, text))
}

/// What the attention is worth on a dataset, and what others would build for it.
struct Worth {
    tokens: usize,
    right: usize,
    without_attention: usize,
    with_mean_pooling: usize,
    /// Corollary 1's count, 4(s + d) + d(2nN + d).
    paper_parameters: usize,
    /// The decimal logarithm of the self-attention layers of Yun et al., |V|^d + 1, and the layers of Kim et al., 2n: section 3.2.
    log10_yun_layers: f64,
    kim_layers: usize,
}

impl Worth {
    fn measure(model: &AnyModel, data: &Dataset, config: &Config, shared: &Shared) -> Result<Self> {
        let progress = Progress::new(shared, "running", 3 * data.tokens(), "tokens");
        let right = |model: &AnyModel| -> Result<usize> {
            let predictions = model.predict_with(data, &|tokens| progress.add(tokens))?;
            Ok(predictions.right(data, config.labels.as_deref()).unwrap_or(0))
        };
        let ids = data.token_ids();
        let place =
            |range: std::ops::Range<usize>, t: usize| if config.max_length.is_some() { t - range.start } else { 0 };
        let tokens = data
            .ranges()
            .flat_map(|range| range.clone().map(move |t| (range.clone(), t)))
            .map(|(range, t)| (ids[t], place(range, t)))
            .collect::<std::collections::HashSet<_>>()
            .len();
        let s = config.layers.iter().find_map(|l| l.attention.as_ref()).map_or(1, |a| a.head_size);
        Ok(Self {
            tokens: data.tokens(),
            right: right(model)?,
            without_attention: right(&model.without_attention())?,
            with_mean_pooling: right(&model.with_mean_pooling())?,
            paper_parameters: paper_parameters(data, s, config.d),
            log10_yun_layers: log10_yun_layers(tokens, config.d),
            kim_layers: 2 * data.longest(),
        })
    }

    fn json(&self) -> Value {
        json!({
            "tokens": self.tokens,
            "right": self.right,
            "right_without_attention": self.without_attention,
            "right_with_mean_pooling": self.with_mean_pooling,
            "paper_parameters": self.paper_parameters,
            "log10_yun_attention_layers": self.log10_yun_layers,
            "kim_attention_layers": self.kim_layers,
        })
    }

    fn text(&self) -> String {
        let row = |name: &str, n: usize, note: &str| vec![name.to_owned(), count(n), note.to_owned()];
        let rows = [
            row("tokens right", self.right, &format!("of {}", count(self.tokens))),
            row("with W_O = 0", self.without_attention, "attention switched off"),
            row("with kappa = 0", self.with_mean_pooling, "every query sees the mean"),
            row("parameters in the paper", self.paper_parameters, "4(s+d) + d(2nN+d), Corollary 1"),
            vec![
                "attention layers, Yun et al.".to_owned(),
                power_of_ten(self.log10_yun_layers),
                "|V|^d + 1, section 3.2".to_owned(),
            ],
            row("attention layers, Kim et al.", self.kim_layers, "2n, for sequences of length n, section 3.2"),
        ];
        table(&rows, &[2])
    }
}

/// `log10(|V|^d + 1)`.
fn log10_yun_layers(tokens: usize, d: usize) -> f64 {
    let power = d as f64 * (tokens as f64).log10();
    if power < 15.0 { (10_f64.powf(power) + 1.0).log10() } else { power }
}

/// A large number by its logarithm.
fn power_of_ten(log10: f64) -> String {
    if log10 < 9.0 { count(10_f64.powf(log10).round() as usize) } else { format!("10^{log10:.1}") }
}

fn tensor(name: String, shape: Vec<usize>, data: &[f64]) -> Tensor {
    let ranks = name.contains(".attention.").then(|| {
        let (rows, cols) = (shape[1], shape[2]);
        data.chunks_exact(rows * cols).map(|head| rank(cols, head)).collect()
    });
    Tensor { name, shape, nonzero: data.iter().filter(|&&x| x != 0.0).count(), ranks }
}

/// The same for exact numbers; ranks are given where all numbers of a matrix are floats.
fn exact(name: String, shape: Vec<usize>, data: &[RBig]) -> Tensor {
    let floats: Vec<f64> = data.iter().map(|x| x.to_f64().value()).collect();
    let same = |(x, &float): (&RBig, &f64)| float.is_finite() && rational(float) == *x;
    let kept = data.iter().zip(&floats).all(same);
    let nonzero = data.iter().filter(|x| !x.is_zero()).count();
    let tensor = tensor(name, shape, &floats);
    Tensor { nonzero, ranks: tensor.ranks.filter(|_| kept), ..tensor }
}

/// The model in a line; so many of its last layer's hidden units are spare.
fn headline(config: &Config, spare: usize) -> String {
    let layer = |(i, l): (usize, &directory::LayerConfig)| {
        let attention = l.attention.as_ref().map(|a| {
            let kind = format!("{:?}", a.kind).to_lowercase();
            let mask = if a.mask == MaskConfig::None { String::new() } else { format!(", mask {}", a.mask.name()) };
            format!("{kind} attention ({} of size {}{mask})", plural(a.heads, "head"), a.head_size)
        });
        let zeros = if i + 1 == config.layers.len() { spare } else { 0 };
        let also = if zeros > 0 { format!(" and {} spare", count(zeros)) } else { String::new() };
        let hidden = (l.hidden > 0).then(|| plural(l.hidden - zeros, "hidden unit") + &also);
        attention.into_iter().chain(hidden).collect::<Vec<_>>().join(" + ")
    };
    let layers: Vec<String> = config.layers.iter().enumerate().map(layer).collect();
    let pre = config.pre_feed_forward.as_ref().map(|p| format!("{} before; ", plural(p.hidden, "hidden unit")));
    let start = config.start.as_ref().map(|start| format!(", behind the start token {start:?}"));
    format!(
        "{}, d = {}, {}{}: {}{}",
        plural(config.layers.len(), "layer"),
        config.d,
        config.dtype,
        start.unwrap_or_default(),
        pre.unwrap_or_default(),
        layers.join("; ")
    )
}

fn plural(n: usize, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}
