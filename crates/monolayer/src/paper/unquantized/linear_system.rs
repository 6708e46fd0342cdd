//! Linear systems with rational numbers, solved exactly by elimination without fractions (Bareiss).

use dashu_base::Gcd as _;
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::arithmetic::matrix::Matrix;

/// What a square matrix A and right sides u give.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Solution {
    /// The x with `A x = u`, for each u.
    Unique(Vec<Vec<RBig>>),
    /// A is singular: an `x != 0` with `A x = 0`.
    Kernel(Vec<RBig>),
}

/// Solves `A x = u` for each u, with one elimination, or finds that A is singular.
pub(super) fn solve(a: &Matrix<RBig>, right: &[Vec<RBig>]) -> Solution {
    let n = a.rows;
    let mut rows: Vec<Vec<IBig>> =
        (0..n).map(|i| cleared(a.row(i).iter().chain(right.iter().map(|u| &u[i])).collect())).collect();
    let rank = eliminate(&mut rows);
    if rank == n {
        let one = |k: usize| back_substituted(&rows, &rows.iter().map(|row| row[n + k].clone()).collect::<Vec<IBig>>());
        return Solution::Unique((0..right.len()).map(one).collect());
    }
    // The first column without a pivot is a combination of those before it.
    let right: Vec<IBig> = rows[..rank].iter().map(|row| -&row[rank]).collect();
    let mut x = back_substituted(&rows[..rank], &right);
    x.push(RBig::ONE);
    x.resize(n, RBig::ZERO);
    Solution::Kernel(x)
}

/// A row with its right sides over one denominator, which is left out: it changes no solution.
fn cleared(row: Vec<&RBig>) -> Vec<IBig> {
    let common = row.iter().fold(UBig::ONE, |l, x| &l / (&l).gcd(x.denominator()) * x.denominator());
    row.into_iter().map(|x| x.numerator() * (&common / x.denominator())).collect()
}

/// Brings the rows to triangular form, as far as there are pivots in the first columns; returns how many there are.
fn eliminate(rows: &mut [Vec<IBig>]) -> usize {
    let mut before = IBig::ONE;
    for k in 0..rows.len() {
        let Some(pivot) = (k..rows.len()).find(|&i| !rows[i][k].is_zero()) else { return k };
        rows.swap(k, pivot);
        let (top, below) = rows.split_at_mut(k + 1);
        let top = &top[k];
        for row in below {
            let factor = std::mem::take(&mut row[k]);
            for (x, t) in row.iter_mut().zip(top).skip(k + 1) {
                // Exact: every entry is a determinant of the first k + 1 rows' columns.
                *x = (&*x * &top[k] - &factor * t) / &before;
            }
        }
        before.clone_from(&top[k]);
    }
    rows.len()
}

/// The x with `U x = right` for the upper triangle U in the first columns.
fn back_substituted(rows: &[Vec<IBig>], right: &[IBig]) -> Vec<RBig> {
    let n = rows.len();
    let mut x = vec![RBig::ZERO; n];
    for i in (0..n).rev() {
        let known = (i + 1..n).fold(RBig::ZERO, |sum, j| sum + &x[j] * RBig::from(rows[i][j].clone()));
        x[i] = (RBig::from(right[i].clone()) - known) / RBig::from(rows[i][i].clone());
    }
    x
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::paper::unquantized::times;

    proptest! {
        #[test]
        fn solutions_solve(n in 1..6_usize, numbers in prop::collection::vec((-4..=4_i64, 1..=3_u64), 42), flat in any::<bool>()) {
            let number = |i: usize| RBig::from_parts(numbers[i].0.into(), numbers[i].1.into());
            let a = Matrix::from_fn(n, n, |r, c| if flat && r > 0 && r + 1 == n { number(c) } else { number(r * n + c) });
            // Two right sides.
            let u: Vec<RBig> = (0..n).map(|i| number(36 + i)).collect();
            let right = [u.clone(), u.iter().rev().cloned().collect()];
            match solve(&a, &right) {
                Solution::Unique(x) => {
                    prop_assert!(!flat || n < 2);
                    prop_assert_eq!([times(&a, &x[0]), times(&a, &x[1])], right);
                }
                Solution::Kernel(x) => {
                    prop_assert!(x.iter().any(|x| !x.is_zero()));
                    prop_assert_eq!(times(&a, &x), vec![RBig::ZERO; n]);
                }
            }
        }
    }
}
