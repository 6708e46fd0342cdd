//! Integers of any size: exact, by schoolbook methods, and without memory of their own while they fit 63 bits.

use std::cmp::Ordering;
use std::slice::from_ref;

/// An integer, in one way only: `Small` wherever it is above -2^63 and below 2^63.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Big {
    /// A small one.
    Small(i64),
    /// Whether it is negative, and the limbs of its size, little-endian, without leading zeros.
    Large(bool, Vec<u64>),
}

impl From<i64> for Big {
    fn from(x: i64) -> Self {
        Self::from(i128::from(x))
    }
}

impl From<i128> for Big {
    fn from(x: i128) -> Self {
        let size = x.unsigned_abs();
        match i64::try_from(x) {
            Ok(small) if small != i64::MIN => Self::Small(small),
            _ => Self::of(x < 0, vec![size as u64, (size >> 64) as u64]),
        }
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(a), Self::Small(b)) => a.cmp(b),
            _ => self.minus(other).sign(),
        }
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Big {
    /// Zero.
    pub const ZERO: Self = Self::Small(0);
    /// One.
    pub const ONE: Self = Self::Small(1);

    fn of(negative: bool, mut limbs: Vec<u64>) -> Self {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        match limbs[..] {
            [] => Self::ZERO,
            [x] if x < 1 << 63 => Self::Small(if negative { -(x as i64) } else { x as i64 }),
            _ => Self::Large(negative, limbs),
        }
    }

    /// Whether it is negative, and its limbs, with room for those of a small one.
    fn parts<'a>(&'a self, room: &'a mut u64) -> (bool, &'a [u64]) {
        match self {
            Self::Small(x) => {
                *room = x.unsigned_abs();
                (*x < 0, if *x == 0 { &[] } else { from_ref(room) })
            }
            Self::Large(negative, limbs) => (*negative, limbs),
        }
    }

    /// A whole number without a sign, in decimal digits; nothing else is read. The time grows with the square of the
    /// length: the caller limits it.
    pub fn from_digits(text: &str) -> Option<Self> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let mut limbs = Vec::new();
        for chunk in text.as_bytes().chunks(19) {
            let mut carry = chunk.iter().fold(0_u64, |sum, b| sum * 10 + u64::from(b - b'0'));
            for limb in &mut limbs {
                (*limb, carry) = times_plus(*limb, 10_u64.pow(chunk.len() as u32), carry, 0);
            }
            limbs.push(carry);
        }
        Some(Self::of(false, limbs))
    }

    /// x^k.
    #[must_use]
    pub fn power(&self, k: usize) -> Self {
        let (mut power, mut square, mut left) = (Self::ONE, self.clone(), k);
        while left > 0 {
            power = if left % 2 == 1 { power.times(&square) } else { power };
            left /= 2;
            square = if left > 0 { square.times(&square) } else { square };
        }
        power
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Negative, zero or positive, against zero.
    pub fn sign(&self) -> Ordering {
        match self {
            Self::Small(x) => x.cmp(&0),
            Self::Large(true, _) => Ordering::Less,
            Self::Large(false, _) => Ordering::Greater,
        }
    }

    /// The bits of its size: 2^(bits - 1) <= |x| < 2^bits; 0 for zero.
    pub fn bits(&self) -> usize {
        let mut room = 0;
        let limbs = self.parts(&mut room).1;
        limbs.last().map_or(0, |top| limbs.len() * 64 - top.leading_zeros() as usize)
    }

    /// -x.
    #[must_use]
    pub fn negated(&self) -> Self {
        match self {
            Self::Small(x) => Self::Small(-x),
            Self::Large(negative, limbs) => Self::Large(!negative, limbs.clone()),
        }
    }

    /// x + y, or x - y.
    fn sum(&self, other: &Self, minus: bool) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other) {
            let b = i128::from(*b);
            return Self::from(i128::from(*a) + if minus { -b } else { b });
        }
        let (mut one, mut two) = (0, 0);
        let ((a_negative, a), (b_negative, b)) = (self.parts(&mut one), other.parts(&mut two));
        let b_negative = b_negative != minus;
        if a_negative == b_negative {
            return Self::of(a_negative, sum(a, b));
        }
        match compare(a, b) {
            Ordering::Less => Self::of(b_negative, difference(b, a)),
            _ => Self::of(a_negative, difference(a, b)),
        }
    }

    /// x + y.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.sum(other, false)
    }

    /// x - y.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.sum(other, true)
    }

    /// x y.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other) {
            return Self::from(i128::from(*a) * i128::from(*b));
        }
        let (mut one, mut two) = (0, 0);
        let ((a_negative, a), (b_negative, b)) = (self.parts(&mut one), other.parts(&mut two));
        let mut limbs = vec![0; a.len() + b.len()];
        for (i, x) in a.iter().enumerate() {
            let mut carry = 0;
            for (j, y) in b.iter().enumerate() {
                (limbs[i + j], carry) = times_plus(*x, *y, limbs[i + j], carry);
            }
            limbs[i + b.len()] = carry;
        }
        Self::of(a_negative != b_negative, limbs)
    }

    /// x 2^k.
    #[must_use]
    pub fn shl(&self, k: usize) -> Self {
        let (mut room, part) = (0, k % 64);
        let (negative, high) = self.parts(&mut room);
        if high.is_empty() {
            return Self::ZERO;
        }
        let mut limbs = vec![0; k / 64];
        let mut carry = 0;
        for limb in high {
            limbs.push(limb << part | carry);
            carry = limb.checked_shr(64 - part as u32).unwrap_or(0);
        }
        limbs.push(carry);
        Self::of(negative, limbs)
    }

    /// x / 2^k, rounded toward minus infinity.
    #[must_use]
    pub fn shr(&self, k: usize) -> Self {
        let (mut room, part) = (0, k % 64);
        let (negative, limbs) = self.parts(&mut room);
        let (low, high) = limbs.split_at(limbs.len().min(k / 64));
        let above = |i: usize| high.get(i + 1).map_or(0, |limb| limb.checked_shl(64 - part as u32).unwrap_or(0));
        let size = Self::of(negative, (0..high.len()).map(|i| high[i] >> part | above(i)).collect());
        // Toward zero so far.
        let lost = low.iter().any(|limb| *limb != 0) || high.first().is_some_and(|limb| limb & ((1 << part) - 1) != 0);
        if negative && lost { size.minus(&Self::ONE) } else { size }
    }

    /// The quotient, rounded toward minus infinity, and the rest, which has the sign of the divisor; nothing for a divisor
    /// of zero.
    pub fn divide(&self, by: &Self) -> Option<(Self, Self)> {
        let (mut one, mut two) = (0, 0);
        let ((a_negative, a), (b_negative, b)) = (self.parts(&mut one), by.parts(&mut two));
        let (quotient, rest) = quotient(a, b)?;
        let (quotient, rest) = (Self::of(a_negative != b_negative, quotient), Self::of(a_negative, rest));
        if rest.is_zero() || a_negative == b_negative {
            return Some((quotient, rest));
        }
        Some((quotient.minus(&Self::ONE), rest.plus(by)))
    }
}

/// x y + a + b as (low, high): at most (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1.
fn times_plus(x: u64, y: u64, a: u64, b: u64) -> (u64, u64) {
    let all = u128::from(x) * u128::from(y) + u128::from(a) + u128::from(b);
    (all as u64, (all >> 64) as u64)
}

fn compare(a: &[u64], b: &[u64]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

fn sum(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut limbs = a.to_vec();
    limbs.resize(a.len().max(b.len()) + 1, 0);
    add(&mut limbs, b);
    limbs
}

/// Adds b to a; what leaves a is lost.
fn add(a: &mut [u64], b: &[u64]) {
    let mut carry = 0;
    for (i, x) in a.iter_mut().enumerate() {
        (*x, carry) = times_plus(1, *x, b.get(i).copied().unwrap_or(0), carry);
    }
}

/// a - b for a >= b.
fn difference(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut limbs = a.to_vec();
    subtract(&mut limbs, b, 1);
    limbs
}

/// Subtracts b times a limb from a, and says whether that goes below zero.
fn subtract(a: &mut [u64], b: &[u64], times: u64) -> bool {
    let (mut carry, mut borrow) = (0, false);
    for (i, x) in a.iter_mut().enumerate() {
        let product;
        (product, carry) = times_plus(times, b.get(i).copied().unwrap_or(0), carry, 0);
        let (first, under) = x.overflowing_sub(product);
        let (second, again) = first.overflowing_sub(u64::from(borrow));
        (*x, borrow) = (second, under || again);
    }
    borrow
}

/// Quotient and rest of sizes (Knuth, The Art of Computer Programming 2, algorithm 4.3.1 D); nothing for a divisor of zero.
///
/// Lemma: with the divisor's first limb at least 2^63, the guess from two limbs of the dividend is never too small, and after
/// the test with the next limb at most one too large; the subtraction that goes below zero tells, and one divisor is put back.
fn quotient(a: &[u64], b: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let shift = b.last()?.leading_zeros() as usize;
    let shifted = |x: &[u64], len: usize| {
        let (mut limbs, mut carry) = (x.to_vec(), 0);
        for limb in &mut limbs {
            (*limb, carry) = (*limb << shift | carry, limb.checked_shr(64 - shift as u32).unwrap_or(0));
        }
        limbs.push(carry);
        limbs.resize(len, 0);
        limbs
    };
    let n = b.len();
    let (mut rest, by) = (shifted(a, a.len().max(n) + 1), shifted(b, n));
    let (first, second) = (u128::from(by[n - 1]), if n > 1 { u128::from(by[n - 2]) } else { 0 });
    let mut quotient = vec![0; rest.len() - n];
    for j in (0..quotient.len()).rev() {
        let top = u128::from(rest[j + n]) << 64 | u128::from(rest[j + n - 1]);
        let below = if n > 1 { u128::from(rest[j + n - 2]) } else { 0 };
        let (mut guess, mut left) = (top / first, top % first);
        while guess >> 64 != 0 || guess * second > (left << 64 | below) {
            guess -= 1;
            left += first;
            if left >> 64 != 0 {
                break;
            }
        }
        let window = &mut rest[j..=j + n];
        if subtract(window, &by, guess as u64) {
            guess -= 1;
            add(window, &by);
        }
        quotient[j] = guess as u64;
    }
    let mut room = 0;
    let rest = Big::of(false, rest).shr(shift);
    Some((quotient, rest.parts(&mut room).1.to_vec()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A deterministic generator (splitmix64).
    pub(crate) struct Random(pub u64);

    impl Random {
        pub(crate) fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            x ^ x >> 31
        }

        /// Runs of equal bits are where carries go wrong.
        fn big(&mut self, limbs: usize) -> Big {
            let limb = |r: &mut Self| match r.next() % 4 {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << (r.next() % 64),
                _ => r.next(),
            };
            let count = self.next() as usize % (limbs + 1);
            let limbs = (0..count).map(|_| limb(self)).collect();
            Big::of(self.next().is_multiple_of(2), limbs)
        }
    }

    #[test]
    fn small_numbers_are_those_of_i128() {
        let mut random = Random(1);
        for _ in 0..20_000 {
            let mut draw = || {
                let size = random.next() % 62;
                (random.next() as i64 >> size >> 1).into()
            };
            let (a, b): (i128, i128) = (draw(), draw());
            let (x, y) = (Big::from(a), Big::from(b));
            assert_eq!(x.plus(&y), Big::from(a + b));
            assert_eq!(x.minus(&y), Big::from(a - b));
            assert_eq!(x.times(&y), Big::from(a * b));
            assert_eq!(x.cmp(&y), a.cmp(&b));
            assert_eq!(x.sign(), a.cmp(&0));
            let k = (b.unsigned_abs() % 70) as usize;
            assert_eq!(x.shr(k), Big::from(a >> k));
            if k < 60 {
                assert_eq!(x.shl(k), Big::from(a << k));
            }
            assert_eq!(x.bits(), (128 - a.unsigned_abs().leading_zeros()) as usize);
            match x.divide(&y) {
                None => assert_eq!(b, 0),
                Some((q, r)) => {
                    let floor = a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0);
                    assert_eq!((q, r), (Big::from(floor), Big::from(a - floor * b)));
                }
            }
        }
    }

    #[test]
    fn large_numbers_obey_their_laws() {
        let mut random = Random(2);
        for _ in 0..5_000 {
            let (a, b, c) = (random.big(9), random.big(7), random.big(5));
            assert_eq!(a.plus(&b).minus(&b), a);
            assert_eq!(a.plus(&b).times(&c), a.times(&c).plus(&b.times(&c)));
            assert_eq!(a.times(&b), b.times(&a));
            assert_eq!(a.cmp(&b), a.minus(&b).sign());
            let k = random.next() as usize % 300;
            assert_eq!(a.shl(k).shr(k), a);
            assert_eq!(a.shl(k), a.times(&Big::from(2_i64).power(k)));
            assert_eq!(a.shr(k), a.divide(&Big::from(2_i64).power(k)).unwrap().0);
            if let Some((q, r)) = a.divide(&b) {
                assert_eq!(q.times(&b).plus(&r), a);
                assert!(size(&r) < size(&b) && (r.is_zero() || r.sign() == b.sign()));
                let exact = a.times(&b).divide(&b).unwrap();
                assert_eq!(exact, (a.clone(), Big::ZERO));
            }
        }
    }

    fn size(x: &Big) -> Big {
        if x.sign() == Ordering::Less { x.negated() } else { x.clone() }
    }

    /// Dividends whose guess is one too large are rare at random: these are made to be so.
    #[test]
    fn guesses_that_are_put_back() {
        let by = Big::of(false, vec![u64::MAX, 1 << 63]);
        let above = Big::of(false, vec![0, u64::MAX - 1, 1 << 63]);
        let (q, r) = above.minus(&Big::ONE).divide(&by).unwrap();
        assert_eq!(q.times(&by).plus(&r), above.minus(&Big::ONE));
        assert!(r < by);
        let a = Big::of(false, vec![3, 0, 1 << 63]);
        let b = Big::of(false, vec![1, 0, 1 << 61]);
        assert_eq!(a.divide(&b).unwrap(), (Big::from(3_i64), Big::of(false, vec![0, 0, 1 << 61])));
    }

    #[test]
    fn digits() {
        let text = "123456789012345678901234567890123456789";
        assert_eq!(Big::from_digits(text), Some(Big::from(text.parse::<i128>().unwrap())));
        assert_eq!(Big::from_digits(&format!("1{}", "0".repeat(500))), Some(Big::from(10_i64).power(500)));
        assert_eq!(Big::from_digits("000"), Some(Big::ZERO));
        for text in ["", "-1", "+1", "1 ", "\u{661}", "0x1"] {
            assert_eq!(Big::from_digits(text), None, "{text}");
        }
        assert_eq!(Big::ZERO.power(0), Big::ONE);
        assert!(Big::ONE.divide(&Big::ZERO).is_none());
    }
}
