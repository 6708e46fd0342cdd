//! Integers of any size: exact, and without memory of their own while they fit 63 bits.

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

impl<T: Into<i128>> From<T> for Big {
    fn from(x: T) -> Self {
        let x: i128 = x.into();
        let size = x.unsigned_abs();
        if size < 1 << 63 { Self::Small(x as i64) } else { Self::of(x < 0, vec![size as u64, (size >> 64) as u64]) }
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
                (*x < 0, from_ref(room))
            }
            Self::Large(negative, limbs) => (*negative, limbs),
        }
    }

    /// A whole number without a sign, in decimal digits; nothing else is read. The time grows with the square of the
    /// length: the caller limits it.
    pub fn from_digits(text: &str) -> Option<Self> {
        let digits = |chunk: &[u8]| chunk.iter().fold(0, |sum, b| sum * 10 + i64::from(b - b'0'));
        let add = |sum: Self, chunk: &[u8]| {
            sum.times(&Self::from(10_i64.pow(chunk.len() as u32))).plus(&digits(chunk).into())
        };
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.as_bytes().chunks(18).fold(Self::ZERO, add))
    }

    /// x^k.
    pub fn power(&self, k: usize) -> Self {
        power(&Self::ONE, self, k as u64, Self::times)
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Negative, zero or positive, against zero.
    pub fn sign(&self) -> Ordering {
        match self {
            Self::Small(x) => x.cmp(&0),
            Self::Large(negative, _) => {
                if *negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }

    /// The bits of its size: 2^(bits - 1) <= |x| < 2^bits; 0 for zero.
    pub fn bits(&self) -> usize {
        let mut room = 0;
        let limbs = self.parts(&mut room).1;
        limbs.last().map_or(0, |top| limbs.len() * 64 - top.leading_zeros() as usize)
    }

    /// -x.
    pub fn negated(&self) -> Self {
        match self {
            Self::Small(x) => Self::Small(-x),
            Self::Large(negative, limbs) => Self::Large(!negative, limbs.clone()),
        }
    }

    /// x + y.
    pub fn plus(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other) {
            return Self::from(i128::from(*a) + i128::from(*b));
        }
        let (mut one, mut two) = (0, 0);
        let ((a_negative, a), (b_negative, b)) = (self.parts(&mut one), other.parts(&mut two));
        let a_longer = a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev())) != Ordering::Less;
        let (negative, long, short) = if a_longer { (a_negative, a, b) } else { (b_negative, b, a) };
        let (mut sum, differ) = ([long, &[0]].concat(), a_negative != b_negative);
        // x - y is the complement of (the complement of x) + y.
        complement(&mut sum, differ);
        add(&mut sum, short, 1);
        complement(&mut sum, differ);
        Self::of(negative, sum)
    }

    /// x - y.
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    /// x y. Long numbers are cut in two (Karatsuba): with x = a + b B and y = c + d B, b c + a d is
    /// (a + b) (c + d) - a c - b d.
    pub fn times(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other) {
            return Self::from(i128::from(*a) * i128::from(*b));
        }
        let (mut one, mut two) = (0, 0);
        let ((a_negative, x), (b_negative, y)) = (self.parts(&mut one), other.parts(&mut two));
        if x.len().min(y.len()) < SHORT {
            let (x, y) = if x.len() < y.len() { (x, y) } else { (y, x) };
            let mut product = vec![0; x.len() + y.len()];
            for (i, limb) in x.iter().enumerate() {
                add(&mut product[i..=i + y.len()], y, *limb);
            }
            return Self::of(a_negative != b_negative, product);
        }
        let half = x.len().max(y.len()).div_ceil(2);
        let cut = |x: &[u64]| {
            let (low, high) = x.split_at(half.min(x.len()));
            [low, high].map(|part| Self::of(false, part.to_vec()))
        };
        let ([a, b], [c, d]) = (cut(x), cut(y));
        let (low, high) = (a.times(&c), b.times(&d));
        let middle = if high.is_zero() {
            b.times(&c).plus(&a.times(&d))
        } else {
            a.plus(&b).times(&c.plus(&d)).minus(&low).minus(&high)
        };
        let product = high.shl(64 * half).plus(&middle).shl(64 * half).plus(&low);
        if a_negative == b_negative { product } else { product.negated() }
    }

    /// x 2^k.
    pub fn shl(&self, k: usize) -> Self {
        if let (Self::Small(x), ..=64) = (self, k) {
            return Self::from(i128::from(*x) << k);
        }
        let mut room = 0;
        let (negative, limbs) = self.parts(&mut room);
        let mut shifted = vec![0; k / 64 + limbs.len() + 1];
        add(&mut shifted[k / 64..], limbs, 1 << (k % 64));
        Self::of(negative, shifted)
    }

    /// x / 2^k, rounded toward minus infinity.
    pub fn shr(&self, k: usize) -> Self {
        if let Self::Small(x) = self {
            return Self::Small(x >> k.min(63));
        }
        // Up to the next limb, and down by whole limbs.
        let (up, mut room) = (self.shl(64 - k % 64), 0);
        let (negative, limbs) = up.parts(&mut room);
        let (low, high) = limbs.split_at(limbs.len().min(k / 64 + 1));
        let toward_zero = Self::of(negative, high.to_vec());
        let lost = negative && low.iter().any(|limb| *limb != 0);
        if lost { toward_zero.minus(&Self::ONE) } else { toward_zero }
    }

    /// The quotient, rounded toward minus infinity, and the rest, which has the sign of the divisor; nothing for a divisor of zero.
    ///
    /// Lemma (Knuth): where the divisor's first limb is 2^63 or more, the first two limbs of what is left over it, or 2^64 - 1, are
    /// the next limb of the quotient or above it, by two at most.
    pub fn divide(&self, by: &Self) -> Option<(Self, Self)> {
        let up = by.bits().next_multiple_of(64) - by.bits();
        let (a, b, mut one, mut two) = (self.shl(up), by.shl(up), 0, 0);
        let ((a_negative, a), (b_negative, b)) = (a.parts(&mut one), b.parts(&mut two));
        let (n, first) = (b.len(), b.last().map(|first| u128::from(*first)).filter(|first| *first > 0)?);
        let mut left = [a, &[0]].concat();
        let mut quotient = vec![0; left.len().saturating_sub(n)];
        for (i, limb) in quotient.iter_mut().enumerate().rev() {
            let part = &mut left[i..=i + n];
            let guess = (u128::from(part[n]) << 64 | u128::from(part[n - 1])) / first;
            *limb = u64::try_from(guess).unwrap_or(u64::MAX);
            complement(part, true);
            let mut below = add(part, b, *limb);
            complement(part, true);
            while below {
                *limb -= 1;
                below = !add(part, b, 1);
            }
        }
        let (quotient, rest) = (Self::of(a_negative != b_negative, quotient), Self::of(a_negative, left).shr(up));
        let beyond = a_negative != b_negative && !rest.is_zero();
        Some(if beyond { (quotient.minus(&Self::ONE), rest.plus(by)) } else { (quotient, rest) })
    }
}

/// Below so many limbs, numbers are multiplied limb by limb.
const SHORT: usize = 40;

/// Adds y times a limb, and says whether the sum has no room.
fn add(sum: &mut [u64], y: &[u64], limb: u64) -> bool {
    let mut carry = 0;
    for (i, x) in sum.iter_mut().enumerate() {
        // At most (2^64 - 1)^2 + 2 (2^64 - 1) = 2^128 - 1.
        let y = y.get(i).map_or(0, |y| u128::from(*y) * u128::from(limb));
        let all = y + u128::from(*x) + carry;
        (*x, carry) = (all as u64, all >> 64);
    }
    carry > 0
}

/// Turns every bit of a number, if so asked.
fn complement(x: &mut [u64], turn: bool) {
    x.iter_mut().for_each(|limb| *limb = if turn { !*limb } else { *limb });
}

/// x^k, from one and a product.
pub(super) fn power<T: Clone>(one: &T, x: &T, k: u64, times: impl Fn(&T, &T) -> T) -> T {
    let (start, squares) = if k == 0 { (one, 0) } else { (x, k.ilog2()) };
    (0..squares).rev().fold(start.clone(), |power, i| {
        let square = times(&power, &power);
        if k >> i & 1 == 1 { times(&square, x) } else { square }
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    impl Big {
        fn quotient(&self, by: &Self) -> Option<Self> {
            self.divide(by).map(|(quotient, _)| quotient)
        }
    }

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
        fn limb(&mut self) -> u64 {
            match self.next() % 4 {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << (self.next() % 64),
                _ => self.next(),
            }
        }

        fn big(&mut self, limbs: usize) -> Big {
            let count = self.next() as usize % (limbs + 1);
            let limbs = (0..count).map(|_| self.limb()).collect();
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
            assert_eq!(x.minus(&y).sign(), a.cmp(&b));
            assert_eq!(x.sign(), a.cmp(&0));
            let k = (b.unsigned_abs() % 70) as usize;
            assert_eq!(x.shr(k), Big::from(a >> k));
            if k < 60 {
                assert_eq!(x.shl(k), Big::from(a << k));
            }
            assert_eq!(x.bits(), (128 - a.unsigned_abs().leading_zeros()) as usize);
            match x.quotient(&y) {
                None => assert_eq!(b, 0),
                Some(q) => assert_eq!(q, Big::from(a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0))),
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
            let k = random.next() as usize % 300;
            assert_eq!(a.shl(k).shr(k), a);
            assert_eq!(a.shl(k), a.times(&Big::from(2_i64).power(k)));
            assert_eq!(a.shr(k), a.quotient(&Big::from(2_i64).power(k)).unwrap());
            match a.quotient(&b) {
                None => assert!(b.is_zero()),
                Some(q) => {
                    let (same, r) = a.divide(&b).unwrap();
                    assert_eq!((&same, &a.minus(&q.times(&b))), (&q, &r));
                    assert!(
                        size(&r).minus(&size(&b)).sign() == Ordering::Less && (r.is_zero() || r.sign() == b.sign())
                    );
                    assert_eq!(a.times(&b).quotient(&b), Some(a.clone()));
                }
            }
        }
    }

    /// A number of so many limbs.
    fn long(random: &mut Random, limbs: usize) -> Big {
        let mut list: Vec<u64> = (0..limbs).map(|_| random.limb()).collect();
        list.iter_mut().last().into_iter().for_each(|top| *top |= 1);
        Big::of(random.next().is_multiple_of(2), list)
    }

    /// Limb by limb, without cutting.
    fn schoolbook(a: &Big, b: &Big) -> Big {
        let mut room = 0;
        let (negative, limbs) = b.parts(&mut room);
        let sum =
            limbs.iter().rev().fold(Big::ZERO, |sum, limb| sum.shl(64).plus(&a.times(&Big::from(i128::from(*limb)))));
        if negative { sum.negated() } else { sum }
    }

    /// Every pair of lengths around the one where numbers are cut, and around its double; and lengths far apart.
    #[test]
    fn long_products_are_those_limb_by_limb() {
        let mut random = Random(12);
        let near = |middle: usize| middle - 3..=middle + 3;
        let lengths: Vec<usize> =
            (0..4).chain(near(SHORT)).chain(near(2 * SHORT)).chain([4 * SHORT - 1, 500]).collect();
        for &m in &lengths {
            for &n in &lengths {
                let (a, b) = (long(&mut random, m), long(&mut random, n));
                assert_eq!(a.times(&b), schoolbook(&a, &b), "{m} {n}");
            }
            // All ones, and powers of two: the halves' sums carry, or are zero.
            let (ones, power) = (Big::ONE.shl(64 * m).minus(&Big::ONE), Big::ONE.shl(64 * m));
            for (a, b) in [(&ones, &ones), (&ones, &power), (&power, &power), (&power.negated(), &ones)] {
                assert_eq!(a.times(b), schoolbook(a, b), "{m}");
            }
        }
    }

    /// (a b + r) / b is a, and leaves r.
    #[test]
    fn long_quotients_give_their_products_back() {
        let mut random = Random(13);
        for round in 0..400 {
            let (m, n) = (random.next() as usize % 120, 1 + random.next() as usize % 60);
            let (a, b) = (long(&mut random, m), long(&mut random, n));
            let rest = long(&mut random, n).divide(&b).unwrap().1;
            let found = a.times(&b).plus(&rest).divide(&b);
            assert_eq!(found, Some((a, rest)), "{round}");
        }
        // Guesses that are too large by one and by two.
        let top = Big::ONE.shl(63);
        for (a, b) in [
            (top.shl(64), top.plus(&Big::ONE)),
            (top.shl(128).minus(&Big::ONE), top.shl(64).plus(&Big::ONE.shl(64)).minus(&Big::ONE)),
            (Big::ONE.shl(191).minus(&Big::ONE), Big::ONE.shl(127).plus(&Big::ONE.shl(64)).minus(&Big::ONE)),
        ] {
            let (q, r) = a.divide(&b).unwrap();
            assert_eq!(q.times(&b).plus(&r), a);
            assert!(r.sign() != Ordering::Less && r.minus(&b).sign() == Ordering::Less);
        }
    }

    fn size(x: &Big) -> Big {
        if x.sign() == Ordering::Less { x.negated() } else { x.clone() }
    }

    /// Quotients next to a multiple, where a guess is easily off by one.
    #[test]
    fn quotients_beside_multiples() {
        let mut random = Random(9);
        for _ in 0..3_000 {
            let (a, b) = (random.big(6), random.big(6));
            let product = a.times(&b);
            if b.sign() == Ordering::Greater {
                assert_eq!(product.minus(&Big::ONE).quotient(&b), Some(a.minus(&Big::ONE)));
                let below = product.plus(&b).minus(&Big::ONE);
                assert_eq!(below.quotient(&b), Some(a.clone()));
            }
        }
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
        assert!(Big::ONE.quotient(&Big::ZERO).is_none());
    }
}
