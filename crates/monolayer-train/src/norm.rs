//! Layer norm and its gradient: y = gain (x - mean) / sqrt(variance + 1e-5) + bias, row by row. Not part of the paper's
//! Transformers; a baseline.

use monolayer::arithmetic::kernels::Real;

/// As in PyTorch.
const EPSILON: f64 = 1e-5;

/// Normalizes rows in place; `normal` gets (x - mean) / deviation, `deviation` one number per row. `weights` are gains, then biases.
pub fn forward<R: Real>(weights: &[R], d: usize, x: &mut [R], normal: &mut [R], deviation: &mut [R]) {
    let (gain, bias) = weights.split_at(d);
    let size = R::from_f64(d as f64);
    for ((row, normal), deviation) in x.chunks_exact_mut(d).zip(normal.chunks_exact_mut(d)).zip(deviation) {
        let mean = row.iter().fold(R::ZERO, |sum, &x| sum + x) / size;
        let variance = row.iter().fold(R::ZERO, |sum, &x| sum + (x - mean) * (x - mean)) / size;
        *deviation = (variance + R::from_f64(EPSILON)).square_root();
        for i in 0..d {
            normal[i] = (row[i] - mean) / *deviation;
            row[i] = gain[i] * normal[i] + bias[i];
        }
    }
}

/// Turns the gradient of the output into that of the input, in place, and sets the gradients of gains and biases.
pub fn backward<R: Real>(
    weights: &[R],
    gradients: &mut [R],
    d: usize,
    (normal, deviation): (&[R], &[R]),
    dy: &mut [R],
) {
    let gain = &weights[..d];
    gradients.fill(R::ZERO);
    let (d_gain, d_bias) = gradients.split_at_mut(d);
    let size = R::from_f64(d as f64);
    for ((row, normal), &deviation) in dy.chunks_exact_mut(d).zip(normal.chunks_exact(d)).zip(deviation) {
        let (mut mean, mut along) = (R::ZERO, R::ZERO);
        for i in 0..d {
            d_gain[i] += row[i] * normal[i];
            d_bias[i] += row[i];
            row[i] = row[i] * gain[i];
            mean += row[i];
            along += row[i] * normal[i];
        }
        (mean, along) = (mean / size, along / size);
        for i in 0..d {
            row[i] = (row[i] - mean - normal[i] * along) / deviation;
        }
    }
}
