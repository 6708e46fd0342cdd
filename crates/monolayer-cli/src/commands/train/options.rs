//! The options of a run on the command line.

use monolayer::Error;
use serde::Serialize;
use toml::Table;

/// Options in place of the file's and of the defaults.
#[derive(clap::Args, Serialize)]
#[command(next_help_heading = "Options of the run")]
pub struct Overrides {
    /// Blocks of attention and feed-forward [default: 1]
    #[arg(long, value_name = "L")]
    layers: Option<usize>,
    /// The embedding dimension d [default: 64, for vectors that of the data]
    #[arg(long, value_name = "D")]
    dim: Option<usize>,
    /// Hidden units q of a feed-forward block [default: 256]
    #[arg(long, value_name = "Q")]
    hidden: Option<usize>,
    /// Attention heads [default: 1]
    #[arg(long, value_name = "H")]
    heads: Option<usize>,
    /// The rank of a head's key, query and value weights: a number, or full for d / heads [default: 1]
    #[arg(long, value_name = "K", value_parser = |text: &str| text.parse::<monolayer_train::options::Rank>())]
    rank: Option<monolayer_train::options::Rank>,
    /// Values use the weights of the keys, as in eq. 20 [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    tied: Option<bool>,
    /// A trained vector for each place [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    positions: Option<bool>,
    /// A token sees only itself and those before it [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    causal: Option<bool>,
    /// Layer norm after each skip: a baseline that is not the paper's [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    layer_norm: Option<bool>,
    /// The precision of training and of the model [default: f32]
    #[arg(long, value_parser = ["f32", "f64"])]
    dtype: Option<String>,
    /// How parameters follow their gradients [default: adam]
    #[arg(long, value_parser = ["adam", "adamw", "sgd"])]
    optimizer: Option<String>,
    /// The learning rate [default: 0.001]
    #[arg(long, value_name = "X")]
    rate: Option<f64>,
    /// How the rate goes on after the warmup [default: constant]
    #[arg(long, value_parser = ["constant", "linear", "cosine"])]
    schedule: Option<String>,
    /// Steps in which the rate rises to its full size [default: 0]
    #[arg(long, value_name = "STEPS")]
    warmup: Option<u64>,
    /// How much of the momentum an Adam step keeps [default: 0.9]
    #[arg(long, value_name = "X")]
    beta1: Option<f64>,
    /// How much of the mean square an Adam step keeps [default: 0.999]
    #[arg(long, value_name = "X")]
    beta2: Option<f64>,
    /// Added to the root of Adam's mean square [default: 1e-8]
    #[arg(long, value_name = "X")]
    epsilon: Option<f64>,
    /// What an AdamW step takes off every parameter, times the rate [default: 0]
    #[arg(long, value_name = "X")]
    weight_decay: Option<f64>,
    /// How much of the momentum an SGD step keeps [default: 0.9]
    #[arg(long, value_name = "X")]
    momentum: Option<f64>,
    /// The largest norm of a step's gradient [default: none]
    #[arg(long, value_name = "NORM")]
    clip: Option<f64>,
    /// Update all embedding rows at every step, not each when its word comes up next: slower, the same to 1e-7 [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    dense_embedding: Option<bool>,
    /// Sequences of a batch [default: 32]
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Passes over the data [default: 50]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// The seed of weights, order and word dropout: same seed, same bytes [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    /// How entities are written as labels [default: as-is]
    #[arg(long, value_name = "SCHEME", value_parser = ["as-is", "iob1", "iob2"])]
    labels: Option<String>,
    /// The probability that a word seen once becomes the unknown word for an epoch [default: 0]
    #[arg(long, value_name = "P")]
    word_dropout: Option<f64>,
    /// A dataset to evaluate on: accuracy, and F1 where labels are entities [default: none]
    #[arg(long, value_name = "DATA")]
    dev: Option<String>,
    /// Epochs between evaluations, each with a checkpoint; 0: at the end alone [default: 10]
    #[arg(long, value_name = "N")]
    eval_every: Option<usize>,
}

impl Overrides {
    /// The options that were given.
    pub fn table(&self) -> Result<Table, Error> {
        Table::try_from(self).map_err(|e| Error::setting(e.to_string(), "numbers must be below 2^63"))
    }
}
