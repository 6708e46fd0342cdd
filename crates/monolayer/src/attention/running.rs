//! Moments that grow with each key: bins of one width, wherever the keys will lie.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use crate::arithmetic::kernels::Real;

use super::grading::short;
use super::moments::powers;
use super::plan::exponential;

/// The sums over the keys so far, of 1 and of their values. Bin i holds the keys from `2 i` to `2 i + 2` half-widths, which
/// have few digits, so that its center is exact and more bins can be added at either side.
#[derive(Debug, Clone)]
pub(super) struct Running<const Q: usize> {
    half: f64,
    /// The number of the first bin there is.
    first: i64,
    /// Moments times the coefficients of the exponential.
    sums: Vec<[[f64; Q]; 2]>,
    coefficients: [f64; Q],
}

/// From one bin to the next an exponential grows by a factor; it is computed anew after so many bins.
pub(super) const STRIDE: usize = 8;

/// The half-width of bins: a number of few digits for which scores within a bin differ by no more than `2 delta`.
pub(super) fn half_width(delta: f64, largest_query: f64) -> f64 {
    let half = if largest_query > 0.0 { delta / largest_query } else { 1.0 };
    short(half)
}

impl<const Q: usize> Running<Q> {
    /// No keys yet, and bins from `low` to `high`, for bins of `delta` in units of a score.
    pub fn new(delta: f64, half: f64, low: f64, high: f64) -> Self {
        let coefficients = exponential(Q, delta).try_into().expect("as many as terms");
        let mut new = Self { half, first: 0, sums: Vec::new(), coefficients };
        let (first, last) = (new.number(low), new.number(high));
        new.first = first;
        new.sums = vec![[[0.0; Q]; 2]; (last - first + 1) as usize];
        new
    }

    #[inline(always)]
    fn number(&self, k: f64) -> i64 {
        (k / (2.0 * self.half)).floor() as i64
    }

    /// How many bins there are.
    pub fn bins(&self) -> usize {
        self.sums.len()
    }

    /// Whether a key has a bin.
    pub fn covers(&self, k: f64) -> bool {
        (self.first..self.first + self.sums.len() as i64).contains(&self.number(k))
    }

    /// Whether there is room for the bins up to a key.
    pub fn can_grow(&self, k: f64, most: f64) -> bool {
        let number = k / (2.0 * self.half);
        number.abs() < 2.0_f64.powi(48) && (number - self.first as f64).abs() + 2.0 * self.sums.len() as f64 <= most
    }

    /// Adds bins up to a key, and as many again.
    pub fn grow(&mut self, k: f64) {
        let (number, count) = (self.number(k), self.sums.len() as i64);
        if number < self.first {
            let more = self.first - number + count;
            let mut sums = vec![[[0.0; Q]; 2]; more as usize];
            sums.append(&mut self.sums);
            (self.sums, self.first) = (sums, self.first - more);
        } else {
            let more = number - self.first + 1;
            self.sums.resize(more.max(count) as usize + count as usize, [[0.0; Q]; 2]);
        }
    }

    /// Adds a key and its value.
    #[inline(always)]
    pub fn add(&mut self, k: f64, v: f64) {
        let number = (k / (2.0 * self.half)).floor();
        let t = (k - (number + 0.5) * (2.0 * self.half)) / self.half;
        let powers = powers::<Q>(t);
        let [total, sum] = &mut self.sums[(number as i64 - self.first) as usize];
        for l in 0..Q {
            let power = powers[l] * self.coefficients[l];
            total[l] += power;
            sum[l] += v * power;
        }
    }

    /// Adds the keys of another, which has the same bins.
    pub fn join(&mut self, other: &Self) {
        for (sum, other) in self.sums.iter_mut().flatten().flatten().zip(other.sums.iter().flatten().flatten()) {
            *sum += other;
        }
    }

    /// The sums of `e^(y (k - top))` and of `v e^(y (k - top))` over all keys, for several y. No score is above the top one.
    #[inline(always)]
    pub fn sums<const M: usize>(&self, y: &[f64; M], top: &[f64; M]) -> [[f64; M]; 2] {
        let mut totals = [[0.0; M]; 2];
        let (mut weight, mut ratio, mut scaled) = ([0.0; M], [0.0; M], [0.0; M]);
        for j in 0..M {
            scaled[j] = y[j] * self.half;
            let smaller = (-2.0 * scaled[j].abs()).exp_nonpositive();
            ratio[j] = if y[j] < 0.0 { smaller } else { 1.0 / smaller };
        }
        for (i, bin) in self.sums.iter().enumerate() {
            if i % STRIDE == 0 {
                let center = (self.first as f64 + i as f64 + 0.5) * (2.0 * self.half);
                for j in 0..M {
                    weight[j] = (y[j] * (center - top[j])).exp_nonpositive();
                }
            } else {
                for j in 0..M {
                    weight[j] *= ratio[j];
                }
            }
            if bin[0][0] == 0.0 {
                continue;
            }
            let mut part = [[bin[0][Q - 1]; M], [bin[1][Q - 1]; M]];
            for l in (0..Q - 1).rev() {
                for c in 0..2 {
                    for j in 0..M {
                        part[c][j] = part[c][j] * scaled[j] + bin[c][l];
                    }
                }
            }
            for c in 0..2 {
                for j in 0..M {
                    totals[c][j] += weight[j] * part[c][j];
                }
            }
        }
        totals
    }
}
