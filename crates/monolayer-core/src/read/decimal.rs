//! The nearest binary64 of a decimal number, without floats.

use crate::exact::big::Big;
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
    // Exponents beyond a million are all alike.
    let far = if exponent.starts_with('-') { -1_000_000 } else { 1_000_000 };
    let exponent = exponent.parse().unwrap_or(far).clamp(-1_000_000, 1_000_000) - fraction.len() as i64;
    let magnitude = digits.len() as i64 + exponent;
    if text.len() > LONGEST || (magnitude > 310 && !digits.is_empty()) {
        return None;
    }
    if digits.is_empty() || magnitude < -400 {
        return Some(Dyadic::ZERO);
    }
    // The number is p / q; with 2^shift it is between 2^53 and 2^55.
    let power = Big::from(10_i64).power(exponent.unsigned_abs() as usize);
    let (p, q) = (Big::from_digits(digits)?, Big::ONE);
    let (p, q) = if exponent > 0 { (p.times(&power), q) } else { (p, power) };
    let shift = 54 + q.bits() as i32 - p.bits() as i32;
    let more = shift.unsigned_abs() as usize;
    let (p, q) = if shift > 0 { (p.shl(more), q) } else { (p, q.shl(more)) };
    let (Big::Small(quotient), rest) = p.divide(&q)? else { return None };
    let last = (64 - quotient.leading_zeros() as i32 - Format::F64.bits() - shift).max(Format::F64.least());
    // At least one bit is dropped; when 57 or more are, the number is below half of the least.
    let drop = (last + shift).min(57);
    let (m, half, low) = (quotient >> drop, 1 << (drop - 1), quotient & ((1 << drop) - 1));
    let up = low > half || (low == half && (!rest.is_zero() || m % 2 == 1));
    let found = Dyadic::new((m + i64::from(up)) * if negative { -1 } else { 1 }, last);
    (found.is_zero() || found.top() < Format::F64.top()).then_some(found)
}
