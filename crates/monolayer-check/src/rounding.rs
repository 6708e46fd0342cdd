//! One model of rounding for the program under scrutiny and for the checker's own f64 arithmetic.
//!
//! An enclosure here is a midpoint m (computed in f64) and a radius r: whatever a covered program computes lies in
//! [m - r, m + r]. The program rounds with unit roundoff `u_P` (0 for real arithmetic), the midpoint with 2^-53, and
//! both obey the same any-order bounds, so `unit` is the sum of the two and one formula covers both.

/// Which arithmetic a verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Programs in IEEE binary32.
    F32,
    /// Programs in IEEE binary64.
    F64,
    /// Exact real arithmetic.
    Real,
}

impl Precision {
    /// Its name in certificates and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Real => "real",
        }
    }

    /// The precision of a name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::F32, Self::F64, Self::Real].into_iter().find(|p| p.name() == name)
    }
}

/// The constants of the error bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding {
    /// The arithmetic.
    pub precision: Precision,
    /// Unit roundoff of the program plus that of the midpoint.
    pub unit: f64,
    /// A number with at most this many bits is exact in both.
    pub bits: i32,
    /// The least exponent of a bit that both hold.
    pub least: i32,
    /// What one product may lose to underflow, from above: normal numbers, because subnormal ones are slow.
    pub tiny: f64,
    /// Relative error of exp.
    pub exp_relative: f64,
    /// Absolute error of exp where its value underflows.
    pub exp_absolute: f64,
    /// Beyond this a sum may overflow.
    pub largest: f64,
}

/// 2^-53: the midpoint's unit roundoff.
const UNIT: f64 = f64::EPSILON / 2.0;

impl Rounding {
    /// The constants for an arithmetic whose exp is within `exp_ulp` units in the last place.
    pub fn new(precision: Precision, exp_ulp: f64) -> Self {
        let ours = Self {
            precision,
            unit: UNIT,
            bits: 53,
            least: -1074,
            tiny: f64::MIN_POSITIVE,
            exp_relative: 2.0 * UNIT,
            exp_absolute: f64::MIN_POSITIVE,
            largest: f64::MAX / 4.0,
        };
        match precision {
            Precision::Real => ours,
            Precision::F64 => Self {
                unit: 2.0 * UNIT,
                tiny: 2.0 * ours.tiny,
                exp_relative: ours.exp_relative + 2.0 * exp_ulp * UNIT,
                ..ours
            },
            Precision::F32 => {
                let unit = f64::from(f32::EPSILON) / 2.0;
                Self {
                    precision,
                    unit: unit + UNIT,
                    bits: 24,
                    least: -149,
                    tiny: f64::from(f32::from_bits(1)),
                    exp_relative: ours.exp_relative + 2.0 * exp_ulp * unit,
                    exp_absolute: f64::from(f32::MIN_POSITIVE),
                    largest: f64::from(f32::MAX) * 0.999,
                }
            }
        }
    }

    /// `gamma_k` = k u / (1 - k u): the relative error of k roundings in a row, in any order of summation.
    pub fn gamma(&self, k: usize) -> f64 {
        let ku = k as f64 * self.unit;
        if ku < 0.5 { up(ku / (1.0 - ku)) } else { f64::INFINITY }
    }
}

/// An upper bound on a sum or product of non-negative numbers that was computed in f64 with up to eight million roundings.
pub fn up(bound: f64) -> f64 {
    if bound == 0.0 { 0.0 } else { bound * (1.0 + 1e-9) + f64::MIN_POSITIVE }
}

/// The largest power of two not above x (the unit in the first place); a sum of size x rounds by at most u times it.
pub fn first_place(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0x7FF0_0000_0000_0000).max(f64::MIN_POSITIVE)
}

/// The exponent of the last bit of a non-zero number: x is an odd multiple of 2 to that power.
pub fn last_bit(x: f64) -> i32 {
    let bits = x.to_bits();
    let fraction = bits & 0x000F_FFFF_FFFF_FFFF;
    let exponent = (bits >> 52 & 0x7FF) as i32;
    if exponent == 0 {
        fraction.trailing_zeros() as i32 - 1074
    } else {
        (fraction | 1 << 52).trailing_zeros() as i32 + exponent - 1075
    }
}

/// 2^exponent; 0 or infinity where that is no normal number.
pub fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        ..-1022 => 0.0,
        -1022..1024 => f64::from_bits(((exponent + 1023) as u64) << 52),
        1024.. => f64::INFINITY,
    }
}

/// |x + y - fl(x + y)|, exactly (Knuth).
pub fn two_sum_error(x: f64, y: f64) -> f64 {
    let sum = x + y;
    let back = sum - x;
    ((x - (sum - back)) + (y - back)).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_numbers() {
        assert_eq!(last_bit(1.0), 0);
        assert_eq!(last_bit(-6.0), 1);
        assert_eq!(last_bit(0.75), -2);
        assert_eq!(last_bit(f64::from_bits(1)), -1074);
        assert_eq!(last_bit(f64::from_bits(6)), -1073);
        assert_eq!((power_of_two(-3), power_of_two(1023)), (0.125, f64::MAX / (2.0 - f64::EPSILON)));
        assert_eq!(first_place(5.9), 4.0);
        assert_eq!(first_place(4.0), 4.0);
    }
}
