//! Balls contain the exact value, and shrink as the precision grows.

use dashu_base::BitTest;
use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use monolayer::arithmetic::{Ball, Interval, Magnitude, Number};
use proptest::prelude::*;

/// Another implementation of `exp`, `ln` and `sqrt`.
type Peer = FBig<HalfEven>;

fn rational(x: f64) -> RBig {
    RBig::try_from(x).expect("finite")
}

fn power_of_two(exponent: i64) -> RBig {
    let power = UBig::ONE << exponent.unsigned_abs() as usize;
    if exponent >= 0 { RBig::from(power) } else { RBig::from_parts(IBig::ONE, power) }
}

fn midpoint(x: &Ball) -> RBig {
    let (mantissa, exponent) = x.midpoint_parts();
    RBig::from(mantissa.clone()) * power_of_two(exponent)
}

fn magnitude(x: Magnitude) -> RBig {
    let (fraction, exponent) = x.parts();
    rational(fraction) * power_of_two(exponent)
}

/// Checks that `exact`, known up to `error`, is in the ball and in the interval around it.
fn check_contains(x: &Ball, exact: &RBig, error: &RBig) -> Result<(), TestCaseError> {
    if x.is_bounded() {
        let distance = midpoint(x) - exact;
        let distance = if distance < RBig::ZERO { -distance } else { distance };
        prop_assert!(distance <= magnitude(x.radius()) + error, "{x:?} does not contain {exact}");
    }
    let interval = x.to_interval();
    prop_assert!(interval.lo().is_infinite() || rational(interval.lo()) <= exact + error);
    prop_assert!(interval.hi().is_infinite() || rational(interval.hi()) >= exact - error);
    Ok(())
}

/// A number of `bits` bits as a peer.
fn peer(x: &RBig, bits: usize) -> Peer {
    let (numerator, denominator) = x.clone().into_parts();
    let with = |n: Peer| n.with_precision(bits).value();
    with(Peer::from(numerator)) / with(Peer::from(denominator))
}

/// The value of a peer, and a bound of its rounding errors.
fn value(x: &Peer) -> (RBig, RBig) {
    let (mantissa, exponent) = x.repr().clone().into_parts();
    let top = exponent as i64 + mantissa.bit_len() as i64;
    (RBig::from(mantissa) * power_of_two(exponent as i64), power_of_two(top - x.precision() as i64 + 8))
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        -100.0..100.0,
        (-20_i32..20).prop_map(f64::from),
        (-1.0..1.0, -120_i32..120).prop_map(|(x, e): (f64, i32)| x * 2_f64.powi(e)),
        Just(1.0),
    ]
}

fn precision() -> impl Strategy<Value = usize> {
    prop_oneof![Just(64_usize), 64_usize..400, Just(2000)]
}

/// A rational number, and a ball around it whose radius is a rounding error or more.
fn enclosed() -> impl Strategy<Value = (RBig, Ball)> {
    (number(), 1_i32..1000, precision(), prop_oneof![Just(None), (-200_i64..8).prop_map(Some)], -1.0..1.0).prop_map(
        |(x, divisor, precision, widening, position)| {
            let mut exact = rational(x) / rational(f64::from(divisor));
            let mut ball = Ball::new(x, precision) / Ball::from_f64(f64::from(divisor));
            if let Some(exponent) = widening {
                ball = ball.widened(Magnitude::power_of_two(exponent));
                exact += rational(position) * power_of_two(exponent);
            }
            (exact, ball)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn arithmetic_contains_the_exact_value((x, a) in enclosed(), (y, b) in enclosed()) {
        check_contains(&a, &x, &RBig::ZERO)?;
        check_contains(&(&a + &b), &(&x + &y), &RBig::ZERO)?;
        check_contains(&(&a - &b), &(&x - &y), &RBig::ZERO)?;
        check_contains(&(&a * &b), &(&x * &y), &RBig::ZERO)?;
        if y != RBig::ZERO {
            check_contains(&(&a / &b), &(&x / &y), &RBig::ZERO)?;
        }
        check_contains(&a.max(&b), if x > y { &x } else { &y }, &RBig::ZERO)?;
        check_contains(&Number::abs(&a), &if x < RBig::ZERO { -&x } else { x.clone() }, &RBig::ZERO)?;
        check_contains(&-a.clone(), &-&x, &RBig::ZERO)?;
        check_contains(&a.clone().with_precision(64), &x, &RBig::ZERO)?;
        prop_assert!(!a.certainly_less(&b) || x < y);
        prop_assert!(!b.certainly_less(&a) || y < x);
        let (lower, upper) = a.absolute_bounds();
        let size = if x < RBig::ZERO { -&x } else { x.clone() };
        prop_assert!(magnitude(lower) <= size && size <= magnitude(upper));
    }

    #[test]
    fn short_numbers_are_exact(x in number(), y in number(), p in precision()) {
        let (a, b) = (Ball::new(x, p), Ball::new(y, p));
        prop_assert!((&a * &b).radius().is_zero() || p < 106);
        prop_assert_eq!(midpoint(&a), rational(x));
        prop_assert!(a.radius().is_zero() && a.midpoint().radius().is_zero());
        prop_assert_eq!(a.to_interval(), Interval::point(x));
        if x > 0.0 {
            let square = Ball::new(x, 128) * Ball::new(x, 128);
            prop_assert!(square.sqrt().radius().is_zero());
        }
    }

    #[test]
    fn order_is_decided_where_it_can_be(x in number(), y in number(), p in precision()) {
        prop_assert_eq!(Ball::new(x, p).certainly_less(&Ball::new(y, p)), x < y);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn functions_contain_the_exact_value((x, a) in enclosed()) {
        prop_assume!(a.to_interval().magnitude() < 1e9);
        let bits = a.precision() + 300;
        let (exact, error) = value(&peer(&x, bits + 40).exp().with_precision(bits).value());
        check_contains(&a.exp(), &exact, &error)?;
        if x > RBig::ZERO {
            let (exact, error) = value(&peer(&x, bits).sqrt());
            check_contains(&a.sqrt(), &exact, &error)?;
            if bits < 500 {
                let (exact, error) = value(&peer(&x, bits).ln());
                check_contains(&a.ln(), &exact, &error)?;
            }
        }
    }

    #[test]
    fn functions_are_as_precise_as_asked(x in 1e-3..1e6, p in precision()) {
        let a = Ball::new(x, p);
        let relative = |y: Ball| (y.radius() / y.absolute_bounds().0).log2().hi();
        prop_assert!(relative(a.exp()) < 3.0 - p as f64);
        prop_assert!(relative((-a.clone()).exp()) < 3.0 - p as f64);
        prop_assert!(a.sqrt().radius().is_zero() || relative(a.sqrt()) < 3.0 - p as f64);
        // Close to 1 the logarithm is small, and what it loses is relative to 1.
        prop_assert!(a.ln().radius().log2().hi() < 8.0 - p as f64);
    }

    #[test]
    fn balls_agree_with_intervals(x in -700.0..700.0) {
        let (ball, interval) = (Ball::new(x, 64).exp().to_interval(), Interval::point(x).exp());
        prop_assert!(ball.lo() <= interval.hi() && interval.lo() <= ball.hi());
    }

    #[test]
    fn exponentials_of_opposite_numbers_are_inverse(x in -1e15..1e15, p in precision()) {
        let a = Ball::new(x, p);
        let one = a.exp() * (-a).exp();
        check_contains(&one, &RBig::ONE, &RBig::ZERO)?;
        prop_assert!(one.radius() < Magnitude::power_of_two(5 - p as i64));
    }
}

#[test]
fn huge_scores_have_exponentials() {
    let tiny = Ball::new(-1e6, 100).exp();
    assert!(tiny.is_certainly_positive());
    assert!(tiny.log2_abs().contains(-1_442_695.040_888_963_5));
    let zero = Ball::new(-1e300, 100).exp();
    assert!(zero.is_bounded() && zero.to_interval().magnitude() == 5e-324);
    assert!(!Ball::new(1e300, 100).exp().is_bounded());
}

#[test]
fn undefined_results_are_the_whole_line() {
    let (zero, one) = (Ball::zero(), Ball::one());
    let around_zero = one.clone().widened(Magnitude::power_of_two(1));
    assert!(!(one.clone() / &zero).is_bounded());
    assert!(!(one.clone() / &around_zero).is_bounded());
    assert!(!around_zero.ln().is_bounded());
    assert!(!around_zero.sqrt().is_bounded());
    assert!(!Ball::from_f64(f64::NAN).is_bounded());
    let whole = Ball::whole(64);
    for result in [whole.exp(), whole.ln(), whole.sqrt(), Number::abs(&whole), whole.max(&one), one.max(&whole)] {
        assert!(!result.is_bounded());
    }
    for result in [&whole + &one, &whole - &whole, &whole * &one, &whole / &one, &one / &whole] {
        assert!(!result.is_bounded() && result.to_interval() == Interval::WHOLE);
    }
    assert!(!(Ball::whole(64) * zero).is_certainly_positive());
    assert!(!Ball::whole(64).certainly_less(&one) && !one.certainly_less(&Ball::whole(64)));
}

#[test]
fn precision_is_the_larger_of_the_two() {
    let third = Ball::new(1.0, 5000) / Ball::from_f64(3.0);
    assert_eq!(third.precision(), 5000);
    assert!(third.radius() < Magnitude::power_of_two(-4990));
}
