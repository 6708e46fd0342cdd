//! Which labels can come near the wanted one: short sums over the rows of the head tell of most that they do not.

use super::ball::{Ball, bits};
use super::matrix::Matrix;
use super::sum::Arithmetic;

/// Fewer labels are looked at one by one.
const MANY: usize = 64;
/// Bits of a weight and of a number: so many products fit an i32.
const WEIGHT: i32 = 8;
const NUMBER: i32 = 14;
const MOST_COLUMNS: usize = 255;

/// The rows of a head in short numbers.
///
/// **Rule 11.** With weights w = (W + t) 2^f, 0 <= t < 1, middles (Y + h) 2^g of the numbers, 0 <= h < 1, and biases B + s, 0 <= s < 1, in units of
/// 2^(f+g), the sum of w times the middles and the bias is within sum of (|W| + |Y| + 1) + 1 units of sum of W Y + B; where all weights are whole
/// (t = 0), within sum of |W| + 1. With r the numbers' radii, what a program computes is within sum of |w| r, and Rule 1's bound, of that sum.
pub struct ShortHead {
    /// The columns that some row reads, and the largest |W| in each.
    columns: Vec<(usize, i64)>,
    /// W, row by row, for these columns.
    weights: Vec<i16>,
    whole: bool,
    f: i32,
    /// An exponent above all biases.
    bias: i32,
    /// Weights are multiples of 2^grid, biases of 2^`bias_grid`.
    grid: i32,
    bias_grid: i32,
}

/// Bounds of scores of labels.
pub struct ShortScores {
    /// sum of W Y + B for each label.
    scores: Vec<i64>,
    /// How far the middle of an exact score is from that.
    off: i64,
    /// The unit's exponent.
    e: i32,
    /// A bound of the radius of any score.
    radius: Ball,
}

impl ShortHead {
    /// Takes the rows of the head and the biases; nothing where it does not pay or does not fit.
    pub fn new(weight: &Matrix, bias: &Matrix) -> Option<Self> {
        let labels = weight.rows();
        if labels < MANY {
            return None;
        }
        let all = || (0..labels).flat_map(|l| weight.weights(l));
        let f = all().map(|(_, w)| w.top() + 1).max()? - WEIGHT;
        let mut columns: Vec<(usize, i64)> = vec![];
        for (c, w) in all() {
            let size = floor(Ball::exact(w), f).abs();
            match columns.binary_search_by_key(&c, |(c, _)| *c) {
                Ok(at) => columns[at].1 = columns[at].1.max(size),
                Err(at) => columns.insert(at, (c, size)),
            }
        }
        if columns.len() > MOST_COLUMNS {
            return None;
        }
        let entry = |l: usize, c: usize| floor(Ball::exact(weight.get(l, c)), f) as i16;
        let weights = (0..labels).flat_map(|l| columns.iter().map(move |(c, _)| entry(l, *c))).collect();
        let whole = all().all(|(_, w)| w.e >= f);
        let biases = || (0..labels).map(|l| bias.at(l)).filter(|b| !b.is_zero());
        Some(Self {
            columns,
            weights,
            whole,
            f,
            bias: biases().map(|b| b.top() + 1).max().unwrap_or(i32::MIN),
            grid: all().map(|(_, w)| w.e).min()?,
            bias_grid: biases().map(|b| b.e).min().unwrap_or(i32::MAX),
        })
    }

    /// The columns that some row reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.columns.iter().map(|(c, _)| *c)
    }

    /// Bounds of the scores of all labels for an output; nothing where a program may overflow, and far from what can be bounded well.
    pub fn scores(&self, arithmetic: Arithmetic, bias: &Matrix, y: &[Ball]) -> Option<ShortScores> {
        let numbers = || self.columns.iter().map(|(c, _)| y[*c]);
        let g = numbers().filter(|y| !y.is_zero()).map(Ball::top).max()? - NUMBER;
        let (e, n) = (self.f + g, self.columns.len() + 1);
        // A bias of at most 2^30 units.
        if self.bias > e + 30 {
            return None;
        }
        let short: Vec<i16> = numbers().map(|y| floor(y.middle(), g) as i16).collect();
        let (mut off, mut sizes, mut radius) = (1, Ball::power(self.bias.max(e)), Ball::ZERO);
        for ((c, largest), short) in self.columns.iter().zip(&short) {
            off += if self.whole { *largest } else { largest + 1 + i64::from(short.unsigned_abs()) };
            let weight = Ball::power(self.f).times(Ball::whole(*largest as usize + 1));
            sizes = sizes.plus(weight.times(y[*c].size())).size();
            radius = radius.plus(weight.times(y[*c].spread()));
        }
        if let Arithmetic::Float { format, .. } = arithmetic {
            let p = format.bits();
            if sizes.top() + 2 >= format.top() || bits(n as u128) >= p - 1 {
                return None;
            }
            // Rule 1: partial sums are below 2^(k+1), and products are off by less than 2^-p of their sizes.
            let drift = sizes.scaled(-p).plus(Ball::power(format.least())).times(Ball::whole(2 * n));
            let k = sizes.plus(drift).top() - 1;
            let additions = Ball::whole(n - 1).scaled(k - p);
            let rounding = additions.plus(sizes.scaled(-p)).plus(Ball::whole(n).scaled(format.least()));
            let exact = numbers().all(|y| y.is_multiple_of(k - p + 1 - self.grid));
            if !exact || self.bias_grid < k - p + 1 || k - p + 1 < format.least() {
                radius = radius.plus(rounding.within());
            }
        }
        if !radius.is_zero() {
            // What balls themselves round.
            radius = radius.plus(sizes.scaled(-57).within());
        }
        let row = |(l, row): (usize, &[i16])| {
            let sum: i32 = row.iter().zip(&short).map(|(w, y)| i32::from(*w) * i32::from(*y)).sum();
            i64::from(sum) + floor(Ball::exact(bias.at(l)), e)
        };
        let scores = self.weights.chunks_exact(n - 1).enumerate().map(row).collect();
        Some(ShortScores { scores, off, e, radius: radius.size() })
    }
}

impl ShortScores {
    /// The label nearest to the wanted one.
    pub fn nearest(&self, wanted: usize) -> Option<usize> {
        (0..self.scores.len()).filter(|l| *l != wanted).max_by_key(|l| (self.scores[*l], usize::MAX - l))
    }

    /// The labels whose margin may fail, or be smaller against its radius than this one.
    pub fn rivals(&self, wanted: usize, margin: Ball) -> Vec<usize> {
        let both = self.radius.scaled(1);
        let far = |least: i64| {
            let least = Ball::pack(least.into(), 0, self.e);
            both.is_below(least)
                && (both.is_zero() || margin.middle().times(both).is_below(least.times(margin.spread().size())))
        };
        // Whoever is further away than something that is far is far: the first such distance is found by halving.
        let (mut near, mut end) = (0, 1_i64 << 40);
        if !far(end) {
            end = i64::MAX;
        }
        while end < i64::MAX && end - near > 1 {
            let half = near.midpoint(end);
            *(if far(half) { &mut end } else { &mut near }) = half;
        }
        let near = |l: &usize| {
            let least = self.scores[wanted] - self.scores[*l] - 2 * self.off;
            *l != wanted && least < end
        };
        (0..self.scores.len()).filter(near).collect()
    }
}

/// The middle of a ball in units of 2^e, rounded down.
fn floor(x: Ball, e: i32) -> i64 {
    let by = x.e - e;
    if by >= 0 { x.m << by.min(62) } else { x.m >> by.unsigned_abs().min(63) }
}
