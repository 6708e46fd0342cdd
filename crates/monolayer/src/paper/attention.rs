//! Self-attention with skip: softmax (2), hardmax (5), masked (132), rank-1 (20).
//!
//! These are the plain versions, to be read beside the paper; over [`Interval`](crate::arithmetic::Interval) or
//! [`Ball`](crate::arithmetic::Ball) they are proofs. The fast version is [`crate::model::forward::attend`].

use serde::{Deserialize, Serialize};

use crate::arithmetic::Number;
use crate::arithmetic::matrix::Matrix;
use crate::error::{Error, Result};
pub use crate::paper::mask::Mask;

/// How scores become weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionKind {
    /// Eq. 2.
    Softmax,
    /// Eq. 5: all weight on the largest score, shared equally by ties.
    Hardmax,
}

/// Self-attention: heads, and how their scores become weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention<T> {
    /// Softmax or hardmax.
    pub kind: AttentionKind,
    /// Which tokens a query sees.
    pub mask: Mask,
    /// The heads, all of one size.
    pub heads: Vec<AttentionHead<T>>,
}

/// One head of size s on tokens of dimension d.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionHead<T> {
    /// Queries, `s x d`.
    pub w_q: Matrix<T>,
    /// Keys, `s x d`.
    pub w_k: Matrix<T>,
    /// Values, `s x d`.
    pub w_v: Matrix<T>,
    /// Output, `d x s`.
    pub w_o: Matrix<T>,
}

impl<T: Clone> Attention<T> {
    /// Eq. 20: one head of size 1, `v1` for keys and values, `v2` for queries.
    pub fn rank_one(mask: Mask, v1: &[T], v2: &[T], w_o: &[T]) -> Self {
        let row = |v: &[T]| Matrix::new(1, v.len(), v.to_vec());
        let head =
            AttentionHead { w_q: row(v2), w_k: row(v1), w_v: row(v1), w_o: Matrix::new(w_o.len(), 1, w_o.to_vec()) };
        Self { kind: AttentionKind::Softmax, mask, heads: vec![head] }
    }
}

impl<N: Number> Attention<N> {
    /// `Z + sum_i W_O,i (W_V,i Z) softmax[(W_K,i Z)^T (W_Q,i Z)]`, one token per row.
    pub fn apply(&self, z: &Matrix<N>) -> Result<Matrix<N>> {
        self.mask.check(z.rows)?;
        self.apply_masked(z, |query, key| self.mask.visible(query, key))
    }

    /// Eq. 132: the same with any mask, padding for example. A query that sees nothing is an error.
    pub fn apply_masked(&self, z: &Matrix<N>, visible: impl Fn(usize, usize) -> bool) -> Result<Matrix<N>> {
        let mut out = z.clone();
        for head in &self.heads {
            let (q, k, v) = (times(z, &head.w_q), times(z, &head.w_k), times(z, &head.w_v));
            for query in 0..z.rows {
                let keys: Vec<usize> = (0..z.rows).filter(|&key| visible(query, key)).collect();
                if keys.is_empty() {
                    return Err(Error::undefined(
                        format!("the mask hides every token from token {}", query + 1),
                        "let each token see at least one, itself for example",
                    ));
                }
                let scores: Vec<N> = keys.iter().map(|&key| dot(k.row(key), q.row(query))).collect();
                let weights = match self.kind {
                    AttentionKind::Softmax => softmax(&scores),
                    AttentionKind::Hardmax => hardmax(&scores)?,
                };
                // The mixture of the values that the query sees, a vector of size s.
                let mixed: Vec<N> = (0..head.w_v.rows)
                    .map(|c| {
                        keys.iter().zip(&weights).fold(N::zero(), |sum, (&key, w)| sum + v.row(key)[c].clone() * w)
                    })
                    .collect();
                for (h, w_o) in out.row_mut(query).iter_mut().zip(head.w_o.iter_rows()) {
                    *h = h.clone() + dot(w_o, &mixed);
                }
            }
        }
        Ok(out)
    }
}

/// The softmax of scores. Any shift gives the same weights; the largest score's keeps the exponentials in range.
pub fn softmax<N: Number>(scores: &[N]) -> Vec<N> {
    let shift = scores.iter().skip(1).fold(scores[0].clone(), |m, s| m.max(s)).midpoint();
    let powers: Vec<N> = scores.iter().map(|s| (s.clone() - &shift).exp()).collect();
    let total = powers.iter().skip(1).fold(powers[0].clone(), |sum, p| sum + p);
    powers.into_iter().map(|p| p / &total).collect()
}

/// The hardmax of scores: equal weights where the score is largest. Enclosures that overlap without being the same point
/// leave it undecided, which is an error.
pub fn hardmax<N: Number>(scores: &[N]) -> Result<Vec<N>> {
    let top: Vec<usize> = (0..scores.len()).filter(|&i| !scores.iter().any(|s| scores[i].certainly_less(s))).collect();
    if top.iter().any(|&i| !scores[i].certainly_equal(&scores[top[0]])) && top.len() > 1 {
        return Err(Error::too_close("the largest score cannot be told apart at this precision", "use more bits"));
    }
    let share = N::one() / N::from_f64(top.len() as f64);
    Ok((0..scores.len()).map(|i| if top.contains(&i) { share.clone() } else { N::zero() }).collect())
}

/// `x w^T`: the projection of each row of `x` on each row of `w`.
pub(crate) fn times<N: Number>(x: &Matrix<N>, w: &Matrix<N>) -> Matrix<N> {
    Matrix::from_fn(x.rows, w.rows, |i, j| dot(x.row(i), w.row(j)))
}

/// The inner product.
pub(crate) fn dot<N: Number>(x: &[N], y: &[N]) -> N {
    x.iter().zip(y).fold(N::zero(), |sum, (x, y)| sum + x.clone() * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(tokens: &[f64]) -> Matrix<f64> {
        Matrix::new(tokens.len(), 1, tokens.to_vec())
    }

    #[test]
    fn rank_one_is_the_boltzmann_operator_of_the_projected_tokens() {
        // d = 1, v1 = v2 = W_O = 1: the output at t is t + sum_i x_i e^(t x_i) / sum_i e^(t x_i).
        let attention = Attention::rank_one(Mask::None, &[1.0], &[1.0], &[1.0]);
        let out = attention.apply(&column(&[1.0, -2.0])).unwrap();
        let at = |t: f64| t + (t.exp() - 2.0 * (-2.0 * t).exp()) / (t.exp() + (-2.0 * t).exp());
        assert!((out.data[0] - at(1.0)).abs() < 1e-15 && (out.data[1] - at(-2.0)).abs() < 1e-15);
    }

    #[test]
    fn hardmax_shares_ties_equally() {
        assert_eq!(hardmax(&[1.0, 3.0, 3.0, 2.0]).unwrap(), [0.0, 0.5, 0.5, 0.0]);
        let mut attention = Attention::rank_one(Mask::None, &[1.0], &[0.0], &[1.0]);
        attention.kind = AttentionKind::Hardmax;
        // All scores are 0: the mean of all tokens.
        assert_eq!(attention.apply(&column(&[1.0, 2.0, 6.0])).unwrap().data, [4.0, 5.0, 9.0]);
    }

    #[test]
    fn softmax_stands_huge_scores() {
        assert_eq!(softmax(&[1e300, -1e300]), [1.0, 0.0]);
        assert_eq!(softmax(&[f64::MAX, f64::MAX]), [0.5, 0.5]);
    }

    #[test]
    fn a_query_that_sees_nothing_is_an_error() {
        let attention = Attention::rank_one(Mask::None, &[1.0], &[1.0], &[1.0]);
        let z = column(&[1.0, 2.0, 0.0]);
        // Padding: the third token is hidden from all, and the first two are as if it did not exist.
        let padded = attention.apply_masked(&z, |_, key| key < 2).unwrap();
        let short = attention.apply(&column(&[1.0, 2.0])).unwrap();
        assert_eq!(padded.data[..2], short.data[..]);
        let error = attention.apply_masked(&z, |query, _| query != 1).unwrap_err().to_string();
        assert!(error.contains("hides every token from token 2"), "{error}");
    }

    #[test]
    fn causal_masks_hide_the_future() {
        let attention = Attention::rank_one(Mask::Causal, &[1.0], &[1.0], &[1.0]);
        let whole = attention.apply(&column(&[1.0, -2.0, 0.5])).unwrap();
        let prefix = attention.apply(&column(&[1.0, -2.0])).unwrap();
        assert_eq!(whole.data[..2], prefix.data[..]);
        assert_eq!(whole.data[0], 2.0);
    }
}
