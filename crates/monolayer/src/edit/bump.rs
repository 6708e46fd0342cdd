//! Units that lift one label's score over a short interval of ids, for one word at one place.
//!
//! A *tent* is a unit that adds a constant for every id, and two steep hinges that take more and more off on both sides. Far from
//! the interval the label's score is then far below the others, which changes nothing where the label does not win anyway; and
//! no large numbers have to cancel each other. A *bump* is three hinges that rise, fall and cancel: it leaves a residue of
//! rounding on one side of the interval, and nothing on the other.

use super::along::Ids;
use super::gate::Gate;
use crate::memorize::gated::Unit;

/// Where units are built: a gate, the ids that there can be, and the numbers of the model.
pub struct Workshop<'a> {
    /// The gate of the word and place.
    pub gate: &'a Gate,
    /// All ids that a program can compute.
    pub range: Ids,
    /// Rounds to the numbers of the model.
    pub round: fn(f64) -> f64,
    /// What a unit adds to the coordinates of labels, per unit of score.
    pub direction: &'a [f64],
    /// Half the distance of neighboring numbers near the sum of a gate, over its size.
    pub unit_roundoff: f64,
}

/// The share of a gate's drop that ids may make up for; the rest is room for rounding.
const SHARE: f64 = 0.85;

/// A shape to try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BumpShape {
    /// A constant and two hinges that take off.
    Tent,
    /// Three hinges that open to the right, so that nothing at all changes to the left; or mirrored.
    Bump {
        /// Half its width, in steps of [`Workshop::step`].
        steps: f64,
        /// Whether the hinges open to the left.
        leftward: bool,
    },
}

impl Workshop<'_> {
    /// The weight of the id: as steep as the drop of the gate allows.
    fn slope(&self) -> f64 {
        let drop = if self.gate.drop().is_finite() { self.gate.drop() } else { self.gate.own.abs().max(1.0) };
        (self.round)((SHARE * drop / (self.range.1 - self.range.0)).clamp(1e-30, 1e30))
    }

    /// The distance of neighboring numbers of the size of the sum of a gate and its bias.
    fn spacing(&self) -> f64 {
        let ids = self.range.0.abs().max(self.range.1.abs());
        let size = self.gate.own.abs() + 2.0 * self.slope() * ids;
        (size.log2().floor().exp2() * 2.0 * self.unit_roundoff).max(f64::MIN_POSITIVE)
    }

    /// A little more than rounding moves a hinge: what reads the id is rounded to the spacing twice.
    pub fn step(&self) -> f64 {
        2.5 * self.spacing() / self.slope()
    }

    /// The bias of a hinge that opens to the right at an id, or to the left.
    fn bias(&self, at: f64, leftward: bool) -> f64 {
        let slope = if leftward { -self.slope() } else { self.slope() };
        (self.round)(-self.gate.own - slope * at)
    }

    fn unit(&self, id: f64, bias: f64, gain: f64) -> Unit {
        let output = self.direction.iter().map(|&o| (self.round)(o * gain)).collect();
        Unit { code: self.gate.code.clone().into(), id, bias, output }
    }

    fn hinge(&self, leftward: bool, bias: f64, gain: f64) -> Unit {
        self.unit(if leftward { -self.slope() } else { self.slope() }, bias, gain)
    }

    /// The units of a shape that lifts the score by `height` at least for the ids of `core`.
    pub fn units(&self, shape: BumpShape, core: Ids, height: f64) -> Vec<Unit> {
        match shape {
            BumpShape::Tent => self.tent(core, height),
            BumpShape::Bump { steps, leftward } => self.bump(core, height, steps * self.step(), leftward),
        }
    }

    fn tent(&self, (low, high): Ids, height: f64) -> Vec<Unit> {
        let step = self.step();
        let drop = if self.gate.drop().is_finite() { self.gate.drop() } else { 1.0 };
        // A power of two below the drop: what the unit computes, exactly where the gate is.
        let lift = (SHARE * drop).log2().floor().exp2();
        let mut units = vec![self.unit(0.0, (self.round)(lift - self.gate.own), height / lift)];
        // They take off four times the height within a step.
        let gain = -4.0 * height / (step * self.slope());
        for (at, leftward) in [(low - step, true), (high + step, false)] {
            if if leftward { at > self.range.0 } else { at < self.range.1 } {
                units.push(self.hinge(leftward, self.bias(at, leftward), gain));
            }
        }
        units
    }

    /// Hinges at equal distances, so that far away they cancel but for the rounding of what they compute.
    fn bump(&self, (low, high): Ids, height: f64, half: f64, leftward: bool) -> Vec<Unit> {
        let (center, flat) = (0.5 * low + 0.5 * high, 0.5 * (high - low) + self.step());
        // Coarse enough for biases that are a little larger.
        let grid = 2.0 * self.spacing();
        let middle = (self.bias(center, leftward) / grid).round() * grid;
        let distance = (half.max(3.0 * flat) * self.slope() / grid).ceil() * grid;
        let half = distance / self.slope();
        let gain = height / (half - flat) / self.slope();
        let gain = (self.round)(gain);
        let biases = [(middle + distance, gain), (middle, -2.0 * gain), (middle - distance, gain)];
        biases.into_iter().map(|(bias, gain)| self.hinge(leftward, (self.round)(bias), gain)).collect()
    }
}
