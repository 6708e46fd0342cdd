//! Small facts about numbers, without rounding: a float as a fraction, IEEE binary16, divisors, primes, the first largest.

use dashu_ratio::RBig;

/// The finite number `x`, exactly.
pub fn rational(x: f64) -> RBig {
    RBig::try_from(x).expect("a finite number")
}

/// The number with these bits in IEEE binary16: 1 bit of sign, 5 of exponent, 10 of mantissa.
pub(crate) fn binary16(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => mantissa * (-24_f64).exp2(),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * f64::from(exponent - 25).exp2(),
    }
}

/// The greatest common divisor; that of 0 and b is b.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if a == 0 { b } else { gcd(b % a, a) }
}

/// Whether q is a prime, by trial division.
pub(crate) fn is_prime(q: u64) -> bool {
    q >= 2 && (2..q).take_while(|k| k * k <= q).all(|k| !q.is_multiple_of(k))
}

/// The index of the largest entry, the first of equal ones: how a model chooses a label. 0 where there are none.
pub fn arg_max<T: PartialOrd>(scores: &[T]) -> usize {
    (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_and_primes() {
        assert_eq!([gcd(0, 7), gcd(12, 18), gcd(18, 12), gcd(5, 0)], [7, 6, 6, 5]);
        let primes: Vec<u64> = (0..30).filter(|&q| is_prime(q)).collect();
        assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
    }

    #[test]
    fn the_first_of_equal_entries() {
        assert_eq!([arg_max(&[1.0, 3.0, 3.0]), arg_max(&[f64::NAN, 1.0]), arg_max::<f32>(&[])], [1, 0, 0]);
    }
}
