//! Section 6's open question, one layer without a quantizer: Theorems A, B and F of docs/unquantized.md.
//!
//! Whatever the weights of an attention layer (2), there are two sequences in `[-1, 1]^d` whose last tokens it maps to the same
//! vector, while the function [`target`] has values there that are at least 1 apart. So no map of single tokens that follows the
//! layer comes within 1/2 of that function. [`collision`] finds the two sequences, in exact rational arithmetic, and
//! [`Collision::new`] runs the layer on them. It needs no exponential: where all scores are equal, softmax is the mean.
//! Theorem B, where no token is 0, is [`Instance`] and [`twin`]; Theorem F, of layers of low rank, [`unseen_direction`].

mod draws;
mod linear_system;
mod no_zero_token;
mod unseen_direction;

use dashu_base::{Abs as _, Signed as _};
use dashu_ratio::RBig;

use self::linear_system::{Solution, solve};
use crate::arithmetic::matrix::Matrix;
use crate::error::{Error, Result};
use crate::paper::attention::Attention;
use crate::paper::hardmax::HardmaxLayer;

pub use draws::{CollisionTally, TwinTally, collisions, draw_layer, twins};
pub use no_zero_token::{Instance, Twin, twin};
pub use unseen_direction::{mean_squared_distance, scores_and_values, unseen_direction};

/// The function of Theorem A at a token: `f(Z)_k = z_k + (1/(n-1)) sum_j (z_k1 - z_j1)^2 e_1`, continuous and permutation
/// equivariant.
pub fn target(z: &Matrix<RBig>, k: usize) -> Vec<RBig> {
    let mut f = z.row(k).to_vec();
    let square = |row: &[RBig]| (&z.row(k)[0] - &row[0]) * (&z.row(k)[0] - &row[0]);
    let sum = z.iter_rows().fold(RBig::ZERO, |sum, row| sum + square(row));
    f[0] += sum / RBig::from(z.rows - 1);
    f
}

/// Two sequences, what a layer makes of their last tokens, and what the function asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Collision {
    /// The sequences, one token per row.
    pub sequences: [Matrix<RBig>; 2],
    /// The layer's outputs at the last token.
    pub outputs: [Vec<RBig>; 2],
    /// The function's values at the last token.
    pub targets: [Vec<RBig>; 2],
    /// Whether `I + sum_i W_O,i W_V,i` is singular, so that two constant sequences collide.
    pub singular: bool,
}

impl Collision {
    /// Runs the layer. An error if the scores of a last token are not all equal: then its output is not rational.
    pub fn new(attention: &Attention<RBig>, sequences: [Matrix<RBig>; 2], singular: bool) -> Result<Self> {
        let layer = HardmaxLayer::new(attention);
        for z in &sequences {
            attention.mask.check(z.rows)?;
            if attention.mask.seen(z.rows - 1, z.rows).count() < z.rows {
                let help = "the theorem is about tokens that see their whole sequence";
                return Err(Error::undefined("the mask hides tokens from the last token", help));
            }
        }
        let output = |z: &Matrix<RBig>| -> Result<Vec<RBig>> {
            // The last token sees all, under a causal mask, too. Attending to all of them means that all scores tie.
            let last = z.rows - 1;
            if layer.attended(z, last).iter().any(|seen| seen.len() != z.rows) {
                return Err(Error::undefined("the scores of the last token differ", "take a zero or a constant token"));
            }
            Ok(layer.apply(z).row(last).to_vec())
        };
        let outputs = [output(&sequences[0])?, output(&sequences[1])?];
        let targets = sequences.each_ref().map(|z| target(z, z.rows - 1));
        Ok(Self { sequences, outputs, targets, singular })
    }

    /// How far apart the function's values are, in the sup norm.
    pub fn distance(&self) -> RBig {
        let [a, b] = &self.targets;
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).max().unwrap_or(RBig::ZERO)
    }

    /// Whether this is what Theorem A promises: tokens in `[-1, 1]^d`, equal outputs, and values at least 1 apart.
    pub fn holds(&self) -> bool {
        let inside = self.sequences.iter().all(|z| z.data.iter().all(|x| x.clone().abs() <= RBig::ONE));
        inside && self.outputs[0] == self.outputs[1] && self.distance() >= RBig::ONE
    }
}

/// Theorem A for one layer and sequences of `length >= 2` tokens.
pub fn collision(attention: &Attention<RBig>, length: usize) -> Result<Collision> {
    if length < 2 {
        return Err(Error::undefined("one token has no context", "ask for 2 tokens or more"));
    }
    let d = attention.heads.first().map_or(0, |head| head.w_o.rows);
    if d == 0 {
        return Err(Error::undefined("a layer without heads", "give one with attention"));
    }
    let constant = |token: &[RBig]| Matrix::from_fn(length, d, |_, c| token[c].clone());
    let (p, q) = factors(attention, d);
    let u: Vec<RBig> = q.iter_rows().map(|row| &row[0] * RBig::from(length - 1) / RBig::from(length)).collect();
    match solve(&plus_identity(&product(&q, &p)), &[u]) {
        Solution::Kernel(s) => {
            let e = times(&p, &s);
            let scale = largest(&e);
            let e: Vec<RBig> = e.iter().map(|x| x / &scale).collect();
            let opposite: Vec<RBig> = e.iter().map(|x| -x).collect();
            Collision::new(attention, [constant(&e), constant(&opposite)], true)
        }
        Solution::Unique(t) => {
            let b = times(&p, &t[0]);
            let y = if largest(&b) <= RBig::ONE { RBig::ONE } else { RBig::ONE / largest(&b) };
            let pair = |y: &RBig| {
                let zero = |row, c| if row + 1 < length && c == 0 { y.clone() } else { RBig::ZERO };
                let b: Vec<RBig> = b.iter().map(|x| x * y).collect();
                Collision::new(attention, [Matrix::from_fn(length, d, zero), constant(&b)], false)
            };
            let (plus, minus) = (pair(&y)?, pair(&-&y)?);
            Ok(if plus.distance() >= minus.distance() { plus } else { minus })
        }
    }
}

/// `M = sum_i W_O,i W_V,i` as a product P Q with the smaller inner dimension: the heads' own, or d with P = I.
///
/// `(I + Q P) t = Q u` gives `b = P t` with `(I + P Q) b = P Q u`, and a kernel vector s of `I + Q P` one of `I + P Q`, P s.
fn factors(attention: &Attention<RBig>, d: usize) -> (Matrix<RBig>, Matrix<RBig>) {
    let columns: Vec<(usize, usize)> =
        attention.heads.iter().enumerate().flat_map(|(h, head)| (0..head.w_v.rows).map(move |s| (h, s))).collect();
    let p = Matrix::from_fn(d, columns.len(), |r, c| attention.heads[columns[c].0].w_o.row(r)[columns[c].1].clone());
    let q = Matrix::from_fn(columns.len(), d, |r, c| attention.heads[columns[r].0].w_v.row(columns[r].1)[c].clone());
    if columns.len() <= d {
        return (p, q);
    }
    let one = |r, c| if r == c { RBig::ONE } else { RBig::ZERO };
    (Matrix::from_fn(d, d, one), product(&p, &q))
}

fn product(a: &Matrix<RBig>, b: &Matrix<RBig>) -> Matrix<RBig> {
    Matrix::from_fn(a.rows, b.cols, |r, c| (0..a.cols).fold(RBig::ZERO, |sum, k| sum + &a.row(r)[k] * &b.row(k)[c]))
}

fn plus_identity(a: &Matrix<RBig>) -> Matrix<RBig> {
    Matrix::from_fn(a.rows, a.cols, |r, c| if r == c { &a.row(r)[c] + RBig::ONE } else { a.row(r)[c].clone() })
}

fn times(a: &Matrix<RBig>, x: &[RBig]) -> Vec<RBig> {
    a.iter_rows().map(|row| row.iter().zip(x).fold(RBig::ZERO, |sum, (a, x)| sum + a * x)).collect()
}

/// The sup norm.
fn largest(x: &[RBig]) -> RBig {
    x.iter().map(|x| if x.is_negative() { -x } else { x.clone() }).max().unwrap_or(RBig::ZERO)
}
