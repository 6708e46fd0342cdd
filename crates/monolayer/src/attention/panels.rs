//! The layer as a function of one number: its values at Chebyshev nodes, a polynomial on each panel of queries.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always, clippy::needless_range_loop)]

use crate::arithmetic::kernels::{self, Real};

use super::grading::Grading;
use super::moments::BLOCK;
use super::plan::GROUP;

/// A bin with tokens in it, seen from one end of the keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bin {
    /// No token of the bin is nearer to the end.
    near: f64,
    /// The distance of its center.
    distance: f64,
    /// Half its width, negative where places count from the other end.
    width: f64,
    /// Its number.
    number: usize,
}

/// Moments of bins on both sides of a line: those counted from one end first, those counted from the other end after them.
#[derive(Debug)]
pub(super) struct Bins {
    /// As seen from the first end, and from the second, by distance.
    pub seen: [Vec<Bin>; 2],
    /// `functions * terms` numbers for each bin, times the coefficients of the exponential.
    sums: Vec<f64>,
    terms: usize,
}

impl Bins {
    /// Bins of a line of this width, from the moments of their tokens and the coefficients of the exponential. Each end sees
    /// all of them, its own side first.
    pub fn new(grading: &Grading, width: f64, sums: Vec<f64>, exponential: &[f64]) -> Self {
        let mut new = Self::apart(grading, sums, exponential);
        let across = |bin: &Bin| {
            let distance = width - bin.distance;
            // No token is nearer to the other end than to its own.
            Bin { near: (distance + bin.width).max(width / 2.0), distance, width: -bin.width, number: bin.number }
        };
        let [low, high] = &new.seen;
        let seen = [(low, high), (high, low)];
        new.seen = seen.map(|(own, other)| own.iter().copied().chain(other.iter().rev().map(across)).collect());
        new
    }

    /// Bins on both sides, of which each end sees its own.
    pub fn apart(grading: &Grading, mut sums: Vec<f64>, exponential: &[f64]) -> Self {
        let (terms, numbers) = (exponential.len(), sums.len() / (2 * grading.count));
        let mut side = |side: usize| {
            let mut list = Vec::new();
            for i in 0..grading.count {
                let number = side * grading.count + i;
                let row = &mut sums[number * numbers..(number + 1) * numbers];
                if row.iter().any(|&sum| sum != 0.0) {
                    row.iter_mut().zip(exponential.iter().cycle()).for_each(|(sum, c)| *sum *= c);
                    let (center, half) = (grading.center(i), grading.half_width(i));
                    list.push(Bin { near: center - half, distance: center, width: -half, number });
                }
            }
            list
        };
        let seen = [side(0), side(1)];
        Self { seen, sums, terms }
    }

    /// The sums of `w e^(-y d)` over all tokens, d their distance from an end, for several y that are not below `least`.
    /// Tokens with `least d > reach` may be left out.
    #[inline(always)]
    pub fn sums<const M: usize, const C: usize>(
        &self,
        end: usize,
        y: &[f64; M],
        least: f64,
        reach: f64,
    ) -> [[f64; M]; C] {
        let mut total = [[0.0; M]; C];
        let within = self.seen[end].partition_point(|bin| bin.near * least <= reach);
        for group in self.seen[end][..within].chunks(GROUP) {
            let mut part = [[0.0; M]; C];
            for bin in group {
                let start = bin.number * C * self.terms;
                let row = &self.sums[start..start + C * self.terms];
                self.add(bin, row, y, &mut part);
            }
            for c in 0..C {
                for j in 0..M {
                    total[c][j] += part[c][j];
                }
            }
        }
        total
    }

    /// [`Self::sums`], and the sums of `w d e^(-y d)`.
    #[inline(always)]
    pub fn slopes<const M: usize, const C: usize>(
        &self,
        end: usize,
        y: &[f64; M],
        least: f64,
        reach: f64,
    ) -> [[[f64; M]; C]; 2] {
        let mut total = [[[0.0; M]; C]; 2];
        let within = self.seen[end].partition_point(|bin| bin.near * least <= reach);
        for bin in &self.seen[end][..within] {
            let start = bin.number * C * self.terms;
            let row = &self.sums[start..start + C * self.terms];
            for j in 0..M {
                let weight = (-(y[j] * bin.distance)).exp_nonpositive();
                let scaled = y[j] * bin.width;
                for (c, row) in row.chunks_exact(self.terms).enumerate() {
                    // Horner's scheme for the polynomial and its derivative.
                    let (mut sum, mut slope) = (0.0, 0.0);
                    for &moment in row.iter().rev() {
                        slope = slope * scaled + sum;
                        sum = sum * scaled + moment;
                    }
                    total[0][c][j] += weight * sum;
                    total[1][c][j] += weight * (bin.distance * sum - bin.width * slope);
                }
            }
        }
        total
    }

    #[inline(always)]
    fn add<const M: usize, const C: usize>(&self, bin: &Bin, row: &[f64], y: &[f64; M], part: &mut [[f64; M]; C]) {
        let (mut weight, mut scaled) = ([0.0; M], [0.0; M]);
        for j in 0..M {
            weight[j] = (-(y[j] * bin.distance)).exp_nonpositive();
            scaled[j] = y[j] * bin.width;
        }
        for (part, row) in part.iter_mut().zip(row.chunks_exact(self.terms)) {
            let mut sum = [row[self.terms - 1]; M];
            for &moment in row[..self.terms - 1].iter().rev() {
                for j in 0..M {
                    sum[j] = sum[j] * scaled[j] + moment;
                }
            }
            for j in 0..M {
                part[j] += weight[j] * sum[j];
            }
        }
    }
}

/// Chebyshev's nodes on [-1, 1], and the way from values there to the coefficients of a polynomial.
#[derive(Debug)]
pub(super) struct Chebyshev<const M: usize> {
    pub nodes: [f64; M],
    /// From values to coefficients of Chebyshev polynomials.
    transform: [[f64; M]; M],
    /// Coefficients of the Chebyshev polynomials.
    monomials: [[f64; M]; M],
}

impl<const M: usize> Chebyshev<M> {
    pub fn new() -> Self {
        let angle =
            |i: usize, j: usize| core_math::cos(std::f64::consts::PI * (i * (2 * j + 1)) as f64 / (2 * M) as f64);
        let mut new = Self { nodes: [0.0; M], transform: [[0.0; M]; M], monomials: [[0.0; M]; M] };
        for j in 0..M {
            new.nodes[j] = angle(1, j);
            for i in 0..M {
                new.transform[i][j] = angle(i, j) * if i == 0 { 1.0 } else { 2.0 } / M as f64;
            }
        }
        new.monomials[0][0] = 1.0;
        new.monomials[1][1] = 1.0;
        for i in 2..M {
            for l in 0..M {
                let twice = if l == 0 { 0.0 } else { 2.0 * new.monomials[i - 1][l - 1] };
                new.monomials[i][l] = twice - new.monomials[i - 2][l];
            }
        }
        new
    }

    /// The coefficients 1, x, x^2, ... of the polynomial through values at the nodes. By way of Chebyshev polynomials, whose
    /// coefficients get small before those of the monomials get large.
    #[inline(always)]
    pub fn coefficients(&self, values: &[f64; M]) -> [f64; M] {
        let mut coefficients = [0.0; M];
        for i in (0..M).rev() {
            let mut chebyshev = 0.0;
            for j in 0..M {
                chebyshev += self.transform[i][j] * values[j];
            }
            for l in 0..M {
                coefficients[l] += chebyshev * self.monomials[i][l];
            }
        }
        coefficients
    }
}

/// Values of polynomials: the rows of all panels, how many polynomials each has and which one is meant, the panels' numbers,
/// the places within them, and the values. Numbers and places are [`BLOCK`] at most.
pub(super) type Evaluate = fn(&[f64], (usize, usize), &[u32], &[f64; BLOCK], &mut [f64; BLOCK]);

/// [`Evaluate`] for polynomials of so many coefficients.
pub(super) fn polynomials<const M: usize>(
    rows: &[f64],
    (functions, function): (usize, usize),
    numbers: &[u32],
    places: &[f64; BLOCK],
    values: &mut [f64; BLOCK],
) {
    let (rows, _) = rows.as_chunks::<M>();
    kernels::vectorized(
        #[inline(always)]
        || polynomials_here(rows, (functions, function), numbers, places, values),
    );
}

#[inline(always)]
fn polynomials_here<const M: usize>(
    rows: &[[f64; M]],
    (functions, function): (usize, usize),
    numbers: &[u32],
    places: &[f64; BLOCK],
    values: &mut [f64; BLOCK],
) {
    for i in 0..numbers.len().min(BLOCK) {
        values[i] = polynomial(&rows[numbers[i] as usize * functions + function], places[i]);
    }
}

/// The value of a polynomial. Even and odd powers apart, so that fewer operations wait for each other.
#[inline(always)]
fn polynomial<const M: usize>(coefficients: &[f64; M], x: f64) -> f64 {
    let square = x * x;
    let (mut even, mut odd) = (coefficients[M - 2], coefficients[M - 1]);
    let mut l = M - 2;
    while l > 0 {
        l -= 2;
        even = even * square + coefficients[l];
        odd = odd * square + coefficients[l + 1];
    }
    odd * x + even
}
