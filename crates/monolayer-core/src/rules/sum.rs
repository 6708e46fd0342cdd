//! Sums as programs compute them: the one rule of rounding.

use super::ball::{BITS, Ball, bits, product, shift};
use crate::number::{Dyadic, Format};

/// Which arithmetic is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// Real numbers.
    Real,
    /// Programs in a binary format, whose exp is within so many units in the last place.
    Float {
        /// The format.
        format: Format,
        /// Units in the last place.
        exp_ulp: u32,
    },
}

impl Arithmetic {
    /// Bits of a ball that are worth keeping: for binary32 so few that a product with a weight has 62.
    pub fn bits(self) -> i32 {
        if matches!(self, Self::Float { format: Format::F32, .. }) { 37 } else { BITS }
    }
}

/// What the rounding of a product may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No product: a number that is added.
    Addend,
    /// A product with a power of two, at least 1 in size: never rounded.
    Doubled,
    /// A product with a smaller power of two: rounded only where it underflows.
    Halved,
    /// Any other product.
    Product,
}

/// The kind of a product with a weight.
fn kind(w: Dyadic) -> Kind {
    match (w.m.unsigned_abs(), w.e) {
        (1, 0..) => Kind::Doubled,
        (1, _) => Kind::Halved,
        _ => Kind::Product,
    }
}

/// An addend of a sum: (m +- (r + shared)) 2^e, below 2^top in size (2^(top - 2) or more, unless it is zero).
#[derive(Debug, Clone, Copy)]
pub struct Term {
    m: i128,
    r: u128,
    /// What is accounted for elsewhere: it counts for the sizes of partial sums alone.
    shared: u128,
    e: i32,
    top: i32,
    kind: Kind,
}

impl Term {
    /// A number that is added as it is.
    #[inline]
    pub fn addend(x: Ball) -> Self {
        Self::bounded(x.m.into(), (x.r.into(), 0), x.e, x.top(), Kind::Addend)
    }

    #[inline]
    fn bounded(m: i128, (r, shared): (u128, u128), e: i32, top: i32, kind: Kind) -> Self {
        // Zero is below any power of two.
        let zero = m == 0 && r == 0 && shared == 0;
        Self { m, r, shared, e, top: if zero { i32::MIN } else { top }, kind }
    }

    /// The product of a weight and a number that the program has computed.
    #[inline]
    pub fn weighted(w: Dyadic, x: Ball) -> Self {
        Self::weighted_apart(w, x, x)
    }

    /// The same for a number within `whole`, whose midpoint and exponent are those of `own`: what lies between them is shared
    /// with other terms, and left out of the sum.
    #[inline]
    pub fn weighted_apart(w: Dyadic, own: Ball, whole: Ball) -> Self {
        let of = |r: u64| u128::from(w.m.unsigned_abs()) * u128::from(r);
        let (top, radii) = (w.top() + 1 + whole.top(), (of(own.r), of(whole.r - own.r)));
        Self::bounded(i128::from(w.m) * i128::from(own.m), radii, w.e + own.e, top, kind(w))
    }

    /// The product of two numbers that the program has computed.
    pub fn product(a: Ball, b: Ball) -> Self {
        let (m, r) = product(a, b);
        Self::bounded(m, (r, 0), a.e + b.e, a.top() + b.top(), Kind::Product)
    }

    fn is_zero(&self) -> bool {
        self.top == i32::MIN
    }

    /// Whether it is known exactly.
    fn is_point(&self) -> bool {
        self.r == 0 && self.shared == 0
    }

    /// Whether it is a multiple of 2^e, surely.
    #[inline]
    fn on_grid(&self, e: i32) -> bool {
        self.is_point() && self.m.trailing_zeros() as i32 + self.e >= e
    }

    /// Whether it is a number of the format, so that a product is exact.
    fn fits(&self, format: Format) -> bool {
        let wide = bits(self.m.unsigned_abs()) - self.m.trailing_zeros() as i32;
        self.on_grid(format.least()) && wide <= format.bits()
    }
}

/// A sum: the exact value for the numbers that the program adds, and how far rounding takes the program from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// Encloses the exact sum.
    pub exact: Ball,
    /// Encloses what rounding adds to it.
    pub rounding: Ball,
    /// Bits that are worth keeping.
    bits: i32,
}

impl Sum {
    /// What the program computes.
    pub fn computed(self) -> Ball {
        self.exact.plus(self.rounding).cut(self.bits)
    }
}

/// Sums over the terms, in units of 2^e.
#[derive(Default)]
struct Totals {
    m: i128,
    r: u128,
    /// Of the positive terms, and of the negative ones.
    positive: u128,
    negative: u128,
    /// How many terms are not zero, and how many of them are not known exactly.
    n: usize,
    inexact: usize,
    /// The sizes of the products among the latter that may be rounded.
    products: u128,
    e: i32,
}

fn totals(terms: &[Term], format: Option<Format>) -> Totals {
    let least = format.map_or(-i32::MAX / 4, Format::least);
    let top = terms.iter().fold(least, |top, term| top.max(term.top));
    // Fewer than 2^room terms below 2^top, and their radii: all sums stay below 2^126.
    let room = bits(terms.len() as u128) + 1;
    let mut all = Totals { e: top + room - 125, ..Totals::default() };
    for term in terms.iter().filter(|term| !term.is_zero()) {
        let by = term.e - all.e;
        all.n += 1;
        if term.is_point() && (0..128).contains(&by) {
            let m = term.m << by;
            all.m += m;
            *(if m < 0 { &mut all.negative } else { &mut all.positive }) += m.unsigned_abs();
            continue;
        }
        let (m, r) = shift(term.m, term.r, by);
        let reach = if term.shared == 0 { r } else { r + shift(0, term.shared, by).1 };
        all.m += m;
        all.r += r;
        all.positive += (m + reach.cast_signed()).max(0).unsigned_abs();
        all.negative += (reach.cast_signed() - m).max(0).unsigned_abs();
        if !term.is_point() {
            all.inexact += 1;
            all.products += if term.kind == Kind::Product { m.unsigned_abs() + reach } else { 0 };
        }
    }
    all
}

/// A term of few bits, for binary32: (m +- r) 2^e, or (m +- reach) 2^e with what is shared.
#[derive(Clone, Copy)]
struct Short {
    m: i64,
    r: i64,
    reach: i64,
    e: i32,
    top: i32,
    kind: Kind,
}

impl Short {
    /// The product; its top is below that of everything for zero, and `i32::MAX` where it does not fit 62 bits.
    #[inline]
    fn new((w, own, whole): (Dyadic, Ball, Ball)) -> Self {
        let far = whole.m.unsigned_abs() + whole.r;
        let size = w.m.unsigned_abs();
        let wide = 128 - far.leading_zeros() as i32 - size.leading_zeros() as i32;
        let top = match (far == 0 || size == 0, wide <= 62) {
            (true, _) => i32::MIN,
            (_, true) => w.e + own.e + wide,
            _ => i32::MAX,
        };
        let (r, reach) = (size.wrapping_mul(own.r) as i64, size.wrapping_mul(whole.r) as i64);
        Self { m: w.m.wrapping_mul(own.m), r, reach, e: w.e + own.e, top, kind: kind(w) }
    }

    fn term(&self) -> Term {
        let (r, reach) = (self.r as u128, self.reach as u128);
        Term { m: self.m.into(), r, shared: reach - r, e: self.e, top: self.top, kind: self.kind }
    }
}

/// The same for terms of few bits, in 62 bits: enough where some term is not known exactly anyway.
fn short_totals(terms: &[Short], top: i32) -> Totals {
    let e = top.max(Format::F32.least()) + bits(terms.len() as u128) + 1 - 61;
    let (mut m, mut r, mut positive, mut negative, mut products) = (0_i64, 0_i64, 0_i64, 0_i64, 0_i64);
    let (mut n, mut inexact) = (0, 0);
    for term in terms.iter().filter(|term| term.top != i32::MIN) {
        let by = term.e - e;
        let (own, radius, reach) = if by >= 0 {
            (term.m << by, term.r << by, term.reach << by)
        } else {
            let by = by.unsigned_abs().min(63);
            // Rounding down moves the midpoint and each radius by less than one unit.
            (term.m >> by, (term.r >> by) + 2, (term.reach >> by) + 2)
        };
        m += own;
        r += radius;
        positive += (own + reach).max(0);
        negative += (reach - own).max(0);
        n += 1;
        if term.reach > 0 {
            inexact += 1;
            products += if term.kind == Kind::Product { own.abs() + reach } else { 0 };
        }
    }
    let [positive, negative, r, products] = [positive, negative, r, products].map(|x| u128::from(x.unsigned_abs()));
    Totals { m: m.into(), r, positive, negative, n, inexact, products, e }
}

/// The sum of products of weights and numbers, each within its ball of `whole` (see [`Term::weighted_apart`]), and of a number.
pub fn weighted_sum(
    arithmetic: Arithmetic,
    products: impl Iterator<Item = (Dyadic, Ball, Ball)>,
    addend: Ball,
) -> Option<Sum> {
    let one = (Dyadic::new(1, 0), addend, addend);
    if let Arithmetic::Float { format: Format::F32, .. } = arithmetic {
        let mut terms: Vec<Short> = products.map(Short::new).collect();
        terms.push(Short { kind: Kind::Addend, ..Short::new(one) });
        let (mut top, mut point) = (i32::MIN, true);
        for term in &terms {
            top = top.max(term.top);
            point &= term.reach == 0;
        }
        if top == i32::MAX {
            return None;
        }
        if point {
            return sum(arithmetic, terms.iter().map(Short::term));
        }
        let points = terms.iter().filter(|term| term.reach == 0).map(Short::term);
        return finish(arithmetic, Format::F32, &short_totals(&terms, top), points);
    }
    let products = products.map(|(w, own, whole)| Term::weighted_apart(w, own, whole));
    sum(arithmetic, products.chain([Term::addend(addend)]))
}

/// The sum of terms in any order, each product fused with an addition or rounded by itself. Nothing where a partial sum
/// may overflow.
///
/// **Lemma 1.** Let p be the precision, eta the smallest positive number, and let no computed partial sum exceed P in size,
/// 2^k <= P < 2^(k+1). Call a term fine if it is not a multiple of s = max(2^(k-p+1), eta). Then a computed sum of n terms
/// differs from the exact one by at most
///
///   min(n - 1, 2 `fine`) 2^(k-p) + sum over inexact products of (2^-p |term| + eta / 2);
///
/// a product with a power of two only loses eta / 2, and nothing if that is at least 1.
///
/// *Proof.* An addition rounds by at most half a spacing at its result: 2^(k-p); there are n - 1. (A fused one may also
/// lose eta / 2 where its product is not a multiple of eta; the second sum has that.) For the other bound, a sum of terms
/// that are multiples of s is a multiple of s below 2^p s, so it is exact. Give each computed partial sum with a fine term
/// in it a fine leaf: that of the summand which is the multiple of the smaller power of two. Where the sum with leaf l is
/// rounded in binade j, it becomes a multiple of 2^(j-p+1), and so is every later sum with leaf l until the next rounding,
/// which therefore happens in a higher binade. So the errors of leaf l are at most 2^(j-p) for different j <= k, in all
/// less than 2 2^(k-p).
///
/// P: the exact sum of any of the terms lies between minus the sum of all negative and the sum of all positive terms, and
/// any order is within 2 n 2^-p (sum of absolute values) + 2 n eta of it if n <= 2^(p-1).
pub fn sum(arithmetic: Arithmetic, terms: impl Iterator<Item = Term>) -> Option<Sum> {
    let Arithmetic::Float { format, .. } = arithmetic else {
        return Some(Sum { exact: real_sum(terms), rounding: Ball::ZERO, bits: BITS });
    };
    let terms: Vec<Term> = terms.collect();
    finish(arithmetic, format, &totals(&terms, Some(format)), terms.iter().copied().filter(Term::is_point))
}

/// Lemma 1, from the totals and the terms that are known exactly.
fn finish(arithmetic: Arithmetic, format: Format, all: &Totals, points: impl Iterator<Item = Term>) -> Option<Sum> {
    let exact = Ball::pack(all.m, all.r, all.e);
    let (n, p) = (all.n, format.bits());
    if n == 0 {
        return Some(Sum { exact: Ball::ZERO, rounding: Ball::ZERO, bits: BITS });
    }
    if n >= 1 << (p - 1).min(30) {
        return None;
    }
    let eta = units(format.least() - all.e);
    let drift = ((all.positive + all.negative) >> p) + 1;
    let largest = all.positive.max(all.negative) + 2 * n as u128 * (drift + eta);
    let k = all.e + bits(largest) - 1;
    // Below half of the largest number nothing overflows, whatever is rounded up.
    if k >= format.top() - 1 {
        return None;
    }
    let grid = (k - p + 1).max(format.least());
    let (mut fine, mut lossy, mut products) = (all.inexact, all.inexact, all.products);
    if all.inexact < n {
        for term in points.filter(|term| !term.is_zero() && !term.on_grid(grid)) {
            fine += 1;
            if term.kind != Kind::Addend && !term.fits(format) {
                lossy += 1;
                products += shift(0, term.m.unsigned_abs(), term.e - all.e).1;
            }
        }
    }
    let additions = (n - 1).min(2 * fine) as u128 * units(k - p - all.e);
    let products = (products >> p) + u128::from(lossy > 0) + lossy as u128 * units(format.least() - 1 - all.e);
    Some(Sum { exact, rounding: Ball::pack(0, additions + products, all.e), bits: arithmetic.bits() })
}

/// 2^e, or 1 where that is less.
fn units(e: i32) -> u128 {
    1 << e.max(0)
}

/// The sum in real arithmetic.
pub fn real_sum(terms: impl Iterator<Item = Term>) -> Ball {
    let all = totals(&terms.collect::<Vec<_>>(), None);
    Ball::pack(all.m, all.r, all.e)
}
