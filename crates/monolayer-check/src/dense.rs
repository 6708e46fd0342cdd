//! The feed-forward layer where many units may be on: a block of tokens in matrix products of midpoints and absolute values.

use crate::attention::Attended;
use crate::feed_forward::{Output, Prepared, UNITS};
use crate::kernel::{add_products, products};
use crate::rounding::up;

/// Sums over units, `[T, d]` each, and how many units of each token are not certainly off.
struct Sums {
    /// W2 relu(h).
    mid: Vec<f64>,
    /// |W2| times the radii of h.
    spread: Vec<f64>,
    /// |W2| relu(h).
    size: Vec<f64>,
    units: Vec<usize>,
}

impl Prepared<'_> {
    /// H + W2 relu(h) + b2 for a block of tokens, without a list of units.
    pub(crate) fn run_dense(&self, tokens: Vec<Attended>) -> Vec<Output> {
        let whole: Vec<Vec<f64>> = tokens.iter().map(|token| token.whole_radius(self.directions)).collect();
        let sums = self.sums(&tokens, &whole);
        let d = self.d;
        let finish = |(t, (input, whole)): (usize, (Attended, Vec<f64>))| {
            if !input.is_finite() {
                return Output::lost(input);
            }
            let (mut mid, mut round) = (Vec::with_capacity(d), Vec::with_capacity(d));
            let mut radius = whole;
            for (c, radius) in radius.iter_mut().enumerate() {
                let (h, b, at) = (input.mid[c], self.part.b2[c], t * d + c);
                mid.push(h + b + sums.mid[at]);
                *radius += sums.spread[at];
                round.push(self.last_rounding(sums.units[t], h.abs() + b.abs() + sums.size[at] + *radius));
            }
            Output { mid, radius, round, input, units: None }.sane()
        };
        tokens.into_iter().zip(whole).enumerate().map(finish).collect()
    }

    /// The sums over all units, some at a time.
    fn sums(&self, tokens: &[Attended], whole: &[Vec<f64>]) -> Sums {
        let d = self.d;
        // Every row counts as full: `gamma_(d+1)`.
        let gamma = self.rounding.gamma(d + 1);
        let mids: Vec<f64> = tokens.iter().flat_map(|t| t.mid.iter().copied()).collect();
        let reach = |(t, whole): (&Attended, &Vec<f64>)| -> Vec<f64> {
            (0..d).map(|c| up(t.radius[c] + gamma * (t.mid[c].abs() + whole[c]))).collect()
        };
        let reaches: Vec<f64> = tokens.iter().zip(whole).flat_map(reach).collect();
        let zeros = vec![0.0; mids.len()];
        let mut sums = Sums { mid: zeros.clone(), spread: zeros.clone(), size: zeros, units: vec![0; tokens.len()] };
        let (mut values, mut radii) = (Vec::new(), Vec::new());
        for first in (0..self.part.hidden).step_by(UNITS) {
            let last = (first + UNITS).min(self.part.hidden);
            let sizes = |matrix: &[f64]| -> Vec<f64> { matrix[first * d..last * d].iter().map(|w| w.abs()).collect() };
            products(&mids, &self.part.w1[first * d..last * d], d, &mut values);
            products(&reaches, &sizes(&self.part.w1), d, &mut radii);
            let rows = values.chunks_exact_mut(last - first).zip(radii.chunks_exact_mut(last - first));
            for (t, (values, radii)) in rows.enumerate() {
                sums.units[t] += self.activate(first, values, radii, &tokens[t].noise, gamma);
            }
            let size = sizes(&self.part.w2);
            add_products(&values, &self.part.w2[first * d..last * d], d, &mut sums.mid);
            add_products(&values, &size, d, &mut sums.size);
            add_products(&radii, &size, d, &mut sums.spread);
        }
        sums
    }

    /// From `W1_j` . H and |`W1_j`| . (rho + gamma |H|) to relu(`h_j`) and its radius; the number of units that may be on.
    fn activate(&self, first: usize, values: &mut [f64], radii: &mut [f64], noise: &[f64], gamma: f64) -> usize {
        let (k, tiny) = (self.shared(), (self.d + 1) as f64 * self.rounding.tiny);
        let most = self.rounding.largest * 0.99 * gamma;
        for (j, noise) in noise.iter().enumerate() {
            let gains = self.gain_bounds[first * k..].iter().skip(j).step_by(k);
            radii.iter_mut().zip(gains).for_each(|(radius, gain)| *radius += gain * noise);
        }
        let mut on = 0;
        let biases = &self.part.b1[first..first + values.len()];
        // Without branches, so that the compiler can take several units at once.
        for ((value, radius), bias) in values.iter_mut().zip(radii).zip(biases) {
            let bound = (*radius + gamma * bias.abs()) * (1.0 + 1e-9) + tiny;
            // Beyond `most` the sum might overflow; written so that a bound that is not a number leaves the unit in.
            let bound = if bound <= most { bound } else { f64::INFINITY };
            let mid = *value + bias;
            let off = mid + bound < 0.0;
            on += usize::from(!off);
            *value = mid.max(0.0);
            // Below zero relu cuts the enclosure at zero.
            let reach = bound + mid.min(0.0) * (1.0 - 1e-15);
            *radius = if off { 0.0 } else { reach * (1.0 + 1e-9) + f64::MIN_POSITIVE };
        }
        on
    }
}
