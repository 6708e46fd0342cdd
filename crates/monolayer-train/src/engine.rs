//! One optimizer step after another.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::StandardNormal;
use rayon::prelude::*;

use monolayer::Error;
use monolayer::arithmetic::kernels::{self, Real};

use crate::architecture::{Architecture, Layout};
pub use crate::batch::{Batch, Diverged, Evaluation, Step, Targets, Times, Tokens};
use crate::lazy_adam::{CatchUp, catch_ups};
use crate::optimizer::{Optimizer, Update};
pub use crate::pass::Parameters;
use crate::pass::{Chunk, Pass};
use monolayer::arithmetic::arg_max;

/// About as many tokens are in a chunk of a batch, the work of one thread.
pub const CHUNK: usize = 256;
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
    /// The dense parameters that steps move.
    moving: Vec<std::ops::Range<usize>>,
    parameters: Parameters<R>,
    /// Momentum and mean square, laid out as the parameters.
    first: Parameters<R>,
    second: Parameters<R>,
    /// Steps done.
    steps: u64,
    /// Learning rates of the steps since all rows were up to date, and how many of these steps each row has seen.
    rates: Vec<f64>,
    seen: Vec<u32>,
    words: BatchWords<R>,
    chunks: Vec<Chunk<R>>,
    times: Times,
}

/// The distinct words of a batch.
#[derive(Debug, Default)]
struct BatchWords<R> {
    /// For each word of the vocabulary, its place in `distinct` plus 1, or 0.
    slot: Vec<u32>,
    distinct: Vec<u32>,
    /// The gradient of each distinct word's row.
    gradient: Vec<R>,
    catch_ups: Vec<CatchUp<R>>,
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
        let moving = std::iter::once(0..layout.len()).collect();
        Self {
            first: zeros(true),
            second: zeros(optimizer.has_second()),
            words: BatchWords { slot: vec![0; words], ..BatchWords::default() },
            seen: vec![0; words],
            rates: Vec::new(),
            steps: 0,
            chunks: Vec::new(),
            times: Times::default(),
            architecture,
            layout,
            optimizer,
            clip,
            dense_embedding: false,
            moving,
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
        let moving = self.layout.tensors.iter().filter(|tensor| !names.contains(&tensor.name));
        self.moving = moving.map(|tensor| tensor.range.clone()).collect();
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
        let mut times = std::mem::take(&mut self.times);
        for chunk in &mut self.chunks {
            let own = std::mem::take(&mut chunk.times);
            times.embedding += own.embedding;
            times.attention += own.attention;
            times.feed_forward += own.feed_forward;
            times.head += own.head;
        }
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
    }

    /// One step on a batch.
    pub fn step(&mut self, batch: &Batch<R>, rate: f64) -> Result<Step, Diverged> {
        let (tokens, labeled) = (batch.tokens(), batch.labeled());
        assert!(batch.offsets[0] == 0 && tokens > 0);
        let start = std::time::Instant::now();
        if let Tokens::Words(ids) = batch.tokens {
            self.touch(ids);
        }
        self.times.embedding += start.elapsed().as_secs_f64();
        let chunks = split(batch.offsets);
        self.chunks.resize_with(self.chunks.len().max(chunks.len()), Chunk::default);
        let used = &mut self.chunks[..chunks.len()];
        used.iter_mut().zip(chunks).for_each(|(chunk, sequences)| chunk.sequences = sequences);
        let pass = Pass { architecture: &self.architecture, layout: &self.layout, parameters: &self.parameters, batch };
        let share = R::ONE / R::from_f64(labeled.max(1) as f64);
        used.par_iter_mut().with_max_len(1).for_each(|chunk| {
            pass.forward(chunk);
            pass.backward(chunk, share);
        });
        let start = std::time::Instant::now();
        let loss = used.iter().map(|chunk| chunk.sum.loss).sum::<f64>() / labeled.max(1) as f64;
        let right = used.iter().map(|chunk| chunk.sum.right).sum();
        if !(loss.is_finite() && loss < DIVERGED) {
            return Err(self.diverged(format!("a mean loss of {loss}"), "the head"));
        }
        let squares = self.add_gradients(batch);
        if !squares.is_finite() {
            return Err(self.diverged("a gradient that is not finite".into(), "the embedding"));
        }
        let norm = squares.sqrt();
        let scale = self.clip.map_or(1.0, |clip| (clip / (norm + 1e-6)).min(1.0));
        self.update(R::from_f64(scale), rate);
        self.times.optimizer += start.elapsed().as_secs_f64();
        Ok(Step { loss, right, tokens, labeled, gradient_norm: norm })
    }

    /// Finds the distinct words of a batch and brings their rows up to date.
    fn touch(&mut self, ids: &[u32]) {
        let words = &mut self.words;
        words.distinct.drain(..).for_each(|word| words.slot[word as usize] = 0);
        for &id in ids {
            let slot = &mut words.slot[id as usize];
            if *slot == 0 {
                words.distinct.push(id);
                *slot = words.distinct.len() as u32;
            }
        }
        catch_ups(&self.optimizer, self.steps - self.rates.len() as u64, &self.rates, &mut words.catch_ups);
        let d = self.architecture.dim;
        for &word in &words.distinct {
            // A row that has seen all steps has no entry: nothing to do.
            let seen = &mut self.seen[word as usize];
            let Some(catch_up) = words.catch_ups.get(*seen as usize) else { continue };
            let own = word as usize * d..(word as usize + 1) * d;
            let second = self.second.embedding.get_mut(own.clone()).unwrap_or_default();
            catch_up.apply(&mut self.parameters.embedding[own.clone()], &mut self.first.embedding[own], second);
            *seen = self.rates.len() as u32;
        }
    }

    /// Brings all embedding rows up to date, as dense updates would have at every step.
    pub fn catch_up(&mut self) {
        let Self { optimizer, steps, rates, seen, words, parameters, first, second, architecture, .. } = self;
        let d = architecture.dim;
        catch_ups(optimizer, *steps - rates.len() as u64, rates, &mut words.catch_ups);
        let catch_ups = &words.catch_ups;
        let rows = parameters.embedding.par_chunks_exact_mut(d).zip(first.embedding.par_chunks_exact_mut(d)).zip(seen);
        let apply = |((row, first), seen): ((&mut [R], &mut [R]), &mut u32), second: &mut [R]| {
            if let Some(catch_up) = catch_ups.get(*seen as usize) {
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
    }

    /// Adds the chunks' gradients up, in order: dense ones into the first chunk's, those of words into their own. Returns the sum of squares.
    fn add_gradients(&mut self, batch: &Batch<R>) -> f64 {
        let Self { chunks, words, architecture, .. } = self;
        let used = split(batch.offsets).len();
        let d = architecture.dim;
        words.gradient.clear();
        words.gradient.resize(words.distinct.len() * d, R::ZERO);
        let (first, others) = chunks[..used].split_first_mut().expect("a batch has a chunk");
        let others = &*others;
        let sum = &mut first.gradient;
        kernels::vectorized(
            #[inline(always)]
            || {
                if let Tokens::Words(mut ids) = batch.tokens {
                    for rows in std::iter::once(&first.d_tokens).chain(others.iter().map(|c| &c.d_tokens)) {
                        let (own, rest) = ids.split_at(rows.len() / d);
                        for (&id, row) in own.iter().zip(rows.chunks_exact(d)) {
                            let slot = words.slot[id as usize] as usize - 1;
                            words.gradient[slot * d..][..d].iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
                        }
                        ids = rest;
                    }
                }
                for other in others {
                    sum.iter_mut().zip(&other.gradient).for_each(|(sum, &x)| *sum += x);
                }
                kernels::dot(sum, sum).to_f64() + kernels::dot(&words.gradient, &words.gradient).to_f64()
            },
        )
    }

    /// The optimizer's step.
    fn update(&mut self, scale: R, rate: f64) {
        self.steps += 1;
        let update: Update<R> = self.optimizer.update(self.steps, rate);
        let Self { parameters, first, second, chunks, words, seen, rates, architecture, moving, .. } = self;
        let dense = || {
            for range in moving.iter() {
                let second = second.dense.get_mut(range.clone()).unwrap_or_default();
                let (first, gradient) = (&mut first.dense[range.clone()], &chunks[0].gradient[range.clone()]);
                update.apply(scale, &mut parameters.dense[range.clone()], first, second, gradient);
            }
        };
        rates.push(rate);
        let rows = || {
            let d = architecture.dim;
            for (&word, gradient) in words.distinct.iter().zip(words.gradient.chunks_exact(d)) {
                let word = word as usize;
                let own = word * d..(word + 1) * d;
                let second = second.embedding.get_mut(own.clone()).unwrap_or_default();
                update.apply(
                    scale,
                    &mut parameters.embedding[own.clone()],
                    &mut first.embedding[own],
                    second,
                    gradient,
                );
                seen[word] = rates.len() as u32;
            }
        };
        rayon::join(dense, rows);
        let behind = if self.dense_embedding { 1 } else { (self.steps / 8).clamp(1, BEHIND) };
        if self.rates.len() as u64 >= behind {
            self.catch_up();
        }
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
        let pass = Pass { architecture: &self.architecture, layout: &self.layout, parameters: &self.parameters, batch };
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

/// Chunks of a batch as ranges of sequences with about equally many tokens each, from the data alone.
fn split(offsets: &[usize]) -> Vec<std::ops::Range<usize>> {
    let tokens = offsets[offsets.len() - 1];
    let count = ((tokens + CHUNK / 2) / CHUNK).max(1);
    let mut chunks = Vec::with_capacity(count);
    let mut start = 0;
    for i in 1..=count {
        // The sequence boundary nearest to the i-th part of the tokens.
        let goal = tokens * i / count;
        let after = offsets.partition_point(|&o| o < goal).max(start + 1);
        let nearer = after > start + 1 && goal - offsets[after - 1] < offsets[after.min(offsets.len() - 1)] - goal;
        let end = if i == count { offsets.len() - 1 } else { after - usize::from(nearer) };
        if start < end && end < offsets.len() {
            chunks.push(start..end);
            start = end;
        }
    }
    if start + 1 < offsets.len() {
        chunks.push(start..offsets.len() - 1);
    }
    chunks
}
