//! The exact rank of a matrix of floats.

use crate::arithmetic::rational;
use dashu_ratio::RBig;

/// The rank of a matrix, row-major with `cols` columns, of finite numbers. Floats are rational numbers, so this is exact:
/// Gaussian elimination without rounding.
pub fn rank(cols: usize, data: &[f64]) -> usize {
    let mut rows: Vec<Vec<RBig>> =
        data.chunks_exact(cols).map(|row| row.iter().map(|&x| rational(x)).collect()).collect();
    let mut rank = 0;
    for c in 0..cols {
        let Some(pivot) = (rank..rows.len()).find(|&r| !rows[r][c].is_zero()) else { continue };
        rows.swap(rank, pivot);
        let (done, rest) = rows.split_at_mut(rank + 1);
        let pivot = &done[rank];
        for row in rest.iter_mut().filter(|row| !row[c].is_zero()) {
            let factor = &row[c] / &pivot[c];
            for (x, p) in row[c..].iter_mut().zip(&pivot[c..]) {
                *x -= &factor * p;
            }
        }
        rank += 1;
        if rank == rows.len() {
            break;
        }
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounding_does_not_hide_a_rank() {
        assert_eq!(rank(2, &[1.0, 1.0, 1.0, 1.0]), 1);
        assert_eq!(rank(2, &[1.0, 1.0, 1.0, 1.0 + f64::EPSILON]), 2);
        assert_eq!(rank(2, &[1e300, 1e-300, 1e-300, 0.0]), 2);
        assert_eq!(rank(3, &[0.0; 6]), 0);
        assert_eq!(rank(3, &[0.1, 0.2, 0.3]), 1);
    }

    proptest! {
        #[test]
        fn a_product_of_thin_factors(r in 0_usize..4, a in prop::collection::vec(-9_i32..9, 16), b in prop::collection::vec(-9_i32..9, 20)) {
            // (4 x r)(r x 5): the rank is at most r, and at most that of either factor.
            let entry = |i: usize, j: usize| (0..r).map(|k| f64::from(a[i * 4 + k] * b[k * 5 + j])).sum::<f64>();
            let product: Vec<f64> = (0..4).flat_map(|i| (0..5).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect();
            prop_assert!(rank(5, &product) <= r);
        }
    }
}
