//! The numbers of a model as real arithmetic takes them: floats, or exact rationals.

use std::fmt;

use dashu_int::IBig;

use super::number::{Big, Interval};

/// A number of a model.
pub trait Weight: Clone + fmt::Debug + PartialEq + Send + Sync {
    /// The value of a finite f64.
    fn from_f64(x: f64) -> Self;

    /// Whether it is 0.
    fn is_zero(&self) -> bool;

    /// An enclosure.
    fn interval(&self, bits: usize) -> Interval;

    /// The difference; exactly 0 where both are equal.
    fn minus(&self, other: &Self, bits: usize) -> Interval;

    /// Its product with an interval.
    fn times(&self, x: &Interval, bits: usize) -> Interval {
        x.times(&self.interval(bits), bits)
    }
}

impl Weight for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }

    fn is_zero(&self) -> bool {
        *self == 0.0
    }

    fn interval(&self, _: usize) -> Interval {
        Interval::from_f64(*self)
    }

    fn minus(&self, other: &Self, _: usize) -> Interval {
        Interval::point(Big::difference(*self, *other))
    }

    fn times(&self, x: &Interval, bits: usize) -> Interval {
        x.scaled_by(&Big::from_f64(*self), bits)
    }
}

/// A fraction p / q, q > 0, not necessarily in lowest terms.
#[derive(Debug, Clone)]
pub struct Rational {
    p: IBig,
    q: IBig,
}

/// Longer numbers are refused: their digits would take long to read.
const LONGEST: usize = 1 << 20;

impl Rational {
    /// The number written as `p/q`, or in decimals with an optional exponent. Zeros that an exponent stands for are taken
    /// from `zeros`, so that a short file does not become a long list of digits.
    pub fn parse(text: &str, zeros: &mut usize) -> Result<Self, String> {
        let shown: String = text.chars().take(40).collect();
        let bad = || format!("{shown:?} is not a decimal number or a fraction");
        if text.len() > LONGEST {
            return Err(format!("a number of {} digits; this checker reads up to {LONGEST}", text.len()));
        }
        let (negative, size) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let signed = |p: IBig| if negative { -p } else { p };
        if let Some((p, q)) = size.split_once('/') {
            let q = digits(q).ok_or_else(bad)?;
            if q.is_zero() {
                return Err(format!("{shown:?} divides by zero"));
            }
            return Ok(Self { p: signed(digits(p).ok_or_else(bad)?), q });
        }
        let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
        let plain = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let p = signed(digits(&format!("{whole}{fraction}")).ok_or_else(bad)?);
        let too_large = || format!("{shown:?}: the exponents of the file stand for too many zeros");
        let exponent: i64 = exponent.parse().map_err(|_| too_large())?;
        let left = usize::try_from(exponent.unsigned_abs()).ok().and_then(|size| zeros.checked_sub(size));
        *zeros = left.ok_or_else(too_large)?;
        let shift = exponent - fraction.len() as i64;
        let power = IBig::from(10).pow(shift.unsigned_abs() as usize);
        Ok(if shift >= 0 { Self { p: p * power, q: IBig::ONE } } else { Self { p, q: power } })
    }
}

/// A whole number without a sign.
fn digits(text: &str) -> Option<IBig> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| IBig::from_str_radix(text, 10).ok()).flatten()
}

impl PartialEq for Rational {
    fn eq(&self, other: &Self) -> bool {
        &self.p * &other.q == &other.p * &self.q
    }
}

impl Weight for Rational {
    fn from_f64(x: f64) -> Self {
        let (p, e) = Big::from_f64(x).parts();
        let power = IBig::ONE << e.unsigned_abs() as usize;
        if e >= 0 { Self { p: p * power, q: IBig::ONE } } else { Self { p, q: power } }
    }

    fn is_zero(&self) -> bool {
        self.p.is_zero()
    }

    fn interval(&self, bits: usize) -> Interval {
        Interval::quotient(&self.p, &self.q, bits)
    }

    fn minus(&self, other: &Self, bits: usize) -> Interval {
        Interval::quotient(&(&self.p * &other.q - &other.p * &self.q), &(&self.q * &other.q), bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_text() {
        let is = |text: &str, p: i32, q: i32| {
            let wanted = Rational { p: p.into(), q: q.into() };
            assert_eq!(Rational::parse(text, &mut 10), Ok(wanted), "{text}");
        };
        is("0", 0, 1);
        is("-1.25e3", -1250, 1);
        is("1/3", 1, 3);
        is("-6/4", -3, 2);
        is("+.5", 1, 2);
        is("2.", 2, 1);
        is("1E-2", 1, 100);
        let bad =
            ["", "-", ".", "1/0", "1e", "e5", "1.5/2", "0x10", "1_000", "nan", "inf", "1.-5", "--1", "1/-", "1/2/3"];
        for text in bad.into_iter().chain(["1e11", "1e-11", "1e999999999", "1e99999999999999999999", "\u{661}"]) {
            assert!(Rational::parse(text, &mut 10).is_err(), "{text}");
        }
    }

    #[test]
    fn enclosures() {
        for x in [0.0, 1.5, -0.1, 1e300, f64::from_bits(3)] {
            assert_eq!(Rational::from_f64(x).interval(64), Interval::from_f64(x));
        }
        let third = Rational::parse("-1/3", &mut 0).unwrap();
        let enclosure = third.interval(64);
        assert!(enclosure.lo < enclosure.hi && enclosure.hi.top() < 0);
        let three = third.times(&Interval::from_f64(-9.0), 64);
        assert!(three.lo <= Big::new(3, 0) && three.hi >= Big::new(3, 0));
        assert_eq!(third.minus(&Rational::parse("-2/6", &mut 0).unwrap(), 64), Interval::from_f64(0.0));
        let long = Rational::parse(&format!("{}1", "9".repeat(100)), &mut 0).unwrap().interval(64);
        assert!(long.lo < long.hi);
    }
}
