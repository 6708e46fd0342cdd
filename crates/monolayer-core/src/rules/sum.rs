//! Sums as programs compute them: the one rule of rounding.

use super::ball::{Ball, bits, product, shift};
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

/// An addend of a sum: (m +- r) 2^e.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    m: i128,
    r: u128,
    e: i32,
    kind: Kind,
}

impl Term {
    /// A number that is added as it is.
    pub fn addend(x: Ball) -> Self {
        Self { m: x.m.into(), r: x.r.into(), e: x.e, kind: Kind::Addend }
    }

    /// The product of a weight and a number that the program has computed.
    pub fn weighted(w: Dyadic, x: Ball) -> Self {
        let m = i128::from(w.m) * i128::from(x.m);
        let r = u128::from(w.m.unsigned_abs()) * u128::from(x.r);
        let kind = match (w.m.unsigned_abs(), w.e) {
            (1, 0..) => Kind::Doubled,
            (1, _) => Kind::Halved,
            _ => Kind::Product,
        };
        Self { m, r, e: w.e + x.e, kind }
    }

    /// The product of two numbers that the program has computed.
    pub fn product(a: Ball, b: Ball) -> Self {
        let (m, r) = product(a, b);
        Self { m, r, e: a.e + b.e, kind: Kind::Product }
    }

    fn is_zero(&self) -> bool {
        self.m == 0 && self.r == 0
    }

    /// Whether it is a multiple of 2^e, surely.
    fn on_grid(&self, e: i32) -> bool {
        self.r == 0 && self.m.trailing_zeros() as i32 + self.e >= e
    }

    /// Whether the program's product is exact.
    fn is_exact(&self, format: Format) -> bool {
        match self.kind {
            Kind::Addend | Kind::Doubled => true,
            Kind::Halved | Kind::Product => {
                let zeros = self.m.trailing_zeros() as i32;
                self.on_grid(format.least()) && bits(self.m.unsigned_abs()) - zeros <= format.bits()
            }
        }
    }
}

/// A sum: the exact value for the numbers that the program adds, and how far rounding takes the program from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// Encloses the exact sum.
    pub exact: Ball,
    /// Encloses what rounding adds to it.
    pub rounding: Ball,
}

impl Sum {
    /// What the program computes.
    pub fn computed(self) -> Ball {
        self.exact.plus(self.rounding)
    }
}

/// Sums of absolute values of terms, and of the terms, in units of 2^e.
struct Totals {
    m: i128,
    r: u128,
    positive: u128,
    negative: u128,
    e: i32,
}

fn totals(terms: &[Term], least: i32) -> Totals {
    let tops = terms.iter().filter(|t| !t.is_zero()).map(|t| t.e + bits(t.m.unsigned_abs() + t.r));
    let top = tops.max().unwrap_or(least).max(least);
    // Fewer than 2^room terms below 2^top, and their radii: all sums stay below 2^126.
    let room = bits(terms.len() as u128) + 1;
    let mut all = Totals { m: 0, r: 0, positive: 0, negative: 0, e: top + room - 125 };
    for term in terms {
        let (m, r) = shift(term.m, term.r, term.e - all.e);
        all.m += m;
        all.r += r;
        all.positive += (m + r.cast_signed()).max(0).unsigned_abs();
        all.negative += (r.cast_signed() - m).max(0).unsigned_abs();
    }
    all
}

/// The sum of terms in any order, each product fused with an addition or rounded by itself. Nothing where a partial sum
/// may overflow.
///
/// **Lemma 1.** Let p be the precision, eta the smallest positive number, and let no computed partial sum exceed P in size,
/// 2^k <= P < 2^(k+1). Call a term fine if it is not a multiple of s = max(2^(k-p+1), eta). Then a computed sum of n terms
/// differs from the exact one by at most
///
///   min(n - 1, 2 `fine`) 2^(k-p) + sum over inexact products of (2^(top-p) + eta / 2),
///
/// where 2^top <= |term| < 2^(top+1); a product with a power of two only loses eta / 2, and nothing if that is at least 1.
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
pub fn sum(arithmetic: Arithmetic, terms: &[Term]) -> Option<Sum> {
    let Arithmetic::Float { format, .. } = arithmetic else {
        let all = totals(terms, -i32::MAX / 4);
        return Some(Sum { exact: Ball::pack(all.m, all.r, all.e), rounding: Ball::ZERO });
    };
    let all = totals(terms, format.least());
    let exact = Ball::pack(all.m, all.r, all.e);
    let (n, p) = (terms.iter().filter(|t| !t.is_zero()).count(), format.bits());
    if n == 0 {
        return Some(Sum { exact: Ball::ZERO, rounding: Ball::ZERO });
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
    let fine = terms.iter().filter(|t| !t.is_zero() && !t.on_grid(grid)).count();
    let additions = (n - 1).min(2 * fine) as u128 * units(k - p - all.e);
    let products = terms.iter().filter(|t| !t.is_zero() && !t.is_exact(format));
    let mut error = additions;
    for term in products {
        error += units(format.least() - 1 - all.e);
        if term.kind == Kind::Product {
            let top = term.e + bits(term.m.unsigned_abs() + term.r) - 1;
            error += units(top - p - all.e);
        }
    }
    Some(Sum { exact, rounding: Ball::pack(0, error, all.e) })
}

/// 2^e, or 1 where that is less.
fn units(e: i32) -> u128 {
    1 << e.max(0)
}

/// The sum in real arithmetic.
pub fn real_sum(terms: &[Term]) -> Ball {
    let all = totals(terms, -i32::MAX / 4);
    Ball::pack(all.m, all.r, all.e)
}
