use super::*;
use crate::exact::big::tests::Random;
use crate::number::Format;

fn float(x: f64) -> Scaled {
    Scaled::from(Dyadic::from_bits(Format::F64, x.to_bits()).unwrap())
}

fn ratio(text: &str) -> Rational {
    Rational::parse(text, &mut 1_000_000_000).unwrap()
}

/// Whether a fraction is a member.
fn holds(x: &Real, y: &Rational) -> bool {
    let Some((lo, hi)) = x.ends() else { return true };
    let exact = |x: &Scaled| {
        let power = Big::power_of_two(x.e.unsigned_abs() as usize);
        let (p, q) = if x.e < 0 { (x.m.clone(), power) } else { (x.m.times(&power), Big::one()) };
        Rational::new(&p, &q, usize::MAX)
    };
    exact(lo).compare(y) != Some(Ordering::Greater) && exact(hi).compare(y) != Some(Ordering::Less)
}

/// Numbers from subnormal to the largest, thirds and tenths.
fn draw(random: &mut Random) -> Rational {
    match random.next() % 5 {
        0 => ratio(&format!("{}/{}", random.next() % 1000, random.next() % 1000 + 1)),
        1 => ratio(&format!("-{}e-{}", random.next() % 1000, random.next() % 400)),
        2 => Rational::from(Dyadic::new(random.next() as i64 >> 11, (random.next() % 2100) as i32 - 1074)),
        3 => Rational::from(Dyadic::new(1 - (random.next() % 3) as i64, 0)),
        _ => Rational::from(Dyadic::new(random.next() as i64 >> 50, -10)),
    }
}

#[test]
fn intervals_hold_the_exact_results() {
    let mut random = Random(3);
    for round in 0..20_000 {
        let bits = 2 + round % 80;
        let members: Vec<Rational> = (0..4).map(|_| draw(&mut random)).collect();
        let wide = |i: usize| members[i].enclosure(bits).hull(&members[i + 1].enclosure(bits));
        let (a, b) = (wide(0), wide(2));
        for i in 0..2 {
            for j in 2..4 {
                let (x, y) = (&members[i], &members[j]);
                assert!(holds(&a.plus(&b, bits), &x.plus(y, usize::MAX)));
                assert!(holds(&a.minus(&b, bits), &x.minus(y, usize::MAX)));
                assert!(holds(&a.times(&b, bits), &x.times(y, usize::MAX)));
                let quotient = x.over(y, usize::MAX);
                assert!(if quotient.is_none() { a.over(&b, bits).ends().is_none() } else { holds(&a.over(&b, bits), &quotient) });
                match a.compare(&b) {
                    Some(order) => assert_eq!(x.compare(y), Some(order)),
                    None => assert!(a.hull(&b).only().is_none()),
                }
            }
            let zero = ratio("0");
            let positive = members[i].compare(&zero) == Some(Ordering::Greater);
            assert!(holds(&a.relu(), if positive { &members[i] } else { &zero }));
            let size = if positive { members[i].clone() } else { zero.minus(&members[i], usize::MAX) };
            assert!(holds(&a.abs(), &size));
        }
    }
}

#[test]
fn exponentials() {
    for x in [-700.5, -3.25, -1e-9, 1e-300, f64::from_bits(1), 0.5, 1.0, 20.0, 0.0, -5000.0] {
        for bits in [60, 100, 300] {
            let found = Real::point(float(x)).exp(bits);
            let (lo, hi) = found.ends().unwrap();
            assert!(lo.sign() == Ordering::Greater && lo <= hi);
            assert!(hi.plus(&lo.negated()).top() < lo.top() - bits as i64 + 8, "{x} {bits}");
            // e^x e^-x = 1, and e^(x/2) squared is e^x.
            let back = Real::point(float(-x)).exp(bits).times(&found, bits);
            assert!(holds(&back, &ratio("1")));
            let half = Real::point(float(x).times(&Scaled::new(Big::one(), -1))).exp(bits);
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
        let (low, high) = (Scaled::new(low.clone(), 0), Scaled::new(low.plus(&Big::one()), 0));
        let (lo, hi) = scaled.ends().unwrap();
        assert!(*hi > low && *lo < high && hi.plus(&lo.negated()).top() < 0);
    };
    digits(&Real::whole(1).exp(150), "271828182845904523536028747135266249");
    digits(&ratio("1/3").exp2(150), "125992104989487316476721060727822835");
    digits(&ratio("-5/3").exp2(150), "31498026247371829119180265181955708");
}

#[test]
fn far_numbers_are_bounded_outward() {
    let huge = Real::point(Scaled::new(Big::one(), FAR - 1));
    assert_eq!(huge.times(&huge, 64), Real::UNBOUNDED);
    assert_eq!(Real::whole(1 << 40).exp(64), Real::UNBOUNDED);
    let tiny = Real::point(Scaled::new(Big::from(-3_i64), 3 - FAR));
    let square = tiny.times(&tiny, 64);
    let (lo, hi) = square.ends().unwrap();
    assert!(lo.sign() == Ordering::Equal && hi.sign() == Ordering::Greater, "{square:?}");
    let cube = square.times(&tiny, 64);
    let (lo, hi) = cube.ends().unwrap();
    assert!(lo.sign() == Ordering::Less && hi.sign() == Ordering::Equal, "{cube:?}");
    let low = Real::whole(-(1 << 40)).exp(64);
    let (lo, hi) = low.ends().unwrap();
    assert!(lo.sign() == Ordering::Equal && hi.sign() == Ordering::Greater);
    let sum = Real::whole(1).plus(&tiny, 64);
    assert!(sum.ends().unwrap().0 < &Scaled::whole(1) && sum.ends().unwrap().1 == &Scaled::whole(1));
    assert_eq!(Real::UNBOUNDED.times(&Real::whole(0), 64), Real::whole(0));
    assert_eq!(Real::whole(1).over(&Real::new(Scaled::whole(-1), Scaled::whole(1)), 64), Real::UNBOUNDED);
    assert_eq!(ratio("99999999999999999999").exp2(64), Real::UNBOUNDED);
}

#[test]
fn numbers_as_text() {
    let is = |text: &str, p: i64, q: i64| {
        assert_eq!(ratio(text), Rational { p: p.into(), q: q.into() }, "{text}");
    };
    is("0", 0, 1);
    is("-1.25e3", -1250, 1);
    is("1/3", 1, 3);
    is("-6/4", -3, 2);
    is("+.5", 1, 2);
    is("2.", 2, 1);
    is("1E-2", 1, 100);
    let bad = ["", "-", ".", "1/0", "1e", "e5", "1.5/2", "0x10", "1_000", "nan", "inf", "1.-5", "--1", "1/-", "1/2/3"];
    for text in bad.into_iter().chain(["1e1000000", "1e-1000000", "1e99999999999999999999", "\u{661}", "1e5/3"]) {
        assert!(Rational::parse(text, &mut 1_000_000).is_none(), "{text}");
    }
    let mut budget = 1_000_000;
    assert!(Rational::parse(&"9".repeat(7_000), &mut budget).is_some() && budget < 300_000);
    assert!(Rational::parse(&"9".repeat(7_000), &mut budget).is_none());
    assert!(Rational::parse(&"9".repeat(LONGEST + 1), &mut u64::MAX.clone()).is_none());
    let long = ratio(&"9".repeat(100)).enclosure(64);
    assert!(long.only().is_none());
    assert!(ratio("0.75").enclosure(64).only().is_some() && ratio("0.1").enclosure(64).only().is_none());
    assert!(ratio("1/3").times(&ratio("1/5"), 3).is_none());
}
