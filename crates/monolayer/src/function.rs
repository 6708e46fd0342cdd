//! Functions to approximate (Proposition 1): what is known of a map from sequences to sequences on the unit cube.

use crate::arithmetic::Interval;

/// A map f from sequences of n tokens in `[0, 1]^d` to n vectors of d entries, for fixed n and d.
///
/// Sequences and outputs are row-major `[n, d]`.
pub trait Function: Sync {
    /// Coordinates of a token, and of an output: d.
    fn dim(&self) -> usize;

    /// Tokens of a sequence: n.
    fn length(&self) -> usize;

    /// Whether permuting the tokens permutes the outputs.
    fn is_equivariant(&self) -> bool;

    /// The outputs of all tokens, in floating-point arithmetic.
    fn values(&self, sequence: &[f64], outputs: &mut [f64]);

    /// What the outputs of one token are over a box of sequences, exactly.
    fn enclose(&self, sequence: &[Interval], token: usize) -> Vec<Enclosure>;

    /// What the enclosures take for granted, for the certificate: nothing unless a user vouches for it.
    fn assumption(&self) -> Option<String> {
        None
    }
}

/// One output over a box: its range, and how it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Enclosure {
    /// Contains every value in the box; the whole line where the function may be undefined.
    pub range: Interval,
    /// Contains the value at the center of the box.
    pub center: Interval,
    /// For each entry of the sequence, slopes s with f(x) in f(c) + sum of s_i (x_i - c_i) for all x of the box, c its
    /// center; the whole line where the function may jump.
    pub slopes: Vec<Interval>,
}

/// A closure with a Lipschitz constant that its author vouches for.
pub struct Lipschitz<F> {
    /// Coordinates of a token.
    pub dim: usize,
    /// Tokens of a sequence.
    pub length: usize,
    /// Whether permuting the tokens permutes the outputs.
    pub equivariant: bool,
    /// |f(x) - f(y)| <= constant * |x - y|, both in the sup norm over all entries.
    pub constant: f64,
    /// From a sequence to the outputs of all tokens.
    pub f: F,
}
