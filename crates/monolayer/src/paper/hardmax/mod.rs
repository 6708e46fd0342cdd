//! Theorem 1: two sequences that a hardmax layer (5) cannot tell apart, evaluated in exact rational arithmetic.
//!
//! On the tokens `a v` of a line, a query t scores `a (W_K v) . (W_Q t)`. So a head returns the value of the largest a, that of
//! the smallest, or, where the product is 0, the mean of all: `(1, 2, 5, 6) v` and `(1, 3, 4, 6) v` share all three, and the paper's own
//! pair `(a1, a2, a4) v`, `(a1, a3, a4) v` does not share the mean. Nothing here relies on that: [`witness`] runs the layer.

mod draws;

use dashu_base::Gcd as _;
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::{Ball, Number as _};
use crate::error::{Error, Result};
use crate::model::exact::ball;
use crate::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};

pub use draws::{Tally, draw, draws};

/// Multiples of v that a hardmax layer cannot tell apart, and those of the paper's proof, which mean pooling does.
const PAIR: [[i64; 4]; 2] = [[1, 2, 5, 6], [1, 3, 4, 6]];
const PRINTED_PAIR: [[i64; 3]; 2] = [[1, 2, 4], [1, 3, 4]];

/// Bits for the softmax of [`softmax_gap`].
const PRECISION: usize = 192;

/// The numbers of a matrix over one denominator. A positive factor of all scores changes no hardmax, so they stay integers.
#[derive(Debug, Clone)]
struct Cleared {
    numerators: Matrix<IBig>,
    denominator: UBig,
}

impl Cleared {
    fn new(matrix: &Matrix<RBig>) -> Self {
        let least_multiple = |l: UBig, x: &RBig| &l / (&l).gcd(x.denominator()) * x.denominator();
        let denominator = matrix.data.iter().fold(UBig::ONE, least_multiple);
        Self { numerators: matrix.map(|x| x.numerator() * (&denominator / x.denominator())), denominator }
    }

    /// The projection of each row of `z` on each row of the matrix, times both denominators.
    fn project(&self, z: &Self) -> Matrix<IBig> {
        let (z, w) = (&z.numerators, &self.numerators);
        Matrix::from_fn(z.rows, w.rows, |i, j| dot(z.row(i), w.row(j)))
    }
}

fn dot(x: &[IBig], y: &[IBig]) -> IBig {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A hardmax layer (5) with rational weights. Ties share the weight equally.
#[derive(Debug, Clone)]
pub struct HardmaxLayer {
    mask: Mask,
    /// W_Q, W_K, W_V and W_O of each head.
    heads: Vec<[Cleared; 4]>,
}

impl HardmaxLayer {
    /// The layer with these weights, read as hardmax whatever their kind.
    pub fn new(attention: &Attention<RBig>) -> Self {
        let head = |h: &AttentionHead<RBig>| [&h.w_q, &h.w_k, &h.w_v, &h.w_o].map(Cleared::new);
        Self { mask: attention.mask.clone(), heads: attention.heads.iter().map(head).collect() }
    }

    /// The places that each head attends to from the token at `query`: those of the largest score.
    pub fn attended(&self, z: &Matrix<RBig>, query: usize) -> Vec<Vec<usize>> {
        let z = Cleared::new(z);
        let largest = |[w_q, w_k, ..]: &[Cleared; 4]| self.largest(&w_k.project(&z), &w_q.project(&z), query);
        self.heads.iter().map(largest).collect()
    }

    fn largest(&self, keys: &Matrix<IBig>, queries: &Matrix<IBig>, query: usize) -> Vec<usize> {
        let visible = (0..keys.rows).filter(|&key| self.mask.visible(query, key));
        let scores: Vec<(usize, IBig)> = visible.map(|key| (key, dot(keys.row(key), queries.row(query)))).collect();
        let top = scores.iter().map(|(_, score)| score).max().expect("a token sees itself");
        scores.iter().filter(|(_, score)| score == top).map(|(key, _)| *key).collect()
    }

    /// `Z + sum_i W_O,i (W_V,i Z) hardmax[(W_K,i Z)^T (W_Q,i Z)]`, one token per row, exactly.
    pub fn apply(&self, z: &Matrix<RBig>) -> Matrix<RBig> {
        let mut out = z.clone();
        let z = Cleared::new(z);
        for [w_q, w_k, w_v, w_o] in &self.heads {
            let (queries, keys, values) = (w_q.project(&z), w_k.project(&z), w_v.project(&z));
            for query in 0..out.rows {
                let attended = self.largest(&keys, &queries, query);
                let sum: Vec<IBig> =
                    (0..values.cols).map(|c| attended.iter().map(|&key| &values.row(key)[c]).sum()).collect();
                let denominator = &z.denominator * &w_v.denominator * &w_o.denominator * UBig::from(attended.len());
                for (h, w_o) in out.row_mut(query).iter_mut().zip(w_o.numerators.iter_rows()) {
                    *h += RBig::from_parts(dot(w_o, &sum), denominator.clone());
                }
            }
        }
        out
    }
}

/// Two sequences of multiples of v, and what a hardmax layer makes of the tokens they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Witness {
    /// The multiples of v in either sequence.
    pub sequences: [Vec<i64>; 2],
    /// The places of shared tokens whose contexts differ, from 0.
    pub shared: Vec<usize>,
    /// The layer's outputs at those places, for either sequence.
    pub outputs: [Vec<Vec<RBig>>; 2],
}

impl Witness {
    fn new(layer: &HardmaxLayer, v: &[RBig], sequences: [Vec<i64>; 2], shared: Vec<usize>) -> Self {
        let outputs = sequences.each_ref().map(|sequence| {
            let out = layer.apply(&line(sequence, v));
            shared.iter().map(|&place| out.row(place).to_vec()).collect()
        });
        Self { sequences, shared, outputs }
    }

    /// Whether all outputs are equal, exactly: the layer does not tell the sequences apart.
    pub fn blind(&self) -> bool {
        self.outputs[0] == self.outputs[1]
    }
}

/// Theorem 1: two sequences of `length >= 4` different tokens which the layer cannot tell apart at the tokens they
/// share and that see the whole sequence. Whether it does is computed: see [`Witness::blind`].
pub fn witness(layer: &HardmaxLayer, v: &[RBig], length: usize) -> Result<Witness> {
    check_direction(v)?;
    let sequences = pair(length)?;
    layer.mask.check(length)?;
    // A causal mask shows the whole sequence to its last token only.
    let sees_all = |&place: &usize| layer.mask.seen(place, length).count() == length;
    let shared: Vec<usize> =
        (0..length).filter(|&place| sequences[0][place] == sequences[1][place]).filter(sees_all).collect();
    if shared.is_empty() {
        return Err(Error::undefined(
            format!("the mask shows all of {length} tokens to none of those that the two sequences share"),
            "Theorem 1 is about layers that see their whole sequence",
        ));
    }
    Ok(Witness::new(layer, v, sequences, shared))
}

/// The pair of the paper's proof, `(1, 2, 4) v` and `(1, 3, 4) v`, at its last token.
pub fn printed_pair(layer: &HardmaxLayer, v: &[RBig]) -> Result<Witness> {
    check_direction(v)?;
    layer.mask.check(PRINTED_PAIR[0].len())?;
    Ok(Witness::new(layer, v, PRINTED_PAIR.map(|sequence| sequence.to_vec()), vec![2]))
}

/// What tells the printed pair apart: a layer that adds the mean of all tokens (W_Q = 0, W_K = W_V = W_O = I).
pub fn mean_pooling(d: usize) -> Attention<RBig> {
    let identity = Matrix::from_fn(d, d, |i, j| if i == j { RBig::ONE } else { RBig::ZERO });
    let head = AttentionHead {
        w_q: identity.map(|_| RBig::ZERO),
        w_k: identity.clone(),
        w_v: identity.clone(),
        w_o: identity,
    };
    Attention { kind: AttentionKind::Hardmax, mask: Mask::None, heads: vec![head] }
}

/// Softmax weights of rank 1 (20), and how far apart they put the last tokens of the two sequences.
#[derive(Debug, Clone)]
pub struct SoftmaxGap {
    /// The coordinate that is read and written: v1, v2 and W_O are multiples of its unit vector.
    pub coordinate: usize,
    /// v1's entry there; W_O's is its inverse.
    pub v1: f64,
    /// v2's entry there.
    pub v2: f64,
    /// The distance of the two outputs.
    pub gap: Ball,
}

/// Softmax tells apart, at its last token, the pair that no hardmax layer does: the weights, and the distance enclosed.
pub fn softmax_gap(v: &[RBig], length: usize) -> Result<SoftmaxGap> {
    check_direction(v)?;
    let size = |&c: &usize| v[c].to_f64().value().abs();
    let coordinate = (0..v.len()).max_by(|a, b| size(a).total_cmp(&size(b))).expect("not empty");
    // Projections are those of a direction between 1 and 2, and the last token's scores multiples of something from 3/16 to 3/4;
    // negative, so that the small tokens count, which differ.
    let v1 = (-size(&coordinate).log2().floor()).exp2();
    if !v1.is_normal() || !v1.recip().is_normal() {
        return Err(Error::undefined("the direction v is beyond the range of floats", "give one of moderate size"));
    }
    let v2 = v1 * -0.03125;
    let unit = |x: f64| (0..v.len()).map(|c| Ball::new(if c == coordinate { x } else { 0.0 }, PRECISION)).collect();
    let [v1_ball, v2_ball, w_o]: [Vec<Ball>; 3] = [v1, v2, v1.recip()].map(unit);
    let attention = Attention::rank_one(Mask::None, &v1_ball, &v2_ball, &w_o);
    let [a, b] = pair(length)?.map(|sequence| -> Result<Ball> {
        let out = attention.apply(&line(&sequence, v).map(|x| ball(x, PRECISION)))?;
        Ok(out.row(length - 1)[coordinate].clone())
    });
    Ok(SoftmaxGap { coordinate, v1, v2, gap: (a? - b?).abs() })
}

/// The tokens `a v`, one per row.
pub fn line(multiples: &[i64], v: &[RBig]) -> Matrix<RBig> {
    Matrix::from_fn(multiples.len(), v.len(), |i, j| RBig::from(multiples[i]) * &v[j])
}

/// The pair, with tokens 7 v, 8 v, ... in common for `length > 4`. They come first, so that the last token sees all under
/// a causal mask, too.
fn pair(length: usize) -> Result<[Vec<i64>; 2]> {
    if length < 4 {
        return Err(Error::undefined(
            format!(
                "Theorem 1 does not hold for {length} tokens: three heads (mean, largest, smallest) can tell all apart"
            ),
            "ask for 4 tokens or more",
        ));
    }
    let common = || (7..).take(length - 4);
    Ok(PAIR.map(|ends| common().chain(ends).collect()))
}

fn check_direction(v: &[RBig]) -> Result<()> {
    if v.iter().all(RBig::is_zero) {
        return Err(Error::undefined("the direction v is zero, so all tokens are the same", "give another one"));
    }
    Ok(())
}
