//! The input of a training step, and what the step reports.

/// About as many tokens are in a chunk of a batch, the work of one thread.
pub const CHUNK: usize = 256;
/// Batches of fewer tokens are one chunk.
const SMALL: usize = 32;

/// Sequences packed one after another.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a, R> {
    /// Where each sequence starts, and where the last one ends.
    pub offsets: &'a [usize],
    /// What goes in.
    pub tokens: Tokens<'a, R>,
    /// What should come out.
    pub targets: Targets<'a, R>,
}

/// Inputs.
#[derive(Debug, Clone, Copy)]
pub enum Tokens<'a, R> {
    /// Word ids.
    Words(&'a [u32]),
    /// Vectors, row-major `[tokens, d]`.
    Vectors(&'a [R]),
}

impl<R> Batch<'_, R> {
    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        self.offsets[self.offsets.len() - 1] - self.offsets[0]
    }

    /// How many of them are not free.
    pub fn labeled(&self) -> usize {
        match self.targets {
            Targets::Labels(labels) => labels.iter().flatten().count(),
            Targets::Vectors(_) => self.tokens(),
        }
    }
}

/// Wanted outputs.
#[derive(Debug, Clone, Copy)]
pub enum Targets<'a, R> {
    /// Label ids: the loss is the cross-entropy. Tokens without one count for nothing.
    Labels(&'a [Option<u32>]),
    /// Vectors, row-major `[tokens, d]`: the loss is the squared error, averaged over the coordinates.
    Vectors(&'a [R]),
}

/// What a step saw, before it changed anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The mean loss of the batch's labeled tokens; 0 where there are none.
    pub loss: f64,
    /// Tokens with the right label.
    pub right: usize,
    /// Tokens of the batch.
    pub tokens: usize,
    /// Those of them that are not free.
    pub labeled: usize,
    /// The norm of the gradient, before clipping.
    pub gradient_norm: f64,
}

/// What came of some data.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The mean loss of the labeled tokens; 0 where there are none.
    pub loss: f64,
    /// The predicted label of each token; empty for vectors.
    pub labels: Vec<u32>,
    /// The share of hidden units above zero.
    pub firing: f64,
}

/// Training went out of bounds; the parameters are still those before the step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step {step} diverged: {what} in {tensor}")]
pub struct Diverged {
    /// The step, counted from 1.
    pub step: u64,
    /// What was found there.
    pub what: String,
    /// The tensor, by its name in a model file, or the output of a layer.
    pub tensor: String,
}

/// Chunks of a batch as ranges of sequences with about equally many tokens each, from the data alone. Their number is even where
/// there are several, so that two threads, or four, have equal work.
pub(crate) fn split(offsets: &[usize]) -> Vec<std::ops::Range<usize>> {
    let tokens = offsets[offsets.len() - 1];
    let count = if tokens < SMALL { 1 } else { 2 * ((tokens + CHUNK) / (2 * CHUNK)).max(1) };
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
