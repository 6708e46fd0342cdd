//! The population variance over intervals, without the widening that repeated terms would bring.
//!
//! For every t, var(x) <= mean (x_i - t)^2, with equality at the mean; so var is the minimum over t.

use crate::arithmetic::{Interval, Number};

/// The population variance of floats, in two passes.
pub(super) fn of_floats(tokens: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let n = tokens.len() as f64;
    let mean = tokens.clone().sum::<f64>() / n;
    tokens.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n
}

/// An enclosure of the population variance.
pub(super) fn of_intervals(tokens: &[Interval]) -> Interval {
    if !tokens.iter().all(|x| x.is_bounded()) {
        return Interval::new(0.0, f64::INFINITY);
    }
    let lo = smallest(tokens).lo().max(0.0);
    Interval::new(lo, largest(tokens).hi().max(lo))
}

fn mean(terms: impl ExactSizeIterator<Item = Interval>) -> Interval {
    let n = Interval::point(terms.len() as f64);
    terms.fold(Interval::point(0.0), |sum, x| sum + x) / n
}

/// At most mean max (x_i - t)^2, for the best t found.
fn largest(tokens: &[Interval]) -> Interval {
    let center = hull(tokens).center();
    let middle = tokens.iter().map(|x| x.center()).sum::<f64>() / tokens.len() as f64;
    let bound = |t: f64| mean(tokens.iter().map(|x| Interval::point((*x - Interval::point(t)).square().hi())));
    let (first, second) = (bound(center), bound(middle));
    if first.hi() <= second.hi() { first } else { second }
}

/// At least the minimum over t of g(t) = mean min (x_i - t)^2, which is convex: g >= g(s) - |g'(s)| |t - s|.
fn smallest(tokens: &[Interval]) -> Interval {
    let hull = hull(tokens);
    let s = minimizer(tokens, hull);
    let at = Interval::point(s);
    // How far the interval x is above s, as a signed number.
    let above = |x: &Interval| {
        if x.lo() > s {
            Interval::point(x.lo()) - at
        } else if x.hi() < s {
            Interval::point(x.hi()) - at
        } else {
            Interval::point(0.0)
        }
    };
    let value = mean(tokens.iter().map(|x| above(x).square()));
    let slope = mean(tokens.iter().map(|x| above(x) * Interval::point(2.0)));
    let reach = Interval::point((hull - at).magnitude());
    value - Number::abs(&slope) * reach
}

/// A point close to where g is smallest: the mean of the ends that are nearest to it, of the intervals it is not in.
fn minimizer(tokens: &[Interval], hull: Interval) -> f64 {
    let mut s = hull.center();
    for _ in 0..20 {
        let outside = tokens.iter().filter(|x| !x.contains(s));
        let (sum, count) = outside.fold((0.0, 0), |(sum, count), x| (sum + s.clamp(x.lo(), x.hi()), count + 1));
        let next = if count == 0 { s } else { sum / f64::from(count) };
        if next == s {
            break;
        }
        s = next;
    }
    s
}

fn hull(tokens: &[Interval]) -> Interval {
    tokens.iter().copied().reduce(Interval::hull).expect("at least one token")
}
