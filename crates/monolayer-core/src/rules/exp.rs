//! The exponential function on integers.

use super::ball::Ball;

/// Fractional bits of an exponent.
pub(crate) const FRACTION: i32 = 96;
/// Exponents are below this power of two in size.
const LARGEST: i32 = 26;
/// floor(2^96 ln 2).
const LN_2: i128 = 54_916_777_467_707_473_351_141_471_128;
/// Fractional bits of the Taylor polynomial.
const POINT: u32 = 62;
/// Balls that are less than 2 to minus this wide are narrow.
const NARROW: i32 = 16;

/// Bounds of exp(x 2^-96), as (low, high, e): low 2^e <= exp <= high 2^e; nothing for |x 2^-96| >= 2^26.
///
/// **Rule 2.** Write x = k ln 2 + f with |f| <= 0.36. With f known to 2^-62 and every product of the Taylor polynomial of
/// degree 20 rounded down, the result is off by less than 64 units of 2^-62.
///
/// *Proof.* k comes from the leading bits of x and ln 2, so that it is within 1/2 + 2^-6 of x / ln 2. The constant is off by less than
/// 2^-96, k by less than 2^27, so f by less than 2^-69, and by another 2^-62 when it is rounded to 62 bits: 1.1 units. The error
/// of term i is below (0.36 times that of term i - 1 + 1.1 |t(i-1)| + 1) / i + 1:
/// 1.1 units for i = 1, 1.9 for i = 2, and less than 1.7 each from there on, so less than 34 in all. The remainder of degree 21 is
/// below 2^-85. (docs/checker.md has it in more words.)
pub(crate) fn exp(x: i128) -> Option<(i64, i64, i32)> {
    if x.unsigned_abs() >= 1 << (FRACTION + LARGEST) {
        return None;
    }
    let k = (((2 * x + LN_2) >> 62) as i64).div_euclid(((2 * LN_2) >> 62) as i64);
    let f = ((x - i128::from(k) * LN_2) >> (FRACTION as u32 - POINT)) as i64;
    let (mut term, mut sum) = (1_i64 << POINT, 1_i64 << POINT);
    for i in 1..=20 {
        term = (((i128::from(term) * i128::from(f)) >> POINT) as i64).div_euclid(i);
        sum += term;
    }
    Some((sum - 64, sum + 64, k as i32 - POINT as i32))
}

/// A ball around exp of everything in a ball. Below -2^26 it is between 0 and 2^-2^26; above 2^26 there is none.
///
/// The upper end of a narrow ball follows from the lower one: exp(x + d) <= exp(x) (1 + d + d^2) for 0 <= d <= 1.
pub fn exp_ball(x: Ball) -> Option<Ball> {
    let (low, high, e) = x.ends();
    let high = fixed(high, e, true)?;
    let low = fixed(low, e, false);
    if let Some(width) = low.map(|low| high - low).filter(|width| *width < 1 << (FRACTION - NARROW))
        && let Some((bottom, top, e)) = low.and_then(exp)
    {
        let d = (width >> (FRACTION as u32 - POINT)) + 1;
        let top = i128::from(top) + ((i128::from(top) * (d + (d >> NARROW) + 1)) >> POINT) + 1;
        let middle = (i128::from(bottom) + top) >> 1;
        return Some(Ball::pack(middle, (top - middle).unsigned_abs(), e));
    }
    let upper = exp(high);
    let Some((_, top, top_e)) = upper else {
        // So far below zero that the bound of the least exponent will do.
        return if high < 0 { Some(Ball { m: 0, r: 1, e: -(1 << LARGEST) }) } else { None };
    };
    let bottom = low.and_then(exp).map_or(Ball::ZERO, |(bottom, _, e)| Ball::pack(bottom.into(), 0, e).middle());
    Some(bottom.hull(Ball::pack(top.into(), 0, top_e)))
}

/// m 2^e with 96 fractional bits, rounded up or down; nothing where it is too large.
fn fixed(m: i128, e: i32, up: bool) -> Option<i128> {
    let by = e + FRACTION;
    let size = 128 - m.unsigned_abs().leading_zeros() as i32;
    if m == 0 {
        return Some(0);
    }
    if size + by > 125 {
        // Far below zero the least number stands for all; an upper bound is wanted.
        return if m < 0 && up { Some(-(1 << 125)) } else { None };
    }
    if by >= 0 {
        return Some(m << by);
    }
    let by = by.unsigned_abs().min(127);
    Some(if up { -((-m) >> by) } else { m >> by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encloses_the_exponential() {
        let mut x = -60.0_f64;
        while x < 60.0 {
            let fixed = (x * 2_f64.powi(48)) as i128;
            let (low, high, e) = exp(fixed << 48).unwrap();
            let value = (fixed as f64 * 2_f64.powi(-48)).exp();
            let scale = 2_f64.powi(e);
            assert!(low as f64 * scale <= value * (1.0 + 1e-15), "{x}");
            assert!(high as f64 * scale >= value * (1.0 - 1e-15), "{x}");
            assert!((high - low) < 200 && low > 1 << 60, "{x}");
            x += 0.137_77;
        }
        assert_eq!(exp(0).map(|(l, h, _)| l < 1 << 62 && h > 1 << 62), Some(true));
        assert_eq!(exp(1 << 122), None);
    }

    /// Narrow balls, on both sides of the width from which on both ends are evaluated.
    #[test]
    fn narrow_balls_hold_both_ends() {
        for m in [-(30_i64 << 48), -(1 << 47), -12_345, 0, 1, 987_654_321, 20 << 48] {
            for r in (0..40).map(|i| (1_u64 << i) - 1) {
                let ball = exp_ball(Ball { m, r, e: -48 }).unwrap();
                let end = |x: i64| {
                    exp(i128::from(x) << 48).map(|(low, high, e)| {
                        (Ball { m: low >> 1, r: 0, e: e + 1 }, Ball { m: (high >> 1) + 1, r: 0, e: e + 1 })
                    })
                };
                let (first, last) = (end(m - r as i64).unwrap(), end(m + r as i64).unwrap());
                let (low, high, e) = ball.ends();
                let (low, high) = (Ball::pack(low, 0, e), Ball::pack(high, 0, e));
                assert!(!first.1.is_below(low) && !high.is_below(last.0), "{m} {r}");
                // No wider than the ends ask for, but for a few units and the square of the width.
                let wide = last.1.plus(first.0.minus()).size().times(Ball { m: 65, r: 0, e: -6 });
                assert!(!wide.plus(last.1.scaled(-50)).is_below(high.plus(low.minus())), "{m} {r}");
            }
        }
    }

    #[test]
    fn balls() {
        let far = exp_ball(Ball { m: -1, r: 0, e: 200 }).unwrap();
        assert_eq!((far.m, far.r), (0, 1));
        assert_eq!(exp_ball(Ball { m: 1, r: 0, e: 200 }), None);
        assert_eq!(exp_ball(Ball { m: 0, r: 1, e: 200 }), None);
        let wide = exp_ball(Ball { m: -10, r: 10, e: 0 }).unwrap();
        let (low, high, e) = wide.ends();
        assert!(low as f64 * 2_f64.powi(e) <= (-20_f64).exp() && high as f64 * 2_f64.powi(e) >= 1.0);
        let half = exp_ball(Ball { m: -(1 << 40), r: 1 << 45, e: 0 });
        assert_eq!(half, None);
    }
}
