//! Hidden units and step functions of Proposition 1's proof, as printed and repaired: the staircase (57), (58), the penalty (59),
//! the first block (60) and the bump (67), (68).
//!
//! Units act on one coordinate z. They are run as feed-forward blocks (3), the skip taken off again.

use std::ops::RangeInclusive;

use monolayer::Matrix;
use monolayer::paper::feed_forward::FeedForward;

/// A hidden unit: `weight relu(slope z + shift)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Its entry of W1.
    pub slope: f64,
    /// Its entry of b1.
    pub shift: f64,
    /// Its entry of W2.
    pub weight: f64,
}

/// The feed-forward block (3) of some units, on tokens of one dimension.
pub fn block(units: &[Unit]) -> FeedForward<f64> {
    let column = |entry: fn(&Unit) -> f64| units.iter().map(entry).collect::<Vec<f64>>();
    FeedForward {
        w1: Matrix::new(units.len(), 1, column(|u| u.slope)),
        b1: column(|u| u.shift),
        w2: Matrix::new(1, units.len(), column(|u| u.weight)),
        b2: vec![0.0],
    }
}

/// What units add to the skip at z.
pub fn sum(units: &[Unit], z: f64) -> f64 {
    block(units).apply_token(&[z])[0] - z
}

/// `weight` times (56) without its 1/D: a ramp from 0 to 1 of width `1 / steepness` that begins at `start`.
pub fn ramp(start: f64, steepness: f64, weight: f64) -> [Unit; 2] {
    let unit = |shift: f64, weight: f64| Unit { slope: steepness, shift: shift - steepness * start, weight };
    [unit(0.0, weight), unit(-1.0, -weight)]
}

/// A ramp of height 1/D at t/D for each t: (57) with t from 0 to D - 1, the sum of (58) with t from 1 to D.
pub fn staircase(levels: usize, steps: RangeInclusive<usize>, steepness: f64) -> Vec<Unit> {
    let share = 1.0 / levels as f64;
    steps.flat_map(|t| ramp(t as f64 * share, steepness, share)).collect()
}

/// (59): `s (relu(k (z - 1)) - relu(k (z - 1) - 1)) - relu(-k z) + s' relu(-k z - 1)`, which should be -1 outside [0, 1] and 0
/// inside. Printed with `s = 1`, `s' = -1`; right with `s = -1`, `s' = 1`.
pub fn penalty(steepness: f64, s: f64, s2: f64) -> Vec<Unit> {
    let [up, flat] = ramp(1.0, steepness, s);
    let below = |shift: f64, weight: f64| Unit { slope: -steepness, shift, weight };
    vec![up, flat, below(0.0, -1.0), below(-1.0, s2)]
}

/// (67), (68) in one coordinate, for R = 1 and L = 0: `relu(z - 1) - middle relu(z) + relu(z + 1)`, which should be 1 at 0 and
/// vanish far away. Printed with `middle = 1`; right with 2.
pub fn bump(middle: f64) -> Vec<Unit> {
    let unit = |shift: f64, weight: f64| Unit { slope: 1.0, shift, weight };
    vec![unit(1.0, 1.0), unit(0.0, -middle), unit(-1.0, 1.0)]
}

/// The staircase that (57) approximates.
pub fn quant(levels: usize, z: f64) -> f64 {
    let d = levels as f64;
    if z < 0.0 { 0.0 } else { ((z * d).floor() + 1.0).min(d) / d }
}

/// The step function that (59) approximates: -1 at 0, too.
pub fn step_penalty(z: f64) -> f64 {
    if z > 0.0 && z <= 1.0 { 0.0 } else { -1.0 }
}

/// (60), of all entries of a sequence.
pub fn first_block(levels: usize, z: &[f64]) -> Vec<f64> {
    let penalties: f64 = z.iter().map(|&z| step_penalty(z)).sum();
    z.iter().map(|&z| quant(levels, z) + penalties).collect()
}
