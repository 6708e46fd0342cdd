//! Big floats m 2^e, and intervals of them, rounded outward to a number of bits.

#![allow(clippy::return_self_not_must_use)]

use std::cmp::Ordering;

use dashu_base::{BitTest, Signed};
use dashu_int::IBig;

/// m 2^e, exactly.
#[derive(Debug, Clone)]
pub struct Big {
    m: IBig,
    e: i64,
}

/// Which way to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

impl Big {
    /// Zero.
    pub fn zero() -> Self {
        Self { m: IBig::ZERO, e: 0 }
    }

    /// m 2^e.
    pub fn new(m: i64, e: i64) -> Self {
        Self { m: m.into(), e }
    }

    /// The value of a finite f64.
    pub fn from_f64(x: f64) -> Self {
        let bits = x.to_bits();
        let exponent = (bits >> 52 & 0x7FF) as i64;
        let fraction = (bits & 0x000F_FFFF_FFFF_FFFF) as i64;
        let (m, e) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        Self::new(if x < 0.0 { -m } else { m }, e)
    }

    /// m and e.
    pub fn parts(self) -> (IBig, i64) {
        (self.m, self.e)
    }

    /// A nearby f64, for display; overflows to infinity and underflows to zero.
    pub fn to_f64(&self) -> f64 {
        let shift = (self.m.bit_len() as i64 - 60).max(0);
        let head = i64::try_from(&(self.m.clone() >> shift as usize)).unwrap_or(0) as f64;
        let e = (self.e + shift).clamp(-4000, 4000) as i32;
        head * 2_f64.powi(e / 2) * 2_f64.powi(e - e / 2)
    }

    /// The nearest f64 on either side, equal where it is one; tiny numbers lie between 0 and the least normal one.
    pub fn enclosure(&self) -> (f64, f64) {
        let end = |way: Way| {
            let near = self.clone().rounded(53, way);
            match (near.top(), way) {
                (1025.., Way::Down) => f64::MAX,
                (1025.., Way::Up) => f64::INFINITY,
                (..-1000, Way::Down) => 0.0,
                (..-1000, Way::Up) => f64::MIN_POSITIVE,
                _ => near.to_f64(),
            }
        };
        match self.sign() {
            Ordering::Equal => (0.0, 0.0),
            Ordering::Greater => (end(Way::Down), end(Way::Up)),
            Ordering::Less => {
                let (lo, hi) = self.negated().enclosure();
                (-hi, -lo)
            }
        }
    }

    /// Negative, zero or positive.
    pub fn sign(&self) -> Ordering {
        if self.m.is_zero() {
            Ordering::Equal
        } else if self.m.is_negative() {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    }

    /// The same times 2^k.
    pub fn scaled(&self, k: i64) -> Self {
        Self { m: self.m.clone(), e: self.e + k }
    }

    /// |x| < 2^top.
    pub fn top(&self) -> i64 {
        if self.m.is_zero() { i64::MIN / 4 } else { self.e + self.m.bit_len() as i64 }
    }

    /// -x.
    pub fn negated(&self) -> Self {
        Self { m: -self.m.clone(), e: self.e }
    }

    /// The product, exactly.
    pub fn times(&self, other: &Self) -> Self {
        Self { m: &self.m * &other.m, e: self.e + other.e }
    }

    fn rounded(self, bits: usize, way: Way) -> Self {
        let excess = self.m.bit_len().saturating_sub(bits);
        if excess == 0 {
            return self;
        }
        let m = if way == Way::Down { self.m >> excess } else { -((-self.m) >> excess) };
        Self { m, e: self.e + excess as i64 }
    }

    /// The sum, rounded; a number far below the other's last bit counts as nothing or as one step beyond it.
    fn plus(&self, other: &Self, bits: usize, way: Way) -> Self {
        let (big, small) = if self.top() >= other.top() { (self, other) } else { (other, self) };
        if small.m.is_zero() {
            return big.clone().rounded(bits, way);
        }
        let floor = big.e.min(big.top() - bits as i64) - 2;
        if small.top() < floor {
            let step = match (way, small.sign()) {
                (Way::Down, Ordering::Less) => -1,
                (Way::Up, Ordering::Greater) => 1,
                _ => return big.clone().rounded(bits, way),
            };
            return big.exact_plus(&Self::new(step, floor)).rounded(bits, way);
        }
        big.exact_plus(small).rounded(bits, way)
    }

    /// a - b, exactly, for two f64.
    pub fn difference(a: f64, b: f64) -> Self {
        Self::from_f64(a).exact_plus(&Self::from_f64(-b))
    }

    /// The sum, exactly.
    pub fn exact_plus(&self, other: &Self) -> Self {
        let e = self.e.min(other.e);
        let m = (self.m.clone() << (self.e - e) as usize) + (other.m.clone() << (other.e - e) as usize);
        Self { m, e }
    }

    /// The quotient by a positive number, rounded.
    fn over(&self, by: &Self, bits: usize, way: Way) -> Self {
        let shift = (bits + 2 + by.m.bit_len()).saturating_sub(self.m.bit_len());
        let shifted = self.m.clone() << shift;
        let down = |m: IBig| {
            let (q, r) = (&m / &by.m, &m % &by.m);
            if r.is_negative() { q - IBig::ONE } else { q }
        };
        let m = if way == Way::Down { down(shifted) } else { -down(-shifted) };
        Self { m, e: self.e - by.e - shift as i64 }.rounded(bits, way)
    }
}

impl PartialEq for Big {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let (a, b) = (self.sign(), other.sign());
        if a != b || a == Ordering::Equal {
            return a.partial_cmp(&b);
        }
        if self.top() != other.top() {
            let larger = self.top().cmp(&other.top());
            return Some(if a == Ordering::Less { larger.reverse() } else { larger });
        }
        Some(self.exact_plus(&other.negated()).sign())
    }
}

/// All numbers from `lo` to `hi`.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub lo: Big,
    /// The upper end.
    pub hi: Big,
}

impl Interval {
    /// One number.
    pub fn point(x: Big) -> Self {
        Self { lo: x.clone(), hi: x }
    }

    /// One f64.
    pub fn from_f64(x: f64) -> Self {
        Self::point(Big::from_f64(x))
    }

    /// p / q for a positive q.
    pub fn quotient(p: &IBig, q: &IBig, bits: usize) -> Self {
        let near = |m: &IBig| {
            let x = Big { m: m.clone(), e: 0 };
            Self { lo: x.clone().rounded(bits, Way::Down), hi: x.rounded(bits, Way::Up) }
        };
        near(p).over(&near(q), bits)
    }

    /// The sum.
    pub fn plus(&self, other: &Self, bits: usize) -> Self {
        Self { lo: self.lo.plus(&other.lo, bits, Way::Down), hi: self.hi.plus(&other.hi, bits, Way::Up) }
    }

    /// The difference.
    pub fn minus(&self, other: &Self, bits: usize) -> Self {
        self.plus(&Self { lo: other.hi.negated(), hi: other.lo.negated() }, bits)
    }

    /// The product.
    pub fn times(&self, other: &Self, bits: usize) -> Self {
        let ends =
            [self.lo.times(&other.lo), self.lo.times(&other.hi), self.hi.times(&other.lo), self.hi.times(&other.hi)];
        let mut lo = &ends[0];
        let mut hi = &ends[0];
        for end in &ends[1..] {
            lo = if end < lo { end } else { lo };
            hi = if end > hi { end } else { hi };
        }
        Self { lo: lo.clone().rounded(bits, Way::Down), hi: hi.clone().rounded(bits, Way::Up) }
    }

    /// The product with a big float.
    pub fn scaled_by(&self, w: &Big, bits: usize) -> Self {
        let (a, b) = (self.lo.times(w), self.hi.times(w));
        let (lo, hi) = if w.sign() == Ordering::Less { (b, a) } else { (a, b) };
        Self { lo: lo.rounded(bits, Way::Down), hi: hi.rounded(bits, Way::Up) }
    }

    /// The quotient by a positive interval.
    pub fn over(&self, by: &Self, bits: usize) -> Self {
        let under =
            |x: &Big, small: bool| if (x.sign() == Ordering::Less) == small { by.lo.clone() } else { by.hi.clone() };
        Self {
            lo: self.lo.over(&under(&self.lo, true), bits, Way::Down),
            hi: self.hi.over(&under(&self.hi, false), bits, Way::Up),
        }
    }

    /// max(0, x).
    pub fn relu(&self) -> Self {
        let part = |x: &Big| if x.sign() == Ordering::Less { Big::zero() } else { x.clone() };
        Self { lo: part(&self.lo), hi: part(&self.hi) }
    }

    /// The smallest interval that holds both.
    pub fn hull(&self, other: &Self) -> Self {
        let lo = if other.lo < self.lo { &other.lo } else { &self.lo };
        let hi = if other.hi > self.hi { &other.hi } else { &self.hi };
        Self { lo: lo.clone(), hi: hi.clone() }
    }

    /// e^x: the Taylor series of x / 2^k, squared k times; the remainder is below twice the first omitted term.
    pub fn exp(&self, bits: usize) -> Self {
        Self { lo: exp(&self.lo, bits).lo, hi: exp(&self.hi, bits).hi }
    }
}

/// Beyond 2^40 in size an exponent is only known to be beyond.
const FAR: i64 = 40;

fn exp(x: &Big, bits: usize) -> Interval {
    if x.sign() == Ordering::Equal {
        return Interval::point(Big::new(1, 0));
    }
    if x.top() > FAR {
        let (tiny, huge) = (Big::new(1, -(1 << FAR)), Big::new(1, 1 << (FAR + 22)));
        let negative = x.sign() == Ordering::Less;
        return if negative {
            Interval { lo: Big::zero(), hi: tiny }
        } else {
            Interval { lo: Big::new(1, 1 << FAR), hi: huge }
        };
    }
    let halvings = (x.top() + 8 + bits.isqrt() as i64).max(0);
    let work = bits + halvings as usize + 32;
    let y = Interval::point(x.scaled(-halvings));
    let (mut sum, mut term) = (Interval::point(Big::new(1, 0)), Interval::point(Big::new(1, 0)));
    for i in 1.. {
        term = term.times(&y, work).over(&Interval::point(Big::new(i, 0)), work);
        let size = term.lo.top().max(term.hi.top());
        if size < -(work as i64) {
            let rest = Big::new(1, size + 1);
            sum = sum.plus(&Interval { lo: rest.negated(), hi: rest }, work);
            break;
        }
        sum = sum.plus(&term, work);
    }
    for _ in 0..halvings {
        sum = sum.times(&sum, work);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_encloses_the_correctly_rounded_one_and_shrinks() {
        for x in [-700.5, -3.25, -1e-9, 1e-300, 0.5, 1.0, 20.0] {
            let enclosure = Interval::from_f64(x).exp(100);
            let nearest = core_math::exp(x);
            assert!(
                enclosure.lo <= Big::from_f64(nearest.next_up()) && enclosure.hi >= Big::from_f64(nearest.next_down())
            );
            let width = enclosure.minus(&Interval::point(enclosure.lo.clone()), 100).hi;
            assert!(width.top() < enclosure.hi.top() - 90, "{x}");
        }
        // e to 36 digits.
        let e = Interval::from_f64(1.0).exp(120);
        let digits = 271_828_182_845_904_523_536_028_747_135_266_249_i128;
        let low = Interval::point(Big { m: IBig::from(digits), e: 0 });
        let scale = Interval::point(Big { m: IBig::from(10_i128.pow(35)), e: 0 });
        let product = e.times(&scale, 200);
        assert!(product.hi > low.lo && product.lo < Big { m: IBig::from(digits + 1), e: 0 });
    }

    #[test]
    fn far_apart_sums_stay_outward() {
        let sum = Interval::from_f64(1.0).plus(&Interval::point(Big::new(-1, -(1 << 40))), 64);
        assert!(sum.lo < Big::new(1, 0) && sum.hi == Big::new(1, 0));
        let third = Interval::from_f64(-1.0).over(&Interval::from_f64(3.0), 80);
        let back = third.times(&Interval::from_f64(3.0), 80);
        assert!(back.lo <= Big::new(-1, 0) && back.hi >= Big::new(-1, 0) && third.lo < third.hi);
    }
}
