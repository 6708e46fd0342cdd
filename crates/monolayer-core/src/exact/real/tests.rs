use super::*;
use crate::exact::big::tests::Random;
use crate::number::Format;

pub(crate) fn float(x: f64) -> Scaled {
    Scaled::from(Dyadic::from_bits(Format::F64, x.to_bits()).unwrap())
}

pub(crate) fn ratio(text: &str) -> Rational {
    Rational::parse(text, &mut 1_000_000_000).unwrap()
}

/// Whether a fraction is a member.
pub(crate) fn holds(x: &Real, y: &Rational) -> bool {
    let Some((lo, hi)) = x.ends() else { return true };
    order(&exact(lo), y) != Greater && order(&exact(hi), y) != Less
}

pub(crate) fn exact(x: &Scaled) -> Rational {
    let power = Big::from(2_i64).power(x.e.unsigned_abs() as usize);
    if x.e < 0 { Rational { p: x.m.clone(), q: power } } else { Rational { p: x.m.times(&power), q: Big::ONE } }
}

fn order(x: &Rational, y: &Rational) -> Ordering {
    minus(x, y).p.sign()
}

fn minus(x: &Rational, y: &Rational) -> Rational {
    Rational { p: x.p.times(&y.q).minus(&y.p.times(&x.q)), q: x.q.times(&y.q) }
}

fn of(p: Big, q: Big) -> Rational {
    if q.sign() == Less { Rational { p: p.negated(), q: q.negated() } } else { Rational { p, q } }
}

fn dyadic(x: Dyadic) -> Rational {
    exact(&Scaled::from(x))
}

/// Numbers from subnormal to the largest, thirds and tenths.
fn draw(random: &mut Random) -> Rational {
    match random.next() % 5 {
        0 => ratio(&format!("{}/{}", random.next() % 1000, random.next() % 1000 + 1)),
        1 => ratio(&format!("-{}e-{}", random.next() % 1000, random.next() % 400)),
        2 => dyadic(Dyadic::new(random.next() as i64 >> 11, (random.next() % 2100) as i32 - 1074)),
        3 => dyadic(Dyadic::new(1 - (random.next() % 3) as i64, 0)),
        _ => dyadic(Dyadic::new(random.next() as i64 >> 50, -10)),
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
                let zero = Rational { p: Big::ZERO, q: Big::ONE };
                assert!(holds(&a.plus(&b, bits), &minus(x, &minus(&zero, y))));
                assert!(holds(&a.minus(&b, bits), &minus(x, y)));
                assert!(holds(&a.times(&b, bits), &of(x.p.times(&y.p), x.q.times(&y.q))));
                let quotient = a.over(&b, bits);
                if y.p.is_zero() {
                    assert_eq!(quotient, Real::UNBOUNDED);
                } else {
                    assert!(holds(&quotient, &of(x.p.times(&y.q), x.q.times(&y.p))));
                }
                match a.compare(&b) {
                    Some(found) => assert_eq!(order(x, y), found),
                    None => assert!(a.hull(&b).only().is_none()),
                }
                let larger = if order(x, y) == Less { y } else { x };
                assert!(holds(&a.max(&b), larger) && holds(&a.hull(&b), x) && holds(&a.hull(&b), y));
            }
            let zero = ratio("0");
            let positive = order(&members[i], &zero) == Greater;
            assert!(holds(&a.relu(), if positive { &members[i] } else { &zero }));
            assert!(holds(&a.abs(), &if positive { members[i].clone() } else { minus(&zero, &members[i]) }));
            let (middle, radius) = a.middle(bits).unwrap();
            let (lo, hi) = a.ends().unwrap();
            assert!(*lo <= middle && middle <= *hi);
            assert!(hi.plus(&middle.negated()) <= radius && middle.plus(&lo.negated()) <= radius);
            if positive {
                let root = members[i].enclosure(bits).sqrt();
                assert!(holds(&root.times(&root, 500), &members[i]));
            }
        }
    }
}

#[test]
fn far_numbers_are_bounded_outward() {
    let huge = Real::point(Scaled::new(Big::ONE, FAR - 1));
    assert_eq!(huge.times(&huge, 64), Real::UNBOUNDED);
    assert_eq!(Real::whole(1 << 40).exp(64), Real::UNBOUNDED);
    let tiny = Real::point(Scaled::new(Big::from(-3_i64), 3 - FAR));
    let square = tiny.times(&tiny, 64);
    let (lo, hi) = square.ends().unwrap();
    assert!(lo.sign() == Equal && hi.sign() == Greater, "{square:?}");
    let cube = square.times(&tiny, 64);
    let (lo, hi) = cube.ends().unwrap();
    assert!(lo.sign() == Less && hi.sign() == Equal, "{cube:?}");
    let low = Real::whole(-(1 << 40)).exp(64);
    let (lo, hi) = low.ends().unwrap();
    assert!(lo.sign() == Equal && hi.sign() == Greater);
    let sum = Real::whole(1).plus(&tiny, 64);
    assert!(sum.ends().unwrap().0 < &Scaled::new(Big::ONE, 0) && sum.ends().unwrap().1 == &Scaled::new(Big::ONE, 0));
    assert_eq!(Real::UNBOUNDED.times(&Real::whole(0), 64), Real::whole(0));
    assert_eq!(
        Real::whole(1).over(&Real::new(Scaled::new(Big::from(-1_i64), 0), Scaled::new(Big::ONE, 0)), 64),
        Real::UNBOUNDED
    );
}

#[test]
fn numbers_as_text() {
    let is = |text: &str, p: i64, q: i64| {
        let found = ratio(text);
        assert_eq!(found.p.times(&q.into()), found.q.times(&p.into()), "{text}");
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
    assert!(Rational::parse(&"9".repeat(200_000), &mut (1 << 28)).is_none());
    let long = ratio(&"9".repeat(100)).enclosure(64);
    assert!(long.only().is_none());
    assert!(ratio("0.75").enclosure(64).only().is_some() && ratio("0.1").enclosure(64).only().is_none());
}
