//! The lemmas behind Theorem 2 as inequalities that can be evaluated: both sides, enclosed in balls.
//!
//! A lemma checks its hypotheses first and names the one that fails. Hypotheses are decided with intervals; where they
//! leave a doubt, the lemma does not apply. Vectors are unordered, since the Boltzmann operator is: "sorted" below means
//! that the lemma sorts.

use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Interval, Number};
use crate::error::{Error, Result};
use crate::paper::boltzmann::difference;
use crate::paper::theorem_two::score_gap;

/// Bits for both sides. Differences are evaluated without cancellation, so few are enough at any scale.
const PRECISION: usize = 192;

/// The statement `left > right`.
#[derive(Debug, Clone)]
pub struct Inequality {
    /// The side that should be larger.
    pub left: Ball,
    /// The side that should be smaller.
    pub right: Ball,
}

impl Inequality {
    /// Whether it is proved: every value the left side may have is above every value of the right side.
    pub fn holds(&self) -> bool {
        self.right.certainly_less(&self.left)
    }

    /// Whether it is refuted; neither proved nor refuted means that more bits would be needed.
    pub fn fails(&self) -> bool {
        self.left.certainly_less(&self.right)
    }
}

/// Lemma 1: the Boltzmann operator keeps apart what is far enough apart.
///
/// For `a` and `b` in `[-r, r]^n`, different as sets, without duplicates, with distinct numbers of both more than
/// `2 log n + 3` apart: `|boltz(a) - boltz(b)| > (log n)^2 e^(-2 r)`. The paper asks for different vectors; permutations
/// of one another have the same value.
pub fn lemma_1(a: &[f64], b: &[f64], r: f64) -> Result<Inequality> {
    let lemma = "Lemma 1";
    check_lengths(lemma, a, b)?;
    check_distinct(lemma, a)?;
    check_distinct(lemma, b)?;
    if !a.iter().chain(b).all(|x| x.abs() <= r) {
        return does_not_apply(lemma, format!("not all numbers are in [-{r}, {r}]"));
    }
    let union = sorted(a.iter().chain(b));
    check_gaps(lemma, &union, score_gap(a.len()))?;
    if sorted(a) == sorted(b) {
        return does_not_apply(lemma, "the vectors are equal as sets");
    }
    let right = log_squared(a.len()) * (ball(-2.0) * ball(r)).exp();
    Ok(Inequality { left: difference(a, b, PRECISION)?.abs(), right })
}

/// Lemma 4: `boltz` decreases in a direction `i` with `a_i < max a - log n - 1`: `0 > p_i (1 + log p_i + S(p))` (83), evaluated as
/// `p_i (1 + a_i - boltz(a))`, which is equal by (85).
pub fn lemma_4(a: &[f64], i: usize) -> Result<Inequality> {
    let point = Point::far_below("Lemma 4", a, i, 1.0)?;
    Ok(Inequality { left: Ball::zero(), right: point.probability.clone() * point.slope() })
}

/// Lemma 5: `boltz` is concave in a direction `i` with `a_i < max a - log n - 3`:
/// `0 > p_i ((1 - 2 p_i) (log p_i + S(p) + 1) + 1)` (97), with `a_i - boltz(a)` for `log p_i + S(p)` as above.
pub fn lemma_5(a: &[f64], i: usize) -> Result<Inequality> {
    let point = Point::far_below("Lemma 5", a, i, 3.0)?;
    let bend = ball(1.0) + (ball(1.0) - point.probability.clone() * ball(2.0)) * point.slope();
    Ok(Inequality { left: Ball::zero(), right: point.probability * bend })
}

/// Lemma 6: lowering the last number, far below the largest, raises `boltz`.
///
/// For `n >= 2`, `a` and `b` equal but for their last numbers, `max(a_1 .. a_{n-1}) - delta > a_n > b_n` (102) and
/// `delta > log n + 3`: `boltz(b) - boltz(a) > (a_n - b_n) (delta + a_n - b_n - log n - 1) e^(b_n) / sum e^(b_i)` (103).
/// The order of the numbers matters here: the last one is the one that moves.
pub fn lemma_6(a: &[f64], b: &[f64], delta: f64) -> Result<Inequality> {
    let lemma = "Lemma 6";
    check_lengths(lemma, a, b)?;
    let n = a.len();
    let (shared, a_n, b_n) = (&a[..n - 1], a[n - 1], b[n - 1]);
    let Some(max) = shared.iter().copied().reduce(f64::max) else {
        return does_not_apply(lemma, "n = 1 is below 2");
    };
    if shared != &b[..n - 1] || !a.iter().chain(b).all(|x| x.is_finite()) {
        return does_not_apply(lemma, "the first n - 1 numbers are not finite and equal");
    }
    let log_n = Interval::point(n as f64).ln();
    if !(log_n + Interval::point(3.0)).certainly_less(&Interval::point(delta)) {
        return does_not_apply(lemma, format!("delta = {delta} is not above log n + 3"));
    }
    let below = Interval::point(max) - Interval::point(delta);
    if !Interval::point(a_n).certainly_less(&below) || a_n <= b_n {
        return does_not_apply(lemma, format!("{max} - delta > {a_n} > {b_n} does not hold"));
    }
    let z = b.iter().fold(Ball::zero(), |z, &x| z + (ball(x) - ball(max)).exp());
    let p_n = (ball(b_n) - ball(max)).exp() / z;
    let step = ball(a_n) - ball(b_n);
    let slope = ball(delta) + &step - ball(n as f64).ln() - ball(1.0);
    Ok(Inequality { left: difference(b, a, PRECISION)?, right: step * slope * p_n })
}

/// (120), in the proof of Lemma 7: what follows the largest `k + 1` numbers hardly matters.
///
/// For `a` sorted in decreasing order with gaps above `2 log n + 3` and `1 <= k < n - 1`, both
/// `boltz(a_1 .. a_{k+1}) > boltz(a)` and `boltz(a) > boltz(a_1 .. a_k, a_{k+1} .. a_{k+1})`, `n` numbers in all. For
/// `k + 1 = n` the three are equal, where (120) prints strict inequalities.
pub fn equation_120(a: &[f64], k: usize) -> Result<[Inequality; 2]> {
    let lemma = "(120)";
    let a = sorted(a);
    if k == 0 || k + 1 >= a.len() {
        return does_not_apply(lemma, format!("k = {k} is not between 1 and n - 2 = {}", a.len() as i64 - 2));
    }
    check_distinct(lemma, &a)?;
    check_gaps(lemma, &a, score_gap(a.len()))?;
    let raised: Vec<f64> = (0..a.len()).map(|i| a[i.min(k)]).collect();
    let positive = |left: Ball| Inequality { left, right: Ball::zero() };
    let above = difference(&a[..=k], &a, PRECISION)?;
    let below = difference(&a, &raised, PRECISION)?;
    Ok([positive(above), positive(below)])
}

/// Lemma 7: where two vectors first differ decides.
///
/// For `a` and `b` sorted in decreasing order, with distinct numbers of both more than `2 log n + 3` apart, equal up to
/// `k` and `a_{k+1} > b_{k+1}`: `boltz(b) - boltz(a) > (log n)^2 e^(-(a_1 - b_{k+1}))`, and the difference has the other
/// sign for `k = 0`. The order of `a` and `b` does not matter here.
pub fn lemma_7(a: &[f64], b: &[f64]) -> Result<Inequality> {
    let lemma = "Lemma 7";
    check_lengths(lemma, a, b)?;
    check_distinct(lemma, a)?;
    check_distinct(lemma, b)?;
    check_gaps(lemma, &sorted(a.iter().chain(b)), score_gap(a.len()))?;
    let (a, b) = (sorted(a), sorted(b));
    let Some(k) = (0..a.len()).find(|&k| a[k] != b[k]) else {
        return does_not_apply(lemma, "the vectors are equal as sets");
    };
    let (a, b) = if a[k] > b[k] { (a, b) } else { (b, a) };
    let left = if k == 0 { difference(&a, &b, PRECISION)? } else { difference(&b, &a, PRECISION)? };
    let right = log_squared(a.len()) * (ball(b[k]) - ball(a[0])).exp();
    Ok(Inequality { left, right })
}

/// Lemma S: sets of any sizes, whose distinct numbers are `delta` or more apart.
///
/// With `q = e^-delta`, `c = q / (1 - q)^2`, `theta = q / (1 - q) + c / (1 - c) < 1` and `t` the offset from the common
/// maximum of the largest number that is in one set only, `|boltz(a) - boltz(b)| >= C(delta) e^-t`,
/// `C(delta) = (1 - theta) (delta - delta c) (1 - q)`. If the maxima differ, the gap is at least `delta (1 - c)`.
pub fn lemma_s(a: &[f64], b: &[f64], delta: f64) -> Result<Inequality> {
    let lemma = "Lemma S";
    let (a, b) = (sorted(a), sorted(b));
    check_distinct(lemma, &a)?;
    check_distinct(lemma, &b)?;
    let union = sorted(a.iter().chain(&b));
    check_gaps_at_least(lemma, &union, delta)?;
    let left = difference(&a, &b, PRECISION)?.abs();

    let (one, delta) = (ball(1.0), ball(delta));
    let q = (-delta.clone()).exp();
    let rest = one.clone() - &q;
    let c = q.clone() / &rest / &rest;
    let theta = q / &rest + c.clone() / (one.clone() - &c);
    if !c.certainly_less(&one) || !theta.certainly_less(&one) {
        return does_not_apply(lemma, "delta is too small: theta is not below 1");
    }
    let gap = delta * (one.clone() - c);
    if a[0] != b[0] {
        return Ok(Inequality { left, right: gap });
    }
    let Some(first) = union.iter().find(|x| a.contains(x) != b.contains(x)) else {
        return does_not_apply(lemma, "the sets are equal");
    };
    let right = (one - theta) * gap * rest * (ball(*first) - ball(a[0])).exp();
    Ok(Inequality { left, right })
}

/// Lemma M: multisets of at most `n` numbers, whose distinct numbers are more than `2 log n + 3` apart.
///
/// If the multiplicities, divided by those `p` and `p'` of the common maximum, differ first at an offset `t` from it:
/// `|boltz(a) - boltz(b)| > (1 - 2 e^-3) t e^-t / (p p')`, and no larger constant serves: docs/lemmas-s-m.md has the proof. If the
/// maxima differ, the gap is at least `log n + 3`.
pub fn lemma_m(a: &[f64], b: &[f64]) -> Result<Inequality> {
    let lemma = "Lemma M";
    let n = a.len().max(b.len());
    let union = sorted(a.iter().chain(b));
    check_gaps(lemma, &union, score_gap(n))?;
    let left = difference(a, b, PRECISION)?.abs();
    let top = union[0];
    let count = |x: &[f64], value: f64| x.iter().filter(|&&x| x == value).count();
    let (p, p2) = (count(a, top), count(b, top));
    if p == 0 || p2 == 0 {
        return Ok(Inequality { left, right: ball(n as f64).ln() + ball(3.0) });
    }
    let Some(&first) = union.iter().find(|&&x| count(a, x) * p2 != count(b, x) * p) else {
        return does_not_apply(lemma, "the normalized multisets are equal");
    };
    let t = ball(top) - ball(first);
    let sharp = ball(1.0) - ball(2.0) * ball(-3.0).exp();
    let right = sharp * &t * (-t).exp() / ball((p * p2) as f64);
    Ok(Inequality { left, right })
}

/// One direction at one point of the Boltzmann operator.
struct Point {
    /// `p_i`.
    probability: Ball,
    /// `max a - a_i`.
    offset: Ball,
    /// `max a - boltz(a)`.
    h: Ball,
}

impl Point {
    /// Evaluates, given that `a_i < max a - log n - distance`.
    fn far_below(lemma: &str, a: &[f64], i: usize, distance: f64) -> Result<Self> {
        let Some(max) = sorted(a).first().copied().filter(|_| i < a.len()) else {
            return does_not_apply(lemma, format!("there is no element {i}"));
        };
        let needed = Interval::point(a.len() as f64).ln() + Interval::point(distance);
        if !needed.certainly_less(&(Interval::point(max) - Interval::point(a[i]))) {
            return does_not_apply(lemma, format!("{} is not below max a - log n - {distance}", a[i]));
        }
        let offsets: Vec<Ball> = a.iter().map(|&x| ball(max) - ball(x)).collect();
        let weights: Vec<Ball> = offsets.iter().map(|t| (-t.clone()).exp()).collect();
        let z = weights.iter().fold(Ball::zero(), |z, w| z + w);
        let h = offsets.iter().zip(&weights).fold(Ball::zero(), |h, (t, w)| h + t.clone() * w) / &z;
        Ok(Self { probability: weights[i].clone() / z, offset: offsets[i].clone(), h })
    }

    /// `1 + a_i - boltz(a)`.
    fn slope(&self) -> Ball {
        ball(1.0) + &self.h - &self.offset
    }
}

/// An exact number.
fn ball(x: f64) -> Ball {
    Ball::new(x, PRECISION)
}

/// `(log n)^2`.
fn log_squared(n: usize) -> Ball {
    let log = ball(n as f64).ln();
    log.clone() * log
}

/// In decreasing order.
fn sorted<'a>(a: impl IntoIterator<Item = &'a f64>) -> Vec<f64> {
    // Adding 0 turns -0 into 0.
    let mut a: Vec<f64> = a.into_iter().map(|x| x + 0.0).collect();
    sorting::sort_by(&mut a, |x, y| y.total_cmp(x));
    a
}

/// The error of a lemma whose hypothesis fails.
fn does_not_apply<T>(lemma: &str, why: impl std::fmt::Display) -> Result<T> {
    Err(Error::undefined(format!("{lemma} does not apply: {why}"), "give numbers that satisfy its hypotheses"))
}

fn check_lengths(lemma: &str, a: &[f64], b: &[f64]) -> Result<()> {
    if a.len() != b.len() || a.is_empty() {
        return does_not_apply(lemma, format!("lengths {} and {} should be equal and not 0", a.len(), b.len()));
    }
    Ok(())
}

fn check_distinct(lemma: &str, a: &[f64]) -> Result<()> {
    match sorted(a).windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => does_not_apply(lemma, format!("{} appears twice", pair[0])),
        None if a.is_empty() => does_not_apply(lemma, "a set is empty"),
        None => Ok(()),
    }
}

/// Checks that distinct neighbors of a sorted vector are finite and more than `needed` apart.
fn check_gaps(lemma: &str, sorted: &[f64], needed: Interval) -> Result<()> {
    if let Some(x) = sorted.iter().find(|x| !x.is_finite()) {
        return does_not_apply(lemma, format!("{x} is not a number of the real line"));
    }
    let close = |pair: &&[f64]| {
        pair[0] != pair[1] && !needed.certainly_less(&(Interval::point(pair[0]) - Interval::point(pair[1])))
    };
    match sorted.windows(2).find(close) {
        Some(pair) => {
            does_not_apply(lemma, format!("{} and {} are not more than {} apart", pair[0], pair[1], needed.hi()))
        }
        None => Ok(()),
    }
}

/// Checks that distinct neighbors are `delta` or more apart.
fn check_gaps_at_least(lemma: &str, sorted: &[f64], delta: f64) -> Result<()> {
    if delta.is_nan() || delta <= 0.0 {
        return does_not_apply(lemma, format!("delta = {delta} is not positive"));
    }
    // Above the next smaller float is at least this one.
    check_gaps(lemma, sorted, Interval::point(delta.next_down()))
}
