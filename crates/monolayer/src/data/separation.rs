//! Definition 1: tokenwise (r_min, r_max, epsilon)-separated vectors.

use crate::arithmetic::kernels::Parallelism;
use crate::arithmetic::parallel;

use crate::arithmetic::kernels;

/// The tightest constants of Definition 1. The definition's inequalities are strict, so a set of vectors is
/// (r_min, r_max, epsilon)-separated exactly for constants beyond these.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Separation {
    /// The smallest norm.
    pub r_min: f64,
    /// The largest norm.
    pub r_max: f64,
    /// The smallest distance of two different vectors; infinite when there is only one.
    pub epsilon: f64,
}

/// Rows per block of the distance pass: two blocks of 64-dimensional rows and their products fit a core's cache.
const BLOCK: usize = 256;

/// The constants of Definition 1 for different vectors, the rows of a row-major `[rows, d]` array.
///
/// The products `x . y` of two blocks of rows come from one matrix product; only pairs whose distance, by the product's
/// error bound, could be the smallest are measured again from their differences, which loses no digits.
pub fn separation(d: usize, vectors: &[f64]) -> Separation {
    // A power of two that brings the largest entry near 1, so that no square overflows or vanishes.
    let largest = vectors.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let scale = if largest > 0.0 { largest.log2().floor().clamp(-1000.0, 1000.0).exp2() } else { 1.0 };
    let scaled: Vec<f64> = vectors.iter().map(|x| x / scale).collect();
    let rows: Vec<&[f64]> = scaled.chunks_exact(d).collect();
    let squares: Vec<f64> = rows.iter().map(|x| x.iter().map(|x| x * x).sum()).collect();
    let norms = || squares.iter().map(|s| s.sqrt() * scale);

    let blocks: Vec<(usize, usize)> =
        (0..rows.len()).step_by(BLOCK).flat_map(|i| (i..rows.len()).step_by(BLOCK).map(move |j| (i, j))).collect();
    let closest = parallel::map_slice(&blocks, |&(i, j)| closest_in_blocks(d, &scaled, &squares, i, j));
    let smallest = closest.into_iter().fold(f64::INFINITY, f64::min);
    Separation {
        r_min: norms().fold(f64::INFINITY, f64::min),
        r_max: norms().fold(0.0, f64::max),
        epsilon: smallest.sqrt() * scale,
    }
}

/// The smallest squared distance between rows `i..i+BLOCK` and rows `j..j+BLOCK`.
fn closest_in_blocks(d: usize, rows: &[f64], squares: &[f64], i: usize, j: usize) -> f64 {
    let block = |start: usize| start..(start + BLOCK).min(squares.len());
    let (a, b) = (block(i), block(j));
    let mut products = vec![0.0; a.len() * b.len()];
    kernels::product(
        &rows[a.start * d..a.end * d],
        &rows[b.start * d..b.end * d],
        d,
        &mut products,
        false,
        Parallelism::None,
    );
    // |computed - true| of |x|^2 + |y|^2 - 2 x.y, any order of summation.
    let error =
        |p: usize, q: usize| (d as f64 + 4.0) * <f64 as kernels::Real>::UNIT_ROUNDOFF * 2.0 * (squares[p] + squares[q]);
    let approximate = |p: usize, q: usize| squares[p] + squares[q] - 2.0 * products[(p - i) * b.len() + q - j];
    let mut best = f64::INFINITY;
    for p in a.clone() {
        for q in b.clone().skip_while(|&q| q <= p && i == j) {
            if approximate(p, q) - error(p, q) < best {
                let pair = rows[p * d..(p + 1) * d].iter().zip(&rows[q * d..(q + 1) * d]);
                best = best.min(pair.map(|(x, y)| (x - y) * (x - y)).sum());
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(d: usize, vectors: &[f64]) -> Separation {
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let rows: Vec<&[f64]> = vectors.chunks_exact(d).collect();
        let mut epsilon = f64::INFINITY;
        for (i, x) in rows.iter().enumerate() {
            for y in &rows[..i] {
                epsilon = epsilon.min(norm(&x.iter().zip(*y).map(|(x, y)| x - y).collect::<Vec<_>>()));
            }
        }
        let norms = || rows.iter().map(|x| norm(x));
        Separation { r_min: norms().fold(f64::INFINITY, f64::min), r_max: norms().fold(0.0, f64::max), epsilon }
    }

    fn close(a: f64, b: f64) -> bool {
        a == b || (a - b).abs() <= 1e-14 * b.abs()
    }

    proptest! {
        #[test]
        fn blocked_equals_naive(d in 1_usize..5, data in prop::collection::vec(-1.0_f64..1.0, 8..2400), power in -300..300) {
            let data: Vec<f64> = data[..data.len() / d * d].iter().map(|x| x * 2_f64.powi(power)).collect();
            let (fast, plain) = (separation(d, &data), naive(d, &data.iter().map(|x| x / 2_f64.powi(power)).collect::<Vec<_>>()));
            let back = 2_f64.powi(power);
            prop_assert!(close(fast.r_min, plain.r_min * back) && close(fast.r_max, plain.r_max * back));
            prop_assert!(close(fast.epsilon, plain.epsilon * back), "{} {}", fast.epsilon, plain.epsilon * back);
        }
    }

    #[test]
    fn nearly_equal_vectors_keep_their_digits() {
        let tiny = 1e-15;
        let found = separation(2, &[1.0, 1.0, 1.0, 1.0 + tiny, 3.0, 4.0]);
        assert_eq!(found.epsilon, (1.0 + tiny) - 1.0);
        assert_eq!(found.r_max, 5.0);
    }

    #[test]
    fn one_vector_and_a_zero_vector() {
        assert_eq!(separation(1, &[-2.0]), Separation { r_min: 2.0, r_max: 2.0, epsilon: f64::INFINITY });
        assert_eq!(separation(1, &[0.0, 3.0]), Separation { r_min: 0.0, r_max: 3.0, epsilon: 3.0 });
    }
}
