//! One optimizer step after another.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::StandardNormal;
use rayon::prelude::*;

use monolayer::Error;
use monolayer::arithmetic::kernels::Real;

use crate::architecture::{Architecture, Layout, Tensor};
use crate::batch::split;
pub use crate::batch::{Batch, CHUNK, Diverged, Evaluation, Step, Targets, Tokens};
use crate::lazy_adam::{CatchUp, MissedSteps};
use crate::optimizer::{Optimizer, Update};
pub use crate::pass::Parameters;
use crate::pass::{Chunk, Pass};
use crate::rows::{BatchRows, LateRows};
use crate::team::{self, Task};
pub use crate::times::Times;
use crate::times::{Part, Watch};
use crate::update::{self, ParameterBlock, blocks};
use monolayer::arithmetic::arg_max;

/// A mean loss above this is no longer training.
const DIVERGED: f64 = 1e8;
/// Rows are never more than this many steps behind, nor more than an eighth of all steps: [`crate::lazy_adam`] says why.
const BEHIND: u64 = 1024;

/// A model in training.
#[derive(Debug)]
pub struct Engine<R> {
    architecture: Architecture,
    layout: Layout,
    optimizer: Optimizer,
    clip: Option<f64>,
    dense_embedding: bool,
    /// The dense parameters, a block at a time.
    blocks: Vec<ParameterBlock>,
    parameters: Parameters<R>,
    /// Momentum and mean square, laid out as the parameters.
    first: Parameters<R>,
    second: Parameters<R>,
    /// Steps done.
    steps: u64,
    /// Learning rates of the steps since all rows were up to date, and how many of these steps each row has seen.
    rates: Vec<f64>,
    seen: Vec<u32>,
    missed: MissedSteps,
    rows: BatchRows<R>,
    chunks: Vec<Chunk<R>>,
    watch: Watch,
}

/// Everything that goes on from one step to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct State<R> {
    /// Steps done.
    pub steps: u64,
    /// Learning rates of the steps since all embedding rows were up to date.
    pub rates: Vec<f64>,
    /// How many of these steps each embedding row has seen.
    pub seen: Vec<u32>,
    /// The parameters.
    pub parameters: Parameters<R>,
    /// Momentum.
    pub first: Parameters<R>,
    /// Mean squares, empty for SGD.
    pub second: Parameters<R>,
}

impl<R: Real> Engine<R> {
    /// A model with random weights: embedding rows and positions standard normal, all else uniform within 1 / sqrt(fan-in).
    pub fn new(architecture: Architecture, optimizer: Optimizer, clip: Option<f64>, seed: u64) -> Self {
        let layout = architecture.layout();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut dense = vec![R::ZERO; layout.len()];
        for tensor in &layout.tensors {
            let numbers = &mut dense[tensor.range.clone()];
            let bound = 1.0 / (tensor.fan_in as f64).sqrt();
            if tensor.name.contains("norm_") {
                numbers[..architecture.dim].fill(R::ONE);
            } else if tensor.name == "positions.weight" {
                numbers.fill_with(|| R::from_f64(rng.sample(StandardNormal)));
            } else {
                numbers.fill_with(|| R::from_f64(rng.random_range(-bound..bound)));
            }
        }
        let rows = architecture.words.unwrap_or(0) * architecture.dim;
        let embedding = (0..rows).map(|_| R::from_f64(rng.sample(StandardNormal))).collect();
        Self::from_parameters(architecture, optimizer, clip, Parameters { embedding, dense })
    }

    /// A model with these weights, before its first step.
    pub fn from_parameters(
        architecture: Architecture,
        optimizer: Optimizer,
        clip: Option<f64>,
        parameters: Parameters<R>,
    ) -> Self {
        let layout = architecture.layout();
        assert_eq!(layout.len(), parameters.dense.len());
        let zeros = |wanted: bool| {
            let zeros = |list: &[R]| vec![R::ZERO; if wanted { list.len() } else { 0 }];
            Parameters { embedding: zeros(&parameters.embedding), dense: zeros(&parameters.dense) }
        };
        let words = architecture.words.unwrap_or(0);
        let blocks = blocks(0..layout.len(), true).collect();
        Self {
            first: zeros(true),
            second: zeros(optimizer.has_second()),
            rows: BatchRows::new(words),
            seen: vec![0; words],
            rates: Vec::new(),
            missed: MissedSteps::default(),
            steps: 0,
            chunks: Vec::new(),
            watch: Watch::default(),
            architecture,
            layout,
            optimizer,
            clip,
            dense_embedding: false,
            blocks,
            parameters,
        }
    }

    /// Whether every step moves all embedding rows, as PyTorch does, or a row catches up when its word comes up again
    /// (the default). The two differ by rounding; the first sweeps the whole table at every step.
    #[must_use]
    pub fn with_dense_embedding(mut self, dense: bool) -> Self {
        self.dense_embedding = dense;
        self
    }

    /// Gives a tensor (any but the embedding) these numbers.
    pub fn set(&mut self, name: &str, numbers: &[R]) -> monolayer::Result<()> {
        let names = || self.layout.tensors.iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(tensor) = self.layout.tensors.iter().find(|tensor| tensor.name == name) else {
            return Err(Error::setting(format!("no tensor {name:?}"), format!("the tensors are {}", names())));
        };
        if tensor.range.len() != numbers.len() {
            let what = format!("{} numbers for {name}, which has {}", numbers.len(), tensor.range.len());
            return Err(Error::setting(what, "give as many as it has"));
        }
        self.parameters.dense[tensor.range.clone()].copy_from_slice(numbers);
        Ok(())
    }

    /// Keeps the tensors with these names (all but the embedding) as they are.
    #[must_use]
    pub fn with_frozen(mut self, names: &[String]) -> Self {
        let moves = |tensor: &Tensor| !names.contains(&tensor.name);
        let tensors = self.layout.tensors.iter();
        self.blocks = tensors.flat_map(|tensor| blocks(tensor.range.clone(), moves(tensor))).collect();
        self
    }

    /// The sizes.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Steps done.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The parameters; call [`Self::catch_up`] first.
    pub fn parameters(&self) -> &Parameters<R> {
        &self.parameters
    }

    /// Where the time went, on all threads together, since the last call.
    pub fn take_times(&mut self) -> Times {
        let mut times = self.watch.take();
        self.chunks.iter_mut().for_each(|chunk| times.add(&chunk.watch.take()));
        times
    }

    /// Everything that goes on from one step to the next.
    pub fn state(&self) -> State<R> {
        State {
            steps: self.steps,
            rates: self.rates.clone(),
            seen: self.seen.clone(),
            parameters: self.parameters.clone(),
            first: self.first.clone(),
            second: self.second.clone(),
        }
    }

    /// Goes on from a state of an engine of the same sizes and optimizer.
    pub fn restore(&mut self, state: State<R>) {
        State {
            steps: self.steps,
            rates: self.rates,
            seen: self.seen,
            parameters: self.parameters,
            first: self.first,
            second: self.second,
        } = state;
        self.missed.clear();
        let start = self.steps - self.rates.len() as u64;
        (start + 1..).zip(&self.rates).for_each(|(step, &rate)| self.missed.push(&self.optimizer, step, rate));
    }

    /// One step on a batch.
    pub fn step(&mut self, batch: &Batch<R>, rate: f64) -> Result<Step, Diverged> {
        assert!(batch.offsets[0] == 0 && batch.tokens() > 0);
        // All of the step on threads of the pool: a thread outside would have to be woken after each part.
        rayon::scope(|_| self.step_in_pool(batch, rate))
    }

    fn step_in_pool(&mut self, batch: &Batch<R>, rate: f64) -> Result<Step, Diverged> {
        let (tokens, labeled) = (batch.tokens(), batch.labeled());
        self.watch.start();
        if let Tokens::Words(ids) = batch.tokens {
            self.rows.find(ids, &self.seen, &mut self.missed, &self.optimizer);
        }
        self.watch.lap(Part::Embedding);
        let chunks = split(batch.offsets);
        self.chunks.resize_with(self.chunks.len().max(chunks.len()), Chunk::default);
        let used = &mut self.chunks[..chunks.len()];
        used.iter_mut().zip(chunks).for_each(|(chunk, sequences)| chunk.sequences = sequences);
        let late = LateRows { rows: &self.rows, first: &self.first, second: &self.second };
        let pass = Pass {
            architecture: &self.architecture,
            layout: &self.layout,
            parameters: &self.parameters,
            late: Some(late),
            batch,
        };
        let share = R::ONE / R::from_f64(labeled.max(1) as f64);
        let tasks = used.iter_mut().map(|chunk| {
            let pass = &pass;
            Box::new(move || {
                pass.forward(chunk);
                pass.backward(chunk, share);
            }) as Task
        });
        team::run(tasks.collect());
        self.watch.start();
        let loss = used.iter().map(|chunk| chunk.sum.loss).sum::<f64>() / labeled.max(1) as f64;
        let right = used.iter().map(|chunk| chunk.sum.right).sum();
        let used = used.len();
        if !(loss.is_finite() && loss < DIVERGED) {
            return Err(self.diverged(format!("a mean loss of {loss}"), "the head"));
        }
        // No sum of the chunks' gradients, however they point, is longer than this.
        let longest = tokens as f64 * self.chunks[..used].iter().map(|chunk| chunk.squares).sum::<f64>();
        if longest.is_nan() || longest >= R::LARGEST.to_f64() {
            return Err(self.diverged("a gradient that is not finite".into(), "the embedding"));
        }
        let gradient_norm = self.update(batch, used, rate);
        self.watch.lap_of_all(Part::Optimizer);
        Ok(Step { loss, right, tokens, labeled, gradient_norm })
    }

    /// Brings all embedding rows up to date, as dense updates would have at every step.
    pub fn catch_up(&mut self) {
        let Self { optimizer, rates, missed, seen, parameters, first, second, architecture, .. } = self;
        let d = architecture.dim;
        missed.add_up(optimizer);
        let catch_ups: Vec<Option<CatchUp<R>>> =
            (0..rates.len() as u32).map(|seen| missed.catch_up(optimizer, seen)).collect();
        let rows = parameters.embedding.par_chunks_exact_mut(d).zip(first.embedding.par_chunks_exact_mut(d)).zip(seen);
        let apply = |((row, first), seen): ((&mut [R], &mut [R]), &mut u32), second: &mut [R]| {
            if let Some(Some(catch_up)) = catch_ups.get(*seen as usize) {
                catch_up.apply(row, first, second);
            }
            *seen = 0;
        };
        if optimizer.has_second() {
            let rows = rows.zip(second.embedding.par_chunks_exact_mut(d)).with_min_len(256);
            rows.for_each(|(row, second)| apply(row, second));
        } else {
            rows.with_min_len(256).for_each(|row| apply(row, &mut []));
        }
        rates.clear();
        missed.clear();
    }

    /// The optimizer's step with the gradients of the chunks in use; returns the norm of their sum.
    fn update(&mut self, batch: &Batch<R>, used: usize, rate: f64) -> f64 {
        self.steps += 1;
        let update: Update<R> = self.optimizer.update(self.steps, rate);
        let Self { parameters, first, second, blocks, .. } = self;
        let words = if let Tokens::Words(ids) = batch.tokens { ids } else { &[] };
        let targets = update::Moved { parameters, first, second, blocks };
        let chunks = &mut self.chunks[..used];
        let norm = targets.step(&update, self.clip, chunks, &mut self.rows, (words, self.architecture.dim));
        self.rates.push(rate);
        self.rows.set_seen(&mut self.seen, self.rates.len() as u32);
        self.missed.push(&self.optimizer, self.steps, rate);
        let behind = if self.dense_embedding { 1 } else { (self.steps / 8).clamp(1, BEHIND) };
        if self.rates.len() as u64 >= behind {
            self.catch_up();
        }
        norm
    }

    /// Where things went wrong: the first number that is not finite.
    fn diverged(&self, what: String, otherwise: &str) -> Diverged {
        let bad = |list: &[R]| list.iter().position(|x| !x.finite());
        let tensor = if let Some(i) = bad(&self.parameters.dense) {
            self.layout.tensor_at(i).name.clone()
        } else if bad(&self.parameters.embedding).is_some() {
            "embedding.weight".into()
        } else if let Some(place) = self.chunks.iter().find_map(|chunk| chunk.first_bad(&self.architecture)) {
            place
        } else if let Some(i) = self.chunks.iter().find_map(|chunk| bad(&chunk.gradient)) {
            format!("the gradient of {}", self.layout.tensor_at(i).name)
        } else {
            otherwise.into()
        };
        Diverged { step: self.steps + 1, what, tensor }
    }

    /// The loss and the labels of some data; rows must be up to date ([`Self::catch_up`]).
    pub fn evaluate(&self, batch: &Batch<R>) -> Evaluation {
        assert!(self.rates.is_empty(), "embedding rows are behind: call catch_up first");
        let pass = Pass {
            architecture: &self.architecture,
            layout: &self.layout,
            parameters: &self.parameters,
            late: None,
            batch,
        };
        let d = self.architecture.dim;
        let parts: Vec<(f64, Vec<u32>, [usize; 2])> = split(batch.offsets)
            .into_par_iter()
            .map_init(Chunk::default, |chunk, sequences| {
                let (mut loss, mut labels, mut token) = (0.0, Vec::new(), batch.offsets[sequences.start]);
                chunk.sequences = sequences;
                pass.forward(chunk);
                pass.outputs(chunk, |row| {
                    match batch.targets {
                        Targets::Labels(wanted) => {
                            let best = arg_max(row);
                            if let Some(wanted) = wanted[token] {
                                let total: f64 = row.iter().map(|&x| (x - row[best]).to_f64().exp()).sum();
                                loss += total.ln() + (row[best] - row[wanted as usize]).to_f64();
                            }
                            labels.push(best as u32);
                        }
                        Targets::Vectors(wanted) => {
                            let errors = row.iter().zip(&wanted[token * d..]).map(|(&x, &y)| (x - y).to_f64());
                            loss += errors.map(|e| e * e).sum::<f64>() / d as f64;
                        }
                    }
                    token += 1;
                });
                (loss, labels, pass.firing(chunk))
            })
            .collect();
        let loss = parts.iter().map(|(loss, ..)| loss).sum::<f64>() / batch.labeled().max(1) as f64;
        let units = |i: usize| parts.iter().map(|(.., units)| units[i]).sum::<usize>() as f64;
        let firing = units(0) / units(1).max(1.0);
        Evaluation { loss, labels: parts.into_iter().flat_map(|(_, labels, _)| labels).collect(), firing }
    }
}
