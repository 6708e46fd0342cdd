//! Theorem 2 as the paper states it: its constants, and what its own weights guarantee, in logarithms.

use std::f64::consts::PI;

use crate::arithmetic::{Interval, Number};
use crate::data::separation::Separation;

/// The (r, delta) that Theorem 2 promises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guarantee {
    /// Eq. 7: ids are shorter than this.
    pub r: f64,
    /// Eq. 8: the binary logarithm of the distance of different ids; minus infinity for n = 1, where the formula gives 0
    /// though different ids are more than epsilon / 2 apart.
    pub log2_delta: f64,
}

impl Guarantee {
    /// Eqs. 7 and 8 for a vocabulary of a given size, sequences of up to n tokens, dimension d. `None` where the theorem does
    /// not speak: a zero token (`r_min = 0`), or only one token.
    ///
    /// With `A = (|V| + 1)^4 (2 ln n + 3) pi d`,
    /// `delta = 2 (ln n)^2 epsilon^2 r_min / (r_max^2 A) exp(-A r_max^2 / (4 epsilon r_min))`.
    pub fn new(vocabulary: usize, n: usize, d: usize, separation: &Separation) -> Option<Self> {
        let &Separation { r_min, r_max, epsilon } = separation;
        if r_min == 0.0 || !epsilon.is_finite() {
            return None;
        }
        let log2_delta = log2_delta(vocabulary, n, d, [r_min, r_max, epsilon], &PI);
        Some(Self { r: r_max + epsilon / 4.0, log2_delta })
    }

    /// A number certainly above the logarithm of (8) for constants that are right to within a relative error of 1e-12; `None`
    /// where the theorem does not speak, minus infinity for n = 1.
    pub fn log2_delta_above(vocabulary: usize, n: usize, d: usize, separation: &Separation) -> Option<f64> {
        if n == 1 {
            return Self::new(vocabulary, n, d, separation).map(|g| g.log2_delta);
        }
        Self::new(vocabulary, n, d, separation)?;
        let error = Interval::new(1.0 - 1e-12, 1.0 + 1e-12);
        let constants = [separation.r_min, separation.r_max, separation.epsilon].map(|x| Interval::point(x) * error);
        Some(log2_delta(vocabulary, n, d, constants, &Interval::pi()).hi())
    }

    /// The bits that a number needs to hold such a distance: `None` where the formula gives 0.
    pub fn bits(&self) -> Option<f64> {
        self.log2_delta.is_finite().then(|| (-self.log2_delta).ceil().max(1.0))
    }
}

/// `2 log n + 3`: how far apart Lemma 1 asks scores to be.
pub fn score_gap(n: usize) -> Interval {
    Interval::point(n as f64).ln() * Interval::point(2.0) + Interval::point(3.0)
}

/// (29): `|u^T u'| = (|V| + 1)^4 pi d delta / (8 epsilon r_min)` keeps scores `delta` apart (Lemma 3).
pub fn query_scale(vocabulary: usize, d: usize, delta: Interval, epsilon: f64, r_min: f64) -> Interval {
    let point = Interval::point;
    point(vocabulary as f64 + 1.0).powi(4) * Interval::pi() * point(d as f64) * delta
        / (point(8.0) * point(epsilon) * point(r_min))
}

/// (32): `||W_O u''|| = epsilon / (4 r_max)`.
pub fn output_norm(epsilon: f64, r_max: f64) -> Interval {
    Interval::point(epsilon) / (Interval::point(4.0) * Interval::point(r_max))
}

/// The binary logarithm of (8) for `[r_min, r_max, epsilon]`. Quotients of lengths first: their squares may overflow.
pub(crate) fn log2_delta<N: Number>(
    vocabulary: usize,
    n: usize,
    d: usize,
    [r_min, r_max, epsilon]: [N; 3],
    pi: &N,
) -> N {
    let number = |x: usize| N::from_f64(x as f64);
    let log2 = |x: &N| x.ln() / number(2).ln();
    let twice = |x: N| x.clone() + x;
    let square = |x: N| x.clone() * x;
    let ln_n = number(n).ln();
    let a = square(square(number(vocabulary + 1))) * (twice(ln_n.clone()) + number(3)) * pi * number(d);
    let exponent = a.clone() * (r_max.clone() / &epsilon) * (r_max.clone() / &r_min) / number(4);
    let lengths = twice(log2(&epsilon)) + log2(&r_min) - twice(log2(&r_max));
    N::one() + twice(log2(&ln_n)) + lengths - log2(&a) - exponent / number(2).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::separation::separation;

    #[test]
    fn four_tokens_in_the_plane() {
        let vocabulary = [0.9, 0.4, -0.7, 0.8, 0.2, -1.1, 1.3, -0.5];
        let constants = separation(2, &vocabulary);
        let guarantee = Guarantee::new(4, 2, 2, &constants).unwrap();
        assert_eq!(guarantee.log2_delta.round(), -12_440.0);
        assert_eq!(guarantee.bits(), Some((-guarantee.log2_delta).ceil()));
        assert_eq!(guarantee.r, constants.r_max + constants.epsilon / 4.0);
        let above = Guarantee::log2_delta_above(4, 2, 2, &constants).unwrap();
        assert!(above > guarantee.log2_delta && above < guarantee.log2_delta + 1e-6);
    }

    /// Eq. 8 itself, where a float can hold it.
    #[test]
    fn logarithms_of_the_formula() {
        let constants = Separation { r_min: 1.0, r_max: 1.1, epsilon: 1.9 };
        let (v, n, d) = (2_usize, 3_usize, 1_usize);
        let ln_n = (n as f64).ln();
        let a = (v as f64 + 1.0).powi(4) * (2.0 * ln_n + 3.0) * PI * d as f64;
        let delta = 2.0 * ln_n * ln_n * 1.9 * 1.9 * 1.0 / (1.1 * 1.1 * a) * (-a * 1.1 * 1.1 / (4.0 * 1.9)).exp();
        let guarantee = Guarantee::new(v, n, d, &constants).unwrap();
        assert!((guarantee.log2_delta - delta.log2()).abs() < 1e-9 * delta.log2().abs());
    }

    #[test]
    fn where_it_does_not_speak() {
        let constants = Separation { r_min: 1.0, r_max: 2.0, epsilon: 1.0 };
        assert_eq!(Guarantee::new(2, 1, 1, &constants).unwrap().log2_delta, f64::NEG_INFINITY);
        assert_eq!(Guarantee::new(2, 1, 1, &constants).unwrap().bits(), None);
        assert_eq!(Guarantee::new(2, 2, 1, &Separation { r_min: 0.0, ..constants }), None);
        assert_eq!(Guarantee::new(1, 2, 1, &Separation { epsilon: f64::INFINITY, ..constants }), None);
    }
}
