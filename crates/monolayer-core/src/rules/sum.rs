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

/// An addend of a sum: (m +- (r + shared)) 2^e, below 2^top in size.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    m: i128,
    r: u128,
    /// What is accounted for elsewhere: it counts for the sizes of partial sums alone.
    shared: u128,
    e: i32,
    /// Below that of everything for zero.
    top: i32,
    /// Whether it is a product that may be rounded: with a power of two only underflow rounds.
    rounds: bool,
}

impl Term {
    #[inline]
    fn new(m: i128, (r, shared): (u128, u128), e: i32, top: i32, rounds: bool) -> Self {
        let zero = m == 0 && r == 0 && shared == 0;
        Self { m, r, shared, e, top: if zero { i32::MIN } else { top }, rounds }
    }

    /// A number that is added as it is.
    #[inline]
    pub fn addend(x: Ball) -> Self {
        Self::new(x.m.into(), (x.r.into(), 0), x.e, x.top(), false)
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
        Self::new(i128::from(w.m) * i128::from(own.m), radii, w.e + own.e, top, w.m.unsigned_abs() != 1)
    }

    /// The product of two numbers that the program has computed.
    pub fn product(a: Ball, b: Ball) -> Self {
        let (m, r) = product(a, b);
        Self::new(m, (r, 0), a.e + b.e, a.top() + b.top(), true)
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
}

impl Sum {
    /// What the program computes.
    pub fn computed(self) -> Ball {
        self.exact.plus(self.rounding)
    }
}

/// Sums over the terms, in units of 2^e.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) m: i128,
    pub(super) r: u128,
    /// Bounds of the sum of the positive terms, and of that of the negative ones.
    pub(super) positive: u128,
    pub(super) negative: u128,
    /// How many terms are not zero, and how many of them are not known exactly.
    pub(super) n: usize,
    pub(super) inexact: usize,
    /// The sizes of the products among the latter that may be rounded.
    pub(super) products: u128,
    pub(super) e: i32,
}

impl Totals {
    /// Adds a term that is below 2^(e + 124) in size.
    #[inline]
    fn add(&mut self, term: &Term) {
        if term.top == i32::MIN {
            return;
        }
        let by = term.e - self.e;
        let (m, r) = shift(term.m, term.r, by);
        let reach = if term.shared == 0 { r } else { r + shift(0, term.shared, by).1 };
        self.m += m;
        self.r += r;
        self.positive += (m + reach.cast_signed()).max(0).unsigned_abs();
        self.negative += (reach.cast_signed() - m).max(0).unsigned_abs();
        self.n += 1;
        if !term.is_point() {
            self.inexact += 1;
            self.products += if term.rounds { m.unsigned_abs() + reach } else { 0 };
        }
    }

    fn of(terms: &[Term], format: Option<Format>) -> Self {
        let mut all = Self::within(terms, (i32::MIN, 0), format);
        terms.iter().for_each(|term| all.add(term));
        all
    }

    /// Nothing yet, in units in which these terms and so many others, below 2^top, can be added up.
    fn within(terms: &[Term], (top, others): (i32, usize), format: Option<Format>) -> Self {
        let least = format.map_or(-i32::MAX / 4, Format::least).max(top);
        let top = terms.iter().fold(least, |top, term| top.max(term.top));
        // Fewer than 2^room terms below 2^top, and their radii: all sums stay below 2^126.
        let room = bits((terms.len() + others) as u128) + 1;
        Self { e: top + room - 125, ..Self::default() }
    }

    /// k of Rule 1: no partial sum that a program computes reaches 2^(k + 1).
    fn greatest(&self, format: Format) -> i32 {
        // 2^e, or one unit where that is less.
        let least = 1_u128 << (format.least() - self.e).max(0);
        let drift = ((self.positive + self.negative) >> format.bits()) + 1;
        let largest = self.positive.max(self.negative) + 2 * self.n as u128 * (drift + least);
        self.e + bits(largest) - 1
    }

    /// Adds terms to sums that are below 2^123, in units that are not far below the smallest number of the format.
    pub(super) fn and(mut self, terms: &[Term], format: Format) -> Self {
        // As many times the smallest number as there are terms must be below 2^126, too.
        let least = format.least() + bits((self.n + terms.len()) as u128);
        let top = terms.iter().fold(least, |top, term| top.max(term.top));
        let by = top.saturating_sub(self.e + 122).max(0);
        (self.m, self.r) = shift(self.m, self.r, -by);
        for size in [&mut self.positive, &mut self.negative, &mut self.products] {
            (_, *size) = shift(0, *size, -by);
        }
        self.e += by;
        terms.iter().for_each(|term| self.add(term));
        self
    }
}

/// The sum of terms in any order, each product fused with an addition or rounded by itself. Nothing where a partial sum
/// may overflow.
///
/// **Rule 1.** Let p be the precision, eta the smallest positive number, and let no computed partial sum exceed P in size,
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
    let terms: Vec<Term> = terms.collect();
    let Arithmetic::Float { format, .. } = arithmetic else {
        return rounded(arithmetic, &Totals::of(&terms, None), &[]);
    };
    rounded(arithmetic, &Totals::of(&terms, Some(format)), &terms)
}

/// A sum of terms that were added up before, and others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Together {
    /// What [`sum`] finds.
    Found(Option<Sum>),
    /// It has to be asked.
    Ask,
}

/// Terms that are known exactly, added up once for many sums that have them.
#[derive(Debug, Clone, Copy)]
pub struct Points {
    /// Their sums, in units of 2^e, of which each of them is a multiple.
    all: Totals,
    top: i32,
    /// How many there are, zeros included.
    len: usize,
}

impl Points {
    /// Adds up terms; nothing where one is not known exactly, or they are too far apart.
    pub fn new(terms: impl Iterator<Item = Term>) -> Option<Self> {
        let terms: Vec<Term> = terms.collect();
        let least = |term: &Term| term.e + term.m.trailing_zeros() as i32;
        let some = || terms.iter().filter(|term| term.top != i32::MIN);
        let (e, top) = (some().map(least).min()?, some().map(|term| term.top).max()?);
        // All sums stay below 2^126, and nothing is shifted out.
        if !terms.iter().all(Term::is_point) || top - e + bits(terms.len() as u128) > 124 {
            return None;
        }
        let mut all = Totals { e, ..Totals::default() };
        for term in some() {
            let zeros = term.m.trailing_zeros();
            all.add(&Term { m: term.m >> zeros, e: term.e + zeros as i32, ..*term });
        }
        Some(Self { all, top, len: terms.len() })
    }

    /// What [`sum`] finds for these and other terms.
    ///
    /// In the units of [`sum`] nothing of these terms is lost, so that their sums are the same; and all of them are multiples of the
    /// spacing at the greatest partial sum, so that none is fine.
    pub fn and(&self, arithmetic: Arithmetic, terms: &[Term]) -> Together {
        let format = if let Arithmetic::Float { format, .. } = arithmetic { Some(format) } else { None };
        let mut all = Totals::within(terms, (self.top, self.len), format);
        let by = self.all.e - all.e;
        if by < 0 {
            return Together::Ask;
        }
        (all.m, all.n) = (self.all.m << by, self.all.n);
        (all.positive, all.negative) = (self.all.positive << by, self.all.negative << by);
        terms.iter().for_each(|term| all.add(term));
        match format.map(|format| (format, all.greatest(format))) {
            Some((format, k)) if self.all.e < (k - format.bits() + 1).max(format.least()) => Together::Ask,
            _ => Together::Found(rounded(arithmetic, &all, terms)),
        }
    }
}

/// Rule 1, from the totals; among the terms are those that are known exactly.
pub(super) fn rounded(arithmetic: Arithmetic, all: &Totals, terms: &[Term]) -> Option<Sum> {
    let exact = Ball::pack(all.m, all.r, all.e);
    let Arithmetic::Float { format, .. } = arithmetic else { return Some(Sum { exact, rounding: Ball::ZERO }) };
    let (n, p) = (all.n, format.bits());
    if n == 0 || n >= 1 << (p - 1).min(30) {
        return (n == 0).then_some(Sum { exact, rounding: Ball::ZERO });
    }
    // 2^e, or one unit where that is less.
    let units = |e: i32| 1_u128 << (e - all.e).max(0);
    let k = all.greatest(format);
    // Below half of the largest number nothing overflows, whatever is rounded up.
    if k >= format.top() - 1 {
        return None;
    }
    let grid = (k - p + 1).max(format.least());
    let (mut fine, mut lossy, mut products) = (all.inexact, all.inexact, all.products);
    for term in terms.iter().filter(|term| term.is_point() && term.top != i32::MIN && !term.on_grid(grid)) {
        fine += 1;
        if !term.fits(format) {
            lossy += 1;
            products += shift(0, term.m.unsigned_abs(), term.e - all.e).1;
        }
    }
    let additions = (n - 1).min(2 * fine) as u128 * units(k - p);
    let products = (products >> p) + u128::from(lossy > 0) + lossy as u128 * units(format.least() - 1);
    Some(Sum { exact, rounding: Ball::pack(0, additions + products, all.e) })
}

/// The sum in real arithmetic.
pub fn real_sum(terms: impl Iterator<Item = Term>) -> Ball {
    let all = Totals::of(&terms.collect::<Vec<_>>(), None);
    Ball::pack(all.m, all.r, all.e)
}
