//! The exact rank of a tensor: Gaussian elimination over the integers, no rounding anywhere.

use dashu_base::{Abs as _, Gcd as _};
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
        let found = rank(data, rows, columns);
        if found != claimed {
            return (Verdict::Refuted, format!("{tensor} (head {head}) has rank {found}, not {claimed}"));
        }
    }
    (Verdict::Verified, format!("{tensor} has rank {claimed}, exactly"))
}

/// Beyond this the integers of the elimination get too long.
const LARGEST: usize = 1024;

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

/// Fraction-free elimination (Bareiss) on the entries scaled to integers row by row, which leaves the rank as it is.
fn rank(data: &[f64], rows: usize, columns: usize) -> usize {
    // Eliminate along the shorter side: the rank of a matrix is that of its transpose.
    let entry = |r: usize, c: usize| if rows >= columns { data[r * columns + c] } else { data[c * columns + r] };
    let (long, short) = (rows.max(columns), rows.min(columns));
    let mut basis: Vec<(usize, Vec<IBig>)> = Vec::new();
    for r in 0..long {
        let mut row = integers((0..short).map(|c| entry(r, c)).collect());
        for (pivot, known) in &basis {
            if !row[*pivot].is_zero() {
                let (a, b) = (known[*pivot].clone(), row[*pivot].clone());
                for (x, k) in row.iter_mut().zip(known) {
                    *x = &*x * &a - k * &b;
                }
                reduce(&mut row);
            }
        }
        if let Some(pivot) = row.iter().position(|x| !x.is_zero()) {
            basis.push((pivot, row));
            if basis.len() == short {
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

/// Divides a row by the greatest common divisor of its entries.
fn reduce(row: &mut [IBig]) {
    let common = row
        .iter()
        .filter(|x| !x.is_zero())
        .fold(IBig::ZERO, |g, x| if g.is_zero() { x.clone().abs() } else { IBig::from(g.gcd(x)) });
    if !common.is_zero() {
        for x in row {
            *x = &*x / &common;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_exact() {
        assert_eq!(rank(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.0], 2, 3), 1);
        assert_eq!(rank(&[1.0, 2.0, 3.0, 2.0, 4.0, 6.000_000_000_000_001], 2, 3), 2);
        assert_eq!(rank(&[0.0; 6], 3, 2), 0);
        assert_eq!(rank(&[0.1, 1e-300, 1e300, 0.2, 2e-300, 2e300, 0.0, 0.0, 1.0], 3, 3), 2);
        assert_eq!(rank(&[f64::from_bits(1), 0.0, 0.0, 1e308], 2, 2), 2);
    }
}
