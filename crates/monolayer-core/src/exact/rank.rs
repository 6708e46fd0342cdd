//! The exact rank of a tensor: modulo a prime from below, by elimination over the integers from above.

use super::big::Big;
use crate::model::{FeedForward, Model, Numbers};
use crate::number::Dyadic;

/// A prime, 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;
/// Products of residues, and of limbs, that a claim may take: some seconds each.
const RESIDUES: usize = 1 << 30;
const LIMBS: usize = 1 << 30;

/// Whether a tensor has a rank; nothing where there is no such tensor of floats, or it takes too long to say. A tensor with a leading
/// dimension of heads is a list of matrices, each of which must have the rank.
pub fn check(model: &Model, tensor: &str, claimed: usize) -> Option<bool> {
    let Numbers::Floats(tensor) = find(model, tensor)? else { return None };
    let [.., rows, columns] = tensor.shape[..] else { return None };
    let size = rows.checked_mul(columns).filter(|size| *size > 0 && tensor.len().is_multiple_of(*size))?;
    let (mut residues, mut limbs) = (RESIDUES, LIMBS);
    for first in (0..tensor.len()).step_by(size) {
        let row = |r: usize| (0..columns).map(|c| tensor.get(first + r * columns + c)).collect::<Vec<_>>();
        let all: Vec<Vec<Dyadic>> = (0..rows).map(row).collect();
        let least = modulo_prime(&all, &mut residues)?;
        if least > claimed {
            return Some(false);
        }
        if least < rows.min(columns) {
            let found = exactly(&all, claimed, &mut limbs)?;
            if found != claimed {
                return Some(false);
            }
        } else if least != claimed {
            return Some(false);
        }
    }
    Some(true)
}

fn find<'a>(model: &'a Model, name: &str) -> Option<&'a Numbers> {
    let part = |part: &'a FeedForward, which: &str| match which {
        "w1" => Some(&part.w1),
        "w2" => Some(&part.w2),
        _ => None,
    };
    let layer = |i: &str| model.layers.get(i.parse::<usize>().ok()?);
    match *name.split('.').collect::<Vec<_>>() {
        ["embedding", "weight"] => model.embedding.as_ref(),
        ["positions", "weight"] => model.positions.as_ref(),
        ["head", "weight"] => model.head.as_ref().map(|head| &head.weight),
        ["pre_feed_forward", which] => part(model.pre_feed_forward.as_ref()?, which),
        ["layers", i, "feed_forward", which] => part(layer(i)?.feed_forward.as_ref()?, which),
        ["layers", i, "attention", which] => {
            let attention = layer(i)?.attention.as_ref()?;
            match which {
                "w_q" => Some(&attention.w_q),
                "w_k" => Some(&attention.w_k),
                "w_v" => Some(&attention.w_v),
                "w_o" => Some(&attention.w_o),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The exponent of the last bit of a row.
fn last(row: &[Dyadic]) -> i32 {
    row.iter().filter(|x| !x.is_zero()).map(|x| x.e).min().unwrap_or(0)
}

fn times(a: u64, b: u64) -> u64 {
    let all = u128::from(a) * u128::from(b);
    // 2^61 is 1.
    let sum = (all as u64 & PRIME) + (all >> 61) as u64;
    if sum >= PRIME { sum - PRIME } else { sum }
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut power, mut square) = (1, base);
    while exponent > 0 {
        power = if exponent % 2 == 1 { times(power, square) } else { power };
        (square, exponent) = (times(square, square), exponent / 2);
    }
    power
}

/// The rank modulo the prime of the rows times powers of two that make them whole. Lemma: a minor that is not zero modulo a prime is
/// not zero, so that the rank is never below it.
fn modulo_prime(rows: &[Vec<Dyadic>], work: &mut usize) -> Option<usize> {
    let mut basis: Vec<(usize, Vec<u64>)> = Vec::new();
    for row in rows {
        let least = last(row);
        let residue = |x: &Dyadic| {
            let size =
                times(x.m.unsigned_abs() % PRIME, power(2, (i64::from(x.e) - i64::from(least)).unsigned_abs() % 61));
            if x.m < 0 && size > 0 { PRIME - size } else { size }
        };
        let mut row: Vec<u64> = row.iter().map(residue).collect();
        *work = work.checked_sub(row.len() * (basis.len() + 1))?;
        for (pivot, known) in basis.iter().filter(|(_, known)| !known.is_empty()) {
            let factor = (PRIME - row[*pivot]) % PRIME;
            row.iter_mut().zip(known).for_each(|(x, k)| *x = (*x + times(factor, *k)) % PRIME);
        }
        if let Some(pivot) = row.iter().position(|x| *x != 0) {
            let inverse = power(row[pivot], PRIME - 2);
            basis.push((pivot, row.iter().map(|x| times(*x, inverse)).collect()));
            if basis.len() == row.len() {
                break;
            }
        }
    }
    Some(basis.len())
}

/// The rank, or some number above `claimed`, by fraction-free elimination. Lemma (Bareiss): all entries are minors, so that the
/// divisions have no rest.
fn exactly(rows: &[Vec<Dyadic>], claimed: usize, work: &mut usize) -> Option<usize> {
    let mut basis: Vec<(usize, Vec<Big>)> = Vec::new();
    for row in rows {
        let least = last(row);
        let mut row: Vec<Big> =
            row.iter().map(|x| Big::from(x.m).shl(x.e.saturating_sub(least).max(0) as usize)).collect();
        let mut before = Big::ONE;
        for (pivot, known) in &basis {
            let (a, b) = (&known[*pivot], row[*pivot].clone());
            for (x, k) in row.iter_mut().zip(known) {
                let limbs = |x: &Big| x.bits() / 64 + 1;
                *work = work.checked_sub((limbs(x) + limbs(k)) * (limbs(a) + limbs(&b)))?;
                *x = x.times(a).minus(&k.times(&b)).divide(&before)?.0;
            }
            before = a.clone();
        }
        if let Some(pivot) = row.iter().position(|x| !x.is_zero()) {
            basis.push((pivot, row));
            if basis.len() > claimed {
                break;
            }
        }
    }
    Some(basis.len())
}

#[cfg(test)]
mod tests;
