//! The options of a run on the command line.

use monolayer::Error;
use serde::Serialize;
use toml::Table;

use crate::commands::{DOES, READS};

/// Options in place of the file's and of the defaults.
#[derive(clap::Args, Serialize)]
#[command(next_help_heading = DOES)]
pub struct Overrides {
    /// Number of layers, each an attention and a feed-forward block [default: 1]
    #[arg(long, value_name = "L", visible_aliases = ["num-layers", "n-layers"])]
    layers: Option<usize>,
    /// Embedding dimension d [default: 64; for vectors, the dimension of the data]
    #[arg(long, value_name = "D", visible_aliases = ["d-model", "embedding-dim"])]
    dim: Option<usize>,
    /// Number q of hidden units in a feed-forward block [default: 256]
    #[arg(long, value_name = "Q", visible_aliases = ["d-ff", "hidden-size"])]
    hidden: Option<usize>,
    /// Number of attention heads [default: 1]
    #[arg(long, value_name = "H", visible_aliases = ["num-heads", "n-heads"])]
    heads: Option<usize>,
    /// Rank of the key, query and value matrices of a head: a number, or full for d / heads [default: 1]
    #[arg(long, value_name = "K", value_parser = |text: &str| text.parse::<monolayer_train::options::Rank>())]
    rank: Option<monolayer_train::options::Rank>,
    /// Use the key matrix for values, too, as in eq. 20 [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    tied: Option<bool>,
    /// Train a vector for each position [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    positions: Option<bool>,
    /// A token attends only to itself and the tokens before it [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    causal: Option<bool>,
    /// Layer norm after each skip connection; not part of the paper's model [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    layer_norm: Option<bool>,
    /// Precision of training and of the model [default: f32]
    #[arg(long, value_parser = ["f32", "f64"])]
    dtype: Option<String>,
    /// Optimizer [default: adam]
    #[arg(long, value_parser = ["adam", "adamw", "sgd"])]
    optimizer: Option<String>,
    /// Learning rate [default: 0.001]
    #[arg(long, value_name = "X", visible_aliases = ["lr", "learning-rate"])]
    rate: Option<f64>,
    /// Learning rate schedule after the warmup [default: constant]
    #[arg(long, value_parser = ["constant", "linear", "cosine"], visible_alias = "lr-schedule")]
    schedule: Option<String>,
    /// Number of warmup steps, in which the learning rate rises linearly [default: 0]
    #[arg(long, value_name = "STEPS", visible_alias = "warmup-steps")]
    warmup: Option<u64>,
    /// Decay of Adam's first moment [default: 0.9]
    #[arg(long, value_name = "X")]
    beta1: Option<f64>,
    /// Decay of Adam's second moment [default: 0.999]
    #[arg(long, value_name = "X")]
    beta2: Option<f64>,
    /// Adam's epsilon, added to the denominator [default: 1e-8]
    #[arg(long, value_name = "X", visible_alias = "eps")]
    epsilon: Option<f64>,
    /// Weight decay of AdamW [default: 0]
    #[arg(long, value_name = "X")]
    weight_decay: Option<f64>,
    /// Momentum of SGD [default: 0.9]
    #[arg(long, value_name = "X")]
    momentum: Option<f64>,
    /// Clip the gradient of a step to this norm [default: no clipping]
    #[arg(long, value_name = "NORM", visible_aliases = ["grad-clip", "max-grad-norm"])]
    clip: Option<f64>,
    /// Update all embedding rows at every step. Otherwise a row is updated when its word occurs next: faster, and the same up
    /// to 1e-7 [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    dense_embedding: Option<bool>,
    /// Number of sequences in a batch [default: 32]
    #[arg(long, value_name = "N", visible_alias = "batch-size")]
    batch: Option<usize>,
    /// Number of passes over the data [default: 50]
    #[arg(long, value_name = "N", visible_alias = "num-epochs")]
    epochs: Option<usize>,
    /// Seed of the weights, the order of the data and word dropout; the same seed gives the same bytes [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Rewrite entity labels to this scheme [default: as-is]
    #[arg(long, value_name = "SCHEME", value_parser = ["as-is", "iob1", "iob2"])]
    labels: Option<String>,
    /// Probability that a word that occurs once is replaced by the unknown word for an epoch [default: 0]
    #[arg(long, value_name = "P")]
    word_dropout: Option<f64>,
    /// Development set: report its accuracy, and F1 if labels are entities [default: none]
    #[arg(long, value_name = "DATA", help_heading = READS)]
    dev: Option<String>,
    /// Number of epochs between evaluations, each with a checkpoint; 0: only at the end [default: 10]
    #[arg(long, value_name = "N")]
    eval_every: Option<usize>,
}

impl Overrides {
    /// The options that were given.
    pub fn table(&self) -> Result<Table, Error> {
        Table::try_from(self).map_err(|e| Error::setting(e.to_string(), "numbers must be below 2^63"))
    }
}
