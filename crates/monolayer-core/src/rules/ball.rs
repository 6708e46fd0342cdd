//! Enclosures: an integer midpoint and an integer radius on a power of two.

use crate::exact::big::Big;
use crate::exact::real::{Real, Scaled};
use crate::number::Dyadic;

/// All real numbers between (m - r) 2^e and (m + r) 2^e. Midpoint and radius have at most 62 and 63 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ball {
    /// The midpoint.
    pub m: i64,
    /// The radius; 0 for a number that is known exactly.
    pub r: u64,
    /// The exponent of both.
    pub e: i32,
}

/// Bits of a midpoint.
pub(crate) const BITS: i32 = 62;

/// How many bits a number has: x < 2^bits.
pub(crate) fn bits(x: u128) -> i32 {
    128 - x.leading_zeros() as i32
}

/// m 2^by and r 2^by, the first rounded down and the second up, so that the radius still covers both.
pub(crate) fn shift(m: i128, r: u128, by: i32) -> (i128, u128) {
    if by >= 0 {
        return (m << by, r << by);
    }
    let by = by.unsigned_abs();
    if by > 126 {
        return (0, u128::from(m != 0 || r != 0));
    }
    let lost = m & ((1 << by) - 1) != 0 || r & ((1 << by) - 1) != 0;
    // Rounding down moves the midpoint and the radius by less than one unit each.
    (m >> by, (r >> by) + 2 * u128::from(lost))
}

impl Ball {
    /// Zero.
    pub const ZERO: Self = Self { m: 0, r: 0, e: 0 };

    /// 2^e.
    pub const fn power(e: i32) -> Self {
        Self { m: 1, r: 0, e }
    }

    /// A number of a file.
    pub fn exact(x: Dyadic) -> Self {
        Self { m: x.m, r: 0, e: x.e }
    }

    /// A whole number.
    pub fn whole(n: usize) -> Self {
        Self::pack(n as i128, 0, 0)
    }

    /// The smallest ball of this kind around (m +- r) 2^e.
    pub fn pack(m: i128, r: u128, e: i32) -> Self {
        if m == 0 && r == 0 {
            return Self::ZERO;
        }
        let zeros = if r == 0 { m.trailing_zeros() as i32 } else { 0 };
        let (m, e) = (m >> zeros, e + zeros);
        let by = (bits(m.unsigned_abs()).max(bits(r)) - BITS).max(0);
        let (m, r) = shift(m, r, -by);
        Self { m: m as i64, r: r as u64, e: e + by }
    }

    /// A ball around an interval; nothing where that is unbounded or its exponents are out of range.
    pub fn around(x: &Real) -> Option<Self> {
        let end = |x: &Scaled, up: bool| {
            let (m, e) = x.parts();
            let more = m.bits().saturating_sub(BITS as usize);
            let Big::Small(m) = m.shr(more) else { return None };
            let e = i32::try_from(e + more as i64).ok().filter(|e| e.unsigned_abs() < 1 << 28)?;
            Some(Self { m: m + i64::from(up && more > 0), r: 0, e: if m == 0 { 0 } else { e } })
        };
        let (low, high) = x.ends()?;
        Some(end(low, false)?.hull(end(high, true)?))
    }

    /// The interval.
    pub fn real(self) -> Real {
        let (low, high, e) = self.ends();
        Real::new(Scaled::new(Big::from(low), e.into()), Scaled::new(Big::from(high), e.into()))
    }

    /// Both ends as numbers m 2^e: (low, high, e).
    pub fn ends(self) -> (i128, i128, i32) {
        let (m, r) = (i128::from(self.m), i128::from(self.r));
        (m - r, m + r, self.e)
    }

    /// |m| + r in units of 2^e.
    pub(crate) fn reach(self) -> u128 {
        u128::from(self.m.unsigned_abs()) + u128::from(self.r)
    }

    /// All numbers of size at most that of the ball's farthest.
    pub fn within(self) -> Self {
        Self::pack(0, self.reach(), self.e)
    }

    /// The size of the ball's farthest number, from above.
    pub fn size(self) -> Self {
        let size = Self::pack(self.reach().cast_signed(), 0, self.e);
        Self { m: size.m + size.r as i64, r: 0, e: size.e }
    }

    /// The radius around zero.
    pub fn spread(self) -> Self {
        Self::pack(0, self.r.into(), self.e)
    }

    /// The midpoint alone.
    pub fn middle(self) -> Self {
        Self { r: 0, ..self }
    }

    /// Whether it is the number zero.
    pub fn is_zero(self) -> bool {
        self.m == 0 && self.r == 0
    }

    /// Whether it is known exactly, and a multiple of 2^e.
    pub fn is_multiple_of(self, e: i32) -> bool {
        self.r == 0 && (self.m == 0 || self.e + self.m.trailing_zeros() as i32 >= e)
    }

    /// Whether every number in it is above zero.
    pub fn is_positive(self) -> bool {
        i128::from(self.m) > i128::from(self.r)
    }

    /// Whether every number in it is below zero.
    pub fn is_negative(self) -> bool {
        self.minus().is_positive()
    }

    /// Whether no number in it is below zero.
    pub fn is_not_negative(self) -> bool {
        i128::from(self.m) >= i128::from(self.r)
    }

    /// Whether every number in it is below every number in another.
    pub fn is_below(self, other: Self) -> bool {
        other.plus(self.minus()).is_positive()
    }

    /// An exponent above it: every number in it is below 2^top in size.
    #[inline]
    pub fn top(self) -> i32 {
        self.e + 64 - (self.m.unsigned_abs() + self.r).leading_zeros() as i32
    }

    /// The negative of it.
    pub fn minus(self) -> Self {
        Self { m: -self.m, ..self }
    }

    /// The sum, in real arithmetic.
    pub fn plus(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return if self.is_zero() { other } else { self };
        }
        let e = self.top().max(other.top()) - 124;
        let e = e.max(self.e.min(other.e));
        let (a, s) = shift(self.m.into(), self.r.into(), self.e - e);
        let (b, t) = shift(other.m.into(), other.r.into(), other.e - e);
        Self::pack(a + b, s + t, e)
    }

    /// The product, in real arithmetic.
    pub fn times(self, other: Self) -> Self {
        let (m, r) = product(self, other);
        Self::pack(m, r, self.e + other.e)
    }

    /// x 2^by.
    pub fn scaled(self, by: i32) -> Self {
        if self.is_zero() { self } else { Self { e: self.e + by, ..self } }
    }

    /// The ball, and the same with its radius widened by that of another: midpoints and exponents are equal.
    pub fn widened(self, by: Self) -> (Self, Self) {
        if by.is_zero() {
            return (self, self);
        }
        let e = (self.top().max(by.top()) - BITS + 1).max(self.e.min(by.e));
        let (m, r) = shift(self.m.into(), self.r.into(), self.e - e);
        let (_, more) = shift(0, by.reach(), by.e - e);
        let own = Self { m: m as i64, r: r as u64, e };
        (own, Self { r: (r + more) as u64, ..own })
    }

    /// max(x, 0) of every x in it.
    pub fn relu(self) -> Self {
        if self.is_not_negative() {
            return self;
        }
        // From 0 to m + r.
        let high = (i128::from(self.m) + i128::from(self.r)).max(0);
        Self::pack(high, high.unsigned_abs(), self.e - 1)
    }

    /// The smallest ball around both.
    pub fn hull(self, other: Self) -> Self {
        let middle = self.middle().plus(other.middle()).scaled(-1).middle();
        let reach = |x: Self| middle.minus().plus(x).within();
        let (a, b) = (reach(self), reach(other));
        middle.plus(if a.size().is_below(b.size()) { b } else { a })
    }

    /// From the lower of both lower ends to the upper of both upper ends: of many balls, one after another, no more than their span.
    pub fn span(self, other: Self) -> Self {
        let [a, b] = [(self, other.e), (other, self.e)].map(|(x, e)| if x.is_zero() { Self { e, ..x } } else { x });
        let e = (a.top().max(b.top()) - 124).max(a.e.min(b.e));
        let [(a, s), (b, t)] = [a, b].map(|x| shift(x.m.into(), x.r.into(), x.e - e));
        let (s, t) = (s.cast_signed(), t.cast_signed());
        let (low, high) = ((a - s).min(b - t), (a + s).max(b + t));
        Self::pack(low + high, (high - low).unsigned_abs(), e - 1)
    }

    /// A number that is at least |x| / y for every x in it and y in `other`, which must be positive.
    pub fn quotient_above(self, other: Self) -> Option<Self> {
        if !other.is_positive() || self.is_zero() {
            return other.is_positive().then_some(Self::ZERO);
        }
        let least = (i128::from(other.m) - i128::from(other.r)).unsigned_abs();
        let left = self.reach().leading_zeros().saturating_sub(1).min(64);
        let quotient = (self.reach() << left) / least + 1;
        Some(Self::pack(0, quotient, self.e - other.e - left as i32).size())
    }

    /// A number near the quotient of the midpoints; nothing for a zero divisor.
    pub fn near_quotient(self, other: Self) -> Option<Self> {
        let quotient = (i128::from(self.m) << 62).checked_div(other.m.into())?;
        Some(Self::pack(quotient, 0, self.e - other.e - 62).middle())
    }
}

/// Midpoint and radius of the product of two balls, in units of the product of theirs.
pub(crate) fn product(a: Ball, b: Ball) -> (i128, u128) {
    let m = i128::from(a.m) * i128::from(b.m);
    if a.r == 0 && b.r == 0 {
        return (m, 0);
    }
    let of = |x: u64, y: u64| u128::from(x) * u128::from(y);
    (m, of(a.m.unsigned_abs(), b.r) + of(b.m.unsigned_abs(), a.r) + of(a.r, b.r))
}
