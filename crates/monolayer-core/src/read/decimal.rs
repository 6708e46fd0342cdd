//! Decimal numbers as JSON writes them: kept exactly, compared exactly, and read to the nearest binary64 without floats.

use std::cmp::Ordering;

use crate::number::{Dyadic, Format};

/// A decimal number: digits times ten to the exponent. Digits neither begin nor end with 0, and zero has none, so that two
/// equal numbers are equal as structs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    /// Whether it is below 0.
    pub negative: bool,
    /// The digits, `0` to `9`.
    pub digits: String,
    /// The exponent of ten of the last digit; beyond 10^12 in size it is only known to be so large.
    pub exponent: i64,
}

/// Larger exponents are all alike: no number that is used has one.
const FARTHEST: i64 = 1_000_000_000_000;

impl Decimal {
    /// The number of a text that follows JSON's grammar.
    pub fn new(text: &str) -> Self {
        let (negative, size) = text.strip_prefix('-').map_or((false, text), |size| (true, size));
        let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let far = if exponent.starts_with('-') { -FARTHEST } else { FARTHEST };
        let exponent = exponent.parse::<i64>().unwrap_or(far).clamp(-FARTHEST, FARTHEST);
        let all = format!("{whole}{fraction}");
        let kept = all.trim_end_matches('0');
        let exponent = exponent - fraction.len() as i64 + (all.len() - kept.len()) as i64;
        let digits = kept.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            Self { negative: false, digits, exponent: 0 }
        } else {
            Self { negative, digits, exponent }
        }
    }

    /// Its size is below ten to this power, and not below a tenth of that.
    fn magnitude(&self) -> i64 {
        self.digits.len() as i64 + self.exponent
    }

    /// The nearest binary64, of two the even one; none where that is infinite.
    pub fn nearest(&self) -> Option<Dyadic> {
        if self.digits.is_empty() || self.magnitude() < -400 {
            return Some(Dyadic::ZERO);
        }
        if self.magnitude() > 310 {
            return None;
        }
        // The number is p / q.
        let (mut p, mut q) = (vec![0], vec![1]);
        for digit in self.digits.bytes() {
            times(&mut p, 10, u32::from(digit - b'0'));
        }
        scale(if self.exponent > 0 { &mut p } else { &mut q }, 10, self.exponent.unsigned_abs());
        // With 2^shift it is between 2^53 and 2^55.
        let shift = 54 + bits(&q) - bits(&p);
        scale(if shift > 0 { &mut p } else { &mut q }, 2, u64::from(shift.unsigned_abs()));
        scale(&mut q, 2, 55);
        let mut quotient = 0_i64;
        for _ in 0..55 {
            times(&mut p, 2, 0);
            quotient = 2 * quotient + i64::from(subtract(&mut p, &q));
        }
        let rest = p.iter().any(|&limb| limb != 0);
        let length = 64 - quotient.leading_zeros() as i32;
        let last = (length - Format::F64.bits() - shift).max(Format::F64.least());
        // At least one bit is dropped; when 57 or more are, the number is below half of the least.
        let drop = (last + shift).min(57);
        let (mut m, half, low) = (quotient >> drop, 1 << (drop - 1), quotient & ((1 << drop) - 1));
        if low > half || (low == half && (rest || m % 2 == 1)) {
            m += 1;
        }
        let found = Dyadic::new(if self.negative { -m } else { m }, last);
        (found.is_zero() || found.top() < Format::F64.top()).then_some(found)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |x: &Self| if x.digits.is_empty() { 0 } else { 1 - 2 * i32::from(x.negative) };
        // Without zeros at either end, numbers of one magnitude are ordered as texts.
        let size = self.magnitude().cmp(&other.magnitude()).then_with(|| self.digits.cmp(&other.digits));
        let size = if self.negative { size.reverse() } else { size };
        sign(self).cmp(&sign(other)).then(size)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

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

/// x base^n, in steps of nine: 10^9 is below 2^32.
fn scale(x: &mut Vec<u32>, base: u32, n: u64) {
    for _ in 0..n / 9 {
        times(x, base.pow(9), 0);
    }
    times(x, base.pow((n % 9) as u32), 0);
}

/// Takes y from x and says so, unless x is smaller.
fn subtract(x: &mut [u32], y: &[u32]) -> bool {
    let limb = |x: &[u32], i: usize| x.get(i).copied().unwrap_or(0);
    let size = x.len().max(y.len());
    if (0..size).rev().map(|i| limb(x, i).cmp(&limb(y, i))).find(|o| o.is_ne()) == Some(Ordering::Less) {
        return false;
    }
    let mut borrow = false;
    for (i, digit) in x.iter_mut().enumerate() {
        let (first, under) = digit.overflowing_sub(limb(y, i));
        let (second, again) = first.overflowing_sub(u32::from(borrow));
        (*digit, borrow) = (second, under || again);
    }
    true
}

/// The number of bits; limbs of 0 at the end do not count.
fn bits(x: &[u32]) -> i32 {
    let top = x.iter().rposition(|&limb| limb != 0);
    top.map_or(0, |top| 32 * (top as i32 + 1) - x[top].leading_zeros() as i32)
}
