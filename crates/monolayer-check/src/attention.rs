//! Attention (eqs. 2 and 5) in enclosures: what any covered program can compute.
//!
//! Programs covered: keys, queries and values are projections of the tokens; scores are their products; the greatest
//! score is subtracted; exp is within its stated error; weights are normalized before or after the weighted sum; sums run
//! in any order.

use crate::dot::{Care, Dot, Partial, Sum, dot};
use crate::kernel::products;
use crate::model::Attention;
use crate::rounding::{Rounding, up};

/// Up to this many projections per token they are bounded one by one.
const RANK: usize = 4;

/// Tokens of one sequence, row-major `[n, d]`; an empty `radius` means exact inputs.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    /// Midpoints.
    pub mid: Vec<f64>,
    /// Radii.
    pub radius: Vec<f64>,
}

/// One token after attention: H = mid + sum over k of `w_k` `delta_k` + rest, |`delta_k`| <= `noise[k]`, |rest| <= `radius`.
///
/// The error of a head's value is one number shared by all coordinates (`w_k` is row k of the transposed `W_O`): kept
/// apart, it cancels where a reader of H is orthogonal to `w_k`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attended {
    /// Midpoints `[d]`.
    pub mid: Vec<f64>,
    /// Radii `[d]` of what is not shared.
    pub radius: Vec<f64>,
    /// Errors of the heads' values, `[heads s]`.
    pub noise: Vec<f64>,
}

/// Projections of all tokens, `[n, heads s]`.
struct Projected {
    mid: Vec<f64>,
    radius: Vec<f64>,
}

/// Runs the layer on some tokens of a sequence.
pub fn attend(
    layer: &Attention,
    d: usize,
    tokens: &Tokens,
    queries: &[usize],
    rounding: &Rounding,
    care: Care,
) -> Vec<Attended> {
    let n = tokens.mid.len() / d;
    let width = layer.heads * layer.size;
    // Full-rank heads are not worth the careful bound of every projection.
    let care = if width > RANK { Care::Coarse } else { care };
    let keys = project(&layer.w_k, d, tokens, 0..n, rounding, care);
    let values = project(&layer.w_v, d, tokens, 0..n, rounding, care);
    let asked = project(&layer.w_q, d, tokens, queries.iter().copied(), rounding, care);
    queries
        .iter()
        .enumerate()
        .map(|(at, &i)| {
            let visible = if layer.causal { i + 1 } else { n };
            let mut read = (Vec::with_capacity(width), Vec::with_capacity(width));
            for h in 0..layer.heads {
                let columns = h * layer.size..(h + 1) * layer.size;
                let query: Vec<(f64, f64)> =
                    columns.clone().map(|c| (asked.mid[at * width + c], asked.radius[at * width + c])).collect();
                let head = Head { keys: &keys, values: &values, width, first: h * layer.size, visible, rounding, care };
                head.read(&query, layer.hard, &mut read);
            }
            add(layer, d, tokens.row(i, d), &read.0, read.1, rounding, care)
        })
        .collect()
}

/// Projects some tokens; wide projections as matrix products of midpoints and of absolute values.
fn project(
    w: &[f64],
    d: usize,
    tokens: &Tokens,
    rows: impl Iterator<Item = usize> + Clone,
    rounding: &Rounding,
    care: Care,
) -> Projected {
    let mut out = Projected { mid: Vec::new(), radius: Vec::new() };
    if w.len() / d <= RANK {
        for (x, r) in rows.map(|i| tokens.row(i, d)) {
            for w in w.chunks_exact(d) {
                let p = dot(w, x, r, 0.0, rounding, care);
                out.mid.push(p.mid);
                out.radius.push(p.radius());
            }
        }
        return out;
    }
    let x: Vec<f64> = rows.clone().flat_map(|i| tokens.row(i, d).0).copied().collect();
    let r: Vec<f64> = rows.flat_map(|i| tokens.row(i, d).1).copied().collect();
    let reach: Vec<f64> = x.iter().enumerate().map(|(at, x)| x.abs() + r.get(at).unwrap_or(&0.0)).collect();
    let sizes: Vec<f64> = w.iter().map(|w| w.abs()).collect();
    let (mut size, mut spread) = (Vec::new(), Vec::new());
    products(&x, w, d, &mut out.mid);
    products(&reach, &sizes, d, &mut size);
    products(&r, &sizes, d, &mut spread);
    for (at, mid) in out.mid.iter_mut().enumerate() {
        let p = Dot::coarse(*mid, size[at], spread.get(at).copied().unwrap_or(0.0), d, 0.0, rounding);
        *mid = p.mid;
        out.radius.push(p.radius());
    }
    out
}

impl Tokens {
    /// The midpoints and radii of token i.
    pub fn row(&self, i: usize, d: usize) -> (&[f64], &[f64]) {
        let radius = if self.radius.is_empty() { &[][..] } else { &self.radius[i * d..(i + 1) * d] };
        (&self.mid[i * d..(i + 1) * d], radius)
    }
}

/// The skip: H = x + sum over k of `w_k` `z_k`, coordinate by coordinate; a coordinate that no `w_k` touches stays exact.
fn add(
    layer: &Attention,
    d: usize,
    x: (&[f64], &[f64]),
    z: &[f64],
    noise: Vec<f64>,
    rounding: &Rounding,
    care: Care,
) -> Attended {
    let mut out = Attended { mid: Vec::with_capacity(d), radius: Vec::with_capacity(d), noise };
    for c in 0..d {
        let mut sum = Sum::new(x.0[c], rounding, care);
        for (k, &z) in z.iter().enumerate() {
            sum.add(layer.w_o[k * d + c], z, out.noise[k]);
        }
        let sum = sum.finish();
        out.mid.push(sum.mid);
        out.radius.push(up(sum.round + x.1.get(c).copied().unwrap_or(0.0)));
    }
    out
}

/// One head and one query.
struct Head<'a> {
    keys: &'a Projected,
    values: &'a Projected,
    width: usize,
    first: usize,
    visible: usize,
    rounding: &'a Rounding,
    care: Care,
}

/// Scores up to a shift that all share: midpoints, and radii of what is not shared.
struct Scores {
    mid: Vec<f64>,
    radius: Vec<f64>,
    greatest: f64,
}

impl Head<'_> {
    /// Appends the head's s values and their radii.
    fn read(&self, query: &[(f64, f64)], hard: bool, out: &mut (Vec<f64>, Vec<f64>)) {
        let scores = self.scores(query);
        if scores.mid.iter().chain(&scores.radius).any(|x| !x.is_finite()) {
            // A score may overflow, and then a program may compute anything.
            out.0.extend(query.iter().map(|_| 0.0));
            out.1.extend(query.iter().map(|_| f64::INFINITY));
            return;
        }
        let weights = if hard { self.hardmax(&scores) } else { self.softmax(&scores) };
        for s in 0..query.len() {
            let (mid, radius) = self.average(&weights, s);
            out.0.push(mid);
            out.1.push(radius);
        }
    }

    fn key(&self, j: usize, s: usize) -> (f64, f64) {
        let at = j * self.width + self.first + s;
        (self.keys.mid[at], self.keys.radius[at])
    }

    /// `a_j` = sum over s of `k_js` `q_s`. An error of the query moves all scores by the same amount plus its product with
    /// `k_j` - `k_ref`; what all scores share, softmax and hardmax do not see.
    fn scores(&self, query: &[(f64, f64)]) -> Scores {
        let mut scores = Scores { mid: vec![], radius: vec![], greatest: f64::NEG_INFINITY };
        let mut reference = 0;
        for j in 0..self.visible {
            let mid: f64 = query.iter().enumerate().map(|(s, q)| self.key(j, s).0 * q.0).sum();
            if mid > scores.greatest {
                (scores.greatest, reference) = (mid, j);
            }
            scores.mid.push(mid);
        }
        for j in 0..self.visible {
            let mut sum = Sum::new(0.0, self.rounding, self.care);
            let mut own = 0.0;
            for (s, &(q, e_q)) in query.iter().enumerate() {
                let (k, e_k) = self.key(j, s);
                let of_key = e_k * (q.abs() + e_q);
                sum.add_product(k, q, up(of_key + k.abs() * e_q));
                own += up(of_key + (k - self.key(reference, s).0).abs() * e_q);
            }
            scores.radius.push(up(sum.finish().round + own));
        }
        scores
    }

    /// Softmax up to a common factor: `E_j`, and how far a program's weight may be from it, `theta_j` `E_j`.
    fn softmax(&self, scores: &Scores) -> Weights {
        let widest = scores.radius.iter().copied().fold(0.0, f64::max);
        let mut weights = Weights { mid: vec![], error: vec![], decided: true };
        for (a, e_a) in scores.mid.iter().zip(&scores.radius) {
            let shifted = a - scores.greatest;
            let e_b = up(e_a + self.rounding.unit * (shifted.abs() + 2.0 * widest));
            let theta = up(core_math::expm1(e_b) * (1.0 + self.rounding.exp_relative) + self.rounding.exp_relative);
            let e = core_math::exp(shifted);
            weights.error.push(up(e * theta + self.rounding.exp_absolute));
            weights.mid.push(e);
        }
        weights
    }

    /// Hardmax: equal weights for those that certainly share the greatest score; otherwise all that may have it.
    fn hardmax(&self, scores: &Scores) -> Weights {
        let least = scores.mid.iter().zip(&scores.radius).map(|(a, e)| a - e).fold(f64::NEG_INFINITY, f64::max);
        let least = least - least.abs() * 1e-15;
        let may: Vec<usize> = (0..self.visible).filter(|&j| above(scores.mid[j], scores.radius[j]) >= least).collect();
        let tie = may.iter().all(|&j| scores.radius[j] == 0.0 && scores.mid[j] == scores.greatest);
        let mut mid = vec![0.0; self.visible];
        for &j in &may {
            mid[j] = 1.0;
        }
        Weights { mid, error: vec![0.0; self.visible], decided: tie || may.len() == 1 }
    }

    /// g = sum of `E_j` `v_j` / sum of `E_j`, and its radius.
    ///
    /// A program's weights are `E_j` (1 + `theta_j`) up to a factor, so its g differs by
    /// sum of `E_j` `theta_j` (`v_j` - g) / sum of `E_j` (1 + `theta_j`). Rounding adds the errors of the numerator's sum and |g|
    /// times the relative error of the denominator's. It never leaves the range of the values.
    fn average(&self, weights: &Weights, s: usize) -> (f64, f64) {
        let value = |j: usize| {
            let at = j * self.width + self.first + s;
            (self.values.mid[at], self.values.radius[at])
        };
        let total: f64 = weights.mid.iter().sum();
        let g = (0..self.visible).map(|j| weights.mid[j] * value(j).0).sum::<f64>() / total;
        let shown: Vec<usize> = (0..self.visible).filter(|&j| weights.mid[j] > 0.0 || weights.error[j] > 0.0).collect();
        let lowest = shown.iter().map(|&j| value(j).0 - value(j).1).fold(f64::INFINITY, f64::min);
        let highest = shown.iter().map(|&j| value(j).0 + value(j).1).fold(f64::NEG_INFINITY, f64::max);
        let magnitude = up(lowest.abs().max(highest.abs()));
        let n = shown.len();
        let slop = (n + 2) as f64 * f64::EPSILON * magnitude;
        let (mut shift, mut loose, mut size) = (0.0, 0.0, 0.0);
        for &j in &shown {
            let ((v, e_v), e, error) = (value(j), weights.mid[j], weights.error[j]);
            shift += error * ((v - g).abs() + slop) + (e + error) * e_v;
            loose += error;
            size += (e + error) * (v.abs() + e_v);
        }
        let least_total = total - up(loose) - total * 1e-9;
        let rounding = self.rounding;
        let (over, under) = match self.care {
            Care::Coarse => (up(rounding.gamma(n + 1) * size), rounding.gamma(n)),
            Care::Fine => self.sums(weights, &shown, s, size, least_total),
        };
        let over = up(over + n as f64 * rounding.tiny);
        let of_sums = |g: f64| up((over / least_total + under * g) / (1.0 - under) + (n + 2) as f64 * rounding.tiny);
        let hull = up((highest - g).max(g - lowest).max(0.0));
        let bound = if weights.decided && least_total > 0.0 && under < 0.5 {
            let moved = up(shift / least_total).min(hull);
            up(moved + of_sums(up(g.abs() + moved)))
        } else {
            // Whatever the weights are, they are positive and sum to one up to rounding.
            let gamma = rounding.gamma(2 * n + 2);
            up(hull + 2.0 * gamma * magnitude + (n + 2) as f64 * rounding.tiny)
        };
        let sane = g.is_finite() && n as f64 * self.rounding.unit < 0.1;
        if sane && up(magnitude * n as f64 + bound) <= self.rounding.largest {
            (g, bound)
        } else {
            (0.0, f64::INFINITY)
        }
    }

    /// The rounding error of the numerator, one rounding for a weight's division and one per product included, and the relative
    /// error of the denominator, along the worst trees.
    fn sums(&self, weights: &Weights, shown: &[usize], s: usize, size: f64, least_total: f64) -> (f64, f64) {
        let (mut above, mut below) = (Partial::default(), Partial::default());
        for &j in shown {
            let at = j * self.width + self.first + s;
            let (v, e_v, e, error) = (self.values.mid[at], self.values.radius[at], weights.mid[j], weights.error[j]);
            above.push(e * v, up((e + error) * e_v + error * v.abs()));
            below.push(e, error);
        }
        let unit = self.rounding.unit * (1.0 + 8.0 * self.rounding.unit);
        let products = up(2.0 * unit * size);
        let over = up(products + above.chain(products, unit, |x| x).0);
        (over, up(below.chain(0.0, unit, |x| x).0 / least_total))
    }
}

/// Weights up to a common factor.
struct Weights {
    mid: Vec<f64>,
    error: Vec<f64>,
    /// False for a hardmax whose winners are not certain: those with weight 1 may be among them.
    decided: bool,
}

fn above(a: f64, e: f64) -> f64 {
    let sum = a + e;
    sum + sum.abs() * 1e-15
}
