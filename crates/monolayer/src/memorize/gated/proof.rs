//! The proof that a gated model gets a token right in floating point, in any order of summation, at a cost that grows with
//! the data alone: only the units that the token's gate opens are looked at.
//!
//! With sign codes and a projection on a dyadic grid, projections and gates are exact; what rounds is the softmax, the
//! hinges, and the sum over open units. Bounds are for machine numbers of unit roundoff u, with an exponential within
//! [`EXP_ULP`] units in the last place; `gamma_k = k u / (1 - k u)`. They are evaluated in double precision and widened by
//! a thousandth, which covers their own rounding.

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Gated, Unit};
use crate::context::Agreement;
use crate::context_map::{Projection, View};
use crate::kernels::Real;
use crate::matrix::Matrix;

/// The exponential is trusted to so many units in the last place.
pub const EXP_ULP: f64 = 4.0;
const SLACK: f64 = 1.001;

/// What a gated model is proved from: its parts as stored, so with weights already rounded to the model's precision.
pub struct Claim<'a> {
    /// The data.
    pub view: &'a View<'a>,
    /// The projection.
    pub projection: &'a Projection,
    /// The id of each token, computed in double precision.
    pub ids: &'a [f64],
    /// The labels to be proved.
    pub agreement: &'a Agreement,
    /// The units, and where they are open.
    pub gated: &'a Gated,
    /// A vector per label.
    pub label_codes: &'a Matrix<f64>,
    /// The default label.
    pub default: u32,
    /// Whether the embedding carries the base labels.
    pub free: bool,
}

/// What was proved of each context.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// The score margin of each context's label over its error bound; the label is certain above 1.
    pub ratio: Vec<f64>,
}

impl Proof {
    /// Whether the label of a context is proved.
    pub fn certain(&self, context: u32) -> bool {
        self.ratio[context as usize] > 1.0
    }

    /// The ratio of a token's context.
    pub fn ratio_of(&self, view: &View, token: usize) -> f64 {
        self.ratio[view.contexts.of_token[token] as usize]
    }

    /// The smallest ratio.
    pub fn smallest_ratio(&self) -> f64 {
        self.ratio.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// A token (word, place) as the feed-forward block meets it, whatever its context.
struct Meeting<'a> {
    open: Vec<Open<'a>>,
    /// What stands in the coordinates of labels without any unit.
    constant: Vec<f64>,
}

/// A unit that the token's gate opens.
struct Open<'a> {
    unit: &'a Unit,
    /// What it computes before the ReLU at id 0: the gate and the bias, which nearly cancel.
    start: f64,
    /// The sums of its positive and of its negative terms, but for the id's.
    above: f64,
    below: f64,
    /// Whether the terms of the gate are whole numbers.
    whole: bool,
    /// Its largest output weight.
    weight: f64,
}

impl Claim<'_> {
    /// Proves what can be proved in machine numbers like `R`.
    pub fn prove<R: Real>(&self) -> Proof {
        let u = R::UNIT_ROUNDOFF.to_f64();
        let p = self.view.project(&self.projection.v);
        let tokens = self.representatives();
        let of_group = |tokens: &[usize]| -> Vec<(u32, f64)> {
            let meeting = self.meet(tokens[0]);
            let reads_id = meeting.open.iter().any(|open| open.unit.id != 0.0);
            let ratio = |&token: &usize| {
                // The second bound is for the id as computed here. Where no open unit reads the id, neither matters.
                let error = |u| self.id_error(&p, token, u);
                let error = if reads_id { error(u) + error(f64::UNIT_ROUNDOFF) } else { 0.0 };
                (self.view.contexts.of_token[token], self.ratio(&meeting, token, error, u))
            };
            tokens.iter().map(ratio).collect()
        };
        let groups: Vec<&[usize]> = tokens.chunk_by(|&a, &b| self.key(a) == self.key(b)).collect();
        let mut ratio = vec![0.0; tokens.len()];
        for (context, value) in groups.into_par_iter().flat_map_iter(of_group).collect::<Vec<_>>() {
            ratio[context as usize] = value;
        }
        Proof { ratio }
    }

    /// One token of each context, those of one (word, place) together. A context may occur in sequences of several lengths;
    /// the longest rounds most.
    fn representatives(&self) -> Vec<usize> {
        let mut first = vec![usize::MAX; self.view.contexts.count];
        for (t, &context) in self.view.contexts.of_token.iter().enumerate() {
            let slot = &mut first[context as usize];
            if *slot == usize::MAX || self.view.visible(t).len() > self.view.visible(*slot).len() {
                *slot = t;
            }
        }
        first.par_sort_by_cached_key(|&t| (self.key(t), t));
        first
    }

    /// The word and place of a token; the place only where positions are used.
    fn key(&self, token: usize) -> (u32, usize) {
        let place = if self.view.vectors.positions.is_some() { self.view.place(token).1 } else { 0 };
        (self.view.ids[token], place)
    }

    fn code(&self, (word, place): (u32, usize)) -> Vec<f64> {
        let mut code = self.view.vectors.vector(word, place);
        code.truncate(self.view.vectors.used);
        code
    }

    fn meet(&self, token: usize) -> Meeting<'_> {
        let key = self.key(token);
        let code = self.code(key);
        let open = self.gated.open[&key].iter().map(|&j| Open::new(&self.gated.units[j as usize], &code));
        let mut constant = self.gated.default.clone();
        let base = self.gated.base[key.0 as usize];
        if self.free && base != self.default {
            constant.iter_mut().zip(self.label_codes.row(base as usize)).for_each(|(o, c)| *o += c);
        }
        Meeting { open: open.collect(), constant }
    }

    /// How far a computed id can be from the true one: the error of the scores, of the exponentials, and of two sums.
    fn id_error(&self, p: &[f64], token: usize, u: f64) -> f64 {
        let visible = &p[self.view.visible(token)];
        let y = self.projection.kappa * p[token];
        let top = visible.iter().map(|p| y * p).fold(f64::NEG_INFINITY, f64::max);
        let largest = visible.iter().map(|p| (y * p).abs()).fold(0.0, f64::max);
        let (mut total, mut deviation, mut absolute) = (0.0, 0.0, 0.0);
        for p in visible {
            let weight = (y * p - top).exp();
            total += weight;
            deviation += weight * (p - self.ids[token]).abs();
            absolute += weight * p.abs();
        }
        let gamma = |k: f64| k * u / (1.0 - k * u);
        let n = visible.len() as f64;
        // Scores are single products; the shift by the largest rounds once more.
        let shifted = u * (2.0 * largest + 2.0 * largest * (1.0 + 2.0 * u));
        let theta = (shifted.exp_m1() + 1.0) * (1.0 + 2.0 * EXP_ULP * u) - 1.0;
        let sums = gamma(n - 1.0) + gamma(n + 1.0);
        // Exponentials too small for a normal number may come out as 0.
        let lost = n * f64::from(f32::MIN_POSITIVE) * visible.iter().map(|p| p.abs()).fold(0.0, f64::max);
        SLACK * (theta / (1.0 - theta) * deviation / total + sums * absolute / total * (1.0 + 2.0 * theta)) + 2.0 * lost
    }

    /// The margin of the label over its error bound, in the worst case over the other labels.
    fn ratio(&self, meeting: &Meeting, token: usize, id_error: f64, u: f64) -> f64 {
        let label = self.agreement.label[self.view.contexts.of_token[token] as usize] as usize;
        let id = self.ids[token];
        let at = |id: f64| self.scores(&meeting.output(id));
        let center = at(id);
        // The scores are linear between hinges, so their worst is at an end or at a hinge.
        let mut worst = Vec::new();
        if id_error > 0.0 {
            worst.extend([at(id - id_error), at(id + id_error)]);
            for open in meeting.open.iter().filter(|open| open.unit.id != 0.0) {
                let hinge = -open.start / open.unit.id;
                if (hinge - id).abs() < id_error {
                    worst.push(at(hinge));
                }
            }
        }
        // The second bound is for the scores as computed here.
        let error = |u| self.score_error(meeting, id, id_error, u);
        let error = error(u) + error(f64::UNIT_ROUNDOFF);
        let ratio = |other: usize| {
            let margin = center[label] - center[other];
            let low = worst.iter().map(|s| s[label] - s[other]).fold(margin, f64::min);
            margin / (margin - low + error)
        };
        (0..center.len()).filter(|&other| other != label).map(ratio).fold(f64::INFINITY, f64::min)
    }

    /// The labels' scores.
    fn scores(&self, output: &[f64]) -> Vec<f64> {
        self.label_codes.iter_rows().map(|code| code.iter().zip(output).map(|(c, o)| c * o).sum()).collect()
    }

    /// How far the difference of two scores can be from the true one, for an exact id.
    fn score_error(&self, meeting: &Meeting, id: f64, id_error: f64, u: f64) -> f64 {
        let gamma = |k: f64| k * u / (1.0 - k * u);
        // What the units compute before the ReLU, and what a coordinate adds up at most.
        let (mut before, mut sum) = (0.0, meeting.constant.iter().fold(0.0, |m: f64, x| m.max(x.abs())));
        for open in &meeting.open {
            let error = open.error(id, u);
            let h = open.before(id) + open.unit.id.abs() * id_error + error;
            // A unit that is certainly shut is exactly 0.
            if h > 0.0 {
                before += open.weight * error;
                sum += open.weight * h;
            }
        }
        let outputs = gamma(meeting.open.len() as f64 + 3.0) * sum;
        // A head with one coordinate per label picks it; other codes are added up.
        let one_hot = self.label_codes.rows == self.label_codes.cols;
        let coordinates = if one_hot { 1.0 } else { self.label_codes.cols as f64 };
        let head = if one_hot { 0.0 } else { gamma(coordinates + 2.0) * coordinates * sum };
        // Two scores, each with these errors in every coordinate.
        2.0 * SLACK * (coordinates * (before + outputs) + head)
    }

    /// Whether a token comes out right in `orders` random orders of summation, in plain machine numbers.
    pub fn right_in_random_orders<R: Real>(&self, token: usize, orders: u64, seed: u64) -> bool {
        let p: Vec<R> = self.visible_projections(token).into_iter().map(R::from_f64).collect();
        let (meeting, code) = (self.meet(token), self.code(self.key(token)));
        let label = self.agreement.label[self.view.contexts.of_token[token] as usize] as usize;
        let visible = self.view.visible(token);
        let own = p[token - visible.start];
        (0..orders).all(|order| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ order);
            let id = shuffled_id(&p, R::from_f64(self.projection.kappa) * own, &mut rng);
            let mut terms = vec![vec![]; self.label_codes.cols];
            for unit in meeting.open.iter().map(|open| open.unit) {
                let mut parts: Vec<R> = unit.code.iter().zip(&code).map(|(w, x)| R::from_f64(w * x)).collect();
                parts.extend([R::from_f64(unit.id) * id, R::from_f64(unit.bias)]);
                let h = shuffled_sum(parts, &mut rng).larger(R::ZERO);
                terms.iter_mut().zip(&unit.output).for_each(|(terms, &w)| terms.push(R::from_f64(w) * h));
            }
            let output: Vec<R> = terms
                .into_iter()
                .zip(&meeting.constant)
                .map(|(mut terms, &constant)| {
                    terms.push(R::from_f64(constant));
                    shuffled_sum(terms, &mut rng)
                })
                .collect();
            let score = |l: usize| {
                let products = self.label_codes.row(l).iter().zip(&output).map(|(&c, &o)| R::from_f64(c) * o).collect();
                shuffled_sum(products, &mut ChaCha8Rng::seed_from_u64(seed ^ order))
            };
            let own = score(label);
            (0..self.label_codes.rows).all(|l| if l < label { score(l) < own } else { score(l) <= own })
        })
    }

    fn visible_projections(&self, token: usize) -> Vec<f64> {
        let visible = self.view.visible(token);
        let place = |t: usize| self.view.place(t).1;
        let dot = |x: Vec<f64>| x.iter().zip(&self.projection.v).map(|(x, v)| x * v).sum();
        visible.map(|t| dot(self.view.vectors.vector(self.view.ids[t], place(t)))).collect()
    }
}

/// The id for a query, with both sums in a random order.
fn shuffled_id<R: Real>(p: &[R], y: R, rng: &mut ChaCha8Rng) -> R {
    let scores: Vec<R> = p.iter().map(|&p| y * p).collect();
    let top = crate::kernels::largest(&scores);
    let weights: Vec<R> = scores.iter().map(|&s| (s - top).exp_nonpositive()).collect();
    let total = shuffled_sum(weights.clone(), rng);
    shuffled_sum(weights.iter().zip(p).map(|(&w, &p)| w / total * p).collect(), rng)
}

/// The sum in a random order, pairs at random, as any program might add.
fn shuffled_sum<R: Real>(mut terms: Vec<R>, rng: &mut ChaCha8Rng) -> R {
    terms.shuffle(rng);
    while terms.len() > 1 {
        let last = terms.pop().expect("two at least");
        let other = rng.random_range(0..terms.len());
        terms[other] += last;
    }
    terms.first().copied().unwrap_or(R::ZERO)
}

impl<'a> Open<'a> {
    fn new(unit: &'a Unit, code: &[f64]) -> Self {
        let (mut gate, mut above, mut below, mut whole) = (0.0, 0.0, 0.0, true);
        for (w, x) in unit.code.iter().zip(code) {
            let term = w * x;
            gate += term;
            whole &= term.fract() == 0.0;
            above += term.max(0.0);
            below -= term.min(0.0);
        }
        if unit.bias > 0.0 {
            above += unit.bias;
        } else {
            below -= unit.bias;
        }
        let weight = unit.output.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        Self { unit, start: gate + unit.bias, above, below, whole, weight }
    }

    /// What the unit computes before the ReLU.
    fn before(&self, id: f64) -> f64 {
        self.start + self.unit.id * id
    }

    /// How far that can be from the true value, for an exact id.
    ///
    /// The terms of the gate are whole numbers, and the bias usually lies on the grid of numbers of the size of the largest
    /// partial sum, so that sums of these are exact in any order. The id's term is finer: from the moment it enters, a
    /// partial sum is rounded to the grid of its own size, and again only when it grows to a coarser grid, which makes a
    /// geometric series that adds up to less than the spacing of the coarsest. A bias off the grid does the same once
    /// more.
    fn error(&self, id: f64, u: f64) -> f64 {
        let term = self.unit.id * id;
        // No partial sum is larger than all positive terms, or all negative ones, together.
        let size = SLACK * (self.above + term.max(0.0)).max(self.below - term.min(0.0));
        let spacing = 2.0 * u * size.log2().floor().exp2();
        let product = u * term.abs();
        if !self.whole || spacing > 1.0 {
            let terms = self.unit.code.len() as f64 + 2.0;
            return SLACK * (terms * u / (1.0 - terms * u) * (self.above + self.below + term.abs()) + product);
        }
        let fine = [self.unit.id != 0.0, (self.unit.bias / spacing).fract() != 0.0];
        fine.iter().filter(|&&fine| fine).count() as f64 * spacing + product
    }
}

impl Meeting<'_> {
    /// What stands in the coordinates of labels after the block, for an id.
    fn output(&self, id: f64) -> Vec<f64> {
        let mut out = self.constant.clone();
        for open in &self.open {
            let h = open.before(id);
            if h > 0.0 {
                out.iter_mut().zip(&open.unit.output).for_each(|(o, w)| *o += w * h);
            }
        }
        out
    }
}
