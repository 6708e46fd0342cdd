//! The claim "distance": d_p between the model and a function is at most a bound, over the cube `[0,1]^(d x n)` (eq. 1 with the
//! construction of Proposition 1).
//!
//! On a product of plateaus of the quantizer the model's output is one number per coordinate, up to rounding. Cell by cell it
//! is enclosed, and so is the function, over smaller and smaller boxes; ramps are priced with the farthest that model and
//! function can be apart. Nothing of the certificate is used but the claim itself.

mod cells;
mod mean;
mod network;
mod parts;

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::expression::{Expression, Machine, View};
use crate::interval::Interval;
use crate::model::Model;
use crate::report::Verdict;
use crate::rounding::Precision;
use cells::Cells;
use mean::{LOST, SLACK, mean, power};
use network::Network;

/// A claim, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Distance {
    /// The arithmetic: rounding counts in f64.
    pub arithmetic: Precision,
    /// The exponent.
    pub p: f64,
    /// What d_p is at most.
    pub bound: f64,
    /// One expression per coordinate.
    pub function: String,
    /// Tokens of a sequence.
    pub length: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
    /// What d_p certainly is at most.
    pub bound: Option<f64>,
}

/// Steps of intervals that a check may take, about.
const WORK: u64 = 20_000_000_000;
/// Boxes in one cell, at most.
const BOXES: u64 = 1 << 16;
/// How much finer each round looks.
const FINER: f64 = 8.0;
/// Rounds, at most, and rounds without progress.
const ROUNDS: usize = 14;
const STALLED: usize = 2;

fn found(verdict: Verdict, why: impl Into<String>) -> Found {
    Found { verdict, why: why.into(), bound: None }
}

/// Checks a claim; `exp_ulp` is the error of the programs' exp.
pub fn check(model: &Model, claim: &Distance, exp_ulp: f64) -> Found {
    if !(claim.p >= 1.0 && claim.p.is_finite() && claim.bound >= 0.0 && claim.bound.is_finite()) {
        return found(Verdict::Error, format!("p = {} and a bound of {} mean nothing", claim.p, claim.bound));
    }
    let expression = match Expression::parse(&claim.function, model.d) {
        Ok(expression) => expression,
        Err((character, what)) => {
            return found(Verdict::Error, format!("the function, character {character}: {what}"));
        }
    };
    if claim.arithmetic == Precision::F32 {
        return found(Verdict::Unknown, "distances are checked in f64 and real arithmetic");
    }
    let prepared = Network::new(model, claim.arithmetic, exp_ulp)
        .and_then(|network| Ok((Cells::new(&network, model, claim.length, expression.is_equivariant())?, network)));
    match prepared {
        Err(why) => found(Verdict::Unknown, why),
        Ok((cells, network)) => Check::new(claim, &expression, &network, &cells, model.d).run(),
    }
}

/// What is known about a cell: sums over its coordinates, times its volume and arrangements.
#[derive(Debug, Clone, Copy)]
struct Known {
    upper: f64,
    lower: f64,
    loose: f64,
}

struct Check<'a> {
    claim: &'a Distance,
    expression: &'a Expression,
    cells: &'a Cells,
    d: usize,
    /// The model's outputs, `[cells, d]`.
    levels: Vec<Interval>,
    /// The model's outputs anywhere in the cube, `[d]`.
    anywhere: Vec<Interval>,
    /// Steps taken.
    work: AtomicU64,
}

/// Bounds on d_p^p.
struct Total {
    upper: f64,
    lower: f64,
    loose: f64,
    /// What ramps add to the upper one.
    ramps: f64,
}

impl Total {
    /// What a bound with this p-th power is worth; what overflows or underflows proves nothing.
    fn judge(&self, target: f64) -> Verdict {
        if self.upper.is_finite() && target.is_finite() && self.upper * SLACK <= target {
            Verdict::Verified
        } else if self.lower.is_finite() && self.lower > target * SLACK + LOST {
            Verdict::Refuted
        } else {
            Verdict::Unknown
        }
    }
}

impl<'a> Check<'a> {
    fn new(claim: &'a Distance, expression: &'a Expression, network: &Network, cells: &'a Cells, d: usize) -> Self {
        let fine = 1e-3 * claim.bound;
        let level = |i: usize| {
            let codes: Vec<&network::Code> = cells.codes(i).collect();
            network.output(&codes, cells.own(i), fine)
        };
        let levels = (0..cells.count).into_par_iter().flat_map_iter(level).collect();
        let (whole, asked) = cells.whole();
        let anywhere = asked.map(|own| network.anywhere(&whole, own));
        let anywhere = anywhere.reduce(|a, b| a.iter().zip(b).map(|(a, b)| a.hull(b)).collect());
        let anywhere = anywhere.expect("at least one place");
        Self { claim, expression, cells, d, levels, anywhere, work: AtomicU64::new(0) }
    }

    fn run(&self) -> Found {
        let target = power(self.claim.bound, self.claim.p);
        let all: Vec<usize> = (0..self.cells.count).collect();
        let mut known = vec![Known { upper: f64::INFINITY, lower: 0.0, loose: f64::INFINITY }; self.cells.count];
        let mut ranges = vec![Interval::WHOLE; self.cells.count * self.d];
        self.look(&all, f64::INFINITY, &mut known, &mut ranges);
        let mut total = self.total(&known, &ranges);
        let mut enough = total.loose.min(1e6 * target.max(1e-300)) / self.cells.count as f64 / FINER;
        let mut stalled = 0;
        for _ in 0..ROUNDS {
            if total.judge(target) != Verdict::Unknown || stalled > STALLED || self.work.load(Ordering::Relaxed) > WORK
            {
                break;
            }
            let again: Vec<usize> =
                all.iter().copied().filter(|&i| known[i].loose.is_nan() || known[i].loose > enough).collect();
            self.look(&again, enough, &mut known, &mut ranges);
            let before = std::mem::replace(&mut total, self.total(&known, &ranges));
            let nearer = before.upper - total.upper > 1e-3 * (total.upper - target);
            let farther = total.lower - before.lower > 1e-3 * (target - total.lower);
            stalled = if nearer || farther { 0 } else { stalled + 1 };
            // Boxes without a bound were cut as often as boxes are.
            if !total.upper.is_finite() {
                break;
            }
            enough /= FINER;
        }
        self.conclude(&total, target)
    }

    fn conclude(&self, total: &Total, target: f64) -> Found {
        let Distance { arithmetic, p, bound, length, .. } = self.claim;
        let root = |x: f64| if *p == 2.0 { x.sqrt() } else { power(x, 1.0 / p) };
        let (upper, lower) = (root(total.upper) * SLACK, root(total.lower) / SLACK);
        let verdict = total.judge(target);
        let why = format!(
            "claims d_{p} <= {bound} in {} arithmetic; over [0,1]^({} x {length}), {} cells, it lies between {lower:.9e} and {upper:.9e}; \
             ramps add {:.3e} to its power at most, and the model is known to {:.3e}",
            arithmetic.name(),
            self.d,
            self.cells.count,
            total.ramps,
            self.levels.iter().map(|level| level.width()).fold(0.0, f64::max),
        );
        Found { verdict, why, bound: Some(upper).filter(|upper| upper.is_finite()) }
    }

    /// Looks at some cells, at boxes that are not known better than `enough`.
    fn look(&self, which: &[usize], enough: f64, known: &mut [Known], ranges: &mut [Interval]) {
        let looked: Vec<(Known, Vec<Interval>)> = which
            .par_iter()
            .map_init(|| Machine::new(self.expression, self.claim.length), |machine, &i| self.cell(machine, i, enough))
            .collect();
        for (&i, (new, new_ranges)) in which.iter().zip(looked) {
            // A cell that ran out of boxes may be known better from before.
            if new.upper.is_nan() || new.upper > known[i].upper {
                continue;
            }
            known[i] = Known { lower: new.lower.max(known[i].lower), ..new };
            ranges[i * self.d..(i + 1) * self.d].copy_from_slice(&new_ranges);
        }
    }

    /// Each output on its own: few entries matter to one, and boxes are cut across those.
    fn cell(&self, machine: &mut Machine, i: usize, enough: f64) -> (Known, Vec<Interval>) {
        let outputs = (0..self.d).map(|output| self.output(machine, i, output, enough));
        let (known, ranges): (Vec<Known>, Vec<Interval>) = outputs.unzip();
        let sum = |part: fn(&Known) -> f64| known.iter().map(part).sum();
        (
            Known { upper: sum(|known| known.upper), lower: sum(|known| known.lower), loose: sum(|known| known.loose) },
            ranges,
        )
    }

    fn output(&self, machine: &mut Machine, i: usize, output: usize, enough: f64) -> (Known, Interval) {
        let (own, weight) = (self.cells.own(i), self.cells.arrangements(i));
        let level = self.levels[i * self.d + output];
        let mut known = Known { upper: 0.0, lower: 0.0, loose: 0.0 };
        let mut range: Option<Interval> = None;
        let mut boxes: Vec<Vec<Interval>> = vec![self.cells.tile(i)];
        let mut looked_at = 0;
        while let Some(sides) = boxes.pop() {
            looked_at += 1;
            let view = machine.run(&sides, own, output);
            let volume = weight * sides.iter().map(|side| side.hi - side.lo).product::<f64>();
            let mean = mean(&view, &sides, level, self.claim.p);
            let loose = volume * mean.loose;
            if (loose.is_nan() || loose > enough) && looked_at < BOXES && self.work.load(Ordering::Relaxed) <= WORK {
                boxes.extend(halves(&view, &sides));
                continue;
            }
            known.upper += volume * mean.upper * SLACK;
            known.lower += volume * mean.lower / SLACK;
            known.loose += loose;
            range = Some(range.map_or(view.range, |range| range.hull(view.range)));
        }
        self.work.fetch_add(looked_at * machine.cost(output), Ordering::Relaxed);
        (known, range.unwrap_or(Interval::WHOLE))
    }

    /// Cells and ramps together.
    fn total(&self, known: &[Known], ranges: &[Interval]) -> Total {
        let mut ramps = 0.0;
        for c in 0..self.d {
            let f = ranges.iter().skip(c).step_by(self.d).copied().reduce(Interval::hull).unwrap_or(Interval::WHOLE);
            ramps += power((f - self.anywhere[c]).magnitude(), self.claim.p);
        }
        let steep = self.cells.steep;
        let ramps = if steep == 0.0 { 0.0 } else { ramps * steep * self.claim.length as f64 * SLACK };
        let sum = |part: fn(&Known) -> f64| sum(known.iter().map(part));
        let (upper, lower) = (sum(|known| known.upper), sum(|known| known.lower));
        Total {
            upper: (upper * SLACK + ramps) * SLACK + LOST,
            // Tiles reach over the ramps, where the model may be anywhere.
            lower: (lower / SLACK - ramps * SLACK).max(0.0),
            loose: sum(|known| known.loose),
            ramps,
        }
    }
}

/// A box cut in two across the entry whose slopes are known least.
fn halves(view: &View, sides: &[Interval]) -> [Vec<Interval>; 2] {
    let blur = |i: usize| {
        let (slope, side) = (view.slopes[i].hi - view.slopes[i].lo, sides[i].hi - sides[i].lo);
        (if slope == 0.0 { 0.0 } else { slope * side }, side)
    };
    let most = |a: &usize, b: &usize| {
        let (a, b) = (blur(*a), blur(*b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let i = (0..sides.len()).max_by(most).expect("a sequence has entries");
    let middle = sides[i].middle();
    let mut halves = [sides.to_vec(), sides.to_vec()];
    (halves[0][i].hi, halves[1][i].lo) = (middle, middle);
    halves
}

/// A sum of numbers >= 0 with an error of a few units in the last place (Neumaier).
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for term in terms {
        let next = sum + term;
        lost += if sum >= term { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    if sum.is_finite() { sum + lost } else { sum }
}
