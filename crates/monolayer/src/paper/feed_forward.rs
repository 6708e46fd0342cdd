//! The feed-forward block with skip, eq. 3, token by token. The fast version is [`crate::model::forward::feed_forward`].

use crate::arithmetic::Number;
use crate::arithmetic::matrix::Matrix;
use crate::paper::attention::dot;

/// `h + W2 relu(W1 h + b1) + b2` with q hidden units on tokens of dimension d.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedForward<T> {
    /// `q x d`.
    pub w1: Matrix<T>,
    /// q numbers.
    pub b1: Vec<T>,
    /// `d x q`.
    pub w2: Matrix<T>,
    /// d numbers.
    pub b2: Vec<T>,
}

impl<N: Number> FeedForward<N> {
    /// The block on each token of a sequence, one token per row.
    pub fn apply(&self, z: &Matrix<N>) -> Matrix<N> {
        Matrix { data: z.iter_rows().flat_map(|h| self.apply_token(h)).collect(), ..*z }
    }

    /// The block on one token.
    pub fn apply_token(&self, h: &[N]) -> Vec<N> {
        let hidden: Vec<N> = self.w1.iter_rows().zip(&self.b1).map(|(w, b)| relu(&(dot(w, h) + b))).collect();
        let out = self.w2.iter_rows().zip(&self.b2).map(|(w, b)| dot(w, &hidden) + b);
        h.iter().zip(out).map(|(h, out)| h.clone() + out).collect()
    }
}

impl<T: Clone + Default + PartialEq> FeedForward<T> {
    /// How many hidden units at the end have no weight but 0: they compute 0 and add nothing.
    pub fn spare_units(&self) -> usize {
        let zero = |x: &T| *x == T::default();
        let spare = |&j: &usize| {
            zero(&self.b1[j]) && self.w1.row(j).iter().all(zero) && self.w2.iter_rows().all(|row| zero(&row[j]))
        };
        (0..self.b1.len()).rev().take_while(spare).count()
    }
}

/// max(x, 0).
pub fn relu<N: Number>(x: &N) -> N {
    x.max(&N::zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let block = FeedForward {
            w1: Matrix::new(3, 2, vec![1.0, 0.0, 0.0, -1.0, 1.0, 1.0]),
            b1: vec![0.0, 1.0, -10.0],
            w2: Matrix::new(2, 3, vec![2.0, 1.0, 5.0, 0.0, 3.0, 5.0]),
            b2: vec![0.5, -0.5],
        };
        // W1 h + b1 = (4, -1, -4), so only the first unit fires.
        assert_eq!(block.apply_token(&[4.0, 2.0]), [4.0 + 8.0 + 0.5, 2.0 - 0.5]);
    }
}
