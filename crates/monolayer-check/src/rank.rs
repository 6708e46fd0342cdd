//! The exact rank of a tensor: Gaussian elimination over the integers, no rounding anywhere.

use dashu_base::{BitTest, RemEuclid as _};
use dashu_int::IBig;

use crate::model::Model;
use crate::report::Verdict;
use crate::rounding::last_bit;

/// Checks a claimed rank. A tensor with a leading head dimension is a list of matrices, each of which must have the rank.
pub fn check(model: &Model, tensor: &str, claimed: usize) -> (Verdict, String) {
    let Some(matrices) = find(model, tensor) else {
        return (Verdict::Unknown, format!("the model has no matrix {tensor:?}"));
    };
    for (head, (rows, columns, data)) in matrices.into_iter().enumerate() {
        if rows.min(columns) > LARGEST {
            return (Verdict::Unknown, format!("{tensor} is {rows} by {columns}; exact ranks go up to {LARGEST}"));
        }
        let least = rank_modulo_prime(data, rows, columns);
        if least > claimed {
            return (Verdict::Refuted, format!("{tensor} (head {head}) has at least rank {least}, not {claimed}"));
        }
        let full = least == rows.min(columns);
        let found = if full { Some(least) } else { rank(data, rows, columns) };
        match found {
            None => return (Verdict::Unknown, format!("the integers of the elimination of {tensor} get too long")),
            Some(found) if found != claimed => {
                return (Verdict::Refuted, format!("{tensor} (head {head}) has rank {found}, not {claimed}"));
            }
            Some(_) => (),
        }
    }
    (Verdict::Verified, format!("{tensor} has rank {claimed}, exactly"))
}

/// Larger matrices take too long.
const LARGEST: usize = 1024;
/// How many bits the integers of an elimination may have together.
const MOST_BITS: usize = 1 << 26;
/// A prime.
const PRIME: u64 = (1 << 61) - 1;

type Matrix<'a> = (usize, usize, &'a [f64]);

fn find<'a>(model: &'a Model, name: &str) -> Option<Vec<Matrix<'a>>> {
    let d = model.d;
    let parts: Vec<&str> = name.split('.').collect();
    let rows = |data: &'a [f64]| Some(vec![(data.len() / d, d, data)]);
    let feed_forward = |part: &'a crate::model::FeedForward, which: &str| match which {
        "w1" => rows(&part.w1),
        "w2" => rows(&part.w2),
        _ => None,
    };
    match *parts.as_slice() {
        ["embedding", "weight"] => rows(&model.embedding.as_ref()?.weight),
        ["positions", "weight"] => rows(model.positions.as_ref()?),
        ["head", "weight"] => rows(&model.head.as_ref()?.weight),
        ["pre_feed_forward", which] => feed_forward(model.pre_feed_forward.as_ref()?, which),
        ["layers", i, "feed_forward", which] => {
            feed_forward(model.layers.get(i.parse::<usize>().ok()?)?.feed_forward.as_ref()?, which)
        }
        ["layers", i, "attention", which] => {
            let a = model.layers.get(i.parse::<usize>().ok()?)?.attention.as_ref()?;
            let data = match which {
                "w_q" => &a.w_q,
                "w_k" => &a.w_k,
                "w_v" => &a.w_v,
                "w_o" => &a.w_o,
                _ => return None,
            };
            Some(data.chunks_exact(a.size * d).map(|m| (a.size, d, m)).collect())
        }
        _ => None,
    }
}

/// The rows of a matrix times powers of two that make all entries integers, which leaves the rank as it is. The rank of a matrix
/// is that of its transpose: rows go along the shorter side.
fn integer_rows(data: &[f64], rows: usize, columns: usize) -> impl Iterator<Item = Vec<IBig>> {
    let entry = move |r: usize, c: usize| if rows >= columns { data[r * columns + c] } else { data[c * columns + r] };
    let (long, short) = (rows.max(columns), rows.min(columns));
    (0..long).map(move |r| integers((0..short).map(|c| entry(r, c)).collect()))
}

/// The rank, by fraction-free elimination (Bareiss): all entries are minors, so that divisions have no remainder. Nothing where
/// the integers get too long.
fn rank(data: &[f64], rows: usize, columns: usize) -> Option<usize> {
    let mut basis: Vec<(usize, Vec<IBig>)> = Vec::new();
    let mut bits = 0;
    for mut row in integer_rows(data, rows, columns) {
        let mut last = IBig::ONE;
        for (pivot, known) in &basis {
            let (a, b) = (&known[*pivot], row[*pivot].clone());
            for (x, k) in row.iter_mut().zip(known) {
                *x = (&*x * a - k * &b) / &last;
            }
            last.clone_from(a);
        }
        if let Some(pivot) = row.iter().position(|x| !x.is_zero()) {
            bits += row.iter().map(BitTest::bit_len).sum::<usize>();
            basis.push((pivot, row));
            if basis.len() == rows.min(columns) {
                break;
            }
            if bits > MOST_BITS {
                return None;
            }
        }
    }
    Some(basis.len())
}

/// The rank modulo a prime, which is never above the rank, and needs no long integers.
fn rank_modulo_prime(data: &[f64], rows: usize, columns: usize) -> usize {
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64;
    // a^(p - 2) is 1 / a.
    let inverse = |a: u64| {
        (0..61)
            .filter(|bit| (PRIME - 2) >> bit & 1 == 1)
            .fold(1, |product, bit| times(product, (0..bit).fold(a, |power, _| times(power, power))))
    };
    let residue = |x: IBig| x.rem_euclid(IBig::from(PRIME)).try_into().unwrap_or(0);
    let mut basis: Vec<(usize, Vec<u64>)> = Vec::new();
    for row in integer_rows(data, rows, columns) {
        let mut row: Vec<u64> = row.into_iter().map(residue).collect();
        for (pivot, known) in &basis {
            let factor = PRIME - row[*pivot];
            if factor != PRIME {
                row.iter_mut().zip(known).for_each(|(x, k)| *x = (*x + times(factor, *k)) % PRIME);
            }
        }
        if let Some(pivot) = row.iter().position(|x| *x != 0) {
            let scale = inverse(row[pivot]);
            row.iter_mut().for_each(|x| *x = times(*x, scale));
            basis.push((pivot, row));
            if basis.len() == rows.min(columns) {
                break;
            }
        }
    }
    basis.len()
}

/// A row times the power of two that makes all its entries integers.
fn integers(row: Vec<f64>) -> Vec<IBig> {
    let least = row.iter().filter(|x| **x != 0.0).map(|&x| last_bit(x)).min().unwrap_or(0);
    row.into_iter()
        .map(|x| {
            if x == 0.0 {
                return IBig::ZERO;
            }
            // x is an odd integer of at most 53 bits times 2 to the power of its last bit.
            let fraction = (x.to_bits() & 0x000F_FFFF_FFFF_FFFF) as i64;
            let whole = if x.abs() < f64::MIN_POSITIVE { fraction } else { fraction | 1 << 52 };
            let odd = whole >> whole.trailing_zeros();
            IBig::from(if x < 0.0 { -odd } else { odd }) << (last_bit(x) - least) as usize
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact() {
        let is = |data: &[f64], rows: usize, columns: usize, expected: usize| {
            assert_eq!(rank(data, rows, columns), Some(expected), "{data:?}");
            assert_eq!(rank_modulo_prime(data, rows, columns), expected, "{data:?}");
        };
        is(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.0], 2, 3, 1);
        is(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.000_000_000_000_001], 2, 3, 2);
        is(&[0.0; 6], 3, 2, 0);
        is(&[0.1, 1e-300, 1e300, 0.2, 2e-300, 2e300, 0.0, 0.0, 1.0], 3, 3, 2);
        is(&[f64::from_bits(1), 0.0, 0.0, 1e308], 2, 2, 2);
    }

    #[test]
    fn a_rank_modulo_the_prime_may_be_too_low() {
        let data = [1.0, 1.0, 1.0, 2_f64.powi(61)];
        assert_eq!((rank_modulo_prime(&data, 2, 2), rank(&data, 2, 2)), (1, Some(2)));
    }

    /// Integers of many megabits together.
    #[test]
    fn long_eliminations_are_given_up() {
        let mut state = 1_u64;
        let mut random = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state as f64 * if state.is_multiple_of(2) { 1e-90 } else { 1e90 }
        };
        let n = 300;
        let mut data: Vec<f64> = (0..n * n).map(&mut random).collect();
        assert_eq!(rank_modulo_prime(&data, n, n), n);
        // Two equal rows: the rank is one less, and only the long way shows it.
        let (first, rest) = data.split_at_mut(n);
        rest[..n].copy_from_slice(first);
        assert_eq!((rank_modulo_prime(&data, n, n), rank(&data, n, n)), (n - 1, None));
    }
}
