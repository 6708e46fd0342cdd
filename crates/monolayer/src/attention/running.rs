//! Moments that grow with each key: bins of one width, wherever the keys will lie.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use crate::arithmetic::kernels::Real;

use super::grading::short;
use super::moments::powers;
use super::plan::exponential;
use super::scan::TokenSums;

/// Bins of one width. Bin i holds the keys from `2 i` to `2 i + 2` half-widths, which have few digits, so that its center is
/// exact and more bins can be added at either side.
#[derive(Debug, Clone, Copy)]
pub(super) struct EqualBins {
    pub half: f64,
    /// The number of the first bin there is.
    pub first: i64,
}

impl EqualBins {
    /// Bins from `low` on, and how many there are up to `high`.
    pub fn new(half: f64, low: f64, high: f64) -> (Self, usize) {
        let mut new = Self { half, first: 0 };
        new.first = new.number(low);
        (new, (new.number(high) - new.first + 1) as usize)
    }

    #[inline(always)]
    fn number(&self, k: f64) -> i64 {
        (k / (2.0 * self.half)).floor() as i64
    }

    /// The bin of a key, counted from the first, and its place there, from -1 to 1.
    #[inline(always)]
    pub fn place(&self, k: f64) -> (usize, f64) {
        let number = (k / (2.0 * self.half)).floor();
        let t = (k - (number + 0.5) * (2.0 * self.half)) / self.half;
        ((number as i64 - self.first) as usize, t)
    }

    /// The center of a bin, counted from the first.
    #[inline(always)]
    pub fn center(&self, i: usize) -> f64 {
        (self.first as f64 + i as f64 + 0.5) * (2.0 * self.half)
    }
}

/// The exponentials `e^(y (c - top))` of several queries at the centers c of one bin after another.
pub(super) struct Exponentials<const M: usize> {
    pub weight: [f64; M],
    /// y times half the width of a bin.
    pub scaled: [f64; M],
    ratio: [f64; M],
}

impl<const M: usize> Exponentials<M> {
    #[inline(always)]
    pub fn new(y: &[f64; M], half: f64) -> Self {
        let mut new = Self { weight: [0.0; M], scaled: [0.0; M], ratio: [0.0; M] };
        for j in 0..M {
            new.scaled[j] = y[j] * half;
            let smaller = (-2.0 * new.scaled[j].abs()).exp_nonpositive();
            new.ratio[j] = if y[j] < 0.0 { smaller } else { 1.0 / smaller };
        }
        new
    }

    /// Goes on to a bin: the next one, or one whose number is a multiple of [`STRIDE`].
    #[inline(always)]
    pub fn go_to(&mut self, i: usize, center: f64, y: &[f64; M], top: &[f64; M]) {
        if i.is_multiple_of(STRIDE) {
            for j in 0..M {
                self.weight[j] = (y[j] * (center - top[j])).exp_nonpositive();
            }
        } else {
            for j in 0..M {
                self.weight[j] *= self.ratio[j];
            }
        }
    }
}

/// The sums over the keys so far, of 1 and of their values.
#[derive(Debug, Clone)]
pub(super) struct Running<const Q: usize> {
    grid: EqualBins,
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
        let (grid, bins) = EqualBins::new(half, low, high);
        Self { grid, sums: vec![[[0.0; Q]; 2]; bins], coefficients }
    }

    /// How many bins there are.
    pub fn bins(&self) -> usize {
        self.sums.len()
    }

    /// Whether a key has a bin.
    pub fn covers(&self, k: f64) -> bool {
        (self.grid.first..self.grid.first + self.sums.len() as i64).contains(&self.grid.number(k))
    }

    /// Whether there is room for the bins up to a key.
    pub fn can_grow(&self, k: f64, most: f64) -> bool {
        let number = k / (2.0 * self.grid.half);
        number.abs() < 2.0_f64.powi(48)
            && (number - self.grid.first as f64).abs() + 2.0 * self.sums.len() as f64 <= most
    }

    /// Adds bins up to a key, and as many again.
    pub fn grow(&mut self, k: f64) {
        let (number, count) = (self.grid.number(k), self.sums.len() as i64);
        if number < self.grid.first {
            let more = self.grid.first - number + count;
            let mut sums = vec![[[0.0; Q]; 2]; more as usize];
            sums.append(&mut self.sums);
            (self.sums, self.grid.first) = (sums, self.grid.first - more);
        } else {
            let more = number - self.grid.first + 1;
            self.sums.resize(more.max(count) as usize + count as usize, [[0.0; Q]; 2]);
        }
    }

    /// Adds a key and its value.
    #[inline(always)]
    pub fn add(&mut self, k: f64, v: f64) {
        let (i, t) = self.grid.place(k);
        let powers = powers::<Q>(t);
        let [total, sum] = &mut self.sums[i];
        for l in 0..Q {
            let power = powers[l] * self.coefficients[l];
            total[l] += power;
            sum[l] += v * power;
        }
    }

    /// The sums of `e^(y (k - top))` and of `v e^(y (k - top))` over all keys, for several y. No score is above the top one.
    #[inline(always)]
    pub fn sums<const M: usize>(&self, y: &[f64; M], top: &[f64; M]) -> [[f64; M]; 2] {
        let mut totals = [[0.0; M]; 2];
        let mut at = Exponentials::new(y, self.grid.half);
        for (i, bin) in self.sums.iter().enumerate() {
            at.go_to(i, self.grid.center(i), y, top);
            if bin[0][0] == 0.0 {
                continue;
            }
            let mut part = [[bin[0][Q - 1]; M], [bin[1][Q - 1]; M]];
            for l in (0..Q - 1).rev() {
                for c in 0..2 {
                    for j in 0..M {
                        part[c][j] = part[c][j] * at.scaled[j] + bin[c][l];
                    }
                }
            }
            for c in 0..2 {
                for j in 0..M {
                    totals[c][j] += at.weight[j] * part[c][j];
                }
            }
        }
        totals
    }

    /// [`Self::sums`], and the same sums with another factor `k - top`.
    #[inline(always)]
    pub fn slopes<const M: usize>(&self, y: &[f64; M], top: &[f64; M]) -> [[[f64; M]; 2]; 2] {
        let mut totals = [[[0.0; M]; 2]; 2];
        let mut at = Exponentials::new(y, self.grid.half);
        for (i, bin) in self.sums.iter().enumerate() {
            let center = self.grid.center(i);
            at.go_to(i, center, y, top);
            if bin[0][0] == 0.0 {
                continue;
            }
            for c in 0..2 {
                // Horner's scheme for the polynomial and its derivative.
                let (mut part, mut slope) = ([bin[c][Q - 1]; M], [0.0; M]);
                for l in (0..Q - 1).rev() {
                    for j in 0..M {
                        slope[j] = slope[j] * at.scaled[j] + part[j];
                        part[j] = part[j] * at.scaled[j] + bin[c][l];
                    }
                }
                for j in 0..M {
                    totals[0][c][j] += at.weight[j] * part[j];
                    totals[1][c][j] += at.weight[j] * ((center - top[j]) * part[j] + self.grid.half * slope[j]);
                }
            }
        }
        totals
    }
}

impl<const Q: usize> TokenSums for Running<Q> {
    fn join(&mut self, other: &Self) {
        for (sum, other) in self.sums.iter_mut().flatten().flatten().zip(other.sums.iter().flatten().flatten()) {
            *sum += other;
        }
    }
}
