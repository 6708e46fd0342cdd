//! Powers of two that bring numbers near 1, so that their products neither overflow nor vanish on the way to a result.

use crate::arithmetic::kernels::Real;

use super::limits::Limits;
use super::plan::Extent;

/// The exponent of a number's largest power of two; 0 for 0.
pub(super) fn exponent(x: f64) -> i32 {
    if x == 0.0 {
        return 0;
    }
    // Subnormal numbers are made normal first.
    let (x, more) = if x.abs() < f64::MIN_POSITIVE { (x * 2.0_f64.powi(64), 64) } else { (x, 0) };
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023 - more
}

/// A power of two that may be beyond the range of floats: as a product of floats.
#[derive(Debug, Clone, Copy)]
pub(super) struct Power([f64; 3]);

impl Power {
    /// 2^e, for |e| at most 3000.
    pub fn new(mut e: i32) -> Self {
        Self([(); 3].map(|()| {
            let step = e.clamp(-1000, 1000);
            e -= step;
            2.0_f64.powi(step)
        }))
    }

    /// `x 2^e`, rounded once where x is near 1.
    pub fn times(&self, x: f64) -> f64 {
        x * self.0[0] * self.0[1] * self.0[2]
    }
}

/// The exponent by which numbers up to `largest` are divided, as far as the type has its power and the inverse.
pub(super) fn shrinking<R: Real>(largest: f64) -> i32 {
    let most = if size_of::<R>() == 4 { 126 } else { 1022 };
    exponent(largest).clamp(-most, most)
}

/// 2^-e.
pub(super) fn inverse_power<R: Real>(e: i32) -> R {
    R::from_f64(Power::new(-e).times(1.0))
}

/// Whether sums of gradients are within the type, whatever their signs, for upstream gradients up to `upstream`.
pub(super) fn fits<R: Real>(extent: &Extent, values: Limits<R>, upstream: f64) -> bool {
    let spread = values.high.to_f64() * 0.5 - values.low.to_f64() * 0.5;
    let width = extent.high * 0.5 - extent.low * 0.5;
    let product = |factors: &[f64]| {
        // A factor of 0 makes the product 0.
        if factors.contains(&0.0) { i32::MIN } else { factors.iter().map(|&x| exponent(x) + 1).sum() }
    };
    let queries = extent.queries as f64;
    let largest = product(&[upstream, spread, extent.largest, queries, 2.0]);
    let largest = largest.max(product(&[upstream, spread, width, 4.0])).max(product(&[upstream, queries, 2.0]));
    largest < exponent(R::LARGEST.to_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_exponents() {
        for (x, e) in [(1.0, 0), (1.5, 0), (-2.0, 1), (0.75, -1), (5e-324, -1074), (f64::MAX, 1023), (0.0, 0)] {
            assert_eq!(exponent(x), e, "{x}");
        }
        assert_eq!(Power::new(-1074).times(1.0), 5e-324);
        assert_eq!(Power::new(1074 + 1023).times(5e-324), 2.0_f64.powi(1023));
        assert_eq!(Power::new(3000).times(1.0), f64::INFINITY);
        assert_eq!(shrinking::<f32>(1e-45), -126);
        assert!(inverse_power::<f32>(-126).finite() && inverse_power::<f64>(1022) > 0.0);
    }
}
