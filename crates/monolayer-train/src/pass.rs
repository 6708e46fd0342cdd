//! The forward and the backward pass of a chunk of sequences through all layers.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use std::ops::Range;

use monolayer::arithmetic::kernels::{self, Real};

use crate::architecture::{Architecture, LayerLayout, Layout};
use crate::attention::{Scratch, Sequence, Softmax};
use crate::batch::{Batch, Targets, Tokens};
use crate::product::{add_rows, product};
use crate::rows::{AHEAD, LateRows};
use crate::times::{Part, Watch};
use crate::{feed_forward, loss, norm};

/// The numbers that are trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters<R> {
    /// `[words, d]`, empty where inputs are vectors.
    pub embedding: Vec<R>,
    /// All others, as [`Layout`] says.
    pub dense: Vec<R>,
}

/// What a layer keeps of the way forward for the way back.
#[derive(Debug, Default)]
struct Tape<R> {
    /// Tokens before attention.
    input: Vec<R>,
    /// Queries, keys and values: a row of all tokens per component.
    projected: Vec<R>,
    softmax: Vec<Softmax<R>>,
    /// What attention read, per token and component.
    mixed: Vec<R>,
    /// Tokens after attention.
    middle: Vec<R>,
    hidden: Vec<R>,
    /// Of both layer norms: normalized rows, deviations.
    normal: [Vec<R>; 2],
    deviation: [Vec<R>; 2],
}

/// The buffers of one chunk.
#[derive(Debug, Default)]
pub struct Chunk<R> {
    /// Sequences of the batch.
    pub sequences: Range<usize>,
    tapes: Vec<Tape<R>>,
    output: Vec<R>,
    scores: Vec<R>,
    d_hidden: Vec<R>,
    d_projected: Vec<R>,
    d_mixed: Vec<R>,
    scratch: Scratch<R>,
    /// Gradients of the dense parameters.
    pub gradient: Vec<R>,
    /// Gradients of the tokens' vectors.
    pub d_tokens: Vec<R>,
    /// The sum of the squares of all these gradients.
    pub squares: f64,
    /// The loss and the right tokens.
    pub sum: loss::Sum,
    /// Where the time went.
    pub watch: Watch,
}

/// A slice of this length; what was in it is not cleared.
fn buffer<R: Real>(list: &mut Vec<R>, len: usize) -> &mut [R] {
    list.resize(list.len().max(len), R::ZERO);
    &mut list[..len]
}

/// What all chunks of a batch share.
pub struct Pass<'a, R> {
    pub architecture: &'a Architecture,
    pub layout: &'a Layout,
    pub parameters: &'a Parameters<R>,
    /// Embedding rows that are behind; `None` where all are up to date.
    pub late: Option<LateRows<'a, R>>,
    pub batch: &'a Batch<'a, R>,
}

impl<R: Real> Pass<'_, R> {
    fn tokens(&self, chunk: &Chunk<R>) -> Range<usize> {
        self.batch.offsets[chunk.sequences.start]..self.batch.offsets[chunk.sequences.end]
    }

    fn weights(&self, range: &Range<usize>) -> &[R] {
        &self.parameters.dense[range.clone()]
    }

    fn feed_forward(&self, layer: &LayerLayout) -> feed_forward::Weights<'_, R> {
        feed_forward::Weights {
            w1: self.weights(&layer.w1),
            b1: self.weights(&layer.b1),
            w2: self.weights(&layer.w2),
            b2: self.weights(&layer.b2),
        }
    }

    /// The chunk forward: its output vectors.
    pub fn forward(&self, chunk: &mut Chunk<R>) {
        let (range, d) = (self.tokens(chunk), self.architecture.dim);
        chunk.watch.start();
        chunk.tapes.resize_with(chunk.tapes.len().max(self.layout.layers.len()), Tape::default);
        let Chunk { tapes, output, scratch, sequences, watch, .. } = chunk;
        self.embed(sequences.clone(), buffer(output, range.len() * d));
        watch.lap(Part::Embedding);
        let offsets = &self.batch.offsets[sequences.start..=sequences.end];
        for (layer, tape) in self.layout.layers.iter().zip(tapes) {
            std::mem::swap(&mut tape.input, output);
            self.attend(layer, tape, offsets, scratch, watch);
            let middle = &mut tape.middle[..range.len() * d];
            if !layer.norm_1.is_empty() {
                let normal = buffer(&mut tape.normal[0], range.len() * d);
                norm::forward(
                    self.weights(&layer.norm_1),
                    d,
                    middle,
                    normal,
                    buffer(&mut tape.deviation[0], range.len()),
                );
                watch.lap(Part::FeedForward);
            }
            let out = buffer(output, range.len() * d);
            if self.architecture.hidden > 0 {
                let hidden = buffer(&mut tape.hidden, range.len() * self.architecture.hidden);
                feed_forward::forward(self.feed_forward(layer), d, middle, hidden, out, watch);
            } else {
                out.copy_from_slice(middle);
            }
            if !layer.norm_2.is_empty() {
                let normal = buffer(&mut tape.normal[1], range.len() * d);
                norm::forward(self.weights(&layer.norm_2), d, out, normal, buffer(&mut tape.deviation[1], range.len()));
            }
            watch.lap(Part::FeedForward);
        }
    }

    /// The vectors of the chunk's tokens, places added.
    fn embed(&self, sequences: Range<usize>, out: &mut [R]) {
        let d = self.architecture.dim;
        let offsets = &self.batch.offsets;
        let (first, last) = (offsets[sequences.start], offsets[sequences.end]);
        match self.batch.tokens {
            Tokens::Words(ids) => {
                kernels::vectorized(
                    #[inline(always)]
                    || {
                        for (out, t) in out.chunks_exact_mut(d).zip(first..last) {
                            if let (Some(late), Some(&next)) = (&self.late, ids.get(t + AHEAD)) {
                                late.prefetch(next, d, &self.parameters.embedding);
                            }
                            self.read_row(ids[t], out);
                        }
                    },
                );
            }
            Tokens::Vectors(vectors) => out.copy_from_slice(&vectors[first * d..last * d]),
        }
        if self.layout.positions.is_empty() {
            return;
        }
        let positions = self.weights(&self.layout.positions);
        for i in sequences {
            let own = (offsets[i] - first) * d..(offsets[i + 1] - first) * d;
            out[own].iter_mut().zip(positions).for_each(|(x, &p)| *x += p);
        }
    }

    /// A word's row, with the steps that it has missed. The row itself takes them later, in the optimizer's turn: here several threads
    /// read it.
    #[inline(always)]
    fn read_row(&self, id: u32, out: &mut [R]) {
        let own = id as usize * out.len()..(id as usize + 1) * out.len();
        let row = &self.parameters.embedding[own.clone()];
        if let Some(late) = &self.late
            && let Some(catch_up) = late.rows.catch_up(id)
        {
            let second = late.second.embedding.get(own.clone()).unwrap_or_default();
            catch_up.read_here(row, &late.first.embedding[own], second, out);
        } else {
            out.copy_from_slice(row);
        }
    }

    /// Eq. 2: the chunk's tokens after attention, before any norm, in the tape's `middle`.
    fn attend(
        &self,
        layer: &LayerLayout,
        tape: &mut Tape<R>,
        offsets: &[usize],
        scratch: &mut Scratch<R>,
        watch: &mut Watch,
    ) {
        let a = self.architecture;
        let (d, width, tokens) = (a.dim, a.mixed(), offsets[offsets.len() - 1] - offsets[0]);
        let input = &tape.input[..tokens * d];
        let projected = buffer(&mut tape.projected, a.projections() * tokens);
        product(
            (a.projections(), tokens, d),
            (self.weights(&layer.project), (d, 1)),
            (input, (1, d)),
            projected,
            false,
        );
        watch.lap(Part::Products);
        let mixed = buffer(&mut tape.mixed, width * tokens);
        tape.softmax.resize(tape.softmax.len().max(a.heads * tokens), Softmax::default());
        for head in 0..a.heads {
            for window in offsets.windows(2) {
                let (first, n) = (window[0] - offsets[0], window[1] - window[0]);
                let sequence = self.sequence(projected, tokens, head, first, n);
                let mixed = &mut mixed[first * width + head * a.head_size..];
                let softmax = &mut tape.softmax[head * tokens + first..][..n];
                if sequence.is_long() && sequence.forward_long(mixed, width) {
                    continue;
                }
                kernels::vectorized(
                    #[inline(always)]
                    || sequence.forward(scratch, mixed, width, softmax),
                );
            }
        }
        let middle = buffer(&mut tape.middle, tokens * d);
        middle.copy_from_slice(input);
        watch.lap(Part::Attention);
        product((tokens, d, width), (mixed, (width, 1)), (self.weights(&layer.w_o), (d, 1)), middle, true);
        watch.lap(Part::Products);
    }

    /// One head's view of the sequence of `n` tokens from `first` on.
    fn sequence<'p>(&self, projected: &'p [R], tokens: usize, head: usize, first: usize, n: usize) -> Sequence<'p, R> {
        let a = self.architecture;
        let rows = |part: usize| &projected[(part * a.mixed() + head * a.head_size) * tokens + first..];
        let value = if a.tied { 1 } else { 2 };
        Sequence { q: rows(0), k: rows(1), v: rows(value), stride: tokens, n, size: a.head_size, causal: a.causal }
    }

    /// The loss of the chunk's outputs; with `back`, which is 1 / the tokens of the batch, also all gradients.
    pub fn backward(&self, chunk: &mut Chunk<R>, back: R) {
        let a = self.architecture;
        let (range, d) = (self.tokens(chunk), a.dim);
        let tokens = range.len();
        chunk.gradient.resize(self.layout.len(), R::ZERO);
        chunk.watch.start();
        let output = &mut chunk.output[..tokens * d];
        let mut dy = std::mem::take(&mut chunk.d_tokens);
        dy.resize(tokens * d, R::ZERO);
        match self.batch.targets {
            Targets::Labels(labels) => {
                let scores = buffer(&mut chunk.scores, tokens * self.layout.head_bias.len());
                self.score(output, scores);
                let classes = self.layout.head_bias.len();
                chunk.watch.lap(Part::Products);
                chunk.sum = loss::cross_entropy(scores, classes, &labels[range], back);
                chunk.watch.lap(Part::Head);
                let (weight, bias) = (&self.layout.head_weight, &self.layout.head_bias);
                let gradient = &mut chunk.gradient;
                product(
                    (classes, d, tokens),
                    (scores, (1, classes)),
                    (output, (d, 1)),
                    &mut gradient[weight.clone()],
                    false,
                );
                add_rows(scores, &mut gradient[bias.clone()]);
                product((tokens, d, classes), (scores, (classes, 1)), (self.weights(weight), (d, 1)), &mut dy, false);
                chunk.watch.lap(Part::Products);
            }
            Targets::Vectors(targets) => {
                dy.copy_from_slice(output);
                chunk.sum = loss::squared_error(&mut dy, d, &targets[range.start * d..range.end * d], back);
            }
        }
        chunk.watch.lap(Part::Head);
        for (i, layer) in self.layout.layers.iter().enumerate().rev() {
            self.feed_forward_back(layer, chunk, i, &mut dy);
            self.attend_back(layer, chunk, i, &mut dy);
        }
        self.positions_back(chunk, &dy);
        chunk.d_tokens = dy;
        chunk.watch.lap(Part::Embedding);
        chunk.squares = kernels::vectorized(
            #[inline(always)]
            || [&chunk.gradient, &chunk.d_tokens].map(|list| kernels::dot(list, list).to_f64()).iter().sum(),
        );
        chunk.watch.lap(Part::Optimizer);
    }

    /// The scores of the labels.
    fn score(&self, output: &[R], scores: &mut [R]) {
        let d = self.architecture.dim;
        let bias = self.weights(&self.layout.head_bias);
        let shape = (output.len() / d, bias.len(), d);
        product(shape, (output, (d, 1)), (self.weights(&self.layout.head_weight), (1, d)), scores, false);
        for row in scores.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(s, &b)| *s += b);
        }
    }

    /// Whether the chunk's tokens are right, and their outputs or scores: `each` sees the row of a token.
    pub fn outputs(&self, chunk: &mut Chunk<R>, mut each: impl FnMut(&[R])) {
        let (tokens, d) = (self.tokens(chunk).len(), self.architecture.dim);
        let output = &chunk.output[..tokens * d];
        if self.layout.head_bias.is_empty() {
            output.chunks_exact(d).for_each(each);
            return;
        }
        let classes = self.layout.head_bias.len();
        let scores = buffer(&mut chunk.scores, tokens * classes);
        self.score(output, scores);
        scores.chunks_exact(classes).for_each(&mut each);
    }

    /// How many hidden units of how many are above zero.
    pub fn firing(&self, chunk: &Chunk<R>) -> [usize; 2] {
        let units = self.tokens(chunk).len() * self.architecture.hidden;
        let hidden = || chunk.tapes[..self.layout.layers.len()].iter().flat_map(|tape| tape.hidden.iter().take(units));
        [hidden().filter(|&&r| r > R::ZERO).count(), hidden().count()]
    }

    fn feed_forward_back(&self, layer: &LayerLayout, chunk: &mut Chunk<R>, i: usize, dy: &mut [R]) {
        let d = self.architecture.dim;
        let tokens = dy.len() / d;
        let (tape, gradient) = (&chunk.tapes[i], &mut chunk.gradient);
        if !layer.norm_2.is_empty() {
            let stored = (&tape.normal[1][..tokens * d], &tape.deviation[1][..tokens]);
            norm::backward(self.weights(&layer.norm_2), &mut gradient[layer.norm_2.clone()], d, stored, dy);
        }
        let q = self.architecture.hidden;
        if q == 0 {
            return;
        }
        let (w1, rest) = gradient[layer.w1.start..layer.b2.end].split_at_mut(q * d);
        let (b1, rest) = rest.split_at_mut(q);
        let (w2, b2) = rest.split_at_mut(q * d);
        let mut gradients = feed_forward::Gradients { w1, b1, w2, b2 };
        let stored = (&tape.middle[..tokens * d], &tape.hidden[..tokens * q]);
        let d_hidden = buffer(&mut chunk.d_hidden, tokens * q);
        feed_forward::backward(self.feed_forward(layer), &mut gradients, d, stored, d_hidden, dy, &mut chunk.watch);
    }

    fn attend_back(&self, layer: &LayerLayout, chunk: &mut Chunk<R>, i: usize, dy: &mut [R]) {
        let a = self.architecture;
        let (d, width) = (a.dim, a.mixed());
        let tokens = dy.len() / d;
        let offsets = &self.batch.offsets[chunk.sequences.start..=chunk.sequences.end];
        let Chunk { tapes, gradient, d_projected, d_mixed, scratch, watch, .. } = chunk;
        let tape = &tapes[i];
        if !layer.norm_1.is_empty() {
            let stored = (&tape.normal[0][..tokens * d], &tape.deviation[0][..tokens]);
            norm::backward(self.weights(&layer.norm_1), &mut gradient[layer.norm_1.clone()], d, stored, dy);
        }
        watch.lap(Part::FeedForward);
        let (input, mixed) = (&tape.input[..tokens * d], &tape.mixed[..tokens * width]);
        let d_mixed = buffer(d_mixed, tokens * width);
        product((width, d, tokens), (mixed, (1, width)), (dy, (d, 1)), &mut gradient[layer.w_o.clone()], false);
        product((tokens, width, d), (dy, (d, 1)), (self.weights(&layer.w_o), (1, d)), d_mixed, false);
        watch.lap(Part::Products);
        let d_projected = buffer(d_projected, a.projections() * tokens);
        d_projected.fill(R::ZERO);
        for head in 0..a.heads {
            for window in offsets.windows(2) {
                let (first, n) = (window[0] - offsets[0], window[1] - window[0]);
                let sequence = self.sequence(&tape.projected, tokens, head, first, n);
                let at = head * a.head_size * tokens + first;
                let (dq, rest) = d_projected.split_at_mut(width * tokens);
                let (dk, dv) = rest.split_at_mut(width * tokens);
                let mut dv = if a.tied { None } else { Some(&mut dv[at..]) };
                let from = first * width + head * a.head_size;
                if sequence.is_long()
                    && sequence.backward_long(
                        (&d_mixed[from..], width),
                        &mut dq[at..],
                        &mut dk[at..],
                        dv.as_deref_mut(),
                    )
                {
                    continue;
                }
                let softmax = &tape.softmax[head * tokens + first..][..n];
                kernels::vectorized(
                    #[inline(always)]
                    || {
                        let mixtures = (&mixed[from..], &d_mixed[from..], width);
                        sequence.backward(scratch, mixtures, softmax, &mut dq[at..], &mut dk[at..], dv);
                    },
                );
            }
        }
        watch.lap(Part::Attention);
        let rows = a.projections();
        let project = &layer.project;
        product((rows, d, tokens), (d_projected, (tokens, 1)), (input, (d, 1)), &mut gradient[project.clone()], false);
        product((tokens, d, rows), (d_projected, (1, tokens)), (self.weights(project), (d, 1)), dy, true);
        watch.lap(Part::Products);
    }

    fn positions_back(&self, chunk: &mut Chunk<R>, dy: &[R]) {
        if self.layout.positions.is_empty() {
            return;
        }
        let d = self.architecture.dim;
        let offsets = &self.batch.offsets[chunk.sequences.start..=chunk.sequences.end];
        let positions = &mut chunk.gradient[self.layout.positions.clone()];
        positions.fill(R::ZERO);
        for window in offsets.windows(2) {
            let own = (window[0] - offsets[0]) * d..(window[1] - offsets[0]) * d;
            positions.iter_mut().zip(&dy[own]).for_each(|(p, &x)| *p += x);
        }
    }
}

impl<R: Real> Chunk<R> {
    /// The first place on the way forward with a number that is not finite.
    pub fn first_bad(&self, architecture: &Architecture) -> Option<String> {
        let bad = |list: &[R]| list.iter().any(|x| !x.finite());
        let layers = self.tapes.iter().take(architecture.layers).enumerate();
        let mut places = layers.flat_map(|(i, tape)| {
            [
                (bad(&tape.input), format!("the input of layer {i}")),
                (bad(&tape.projected), format!("the scores of layers.{i}.attention")),
                (bad(&tape.middle), format!("the output of layers.{i}.attention")),
                (bad(&tape.hidden), format!("the hidden units of layers.{i}.feed_forward")),
            ]
        });
        places
            .find_map(|(bad, name)| bad.then_some(name))
            .or_else(|| bad(&self.output).then(|| "the last layer's output".into()))
    }
}
