//! The feed-forward layer (eq. 3) in enclosures: which units are certainly off, and what the others may add.

use crate::attention::Attended;
use crate::dot::{Care, Sum, dot};
use crate::kernel;
use crate::model::FeedForward;
use crate::rounding::{Rounding, up};

/// Shared errors are kept apart up to this many; more of them are folded into the coordinates.
const SHARED: usize = 4;
/// Up to this many units, they and the last sums take the careful bound.
const FEW: usize = 256;
/// Units per product of the kernel.
pub(crate) const UNITS: usize = 256;

/// A feed-forward layer with what its bounds need.
pub struct Prepared<'a> {
    pub(crate) part: &'a FeedForward,
    pub(crate) d: usize,
    /// The rows `w_k` of the transposed `W_O` before it.
    outer: &'a [f64],
    /// The same, or nothing where they are too many: the directions of shared errors that are kept apart.
    pub(crate) directions: &'a [f64],
    /// Their norms, from above.
    spans: Vec<f64>,
    /// Norm of each row of `W1`, from above.
    norms: Vec<f64>,
    /// `gamma_(k+1)` for a row with k entries.
    gammas: Vec<f64>,
    /// `W1_j` . `w_k`, `[q, K]`, and a bound on its size `[q, K]`.
    gains: Vec<f64>,
    pub(crate) gain_bounds: Vec<f64>,
    pub(crate) rounding: &'a Rounding,
}

/// A hidden unit that is not certainly off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Its index.
    pub index: usize,
    /// Its pre-activation.
    pub mid: f64,
    /// The radius of that.
    pub radius: f64,
    /// The part of the radius that is rounding in the pre-activation itself.
    pub round: f64,
}

/// A token after the layer.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// Midpoints `[d]`.
    pub mid: Vec<f64>,
    /// Radii `[d]`.
    pub radius: Vec<f64>,
    /// The part of the radii that is rounding of the last sums.
    pub round: Vec<f64>,
    /// The input.
    pub input: Attended,
    /// The units that are not certainly off; none where they are too many to be listed.
    pub units: Option<Vec<Unit>>,
}

impl Output {
    /// Whether every bound is finite.
    pub fn is_finite(&self) -> bool {
        self.input.is_finite() && self.radius.iter().all(|r| r.is_finite())
    }

    /// Nothing is known.
    pub(crate) fn lost(input: Attended) -> Self {
        let lost = vec![f64::INFINITY; input.mid.len()];
        Self { mid: vec![0.0; lost.len()], radius: lost.clone(), round: lost, input, units: None }
    }

    /// Adds the rounding of the last sums to the radii; where that leaves no finite bound, nothing is known.
    pub(crate) fn sane(mut self) -> Self {
        for c in 0..self.mid.len() {
            self.radius[c] = up(self.radius[c] + self.round[c]);
            if !(self.mid[c].is_finite() && self.radius[c].is_finite()) {
                (self.mid[c], self.radius[c], self.round[c]) = (0.0, f64::INFINITY, f64::INFINITY);
            }
        }
        self
    }
}

/// The Euclidean norm from above.
pub(crate) fn norm(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = x.clone().fold(0.0, |m: f64, x| m.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    up(largest * x.map(|x| (x / largest).powi(2)).sum::<f64>().sqrt())
}

impl Attended {
    /// The radius of every coordinate, shared errors included.
    pub fn whole_radius(&self, directions: &[f64]) -> Vec<f64> {
        let mut whole = self.radius.clone();
        for (w, &noise) in directions.chunks_exact(self.mid.len()).zip(&self.noise) {
            for (r, w) in whole.iter_mut().zip(w).filter(|(_, w)| **w != 0.0) {
                *r = up(*r + w.abs() * noise + f64::MIN_POSITIVE);
            }
        }
        whole
    }

    /// The same token with its shared errors folded into the coordinates.
    #[must_use]
    pub fn folded(self, directions: &[f64]) -> Self {
        let radius = self.whole_radius(directions);
        Self { radius, noise: vec![], ..self }
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.radius.iter().chain(&self.noise).all(|r| r.is_finite())
    }
}

impl<'a> Prepared<'a> {
    /// Prepares a layer that reads tokens whose shared errors go along `directions`, `[K, d]`.
    pub fn new(part: &'a FeedForward, d: usize, outer: &'a [f64], rounding: &'a Rounding) -> Self {
        let directions = if outer.len() / d > SHARED { &[] } else { outer };
        let mut prepared = Self {
            part,
            d,
            outer,
            directions,
            spans: directions.chunks_exact(d).map(|w| norm(w.iter().copied())).collect(),
            norms: vec![],
            gammas: vec![],
            gains: vec![],
            gain_bounds: vec![],
            rounding,
        };
        for row in part.w1.chunks_exact(d) {
            let entries = row.iter().filter(|w| **w != 0.0).count();
            let size = norm(row.iter().copied());
            prepared.norms.push(size);
            prepared.gammas.push(rounding.gamma(entries + 1));
            for (w, span) in directions.chunks_exact(d).zip(&prepared.spans) {
                let gain: f64 = row.iter().zip(w).map(|(a, b)| a * b).sum();
                let slop = up((entries + 1) as f64 * f64::EPSILON * size * span);
                prepared.gains.push(gain);
                prepared.gain_bounds.push(up(gain.abs() + slop));
            }
        }
        prepared
    }

    /// How many shared errors are kept apart.
    pub fn shared(&self) -> usize {
        self.directions.len() / self.d
    }

    /// Runs the layer on a block of tokens; one for which many units are on takes matrix products unless care is asked for.
    pub fn run(&self, tokens: Vec<Attended>, care: Care) -> Vec<Output> {
        let folds = |t: Attended| if self.shared() == 0 { t.folded(self.outer) } else { t };
        let tokens: Vec<Attended> = tokens.into_iter().map(folds).collect();
        let most = if care == Care::Coarse { FEW * tokens.len() } else { usize::MAX };
        match self.screen(&tokens, most) {
            Some(units) => tokens.into_iter().zip(units).map(|(token, units)| self.apply(token, units, care)).collect(),
            None => self.run_dense(tokens),
        }
    }

    /// The units that are not certainly off, from one matrix product and norms:
    /// |error of `h_j`| <= |`W1_j`| (|rho| + gamma |H|) + gamma |`b_j`| + sum over k of |`W1_j` . `w_k`| `e_k`.
    /// Nothing where they are more than `most`.
    fn screen(&self, tokens: &[Attended], most: usize) -> Option<Vec<Vec<Unit>>> {
        let (d, k) = (self.d, self.shared());
        let mids: Vec<f64> = tokens.iter().flat_map(|t| t.mid.iter().copied()).collect();
        let sizes: Vec<(f64, f64)> = tokens
            .iter()
            .map(|t| {
                let whole = t.whole_radius(self.directions);
                let reach = norm(t.mid.iter().zip(&whole).map(|(m, r)| m.abs() + r));
                (norm(t.radius.iter().copied()), reach)
            })
            .collect();
        let mut units = vec![Vec::new(); tokens.len()];
        let mut products = Vec::new();
        for first in (0..self.part.hidden).step_by(UNITS) {
            let last = (first + UNITS).min(self.part.hidden);
            kernel::products(&mids, &self.part.w1[first * d..last * d], d, &mut products);
            for (t, row) in products.chunks_exact(last - first).enumerate() {
                let (rho, reach) = sizes[t];
                for (j, product) in (first..last).zip(row) {
                    let (mid, gamma) = (product + self.part.b1[j], self.gammas[j]);
                    let size = self.norms[j] * reach + self.part.b1[j].abs();
                    let round = gamma * size;
                    let mut radius = self.norms[j] * rho + round;
                    for (gain, noise) in self.gain_bounds[j * k..(j + 1) * k].iter().zip(&tokens[t].noise) {
                        radius += gain * noise;
                    }
                    let radius = radius * (1.0 + 1e-9) + (d + 1) as f64 * self.rounding.tiny;
                    // Written so that a bound that is not a number leaves the unit in.
                    let fits = size <= self.rounding.largest * 0.999;
                    if fits && mid + radius < 0.0 {
                        continue;
                    }
                    let radius = if fits { radius } else { f64::INFINITY };
                    units[t].push(Unit { index: j, mid, radius, round: radius });
                }
            }
            if units.iter().map(Vec::len).sum::<usize>() > most {
                return None;
            }
        }
        Some(units)
    }

    /// H + W2 relu(h) + b2.
    fn apply(&self, input: Attended, mut units: Vec<Unit>, care: Care) -> Output {
        let (d, whole) = (self.d, input.whole_radius(self.directions));
        if !input.is_finite() {
            return Output::lost(input);
        }
        if care == Care::Fine {
            let care = if units.len() <= FEW { Care::Fine } else { Care::Coarse };
            units = units.iter().map(|unit| self.refined(unit.index, &input, &whole, care)).collect();
            // Written so that a bound that is not a number leaves the unit in.
            units.retain(|unit| !matches!((unit.mid + unit.radius).partial_cmp(&0.0), Some(std::cmp::Ordering::Less)));
        }
        let mut out = Output { mid: vec![0.0; d], radius: whole.clone(), round: vec![0.0; d], input, units: None };
        if care == Care::Fine && units.len() <= FEW {
            self.sum_carefully(&mut out, &units, &whole);
        } else {
            self.sum(&mut out, &units);
        }
        out.units = Some(units);
        out.sane()
    }

    /// The last sums with `gamma_k` bounds.
    fn sum(&self, out: &mut Output, units: &[Unit]) {
        let mut size: Vec<f64> = out.radius.clone();
        for (c, (h, b)) in out.input.mid.iter().zip(&self.part.b2).enumerate() {
            out.mid[c] = h + b;
            size[c] += h.abs() + b.abs();
        }
        for unit in units {
            let (h, r) = (unit.mid.max(0.0), unit.radius);
            let row = &self.part.w2[unit.index * self.d..(unit.index + 1) * self.d];
            let sums = out.mid.iter_mut().zip(&mut out.radius).zip(&mut size);
            for (((mid, radius), size), &w) in sums.zip(row) {
                let (value, error) = (w * h, w.abs() * r);
                *mid += value;
                *radius += error;
                *size += value.abs() + error;
            }
        }
        for (round, size) in out.round.iter_mut().zip(size) {
            *round = self.last_rounding(units.len(), size);
        }
    }

    /// The rounding error of H + W2 relu(h) + b2 with this many units and this sum of absolute values.
    pub(crate) fn last_rounding(&self, units: usize, size: f64) -> f64 {
        let bound = up(self.rounding.gamma(units + 2) * size + (units + 1) as f64 * self.rounding.tiny);
        if up(size + bound) <= self.rounding.largest { bound } else { f64::INFINITY }
    }

    /// The last sums with the careful bound, coordinate by coordinate.
    fn sum_carefully(&self, out: &mut Output, units: &[Unit], whole: &[f64]) {
        for (c, &radius) in whole.iter().enumerate() {
            let mut sum = Sum::new(self.part.b2[c], self.rounding, Care::Fine);
            sum.add(1.0, out.input.mid[c], radius);
            for unit in units {
                sum.add(self.part.w2[unit.index * self.d + c], unit.mid.max(0.0), unit.radius);
            }
            let sum = sum.finish();
            (out.mid[c], out.radius[c], out.round[c]) = (sum.mid, sum.spread, sum.round);
        }
    }

    /// One unit with a bound from its own terms instead of norms.
    fn refined(&self, index: usize, input: &Attended, whole: &[f64], care: Care) -> Unit {
        let row = &self.part.w1[index * self.d..(index + 1) * self.d];
        let sum = dot(row, &input.mid, whole, self.part.b1[index], self.rounding, care);
        let mut spread: f64 = row.iter().zip(&input.radius).map(|(w, r)| w.abs() * r).sum();
        let k = self.shared();
        for (gain, noise) in self.gain_bounds[index * k..(index + 1) * k].iter().zip(&input.noise) {
            spread += gain * noise;
        }
        let spread = if sum.spread == 0.0 { 0.0 } else { up(spread + self.d as f64 * f64::MIN_POSITIVE) };
        Unit { index, mid: sum.mid, radius: up(sum.round + spread.min(sum.spread)), round: sum.round }
    }

    /// How far a program's value of sum over c of `a_c` F(X)_c, formed exactly from its computed F(X), may be from that of the
    /// midpoints. Errors of the input pass through the units that are certainly on, and cancel as they do there.
    /// Nothing where the units are not listed.
    pub fn functional(&self, output: &Output, a: &[f64]) -> Option<f64> {
        let (d, k) = (self.d, self.shared());
        let units = output.units.as_ref()?;
        let slope = (2 * d + units.len() + 8) as f64 * f64::EPSILON;
        let mut along: Vec<f64> = a.to_vec();
        let mut along_slop: Vec<f64> = a.iter().map(|a| a.abs()).collect();
        let mut shared: Vec<(f64, f64)> = self.directions.chunks_exact(d).map(|w| inner(a, w)).collect();
        let mut error = 0.0;
        for unit in units {
            let row = unit.index * d..(unit.index + 1) * d;
            let (gain, size) = inner(a, &self.part.w2[row.clone()]);
            let bound = gain.abs() + slope * size;
            if unit.mid - unit.radius <= 0.0 {
                error += bound * unit.radius;
                continue;
            }
            error += bound * unit.round;
            if output.input.radius.iter().any(|r| *r > 0.0) {
                for (c, w) in self.part.w1[row].iter().enumerate() {
                    along[c] += gain * w;
                    along_slop[c] += size * w.abs();
                }
            }
            for (i, (value, slop)) in shared.iter_mut().enumerate() {
                *value += gain * self.gains[unit.index * k + i];
                *slop += size * self.norms[unit.index] * self.spans[i];
            }
        }
        for c in 0..d {
            if a[c] != 0.0 {
                error += a[c].abs() * output.round[c];
            }
            if output.input.radius[c] > 0.0 {
                error += (along[c].abs() + slope * along_slop[c]) * output.input.radius[c];
            }
        }
        for ((value, slop), noise) in shared.iter().zip(&output.input.noise) {
            error += (value.abs() + slope * slop) * noise;
        }
        Some(up(error + d as f64 * f64::MIN_POSITIVE))
    }
}

/// The inner product, and the sum of the absolute values of its terms.
fn inner(a: &[f64], b: &[f64]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(sum, size), (a, b)| (sum + a * b, size + (a * b).abs()))
}
