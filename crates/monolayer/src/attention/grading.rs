//! Bins that get wider with their distance from zero.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

/// The bits of a fraction of f64.
const FRACTION: u32 = 52;
/// The exponent of 1 as f64 stores it.
const BIAS: u64 = 1023;

/// A number without its last digits: its products with whole numbers below 2^48 are exact. It gets smaller by 1/16 at most.
pub(super) fn short(x: f64) -> f64 {
    f64::from_bits(x.to_bits() >> (FRACTION - 4) << (FRACTION - 4))
}

/// Distances `d >= 0` cut into cells: `2^bits` cells of equal width up to `unit`, and from there on as many for each
/// doubling of `unit + d`. The number of a cell is read off the bits of `1 + d / unit`: its exponent and the first
/// bits of its fraction. The unit has few digits, so that centers and
/// widths are exact.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grading {
    unit: f64,
    inverse: f64,
    bits: u32,
    /// How many cells there are up to the largest distance.
    pub count: usize,
}

impl Grading {
    /// Bins up to `largest`, those near zero of at most this half-width (which is positive).
    pub fn new(half_width: f64, bits: u32, largest: f64) -> Self {
        let at_most = half_width * f64::from(1 << (bits + 1));
        let unit = short(at_most);
        let mut grading = Self { unit, inverse: 1.0 / unit, bits, count: 0 };
        grading.count = grading.place(largest).0 + 1;
        grading
    }

    /// The cell of a distance, and where in the cell it lies, from -1 to 1.
    #[inline(always)]
    pub fn place(&self, d: f64) -> (usize, f64) {
        let low = FRACTION - self.bits;
        let bits = (1.0 + d * self.inverse).to_bits();
        let number = (bits >> low) - (BIAS << self.bits);
        let center = f64::from_bits((bits >> low << low) | (1 << (low - 1)));
        // 2^-e where 1 + d / unit has exponent e.
        let shrink = f64::from_bits((2 * BIAS - (bits >> FRACTION)) << FRACTION);
        let half_widths = shrink * (self.inverse * f64::from(1_u32 << (self.bits + 1)));
        (number as usize, (d - (center - 1.0) * self.unit) * half_widths)
    }

    /// The center of a cell.
    pub fn center(&self, number: usize) -> f64 {
        let low = FRACTION - self.bits;
        (f64::from_bits(((number as u64 + (BIAS << self.bits)) << low) | (1 << (low - 1))) - 1.0) * self.unit
    }

    /// Half the width of a cell.
    pub fn half_width(&self, number: usize) -> f64 {
        let exponent = (number as u64 >> self.bits) + BIAS;
        f64::from_bits(exponent << FRACTION) * self.unit / f64::from(1_u32 << (self.bits + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_in_their_cells() {
        for (half_width, bits, largest) in [(0.1, 3, 70.0), (1e-30, 9, 1e30), (3e40, 6, 1.0), (1.0, 4, 0.0)] {
            let grading = Grading::new(half_width, bits, largest);
            assert!(grading.half_width(0) <= half_width && grading.half_width(0) > 0.9 * half_width);
            let mut d = largest;
            for _ in 0..2000 {
                let (number, x) = grading.place(d);
                assert!(number < grading.count && x.abs() <= 1.0 + 1e-9, "{d} {number} {x}");
                // The distance from the center rounds relatively, which is little of the half-width.
                let back = grading.center(number) + grading.half_width(number) * x;
                assert!((back - d).abs() <= 4.0 * f64::EPSILON * (d + grading.half_width(number)), "{d} {back}");
                // Bins are narrow near zero, and narrow compared with their distance elsewhere.
                let near = grading.center(number) - grading.half_width(number);
                let narrow = half_width.max(near / f64::from(1 << bits));
                assert!(grading.half_width(number) <= narrow);
                d *= 0.93;
            }
        }
    }
}
