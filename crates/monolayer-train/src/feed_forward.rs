//! Eq. 3 and its gradient on packed tokens.
//!
//! With a = W1 h + b1 and r = relu(a), the output is h + W2 r + b2, and for a gradient dy of the output
//!
//! dr = W2^T dy,  da = dr where r > 0, else 0,  dh = dy + W1^T da,  dW2 = dy r^T,  dW1 = da h^T,  db2 = dy,  db1 = da.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use monolayer::arithmetic::kernels::{self, Real};

use crate::product::{add_rows, product};
use crate::times::{Part, Watch};

/// The weights of a block.
#[derive(Clone, Copy)]
pub struct Weights<'a, R> {
    pub w1: &'a [R],
    pub b1: &'a [R],
    pub w2: &'a [R],
    pub b2: &'a [R],
}

/// Where the gradients of a block go.
pub struct Gradients<'a, R> {
    pub w1: &'a mut [R],
    pub b1: &'a mut [R],
    pub w2: &'a mut [R],
    pub b2: &'a mut [R],
}

/// The output in `out`, the hidden units r in `hidden`.
pub fn forward<R: Real>(weights: Weights<R>, d: usize, h: &[R], hidden: &mut [R], out: &mut [R], watch: &mut Watch) {
    let (tokens, q) = (h.len() / d, weights.b1.len());
    product((tokens, q, d), (h, (d, 1)), (weights.w1, (1, d)), hidden, false);
    watch.lap(Part::Products);
    kernels::vectorized(
        #[inline(always)]
        || {
            for row in hidden.chunks_exact_mut(q) {
                for (x, &b) in row.iter_mut().zip(weights.b1) {
                    *x = (*x + b).larger(R::ZERO);
                }
            }
            for (out, h) in out.chunks_exact_mut(d).zip(h.chunks_exact(d)) {
                for ((out, &h), &b) in out.iter_mut().zip(h).zip(weights.b2) {
                    *out = h + b;
                }
            }
        },
    );
    watch.lap(Part::FeedForward);
    product((tokens, d, q), (hidden, (q, 1)), (weights.w2, (1, q)), out, true);
    watch.lap(Part::Products);
}

/// Turns the gradient `dy` of the output into that of the input, in place; `d_hidden` is a buffer for da.
pub fn backward<R: Real>(
    weights: Weights<R>,
    gradients: &mut Gradients<R>,
    d: usize,
    (h, hidden): (&[R], &[R]),
    d_hidden: &mut [R],
    dy: &mut [R],
    watch: &mut Watch,
) {
    let (tokens, q) = (h.len() / d, weights.b1.len());
    product((d, q, tokens), (dy, (1, d)), (hidden, (q, 1)), gradients.w2, false);
    product((tokens, q, d), (dy, (d, 1)), (weights.w2, (q, 1)), d_hidden, false);
    watch.lap(Part::Products);
    kernels::vectorized(
        #[inline(always)]
        || {
            gradients.b1.fill(R::ZERO);
            for (da, r) in d_hidden.chunks_exact_mut(q).zip(hidden.chunks_exact(q)) {
                for ((da, &r), b1) in da.iter_mut().zip(r).zip(&mut *gradients.b1) {
                    *da = if r > R::ZERO { *da } else { R::ZERO };
                    *b1 += *da;
                }
            }
        },
    );
    add_rows(dy, gradients.b2);
    watch.lap(Part::FeedForward);
    product((q, d, tokens), (d_hidden, (1, q)), (h, (d, 1)), gradients.w1, false);
    product((tokens, d, q), (d_hidden, (q, 1)), (weights.w1, (d, 1)), dy, true);
    watch.lap(Part::Products);
}
