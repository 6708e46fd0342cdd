//! What a function of all d numbers of h can know of f, and a feed-forward block that reads them.
//!
//! Tokens are row-major `[tokens, d]`, h after attention and y the outputs of f.

use monolayer::arithmetic::matrix::Matrix;
use monolayer::paper::feed_forward::FeedForward;
use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;

/// Units beyond these are left out where d > 1: least squares take the cube of their number.
const MOST_UNITS: usize = 500;
/// Tokens for the least squares.
const FITTED: usize = 40_000;

/// E Var(f | h), summed over the coordinates of a token, from independent tokens. They are cut into cells at medians, along one coordinate after
/// another, until at most `cell` are left; in a cell, what a linear function of h does not explain counts.
pub fn left_in_cells(d: usize, h: &[f64], y: &[f64], cell: usize) -> f64 {
    let tokens = h.len() / d;
    let mut order: Vec<usize> = (0..tokens).collect();
    let mut left = 0.0;
    let mut open = vec![(0, tokens, 0)];
    while let Some((start, end, axis)) = open.pop() {
        let own = &mut order[start..end];
        if own.len() > cell {
            let middle = own.len() / 2;
            own.select_nth_unstable_by(middle, |&a, &b| h[a * d + axis].total_cmp(&h[b * d + axis]));
            open.push((start, start + middle, (axis + 1) % d));
            open.push((start + middle, end, (axis + 1) % d));
        } else {
            left += unexplained(d, own, h, y);
        }
    }
    left / tokens as f64
}

/// The sum of squares of y that a linear function of h leaves in a cell, without the bias of a fit to the same tokens.
fn unexplained(d: usize, own: &[usize], h: &[f64], y: &[f64]) -> f64 {
    let count = own.len() as f64;
    let mean = |of: &[f64], c: usize| own.iter().map(|&i| of[i * d + c]).sum::<f64>() / count;
    let (h_means, y_means): (Vec<f64>, Vec<f64>) = (0..d).map(|c| (mean(h, c), mean(y, c))).unzip();
    let centered = |of: &[f64], means: &[f64], c: usize| own.iter().map(|&i| of[i * d + c] - means[c]).collect();
    let mut known: Vec<Vec<f64>> = Vec::new();
    for c in 0..d {
        let mut column: Vec<f64> = centered(h, &h_means, c);
        let before = dot(&column, &column);
        known.iter().for_each(|other| project_out(&mut column, other));
        let size = dot(&column, &column).sqrt();
        // A coordinate that follows from the others says nothing more.
        if size * size > 1e-12 * before {
            known.push(column.into_iter().map(|x| x / size).collect());
        }
    }
    let free = (count - 1.0 - known.len() as f64).max(1.0);
    let rest = |c: usize| {
        let mut column: Vec<f64> = centered(y, &y_means, c);
        known.iter().for_each(|other| project_out(&mut column, other));
        dot(&column, &column)
    };
    (0..d).map(rest).sum::<f64>() * count / free
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Takes the part along a unit vector out.
fn project_out(x: &mut [f64], unit: &[f64]) {
    let along = dot(x, unit);
    x.iter_mut().zip(unit).for_each(|(x, u)| *x -= along * u);
}

/// A block (3) of at most `hidden` units, fitted by least squares: `h + W2 relu(W1 h + b1) + b2` is near y. The directions of the units
/// are random, and each unit bends at the projection of some token. The first 2d units are `relu(±h_c + shift)`, with which
/// all linear functions can be had, the inverse of the skip among them.
pub fn fitted_block(d: usize, h: &[f64], y: &[f64], hidden: usize, rng: &mut ChaCha8Rng) -> FeedForward<f64> {
    let (tokens, units) = (h.len() / d, hidden.clamp(2 * d + 1, MOST_UNITS.max(2 * d + 1)));
    let scale: Vec<f64> = (0..d).map(|c| h.iter().skip(c).step_by(d).fold(1e-9, |m: f64, x| m.max(x.abs()))).collect();
    let (mut w1, mut b1) = (Vec::new(), Vec::new());
    for unit in 0..units {
        let direction: Vec<f64> = if unit < 2 * d {
            (0..d).map(|c| if c == unit / 2 { [1.0, -1.0][unit % 2] / scale[c] } else { 0.0 }).collect()
        } else {
            (0..d).map(|c| rng.random_range(-1.0..1.0) / scale[c]).collect()
        };
        let token = rng.random_range(0..tokens);
        let bend = if unit < 2 * d { -1.0 } else { dot(&direction, &h[token * d..(token + 1) * d]) };
        w1.extend(direction);
        b1.push(-bend);
    }
    let block =
        FeedForward { w1: Matrix::new(units, d, w1), b1, w2: Matrix::from_fn(d, units, |_, _| 0.0), b2: vec![0.0; d] };
    let solved = least_squares(&block, h, y, d);
    let entry = |c: usize, unit: usize| solved[unit * d + c];
    FeedForward { w2: Matrix::from_fn(d, units, entry), b2: (0..d).map(|c| entry(c, units)).collect(), ..block }
}

/// The weights of the hidden units and of a constant 1, row-major `[units + 1, d]`, for outputs y - h.
fn least_squares(block: &FeedForward<f64>, h: &[f64], y: &[f64], d: usize) -> Vec<f64> {
    let size = block.b1.len() + 1;
    let (mut gram, mut right) = (vec![0.0; size * size], vec![0.0; size * d]);
    let mut features = vec![1.0; size];
    let step = (h.len() / d).div_ceil(FITTED);
    for (h, y) in h.chunks_exact(d).zip(y.chunks_exact(d)).step_by(step) {
        for (unit, feature) in features[..size - 1].iter_mut().enumerate() {
            *feature = (dot(block.w1.row(unit), h) + block.b1[unit]).max(0.0);
        }
        let active: Vec<usize> = (0..size).filter(|&i| features[i] != 0.0).collect();
        for &i in &active {
            for &j in active.iter().take_while(|&&j| j <= i) {
                gram[i * size + j] += features[i] * features[j];
            }
            for c in 0..d {
                right[i * d + c] += features[i] * (y[c] - h[c]);
            }
        }
    }
    solve(&mut gram, &mut right, size, d);
    right
}

/// Solves `A X = B` in place of B for a positive definite A, given by its lower triangle, after a small ridge (Cholesky).
fn solve(a: &mut [f64], b: &mut [f64], size: usize, columns: usize) {
    for i in 0..size {
        a[i * size + i] = a[i * size + i] * (1.0 + 1e-9) + 1e-9;
        for j in 0..=i {
            let sum = dot(&a[i * size..i * size + j], &a[j * size..j * size + j]);
            let rest = a[i * size + j] - sum;
            a[i * size + j] = if i == j { rest.max(1e-12).sqrt() } else { rest / a[j * size + j] };
        }
    }
    for c in 0..columns {
        for i in 0..size {
            let sum: f64 = (0..i).map(|j| a[i * size + j] * b[j * columns + c]).sum();
            b[i * columns + c] = (b[i * columns + c] - sum) / a[i * size + i];
        }
        for i in (0..size).rev() {
            let sum: f64 = (i + 1..size).map(|j| a[j * size + i] * b[j * columns + c]).sum();
            b[i * columns + c] = (b[i * columns + c] - sum) / a[i * size + i];
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    fn tokens(count: usize) -> Vec<f64> {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        (0..2 * count).map(|_| rng.random_range(0.0..1.0)).collect()
    }

    /// A function of both numbers leaves next to nothing; one with noise of variance 1/12 leaves that, not less and not more.
    #[test]
    fn what_is_left_is_what_h_does_not_know() {
        let (h, noise) = (tokens(20_000), tokens(40_000));
        let known: Vec<f64> = h.chunks_exact(2).flat_map(|h| [(3.0 * h[0] * h[1]).sin(), h[0] - h[1]]).collect();
        assert!(left_in_cells(2, &h, &known, 24) < 1e-4, "{}", left_in_cells(2, &h, &known, 24));
        let noisy: Vec<f64> = known.chunks_exact(2).zip(&noise[40_000..]).flat_map(|(y, e)| [y[0] + e, y[1]]).collect();
        let left = left_in_cells(2, &h, &noisy, 24);
        assert!((left * 12.0 - 1.0).abs() < 0.05, "{left}");
        // One of the two numbers is not enough: x - y has a variance of 1/12 left.
        let half: Vec<f64> = h.chunks_exact(2).flat_map(|h| [h[0], h[0]]).collect();
        let left = left_in_cells(2, &half, &known, 24);
        assert!(left > 1.0 / 12.0, "{left}");
    }

    #[test]
    fn the_block_reads_both_numbers() {
        let h = tokens(20_000);
        let y: Vec<f64> = h.chunks_exact(2).flat_map(|h| [(3.0 * h[0] * h[1]).sin(), (h[0] - h[1]).abs()]).collect();
        let block = fitted_block(2, &h, &y, 200, &mut ChaCha8Rng::seed_from_u64(2));
        assert_eq!(block.b1.len(), 200);
        let error =
            |(h, y): (&[f64], &[f64])| block.apply_token(h).iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        let mean = h.chunks_exact(2).zip(y.chunks_exact(2)).map(error).sum::<f64>() / 20_000.0;
        assert!(mean.sqrt() < 0.01, "{}", mean.sqrt());
    }
}
