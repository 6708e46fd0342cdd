use super::*;
use crate::exact::real::tests::{float, holds, ratio};

#[test]
fn exponentials() {
    for x in [-700.5, -3.25, -1e-9, 1e-300, f64::from_bits(1), 0.5, 1.0, 20.0, 0.0, -5000.0] {
        for bits in [60, 100, 300] {
            let found = Real::point(float(x)).exp(bits);
            let (lo, hi) = found.ends().unwrap();
            assert!(lo.sign() == Greater && lo <= hi);
            assert!(hi.plus(&lo.negated()).top() < lo.top() - bits as i64 + 8, "{x} {bits}");
            // e^x e^-x = 1, and e^(x/2) squared is e^x.
            let back = Real::point(float(-x)).exp(bits).times(&found, bits);
            assert!(holds(&back, &ratio("1")));
            let same = Real::point(float(x)).exp(bits + 40);
            assert_ne!(same.compare(&found), Some(Less));
            let half = Real::point(float(x).times(&Scaled::new(Big::ONE, -1))).exp(bits);
            assert!(half.times(&half, bits).compare(&found).is_none() || x == 0.0);
            if x.abs() < 600.0 {
                let (below, above) = (x.exp() * (1.0 - 1e-15), x.exp() * (1.0 + 1e-15));
                assert!(*lo <= float(above) && *hi >= float(below));
            }
        }
    }
    // e and 2^(1/3) to 36 digits.
    let digits = |x: &Real, text: &str| {
        let scaled = x.times(&ratio("1e35").enclosure(300), 300);
        let low = Big::from_digits(text).unwrap();
        let (low, high) = (Scaled::new(low.clone(), 0), Scaled::new(low.plus(&Big::ONE), 0));
        let (lo, hi) = scaled.ends().unwrap();
        assert!(*hi > low && *lo < high && hi.plus(&lo.negated()).top() < 0);
    };
    digits(&Real::whole(1).exp(150), "271828182845904523536028747135266249");
    digits(&ratio("1/3").enclosure(200).exp2(150), "125992104989487316476721060727822835");
    digits(&ratio("-5/3").enclosure(200).exp2(150), "31498026247371829119180265181955708");
}

fn near(found: &Real, expected: f64, slack: f64) {
    let (lo, hi) = found.ends().unwrap();
    let (below, above) = (float(expected - slack), float(expected + slack));
    assert!(lo <= hi && *lo <= above && *hi >= below, "{found:?} {expected}");
    assert!(hi.plus(&lo.negated()) <= float(4.0 * slack), "{found:?} {expected}");
}

#[test]
fn points_are_near_the_functions_of_the_library() {
    for i in -300..300_i32 {
        let x = f64::from(i) * 0.0371;
        let point = Real::point(float(x));
        let [sin, cos] = point.waves(60);
        near(&sin, x.sin(), 1e-14);
        near(&cos, x.cos(), 1e-14);
        near(&point.tanh(60), x.tanh(), 1e-15);
        near(&point.exp(60).log(60), x, 1e-13);
        near(&point.abs().sqrt(), x.abs().sqrt(), 1e-15 * (1.0 + x.abs()));
        if x > 0.0 {
            near(&point.log(60), x.ln(), 1e-14);
            near(&point.pow(&Real::point(float(-1.7)), 60), x.powf(-1.7), 1e-13 * x.powf(-1.7));
        }
        near(&point.power(5, 60), x.powi(5), 1e-13 * (1.0 + x.abs().powi(5)));
        near(&point.power(4, 60), x.powi(4), 1e-13 * (1.0 + x.abs().powi(4)));
    }
    near(&Real::pi(), std::f64::consts::PI, 1e-15);
    let [sin, cos] = Real::pi().waves(100);
    assert!(holds(&sin, &ratio("0")) && holds(&cos, &ratio("-1")));
    assert!(size(&sin) < -90);
}

#[test]
fn intervals_hold_what_points_give() {
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    for _ in 0..300 {
        let (a, b) = (4.0 * random(), 4.0 * random());
        let (lo, hi) = (a.min(b), a.max(b));
        let x = Real::new(float(lo), float(hi));
        let y = Real::new(float(random().min(0.0)), float(1.5));
        for k in 0..=6 {
            let p = lo + (hi - lo) * f64::from(k) / 6.0;
            let p = p.clamp(lo, hi);
            let point = Real::point(float(p));
            let inside = |wide: &Real, narrow: &Real| {
                wide.ends().is_none() || wide.hull(narrow) == *wide || narrow.meet(wide) == *narrow
            };
            let touches = |wide: Real, narrow: Real| {
                assert!(inside(&wide, &narrow) || wide.compare(&narrow).is_none(), "{wide:?} {narrow:?}");
            };
            touches(x.waves(60)[0].clone(), point.waves(60)[0].clone());
            touches(x.waves(60)[1].clone(), point.waves(60)[1].clone());
            touches(x.exp(60), point.exp(60));
            touches(x.tanh(60), point.tanh(60));
            touches(x.sqrt(), point.sqrt());
            touches(x.relu().pow(&y, 60), point.relu().pow(&y, 60));
            for power in [-3, -2, 0, 1, 2, 3, 6] {
                if p != 0.0 {
                    touches(x.power(power, 60), point.power(power, 60));
                }
            }
            if lo > 0.0 {
                touches(x.log(60), point.log(60));
            }
        }
    }
}

#[test]
fn what_is_undefined_or_too_large_is_unbounded() {
    let x = |lo: f64, hi: f64| Real::new(float(lo), float(hi));
    for found in [
        x(-1.0, 1.0).log(60),
        x(0.0, 1.0).log(60),
        x(-1.0, 1.0).power(-1, 60),
        x(-1.0, 1.0).pow(&x(0.5, 0.5), 60),
        x(0.0, 1.0).pow(&x(-0.5, 0.5), 60),
        x(2.0, 1e300).power(i64::MAX, 60),
        x(2.0, 2.0).power(i64::MIN, 60).over(&Real::ZERO, 60),
        x(1e10, 1e10).exp(60),
    ] {
        assert_eq!(found, Real::UNBOUNDED);
    }
    assert_eq!(x(0.0, 0.0).power(0, 60), Real::whole(1));
    assert!(holds(&x(0.0, 0.0).pow(&x(0.0, 0.0), 60), &ratio("1")));
    assert_eq!(x(1e300, 1e300).waves(60)[0], Real::whole(-1).hull(&Real::whole(1)));
    assert_eq!(x(-1e300, 1e300).tanh(60), Real::whole(-1).hull(&Real::whole(1)));
}
