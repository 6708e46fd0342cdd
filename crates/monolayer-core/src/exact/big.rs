//! Integers of any size: a sign and the limbs of the absolute value. Schoolbook methods; every result is exact.

use std::cmp::Ordering;

/// An integer. The limbs are little-endian without leading zeros; zero has none and is not negative.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Big {
    negative: bool,
    limbs: Vec<u64>,
}

impl From<i64> for Big {
    fn from(x: i64) -> Self {
        Self::from(i128::from(x))
    }
}

impl From<i128> for Big {
    fn from(x: i128) -> Self {
        let size = x.unsigned_abs();
        Self::of(x < 0, vec![size as u64, (size >> 64) as u64])
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => compare(&self.limbs, &other.limbs),
            (true, true) => compare(&other.limbs, &self.limbs),
        }
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Big {
    fn of(negative: bool, mut limbs: Vec<u64>) -> Self {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Self { negative: negative && !limbs.is_empty(), limbs }
    }

    /// Zero.
    pub const fn zero() -> Self {
        Self { negative: false, limbs: Vec::new() }
    }

    /// One.
    pub fn one() -> Self {
        Self::from(1_i64)
    }

    /// 2^k.
    pub fn power_of_two(k: usize) -> Self {
        Self::one().shl(k)
    }

    /// A whole number without a sign, in decimal digits; nothing else is read. The time grows with the square of the
    /// length: the caller limits it.
    pub fn from_digits(text: &str) -> Option<Self> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let mut limbs = Vec::new();
        for chunk in text.as_bytes().chunks(19) {
            let digits = chunk.iter().fold(0_u64, |sum, b| sum * 10 + u64::from(b - b'0'));
            let mut carry = digits;
            let scale = 10_u64.pow(chunk.len() as u32);
            for limb in &mut limbs {
                (*limb, carry) = times_plus(*limb, scale, carry, 0);
            }
            limbs.push(carry);
        }
        Some(Self::of(false, limbs))
    }

    /// 10^k.
    pub fn power_of_ten(k: usize) -> Self {
        let (mut power, mut square, mut left) = (Self::one(), Self::from(10_i64), k);
        while left > 0 {
            if left % 2 == 1 {
                power = power.times(&square);
            }
            left /= 2;
            square = if left > 0 { square.times(&square) } else { square };
        }
        power
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// Negative, zero or positive, against zero.
    pub fn sign(&self) -> Ordering {
        match (self.negative, self.is_zero()) {
            (true, _) => Ordering::Less,
            (false, true) => Ordering::Equal,
            (false, false) => Ordering::Greater,
        }
    }

    /// The bits of the absolute value: 2^(bits - 1) <= |x| < 2^bits; 0 for zero.
    pub fn bits(&self) -> usize {
        self.limbs.last().map_or(0, |top| self.limbs.len() * 64 - top.leading_zeros() as usize)
    }

    /// How many of the last bits are zero; 0 for zero.
    pub fn trailing_zeros(&self) -> usize {
        let first = self.limbs.iter().position(|limb| *limb != 0);
        first.map_or(0, |i| i * 64 + self.limbs[i].trailing_zeros() as usize)
    }

    /// The value, where it fits.
    pub fn to_i128(&self) -> Option<i128> {
        if self.bits() > 126 {
            return None;
        }
        let limb = |i: usize| u128::from(self.limbs.get(i).copied().unwrap_or(0));
        let size = (limb(0) | limb(1) << 64) as i128;
        Some(if self.negative { -size } else { size })
    }

    /// The remainder of the absolute value by a number that is not zero.
    pub fn residue(&self, by: u64) -> u64 {
        let step = |rest: u128, limb: &u64| (rest << 64 | u128::from(*limb)) % u128::from(by);
        self.limbs.iter().rev().fold(0, step) as u64
    }

    /// -x.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), limbs: self.limbs.clone() }
    }

    /// |x|.
    #[must_use]
    pub fn abs(&self) -> Self {
        Self { negative: false, limbs: self.limbs.clone() }
    }

    fn sum(&self, other: &Self, other_negative: bool) -> Self {
        if self.negative == other_negative {
            return Self::of(self.negative, sum(&self.limbs, &other.limbs));
        }
        match compare(&self.limbs, &other.limbs) {
            Ordering::Less => Self::of(other_negative, difference(&other.limbs, &self.limbs)),
            _ => Self::of(self.negative, difference(&self.limbs, &other.limbs)),
        }
    }

    /// x + y.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.sum(other, other.negative)
    }

    /// x - y.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.sum(other, !other.negative)
    }

    /// x y.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let mut limbs = vec![0; self.limbs.len() + other.limbs.len()];
        for (i, x) in self.limbs.iter().enumerate().filter(|(_, x)| **x != 0) {
            let mut carry = 0;
            for (j, y) in other.limbs.iter().enumerate() {
                (limbs[i + j], carry) = times_plus(*x, *y, limbs[i + j], carry);
            }
            limbs[i + other.limbs.len()] = carry;
        }
        Self::of(self.negative != other.negative, limbs)
    }

    /// x 2^k.
    #[must_use]
    pub fn shl(&self, k: usize) -> Self {
        if self.is_zero() {
            return Self::zero();
        }
        let (whole, part) = (k / 64, k % 64);
        let mut limbs = vec![0; whole];
        let mut carry = 0;
        for limb in &self.limbs {
            limbs.push(limb << part | carry);
            carry = if part == 0 { 0 } else { limb >> (64 - part) };
        }
        limbs.push(carry);
        Self::of(self.negative, limbs)
    }

    /// x / 2^k, rounded toward minus infinity.
    #[must_use]
    pub fn shr(&self, k: usize) -> Self {
        let (whole, part) = (k / 64, k % 64);
        let high = self.limbs.get(whole..).unwrap_or(&[]);
        let limb = |i: usize| {
            let above = if part == 0 { 0 } else { high.get(i + 1).map_or(0, |limb| limb << (64 - part)) };
            high[i] >> part | above
        };
        let size = Self::of(self.negative, (0..high.len()).map(limb).collect());
        // Toward zero so far.
        let lost = self.negative && self.trailing_zeros() < k;
        if lost { size.minus(&Self::one()) } else { size }
    }

    /// The quotient, rounded toward minus infinity, and the rest, which has the sign of the divisor; nothing for a divisor
    /// of zero.
    pub fn divide(&self, by: &Self) -> Option<(Self, Self)> {
        if by.is_zero() {
            return None;
        }
        let (quotient, rest) = quotient(&self.limbs, &by.limbs);
        let quotient = Self::of(self.negative != by.negative, quotient);
        let rest = Self::of(self.negative, rest);
        if rest.is_zero() || self.negative == by.negative {
            return Some((quotient, rest));
        }
        Some((quotient.minus(&Self::one()), rest.plus(by)))
    }

    /// The greatest common divisor, not negative (Euclid).
    #[must_use]
    pub fn gcd(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.abs(), other.abs());
        while let Some((_, rest)) = a.divide(&b) {
            (a, b) = (b, rest);
        }
        a
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
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut limbs = Vec::with_capacity(long.len() + 1);
    let mut carry = false;
    for (i, x) in long.iter().enumerate() {
        let (first, over) = x.overflowing_add(short.get(i).copied().unwrap_or(0));
        let (second, again) = first.overflowing_add(u64::from(carry));
        limbs.push(second);
        carry = over || again;
    }
    limbs.push(u64::from(carry));
    limbs
}

/// a - b for a >= b.
fn difference(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut limbs = Vec::with_capacity(a.len());
    let mut borrow = false;
    for (i, x) in a.iter().enumerate() {
        let (first, under) = x.overflowing_sub(b.get(i).copied().unwrap_or(0));
        let (second, again) = first.overflowing_sub(u64::from(borrow));
        limbs.push(second);
        borrow = under || again;
    }
    limbs
}

/// Quotient and rest of absolute values, b not zero (Knuth, The Art of Computer Programming 2, algorithm 4.3.1 D).
///
/// Lemma: with the divisor's first limb at least 2^63, the guess from two limbs of the dividend is never too small, and after
/// the test with the next limb at most one too large; the subtraction that goes below zero tells, and one divisor is put back.
fn quotient(a: &[u64], b: &[u64]) -> (Vec<u64>, Vec<u64>) {
    if compare(a, b) == Ordering::Less {
        return (Vec::new(), a.to_vec());
    }
    let shift = b[b.len() - 1].leading_zeros() as usize;
    let shifted = |x: &[u64]| Big::of(false, x.to_vec()).shl(shift).limbs;
    let (mut rest, by) = (shifted(a), shifted(b));
    rest.resize(a.len() + 1, 0);
    let n = by.len();
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
        let (mut carry, mut borrow) = (0, false);
        for i in 0..=n {
            let product;
            (product, carry) = times_plus(guess as u64, by.get(i).copied().unwrap_or(0), carry, 0);
            let (x, under) = rest[i + j].overflowing_sub(product);
            let (x, again) = x.overflowing_sub(u64::from(borrow));
            rest[i + j] = x;
            borrow = under || again;
        }
        if borrow {
            guess -= 1;
            let mut carry = false;
            for i in 0..=n {
                let (x, over) = rest[i + j].overflowing_add(by.get(i).copied().unwrap_or(0));
                let (x, again) = x.overflowing_add(u64::from(carry));
                rest[i + j] = x;
                carry = over || again;
            }
        }
        quotient[j] = guess as u64;
    }
    (quotient, Big::of(false, rest).shr(shift).limbs)
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
            assert_eq!(x.to_i128(), Some(a));
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
            assert_eq!(x.residue(97), (a.unsigned_abs() % 97) as u64);
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
            assert_eq!(a.shl(k), a.times(&Big::power_of_two(k)));
            assert_eq!(a.shr(k), a.divide(&Big::power_of_two(k)).unwrap().0);
            if let Some((q, r)) = a.divide(&b) {
                assert_eq!(q.times(&b).plus(&r), a);
                assert!(r.abs() < b.abs() && (r.is_zero() || r.sign() == b.sign()));
                let exact = a.times(&b).divide(&b).unwrap();
                assert_eq!(exact, (a.clone(), Big::zero()));
            }
            let g = a.times(&c).gcd(&b.times(&c));
            if !c.is_zero() && !g.is_zero() {
                assert!(g.divide(&c).unwrap().1.is_zero() && a.times(&c).divide(&g).unwrap().1.is_zero());
            }
        }
    }

    /// Dividends whose guess is one too large are rare at random: these are made to be so.
    #[test]
    fn guesses_that_are_put_back() {
        let by = Big::of(false, vec![u64::MAX, 1 << 63]);
        let above = Big::of(false, vec![0, u64::MAX - 1, 1 << 63]);
        let (q, r) = above.minus(&Big::one()).divide(&by).unwrap();
        assert_eq!(q.times(&by).plus(&r), above.minus(&Big::one()));
        assert!(r < by);
        let a = Big::of(false, vec![3, 0, 1 << 63]);
        let b = Big::of(false, vec![1, 0, 1 << 61]);
        assert_eq!(a.divide(&b).unwrap(), (Big::from(3_i64), Big::of(false, vec![0, 0, 1 << 61])));
    }

    #[test]
    fn digits() {
        let text = "123456789012345678901234567890123456789";
        assert_eq!(Big::from_digits(text), Some(Big::from(text.parse::<i128>().unwrap())));
        assert_eq!(Big::from_digits(&format!("1{}", "0".repeat(500))), Some(Big::power_of_ten(500)));
        assert_eq!(Big::from_digits("000"), Some(Big::zero()));
        for text in ["", "-1", "+1", "1 ", "\u{661}", "0x1"] {
            assert_eq!(Big::from_digits(text), None, "{text}");
        }
        assert_eq!(Big::power_of_ten(0), Big::one());
        assert!(Big::one().divide(&Big::zero()).is_none());
        assert_eq!(Big::zero().gcd(&Big::from(-6_i64)), Big::from(6_i64));
    }
}
