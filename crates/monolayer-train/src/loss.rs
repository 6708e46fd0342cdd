//! The losses and their gradients: cross-entropy of a linear head's scores, squared error of output vectors.

use monolayer::arithmetic::arg_max;
use monolayer::arithmetic::kernels::Real;

/// Below this size a gradient counts as 0: it changes nothing, and products with it would be subnormal and slow.
pub fn negligible<R: Real>() -> R {
    R::SMALLEST.square_root() * R::from_f64(1e2)
}

/// What came of some tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// The sum of the tokens' losses.
    pub loss: f64,
    /// Tokens with the right label (0 for vectors).
    pub right: usize,
}

/// Cross-entropy -log softmax(scores)[label], summed over the tokens with a label. Scores become their gradients, times `scale`.
pub fn cross_entropy<R: Real>(scores: &mut [R], classes: usize, labels: &[Option<u32>], scale: R) -> Sum {
    let mut sum = Sum::default();
    let least = negligible::<R>();
    for (row, label) in scores.chunks_exact_mut(classes).zip(labels) {
        let Some(label) = label.map(|label| label as usize) else {
            row.fill(R::ZERO);
            continue;
        };
        let best = arg_max(row);
        sum.right += usize::from(best == label);
        let (top, own) = (row[best], row[label]);
        let mut total = R::ZERO;
        for x in row.iter_mut() {
            *x = (*x - top).exp_nonpositive();
            total += *x;
        }
        sum.loss += total.to_f64().ln() + (top - own).to_f64();
        let share = scale / total;
        for x in row.iter_mut() {
            *x = *x * share;
        }
        row[label] = row[label] - scale;
        for x in row {
            *x = if *x < least && *x > R::ZERO - least { R::ZERO } else { *x };
        }
    }
    sum
}

/// Squared error, averaged over the d coordinates and summed over tokens. Outputs become their gradients, times `scale`.
pub fn squared_error<R: Real>(outputs: &mut [R], d: usize, targets: &[R], scale: R) -> Sum {
    let slope = scale * R::from_f64(2.0 / d as f64);
    let mut loss = 0.0;
    for (x, &y) in outputs.iter_mut().zip(targets) {
        let error = *x - y;
        loss += error.to_f64() * error.to_f64();
        *x = slope * error;
    }
    Sum { loss: loss / d as f64, right: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_tokens_count_for_nothing() {
        let rows = [0.5, -1.0, 2.0, 0.25, 3.0, -0.5];
        let (mut all, mut some) = (rows, rows);
        let sum = cross_entropy::<f64>(&mut all, 3, &[Some(2), Some(0)], 0.5);
        let less = cross_entropy::<f64>(&mut some, 3, &[Some(2), None], 0.5);
        assert_eq!((sum.right, less.right), (1, 1));
        assert!(less.loss > 0.0 && less.loss < sum.loss);
        assert_eq!(some[..3], all[..3]);
        assert_eq!(some[3..], [0.0; 3]);
    }
}
