//! Theorem B of docs/unquantized.md: on `[1, 2]^d`, where no token is 0, one layer without a quantizer stays 1/8 away, too.
//!
//! With `M = sum_i W_O,i W_V,i` the token 1 of a sequence has the same output as the constant sequence `c = (I + M)^-1 psi_1`.
//! Softmax does not see it if a query is multiplied by tau and its distances from the keys are divided by tau, so c - x is divided
//! by tau as well. [`Instance`] is a function f and two such sequences, in exact rational arithmetic: f asks for other numbers.
//! [`twin`] finds, for one layer, a sequence and the constant sequence that collides with it where f is about 1/4 away.

use dashu_base::{Abs as _, BitTest as _};
use dashu_ratio::RBig;

use super::linear_system::{Solution, solve};
use super::{factors, largest, plus_identity, product, times};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::{Ball, Magnitude, Number as _};
use crate::error::{Error, Result};
use crate::model::exact::ball;
use crate::paper::attention::{Attention, AttentionHead};

/// Steps along a path at most.
const STEPS: usize = 4000;
/// Beyond this score, a softmax weight is 0 or 1 but for `2^-(2^20)`.
const FAR: i64 = 1 << 20;

/// A function on sequences in `[1, 2]^d`, and two sequences of which softmax sees the same.
///
/// All vectors have equal coordinates, so that numbers stand for them. The last token is the query, the others are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Query and other tokens of the first sequence.
    pub first: [RBig; 2],
    /// Those of the second.
    pub second: [RBig; 2],
    /// tau: what the query is multiplied by, and the distance from the others divided by.
    pub factor: RBig,
    /// How far f goes below the mean where tokens differ.
    pub dip: RBig,
}

impl Instance {
    /// That of docs/unquantized.md: 6/5 among 17/10, 3/2 among 19/10, and 5/4.
    pub fn new() -> Self {
        let hundredths = |x: i64| RBig::from(x) / RBig::from(100);
        Self {
            first: [120, 170].map(hundredths),
            second: [150, 190].map(hundredths),
            factor: hundredths(125),
            dip: hundredths(45),
        }
    }

    /// f at a token, coordinate by coordinate: with m the mean of x and of the mean z of the other tokens,
    /// `m - dip clamp(4 (m - 1.45), 0, 1) min(|x - z| / 0.4, 1)`. Continuous and permutation equivariant, and b for a
    /// constant sequence b.
    pub fn target(&self, z: &Matrix<RBig>, k: usize) -> Vec<RBig> {
        let others = RBig::from(z.rows - 1);
        let one = |c: usize| {
            let x = &z.row(k)[c];
            let sum = z.iter_rows().fold(RBig::ZERO, |sum, row| sum + &row[c]);
            self.of_numbers(x, &((sum - x) / &others))
        };
        (0..z.cols).map(one).collect()
    }

    fn of_numbers(&self, x: &RBig, z: &RBig) -> RBig {
        let mean = (x + z) / RBig::from(2);
        let high = (RBig::from(4) * &mean - RBig::from_parts(29.into(), 5_u8.into())).clamp(RBig::ZERO, RBig::ONE);
        let apart = ((x - z).abs() * RBig::from_parts(5.into(), 2_u8.into())).min(RBig::ONE);
        mean - &self.dip * high * apart
    }

    /// A sequence from its two numbers.
    fn sequence([x, z]: &[RBig; 2], d: usize, length: usize) -> Matrix<RBig> {
        Matrix::from_fn(length, d, |row, _| if row + 1 == length { x.clone() } else { z.clone() })
    }

    /// Both sequences.
    pub fn sequences(&self, d: usize, length: usize) -> [Matrix<RBig>; 2] {
        [&self.first, &self.second].map(|numbers| Self::sequence(numbers, d, length))
    }

    /// Whether the second sequence is the first one scaled: `tau x`, and distances over tau.
    pub fn scales(&self) -> bool {
        let ([x, z], [x2, z2]) = (&self.first, &self.second);
        *x2 == x * &self.factor && z2 - x2 == (z - x) / &self.factor
    }

    /// f at the query of either sequence.
    pub fn values(&self) -> [RBig; 2] {
        [&self.first, &self.second].map(|[x, z]| self.of_numbers(x, z))
    }

    /// How far f is from scaling as c does: `|(f' - tau x) - (f - x) / tau|`.
    pub fn gap(&self) -> RBig {
        let [f, f2] = self.values();
        ((f2 - &self.second[0]) - (f - &self.first[0]) / &self.factor).abs()
    }

    /// The smallest distance of f from 1 and from 2 on the paths from a constant sequence to either one, the mean m fixed. Between
    /// the bends of f, which is linear there, it is smallest at an end.
    pub fn clearance(&self) -> RBig {
        let bend = RBig::from_parts(2.into(), 5_u8.into());
        let at = |numbers: &[RBig; 2], t: &RBig| {
            let [x, z] = on_path(numbers, t);
            let f = self.of_numbers(&x, &z);
            (&f - RBig::ONE).min(RBig::from(2) - f)
        };
        let least = |numbers: &[RBig; 2]| {
            let apart = (&numbers[0] - &numbers[1]).abs();
            let bend = if apart > bend { &bend / apart } else { RBig::ONE };
            [RBig::ZERO, bend, RBig::ONE].iter().map(|t| at(numbers, t)).min().expect("three points")
        };
        least(&self.first).min(least(&self.second))
    }

    /// The error that no layer with a regular `I + M` gets below: an error of eps would give `gap <= 2 eps (1 + 1/tau)`, unless 2 eps is
    /// not below the clearance. None if the second sequence is not the first one scaled: then nothing follows.
    pub fn bound(&self) -> Option<RBig> {
        let by_gap = self.gap() / (RBig::from(2) * (RBig::ONE + RBig::ONE / &self.factor));
        self.scales().then(|| by_gap.min(self.clearance() / RBig::from(2)))
    }

    /// Whether the last tokens of both sequences have the same scores, up to one number for all keys, in every head, exactly.
    pub fn same_scores(&self, attention: &Attention<RBig>, length: usize) -> bool {
        let differences = |z: &Matrix<RBig>| -> Vec<RBig> {
            let of_head = |head: &AttentionHead<RBig>| {
                let last = z.row(z.rows - 1);
                let query = times(&head.w_q, last);
                let apart: Vec<RBig> = z.row(0).iter().zip(last).map(|(z, x)| z - x).collect();
                dot(&times(&head.w_k, &apart), &query)
            };
            attention.heads.iter().map(of_head).collect()
        };
        let d = attention.heads.first().map_or(0, |head| head.w_o.rows);
        let [a, b] = self.sequences(d, length);
        differences(&a) == differences(&b)
    }
}

impl Default for Instance {
    fn default() -> Self {
        Self::new()
    }
}

/// The point t of the path from a constant sequence (t = 0) to two numbers (t = 1) with the same mean.
fn on_path([x, z]: &[RBig; 2], t: &RBig) -> [RBig; 2] {
    let (mean, half) = ((x + z) / RBig::from(2), (z - x) * t / RBig::from(2));
    [&mean - &half, mean + half]
}

/// A sequence and a constant sequence whose last tokens a layer maps to the same vector.
#[derive(Debug, Clone)]
pub struct Twin {
    /// The sequence, one token per row.
    pub sequence: Matrix<RBig>,
    /// The token of the constant sequence, enclosed; f is the same number there.
    pub constant: Vec<Ball>,
    /// f at the last token of the sequence.
    pub target: Vec<RBig>,
    /// Whether `I + M` is singular: then both sequences are constant, and rational.
    pub singular: bool,
}

impl Twin {
    /// A lower bound on how far apart f is at the two, in the sup norm.
    pub fn distance(&self) -> f64 {
        let apart = |(c, f): (&Ball, &RBig)| (c.clone() - ball(f, c.precision())).abs().to_interval().lo();
        self.constant.iter().zip(&self.target).map(apart).fold(0.0, f64::max)
    }

    /// Whether all tokens are certainly in `[1, 2]^d`. The ends count where the number is exact.
    pub fn inside(&self) -> bool {
        let sequence = self.sequence.data.iter().all(|x| *x >= RBig::ONE && *x <= RBig::from(2));
        sequence && within(&self.constant)
    }
}

/// Whether numbers are certainly in [1, 2].
fn within(x: &[Ball]) -> bool {
    x.iter().all(|x| x.to_interval().lo() >= 1.0 && x.to_interval().hi() <= 2.0)
}

/// What c needs to know of a layer: for each head `(W_K 1) . (W_Q 1)` and `(I + M)^-1 W_O W_V 1`, enclosed, with 1 the vector of
/// ones.
struct Regular {
    heads: Vec<(RBig, Vec<Ball>)>,
    d: usize,
    length: usize,
    precision: usize,
}

impl Regular {
    /// `(c - x) / (z - x)` for a query x among tokens z: `sum_i q_i (I + M)^-1 W_O,i W_V,i 1`, q the softmax weight of all the z.
    fn seen(&self, x: &RBig, z: &RBig) -> Vec<Ball> {
        let zero = || Ball::new(0.0, self.precision);
        let mut sum = vec![zero(); self.d];
        for (score, image) in &self.heads {
            let weight = self.weight(&(score * x * (x - z)));
            for (sum, u) in sum.iter_mut().zip(image) {
                *sum = sum.clone() + weight.clone() * u;
            }
        }
        sum
    }

    /// The weight of n - 1 equal tokens beside one whose score is higher by `more`: `(n-1) / (n - 1 + e^more)`.
    fn weight(&self, more: &RBig) -> Ball {
        let number = |x: f64| Ball::new(x, self.precision);
        let others = number((self.length - 1) as f64);
        if more.clone().abs() > RBig::from(FAR) {
            let end = if *more > RBig::ZERO { number(0.0) } else { number(1.0) };
            return end.widened(Magnitude::power_of_two(-FAR));
        }
        others.clone() / (others + ball(more, self.precision).exp())
    }

    fn constant(&self, [x, z]: &[RBig; 2]) -> Vec<Ball> {
        let apart = ball(&(z - x), self.precision);
        let from = ball(x, self.precision);
        self.seen(x, z).into_iter().map(|q| from.clone() + apart.clone() * q).collect()
    }

    fn twin(&self, instance: &Instance, numbers: &[RBig; 2]) -> Twin {
        let sequence = Instance::sequence(numbers, self.d, self.length);
        let target = instance.target(&sequence, self.length - 1);
        Twin { sequence, constant: self.constant(numbers), target, singular: false }
    }
}

/// Theorem B for one layer and sequences of `length >= 2` tokens: a sequence and a constant one that collide, with f at least
/// `2 bound - 2^-20` apart. Whether it is so is computed: see [`Twin::distance`] and [`Twin::inside`].
pub fn twin(instance: &Instance, attention: &Attention<RBig>, length: usize) -> Result<Twin> {
    if length < 2 {
        return Err(Error::undefined("one token has no context", "ask for 2 tokens or more"));
    }
    let d = attention.heads.first().map_or(0, |head| head.w_o.rows);
    if d == 0 {
        return Err(Error::undefined("a layer without heads", "give one with attention"));
    }
    let layer = match regular(attention, d, length) {
        Ok(layer) => layer,
        Err(kernel) => return Ok(constants(instance, &kernel, length)),
    };
    let needed = 2.0 * instance.bound().map_or(0.0, |bound| bound.to_f64().value()) - 2_f64.powi(-20);
    // c of either sequence has the same multiple Q of z - x. Where Q_1 is positive, f is too low at the second one.
    let q = &layer.seen(&instance.first[0], &instance.first[1])[0];
    let end = if q.to_interval().center() > 0.0 { &instance.second } else { &instance.first };
    let (mut low, mut high) = (RBig::ZERO, RBig::ONE);
    let mut found = layer.twin(instance, end);
    if found.inside() {
        return Ok(found);
    }
    // c leaves the cube somewhere on the path. Just before, it is near the boundary, and f is not.
    for _ in 0..STEPS {
        let middle = (&low + &high) / RBig::from(2);
        let next = layer.twin(instance, &on_path(end, &middle));
        if next.inside() {
            (low, found) = (middle, next);
            if found.distance() >= needed {
                break;
            }
        } else {
            high = middle;
        }
    }
    Ok(found)
}

/// What is needed of a layer, or an `e != 0` with `(I + M) e = 0`.
fn regular(attention: &Attention<RBig>, d: usize, length: usize) -> std::result::Result<Regular, Vec<RBig>> {
    let (p, q) = factors(attention, d);
    let ones = vec![RBig::ONE; d];
    let columns: usize = attention.heads.iter().map(|head| head.w_v.rows).sum();
    let system = plus_identity(&product(&q, &p));
    let mut before = 0;
    let right = attention.heads.iter().map(|head| {
        let values = times(&head.w_v, &ones);
        // W_O,i W_V,i 1 is P times this: P is all W_O side by side, or I where that is smaller.
        let entry = |r: usize| r.checked_sub(before).and_then(|r| values.get(r)).cloned().unwrap_or(RBig::ZERO);
        let right = if columns <= d { (0..columns).map(entry).collect() } else { times(&head.w_o, &values) };
        before += values.len();
        right
    });
    let images: Vec<Vec<RBig>> = match solve(&system, &right.collect::<Vec<_>>()) {
        Solution::Kernel(s) => return Err(times(&p, &s)),
        Solution::Unique(all) => all.iter().map(|t| times(&p, t)).collect(),
    };
    let bits = |x: &RBig| x.numerator().bit_len().saturating_sub(x.denominator().bit_len());
    let precision = 192 + images.iter().flatten().map(bits).max().unwrap_or(0);
    let score = |head: &AttentionHead<RBig>| dot(&times(&head.w_k, &ones), &times(&head.w_q, &ones));
    let enclosed = |image: &Vec<RBig>| image.iter().map(|u| ball(u, precision)).collect();
    let heads = attention.heads.iter().zip(&images).map(|(head, image)| (score(head), enclosed(image))).collect();
    Ok(Regular { heads, d, length, precision })
}

/// Two constant sequences, b and b + e with `|e| = 1`, which a singular layer maps to the same vector.
fn constants(instance: &Instance, kernel: &[RBig], length: usize) -> Twin {
    let scale = largest(kernel);
    let e: Vec<RBig> = kernel.iter().map(|x| x / &scale).collect();
    let b = |x: &RBig| RBig::from(if *x >= RBig::ZERO { 1 } else { 2 });
    let sequence = Matrix::from_fn(length, e.len(), |_, c| b(&e[c]));
    let constant = e.iter().map(|x| ball(&(b(x) + x), 192)).collect();
    let target = instance.target(&sequence, length - 1);
    Twin { sequence, constant, target, singular: true }
}

fn dot(a: &[RBig], b: &[RBig]) -> RBig {
    a.iter().zip(b).fold(RBig::ZERO, |sum, (a, b)| sum + a * b)
}
