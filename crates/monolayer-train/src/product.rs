//! Matrix products: those of rank-1 attention are thin, and cost no more than reading their operands.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use monolayer::arithmetic::kernels::Parallelism;
use monolayer::arithmetic::kernels::{self, Real};

/// Up to as many rows, columns or terms a product is thin.
const THIN: usize = 4;

/// `out = a b`, or `out += a b` when `add`, for row-major `out [m, n]`, `a` and `b` with their (row, column) strides.
pub fn product<R: Real>(
    (m, n, k): (usize, usize, usize),
    (a, a_strides): (&[R], (usize, usize)),
    (b, b_strides): (&[R], (usize, usize)),
    out: &mut [R],
    add: bool,
) {
    let dots = m.min(n) <= THIN && a_strides.1 == 1 && b_strides.0 == 1;
    let sums = m.min(k) <= THIN && b_strides.1 == 1;
    if !dots && !sums {
        kernels::product_strided(m, n, k, a, a_strides, b, b_strides, out, add, Parallelism::None);
        return;
    }
    kernels::vectorized(
        #[inline(always)]
        || {
            if !add {
                out[..m * n].fill(R::ZERO);
            }
            if dots {
                for (i, out) in out.chunks_exact_mut(n).take(m).enumerate() {
                    for (j, out) in out.iter_mut().enumerate() {
                        *out += kernels::dot(&a[i * a_strides.0..][..k], &b[j * b_strides.1..][..k]);
                    }
                }
            } else {
                for (i, out) in out.chunks_exact_mut(n).take(m).enumerate() {
                    for t in 0..k {
                        let factor = a[i * a_strides.0 + t * a_strides.1];
                        let row = &b[t * b_strides.0..][..n];
                        for (out, &x) in out.iter_mut().zip(row) {
                            *out += factor * x;
                        }
                    }
                }
            }
        },
    );
}

/// The sum of the rows of `x`.
pub fn add_rows<R: Real>(x: &[R], sum: &mut [R]) {
    kernels::vectorized(
        #[inline(always)]
        || {
            sum.fill(R::ZERO);
            for row in x.chunks_exact(sum.len()) {
                for (sum, &x) in sum.iter_mut().zip(row) {
                    *sum += x;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every way to lay the operands out, thin or not, on integers, where every order of summation is exact.
        #[test]
        fn equals_the_plain_formula(m in 1_usize..20, n in 1_usize..20, k in 1_usize..20, ways in 0_usize..4, add: bool) {
            let a: Vec<f64> = (0..m * k).map(|i| (i * 7919 % 17) as f64 - 8.0).collect();
            let b: Vec<f64> = (0..k * n).map(|i| (i * 104_729 % 19) as f64 - 9.0).collect();
            let a_strides = if ways & 1 == 0 { (k, 1) } else { (1, m) };
            let b_strides = if ways & 2 == 0 { (n, 1) } else { (1, k) };
            let mut out = vec![2.0; m * n];
            product((m, n, k), (&a, a_strides), (&b, b_strides), &mut out, add);
            for i in 0..m {
                for j in 0..n {
                    let term = |t: usize| a[i * a_strides.0 + t * a_strides.1] * b[t * b_strides.0 + j * b_strides.1];
                    prop_assert_eq!(out[i * n + j], (0..k).map(term).sum::<f64>() + if add { 2.0 } else { 0.0 });
                }
            }
        }
    }
}
