//! The nearest binary64 of a decimal number, without floats.

use std::cmp::Ordering;

use crate::number::{Dyadic, Format};

/// No number that is read has more characters: every binary64 can be written out in so many.
const LONGEST: usize = 1200;

/// The binary64 nearest to a number of JSON, of two the even one; none where that is infinite, or the text too long.
pub fn nearest(text: &str) -> Option<Dyadic> {
    let (negative, size) = text.strip_prefix('-').map_or((false, text), |size| (true, size));
    let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    // An exponent of more than 18 digits is as good as one of 18.
    let far = if exponent.starts_with('-') { -FAR } else { FAR };
    let exponent = exponent.parse().unwrap_or(far).clamp(-FAR, FAR) - fraction.len() as i64;
    let magnitude = digits.len() as i64 + exponent;
    if text.len() > LONGEST || (magnitude > 310 && !digits.is_empty()) {
        return None;
    }
    if digits.is_empty() || magnitude < -400 {
        return Some(Dyadic::ZERO);
    }
    // The number is p / q; with 2^shift it is between 2^53 and 2^55, and 2^55 q is above p.
    let (mut p, mut q) = (vec![0], vec![1]);
    digits.bytes().for_each(|digit| times(&mut p, 10, u32::from(digit - b'0')));
    (0..exponent.unsigned_abs()).for_each(|_| times(if exponent > 0 { &mut p } else { &mut q }, 10, 0));
    let shift = 54 + bits(&q) - bits(&p);
    (0..shift.abs()).for_each(|_| times(if shift > 0 { &mut p } else { &mut q }, 2, 0));
    (0..55).for_each(|_| times(&mut q, 2, 0));
    let mut quotient = 0_i64;
    for _ in 0..55 {
        times(&mut p, 2, 0);
        quotient = 2 * quotient + i64::from(subtract(&mut p, &q));
    }
    let last = (64 - quotient.leading_zeros() as i32 - Format::F64.bits() - shift).max(Format::F64.least());
    // At least one bit is dropped; when 57 or more are, the number is below half of the least.
    let drop = (last + shift).min(57);
    let (m, half, low) = (quotient >> drop, 1 << (drop - 1), quotient & ((1 << drop) - 1));
    let up = low > half || (low == half && (bits(&p) > 0 || m % 2 == 1));
    let found = Dyadic::new((m + i64::from(up)) * if negative { -1 } else { 1 }, last);
    (found.is_zero() || found.top() < Format::F64.top()).then_some(found)
}

const FAR: i64 = 1_000_000_000_000;

/// x factor + add, for a number x of 32-bit limbs, the lowest first.
fn times(x: &mut Vec<u32>, factor: u32, add: u32) {
    let mut carry = u64::from(add);
    for limb in x.iter_mut() {
        let sum = u64::from(*limb) * u64::from(factor) + carry;
        (*limb, carry) = (sum as u32, sum >> 32);
    }
    if carry > 0 {
        x.push(carry as u32);
    }
}

/// Takes y from x and says so, unless x is smaller.
fn subtract(x: &mut [u32], y: &[u32]) -> bool {
    let limb = |x: &[u32], i: usize| x.get(i).copied().unwrap_or(0);
    let order = (0..x.len().max(y.len())).rev().map(|i| limb(x, i).cmp(&limb(y, i))).find(|order| order.is_ne());
    if order == Some(Ordering::Less) {
        return false;
    }
    let mut borrow = 0;
    for (i, digit) in x.iter_mut().enumerate() {
        let rest = i64::from(*digit) - i64::from(limb(y, i)) - borrow;
        (*digit, borrow) = (rest as u32, i64::from(rest < 0));
    }
    true
}

/// The number of bits; limbs of 0 at the end do not count.
fn bits(x: &[u32]) -> i32 {
    x.iter().rposition(|&limb| limb != 0).map_or(0, |top| 32 * (top as i32 + 1) - x[top].leading_zeros() as i32)
}
