//! Intervals contain the exact value, and are as tight as floats allow.

use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;
use dashu_ratio::RBig;
use monolayer::arithmetic::rounding::{add_down, add_up, div_down, div_up, mul_down, mul_up, sqrt_down, sqrt_up};
use monolayer::arithmetic::{Interval, Number};
use proptest::prelude::*;

type Big = FBig<HalfEven>;

fn rational(x: f64) -> RBig {
    RBig::try_from(x).expect("finite")
}

/// Floats of every exponent, with short and long significands, zeros, subnormal and largest numbers.
fn float() -> impl Strategy<Value = f64> {
    let built = (any::<bool>(), 1_u64..1 << 53, 0_u32..53, -1130_i32..=971).prop_map(|(negative, m, drop, e)| {
        let x = (m >> drop << drop) as f64 * 2_f64.powi(e.max(-1000)) * 2_f64.powi((e + 1000).min(0));
        if negative { -x } else { x }
    });
    prop_oneof![
        6 => built.prop_filter("finite", |x| x.is_finite()),
        2 => any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()),
        2 => (-20_i32..20).prop_map(f64::from),
        1 => prop::sample::select(vec![0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324, 1.0])
    ]
}

/// Floats whose results stay in the middle of the range.
fn moderate() -> impl Strategy<Value = f64> {
    prop_oneof![-50.0..50.0, -1e-9..1e-9, (-30_i32..30).prop_map(f64::from)]
}

fn interval(member: impl Strategy<Value = f64> + 'static) -> impl Strategy<Value = Interval> {
    let member = member.boxed();
    prop_oneof![
        (member.clone(), member.clone()).prop_map(|(a, b)| Interval::new(a.min(b), a.max(b))),
        member.prop_map(Interval::point)
    ]
}

/// Checks that `lo` is the largest float <= `exact` and `hi` the smallest float >= `exact`.
fn check_tight(lo: f64, hi: f64, exact: &RBig) -> Result<(), TestCaseError> {
    if lo.is_finite() {
        prop_assert!(rational(lo) <= *exact, "{lo:e} > {exact}");
    } else {
        prop_assert!(lo < 0.0 && *exact < rational(f64::MIN));
    }
    if hi.is_finite() {
        prop_assert!(rational(hi) >= *exact, "{hi:e} < {exact}");
    } else {
        prop_assert!(hi > 0.0 && *exact > rational(f64::MAX));
    }
    prop_assert!(if lo == hi { rational(lo) == *exact } else { lo.next_up() == hi }, "{lo:e} {hi:e} {exact}");
    Ok(())
}

/// Members of `x`: its bounds, and a point between.
fn members(x: Interval) -> [f64; 3] {
    [x.lo(), x.center(), x.hi()]
}

fn check_contains(x: Interval, exact: &RBig) -> Result<(), TestCaseError> {
    prop_assert!(x.lo() == f64::NEG_INFINITY || rational(x.lo()) <= *exact, "{x:?} {exact}");
    prop_assert!(x.hi() == f64::INFINITY || rational(x.hi()) >= *exact, "{x:?} {exact}");
    Ok(())
}

/// Checks an enclosure of a value known to 300 bits.
fn check_contains_big(x: Interval, value: &Big) -> Result<(), TestCaseError> {
    let big = |x: f64| Big::try_from(x).expect("finite");
    prop_assert!(x.lo() == f64::NEG_INFINITY || big(x.lo()) <= *value, "{x:?} {value}");
    prop_assert!(x.hi() == f64::INFINITY || big(x.hi()) >= *value, "{x:?} {value}");
    Ok(())
}

fn precise(x: f64) -> Big {
    Big::try_from(x).expect("finite").with_precision(300).value()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn sums_are_tight(a in float(), b in float()) {
        check_tight(add_down(a, b), add_up(a, b), &(rational(a) + rational(b)))?;
    }

    #[test]
    fn products_are_tight(a in float(), b in float()) {
        check_tight(mul_down(a, b), mul_up(a, b), &(rational(a) * rational(b)))?;
    }

    #[test]
    fn quotients_are_tight(a in float(), b in float()) {
        prop_assume!(b != 0.0);
        check_tight(div_down(a, b), div_up(a, b), &(rational(a) / rational(b)))?;
    }

    #[test]
    fn roots_are_tight(a in float()) {
        let a = a.abs();
        let (lo, hi) = (sqrt_down(a), sqrt_up(a));
        prop_assert!(rational(lo) * rational(lo) <= rational(a) && rational(hi) * rational(hi) >= rational(a));
        let exact = rational(lo) * rational(lo) == rational(a);
        prop_assert!(if lo == hi { exact } else { lo.next_up() == hi }, "{lo:e} {hi:e}");
    }

    #[test]
    fn interval_arithmetic_contains_all_members(a in interval(float()), b in interval(float())) {
        for x in members(a) {
            for y in members(b) {
                let (p, q) = (rational(x), rational(y));
                check_contains(a + b, &(&p + &q))?;
                check_contains(a - b, &(&p - &q))?;
                check_contains(a * b, &(&p * &q))?;
                if b.contains(0.0) {
                    prop_assert_eq!(a / b, Interval::WHOLE);
                } else {
                    check_contains(a / b, &(&p / &q))?;
                }
                check_contains(a.max(&b), &rational(x.max(y)))?;
                check_contains(a.min(b), &rational(x.min(y)))?;
            }
            check_contains(-a, &-rational(x))?;
            check_contains(a.square(), &(rational(x) * rational(x)))?;
            check_contains(Number::abs(&a), &rational(x.abs()))?;
            check_contains(a.sign(), &rational(if x == 0.0 { 0.0 } else { x.signum() }))?;
            check_contains(a.step(), &rational(if x >= 0.0 { 1.0 } else { 0.0 }))?;
            prop_assert!(a.contains(a.midpoint().lo()));
        }
    }

    #[test]
    fn products_are_the_hull_of_the_corners(a in interval(moderate()), b in interval(moderate())) {
        let corners = [(a.lo(), b.lo()), (a.lo(), b.hi()), (a.hi(), b.lo()), (a.hi(), b.hi())];
        let lo = corners.map(|(x, y)| mul_down(x, y)).into_iter().fold(f64::INFINITY, f64::min);
        let hi = corners.map(|(x, y)| mul_up(x, y)).into_iter().fold(f64::NEG_INFINITY, f64::max);
        prop_assert_eq!(a * b, Interval::new(lo, hi));
        if !b.contains(0.0) {
            let lo = corners.map(|(x, y)| div_down(x, y)).into_iter().fold(f64::INFINITY, f64::min);
            let hi = corners.map(|(x, y)| div_up(x, y)).into_iter().fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(a / b, Interval::new(lo, hi));
        }
    }

    #[test]
    fn half_lines_contain_their_members(a in interval(float()), x in float()) {
        let above = Interval::new(a.lo(), f64::INFINITY);
        let below = Interval::new(f64::NEG_INFINITY, a.hi());
        let (p, q, y) = (rational(a.lo().max(x)), rational(a.hi().min(x)), rational(x));
        for (line, member) in [(above, &p), (below, &q)] {
            check_contains(line + Interval::point(x), &(member + &y))?;
            check_contains(line * Interval::point(x), &(member * &y))?;
            check_contains(line * above, &(member * &p))?;
            check_contains(line * below, &(member * &q))?;
            if x != 0.0 {
                check_contains(line / Interval::point(x), &(member / &y))?;
            }
            if !line.contains(0.0) {
                check_contains(Interval::point(x) / line, &(&y / member))?;
                check_contains(above / line, &(&p / member))?;
                check_contains(line / line, &RBig::from(1))?;
            }
            check_contains(line.powi(2), &(member * member))?;
            check_contains(line.powi(3), &(member * member * member))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn functions_contain_all_members(a in interval(moderate())) {
        for x in members(a) {
            let y = precise(x);
            check_contains_big(a.exp(), &y.exp())?;
            check_contains_big(a.tanh(), &y.tanh())?;
            check_contains_big(a.sin(), &y.sin())?;
            check_contains_big(a.cos(), &y.cos())?;
            if a.lo() >= 0.0 && x > 0.0 {
                check_contains_big(a.ln(), &y.ln())?;
                check_contains_big(a.sqrt(), &y.sqrt())?;
            }
            check_contains_big(a.tan(), &y.tan())?;
            for n in 0..6 {
                check_contains_big(a.powi(n), &y.powi(n.into()))?;
                if x != 0.0 {
                    check_contains_big(a.powi(-n), &y.powi((-n).into()))?;
                }
            }
        }
    }

    #[test]
    fn functions_of_a_point_are_three_floats_wide_at_most(x in moderate()) {
        let a = Interval::point(x);
        let narrow = |y: Interval| y.lo().next_up().next_up() >= y.hi();
        prop_assert!(narrow(a.exp()) && narrow(a.tanh()) && narrow(a.sin()) && narrow(a.cos()) && narrow(a.tan()));
        prop_assert!(x <= 0.0 || narrow(a.ln()));
    }

    #[test]
    fn real_powers_contain_all_members(a in interval(1e-3..1e3), b in interval(-20.0..20.0)) {
        for x in members(a) {
            for y in members(b) {
                check_contains_big(a.powf(b), &precise(x).powf(&precise(y)))?;
            }
        }
    }
}

#[test]
fn exact_values_are_points() {
    let point = Interval::point;
    assert_eq!(point(0.0).exp(), point(1.0));
    assert_eq!(point(1.0).ln(), point(0.0));
    assert_eq!(point(0.0).sin(), point(0.0));
    assert_eq!(point(0.0).tanh(), point(0.0));
    assert_eq!(point(9.0).sqrt(), point(3.0));
    assert_eq!(point(-3.0).powi(3), point(-27.0));
    assert_eq!(point(2.0).powi(-2), point(0.25));
    assert_eq!(point(0.0).powf(point(0.5)), point(0.0));
    assert_eq!(point(0.0).powf(point(0.0)), point(1.0));
}

#[test]
fn the_ends_of_the_range() {
    assert_eq!(Interval::point(1000.0).exp(), Interval::new(f64::MAX, f64::INFINITY));
    assert_eq!(Interval::point(-1000.0).exp(), Interval::new(0.0, 5e-324));
    assert_eq!(Interval::new(0.0, 1.0).ln(), Interval::new(f64::NEG_INFINITY, 0.0));
    assert_eq!(Interval::new(-1.0, 1.0).ln(), Interval::WHOLE);
    assert_eq!(Interval::new(-1.0, 1.0).sqrt(), Interval::WHOLE);
    assert_eq!(Interval::new(0.0, 0.5).powf(Interval::new(0.0, 3.0)), Interval::new(0.0, 1.0));
    assert_eq!(Interval::new(0.0, 1.0).powf(Interval::new(-1.0, 3.0)), Interval::WHOLE);
    assert_eq!(Interval::new(-1.0, 1.0).powf(Interval::point(0.5)), Interval::WHOLE);
    assert_eq!(Interval::point(f64::NAN), Interval::WHOLE);
    assert_eq!(Interval::WHOLE.tanh(), Interval::new(-1.0, 1.0));
    assert_eq!(Interval::WHOLE.sin(), Interval::new(-1.0, 1.0));
    assert_eq!(Interval::WHOLE.exp(), Interval::new(0.0, f64::INFINITY));
    assert_eq!(Interval::WHOLE - Interval::WHOLE, Interval::WHOLE);
    assert_eq!(Interval::WHOLE * Interval::point(0.0), Interval::point(0.0));
}

#[test]
fn crests_and_troughs_are_found() {
    let around_crest = Interval::new(1.0, 2.0);
    assert_eq!(around_crest.sin().hi(), 1.0);
    assert!(around_crest.sin().lo() > 0.84);
    assert_eq!(Interval::new(3.0, 3.2).cos().lo(), -1.0);
    assert_eq!(Interval::new(1.5, 1.6).tan(), Interval::WHOLE);
    assert_eq!(Interval::new(0.0, 7.0).sin(), Interval::new(-1.0, 1.0));
}
