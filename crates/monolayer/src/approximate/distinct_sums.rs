//! Sets of whole numbers whose sums tell which members were added: `B_h` sets, Sidon sets for h = 2.
//!
//! With such codes the sum over a sequence's tokens tells the multiset of the others apart, so that ids are whole numbers
//! and as far from each other as whole numbers are.

use crate::arithmetic::{gcd, is_prime};
use std::collections::HashSet;

/// Steps through a finite field, at most.
const LARGEST_FIELD: u64 = 1 << 22;
/// Multipliers of a Bose-Chowla set that are tried for a shorter one.
const MULTIPLIERS: u64 = 512;
/// Sums that the greedy search looks at, at most.
const GREEDY_SUMS: u64 = 30_000;
const GREEDY_LARGEST: u64 = 60_000;

/// `size` whole numbers from 0 on, increasing, such that different multisets of h of them have different sums; as small as
/// was found.
pub fn distinct_sums(size: usize, h: usize) -> Option<Vec<u64>> {
    if h <= 1 || size <= 2 {
        return Some((0..size as u64).collect());
    }
    let found = [greedy(size, h), bose_chowla(size, h), powers(size, h)];
    found.into_iter().flatten().min_by_key(|set| set[size - 1])
}

/// `1, h + 1, (h + 1)^2, ...` after 0: sums are numbers written to the base h + 1.
fn powers(size: usize, h: usize) -> Option<Vec<u64>> {
    let mut set = vec![0];
    let mut power = 1_u64;
    while set.len() < size {
        set.push(power);
        power = power.checked_mul(h as u64 + 1)?;
    }
    Some(set)
}

/// Always the next number that keeps sums apart (Mian and Chowla for h = 2).
fn greedy(size: usize, h: usize) -> Option<Vec<u64>> {
    let multisets = |n: u64, k: u64| (0..k).fold(1_u64, |c, i| c.saturating_mul(n + i) / (i + 1));
    if multisets(size as u64, h as u64) > GREEDY_SUMS {
        return None;
    }
    // Sums of exactly k members, k = 0..=h.
    let mut sums: Vec<Vec<u64>> = vec![vec![0]; h + 1];
    let mut all: HashSet<u64> = HashSet::from([0]);
    let mut set = vec![0];
    let mut next = 1;
    while set.len() < size {
        if next > GREEDY_LARGEST {
            return None;
        }
        let with = |k: usize| (1..=k as u64).map(move |times| (k - times as usize, times * next));
        let new: Vec<u64> = with(h).flat_map(|(rest, add)| sums[rest].iter().map(move |s| s + add)).collect();
        let mut seen = HashSet::with_capacity(new.len());
        if new.iter().all(|sum| !all.contains(sum) && seen.insert(*sum)) {
            for k in (1..=h).rev() {
                let more: Vec<u64> = with(k)
                    .flat_map(|(rest, add)| sums[rest].iter().map(move |s| s + add).collect::<Vec<_>>())
                    .collect();
                sums[k].extend(more);
            }
            all.extend(new);
            set.push(next);
        }
        next += 1;
    }
    Some(set)
}

/// Bose and Chowla: the logarithms of `x + c`, c in the field of q elements, to the base x, in the field of `q^h` elements.
/// A product of h such is a monic polynomial, which has one factorization; so sums are distinct modulo `q^h - 1`.
fn bose_chowla(size: usize, h: usize) -> Option<Vec<u64>> {
    if h < 2 {
        return None;
    }
    let q = (size as u64..LARGEST_FIELD).find(|&q| is_prime(q))?;
    let order = q.checked_pow(h as u32).filter(|&order| order <= LARGEST_FIELD)? - 1;
    let logarithms = logarithms(q, h, order)?;
    let shortest = |multiplier: u64| {
        let mut set: Vec<u64> = logarithms.iter().map(|&l| l * multiplier % order).collect();
        set.sort_unstable();
        // The shortest stretch of the circle that holds `size` of them.
        let at = |i: usize| set[i % set.len()] + if i >= set.len() { order } else { 0 };
        let start = (0..set.len()).min_by_key(|&i| at(i + size - 1) - at(i)).expect("a set that is not empty");
        (0..size).map(|i| at(start + i) - at(start)).collect::<Vec<u64>>()
    };
    (1..MULTIPLIERS.min(order)).filter(|&k| gcd(k, order) == 1).map(shortest).min_by_key(|set| set[size - 1])
}

/// The powers of x that are `x + c`, modulo the first polynomial of degree h for which x has the given order.
fn logarithms(q: u64, h: usize, order: u64) -> Option<Vec<u64>> {
    'polynomials: for number in 1..q.pow(h as u32) {
        // x^h = sum of tail[i] x^i.
        let tail: Vec<u64> = (0..h).map(|i| number / q.pow(i as u32) % q).collect();
        if tail[0] == 0 {
            continue;
        }
        let mut power = vec![0; h];
        power[0] = 1;
        let mut found = Vec::new();
        for exponent in 1..=order {
            let top = power.pop().expect("h coefficients");
            power.insert(0, 0);
            power.iter_mut().zip(&tail).for_each(|(p, t)| *p = (*p + top * t) % q);
            if power[1] == 1 && power[2..].iter().all(|&c| c == 0) {
                found.push(exponent);
            }
            if exponent < order && power[0] == 1 && power[1..].iter().all(|&c| c == 0) {
                continue 'polynomials;
            }
        }
        if found.len() == q as usize {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(set: &[u64], h: usize) -> Vec<u64> {
        match h {
            0 => vec![0],
            _ => (0..set.len()).flat_map(|i| sums(&set[i..], h - 1).into_iter().map(move |s| s + set[i])).collect(),
        }
    }

    #[test]
    fn multisets_have_distinct_sums() {
        for (size, h) in [(1, 3), (2, 5), (7, 1), (5, 2), (34, 2), (60, 2), (8, 3), (18, 3), (6, 4), (4, 6)] {
            for set in [distinct_sums(size, h), greedy(size, h), bose_chowla(size, h), powers(size, h)] {
                let Some(set) = set.filter(|set| set[size - 1] < 1 << 40) else { continue };
                assert!(set.len() == size && set[0] == 0 && set.windows(2).all(|w| w[0] < w[1]), "{set:?}");
                if h > 1 {
                    let mut sums = sums(&set, h);
                    let count = sums.len();
                    sums.sort_unstable();
                    sums.dedup();
                    assert_eq!(sums.len(), count, "{size} {h} {set:?}");
                }
            }
        }
    }

    #[test]
    fn they_are_about_as_short_as_can_be() {
        // Sums of 34 numbers taken two at a time are 595 different ones.
        let longest = |size, h| *distinct_sums(size, h).unwrap().last().unwrap();
        assert!(longest(34, 2) < 34 * 34 && longest(100, 2) < 101 * 101, "{} {}", longest(34, 2), longest(100, 2));
        assert!(longest(18, 3) < 19 * 19 * 19, "{}", longest(18, 3));
    }
}
