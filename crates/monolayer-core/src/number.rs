//! Numbers of files, exactly: an integer times a power of two.

/// m 2^e. Zero is (0, 0); otherwise m is odd, so that two equal numbers are equal as pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dyadic {
    /// The mantissa, at most 53 bits for a number read from a file.
    pub m: i64,
    /// The exponent of its last bit.
    pub e: i32,
}

/// A binary floating-point format: IEEE binary32 or binary64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// binary32: 24 bits, last bits from 2^-149.
    F32,
    /// binary64: 53 bits, last bits from 2^-1074.
    F64,
}

/// How a file stores numbers: a bit of sign, then so many of exponent and of fraction. Without exponent, integers in two's
/// complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    exponent: u32,
    fraction: u32,
}

impl Stored {
    /// Integers from -128 to 127.
    pub const I8: Self = Self { exponent: 0, fraction: 7 };
    /// IEEE binary16.
    pub const F16: Self = Self { exponent: 5, fraction: 10 };
    /// The first half of a binary32.
    pub const BF16: Self = Self { exponent: 8, fraction: 7 };
    /// IEEE binary32.
    pub const F32: Self = Self { exponent: 8, fraction: 23 };
    /// IEEE binary64.
    pub const F64: Self = Self { exponent: 11, fraction: 52 };

    /// Bytes of a number.
    pub const fn width(self) -> usize {
        (1 + self.exponent + self.fraction) as usize / 8
    }
}

impl Format {
    /// Bits of precision p; the unit roundoff is u = 2^-p.
    pub const fn bits(self) -> i32 {
        match self {
            Self::F32 => 24,
            Self::F64 => 53,
        }
    }

    /// The exponent of the smallest positive number.
    pub const fn least(self) -> i32 {
        match self {
            Self::F32 => -149,
            Self::F64 => -1074,
        }
    }

    /// Every finite number is below 2 to this power in size.
    pub const fn top(self) -> i32 {
        match self {
            Self::F32 => 128,
            Self::F64 => 1024,
        }
    }

    /// The greatest number of the format that is at most m 2^e, by its place among all of them: 0 has place 0, the smallest positive
    /// number 1. One below the least place where there is none.
    pub const fn below(self, m: i128, e: i32) -> i64 {
        let (p, size) = (self.bits(), 128 - m.unsigned_abs().leading_zeros() as i32);
        let most = (((self.top() - p - self.least()) as i64) << (p - 1)) + (1 << p) - 1;
        if m == 0 || e + size > self.top() {
            return if m == 0 {
                0
            } else if m > 0 {
                most
            } else {
                -most - 1
            };
        }
        // The exponent of the last bit that the format has there.
        let last = if e + size - p > self.least() { e + size - p } else { self.least() };
        let lost = last - e;
        let units = (if lost <= 0 { m << -lost } else { m >> (if lost < 127 { lost } else { 127 }) }) as i64;
        let binades = ((last - self.least()) as i64) << (p - 1);
        let place = if units < 0 { units - binades } else { units + binades };
        if place < -most { -most - 1 } else { place }
    }

    /// The number at a place among all numbers of the format.
    pub const fn number(self, place: i64) -> Dyadic {
        let (size, p) = (place.unsigned_abs() as i64, self.bits());
        let binade = if size >> p == 0 { 0 } else { (size >> (p - 1)) - 1 };
        let m = size - (binade << (p - 1));
        Dyadic::new(if place < 0 { -m } else { m }, self.least() + binade as i32)
    }
}

impl Dyadic {
    /// Zero.
    pub const ZERO: Self = Self { m: 0, e: 0 };

    /// m 2^e in lowest terms.
    pub const fn new(m: i64, e: i32) -> Self {
        if m == 0 {
            return Self::ZERO;
        }
        let zeros = m.trailing_zeros();
        Self { m: m >> zeros, e: e + zeros as i32 }
    }

    /// The number with these bits in a format (the lower 32 for binary32); nothing for infinities and NaN.
    pub const fn from_bits(format: Format, bits: u64) -> Option<Self> {
        Self::from_stored(if matches!(format, Format::F32) { Stored::F32 } else { Stored::F64 }, bits)
    }

    /// The number with these bits, the lowest ones, in a file; nothing for infinities and NaN.
    pub const fn from_stored(
        Stored { exponent: exponent_bits, fraction: fraction_bits }: Stored,
        bits: u64,
    ) -> Option<Self> {
        let fraction = (bits & ((1 << fraction_bits) - 1)) as i64;
        let negative = bits >> (fraction_bits + exponent_bits) & 1 == 1;
        if exponent_bits == 0 {
            return Some(Self::new(if negative { fraction - (1 << fraction_bits) } else { fraction }, 0));
        }
        let least = 2 - (1 << (exponent_bits - 1)) - fraction_bits as i32;
        let exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
        if exponent == (1 << exponent_bits) - 1 {
            return None;
        }
        let (m, e) = if exponent == 0 {
            (fraction, least)
        } else {
            (fraction | 1 << fraction_bits, least + exponent as i32 - 1)
        };
        Some(Self::new(if negative { -m } else { m }, e))
    }

    /// The number of a format that is nearest to m 2^e, ties to even; nothing where that overflows.
    ///
    /// Bits of m below the last place of the format must not be more than an i128 holds.
    fn round(m: i128, e: i32, format: Format) -> Option<Self> {
        if m == 0 {
            return Some(Self::ZERO);
        }
        let size = 128 - m.unsigned_abs().leading_zeros() as i32;
        // The exponent of the last place of the result.
        let place = (e + size - format.bits()).max(format.least());
        let lost = place - e;
        let (m, e) = if lost <= 0 {
            (m, e)
        } else if lost > 126 {
            (0, 0)
        } else {
            let (down, rest, half) = (m >> lost, m & ((1 << lost) - 1), 1_i128 << (lost - 1));
            let up = rest > half || (rest == half && down & 1 == 1);
            (down + i128::from(up), place)
        };
        let zeros = if m == 0 { 0 } else { m.trailing_zeros() };
        let rounded = Self::new(i64::try_from(m >> zeros).ok()?, e + zeros as i32);
        (rounded.is_zero() || rounded.top() < format.top()).then_some(rounded)
    }

    /// The nearest number of a format, ties to even; nothing where that overflows.
    pub fn nearest(self, format: Format) -> Option<Self> {
        Self::round(self.m.into(), self.e, format)
    }

    /// The exact sum as an i128 times a power of two. Where the exponents are so far apart that it has more bits, the
    /// smaller number is replaced by one of its sign: both are below the 70th bit of the larger one, and round alike.
    fn exact_sum(self, other: Self) -> (i128, i32) {
        let (high, low) =
            if self.is_zero() || (!other.is_zero() && self.e < other.e) { (other, self) } else { (self, other) };
        if low.is_zero() {
            return (high.m.into(), high.e);
        }
        let gap = high.e - low.e;
        // A mantissa is odd and may be short: what counts is its first bit.
        let room = 62 + high.m.unsigned_abs().leading_zeros() as i32;
        if gap <= room {
            return ((i128::from(high.m) << gap) + i128::from(low.m), low.e);
        }
        ((i128::from(high.m) << room) + i128::from(low.m.signum()), high.e - room)
    }

    /// The sum, rounded once to a format, whose numbers both are; nothing where it overflows.
    pub fn plus(self, other: Self, format: Format) -> Option<Self> {
        let (m, e) = self.exact_sum(other);
        Self::round(m, e, format)
    }

    /// The sum, if it has at most 62 bits.
    pub fn plus_exactly(self, other: Self) -> Option<Self> {
        let gap = (i64::from(self.e) - i64::from(other.e)).unsigned_abs();
        if gap > 62 && !self.is_zero() && !other.is_zero() {
            return None;
        }
        let (m, e) = self.exact_sum(other);
        if m == 0 {
            return Some(Self::ZERO);
        }
        let zeros = m.trailing_zeros();
        i64::try_from(m >> zeros).ok().filter(|m| m.unsigned_abs() >> 62 == 0).map(|m| Self::new(m, e + zeros as i32))
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.m == 0
    }

    /// The exponent of the first bit of a number that is not zero: 2^top <= |x| < 2^(top + 1).
    pub const fn top(self) -> i32 {
        self.e + 63 - self.m.unsigned_abs().leading_zeros() as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_exactly() {
        for x in [0.0, -0.0, 1.0, -6.5, 0.1, f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), f64::from_bits(3)] {
            let found = Dyadic::from_bits(Format::F64, x.to_bits()).unwrap();
            assert!(found.m == 0 || found.m % 2 != 0);
            let half = found.e / 2;
            assert_eq!(found.m as f64 * 2_f64.powi(half) * 2_f64.powi(found.e - half), x);
        }
        for x in [0.0_f32, 1.5, -0.1, f32::MAX, f32::from_bits(1), f32::from_bits(0x007F_FFFF)] {
            let found = Dyadic::from_bits(Format::F32, u64::from(x.to_bits())).unwrap();
            let half = found.e / 2;
            assert_eq!((found.m as f64 * 2_f64.powi(half) * 2_f64.powi(found.e - half)) as f32, x);
        }
        assert_eq!(Dyadic::from_bits(Format::F32, u64::from(f32::NAN.to_bits())), None);
        assert_eq!(Dyadic::from_bits(Format::F64, f64::INFINITY.to_bits()), None);
    }

    #[test]
    fn short_numbers_are_read_exactly() {
        for bits in 0..256_u64 {
            assert_eq!(Dyadic::from_stored(Stored::I8, bits), Some(Dyadic::new((bits as u8 as i8).into(), 0)));
        }
        for bits in 0..65_536_u64 {
            // The first half of a single.
            let single = Dyadic::from_bits(Format::F32, bits << 16);
            assert_eq!(Dyadic::from_stored(Stored::BF16, bits), single, "{bits:x}");
            // Five bits of exponent about 15, ten of fraction; subnormal numbers are multiples of 2^-24.
            let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as i64);
            let m = if exponent == 0 { fraction } else { 1024 + fraction };
            let half = Dyadic::new(if bits >> 15 == 1 { -m } else { m }, exponent.max(1) - 25);
            let half = (exponent < 31).then_some(half);
            assert_eq!(Dyadic::from_stored(Stored::F16, bits), half, "{bits:x}");
        }
    }

    #[test]
    fn sums_round_as_the_hardware_does() {
        let mut state = 7_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 29)
        };
        let mut compared = 0;
        for _ in 0..200_000 {
            let (a, b) = (random() as u32, random() as u32);
            // Near exponents, so that sums round, cancel and reach subnormal numbers.
            let b = if random() & 1 == 0 {
                (b & 0x807F_FFFF) | ((a & 0x7F80_0000).wrapping_add((b >> 3) & 0x0F80_0000)) & 0x7F80_0000
            } else {
                b
            };
            let of = |bits: u32| Dyadic::from_bits(Format::F32, bits.into());
            let (Some(x), Some(y)) = (of(a), of(b)) else { continue };
            let sum = f32::from_bits(a) + f32::from_bits(b);
            assert_eq!(x.plus(y, Format::F32), of(sum.to_bits()), "{a:x} {b:x}");
            let wide = random();
            if let Some(x) = Dyadic::from_bits(Format::F64, wide) {
                assert_eq!(x.nearest(Format::F32), of((f64::from_bits(wide) as f32).to_bits()), "{wide:x}");
            }
            compared += 1;
        }
        assert!(compared > 100_000);
    }

    #[test]
    fn numbers_of_a_format_have_places() {
        let place = |x: f32| {
            let size = i64::from(x.to_bits() & 0x7FFF_FFFF);
            if x < 0.0 { -size } else { size }
        };
        for x in [0.0, 1.0, -1.5, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, -1e-45, 1e-39, 0.1, -3e38, 1.999_999_9]
        {
            let exact = Dyadic::from_bits(Format::F32, x.to_bits().into()).unwrap();
            assert_eq!(Format::F32.below(exact.m.into(), exact.e), place(x), "{x}");
            assert_eq!(Format::F32.number(place(x)), exact, "{x}");
            // A little more is the same place, a little less the one before.
            let (m, e) = (i128::from(exact.m) << 60, exact.e - 60);
            if m != 0 {
                assert_eq!(Format::F32.below(m + 1, e), place(x), "{x}");
                assert_eq!(Format::F32.below(m - 1, e), place(x) - 1, "{x}");
            }
        }
        let double = Dyadic::from_bits(Format::F64, f64::MAX.to_bits()).unwrap();
        assert_eq!(Format::F64.below(double.m.into(), double.e), f64::MAX.to_bits() as i64);
        assert_eq!(Format::F64.number(f64::MAX.to_bits() as i64), double);
        assert_eq!(Format::F64.below(1, -20_000), 0);
        assert_eq!(Format::F64.below(-1, -20_000), -1);
        assert_eq!(Format::F64.below(1, 1 << 28), f64::MAX.to_bits() as i64);
        assert_eq!(Format::F64.below(-1, 1 << 28), -(f64::MAX.to_bits() as i64) - 1);
    }

    #[test]
    fn first_and_last_bits() {
        assert_eq!(Dyadic::new(12, -1), Dyadic { m: 3, e: 1 });
        assert_eq!(Dyadic::new(12, -1).top(), 2);
        assert_eq!(Dyadic::new(-1, 5).top(), 5);
    }
}
