//! The hand-written universal approximator of the tests: d = 1, n = 2, four plateaus, for x1*mean(x1).

/// Plateaus of the quantizer.
const PARTS: usize = 4;
const RAMP: f64 = 1.0 / (1 << 20) as f64;
const STEP: f64 = 1.0 / (1 << 7) as f64;

/// The weights of attention.
pub const KEY: f64 = 0.25;
pub const QUERY: f64 = 1.0 / 64.0;
pub const VALUE: f64 = 0.5;

/// The function.
pub const FUNCTION: &str = "x1*mean(x1)";

fn f(x: f64, y: f64) -> f64 {
    x * (x + y) / 2.0
}

/// A multiple of 2^-20.
fn short(x: f64) -> f64 {
    (x * f64::from(1 << 20)).round() / f64::from(1 << 20)
}

/// What attention makes of two codes.
fn id(own: f64, other: f64) -> f64 {
    let weight = |z: f64| (KEY * z * QUERY * own).exp();
    let (a, b) = (weight(own), weight(other));
    own + VALUE * KEY * (a * own + b * other) / (a + b)
}

/// d_p of the staircase, by the midpoint rule in the cells.
pub fn distance(p: f64) -> f64 {
    let (n, cell) = (60, 1.0 / PARTS as f64);
    let mut sum = 0.0;
    for i in 0..PARTS * n {
        for j in 0..PARTS * n {
            let at = |k: usize| (k as f64 + 0.5) / (PARTS * n) as f64;
            let center = |k: usize| ((k / n) as f64 + 0.5) * cell;
            sum += (f(at(i), at(j)) - short(f(center(i), center(j)))).abs().powf(p);
        }
    }
    // Both output tokens.
    (2.0 * sum / ((PARTS * n) as f64).powi(2)).powf(1.0 / p)
}

/// A feed-forward block on one number: the weights into, the biases and the weights out of its units, and its own bias.
pub struct Block {
    pub units: Vec<(f64, f64, f64)>,
    pub bias: f64,
}

/// The blocks before and after attention.
pub fn blocks() -> [Block; 2] {
    let code = |part: usize| 8.0 + part as f64;
    // The quantizer takes the skip out and puts a ramp at each inner edge.
    let mut first = vec![(1.0, 0.0, -1.0), (-1.0, 0.0, 1.0)];
    for part in 1..PARTS {
        let edge = part as f64 / PARTS as f64;
        first.push((1.0, RAMP / 2.0 - edge, 1.0 / RAMP));
        first.push((1.0, -RAMP / 2.0 - edge, -1.0 / RAMP));
    }
    let center = |part: usize| (part as f64 + 0.5) / PARTS as f64;
    let mut ids: Vec<(f64, f64)> = (0..PARTS * PARTS)
        .map(|k| (id(code(k / PARTS), code(k % PARTS)), short(f(center(k / PARTS), center(k % PARTS)))))
        .collect();
    ids.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The read-out takes the skip out and puts a ramp between any two ids.
    let mut second = vec![(1.0, 0.0, -1.0)];
    for pair in ids.windows(2) {
        assert!(pair[1].0 - pair[0].0 > 3.0 * STEP);
        let middle = short(f64::midpoint(pair[0].0, pair[1].0));
        let slope = (pair[1].1 - pair[0].1) / STEP;
        second.push((1.0, STEP / 2.0 - middle, slope));
        second.push((1.0, -STEP / 2.0 - middle, -slope));
    }
    [Block { units: first, bias: code(0) }, Block { units: second, bias: ids[0].1 }]
}
