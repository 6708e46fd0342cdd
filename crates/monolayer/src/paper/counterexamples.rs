//! Statements that fail as printed, each with the smallest example that a search finds.
//!
//! They are the positions (48) of Corollary 2's proof and the gaps (42) and (47) of the proofs of Theorem 2 and Corollary 1.

use std::f64::consts::{LN_2, PI};

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Interval, Magnitude, Number as _};
use crate::data::separation::{Separation, separation};
use crate::paper::theorem_two::Guarantee;

/// How far constants of Definition 1 are beyond the norms and distances, relative to them, where little room is left.
const STRICT: f64 = 1.0 / (1_u64 << 30) as f64;

/// (48), the positions in the proof of Corollary 2, one row per place: `E_k = 2 k r_max (1, ..., 1)`.
pub fn equation_48(d: usize, length: usize, r_max: f64) -> Matrix<f64> {
    Matrix::from_fn(length, d, |k, _| 2.0 * (k + 1) as f64 * r_max)
}

/// A token that the printed positions move out of the ball of radius `(2 n + 1) r_max`.
#[derive(Debug, Clone, PartialEq)]
pub struct Radius {
    /// The token.
    pub token: Vec<f64>,
    /// The number of places.
    pub n: usize,
    /// A number above its norm.
    pub r_max: f64,
    /// The norm of the token at the last place.
    pub norm: f64,
    /// `(2 n + 1) r_max`.
    pub claimed: f64,
}

/// The smallest such example: dimension first, then places, then entries.
pub fn equation_48_radius() -> Option<Radius> {
    (1..=4).flat_map(|d| (1..=4).map(move |n| (d, n))).find_map(|(d, n)| {
        small_vectors(d).into_iter().filter(|x| x.iter().any(|&x| x != 0.0)).find_map(|token| {
            // Definition 1 is strict.
            let r_max = separation(d, &token).r_max * (1.0 + 1.0 / 1024.0);
            let places = equation_48(d, n, r_max);
            let moved: Vec<f64> = token.iter().zip(places.row(n - 1)).map(|(x, e)| x + e).collect();
            let (norm, claimed) = (separation(d, &moved).r_max, (2 * n + 1) as f64 * r_max);
            (norm > claimed).then_some(Radius { token, n, r_max, norm, claimed })
        })
    })
}

/// Two tokens that the printed positions bring closer together than any two were before.
#[derive(Debug, Clone, PartialEq)]
pub struct Undone {
    /// The tokens, the first at place 1 and the second at place 2.
    pub tokens: [Vec<f64>; 2],
    /// A number above their norms.
    pub r_max: f64,
    /// A number below their distance.
    pub epsilon: f64,
    /// Their distance with positions.
    pub distance: f64,
}

/// The closest that two tokens with entries -1, 0 and 1 come in a dimension, if closer than epsilon. There is none from
/// dimension 4 on: `|E_1 - E_2| - |x| - |x'| > 2 r_max (sqrt(d) - 1)`, which is `2 r_max > epsilon` there.
pub fn equation_48_separation(d: usize) -> Option<Undone> {
    // Definition 1 is strict.
    let (above, below) = (1.0 + 1.0 / 1024.0, 1.0 - 1.0 / 1024.0);
    let vectors = small_vectors(d);
    let pairs = vectors.iter().flat_map(|x| vectors.iter().map(move |y| (x, y))).filter(|(x, y)| x != y);
    let found = pairs.filter_map(|(x, y)| {
        let before = separation(d, &[x.clone(), y.clone()].concat());
        let (r_max, epsilon) = (before.r_max * above, before.epsilon * below);
        let places = equation_48(d, 2, r_max);
        let at = |x: &[f64], k: usize| x.iter().zip(places.row(k)).map(|(x, e)| x + e).collect::<Vec<f64>>();
        let distance = separation(d, &[at(x, 0), at(y, 1)].concat()).epsilon;
        (distance < epsilon).then(|| Undone { tokens: [x.clone(), y.clone()], r_max, epsilon, distance })
    });
    found.min_by(|a, b| (a.distance / a.epsilon).total_cmp(&(b.distance / b.epsilon)))
}

/// All vectors with entries 0, 1 and -1, fewer entries other than 0 first.
fn small_vectors(d: usize) -> Vec<Vec<f64>> {
    let digit = |i: usize, c: usize| [0.0, 1.0, -1.0][i / 3_usize.pow(c as u32) % 3];
    let mut all: Vec<Vec<f64>> = (0..3_usize.pow(d as u32)).map(|i| (0..d).map(|c| digit(i, c)).collect()).collect();
    sorting::sort_by_key(&mut all, |x| x.iter().filter(|&&x| x != 0.0).count());
    all
}

/// Three numbers as tokens, all pairs as sequences, so small that a printed bound exceeds the gap that the proof's weights really
/// have. Logarithms are binary.
///
/// Scaling all tokens by a power of two changes no score, since (29) is divided by its square: ids scale with the tokens, and so
/// does (8). The right side of (42), which lacks a factor `8 epsilon r_min`, is divided by the power, and that of (47) does not
/// change. So both fail for small enough tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct SmallTokens {
    /// The tokens are these whole numbers times `2^-power`.
    pub tokens: [i32; 3],
    /// Smaller tokens only make it worse.
    pub power: i32,
    /// The right side of (42).
    pub log2_42: f64,
    /// That of (47).
    pub log2_47: f64,
    /// That of (8), which holds.
    pub log2_8: f64,
    /// An enclosure of the smallest distance of ids of one token, for the proof's weights: `|u . u'|` is (29), and not rounded.
    pub log2_ids: Interval,
    /// Twice the radius (46): ids of a contextual mapping are closer, whatever the weights.
    pub log2_diameter: f64,
}

/// Whole numbers up to 4 for which (42) fails at the largest power of two.
pub fn equation_42() -> SmallTokens {
    let numbers: Vec<i32> = (-4..=4).filter(|&x| x != 0).collect();
    let mut best: Option<(SmallTokens, i32)> = None;
    for (i, &a) in numbers.iter().enumerate() {
        for (j, &b) in numbers.iter().enumerate().skip(i + 1) {
            for &c in &numbers[j + 1..] {
                let found = small_tokens([a, b, c]);
                let power = ((found.log2_ids.hi() - found.log2_42) / 2.0).floor() as i32 + 1;
                if best.as_ref().is_none_or(|&(_, least)| power < least) {
                    best = Some((found, power));
                }
            }
        }
    }
    let (unit, power) = best.expect("there are 56 triples");
    unit.scaled(power)
}

/// The same tokens so small that (47) fails for the proof's weights, and so small that it fails for every map.
pub fn equation_47() -> [SmallTokens; 2] {
    let unit = small_tokens([-4, -3, 4]);
    let power = |log2: f64| (log2 - unit.log2_47).floor() as i32 + 1;
    [power(unit.log2_ids.hi()), power(unit.log2_diameter)].map(|power| unit.scaled(power))
}

impl SmallTokens {
    /// The same for tokens `2^-power` times as large, which floats may no longer hold.
    fn scaled(&self, power: i32) -> Self {
        let by = f64::from(power);
        Self {
            power: self.power + power,
            log2_42: self.log2_42 + by,
            log2_8: self.log2_8 - by,
            log2_ids: self.log2_ids - Interval::point(by),
            log2_diameter: self.log2_diameter - by,
            ..self.clone()
        }
    }
}

/// The printed bounds, and the gap of the proof's weights, for three whole numbers.
fn small_tokens(tokens: [i32; 3]) -> SmallTokens {
    let tightest = separation(1, &tokens.map(f64::from));
    // Definition 1 is strict.
    let (above, below) = (1.0 + STRICT, 1.0 - STRICT);
    let s =
        Separation { r_min: below * tightest.r_min, r_max: above * tightest.r_max, epsilon: below * tightest.epsilon };
    SmallTokens {
        tokens,
        power: 0,
        log2_42: log2_42(3, 2, 1, &s),
        log2_47: log2_47(3, 2, 1, &s),
        log2_8: Guarantee::new(3, 2, 1, &s).map_or(f64::NAN, |found| found.log2_delta),
        log2_ids: log2_ids(tokens, &s),
        log2_diameter: (2.0 * (s.r_max + s.epsilon / 4.0)).log2(),
    }
}

/// The smallest distance of ids of one token in two pairs, d = 1, for the weights of Theorem 2's proof: v = 1, `|u . u'|` as in (29)
/// and `|W_O u''|` as in (32).
///
/// The id of c beside a is `c + |W_O u''| (c + (a - c) / (1 + e^(k c (c - a))))`, k for `|u . u'|`. Without the two c, nothing
/// cancels: an enclosure of k serves as well as k itself.
fn log2_ids(tokens: [i32; 3], s: &Separation) -> Interval {
    let number = |x: f64| Ball::new(x, 192);
    // The float PI is less than its last bit, 2^-51, away from pi.
    let pi = number(PI).widened(Magnitude::power_of_two(-51));
    // (|V| + 1)^4 pi d (2 log n + 3) / (8 epsilon r_min).
    let scores = number(2.0) * number(2.0).ln() + number(3.0);
    let scale = number(256.0) * pi * scores / (number(8.0) * number(s.epsilon) * number(s.r_min));
    let output = number(s.epsilon) / (number(4.0) * number(s.r_max));
    let seen = |c: i32, a: i32| {
        let exponent = scale.clone() * number(f64::from(c * (c - a)));
        number(f64::from(a - c)) / (number(1.0) + exponent.exp())
    };
    let gap = |i: usize| {
        let [c, a, b] = [0, 1, 2].map(|j| tokens[(i + j) % 3]);
        ((seen(c, a) - seen(c, b)) * &output).log2_abs()
    };
    gap(0).min(gap(1)).min(gap(2))
}

/// The binary logarithm of the right side of (42): `epsilon / (4 r_max) delta' / ((|V| + 1)^4 pi d delta r_max)`,
/// `delta = 2 log n + 3` (43), `delta' = (log n)^2 e^(-2 r)`, `r = (|V| + 1)^4 pi d delta r_max^2 / (8 epsilon r_min)` (44).
pub fn log2_42(vocabulary: usize, n: usize, d: usize, s: &Separation) -> f64 {
    let ln_n = (n as f64).ln();
    let a = (vocabulary as f64 + 1.0).powi(4) * PI * d as f64 * (2.0 * ln_n + 3.0);
    let twice_r = a * (s.r_max / s.epsilon) * (s.r_max / s.r_min) / 4.0;
    (s.epsilon / s.r_max).log2() - 2.0 + 2.0 * ln_n.log2() - twice_r / LN_2 - a.log2() - s.r_max.log2()
}

/// The binary logarithm of (47): `epsilon r_min log n / (r_max^2 (|V| + 1)^4 (2 log n + 3) pi d)` times the exponential of (8).
pub fn log2_47(vocabulary: usize, n: usize, d: usize, s: &Separation) -> f64 {
    let ln_n = (n as f64).ln();
    let a = (vocabulary as f64 + 1.0).powi(4) * (2.0 * ln_n + 3.0) * PI * d as f64;
    let exponent = a * (s.r_max / s.epsilon) * (s.r_max / s.r_min) / 4.0;
    (s.epsilon / s.r_max).log2() + (s.r_min / s.r_max).log2() + ln_n.log2() - a.log2() - exponent / LN_2
}
