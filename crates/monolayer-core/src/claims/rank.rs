//! The exact rank of matrices of floats, by elimination over the integers.

use super::context::{PRIME, add, multiply, power};
use crate::exact::big::Big;
use crate::exact::forward::all;
use crate::model::{Model, Numbers};
use crate::number::Dyadic;

/// Products of limbs that a claim may take: some seconds.
const WORK: usize = 1 << 30;

/// Whether every matrix of a tensor (its last two dimensions: of each head) has this rank, exactly; nothing where the model has no such
/// matrices of floats, or it takes too long to say.
pub fn check(model: &Model, name: &str, claimed: usize) -> Option<bool> {
    let (_, numbers, _) = all(model)?.into_iter().find(|(known, ..)| known == name)?;
    let Numbers::Floats(tensor) = numbers else { return None };
    let [.., rows, columns] = tensor.shape[..] else { return None };
    let size = rows.checked_mul(columns).filter(|size| *size > 0 && tensor.len().is_multiple_of(*size))?;
    let mut work = WORK;
    for first in (0..tensor.len()).step_by(size) {
        let row = |r: usize| (0..columns).map(|c| tensor.get(first + r * columns + c)).collect::<Vec<_>>();
        let matrix: Vec<Vec<Dyadic>> = (0..rows).map(row).collect();
        // A rank cannot be above the number of rows or columns; below that, elimination over the integers tells.
        let least = modular_rank(&matrix, &mut work)?;
        let full = least == claimed && claimed == rows.min(columns);
        if least > claimed || (!full && rank(&matrix, claimed, &mut work)? != claimed) {
            return Some(false);
        }
    }
    Some(true)
}

/// The rank modulo a prime. Lemma: a minor that is not zero modulo a prime is not zero, so that the rank is at least this; and rows may
/// be multiplied by powers of two.
fn modular_rank(matrix: &[Vec<Dyadic>], work: &mut usize) -> Option<usize> {
    let entry = |x: &Dyadic, least: i32| {
        let size = multiply(x.m.unsigned_abs() % PRIME, power(2, (i64::from(x.e) - i64::from(least)).unsigned_abs()));
        if x.m < 0 { PRIME - size } else { size }
    };
    let mut basis: Vec<(usize, Vec<u64>)> = Vec::new();
    for row in matrix {
        let least = row.iter().filter(|x| !x.is_zero()).map(|x| x.e).min().unwrap_or(0);
        let mut row: Vec<u64> = row.iter().map(|x| if x.is_zero() { 0 } else { entry(x, least) }).collect();
        *work = work.checked_sub(basis.len() * row.len())?;
        for (pivot, known) in &basis {
            let factor = PRIME - row[*pivot];
            row.iter_mut().zip(known).for_each(|(x, k)| *x = add(*x, multiply(factor % PRIME, *k)));
        }
        if let Some(pivot) = row.iter().position(|x| *x % PRIME != 0) {
            let inverse = power(row[pivot], PRIME - 2);
            basis.push((pivot, row.iter().map(|x| multiply(*x, inverse)).collect()));
        }
    }
    Some(basis.len())
}

/// The rank, or a number above `claimed` where it is above. Each row times a power of two is whole. Lemma (Bareiss): in the fraction-free
/// elimination all entries are minors, so that the
/// divisions have no rest.
fn rank(rows: &[Vec<Dyadic>], claimed: usize, work: &mut usize) -> Option<usize> {
    let mut basis: Vec<(usize, Vec<Big>)> = Vec::new();
    for row in rows {
        let least = row.iter().filter(|x| !x.is_zero()).map(|x| x.e).min().unwrap_or(0);
        let mut row: Vec<Big> =
            row.iter().map(|x| Big::from(x.m).shl(x.e.saturating_sub(least).max(0) as usize)).collect();
        let mut before = Big::ONE;
        for (pivot, known) in &basis {
            let (a, b) = (&known[*pivot], row[*pivot].clone());
            for (x, k) in row.iter_mut().zip(known) {
                let limbs = |x: &Big| x.bits() / 64 + 1;
                *work = work.checked_sub((limbs(x) + limbs(k)) * (limbs(a) + limbs(&b)))?;
                (*x, _) = x.times(a).minus(&k.times(&b)).divide(&before)?;
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
