//! The mean of |f - g|^p over a box where g is nearly constant, from above and from below.
//!
//! With x = c + u, f - g = a + s.u + r.u for a = f(c) - g, the middles s of the slopes, and rests r that depend on u. The u_i are
//! independent, uniform and even, so the first two terms have known moments; the rest is bounded by Minkowski's inequality.

use crate::expression::View;
use crate::interval::Interval;

/// Covers the rounding of what is computed here: up to a thousand roundings of terms >= 0.
pub const SLACK: f64 = 1.0 + 1e-12;
/// Powers below this may have underflowed on the way; together they add less than [`LOST`] to any sum.
const UNDERFLOW: f64 = 1e-290;
/// What underflow may take from a sum of powers.
pub const LOST: f64 = 1e-250;
/// How far the middle of a side may be from where it should be: a few roundings below 1.
const MIDDLE: f64 = f64::EPSILON;

/// Bounds on a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// From above.
    pub upper: f64,
    /// From below.
    pub lower: f64,
    /// About how much of the upper bound smaller boxes could take away.
    pub loose: f64,
}

/// x^p for x >= 0, to a relative error below 1e-15.
pub fn power(x: f64, p: f64) -> f64 {
    if p == 1.0 {
        x
    } else if p == 2.0 {
        x * x
    } else {
        core_math::pow(x, p)
    }
}

/// The mean of |f - g|^p over the box with the given sides.
pub fn mean(f: &View, sides: &[Interval], g: Interval, p: f64) -> Mean {
    let apart = f.range - g;
    let by_sup = power(apart.magnitude(), p) * SLACK;
    let by_inf = power(apart.mignitude(), p) / SLACK;
    let level = g.middle();
    let spread = (g - Interval::point(level)).magnitude();
    // Sums of squares and fourth powers of |s_i| h_i, of |r_i| h_i and its square, and what off-center middles add.
    let (mut squares, mut fourths, mut rest, mut rest_squares, mut off) = (0.0, 0.0, 0.0, 0.0, spread);
    for (slope, side) in f.slopes.iter().zip(sides) {
        let half = 0.5 * (side.hi - side.lo);
        let (s, r) = (slope.middle(), 0.5 * (slope.hi - slope.lo) * SLACK + slope.magnitude() * 1e-15);
        let (moved, blurred) = (s * half, if r == 0.0 { 0.0 } else { r * half });
        squares += moved * moved;
        fourths += moved * moved * moved * moved;
        rest += blurred;
        rest_squares += blurred * blurred;
        off += (s.abs() + r) * MIDDLE;
    }
    let center = f.center - Interval::point(level);
    if !(squares + rest + off).is_finite() || !center.is_bounded() {
        return Mean { upper: by_sup, lower: by_inf, loose: by_sup - by_inf };
    }
    let variance = squares / 3.0;
    let a = center.magnitude() * SLACK;
    let known = moment(a, variance, fourths, p, a + f.slopes.iter().zip(sides).map(reach).sum::<f64>());
    // E (sum of r_i |u_i|)^2 = (sum of r_i h_i)^2 / 4 + sum of (r_i h_i)^2 / 12.
    let rest_two = (0.25 * rest * rest + rest_squares / 12.0).sqrt();
    let rest_norm = if p > 2.0 { rest } else { rest_two };
    let upper = power(power(known, 1.0 / p) + rest_norm + off, p) * SLACK;
    let second = (power(center.mignitude(), 2.0) + variance).sqrt() / SLACK - (rest_two + off) * SLACK;
    let lower = from_second_moment(second.max(0.0), apart.magnitude(), p) / SLACK;
    let upper = if upper < by_sup && known > UNDERFLOW { upper } else { by_sup };
    // What the slopes leave open, both ways: where they say less than the range does, smaller boxes help, too.
    let at_least = power((power(known, 1.0 / p) - rest_norm - off).max(0.0), p);
    Mean { upper, lower: lower.max(by_inf), loose: (upper - at_least).max(0.0) }
}

fn reach((slope, side): (&Interval, &Interval)) -> f64 {
    slope.middle().abs() * 0.5 * (side.hi - side.lo)
}

/// At least the mean of |a + s.u|^p: Jensen below 2, Lyapunov between the moments 2 and 4, the largest value above 4.
fn moment(a: f64, variance: f64, fourths: f64, p: f64, largest: f64) -> f64 {
    let second = a * a + variance;
    if p <= 2.0 {
        return power(second, 0.5 * p);
    }
    // E u^4 = h^4 / 5 and E u^2 = h^2 / 3, so E (s.u)^4 = 3 (E (s.u)^2)^2 - 2/15 sum of (s_i h_i)^4.
    let of_sum = (3.0 * variance * variance * SLACK - fourths * (2.0 / 15.0)).max(0.0);
    let fourth = a * a * a * a + 6.0 * a * a * variance + of_sum;
    if p <= 4.0 {
        return power(second, 0.5 * (4.0 - p)) * power(fourth, 0.5 * (p - 2.0));
    }
    fourth * power(largest, p - 4.0)
}

/// A lower bound on the mean of |X|^p from the norm of X in L^2, for |X| <= largest.
fn from_second_moment(norm: f64, largest: f64, p: f64) -> f64 {
    if norm == 0.0 {
        0.0
    } else if p >= 2.0 {
        power(norm, p)
    } else {
        // E X^2 <= largest^(2 - p) E |X|^p.
        norm * norm / power(largest, 2.0 - p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f = 0.3 + 2 x - y + (x - 0.25)^2 over a box, against a plain sum over a fine grid.
    #[test]
    fn means_enclose_sums_over_grids() {
        let sides = [Interval::new(0.0, 0.5), Interval::new(0.5, 0.75)];
        let f = |x: f64, y: f64| 0.3 + 2.0 * x - y + (x - 0.25) * (x - 0.25);
        let slopes = [Interval::new(1.75, 2.25), Interval::point(-1.0)];
        let view = View { range: Interval::new(-0.45, 0.87), center: Interval::point(f(0.25, 0.625)), slopes: &slopes };
        for p in [1.0, 1.5, 2.0, 3.0, 4.0, 5.5] {
            for level in [0.0, 0.175, 0.9] {
                let n = 400;
                let at = |i: usize| (i as f64 + 0.5) / n as f64;
                let points = (0..n * n).map(|k| (f(0.5 * at(k / n), 0.5 + 0.25 * at(k % n)) - level).abs().powf(p));
                let exact = points.sum::<f64>() / (n * n) as f64;
                let found = mean(&view, &sides, Interval::point(level), p);
                assert!(found.lower <= exact * 1.001 && exact <= found.upper * 1.001, "{p} {level} {exact} {found:?}");
                assert!(found.lower < found.upper);
                // Slopes that say nothing leave it open, though the range is known.
                let steep = View { slopes: &[Interval::new(-10.0, 90.0), slopes[1]], ..view };
                let open = mean(&steep, &sides, Interval::point(level), p);
                assert!(open.upper >= found.upper && open.loose > 0.9 * open.upper, "{open:?}");
                if p == 2.0 {
                    assert!(found.upper < 1.6 * exact && found.lower > 0.5 * exact, "{level} {exact} {found:?}");
                }
            }
        }
    }
}
