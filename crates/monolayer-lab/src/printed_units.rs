//! Hidden units of Proposition 1's proof, as printed and repaired: the quantizer (58), the penalty (59), the bump (67).
//!
//! All act on one coordinate z. They are run as feed-forward blocks (3), the skip taken off again. docs/errata.md says what
//! of the printed formulas is reconstruction.

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

/// `weight` times a ramp from 0 to 1 of width `1 / steepness` that begins at `start`.
fn ramp(start: f64, steepness: f64, weight: f64) -> [Unit; 2] {
    let unit = |shift: f64, weight: f64| Unit { slope: steepness, shift: shift - steepness * start, weight };
    [unit(0.0, weight), unit(-1.0, -weight)]
}

/// (58): a ramp of height `1 / levels` at `t / levels` for each t from 0 to `last`. Printed with `last = levels`, where
/// `levels - 1` is right.
pub fn quantizer(levels: usize, last: usize, steepness: f64) -> Vec<Unit> {
    let share = 1.0 / levels as f64;
    (0..=last).flat_map(|t| ramp(t as f64 * share, steepness, share)).collect()
}

/// (59): `s (relu(k (z - 1)) - relu(k (z - 1) - 1)) - relu(-k z) + s' relu(-k z - 1)`, which should be -1 outside [0, 1] and 0
/// inside. Printed with `s = 1`, `s' = -1`; right with `s = -1`, `s' = 1`.
pub fn penalty(steepness: f64, s: f64, s2: f64) -> Vec<Unit> {
    let [up, flat] = ramp(1.0, steepness, s);
    let below = |shift: f64, weight: f64| Unit { slope: -steepness, shift, weight };
    vec![up, flat, below(0.0, -1.0), below(-1.0, s2)]
}

/// (67): `relu(z + 1) - middle relu(z) + relu(z - 1)`, which should be 1 at 0 and vanish far away. Printed with `middle = 1`;
/// right with 2.
pub fn bump(middle: f64) -> Vec<Unit> {
    let unit = |shift: f64, weight: f64| Unit { slope: 1.0, shift, weight };
    vec![unit(1.0, 1.0), unit(0.0, -middle), unit(-1.0, 1.0)]
}
