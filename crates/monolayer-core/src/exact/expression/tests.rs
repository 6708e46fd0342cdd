use super::*;
use crate::exact::big::tests::Random;
use crate::exact::real::tests::float;

fn one(text: &str) -> Expression {
    Expression::parse(text, 1).unwrap_or_else(|| panic!("{text}")).swap_remove(0)
}

/// A plain evaluation in floats, as docs/format.md has it: (tokens, own) to a number.
type Plain = fn(&[f64], usize) -> f64;

const KNOWN: [(&str, Plain); 26] = [
    ("x1*mean(x1)", |x, i| x[i] * mean(x)),
    ("x1 - mean(x1)", |x, i| x[i] - mean(x)),
    ("exp(x1)/sum(exp(x1))", |x, i| x[i].exp() / x.iter().map(|x| x.exp()).sum::<f64>()),
    ("mean(step(own1 - x1))", |x, i| mean(&x.iter().map(|y| f64::from(u8::from(x[i] >= *y))).collect::<Vec<_>>())),
    ("x1*tanh(20*var(x1))", |x, i| x[i] * (20.0 * var(x)).tanh()),
    ("(1 - cos(pi*sum(step(x1 - 0.5))))/2", |x, _| {
        (1.0 - (std::f64::consts::PI * x.iter().filter(|x| **x >= 0.5).count() as f64).cos()) / 2.0
    }),
    ("exp(-10*((x1 - 0.5)^2 + var(x1)))", |x, i| (-10.0 * ((x[i] - 0.5).powi(2) + var(x))).exp()),
    ("sin(2*pi*x1 + pi*mean(x1))", |x, i| (std::f64::consts::PI * (2.0 * x[i] + mean(x))).sin()),
    ("max(x1)", |x, _| x.iter().copied().fold(f64::MIN, f64::max)),
    ("min(abs(x1 - own1) + self)", |x, i| {
        (0..x.len()).map(|j| (x[j] - x[i]).abs() + f64::from(u8::from(i == j))).fold(f64::MAX, f64::min)
    }),
    ("max(x1, 0.5, 1 - x1)", |x, i| x[i].max(0.5).max(1.0 - x[i])),
    ("min(x1, 0.3)", |x, i| x[i].min(0.3)),
    ("2^3^2 - x1", |x, i| 512.0 - x[i]),
    ("-x1^2", |x, i| -x[i] * x[i]),
    ("(x1 - 1.5)^-3", |x, i| (x[i] - 1.5).powi(-3)),
    ("(x1 + 0.25)^0.7", |x, i| (x[i] + 0.25).powf(0.7)),
    ("(x1 + 0.25)^(x1 - 0.5)", |x, i| (x[i] + 0.25).powf(x[i] - 0.5)),
    ("log(x1 + .5)*sqrt(x1 + 1e-3)", |x, i| (x[i] + 0.5).ln() * (x[i] + 1e-3).sqrt()),
    ("tan(x1) + tanh(x1 - 0.5)", |x, i| x[i].tan() + (x[i] - 0.5).tanh()),
    ("sign(x1 - 0.5)*x1", |x, i| if x[i] == 0.5 { 0.0 } else { (x[i] - 0.5).signum() * x[i] }),
    ("place*x1 + ownplace", |x, i| (i + 1) as f64 * x[i] + (i + 1) as f64),
    ("sum(place*x1)", |x, _| x.iter().enumerate().map(|(j, x)| (j + 1) as f64 * x).sum()),
    ("mean(x1*mean(x1*own1))", |x, i| mean(x) * mean(x) * x[i]),
    ("abs(x1 - 0.5)/(1 + x1)", |x, i| (x[i] - 0.5).abs() / (1.0 + x[i])),
    ("1e-2*+x1 - -2.5E+1", |x, i| 0.01 * x[i] + 25.0),
    ("var(x1^2)", |x, _| var(&x.iter().map(|x| x * x).collect::<Vec<_>>())),
];

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn var(x: &[f64]) -> f64 {
    mean(&x.iter().map(|y| (y - mean(x)).powi(2)).collect::<Vec<_>>())
}

/// Whether a number is a member, up to the rounding of the plain evaluation.
fn near(x: &Real, y: f64) -> bool {
    let slack = float(1e-9 * (1.0 + y.abs()));
    x.plus(&Real::new(slack.negated(), slack), 60).ends().is_some_and(|(lo, hi)| *lo <= float(y) && float(y) <= *hi)
}

#[test]
fn ranges_and_slopes_hold_the_values() {
    let mut random = Random(11);
    let mut draw = || (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    for (text, plain) in KNOWN {
        let expression = one(text);
        for round in 0..150 {
            let (n, own) = (3, round % 3);
            let size = [0.0, 1e-6, 0.05, 0.4][round % 4];
            let corner: Vec<f64> = (0..n).map(|_| draw() * (1.0 - size)).collect();
            let sides: Vec<(Scaled, Scaled)> = corner.iter().map(|x| (float(*x), float(x + size))).collect();
            let boxed = Boxed::new(&sides, own);
            let Some(view) = expression.over(&boxed) else { continue };
            for _ in 0..5 {
                let x: Vec<f64> = corner.iter().map(|x| x + size * draw()).collect();
                let y = plain(&x, own);
                assert!(near(&view.range, y), "{text} {x:?} {y} {view:?}");
                let mut linear = view.center.clone();
                for ((slope, x), center) in view.slopes.iter().zip(&x).zip(&boxed.centers) {
                    linear = linear.plus(&slope.times(&Real::point(float(*x)).minus(center, 60), 60), 60);
                }
                assert!(linear.ends().is_none() || near(&linear, y), "{text} {x:?} {y} {view:?}");
            }
            if size == 0.0 && !text.contains("step") && !text.contains("sign") {
                let (lo, hi) = view.range.ends().unwrap();
                assert!(hi.plus(&lo.negated()) < float(1e-6), "{text} {view:?}");
            }
        }
    }
}

fn unit() -> (Scaled, Scaled) {
    (float(0.0), float(1.0))
}

#[test]
fn what_may_be_undefined_is_nothing() {
    for text in
        ["log(x1)", "1/x1", "x1/(x1 - own1)", "0*log(x1 - 2)", "sqrt(x1 - 0.5)", "(x1 - 0.5)^0.5", "x1^-1", "tan(4*x1)"]
    {
        let sides = [unit(), unit()];
        assert!(one(text).over(&Boxed::new(&sides, 0)).is_none(), "{text}");
    }
    // Far too large for any number, but no panic.
    for text in ["exp(exp(exp(exp(9))))", "9^9^9^9", "(1 + x1)^1000000000", "1e30000*1e30000", "0^0^0"] {
        let _ = one(text).over(&Boxed::new(&[unit()], 0));
    }
}

#[test]
fn texts_that_are_no_functions() {
    let deep = format!("{}x1{}", "(".repeat(1000), ")".repeat(1000));
    let signs = format!("{}x1", "-".repeat(60_000));
    let powers = format!("x1{}", "^x1".repeat(20_000));
    let long = format!("x1{}", "+x1".repeat(30_000));
    let strange = [
        "",
        ";",
        "x1;x1",
        "x2",
        "x0",
        "x01",
        "x1 +",
        "f(x1)",
        "sin x1",
        "max()",
        "sum(x1, x1)",
        "x1)",
        "(x1",
        "1e",
        "1.2.3",
    ];
    let more = [
        "x\u{0}1",
        "x1\u{b2}",
        "sin()",
        "own2",
        "1e999999999",
        "1..2",
        ".",
        "2 3",
        "x1 x1",
        "mean",
        "min(x1,)",
        "self()",
        "\u{3c0}",
    ];
    for text in [&deep, &signs, &powers, &long].into_iter().map(String::as_str).chain(strange).chain(more) {
        assert!(Expression::parse(text, 1).is_none(), "{}", &text[..text.len().min(40)]);
    }
    for text in [
        "x1",
        " x1 ",
        "x1 + 0*own1",
        "2.",
        ".5e-3*x1",
        "(((x1)))",
        "2^-1",
        "max(x1,x1,x1)",
        "e1(x1)".trim_start_matches("e1"),
    ] {
        assert!(Expression::parse(text, 1).is_some(), "{text}");
    }
    let wide = format!("x1{}", "+x1".repeat(15_000));
    assert!(one(&wide).over(&Boxed::new(&[(Scaled::ZERO, Scaled::ZERO)], 0)).is_some());
}
