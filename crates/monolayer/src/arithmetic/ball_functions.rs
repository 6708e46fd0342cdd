//! Exponential and logarithm of balls, in fixed point: an integer `a` at `w` bits stands for `a / 2^w`.
//!
//! One unit is `2^-w`. Every shift and division rounds down, losing less than one unit; the comments add these losses up.

use std::sync::Mutex;

use dashu_base::{BitTest, DivRemEuclid, Signed};
use dashu_int::{IBig, UBig};

use super::magnitude::Magnitude;
use super::{Ball, Number};

/// Beyond `2^60` an exponential is the whole line, or nearly zero.
const LARGEST_TOP: i64 = 60;

/// The exponential: that of the midpoint, widened by `e^m (e^r - 1)`.
pub(super) fn exp(x: &Ball) -> Ball {
    let result = if x.mantissa.is_zero() {
        Ball::new(1.0, x.precision)
    } else if x.top() <= LARGEST_TOP {
        exp_of_midpoint(x)
    } else if x.mantissa.is_negative() {
        // e^-2^60 < 2^-2^60.
        Ball::new(0.0, x.precision).widened(Magnitude::power_of_two(-(1 << LARGEST_TOP)))
    } else {
        Ball::whole(x.precision)
    };
    let spread = result.absolute_bounds().1 * x.radius.exp_minus_one();
    result.widened(spread)
}

/// The exponential of the midpoint by MPFR, which rounds correctly; `None` where it would leave MPFR's exponents.
#[cfg(feature = "rug")]
fn exp_by_mpfr(x: &Ball) -> Option<Ball> {
    use rug::integer::Order;
    let exponent = i32::try_from(x.exponent).ok().filter(|_| x.top() < 28)?;
    let number = |mantissa: &IBig| {
        let digits = dashu_base::UnsignedAbs::unsigned_abs(mantissa.clone()).to_le_bytes();
        let size = rug::Integer::from_digits(&digits, Order::Lsf);
        if mantissa.is_negative() { -size } else { size }
    };
    let precision = u32::try_from(x.precision + 8).ok()?;
    let exact = u32::try_from(x.mantissa.bit_len().max(8)).ok()?;
    let midpoint = rug::Float::with_val(exact, number(&x.mantissa)) << exponent;
    let (mantissa, exponent) = rug::Float::with_val(precision, midpoint.exp_ref()).to_integer_exp()?;
    let mantissa = IBig::from(UBig::from_le_bytes(&mantissa.to_digits::<u8>(Order::Lsf)));
    // Off by at most a unit of the last of `precision` bits.
    let top = mantissa.bit_len() as i64 + i64::from(exponent);
    Some(Ball::rounded(mantissa, exponent.into(), Magnitude::power_of_two(top - i64::from(precision)), x.precision))
}

/// The exponential of the midpoint: with `m = k ln 2 + r` and `0 <= r < ln 2`, it is `2^k (e^(r / 2^h))^(2^h)`.
fn exp_of_midpoint(x: &Ball) -> Ball {
    #[cfg(feature = "rug")]
    if let Some(result) = exp_by_mpfr(x) {
        return result;
    }
    // Squarings against terms of the series: the cube root balances them.
    let halvings = 4 + (1.5 * (x.precision as f64).cbrt()) as usize;
    let bits = x.precision + halvings + 26;

    // k ln 2 loses at most 2 |k| units of the finer grid and m one, together less than one unit; the shift one more.
    let magnitude = x.top().max(0) as usize;
    let fine = bits + magnitude + 3;
    let (k, remainder) = shifted(&x.mantissa, x.exponent + fine as i64).div_rem_euclid(IBig::from(ln2(fine)));
    let r = remainder >> (magnitude + 3 + halvings);

    let (mut power, terms) = exp_series(&r, bits);
    for _ in 0..halvings {
        power = power.sqr() >> bits;
    }
    // The argument is off by 2 units, which moves the series by at most 4, and the series itself is off by 64 for
    // each term. Each squaring doubles the relative error and adds a unit; 2^(h + 1) in all, second order included.
    let error = Magnitude::new(64.0 * (terms + 2) as f64, halvings as i64 + 1 - bits as i64 + 1);
    let k = i64::try_from(k).expect("the argument is below 2^60");
    Ball::rounded(power.into(), k - bits as i64, error * Magnitude::power_of_two(k), x.precision)
}

/// The sum of `t^j / j!` for `0 <= t < 1/2`, and the number of its terms; off by less than 64 units for each term.
///
/// With `c` columns, column `j` sums `t^(c i) / (c i + j)!` over `i` with divisions by small integers only; a
/// multiplication by `t^c` leads to the next row and Horner's rule joins the columns: `2 sqrt(terms)` products in all.
fn exp_series(t: &UBig, bits: usize) -> (UBig, usize) {
    let terms = bits / (bits + 1 - t.bit_len()).max(4);
    // A power of two, so that t^c takes few squarings.
    let doublings = (terms as f64).sqrt().log2().round() as usize;
    let columns = 1 << doublings;
    let step = (0..doublings).fold(t.clone(), |power, _| power.sqr() >> bits);
    let mut sums = vec![UBig::ZERO; columns];
    // Each term is off by less than 8 units: a division halves the error of the last one and adds 1, a product halves
    // it and adds 1 and the 2 units of t^c.
    let mut term = UBig::ONE << bits;
    let mut count = 0;
    while !term.is_zero() {
        sums[count % columns] += &term;
        count += 1;
        term /= count;
        if count % columns == 0 {
            term = (term * &step) >> bits;
        }
    }
    // What follows the last term is below 8 + 4 + 2 + ... units.
    let sum = sums.into_iter().rev().reduce(|sum, column| ((sum * t) >> bits) + column);
    (sum.expect("at least one column"), count)
}

/// The logarithm, doubling the precision: with `y` close to `ln x` and `t = x e^-y - 1`, `ln x = y + ln(1 + t)` and
/// `|ln(1 + t) - t| <= t^2` for `|t| <= 1/2`.
pub(super) fn ln(x: &Ball) -> Ball {
    let (smallest, _) = x.absolute_bounds();
    if !x.mantissa.is_positive() || smallest.is_zero() {
        return Ball::whole(x.precision);
    }
    // |ln x - ln m| <= r / (m - r).
    ln_of_midpoint(&x.midpoint(), x.precision).widened(x.radius / smallest)
}

/// The logarithm of a positive midpoint, at `precision` bits.
fn ln_of_midpoint(x: &Ball, precision: usize) -> Ball {
    if precision <= 40 {
        // A first guess; its error is of no importance, since nothing is concluded from it.
        return Ball::new(x.log2_abs().center() * std::f64::consts::LN_2, precision);
    }
    let guard = 16;
    let y = ln_of_midpoint(x, precision / 2 + guard).midpoint().with_precision(precision + guard);
    let t = x.clone().with_precision(precision + guard) * (-y.clone()).exp() - Ball::new(1.0, precision);
    let size = t.absolute_bounds().1;
    if size > Magnitude::power_of_two(-1) {
        return Ball::whole(precision);
    }
    (y + t).widened(size * size).with_precision(precision)
}

/// `mantissa * 2^shift`, rounded down.
fn shifted(mantissa: &IBig, shift: i64) -> IBig {
    if shift >= 0 { mantissa << shift as usize } else { mantissa >> shift.unsigned_abs() as usize }
}

/// The logarithm of 2 at `bits` bits, off by at most 2 units.
fn ln2(bits: usize) -> UBig {
    static LONGEST: Mutex<(usize, UBig)> = Mutex::new((0, UBig::ZERO));
    let mut longest = LONGEST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if longest.0 < bits {
        // Each inverse hyperbolic tangent is off by 2 units of 2^-8, 56 of them in all.
        let fine = bits + 8;
        let sum = atanh_inverse(26, fine) * 18_u8 - atanh_inverse(4801, fine) * 2_u8 + atanh_inverse(8749, fine) * 8_u8;
        *longest = (bits, sum >> 8);
    }
    &longest.1 >> (longest.0 - bits)
}

/// `atanh(1 / n)` at `bits` bits, off by at most 2 units: one by rounding, one by what is left out of the series.
fn atanh_inverse(n: u32, bits: usize) -> UBig {
    let terms = (bits as f64 / (2.0 * f64::from(n).log2())) as usize + 2;
    let (b, q, t) = atanh_sum(&UBig::from(n).sqr(), 0, terms);
    ((t * n) << bits) / (b * q)
}

/// `t / (b q)`, the sum over `first <= k < last` of `1 / ((2 k + 1) n^(2 (k - first + 1)))`, by binary splitting.
fn atanh_sum(n_squared: &UBig, first: usize, last: usize) -> (UBig, UBig, UBig) {
    if last - first == 1 {
        return (UBig::from(2 * first + 1), n_squared.clone(), UBig::ONE);
    }
    let middle = usize::midpoint(first, last);
    let (b, q, t) = atanh_sum(n_squared, first, middle);
    let (b2, q2, t2) = atanh_sum(n_squared, middle, last);
    let sum = t * &b2 * &q2 + &b * t2;
    (b * b2, q * q2, sum)
}
