//! `+ - * / sqrt` of two floats rounded toward minus or plus infinity, without touching the processor's mode.
//!
//! The nearest float is computed first; the sign of its exact error, from an error-free transformation, says whether
//! the directed result is that float or its neighbor. One rounding, from exact operands: nothing tighter is a float.
//!
//! Operands are finite or infinite, never NaN. Infinities are bounds at infinity: `0 * inf = 0`, and a finite number
//! over an infinite one is 0.

/// Below this, products of 53-bit numbers may have bits under the smallest float: 2^-960.
const SMALL: f64 = f64::from_bits((1023 - 960) << 52);

/// 2^120, and 2^60: lift small numbers, exactly, to where no bit of a product is lost.
const LIFT: f64 = (1_u128 << 120) as f64;
const HALF_LIFT: f64 = (1_u64 << 60) as f64;

/// 2^600, for products.
const PRODUCT_LIFT: f64 = f64::from_bits((1023 + 600) << 52);

/// `nearest`, moved down if the exact value lies below it; `error` has the sign of the exact value minus `nearest`.
fn down(nearest: f64, error: f64) -> f64 {
    if error < 0.0 { nearest.next_down() } else { nearest }
}

/// `nearest`, moved up if the exact value lies above it.
fn up(nearest: f64, error: f64) -> f64 {
    if error > 0.0 { nearest.next_up() } else { nearest }
}

/// An overflowed result rounded down: finite operands make a finite sum or product.
fn overflow_down(nearest: f64) -> f64 {
    if nearest > 0.0 { f64::MAX } else { nearest }
}

/// The sum rounded to nearest and its error, whose sign is exact (`Fast2Sum`); no error is known for infinite sums.
fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let (large, small) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
    (s, small - (s - large))
}

/// `a + b` rounded down.
pub fn add_down(a: f64, b: f64) -> f64 {
    let (s, error) = sum(a, b);
    if s.is_finite() {
        down(s, error)
    } else if a.is_finite() && b.is_finite() {
        overflow_down(s)
    } else {
        s
    }
}

/// `a + b` rounded up.
pub fn add_up(a: f64, b: f64) -> f64 {
    -add_down(-a, -b)
}

/// The sign of `a b - p`, as a number, for `p` the float nearest to `a b`, both finite.
fn product_error(a: f64, b: f64, p: f64) -> f64 {
    if p.abs() >= SMALL {
        a.mul_add(b, -p)
    } else if p == 0.0 {
        if a == 0.0 || b == 0.0 { 0.0 } else { a.signum() * b.signum() }
    } else {
        // |a b| < 2^-960, so the smaller factor is below 2^-480 and can be lifted; |a b| > 2^-1076.
        let (large, small) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
        (small * PRODUCT_LIFT).mul_add(large, -(p * PRODUCT_LIFT))
    }
}

/// `a b` rounded down.
pub fn mul_down(a: f64, b: f64) -> f64 {
    let p = a * b;
    if p.is_finite() {
        down(p, product_error(a, b, p))
    } else if p.is_nan() {
        0.0
    } else if a.is_finite() && b.is_finite() {
        overflow_down(p)
    } else {
        p
    }
}

/// `a b` rounded up.
pub fn mul_up(a: f64, b: f64) -> f64 {
    -mul_down(-a, b)
}

/// The sign of `a / b - q`, as a number, for `q` the float nearest to `a / b`, all finite.
fn quotient_error(a: f64, b: f64, q: f64) -> f64 {
    let remainder = if q == 0.0 {
        a
    } else if a.abs() >= SMALL {
        (-q).mul_add(b, a)
    } else if q.abs() >= b.abs() {
        (-q).mul_add(b * LIFT, a * LIFT)
    } else {
        (-q * LIFT).mul_add(b, a * LIFT)
    };
    if b > 0.0 { remainder } else { -remainder }
}

/// `a / b` rounded down; `b` is not 0, and not both are infinite.
pub fn div_down(a: f64, b: f64) -> f64 {
    let q = a / b;
    if b.is_infinite() || a.is_infinite() {
        q
    } else if q.is_finite() {
        down(q, quotient_error(a, b, q))
    } else {
        overflow_down(q)
    }
}

/// `a / b` rounded up; `b` is not 0, and not both are infinite.
pub fn div_up(a: f64, b: f64) -> f64 {
    -div_down(-a, b)
}

/// The nearest float to the square root of `a >= 0`, and the sign of its error.
fn root(a: f64) -> (f64, f64) {
    let s = a.sqrt();
    let error = if s.is_infinite() {
        0.0
    } else if a >= SMALL {
        (-s).mul_add(s, a)
    } else {
        let lifted = s * HALF_LIFT;
        (-lifted).mul_add(lifted, a * LIFT)
    };
    (s, error)
}

/// The square root of `a >= 0` rounded down.
pub fn sqrt_down(a: f64) -> f64 {
    let (s, error) = root(a);
    down(s, error)
}

/// The square root of `a >= 0` rounded up.
pub fn sqrt_up(a: f64) -> f64 {
    let (s, error) = root(a);
    up(s, error)
}
