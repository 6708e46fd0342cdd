//! Upper bounds that stay upper bounds: every operation is rounded up, and what is not a number becomes infinite, so that
//! nothing is proved from it. And the rules for machine numbers: how far a sum in any order can be from the true one.

use std::ops::{Add, Mul};

use crate::arithmetic::kernels::Real;

/// An upper bound of a nonnegative number; infinite where nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Up(f64);

impl Up {
    /// Exactly 0.
    pub const ZERO: Self = Self(0.0);
    /// Nothing is known.
    pub const UNKNOWN: Self = Self(f64::INFINITY);

    /// The bound `x`, which the caller has proved; what is not a number is unknown.
    pub fn new(x: f64) -> Self {
        if x >= 0.0 { Self(x) } else { Self::UNKNOWN }
    }

    /// The size of a float, exactly.
    pub fn size(x: f64) -> Self {
        Self::new(x.abs())
    }

    /// A float that was rounded to nearest once, so that the true number is below the next float.
    fn raised(x: f64) -> Self {
        // The common case of `next_up`, in one addition.
        if 0.0 < x && x < f64::INFINITY { Self(f64::from_bits(x.to_bits() + 1)) } else { Self::new(x.next_up()) }
    }

    /// A count, exactly.
    pub fn count(n: usize) -> Self {
        Self(n as f64)
    }

    /// The bound as a float.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The larger bound.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }

    /// The bound over a positive number that is at least `below`; unknown where `below` is not positive.
    #[must_use]
    pub fn over(self, below: f64) -> Self {
        if below > 0.0 { Self::raised(self.0 / below) } else { Self::UNKNOWN }
    }

    /// A lower bound of 1 minus the number.
    pub fn below_one(self) -> f64 {
        (1.0 - self.0).next_down()
    }

    /// An upper bound of the square root.
    #[must_use]
    pub fn root(self) -> Self {
        Self::raised(self.0.sqrt())
    }

    /// Whether something is known.
    pub fn is_known(self) -> bool {
        self.0 < f64::INFINITY
    }
}

impl Add for Up {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        // Sums with 0 are exact: what is exact stays so.
        if self.0 == 0.0 {
            other
        } else if other.0 == 0.0 {
            self
        } else {
            Self::raised(self.0 + other.0)
        }
    }
}

impl Mul for Up {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        // 0 times unknown is not a number, hence unknown.
        if (self.0 == 0.0 && other.is_known()) || (other.0 == 0.0 && self.is_known()) {
            Self::ZERO
        } else {
            Self::raised(self.0 * other.0)
        }
    }
}

impl std::iter::Sum for Up {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Self::ZERO, Add::add)
    }
}

/// A float that is at least `a + b`.
pub fn sum_above(a: f64, b: f64) -> f64 {
    (a + b).next_up()
}

/// A float that is at most `a + b`.
pub fn sum_below(a: f64, b: f64) -> f64 {
    (a + b).next_down()
}

/// Machine numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatFormat {
    /// Half the distance from 1 to the next number.
    pub u: f64,
    /// The smallest normal number.
    pub smallest: f64,
    /// The largest number.
    pub largest: f64,
}

/// Double precision, in which the proofs are computed.
pub const DOUBLE: FloatFormat = FloatFormat { u: f64::EPSILON / 2.0, smallest: f64::MIN_POSITIVE, largest: f64::MAX };

impl FloatFormat {
    /// The numbers of type `R`.
    pub fn of<R: Real>() -> Self {
        Self { u: R::UNIT_ROUNDOFF.to_f64(), smallest: R::SMALLEST.to_f64(), largest: R::LARGEST.to_f64() }
    }

    /// The distance of numbers below the smallest normal one.
    pub fn subnormal(&self) -> f64 {
        2.0 * self.u * self.smallest
    }

    /// `k u / (1 - k u)`, which bounds what k roundings change, relatively: `(1 + u)^k - 1` and `1 - (1 - u)^k`.
    pub fn gamma(&self, k: usize) -> Up {
        let ku = Up::count(k) * Up(self.u);
        if ku.0 < 0.5 { ku.over(ku.below_one()) } else { Up::UNKNOWN }
    }

    /// How far a computed sum of so many products can be from the true one: in any order, products rounded or fused with
    /// additions. `size` bounds the sum of the absolute values of the products.
    ///
    /// Each product is rounded at most once, by a factor of `1 + u` or, below the smallest normal number, by half the
    /// distance of subnormal numbers; sums of machine numbers that small are exact. A term then goes through at most
    /// `terms` additions. No partial sum is larger than twice the size, so a quarter of the largest number is room enough.
    pub fn sum_error(&self, terms: usize, size: Up) -> Up {
        let lost = Up::count(terms + 1) * Up(self.subnormal());
        if size.0 > self.largest / 4.0 { Up::UNKNOWN } else { self.gamma(terms + 1) * size + lost }
    }

    /// Whether every sum of terms that are multiples of `2^grid` and whose sizes add up to `size` at most is exact, in any
    /// order: each partial sum is then a machine number.
    pub fn is_exact(&self, grid: i32, size: Up) -> bool {
        let step = power(grid);
        step >= self.subnormal() && size.0 <= step / self.u && size.0 <= self.largest / 4.0
    }

    /// The distance of neighboring machine numbers just below `size`, rounded up to the next power of two.
    pub fn spacing(&self, size: Up) -> Up {
        if size.0 < self.smallest {
            return Up(self.subnormal());
        }
        if size.0 > self.largest / 4.0 {
            return Up::UNKNOWN;
        }
        // The power of two at or below the size, and its spacing: both exact.
        Up(f64::from_bits(size.0.to_bits() & !((1 << 52) - 1)) * 2.0 * self.u)
    }
}

/// The grid of zeros, which are multiples of everything.
pub const ANY_GRID: i32 = 1 << 20;

/// The largest e such that all numbers are multiples of `2^e`.
pub fn grid(numbers: &[f64]) -> i32 {
    let of_one = |x: &f64| {
        let bits = x.to_bits() & !(1 << 63);
        if bits == 0 {
            return ANY_GRID;
        }
        let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
        let fraction = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        exponent.max(1) - 1075 + fraction.trailing_zeros() as i32
    };
    numbers.iter().map(of_one).min().unwrap_or(ANY_GRID)
}

/// `2^e`; 0 where that is below all floats, infinite where above.
pub fn power(e: i32) -> f64 {
    match e {
        ..-1074 => 0.0,
        -1074..-1022 => f64::from_bits(1 << (e + 1074)),
        -1022..1024 => f64::from_bits(((e + 1023) as u64) << 52),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::rounding::{add_up, div_up, mul_up};
    use proptest::prelude::*;

    const SINGLE: FloatFormat =
        FloatFormat { u: f32::EPSILON as f64 / 2.0, smallest: f32::MIN_POSITIVE as f64, largest: f32::MAX as f64 };

    fn any_size() -> impl Strategy<Value = f64> {
        (0_u64..0x7ff0_0000_0000_0000).prop_map(f64::from_bits)
    }

    proptest! {
        #[test]
        fn bounds_are_above(a in any_size(), b in any_size()) {
            prop_assert!((Up(a) + Up(b)).0 >= add_up(a, b));
            prop_assert!((Up(a) * Up(b)).0 >= mul_up(a, b));
            if b > 0.0 {
                prop_assert!(Up(a).over(b).0 >= div_up(a, b));
            }
        }

        #[test]
        fn grids(numbers in prop::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 1..5)) {
            let step = power(grid(&numbers));
            prop_assert!(step > 0.0 && (step == f64::INFINITY || numbers.iter().all(|x| x % step == 0.0)));
            prop_assert!(numbers.iter().all(|&x| x == 0.0) || numbers.iter().any(|x| x % (2.0 * step) != 0.0));
        }

        /// Sums of random numbers of all sizes, in single precision, in a random order, against exact sums.
        #[test]
        fn sums_are_within_their_bounds(
            terms in prop::collection::vec((-30_i32..30, -1.0_f64..1.0, any::<u16>()), 1..12),
            shift in -130_i32..90,
        ) {
            let mut terms: Vec<(f32, u16)> =
                terms.iter().map(|&(e, x, order)| ((x * 2_f64.powi(e + shift)) as f32, order)).collect();
            let exact = terms.iter().map(|&(x, _)| dashu_ratio::RBig::try_from(x).expect("finite"))
                .fold(dashu_ratio::RBig::ZERO, |sum, x| sum + x);
            let size: Up = terms.iter().map(|&(x, _)| Up::size(f64::from(x))).sum();
            terms.sort_by_key(|&(_, order)| order);
            let computed = terms.iter().map(|&(x, _)| x).sum::<f32>();
            let error = (dashu_ratio::RBig::try_from(computed).expect("finite") - exact).to_f64().value().abs();
            prop_assert!(error <= SINGLE.sum_error(terms.len(), size).0 * (1.0 + 1e-15));
            let numbers: Vec<f64> = terms.iter().map(|&(x, _)| f64::from(x)).collect();
            if SINGLE.is_exact(grid(&numbers), size) {
                prop_assert_eq!(error, 0.0);
            }
        }
    }

    #[test]
    fn what_is_no_number_proves_nothing() {
        assert!(!(Up::ZERO * Up::UNKNOWN).is_known() && !(Up::UNKNOWN + Up::ZERO).is_known());
        assert!(!Up::new(f64::NAN).is_known() && !Up::new(-1.0).is_known() && !Up(1.0).over(0.0).is_known());
        assert!(!SINGLE.sum_error(3, Up(1e38)).is_known() && SINGLE.sum_error(3, Up(1e37)).is_known());
        assert!(!SINGLE.gamma(1 << 23).is_known());
        // Half of the last place of the largest partial sum, and not less than subnormal numbers allow.
        assert_eq!(SINGLE.spacing(Up(1.5)), Up(f64::from(f32::EPSILON)));
        assert_eq!(SINGLE.spacing(Up(1e-40)), Up(f64::from(f32::from_bits(1))));
        assert!(!SINGLE.is_exact(-150, Up(1e-45)) && SINGLE.is_exact(-149, Up(1e-40)));
    }
}
