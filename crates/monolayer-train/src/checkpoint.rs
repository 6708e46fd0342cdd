//! Checkpoints: all that a run needs to go on as if it had never stopped, in one safetensors file.

use std::collections::HashMap;
use std::path::Path;

use monolayer::arithmetic::kernels::Real;
use monolayer::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::Step;
use crate::architecture::Architecture;
use crate::engine::{Parameters, State};
use crate::metrics::{Metrics, Seconds};
use crate::options::Options;

/// The version that this library reads and writes.
pub const FORMAT: &str = "monolayer-checkpoint/1";
/// Its name in a training directory.
pub const FILE: &str = "checkpoint.safetensors";

/// How far a run has come, but for its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// [`FORMAT`].
    pub format: String,
    /// The options.
    pub options: Options,
    /// The hash of the training data, or the text of the function.
    pub data: String,
    /// Steps done.
    pub steps: u64,
    /// Epochs done.
    pub epoch: usize,
    /// Steps done of the next epoch.
    pub step: usize,
    /// The sum of the losses of that epoch's tokens so far.
    pub loss: f64,
    /// Its right tokens so far.
    pub right: usize,
    /// Its tokens so far.
    pub tokens: usize,
    /// Those of them that have a label.
    #[serde(default)]
    pub labeled: usize,
    /// The mean loss of the last whole epoch.
    pub last_loss: Option<f64>,
    /// Tokens per second of the fastest epoch.
    pub tokens_per_second: Option<f64>,
    /// Where the time went.
    pub seconds: Seconds,
    /// All evaluations so far.
    pub history: Vec<Metrics>,
}

impl Progress {
    /// Adds a step, after which so many were taken in all.
    pub fn add(&mut self, step: &Step, steps: u64) {
        self.steps = steps;
        self.step += 1;
        self.loss += step.loss * step.labeled as f64;
        self.right += step.right;
        self.tokens += step.tokens;
        self.labeled += step.labeled;
    }

    /// A run before its first step.
    pub fn new(options: Options, data: String) -> Self {
        Self {
            format: FORMAT.to_owned(),
            options,
            data,
            steps: 0,
            epoch: 0,
            step: 0,
            loss: 0.0,
            right: 0,
            tokens: 0,
            labeled: 0,
            last_loss: None,
            tokens_per_second: None,
            seconds: Seconds::default(),
            history: Vec::new(),
        }
    }

    /// How far the run in a training directory has come.
    pub fn read(dir: &Path) -> Result<Self> {
        let (path, bytes) = open(dir)?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| spoiled(&path, &e.to_string()))?;
        let text = metadata.metadata().as_ref().and_then(|map| map.get("progress"));
        let text = text.ok_or_else(|| spoiled(&path, "it does not say how far the run has come"))?;
        let progress: Self = serde_json::from_str(text).map_err(|e| spoiled(&path, &e.to_string()))?;
        if progress.format != FORMAT {
            let help = format!("this program reads {FORMAT:?}; another version may read this one");
            return Err(Error::model(path, format!("format {:?}", progress.format), help));
        }
        Ok(progress)
    }

    /// Whether all epochs are done.
    pub fn finished(&self) -> bool {
        self.epoch >= self.options.epochs
    }
}

fn open(dir: &Path) -> Result<(std::path::PathBuf, Vec<u8>)> {
    let path = dir.join(FILE);
    let bytes = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
    Ok((path, bytes))
}

fn spoiled(path: &Path, what: &str) -> Error {
    Error::model(path, what, "it is no checkpoint of `monolayer train`, or was changed; train anew")
}

/// A list of numbers with its name, as bytes.
type List = (&'static str, Dtype, usize, Vec<u8>);

/// The bytes of a checkpoint.
pub(crate) fn to_bytes<R: Real>(progress: &Progress, state: &State<R>) -> Result<Vec<u8>> {
    let dtype = if R::NAME == "f32" { Dtype::F32 } else { Dtype::F64 };
    let reals = |name, list: &[R]| -> List { (name, dtype, list.len(), R::to_bytes(list)) };
    let seen: Vec<u8> = state.seen.iter().flat_map(|n| n.to_le_bytes()).collect();
    let lists: [List; 8] = [
        reals("parameters.embedding", &state.parameters.embedding),
        reals("parameters.dense", &state.parameters.dense),
        reals("first.embedding", &state.first.embedding),
        reals("first.dense", &state.first.dense),
        reals("second.embedding", &state.second.embedding),
        reals("second.dense", &state.second.dense),
        ("rates", Dtype::F64, state.rates.len(), f64::to_bytes(&state.rates)),
        ("seen", Dtype::U32, state.seen.len(), seen),
    ];
    let views = lists.iter().map(|(name, dtype, len, bytes)| {
        (*name, TensorView::new(*dtype, vec![*len], bytes).expect("as many bytes as numbers"))
    });
    let text = serde_json::to_string(progress).expect("progress is plain data");
    let metadata = HashMap::from([("progress".to_owned(), text)]);
    safetensors::serialize(views, Some(metadata))
        .map_err(|e| Error::model(FILE, e.to_string(), "the model is too large for the format"))
}

/// The numbers of the checkpoint in a training directory, after `steps` steps of a model of these sizes.
pub(crate) fn read_state<R: Real>(dir: &Path, architecture: &Architecture, steps: u64) -> Result<State<R>> {
    let (path, bytes) = open(dir)?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| spoiled(&path, &e.to_string()))?;
    let dtype = if R::NAME == "f32" { Dtype::F32 } else { Dtype::F64 };
    let list = |name: &str, dtype: Dtype, lengths: &[usize]| {
        let tensor = file.tensor(name).map_err(|e| spoiled(&path, &e.to_string()))?;
        let fits = tensor.dtype() == dtype && tensor.shape().len() == 1 && lengths.contains(&tensor.shape()[0]);
        if fits { Ok(tensor.data()) } else { Err(spoiled(&path, &format!("{name} has another size or type"))) }
    };
    let words = architecture.words.unwrap_or(0);
    let (rows, dense) = (words * architecture.dim, architecture.layout().len());
    let reals = |name: &str, lengths: &[usize]| list(name, dtype, lengths).map(R::from_bytes);
    let rates = file.tensor("rates").map_err(|e| spoiled(&path, &e.to_string()))?;
    let rates = list("rates", Dtype::F64, &rates.shape()[..1.min(rates.shape().len())])?;
    let (seen, _) = list("seen", Dtype::U32, &[words])?.as_chunks();
    let state = State {
        steps,
        rates: f64::from_bytes(rates),
        seen: seen.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect(),
        parameters: Parameters {
            embedding: reals("parameters.embedding", &[rows])?,
            dense: reals("parameters.dense", &[dense])?,
        },
        first: Parameters { embedding: reals("first.embedding", &[rows])?, dense: reals("first.dense", &[dense])? },
        second: Parameters {
            embedding: reals("second.embedding", &[rows, 0])?,
            dense: reals("second.dense", &[dense, 0])?,
        },
    };
    let behind = state.seen.iter().any(|&seen| seen as usize > state.rates.len());
    if behind || state.rates.len() as u64 > state.steps {
        return Err(spoiled(&path, "its counts of steps contradict each other"));
    }
    Ok(state)
}
