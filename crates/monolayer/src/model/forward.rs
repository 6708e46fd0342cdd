//! The fast forward pass: ragged sequences packed one after another, blocks of them spread over the threads.
//!
//! Each block of sequences goes through the whole model on one thread, and the blocks depend on the data alone, so the
//! result is the same, bit for bit, for any number of threads. The plain versions are beside the definitions, in
//! [`crate::paper::attention`], [`crate::paper::feed_forward`] and [`crate::paper::transformer`].

use std::ops::Range;

use crate::arithmetic::kernels::Parallelism;
use crate::arithmetic::parallel;

use crate::arithmetic::kernels::{self, Real};
use crate::arithmetic::matrix::Matrix;
use crate::attention::{FastAttention, HeadInputs};
use crate::paper::attention::{Attention, AttentionKind, Mask};
use crate::paper::feed_forward::FeedForward;
use crate::paper::transformer::Transformer;

/// Tokens a block holds at least (unless the data end): enough to keep matrix products busy.
pub const BLOCK: usize = 512;
/// Hidden units evaluated at a time: the hidden layer of a block of tokens stays in a core's cache.
const UNITS: usize = 512;
/// A single sequence longer than this has its attention spread over the threads.
pub const LONG: usize = 4 * BLOCK;

/// Sequences of so many tokens can have their attention in linear time ([`crate::attention`]). Shorter ones gain nothing that
/// anybody would notice.
pub const LINEAR: usize = 4096;

/// How the means of attention are formed.
///
/// ```
/// use monolayer::model::AttentionSums;
/// use monolayer::{Dataset, Memorizer};
///
/// let data = Dataset::from_sequences(&[["a", "b"]], &[["X", "Y"]])?;
/// let compiled = Memorizer::new().compile(&data)?;
/// assert_eq!(compiled.model().sums_for(&data), AttentionSums::Plain);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionSums {
    /// A score for every query and key, exponentials, sums: the programs that certificates speak of.
    Plain,
    /// Softmax heads of size 1 over sequences of [`LINEAR`] tokens or more in linear time, unless their mask is a band or a
    /// matrix; everything else plain.
    LinearTime,
}

impl AttentionSums {
    /// Whether it changes how a layer is computed on some sequence of these lengths.
    pub fn changes<R>(self, attention: &Attention<R>, lengths: impl IntoIterator<Item = usize>) -> bool {
        self == Self::LinearTime && is_linear(attention) && lengths.into_iter().any(|length| length >= LINEAR)
    }
}

/// Whether a layer can be computed in linear time.
fn is_linear<R>(attention: &Attention<R>) -> bool {
    attention.kind == AttentionKind::Softmax
        && matches!(attention.mask, Mask::None | Mask::Causal | Mask::Prefix(_))
        && attention.heads.iter().any(|head| head.w_q.rows == 1)
}

/// Consecutive sequences of about [`BLOCK`] tokens, as ranges of sequence numbers.
pub fn blocks(offsets: &[usize]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut start = 0;
    for end in 1..offsets.len() {
        if offsets[end] - offsets[start] >= BLOCK || end + 1 == offsets.len() {
            blocks.push(start..end);
            start = end;
        }
    }
    blocks
}

/// Runs the Transformer on packed sequences: `offsets` as in [`crate::Dataset`], `h` row-major `[tokens, d]`, in place.
pub fn transform<R: Real>(transformer: &Transformer<R>, offsets: &[usize], h: &mut [R]) {
    transform_from(transformer, (offsets, false), AttentionSums::Plain, h);
}

/// [`transform`]; with `start`, the first token of each sequence is the start token.
pub fn transform_from<R: Real>(
    transformer: &Transformer<R>,
    (offsets, start): (&[usize], bool),
    sums: AttentionSums,
    h: &mut [R],
) {
    let d = transformer.d;
    if let Some(block) = &transformer.pre_feed_forward {
        long_feed_forward(block, d, h);
    }
    for layer in &transformer.layers {
        if let Some(block) = &layer.attention {
            attend_from(block, d, (offsets, start), sums, h);
        }
        if let Some(block) = &layer.feed_forward {
            long_feed_forward(block, d, h);
        }
    }
}

/// [`feed_forward`]; the blocks of many tokens are spread over the threads.
fn long_feed_forward<R: Real>(block: &FeedForward<R>, d: usize, h: &mut [R]) {
    if h.len() > LONG * d {
        parallel::for_each_chunk(h, BLOCK * d, &|_, h| feed_forward(block, d, h));
    } else {
        feed_forward(block, d, h);
    }
}

/// Eq. 3 on packed tokens: `h + W2 relu(W1 h + b1) + b2`, some hidden units at a time.
pub fn feed_forward<R: Real>(block: &FeedForward<R>, d: usize, h: &mut [R]) {
    feed_forward_seen(block, d, h, |_, _, _| ());
}

/// [`feed_forward`] in single precision, compiled here: a generic function is compiled by its caller, who may optimize less.
pub fn feed_forward_single(block: &FeedForward<f32>, d: usize, h: &mut [f32]) {
    feed_forward(block, d, h);
}

/// [`feed_forward`]; `see` is shown, for a token, the values of the hidden units from a number on.
pub fn feed_forward_seen<R: Real>(
    block: &FeedForward<R>,
    d: usize,
    h: &mut [R],
    mut see: impl FnMut(usize, usize, &[R]),
) {
    let q = block.b1.len();
    let before = h.to_vec();
    for row in h.chunks_exact_mut(d) {
        row.iter_mut().zip(&block.b2).for_each(|(h, &b)| *h += b);
    }
    let mut hidden = Vec::new();
    for tokens in (0..h.len() / d).step_by(BLOCK) {
        let tokens = tokens..(tokens + BLOCK).min(h.len() / d);
        let input = &before[tokens.start * d..tokens.end * d];
        let output = &mut h[tokens.start * d..tokens.end * d];
        for unit in (0..q).step_by(UNITS) {
            let units = unit..(unit + UNITS).min(q);
            let (w1, b1) = (&block.w1.data[units.start * d..units.end * d], &block.b1[units.clone()]);
            hidden.resize(tokens.len() * units.len(), R::ZERO);
            kernels::product(input, w1, d, &mut hidden, false, Parallelism::None);
            for (token, row) in tokens.clone().zip(hidden.chunks_exact_mut(units.len())) {
                kernels::vectorized(
                    #[inline(always)]
                    || {
                        for (x, &b) in row.iter_mut().zip(b1) {
                            *x = (*x + b).larger(R::ZERO);
                        }
                    },
                );
                see(token, units.start, row);
            }
            // Column `units` of W2, transposed.
            let w2 = &block.w2.data[units.start..];
            let strides = (1, q);
            kernels::product_strided(
                tokens.len(),
                d,
                units.len(),
                &hidden,
                (units.len(), 1),
                w2,
                strides,
                output,
                true,
                Parallelism::None,
            );
        }
    }
}

/// Eqs. 2 and 5 on packed sequences, in place.
pub fn attend<R: Real>(attention: &Attention<R>, d: usize, offsets: &[usize], h: &mut [R]) {
    attend_from(attention, d, (offsets, false), AttentionSums::Plain, h);
}

/// [`attend`]; with `start`, the first token of each sequence is the start token.
pub fn attend_from<R: Real>(
    attention: &Attention<R>,
    d: usize,
    (offsets, start): (&[usize], bool),
    sums: AttentionSums,
    h: &mut [R],
) {
    let tokens = h.len() / d;
    let first = offsets[0];
    let mut mixed = Vec::new();
    let before = h.to_vec();
    for head in &attention.heads {
        let s = head.w_q.rows;
        // Projections with one row per component, so that the loops over keys run along memory. Equal tokens must get
        // equal hardmax scores, to the last bit, which a matrix product does not promise.
        let project = |weights: &Matrix<R>| {
            if attention.kind == AttentionKind::Hardmax {
                let component = |w| before.chunks_exact(d).map(move |x| kernels::dot(w, x));
                return weights.iter_rows().flat_map(component).collect();
            }
            let mut out = vec![R::ZERO; s * tokens];
            kernels::product(&weights.data, &before, d, &mut out, false, Parallelism::None);
            out
        };
        let (q, k, v) = (project(&head.w_q), project(&head.w_k), project(&head.w_v));
        mixed.resize(tokens * s, R::ZERO);
        for window in offsets.windows(2) {
            let range = window[0] - first..window[1] - first;
            let out = &mut mixed[range.start * s..range.end * s];
            let sequence = Projected { s, tokens, range: range.clone(), q: &q, k: &k, v: &v };
            if sums.changes(attention, [range.len()]) && sequence.mix_in_linear_time(&attention.mask, start, out) {
                continue;
            }
            if range.len() > LONG {
                parallel::for_each_chunk(out, BLOCK * s, &|i, out| {
                    sequence.mix(attention.kind, &attention.mask, start, i * BLOCK, out);
                });
            } else {
                sequence.mix(attention.kind, &attention.mask, start, 0, out);
            }
        }
        kernels::product(&mixed, &head.w_o.data, s, h, true, Parallelism::None);
    }
}

/// The projected tokens of one sequence among those of a block.
struct Projected<'a, R> {
    s: usize,
    tokens: usize,
    range: Range<usize>,
    q: &'a [R],
    k: &'a [R],
    v: &'a [R],
}

impl<R: Real> Projected<'_, R> {
    /// The value mixtures of all queries of a head of size 1; false, and nothing done, where it is larger and where numbers are
    /// not finite.
    fn mix_in_linear_time(&self, mask: &Mask, start: bool, out: &mut [R]) -> bool {
        // The start token is seen by all.
        let mask = match mask {
            Mask::Prefix(k) => Mask::Prefix(k + usize::from(start)),
            mask => mask.clone(),
        };
        let [queries, keys, values] = [self.q, self.k, self.v].map(|rows| &rows[self.range.clone()]);
        self.s == 1 && FastAttention::new().mask(mask).forward(HeadInputs { keys, values, queries }, out).is_ok()
    }

    /// The value mixtures of the queries from place `first` on, one row of `out` each.
    fn mix(&self, kind: AttentionKind, mask: &Mask, start: bool, first: usize, out: &mut [R]) {
        let component = |x, c| {
            let row: &[R] = x;
            &row[c * self.tokens + self.range.start..c * self.tokens + self.range.end]
        };
        let mut scores = vec![R::ZERO; self.range.len()];
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (i, out) in out.chunks_exact_mut(self.s).enumerate() {
            let query = first + i;
            let length = self.range.len();
            let seen = if start { mask.seen_from_start(query, length) } else { mask.seen(query, length) };
            let scores = &mut scores[..seen.count()];
            kernels::vectorized(
                #[inline(always)]
                || {
                    scores.fill(R::ZERO);
                    for c in 0..self.s {
                        let q = component(self.q, c)[query];
                        for (score, &k) in scores.iter_mut().zip(seen.pick(component(self.k, c), &mut keys)) {
                            *score += q * k;
                        }
                    }
                    let total = match kind {
                        AttentionKind::Softmax => kernels::soften(scores),
                        AttentionKind::Hardmax => kernels::harden(scores),
                    };
                    for (c, out) in out.iter_mut().enumerate() {
                        *out = kernels::dot(scores, seen.pick(component(self.v, c), &mut values)) / total;
                    }
                },
            );
        }
    }
}
