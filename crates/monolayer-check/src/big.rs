//! Real arithmetic beyond f64 enclosures: intervals of big floats, with more bits until the token is decided.

pub mod forward;
pub mod number;
pub mod weight;

use std::cmp::Ordering;

use crate::dataset::Dataset;
use crate::decide::{Decision, Failure, Wanted};
use crate::forward::Rows;
use crate::model::Model;
use forward::Exact;
use number::{Big, Interval};
use weight::Weight;

/// Decides tokens with more and more bits.
pub struct Escalation<'a, T = f64> {
    model: &'a Model<T>,
    most_bits: usize,
}

impl<'a, T: Weight> Escalation<'a, T> {
    /// Goes up to this many bits.
    pub fn new(model: &'a Model<T>, most_bits: usize) -> Self {
        Self { model, most_bits }
    }

    /// Decides one token, if that many bits can.
    pub fn decide(
        &self,
        dataset: &Dataset,
        rows: &Rows<T>,
        (sequence, position): (usize, usize),
        units: Option<Vec<usize>>,
        wanted: &Wanted,
    ) -> Option<Decision> {
        let rows: Vec<&[T]> =
            dataset.ids[dataset.range(sequence)].iter().map(|&id| rows.row(id, self.model.d)).collect();
        let mut exact = Exact { model: self.model, bits: 128, last_units: units };
        while exact.bits <= self.most_bits {
            let output = exact.run(&rows, position);
            let decision = match wanted {
                Wanted::Label(Some(label)) => self.label(&exact, &output, *label),
                Wanted::Near(target, tolerance) => near(&output, target, *tolerance, exact.bits),
                Wanted::Label(None) => self.some_label(&exact, &output),
            };
            if decision.is_some() {
                return decision;
            }
            exact.bits *= 4;
        }
        None
    }

    /// A label that the model does not have is never right: the failure names the one that scores highest.
    fn some_label(&self, exact: &Exact<T>, output: &[Interval]) -> Option<Decision> {
        let labels = self.model.head.as_ref()?.labels.len();
        let scores = (0..labels).map(|l| self.score(exact, output, l).map_or(f64::NAN, |score| score.lo.to_f64()));
        let (winner, score) = scores.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        Some(Decision::Wrong(Failure::Label { winner, score, wanted: None, error: 0.0 }))
    }

    fn score(&self, exact: &Exact<T>, output: &[Interval], label: usize) -> Option<Interval> {
        let (head, d) = (self.model.head.as_ref()?, self.model.d);
        Some(exact.dot(&head.weight[label * d..(label + 1) * d], output, head.bias[label].interval(exact.bits + 32)))
    }

    fn label(&self, exact: &Exact<T>, output: &[Interval], label: usize) -> Option<Decision> {
        let head = self.model.head.as_ref()?;
        let wanted = self.score(exact, output, label)?;
        let (mut ratio, mut open) = (f64::INFINITY, false);
        for other in (0..head.labels.len()).filter(|&l| l != label) {
            let (found, margin) = (self.score(exact, output, other)?, self.margin(exact, output, label, other)?);
            let (low, high) = (margin.lo.sign(), margin.hi.sign());
            if high == Ordering::Less || (high == Ordering::Equal && low == Ordering::Equal && other < label) {
                let (score, wanted) = (found.lo.to_f64(), Some(wanted.lo.to_f64()));
                let error = margin.hi.to_f64() - margin.lo.to_f64();
                return Some(Decision::Wrong(Failure::Label { winner: other, score, wanted, error }));
            }
            if low == Ordering::Greater || (low == Ordering::Equal && (label < other)) {
                let width = margin.minus(&Interval::point(margin.lo.clone()), exact.bits).hi;
                let bits = margin.lo.top().saturating_sub(width.top()).clamp(0, 1000);
                ratio = ratio.min(2_f64.powi(bits as i32));
            } else {
                open = true;
            }
        }
        if open { None } else { Some(Decision::Right(ratio)) }
    }

    /// The score of one label minus that of another, from the difference of their rows: equal rows give exactly zero.
    fn margin(&self, exact: &Exact<T>, output: &[Interval], label: usize, other: usize) -> Option<Interval> {
        let (head, d, bits) = (self.model.head.as_ref()?, self.model.d, exact.bits + 32);
        let mut sum = head.bias[label].minus(&head.bias[other], bits);
        for (c, x) in output.iter().enumerate() {
            let weight = head.weight[label * d + c].minus(&head.weight[other * d + c], bits);
            if weight != Interval::from_f64(0.0) {
                sum = sum.plus(&x.times(&weight, bits), bits);
            }
        }
        Some(sum)
    }
}

fn near(output: &[Interval], target: &[f64], tolerance: f64, bits: usize) -> Option<Decision> {
    let bound = Big::from_f64(tolerance);
    let mut open = false;
    for (coordinate, (found, &wanted)) in output.iter().zip(target).enumerate() {
        let difference = found.minus(&Interval::from_f64(wanted), bits);
        let negated = Interval::from_f64(0.0).minus(&difference, bits);
        let (far, near) = if difference.lo > negated.lo { (difference, negated) } else { (negated, difference) };
        // `far` is the side on which the difference lies, if it has one sign.
        if far.lo > bound {
            let (output, error) = (found.lo.to_f64(), found.hi.to_f64() - found.lo.to_f64());
            return Some(Decision::Wrong(Failure::Far { coordinate, output, wanted, error }));
        }
        open |= far.hi > bound || near.hi > bound;
    }
    if open { None } else { Some(Decision::Right(1.0)) }
}
