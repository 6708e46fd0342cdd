//! Theorem F of docs/unquantized.md: a direction of the other tokens that no key and no value sees.

use dashu_ratio::RBig;

use super::linear_system::{Solution, solve};
use super::{largest, times};
use crate::arithmetic::matrix::Matrix;
use crate::paper::attention::{Attention, AttentionHead};

/// A vector with sup norm 1 that is orthogonal to the rows of W_K and W_V of all heads; `None` if these rows span the space.
///
/// ```
/// use dashu_ratio::RBig;
/// use monolayer::paper::attention::{Attention, Mask};
/// use monolayer::paper::unquantized::unseen_direction;
///
/// let [zero, one] = [RBig::ZERO, RBig::ONE];
/// let layer = Attention::rank_one(Mask::None, &[one.clone(), one.clone()], &[one.clone(), zero.clone()], &[one.clone(), zero]);
/// assert_eq!(unseen_direction(&layer), Some(vec![-&one, one]));
/// ```
pub fn unseen_direction(attention: &Attention<RBig>) -> Option<Vec<RBig>> {
    let rows: Vec<&[RBig]> =
        attention.heads.iter().flat_map(|head| head.w_k.iter_rows().chain(head.w_v.iter_rows())).collect();
    let d = attention.heads.first()?.w_k.cols;
    // R^T R c = 0 only if R c = 0.
    let entry = |r: usize, c: usize| rows.iter().fold(RBig::ZERO, |sum, row| sum + &row[r] * &row[c]);
    match solve(&Matrix::from_fn(d, d, entry), &[]) {
        Solution::Unique(_) => None,
        Solution::Kernel(c) => {
            let scale = largest(&c);
            Some(c.iter().map(|x| x / &scale).collect())
        }
    }
}

/// What the layer's output at a token is made of, head by head: the scores of all tokens for its query, and their values.
/// Sequences with the same token there and the same of these have the same output, exactly and without an exponential.
pub fn scores_and_values(attention: &Attention<RBig>, z: &Matrix<RBig>, token: usize) -> Vec<(RBig, Vec<RBig>)> {
    let one = |head: &AttentionHead<RBig>| {
        let query = times(&head.w_q, z.row(token));
        let score = |key: &[RBig]| key.iter().zip(&query).fold(RBig::ZERO, |sum, (k, q)| sum + k * q);
        z.iter_rows().map(|x| (score(&times(&head.w_k, x)), times(&head.w_v, x))).collect::<Vec<_>>()
    };
    attention.heads.iter().flat_map(one).collect()
}

/// The first coordinate of Theorem F's function, `(1/(n-1)) sum_j |z_j - z_k|^2`; the others are 0.
pub fn mean_squared_distance(z: &Matrix<RBig>, k: usize) -> RBig {
    let square = |row: &[RBig]| row.iter().zip(z.row(k)).fold(RBig::ZERO, |sum, (a, b)| sum + (a - b) * (a - b));
    z.iter_rows().fold(RBig::ZERO, |sum, row| sum + square(row)) / RBig::from(z.rows - 1)
}
