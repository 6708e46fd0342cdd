//! Elementary functions of intervals.

use std::cmp::Ordering::{Equal, Greater, Less};

use super::big::{Big, power};
use super::real::{Real, Scaled, Way};

/// The terms of a series from one below 2^size on, each at most half of the one before: they come to less than 2^(size + 1).
fn rest(size: i64) -> Real {
    let rest = Scaled::new(Big::ONE, size + 1);
    Real::new(rest.negated(), rest)
}

/// |x| < 2^size.
fn size(x: &Real) -> i64 {
    x.ends().map_or(0, |(lo, hi)| lo.top().max(hi.top())).max(-(1 << 40))
}

/// e^x or e^(ix), |x| < 2^32: real and imaginary part. Lemma: with y = x / 2^k, e^x = (e^y)^(2^k). With |y| < 2^-j, j >= 2, the terms
/// y^i / i! after the n-th are below 2^-work for j n > work, each at most half of the one before; the others come to 1 / n! times
/// the sum of y^i n! / i!, whose coefficients are whole.
fn exponential(x: &Scaled, turn: bool, bits: usize) -> [Real; 2] {
    let fine = 2 + bits.isqrt() as i64 / 2;
    let halvings = (x.top() + fine).max(0);
    let work = bits + (if turn { 2 } else { 1 }) * halvings as usize + 8;
    let y = Real::point(x.scaled(-halvings));
    let (mut sums, mut factor) = ([Real::whole(1), Real::ZERO], Real::whole(1));
    for i in (1..=work as i64 / fine + 1).rev() {
        factor = factor.times(&Real::whole(i), work);
        let [re, im] = sums.map(|part| part.times(&y, work));
        sums = if turn { [factor.minus(&im, work), re] } else { [factor.plus(&re, work), im] };
    }
    let rest = |used: bool| if used { rest(-(work as i64)) } else { Real::ZERO };
    sums = sums.map(|part| part.over(&factor, work));
    sums = [sums[0].plus(&rest(true), work), sums[1].plus(&rest(turn), work)];
    for _ in 0..halvings {
        let [re, im] = &sums;
        let both = re.times(im, work);
        sums = [re.times(re, work).minus(&im.times(im, work), work), both.plus(&both, work)];
    }
    sums
}

/// log((b + a) / (b - a)) for |a / b| <= 1/2. Lemma: with z = a / b, it is twice the sum of z^(2 k + 1) / (2 k + 1).
fn log_of_quotient(a: &Real, b: &Real, bits: usize) -> Real {
    let (mut sum, mut power) = (Real::ZERO, a.plus(a, bits).over(b, bits));
    let (above, below) = (a.power(2, bits), b.power(2, bits));
    for k in 0.. {
        let term = power.over(&Real::whole(2 * k + 1), bits);
        if size(&term) < -(bits as i64) {
            return sum.plus(&rest(size(&term)), bits);
        }
        sum = sum.plus(&term, bits);
        power = power.times(&above, bits).over(&below, bits);
    }
    Real::UNBOUNDED
}

/// log 2: a = 1, b = 3.
fn log_2(bits: usize) -> Real {
    log_of_quotient(&Real::whole(1), &Real::whole(3), bits)
}

/// log x for x > 0: x = m 2^k with 1/2 <= m < 1, a = m - 1, b = m + 1.
fn log(x: &Scaled, bits: usize) -> Real {
    let (m, one, work) = (Real::point(x.scaled(-x.top())), Real::whole(1), bits + 8);
    let of_m = log_of_quotient(&m.minus(&one, work), &m.plus(&one, work), work);
    of_m.plus(&log_2(work).times(&Real::whole(x.top()), work), work)
}

impl Real {
    /// An increasing function, from its enclosures at the ends.
    fn increasing(&self, f: impl Fn(&Scaled) -> Self) -> Self {
        let Some((lo, hi)) = self.ends() else { return Self::UNBOUNDED };
        let below = f(lo);
        if lo == hi { below } else { below.hull(&f(hi)) }
    }

    /// e^x. Lemma: for x <= -2^32, 0 < e^x < 2^x <= 2^-(2^32).
    pub fn exp(&self, bits: usize) -> Self {
        self.increasing(|x| match (x.top() > 32, x.sign()) {
            (true, Less) => Self::new(Scaled::ZERO, Scaled::new(Big::ONE, -(1 << 32))),
            (true, _) => Self::UNBOUNDED,
            (false, _) => exponential(x, false, bits)[0].relu(),
        })
    }

    /// 2^x.
    pub fn exp2(&self, bits: usize) -> Self {
        // The product with log 2 has an error of its size times 2^-work.
        let work = bits + size(self).clamp(0, 64) as usize + 8;
        self.times(&log_2(work), work).exp(bits)
    }

    /// The natural logarithm; unbounded where a member may have none.
    pub fn log(&self, bits: usize) -> Self {
        self.increasing(|x| if x.sign() == Greater { log(x, bits) } else { Self::UNBOUNDED })
    }

    /// The square root of max(x, 0), to 62 bits.
    pub fn sqrt(&self) -> Self {
        self.increasing(|x| Self::new(x.root(Way::Down), x.root(Way::Up)))
    }

    /// The hyperbolic tangent: 1 - 2 / (e^(2 x) + 1).
    pub fn tanh(&self, bits: usize) -> Self {
        let (one, twice) = (Self::whole(1), self.plus(self, bits));
        let share = Self::whole(2).over(&twice.exp(bits).plus(&one, bits), bits);
        one.minus(&share, bits).meet(&Self::whole(-1).hull(&one))
    }

    /// Sine and cosine. Lemma: both change by no more than their argument does, and lie in [-1, 1].
    pub fn waves(&self, bits: usize) -> [Self; 2] {
        let all = Self::whole(-1).hull(&Self::whole(1));
        let Some((middle, radius)) = self.middle(bits).filter(|(x, _)| x.top() <= 20) else {
            return [all.clone(), all];
        };
        let [cos, sin] = exponential(&middle, true, bits);
        let within = Self::new(radius.negated(), radius);
        [sin, cos].map(|wave| wave.plus(&within, bits).meet(&all))
    }

    /// x^k, from the ends: of |x| for an even k. Unbounded for a negative k where x may be 0.
    pub fn power(&self, k: i64, bits: usize) -> Self {
        if k < 0 {
            return Self::whole(1).over(&self.power(k.saturating_neg(), bits), bits);
        }
        let base = if k % 2 == 0 { self.abs() } else { self.clone() };
        let times = |x: &Self, y: &Self| x.times(y, bits);
        base.increasing(|x| power(&Self::whole(1), &Self::point(x.clone()), k.unsigned_abs(), times))
    }

    /// x^y for x >= 0, unbounded where x may be below 0, or 0 with y below 0. Lemma: x^y = e^(y log x); for 0 <= x <= b and
    /// y >= 0, 0 <= x^y <= max(1, b^y), and below b^y where y is above 0.
    pub fn pow(&self, y: &Self, bits: usize) -> Self {
        let (Some((lo, hi)), Some((least, _))) = (self.ends(), y.ends()) else { return Self::UNBOUNDED };
        let of = |x: &Self| y.times(&x.log(bits), bits).exp(bits);
        let most = || if hi.sign() == Equal { Self::ZERO } else { of(&Self::point(hi.clone())).hull(&Self::ZERO) };
        match (lo.sign(), least.sign()) {
            (Greater, _) => of(self),
            (Equal, Greater) => most(),
            (Equal, Equal) => most().hull(&Self::whole(1)),
            _ => Self::UNBOUNDED,
        }
    }
}

#[cfg(test)]
mod tests;
