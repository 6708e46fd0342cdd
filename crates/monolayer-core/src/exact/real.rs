//! Real numbers to any number of bits: big floats m 2^e, intervals of them rounded outward, and exact fractions.
//!
//! An interval whose ends would leave [-2^(2^40), 2^(2^40)] is unbounded, and so is everything computed from it: nothing
//! overflows silently. Ends that come too close to zero move outward to zero or to 2^-(2^40), never inward.

use std::cmp::Ordering;

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
enum Way {
    Down,
    Up,
}

/// Numbers are below 2 to this power in size, and their last bits above minus it.
const FAR: i64 = 1 << 40;

impl From<Dyadic> for Scaled {
    fn from(x: Dyadic) -> Self {
        Self::new(Big::from(x.m), i64::from(x.e))
    }
}

impl Scaled {
    /// m 2^e; e is between -2^41 and 2^41.
    pub fn new(m: Big, e: i64) -> Self {
        Self { m, e }
    }

    /// Zero.
    pub fn zero() -> Self {
        Self::new(Big::zero(), 0)
    }

    /// A whole number.
    pub fn whole(x: i64) -> Self {
        Self::new(Big::from(x), 0)
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

    /// -x.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { m: self.m.negated(), e: self.e }
    }

    /// The product, exactly.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self { m: self.m.times(&other.m), e: self.e + other.e }
    }

    /// The sum, exactly. It takes as many bits as the exponents are apart: for numbers of files and their products.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        if self.m.is_zero() || other.m.is_zero() {
            return if self.m.is_zero() { other.clone() } else { self.clone() };
        }
        let e = self.e.min(other.e);
        Self { m: self.m.shl((self.e - e) as usize).plus(&other.m.shl((other.e - e) as usize)), e }
    }

    fn rounded(self, bits: usize, way: Way) -> Self {
        let excess = self.m.bits().saturating_sub(bits);
        if excess == 0 {
            return self;
        }
        let m = if way == Way::Down { self.m.shr(excess) } else { self.m.negated().shr(excess).negated() };
        Self { m, e: self.e + excess as i64 }
    }

    /// Rounded to a multiple of 2^-FAR.
    fn on_grid(self, way: Way) -> Self {
        let excess = self.m.bits().min((-FAR).saturating_sub(self.e).max(0) as usize);
        if self.e >= -FAR {
            return self;
        }
        // Beyond its first bit a number is between 0 and one step, however small it is.
        let m = if way == Way::Down { self.m.shr(excess) } else { self.m.negated().shr(excess).negated() };
        Self { m, e: -FAR }
    }

    /// The sum, rounded. Lemma: a summand below 2^floor, floor two places under the last bit kept of the other, may be
    /// replaced by anything between 0 and 2^floor on the side that is rounded to.
    fn near_sum(&self, other: &Self, bits: usize, way: Way) -> Self {
        let (big, small) = if self.top() >= other.top() { (self, other) } else { (other, self) };
        let floor = big.e.min(big.top() - bits as i64) - 2;
        if small.m.is_zero() || small.top() >= floor {
            return big.plus(small).rounded(bits, way);
        }
        let step = match (way, small.sign()) {
            (Way::Down, Ordering::Less) => -1_i64,
            (Way::Up, Ordering::Greater) => 1,
            _ => return big.clone().rounded(bits, way),
        };
        big.plus(&Self::new(Big::from(step), floor)).rounded(bits, way)
    }

    /// The quotient by a positive number, rounded.
    fn over(&self, by: &Self, bits: usize, way: Way) -> Self {
        let shift = (bits + 2 + by.m.bits()).saturating_sub(self.m.bits());
        let shifted = self.m.shl(shift);
        let down = |m: &Big| m.divide(&by.m).map_or(Big::zero(), |(quotient, _)| quotient);
        let m = if way == Way::Down { down(&shifted) } else { down(&shifted.negated()).negated() };
        Self { m, e: self.e - by.e - shift as i64 }.rounded(bits, way)
    }
}

impl PartialEq for Scaled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
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
        let (a, b) = (self.sign(), other.sign());
        if a != b || a == Ordering::Equal {
            return a.cmp(&b);
        }
        let larger = self.top().cmp(&other.top());
        match (larger, a) {
            (Ordering::Equal, _) => self.plus(&other.negated()).sign(),
            (_, Ordering::Less) => larger.reverse(),
            _ => larger,
        }
    }
}

/// All numbers from one end to the other, or all numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Real(Option<(Scaled, Scaled)>);

impl Real {
    /// All numbers: nothing is known.
    pub const UNBOUNDED: Self = Self(None);

    /// From one end to the other, lo <= hi.
    pub fn new(lo: Scaled, hi: Scaled) -> Self {
        if lo.top().max(hi.top()) > FAR {
            return Self::UNBOUNDED;
        }
        Self(Some((lo.on_grid(Way::Down), hi.on_grid(Way::Up))))
    }

    /// One number.
    pub fn point(x: Scaled) -> Self {
        Self::new(x.clone(), x)
    }

    /// A whole number.
    pub fn whole(x: i64) -> Self {
        Self::point(Scaled::whole(x))
    }

    /// Both ends, where there are any.
    pub fn ends(&self) -> Option<(&Scaled, &Scaled)> {
        self.0.as_ref().map(|(lo, hi)| (lo, hi))
    }

    /// Its only member, where it has only one.
    pub fn only(&self) -> Option<&Scaled> {
        self.ends().filter(|(lo, hi)| lo == hi).map(|(lo, _)| lo)
    }

    fn both(&self, other: &Self, f: impl Fn((&Scaled, &Scaled), (&Scaled, &Scaled)) -> Self) -> Self {
        match (self.ends(), other.ends()) {
            (Some(a), Some(b)) => f(a, b),
            _ => Self::UNBOUNDED,
        }
    }

    /// -x.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self(self.ends().map(|(lo, hi)| (hi.negated(), lo.negated())))
    }

    /// x + y.
    #[must_use]
    pub fn plus(&self, other: &Self, bits: usize) -> Self {
        self.both(other, |a, b| Self::new(a.0.near_sum(b.0, bits, Way::Down), a.1.near_sum(b.1, bits, Way::Up)))
    }

    /// x - y.
    #[must_use]
    pub fn minus(&self, other: &Self, bits: usize) -> Self {
        self.plus(&other.negated(), bits)
    }

    /// x y. Lemma: the ends of a product are products of ends; for x >= 0 the least is that of y's lower end with x's lower
    /// end where y's is >= 0, else with x's upper end, and likewise the greatest.
    #[must_use]
    pub fn times(&self, other: &Self, bits: usize) -> Self {
        let zero = |x: &Self| x.only().is_some_and(|x| x.sign() == Ordering::Equal);
        if zero(self) || zero(other) {
            // Every member is a number, also where none is known.
            return Self::whole(0);
        }
        self.both(other, |a, b| {
            let below = |x: &Scaled| x.sign() == Ordering::Less;
            let ends = |lo: Scaled, hi: Scaled| Self::new(lo.rounded(bits, Way::Down), hi.rounded(bits, Way::Up));
            if !below(a.0) {
                let lo = if below(b.0) { a.1.times(b.0) } else { a.0.times(b.0) };
                let hi = if below(b.1) { a.0.times(b.1) } else { a.1.times(b.1) };
                return ends(lo, hi);
            }
            if a.1.sign() != Ordering::Greater {
                return self.negated().times(other, bits).negated();
            }
            if !below(b.0) || b.1.sign() != Ordering::Greater {
                return other.times(self, bits);
            }
            ends(a.0.times(b.1).min(a.1.times(b.0)), a.0.times(b.0).max(a.1.times(b.1)))
        })
    }

    /// x / y; unbounded where y may be zero.
    #[must_use]
    pub fn over(&self, by: &Self, bits: usize) -> Self {
        self.both(by, |a, b| {
            if b.1.sign() == Ordering::Less {
                return self.negated().over(&by.negated(), bits);
            }
            if b.0.sign() != Ordering::Greater {
                return Self::UNBOUNDED;
            }
            let lo = a.0.over(if a.0.sign() == Ordering::Less { b.0 } else { b.1 }, bits, Way::Down);
            let hi = a.1.over(if a.1.sign() == Ordering::Less { b.1 } else { b.0 }, bits, Way::Up);
            Self::new(lo, hi)
        })
    }

    /// max(x, 0).
    #[must_use]
    pub fn relu(&self) -> Self {
        Self(self.ends().map(|(lo, hi)| (lo.clone().max(Scaled::zero()), hi.clone().max(Scaled::zero()))))
    }

    /// |x|.
    #[must_use]
    pub fn abs(&self) -> Self {
        let Some((lo, hi)) = self.ends() else { return Self::UNBOUNDED };
        let least = lo.clone().max(hi.negated()).max(Scaled::zero());
        Self(Some((least, lo.negated().max(hi.clone()))))
    }

    /// The smallest interval with the members of both.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Self {
        self.both(other, |a, b| Self(Some((a.0.min(b.0).clone(), a.1.max(b.1).clone()))))
    }

    /// The common members of two enclosures of one number.
    #[must_use]
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
            (Ordering::Less, _) => Some(Ordering::Less),
            (_, Ordering::Greater) => Some(Ordering::Greater),
            (Ordering::Equal, Ordering::Equal) => Some(Ordering::Equal),
            _ => None,
        }
    }

    /// e^x, which increases.
    #[must_use]
    pub fn exp(&self, bits: usize) -> Self {
        let Some((lo, hi)) = self.ends() else { return Self::UNBOUNDED };
        let below = exp(lo, bits);
        let above = if lo == hi { below.clone() } else { exp(hi, bits) };
        below.both(&above, |a, b| Self::new(a.0.clone(), b.1.clone()))
    }
}

/// e^x. Lemma: with y = x / 2^k and |y| < 2^-8, e^x = (e^y)^(2^k), and the terms y^i / i! from any one on come to less than twice
/// that one, because each is below half of the one before. For x <= -2^32, 0 < e^x < 2^x <= 2^-(2^32).
fn exp(x: &Scaled, bits: usize) -> Real {
    if x.top() > 32 {
        let low = Real::new(Scaled::zero(), Scaled::new(Big::one(), -(1 << 32)));
        return if x.sign() == Ordering::Less { low } else { Real::UNBOUNDED };
    }
    let halvings = (x.top() + 8 + bits.isqrt() as i64).max(0);
    let work = bits + halvings as usize + 32;
    let y = Real::point(Scaled { m: x.m.clone(), e: x.e - halvings });
    let (mut sum, mut term) = (Real::whole(1), Real::whole(1));
    for i in 1.. {
        term = term.times(&y, work).over(&Real::whole(i), work);
        let size = term.ends().map_or(0, |(lo, hi)| lo.top().max(hi.top())).max(-FAR);
        if size < -(work as i64) {
            let rest = Scaled::new(Big::one(), size + 1);
            sum = sum.plus(&Real::new(rest.negated(), rest), work);
            break;
        }
        sum = sum.plus(&term, work);
    }
    (0..halvings).fold(sum, |sum, _| sum.times(&sum, work))
}

/// The natural logarithm of 2. Lemma: log 2 = 2 artanh(1/3) is the sum of 2 / ((2 k + 1) 3^(2 k + 1)); the terms from any one on
/// come to less than twice that one.
fn log_2(bits: usize) -> Real {
    let (mut sum, mut power) = (Real::whole(0), Real::whole(6));
    for k in 0.. {
        power = power.over(&Real::whole(9), bits);
        let term = power.over(&Real::whole(2 * k + 1), bits);
        let size = term.ends().map_or(0, |(_, hi)| hi.top());
        if size < -(bits as i64) {
            let rest = Real::new(Scaled::zero(), Scaled::new(Big::one(), size + 1));
            return sum.plus(&rest, bits);
        }
        sum = sum.plus(&term, bits);
    }
    Real::UNBOUNDED
}

/// A fraction p / q in lowest terms, q > 0; or none (q = 0): it was too long. What is computed from none is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rational {
    p: Big,
    q: Big,
}

/// Longer texts are refused: their digits would take long to read.
const LONGEST: usize = 1 << 16;

impl From<Dyadic> for Rational {
    fn from(x: Dyadic) -> Self {
        let power = Big::power_of_two(x.e.unsigned_abs() as usize);
        if x.e < 0 { Self { p: x.m.into(), q: power } } else { Self { p: Big::from(x.m).times(&power), q: Big::one() } }
    }
}

impl Rational {
    /// None.
    pub const NONE: Self = Self { p: Big::zero(), q: Big::zero() };

    /// p / q in lowest terms, or none where q is zero or more than `bits` bits are needed.
    pub fn new(p: &Big, q: &Big, bits: usize) -> Self {
        if q.is_zero() || p.bits().max(q.bits()) > bits.saturating_mul(4) {
            return Self::NONE;
        }
        let by = p.gcd(q);
        let by = if q.sign() == Ordering::Less { by.negated() } else { by };
        let part = |x: &Big| x.divide(&by).map_or(Big::zero(), |(quotient, _)| quotient);
        let lowest = Self { p: part(p), q: part(q) };
        if lowest.p.bits().max(lowest.q.bits()) > bits { Self::NONE } else { lowest }
    }

    /// The number written as `p/q`, or in decimals with an optional exponent (docs/format.md). `budget` is what digits may
    /// cost: a number takes the square of its digits, zeros of its exponent included, over 64, so that neither a short nor a
    /// long file takes long to read. Nothing where the text is no number, too long, or beyond the budget.
    pub fn parse(text: &str, budget: &mut u64) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let negative = text.starts_with('-');
        let size = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
        let zeros = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if zeros.is_empty() || !zeros.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let places: i64 = exponent.parse().ok()?;
        let cost = places.unsigned_abs().checked_add(size.len() as u64)?.checked_pow(2)? / 64 + 1;
        *budget = budget.checked_sub(cost)?;
        let (p, q) = if let Some((p, q)) = size.split_once('/') {
            (Big::from_digits(p)?, Big::from_digits(q)?)
        } else {
            let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let (p, shift) = (Big::from_digits(&format!("{whole}{part}"))?, places - part.len() as i64);
            let power = Big::power_of_ten(shift.unsigned_abs() as usize);
            if shift >= 0 { (p.times(&power), Big::one()) } else { (p, power) }
        };
        let found = Self::new(&if negative { p.negated() } else { p }, &q, usize::MAX);
        Some(found).filter(|found| !found.is_none())
    }

    /// Whether it is none.
    pub fn is_none(&self) -> bool {
        self.q.is_zero()
    }

    /// Whether it is zero (none is not).
    pub fn is_zero(&self) -> bool {
        self.p.is_zero() && !self.is_none()
    }

    /// Numerator and denominator.
    pub fn parts(&self) -> (&Big, &Big) {
        (&self.p, &self.q)
    }

    /// x + y, none where it takes more than `bits` bits.
    #[must_use]
    pub fn plus(&self, other: &Self, bits: usize) -> Self {
        let p = self.p.times(&other.q).plus(&other.p.times(&self.q));
        Self::new(&p, &self.q.times(&other.q), bits)
    }

    /// x - y.
    #[must_use]
    pub fn minus(&self, other: &Self, bits: usize) -> Self {
        self.plus(&Self { p: other.p.negated(), q: other.q.clone() }, bits)
    }

    /// x y.
    #[must_use]
    pub fn times(&self, other: &Self, bits: usize) -> Self {
        Self::new(&self.p.times(&other.p), &self.q.times(&other.q), bits)
    }

    /// x / y; none where y is zero.
    #[must_use]
    pub fn over(&self, other: &Self, bits: usize) -> Self {
        Self::new(&self.p.times(&other.q), &self.q.times(&other.p), bits)
    }

    /// x against y; nothing where one of them is none.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let known = !self.is_none() && !other.is_none();
        known.then(|| self.p.times(&other.q).cmp(&other.p.times(&self.q)))
    }

    /// 2^x: a power of two times e^(y log 2), y the fractional part.
    pub fn exp2(&self, bits: usize) -> Real {
        let whole = self.p.divide(&self.q).and_then(|(floor, _)| floor.to_i128()?.try_into().ok());
        let Some(whole) = whole.filter(|whole: &i64| whole.abs() < FAR) else { return Real::UNBOUNDED };
        let rest = self.minus(&Self { p: Big::from(whole), q: Big::one() }, usize::MAX).enclosure(bits + 8);
        let power = Real::point(Scaled::new(Big::one(), whole));
        power.times(&rest.times(&log_2(bits + 8), bits + 8).exp(bits + 8), bits + 8)
    }

    /// An enclosure to a number of bits; a point where it is one.
    pub fn enclosure(&self, bits: usize) -> Real {
        let end = |x: &Big| {
            let x = Scaled::new(x.clone(), 0);
            Real::new(x.clone().rounded(bits, Way::Down), x.rounded(bits, Way::Up))
        };
        let shift = self.q.trailing_zeros();
        if self.is_none() {
            Real::UNBOUNDED
        } else if self.q.bits() == shift + 1 && self.p.bits() <= bits {
            Real::point(Scaled::new(self.p.clone(), -(shift as i64)))
        } else {
            end(&self.p).over(&end(&self.q), bits)
        }
    }
}

#[cfg(test)]
mod tests;
