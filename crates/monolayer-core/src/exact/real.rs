//! Real numbers to any number of bits: big floats m 2^e, intervals of them rounded outward, and fractions as files have them.
//!
//! An interval whose ends would leave [-2^(2^40), 2^(2^40)] is unbounded, and so is everything computed from it: nothing
//! overflows silently. Ends that come too close to zero move outward to a multiple of 2^-(2^40), never inward.

use std::cmp::Ordering::{self, Equal, Greater, Less};

use super::big::Big;
use crate::number::Dyadic;

/// m 2^e, exactly.
#[derive(Debug, Clone)]
pub struct Scaled {
    m: Big,
    e: i64,
}

/// Which way to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Down,
    Up,
}

/// Numbers are below 2 to this power in size, and multiples of 2 to minus it.
const FAR: i64 = 1 << 40;

impl From<Dyadic> for Scaled {
    fn from(x: Dyadic) -> Self {
        Self::new(Big::from(x.m), i64::from(x.e))
    }
}

impl Scaled {
    /// Zero.
    pub const ZERO: Self = Self { m: Big::ZERO, e: 0 };

    /// m 2^e; e is between -2^41 and 2^41.
    pub fn new(m: Big, e: i64) -> Self {
        Self { m, e }
    }

    /// Mantissa and exponent.
    pub fn parts(&self) -> (&Big, i64) {
        (&self.m, self.e)
    }

    /// Against zero.
    pub fn sign(&self) -> Ordering {
        self.m.sign()
    }

    /// The least k with |x| < 2^k; very low for zero.
    pub fn top(&self) -> i64 {
        if self.m.is_zero() { i64::MIN / 4 } else { self.e + self.m.bits() as i64 }
    }

    /// x 2^k.
    pub fn scaled(&self, k: i64) -> Self {
        Self::new(self.m.clone(), if self.m.is_zero() { 0 } else { self.e + k })
    }

    /// -x.
    pub fn negated(&self) -> Self {
        Self { m: self.m.negated(), e: self.e }
    }

    /// The product, exactly.
    pub fn times(&self, other: &Self) -> Self {
        Self { m: self.m.times(&other.m), e: self.e + other.e }
    }

    /// The sum, exactly. It takes as many bits as the exponents are apart: for numbers of files and their products.
    pub fn plus(&self, other: &Self) -> Self {
        if self.m.is_zero() || other.m.is_zero() {
            return if self.m.is_zero() { other.clone() } else { self.clone() };
        }
        let e = self.e.min(other.e);
        Self { m: self.m.shl((self.e - e) as usize).plus(&other.m.shl((other.e - e) as usize)), e }
    }

    /// Rounded to a number of bits.
    pub(super) fn rounded(self, bits: usize, way: Way) -> Self {
        let excess = self.m.bits().saturating_sub(bits);
        if excess == 0 { self } else { self.cut(excess, way) }
    }

    /// Without its last bits.
    fn cut(self, excess: usize, way: Way) -> Self {
        let m = if way == Way::Down { self.m.shr(excess) } else { self.m.negated().shr(excess).negated() };
        Self { m, e: self.e + excess as i64 }
    }

    /// m 2^e rounded to a number of bits.
    fn packed(m: i128, e: i64, bits: usize, way: Way) -> Self {
        let excess = (128 - m.unsigned_abs().leading_zeros() as usize).saturating_sub(bits);
        let m = if way == Way::Down { m >> excess } else { -(-m >> excess) };
        Self { m: Big::from(m), e: e + excess as i64 }
    }

    fn near_product(&self, other: &Self, bits: usize, way: Way) -> Self {
        if let (Big::Small(a), Big::Small(b)) = (&self.m, &other.m) {
            return Self::packed(i128::from(*a) * i128::from(*b), self.e + other.e, bits, way);
        }
        self.times(other).rounded(bits, way)
    }

    /// The sum, rounded. Lemma: a summand below 2^floor, floor two places under the last bit of the other and the last one kept, may
    /// be replaced by 2^floor with its sign: no number that is rounded to is between the two sums.
    fn near_sum(&self, other: &Self, bits: usize, way: Way) -> Self {
        let (big, small) = if self.top() >= other.top() { (self, other) } else { (other, self) };
        let (gap, e) = (big.e.abs_diff(small.e), big.e.min(small.e));
        if let (Big::Small(a), Big::Small(b), ..=62) = (&big.m, &small.m, gap) {
            let shifted = |m: i64, of: i64| i128::from(m) << (of - e);
            return Self::packed(shifted(*a, big.e) + shifted(*b, small.e), e, bits, way);
        }
        let floor = big.e.min(big.top() - bits as i64) - 2;
        let trace = Self::new(Big::from(small.sign() as i64), floor);
        big.plus(if small.top() < floor { &trace } else { small }).rounded(bits, way)
    }

    /// The quotient by a positive number, rounded.
    fn over(&self, by: &Self, bits: usize, way: Way) -> Self {
        if let (Big::Small(a), Big::Small(b @ 1..), ..=62) = (&self.m, &by.m, bits) {
            // As far to the left as it goes: the quotient has 62 bits or more.
            let left = i128::from(*a).unsigned_abs().leading_zeros().min(126) - 2;
            let (m, b) = (i128::from(*a) << left, i128::from(*b));
            let m = if way == Way::Down { m.div_euclid(b) } else { -(-m).div_euclid(b) };
            return Self::packed(m, self.e - by.e - i64::from(left), bits, way);
        }
        let shift = (bits + 2 + by.m.bits()).saturating_sub(self.m.bits());
        let shifted = self.m.shl(shift);
        let down = |m: &Big| m.divide(&by.m).map_or(Big::ZERO, |(quotient, _)| quotient);
        let m = if way == Way::Down { down(&shifted) } else { down(&shifted.negated()).negated() };
        Self { m, e: self.e - by.e - shift as i64 }.rounded(bits, way)
    }

    /// The square root of max(x, 0), to 62 bits: r^2 <= x for r rounded down, x <= r^2 for r rounded up.
    pub(super) fn root(&self, way: Way) -> Self {
        let near = self.clone().rounded(62, way);
        let Big::Small(m @ 1..) = near.m else { return Self::ZERO };
        let shift = 62 + (near.e & 1);
        let square = u128::from(m.unsigned_abs()) << shift;
        let root = square.isqrt();
        let more = i128::from(way == Way::Up && root * root < square);
        Self { m: Big::from(root.cast_signed() + more), e: (near.e - shift) / 2 }
    }
}

impl PartialEq for Scaled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Equal
    }
}

impl Eq for Scaled {}

impl PartialOrd for Scaled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scaled {
    fn cmp(&self, other: &Self) -> Ordering {
        let (sign, larger) = (self.sign(), self.top().cmp(&other.top()));
        match (sign.cmp(&other.sign()), sign, larger) {
            (Equal, Equal, _) => Equal,
            (Equal, _, Equal) => self.plus(&other.negated()).sign(),
            (Equal, Less, _) => larger.reverse(),
            (Equal, Greater, _) => larger,
            (differ, ..) => differ,
        }
    }
}

/// All numbers from one end to the other, or all numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Real(Option<(Scaled, Scaled)>);

impl Real {
    /// All numbers: nothing is known.
    pub const UNBOUNDED: Self = Self(None);
    /// Zero.
    pub const ZERO: Self = Self(Some((Scaled::ZERO, Scaled::ZERO)));

    /// From one end to the other, lo <= hi.
    pub fn new(lo: Scaled, hi: Scaled) -> Self {
        let fine = |x: Scaled, way: Way| {
            // Beyond its first bit a number is between 0 and one step, however small it is.
            let excess = x.m.bits().min((-FAR).saturating_sub(x.e).max(0) as usize);
            if x.e < -FAR { Scaled { e: -FAR, ..x.cut(excess, way) } } else { x }
        };
        let far = lo.top().max(hi.top()) > FAR;
        Self((!far).then(|| (fine(lo, Way::Down), fine(hi, Way::Up))))
    }

    /// One number.
    pub fn point(x: Scaled) -> Self {
        Self::new(x.clone(), x)
    }

    /// A whole number.
    pub fn whole(x: i64) -> Self {
        Self::point(Scaled::new(Big::from(x), 0))
    }

    /// An enclosure of pi: its first 109 bits.
    pub fn pi() -> Self {
        let digits = 0x3243_F6A8_885A_308D_3131_98A2_E037_i128;
        Self::new(Scaled::new(Big::from(digits), -108), Scaled::new(Big::from(digits + 1), -108))
    }

    /// Both ends, where there are any.
    pub fn ends(&self) -> Option<(&Scaled, &Scaled)> {
        self.0.as_ref().map(|(lo, hi)| (lo, hi))
    }

    /// Its only member, where it has only one.
    pub fn only(&self) -> Option<&Scaled> {
        self.ends().filter(|(lo, hi)| lo == hi).map(|(lo, _)| lo)
    }

    /// A member near the middle, and what no member is farther away than; nothing where there are no ends.
    pub fn middle(&self, bits: usize) -> Option<(Scaled, Scaled)> {
        let (lo, hi) = self.ends()?;
        let middle = lo.near_sum(hi, bits, Way::Down).scaled(-1).max(lo.clone());
        let radius = hi.near_sum(&middle.negated(), bits, Way::Up).max(middle.near_sum(&lo.negated(), bits, Way::Up));
        Some((middle, radius))
    }

    fn both(&self, other: &Self, f: impl Fn((&Scaled, &Scaled), (&Scaled, &Scaled)) -> Self) -> Self {
        match (self.ends(), other.ends()) {
            (Some(a), Some(b)) => f(a, b),
            _ => Self::UNBOUNDED,
        }
    }

    /// -x.
    pub fn negated(&self) -> Self {
        Self(self.ends().map(|(lo, hi)| (hi.negated(), lo.negated())))
    }

    /// x + y.
    pub fn plus(&self, other: &Self, bits: usize) -> Self {
        self.both(other, |a, b| Self::new(a.0.near_sum(b.0, bits, Way::Down), a.1.near_sum(b.1, bits, Way::Up)))
    }

    /// The sum of several numbers.
    pub fn sum(terms: impl Iterator<Item = Self>, bits: usize) -> Self {
        terms.fold(Self::ZERO, |sum, term| sum.plus(&term, bits))
    }

    /// x - y.
    pub fn minus(&self, other: &Self, bits: usize) -> Self {
        self.plus(&other.negated(), bits)
    }

    /// x y. Lemma: for each y, the least product is that with x's lower end where y >= 0, else with its upper end; it is concave in y,
    /// so that an end of y gives the least of all, the lower one where x >= 0; and likewise the greatest.
    pub fn times(&self, other: &Self, bits: usize) -> Self {
        if *self == Self::ZERO || *other == Self::ZERO {
            // Every member is a number, also where none is known.
            return Self::ZERO;
        }
        self.both(other, |a, b| {
            let end = |y: &Scaled, way: Way| {
                let x = if (y.sign() == Less) == (way == Way::Down) { a.1 } else { a.0 };
                x.near_product(y, bits, way)
            };
            let (lo, hi) = (end(b.0, Way::Down), end(b.1, Way::Up));
            if a.0.sign() != Less {
                return Self::new(lo, hi);
            }
            Self::new(lo.min(end(b.1, Way::Down)), hi.max(end(b.0, Way::Up)))
        })
    }

    /// x / y; unbounded where y may be zero.
    pub fn over(&self, by: &Self, bits: usize) -> Self {
        self.both(by, |a, b| match (b.0.sign(), b.1.sign()) {
            (_, Less) => self.negated().over(&by.negated(), bits),
            (Greater, _) => Self::new(
                a.0.over(if a.0.sign() == Less { b.0 } else { b.1 }, bits, Way::Down),
                a.1.over(if a.1.sign() == Less { b.1 } else { b.0 }, bits, Way::Up),
            ),
            _ => Self::UNBOUNDED,
        })
    }

    /// The larger one.
    pub fn max(&self, other: &Self) -> Self {
        self.both(other, |a, b| Self(Some((a.0.max(b.0).clone(), a.1.max(b.1).clone()))))
    }

    /// max(x, 0).
    pub fn relu(&self) -> Self {
        self.max(&Self::ZERO)
    }

    /// |x|.
    pub fn abs(&self) -> Self {
        self.max(&self.negated()).relu()
    }

    /// The smallest interval with the members of both.
    pub fn hull(&self, other: &Self) -> Self {
        self.both(other, |a, b| Self(Some((a.0.min(b.0).clone(), a.1.max(b.1).clone()))))
    }

    /// The common members of two enclosures of one number.
    pub fn meet(&self, other: &Self) -> Self {
        match (self.ends(), other.ends()) {
            (Some(a), Some(b)) if a.0.max(b.0) <= a.1.min(b.1) => {
                Self(Some((a.0.max(b.0).clone(), a.1.min(b.1).clone())))
            }
            (None, _) => other.clone(),
            _ => self.clone(),
        }
    }

    /// x against y, where that is certain.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let (a, b) = (self.ends()?, other.ends()?);
        match (a.1.cmp(b.0), a.0.cmp(b.1)) {
            (order @ Less, _) | (_, order @ Greater) | (order @ Equal, Equal) => Some(order),
            _ => None,
        }
    }
}

/// A number as weights.json has it: a fraction, not necessarily in lowest terms, with a divisor above 0. Equal as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rational {
    p: Big,
    q: Big,
}

impl Rational {
    /// The number written as `p/q`, or in decimals with an optional exponent (docs/format.md). `budget` is what digits may
    /// cost: a number takes the square of its digits, zeros of its exponent included, over 64, so that neither a short nor a
    /// long file takes long to read. Nothing where the text is no number, too long, or beyond the budget.
    pub fn parse(text: &str, budget: &mut u64) -> Option<Self> {
        let size = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
        let places: i64 = exponent.parse().ok()?;
        let cost = places.unsigned_abs().checked_add(size.len() as u64)?.checked_pow(2)? / 64 + 1;
        *budget = budget.checked_sub(cost)?;
        let (p, q) = if let Some((p, q)) = size.split_once('/') {
            (Big::from_digits(p)?, Big::from_digits(q)?)
        } else {
            let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let (p, shift) = (Big::from_digits(&format!("{whole}{part}"))?, places - part.len() as i64);
            let power = Big::from(10_i64).power(shift.unsigned_abs() as usize);
            if shift >= 0 { (p.times(&power), Big::ONE) } else { (p, power) }
        };
        (!q.is_zero()).then(|| Self { p: if text.starts_with('-') { p.negated() } else { p }, q })
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.p.is_zero()
    }

    /// x - y.
    pub fn minus(&self, other: &Self) -> Self {
        Self { p: self.p.times(&other.q).minus(&other.p.times(&self.q)), q: self.q.times(&other.q) }
    }

    /// An enclosure to a number of bits; a point where it is a dyadic number of that many.
    pub fn enclosure(&self, bits: usize) -> Real {
        let end = |way: Way| Scaled::new(self.p.clone(), 0).over(&Scaled::new(self.q.clone(), 0), bits, way);
        Real::new(end(Way::Down), end(Way::Up))
    }
}

#[cfg(test)]
pub(crate) mod tests;
