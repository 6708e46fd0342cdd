//! Statements that fail as printed, each with the smallest example that a search finds.
//!
//! The positions of Corollary 2 are `E_k = 2 k r_max (1, ..., 1)` here, and (42) and (47) are (8) and what leads to it without
//! the factor `8 epsilon r_min`: docs/errata.md says what in this is reconstruction.

use std::f64::consts::{LN_2, PI};

use crate::arithmetic::matrix::Matrix;
use crate::context_map::View;
use crate::context_map::theorem_weights::weights::Scale;
use crate::context_map::theorem_weights::{Certified, Request, Way, certify};
use crate::data::embedding::Embedding;
use crate::data::positions::Positions;
use crate::data::separation::separation;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Format};
use crate::error::{Error, Result};
use crate::paper::attention::Mask;

/// The positions that Corollary 2 prints, one row per place: `E_k = 2 k r_max (1, ..., 1)`.
pub fn corollary_2_places(d: usize, length: usize, r_max: f64) -> Matrix<f64> {
    Matrix::from_fn(length, d, |k, _| 2.0 * (k + 1) as f64 * r_max)
}

/// A token that the printed positions move out of the ball of radius `(2 n + 1) r_max`.
#[derive(Debug, Clone, PartialEq)]
pub struct Radius {
    /// The token.
    pub token: Vec<f64>,
    /// The number of places.
    pub n: usize,
    /// The largest norm of a token.
    pub r_max: f64,
    /// The norm of the token at the last place.
    pub norm: f64,
    /// `(2 n + 1) r_max`.
    pub claimed: f64,
}

/// The smallest such example: dimension first, then places, then entries.
pub fn corollary_2_radius() -> Option<Radius> {
    (1..=4).flat_map(|d| (1..=4).map(move |n| (d, n))).find_map(|(d, n)| {
        small_vectors(d).into_iter().filter(|x| x.iter().any(|&x| x != 0.0)).find_map(|token| {
            let r_max = separation(d, &token).r_max;
            let places = corollary_2_places(d, n, r_max);
            let moved: Vec<f64> = token.iter().zip(places.row(n - 1)).map(|(x, e)| x + e).collect();
            let (norm, claimed) = (separation(d, &moved).r_max, (2 * n + 1) as f64 * r_max);
            (norm > claimed * (1.0 + 1e-12)).then_some(Radius { token, n, r_max, norm, claimed })
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
pub fn corollary_2_separation(d: usize) -> Option<Undone> {
    // Definition 1 is strict.
    let (above, below) = (1.0 + 1.0 / 1024.0, 1.0 - 1.0 / 1024.0);
    let vectors = small_vectors(d);
    let pairs = vectors.iter().flat_map(|x| vectors.iter().map(move |y| (x, y))).filter(|(x, y)| x != y);
    let found = pairs.filter_map(|(x, y)| {
        let before = separation(d, &[x.clone(), y.clone()].concat());
        let (r_max, epsilon) = (before.r_max * above, before.epsilon * below);
        let places = corollary_2_places(d, 2, r_max);
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
    all.sort_by_key(|x| x.iter().filter(|&&x| x != 0.0).count());
    all
}

/// Three numbers as tokens, all pairs as sequences, so small that the printed bounds exceed the gaps that the paper's weights
/// really have.
#[derive(Debug, Clone, PartialEq)]
pub struct Unscaled {
    /// The tokens are these whole numbers times `2^-power`.
    pub tokens: [i32; 3],
    /// Smaller tokens only make it worse.
    pub power: i32,
    /// The binary logarithm of the gap that (42) promises for g.
    pub log2_42: f64,
    /// An upper bound of that of the gap that g has, proved.
    pub log2_g: f64,
    /// The binary logarithm of the gap that (47) promises for ids.
    pub log2_47: f64,
    /// An upper bound of that of the gap that ids have, proved.
    pub log2_ids: f64,
    /// The binary logarithm of (8), which holds.
    pub log2_8: f64,
}

/// The example with the largest tokens, among whole numbers up to 4 times a power of two.
///
/// Scaling all tokens by s leaves the exponent of (8) alone and multiplies gaps by s. Without the factor `8 epsilon r_min`, (42)
/// is divided by s, and (47), that is (42) times `epsilon / (4 r_max)`, as well. So both fail for small enough tokens.
pub fn equation_47() -> Result<Unscaled> {
    let numbers: Vec<i32> = (-4..=4).filter(|&x| x != 0).collect();
    let mut best: Option<([i32; 3], i32)> = None;
    for (i, &a) in numbers.iter().enumerate() {
        for (j, &b) in numbers.iter().enumerate().skip(i + 1) {
            for &c in &numbers[j + 1..] {
                let found = unscaled([a, b, c], 0)?;
                let missing = (found.log2_g - found.log2_42).max(found.log2_ids - found.log2_47);
                let power = (missing / 2.0).floor() as i32 + 1;
                if best.is_none_or(|(_, least)| power < least) {
                    best = Some(([a, b, c], power));
                }
            }
        }
    }
    let (tokens, power) = best.expect("there are 56 triples");
    unscaled(tokens, power)
}

/// The printed bounds and the proved gaps for given tokens.
fn unscaled(tokens: [i32; 3], power: i32) -> Result<Unscaled> {
    let [a, b, c] = tokens.map(|x| f64::from(x) * 2_f64.powi(-power));
    let line = |x: f64, y: f64| serde_json::json!({ "tokens": [[x], [y]] }).to_string();
    let lines = [line(a, b), line(a, c), line(b, c)].join("\n");
    let data = Dataset::read("three numbers", Format::JsonLines, lines.as_bytes())?;
    let vectors = TokenVectors::new(&data, &Embedding::Sign(1), &Positions::None, 0, 0)?;
    let view = View::new(&data, &vectors, Mask::None);
    let request = Request { scale: Scale::Paper, way: Way::Identity, max_bits: 0, seed: 0, candidates: 1 };
    let found = certify(&view, &request)?;
    let nothing = || Error::undefined("no token has two contexts", "give three different tokens");
    let log2_g = found.identity.as_ref().and_then(|way| way.closest).ok_or_else(nothing)?.0.hi();
    let log2_ids = found.same_token().ok_or_else(nothing)?.0.hi();
    let (log2_42, log2_47) = without_the_factor(&found);
    Ok(Unscaled { tokens, power, log2_42, log2_g, log2_47, log2_ids, log2_8: found.theorem.log2_delta })
}

/// The binary logarithms of `(ln n)^2 / (r_max A) exp(-A r_max^2 / (4 epsilon r_min))`, `A = (|V| + 1)^4 (2 ln n + 3) pi d`, and of
/// `epsilon / (4 r_max)` times that, for three numbers in pairs.
fn without_the_factor(found: &Certified) -> (f64, f64) {
    let s = found.weights.separation.constants;
    let ln_n = LN_2;
    let a = 256.0 * (2.0 * ln_n + 3.0) * PI;
    let exponent = a * (s.r_max / s.epsilon) * (s.r_max / s.r_min) / 4.0;
    let log2_42 = 2.0 * ln_n.log2() - s.r_max.log2() - a.log2() - exponent / LN_2;
    (log2_42, log2_42 + (s.epsilon / s.r_max).log2() - 2.0)
}
