//! All that can be chosen about a training run, in one place: a TOML file holds it, the command line overrides it.

use std::path::Path;

use monolayer::{Error, Result};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::architecture::Architecture;
use crate::optimizer::Optimizer;
use crate::schedule::Schedule;
use monolayer::data::LabelScheme;

/// The options of a run. A file may leave out any of them, and may hold no others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    /// Blocks of attention and feed-forward.
    pub layers: usize,
    /// The embedding dimension d; for vectors that of the data.
    pub dim: Option<usize>,
    /// Hidden units q of a feed-forward block; 0 for attention alone.
    pub hidden: usize,
    /// Attention heads.
    pub heads: usize,
    /// The rank of the key, query and value weights of a head.
    pub rank: Rank,
    /// Whether values use the weights of the keys, as in eq. 20.
    pub tied: bool,
    /// Whether each place has a trained vector.
    pub positions: bool,
    /// Whether a token sees only itself and those before it.
    pub causal: bool,
    /// Layer norm after each skip: a baseline that no model directory can hold.
    pub layer_norm: bool,
    /// The precision of training and of the model.
    pub dtype: Dtype,
    /// How parameters follow their gradients.
    pub optimizer: Kind,
    /// The learning rate.
    pub rate: f64,
    /// How the rate changes from the warmup to the last step.
    pub schedule: Schedule,
    /// Steps in which the rate rises to its full size.
    pub warmup: u64,
    /// How much of the momentum an Adam step keeps.
    pub beta1: f64,
    /// How much of the mean square an Adam step keeps.
    pub beta2: f64,
    /// Added to the root of Adam's mean square.
    pub epsilon: f64,
    /// What an AdamW step takes off every parameter, times the rate.
    pub weight_decay: f64,
    /// How much of the momentum an SGD step keeps.
    pub momentum: f64,
    /// The largest norm of a step's gradient; larger ones are scaled down to it.
    pub clip: Option<f64>,
    /// Whether a step updates the embedding rows of words that are not in its batch at once, not when they come up next.
    pub dense_embedding: bool,
    /// Sequences of a batch.
    pub batch: usize,
    /// Passes over the data.
    pub epochs: usize,
    /// The seed of weights, order and word dropout: same seed, same bytes.
    pub seed: u64,
    /// How entities are written as labels.
    pub labels: LabelScheme,
    /// The probability that a word seen only once in the data becomes `<unk>` for an epoch.
    pub word_dropout: f64,
    /// A dataset that is not trained on, for accuracy and entity F1.
    pub dev: Option<String>,
    /// Epochs between evaluations (and checkpoints); 0 for one at the end.
    pub eval_every: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            layers: 1,
            dim: None,
            hidden: 256,
            heads: 1,
            rank: Rank::Of(1),
            tied: true,
            positions: false,
            causal: false,
            layer_norm: false,
            dtype: Dtype::F32,
            optimizer: Kind::Adam,
            rate: 1e-3,
            schedule: Schedule::Constant,
            warmup: 0,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            momentum: 0.9,
            clip: None,
            dense_embedding: false,
            batch: 32,
            epochs: 50,
            seed: 0,
            labels: LabelScheme::AsIs,
            word_dropout: 0.0,
            dev: None,
            eval_every: 10,
        }
    }
}

/// The rank of a head's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrName", into = "NumberOrName")]
pub enum Rank {
    /// This many rows.
    Of(usize),
    /// As many as the heads leave: d / heads.
    Full,
}

/// A number or a word, as files and the command line have it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum NumberOrName {
    Number(usize),
    Name(String),
}

impl TryFrom<NumberOrName> for Rank {
    type Error = String;

    fn try_from(value: NumberOrName) -> std::result::Result<Self, String> {
        match value {
            NumberOrName::Number(rank) => Ok(Self::Of(rank)),
            NumberOrName::Name(name) => name.parse(),
        }
    }
}

impl From<Rank> for NumberOrName {
    fn from(rank: Rank) -> Self {
        match rank {
            Rank::Of(rank) => Self::Number(rank),
            Rank::Full => Self::Name("full".to_owned()),
        }
    }
}

impl std::str::FromStr for Rank {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.parse() {
            Ok(rank) => Ok(Self::Of(rank)),
            Err(_) if text == "full" => Ok(Self::Full),
            Err(_) => Err(format!("{text:?} is not a rank: a number, or \"full\"")),
        }
    }
}

/// The precision of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// Single.
    F32,
    /// Double.
    F64,
}

/// The kinds of optimizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Adam.
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
    /// Gradient descent with momentum.
    Sgd,
}

impl Options {
    /// Reads a TOML file, if any, and lets `overrides` win.
    pub fn read(file: Option<&Path>, overrides: Table) -> Result<Self> {
        let mut table = Table::new();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
            // A file that is wrong by itself is reported with its own lines.
            let read: std::result::Result<Self, _> = toml::from_str(&text);
            read.map_err(|e| Error::model(path, e.to_string().trim_end(), "its fields are the options of a run"))?;
            table = text.parse().expect("it was read");
        }
        Self::merged(table, overrides)
    }

    /// The options of a table, with those of another one in their place.
    pub fn merged(mut table: Table, overrides: Table) -> Result<Self> {
        table.extend(overrides);
        let options: Self = Value::Table(table).try_into().map_err(|e: toml::de::Error| {
            Error::setting(e.to_string().trim_end(), "its fields are the options of a run")
        })?;
        options.check()?;
        Ok(options)
    }

    /// The same options with others in their place.
    pub fn with(&self, overrides: Table) -> Result<Self> {
        let own = Table::try_from(self).map_err(|e| Error::setting(e.to_string(), "numbers must be below 2^63"))?;
        Self::merged(own, overrides)
    }

    fn check(&self) -> Result<()> {
        let unit = 0.0..1.0;
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let wrong = [
            (self.layers == 0, "layers", "at least 1"),
            (self.dim == Some(0), "dim", "at least 1"),
            (self.heads == 0, "heads", "at least 1"),
            (self.rank == Rank::Of(0), "rank", "at least 1, or full"),
            (self.batch == 0, "batch", "at least 1"),
            (!positive(self.rate), "rate", "a positive number"),
            (!positive(self.epsilon), "epsilon", "a positive number"),
            (!unit.contains(&self.beta1), "beta1", "from 0 to below 1"),
            (!unit.contains(&self.beta2), "beta2", "from 0 to below 1"),
            (!unit.contains(&self.momentum), "momentum", "from 0 to below 1"),
            (!unit.contains(&self.word_dropout), "word_dropout", "from 0 to below 1"),
            (!(self.weight_decay == 0.0 || positive(self.weight_decay)), "weight_decay", "0 or a positive number"),
            (self.clip.is_some_and(|clip| !positive(clip)), "clip", "a positive number"),
        ];
        if let Some((_, name, range)) = wrong.iter().find(|(wrong, ..)| *wrong) {
            return Err(Error::setting(format!("the option {name} is out of range"), format!("it must be {range}")));
        }
        if self.weight_decay != 0.0 && self.optimizer != Kind::AdamW {
            let help = "use the optimizer adamw, or leave the weight decay out";
            return Err(Error::setting("weight decay is AdamW's", help));
        }
        Ok(())
    }

    /// The optimizer that these options name.
    pub fn optimizer(&self) -> Optimizer {
        let &Self { beta1, beta2, epsilon, weight_decay, momentum, .. } = self;
        match self.optimizer {
            Kind::Adam | Kind::AdamW => Optimizer::Adam { beta1, beta2, epsilon, weight_decay },
            Kind::Sgd => Optimizer::Sgd { momentum },
        }
    }

    /// The sizes of a model of these options for data with so many words and labels, or none, and vectors of dimension `d`, if
    /// tokens or labels are vectors; `longest` is the length of the longest sequence.
    pub fn architecture(
        &self,
        words: Option<usize>,
        d: Option<usize>,
        labels: Option<usize>,
        longest: usize,
    ) -> Result<Architecture> {
        let dim = match (self.dim, d) {
            (Some(dim), Some(d)) if dim != d => {
                let help = "leave dim out: a model of vectors has their dimension";
                return Err(Error::mismatch(format!("dim {dim}, but the data has vectors of dimension {d}"), help));
            }
            (dim, d) => dim.or(d).unwrap_or(64),
        };
        let head_size = match self.rank {
            Rank::Of(rank) if rank > dim => {
                let what = format!("rank {rank}, but weights with d = {dim} columns have at most that rank");
                return Err(Error::setting(what, "lower the rank, or raise dim"));
            }
            Rank::Of(rank) => rank,
            Rank::Full if dim.is_multiple_of(self.heads) => dim / self.heads,
            Rank::Full => {
                let what = format!("full rank shares d = {dim} among the heads, but {} do not divide it", self.heads);
                return Err(Error::setting(what, "change heads or dim, or give the rank as a number"));
            }
        };
        Ok(Architecture {
            words,
            dim,
            layers: self.layers,
            hidden: self.hidden,
            heads: self.heads,
            head_size,
            tied: self.tied,
            causal: self.causal,
            positions: self.positions.then_some(longest),
            layer_norm: self.layer_norm,
            labels,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn the_command_line_wins() {
        let options = Options::merged(table("layers = 3\nrank = 4\nclip = 1.0"), table("rank = \"full\"")).unwrap();
        assert_eq!((options.layers, options.rank, options.clip), (3, Rank::Full, Some(1.0)));
        assert_eq!(options.with(table("epochs = 7")).unwrap(), Options { epochs: 7, ..options });
        assert_eq!(Options::merged(Table::new(), Table::new()).unwrap(), Options::default());
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |text: &str, words: &[&str]| {
            let message = Options::merged(table(text), Table::new()).unwrap_err().to_string();
            words.iter().for_each(|word| assert!(message.contains(word), "{message}"));
        };
        refused("layer = 3", &["layer", "unknown field"]);
        refused("rank = \"half\"", &["half", "not a rank"]);
        refused("rate = -1.0", &["rate", "positive"]);
        refused("weight_decay = 0.1", &["adamw"]);
        let options = Options { dim: Some(3), ..Options::default() };
        assert!(options.architecture(None, Some(2), None, 5).unwrap_err().to_string().contains("dimension 2"));
    }

    #[test]
    fn full_rank_is_shared_among_heads() {
        let options = Options { rank: Rank::Full, heads: 4, ..Options::default() };
        assert_eq!(options.architecture(Some(9), None, Some(2), 5).unwrap().head_size, 16);
        let options = Options { heads: 3, ..options };
        assert!(options.architecture(Some(9), None, Some(2), 5).is_err());
    }
}
