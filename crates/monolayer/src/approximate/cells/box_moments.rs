//! A box of sequences, and how far one output is from a level there: pointwise, and in the mean of |f - level|^p.
//!
//! With the box at `c + u`, f - level = a + g.u + r.u for a = f(c) - level, fixed g and small r that depend on u. The first
//! two terms have moments in closed form, since the u_i are independent and even; by Minkowski's inequality the third adds its
//! own norm. So a smooth function needs no cutting, while a sup over the box would give away a factor.
//!
//! All sums are of terms >= 0, so rounding is relative, and far below [`SLACK`].

use crate::approximate::function::Enclosure;
use crate::arithmetic::{Interval, rounding};

/// Covers the rounding of what is computed here in plain floats, and centers that are half an ulp off.
pub(super) const SLACK: f64 = 1.0 + 1e-9;

/// Narrower boxes than this are not taken to be centered.
const NARROW: f64 = 1e-5;

/// One output over a box.
#[derive(Debug, Clone)]
pub(super) struct BoxMoments {
    /// f(c).
    center: Interval,
    /// Contains f.
    pub range: Interval,
    /// The slopes' centers times half the sides: |g_i| h_i.
    linear: Vec<f64>,
    /// The slopes' radii times half the sides: |r_i| h_i.
    rest: Vec<f64>,
    /// At least the norms of r.u in L^2 and in the sup norm.
    rest_norms: [f64; 2],
}

impl BoxMoments {
    pub fn new(enclosure: &Enclosure, sides: &[Interval]) -> Self {
        let half = |x: &Interval| rounding::add_up(x.hi(), -x.center()).max(rounding::add_up(x.center(), -x.lo()));
        let halves: Vec<f64> = sides.iter().map(half).collect();
        if let Some(constant) = enclosure.lipschitz {
            return Self::lipschitz(enclosure, &halves, constant);
        }
        let centered = enclosure.center.is_bounded() && sides.iter().all(|x| x.width() == 0.0 || x.width() > NARROW);
        let mut linear = Vec::with_capacity(sides.len());
        let mut rest = Vec::with_capacity(sides.len());
        for (slope, half) in enclosure.slopes.iter().zip(halves) {
            let bounded = slope.is_bounded() && centered;
            let g = if bounded { slope.center() } else { 0.0 };
            let r = if bounded { (*slope - Interval::point(g)).magnitude() } else { f64::INFINITY };
            linear.push(g.abs() * half);
            rest.push(if half == 0.0 { 0.0 } else { r * half });
        }
        // E (sum r_i |u_i|)^2 = (sum r_i h_i)^2 / 4 + sum (r_i h_i)^2 / 12.
        let sum = rest.iter().sum::<f64>();
        let squares = rest.iter().map(|r| r * r).sum::<f64>();
        let rest_norms = [(sum * sum / 4.0 + squares / 12.0).sqrt(), sum];
        Self { center: enclosure.center, range: enclosure.range, linear, rest, rest_norms }
    }

    /// With |f - f(c)| at most a constant times the largest |u_i|, whose square has the mean h^2 N / (N + 2) in a cube.
    fn lipschitz(enclosure: &Enclosure, halves: &[f64], constant: f64) -> Self {
        let entries = halves.len() as f64;
        let largest = constant * halves.iter().copied().fold(0.0, f64::max);
        Self {
            center: enclosure.center,
            range: enclosure.range,
            linear: vec![0.0; halves.len()],
            rest: halves.iter().map(|half| constant * half).collect(),
            rest_norms: [largest * (entries / (entries + 2.0)).sqrt(), largest],
        }
    }

    /// What stands for f in the box: its center, if that is known well, else the middle of its range.
    pub fn middle(&self) -> f64 {
        if self.center.width() <= self.range.width() { self.center.center() } else { self.range.center() }
    }

    /// At least |f - level|^p everywhere in the box.
    pub fn largest(&self, level: f64, p: f64) -> f64 {
        power(self.sup(level), p) * SLACK
    }

    /// At least |f - level|.
    pub fn sup(&self, level: f64) -> f64 {
        (self.range - Interval::point(level)).magnitude()
    }

    /// At least the mean of |f - level|^p, and by about how much it may be too large: the norm of f - level is that of the
    /// linear part, give or take that of the rest.
    pub fn mean(&self, level: f64, p: f64) -> (f64, f64) {
        let by_sup = power(self.sup(level), p);
        let a = (self.center - Interval::point(level)).magnitude();
        let linear = power(self.moment(a, p), 1.0 / p);
        let rest = self.rest_norms[usize::from(p > 2.0)];
        if rest.is_infinite() {
            return (by_sup * SLACK, by_sup);
        }
        let bound = by_sup.min(power(linear + rest, p));
        let at_least = power((linear - rest).max(0.0), p);
        (bound * SLACK, (bound - at_least).max(0.0))
    }

    /// At least the mean of |a + g.u|^p, by Lyapunov's inequality between the moments 2 and 4.
    fn moment(&self, a: f64, p: f64) -> f64 {
        let variance = self.linear.iter().map(|g| g * g).sum::<f64>() / 3.0;
        let second = a * a + variance;
        if p <= 2.0 {
            return power(second, p / 2.0);
        }
        // E u^4 = h^4 / 5, and E (sum)^4 = 3 (E sum^2)^2 + sum of E u_i^4 - 3 (E u_i^2)^2.
        let fourths = self.linear.iter().map(|g| g.powi(4)).sum::<f64>();
        let fourth = a.powi(4) + 6.0 * a * a * variance + (3.0 * variance * variance - fourths * 2.0 / 15.0);
        if p <= 4.0 {
            return power(second, (4.0 - p) / 2.0) * power(fourth, (p - 2.0) / 2.0);
        }
        let largest = a + self.linear.iter().sum::<f64>();
        fourth * power(largest, p - 4.0)
    }

    /// The entries in need of cutting: how much each contributes to what is not known.
    pub fn blur(&self) -> &[f64] {
        &self.rest
    }
}

/// `x^e` for x >= 0 and e > 0, up to a relative error far below [`SLACK`].
pub(super) fn power(x: f64, e: f64) -> f64 {
    if e == 2.0 {
        x * x
    } else if e == 1.0 {
        x
    } else if e == 0.5 {
        x.sqrt()
    } else {
        core_math::pow(x, e)
    }
}
