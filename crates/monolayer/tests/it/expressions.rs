//! The expression language: what it means, where it is undefined, and how mistakes are reported.

use monolayer::approximate::expression::{Domain, Expression, Program};
use monolayer::approximate::function::Function;
use monolayer::arithmetic::Interval;
use proptest::prelude::*;

fn program(text: &str, dim: usize, length: usize) -> Program {
    Expression::parse(text, dim).unwrap_or_else(|error| panic!("{error}")).at_length(length).unwrap()
}

/// The outputs of all tokens.
fn values(text: &str, dim: usize, sequence: &[f64]) -> Vec<f64> {
    let mut outputs = vec![0.0; sequence.len()];
    program(text, dim, sequence.len() / dim).values(sequence, &mut outputs);
    outputs
}

/// The value of an expression without tokens.
fn constant(text: &str) -> f64 {
    values(text, 1, &[0.0])[0]
}

fn error(text: &str, dim: usize) -> String {
    Expression::parse(text, dim).expect_err(text).to_string()
}

#[test]
fn operators_bind_as_specified() {
    for (text, value) in [
        ("1 + 2*3", 7.0),
        ("1 - 2 - 3", -4.0),
        ("12/3/2", 2.0),
        ("-2^2", -4.0),
        ("2^-1", 0.5),
        ("2^3^2", 512.0),
        ("(2^3)^2", 64.0),
        ("-2^-2", -0.25),
        ("2*-3", -6.0),
        ("- -3", 3.0),
        ("+3", 3.0),
        ("(-2)^3", -8.0),
        ("0^0", 1.0),
        (".5 + 1. + 1e-1 + 2E+0", 3.6),
        ("sign(0) + 10*step(0) + 100*sign(-3) + 1000*step(-3)", -90.0),
        ("min(3, 1, 2) + 10*max(3, 1, 2)", 31.0),
        ("log(exp(2)) + abs(-1)", 3.0),
        ("sqrt(2)^2", 2.0),
        ("4^0.5", 2.0),
    ] {
        assert!((constant(text) - value).abs() < 1e-12, "{text} is {}, not {value}", constant(text));
    }
    assert!((constant("sin(pi/6) + cos(pi/3) + tan(pi/4) + tanh(0)") - 2.0).abs() < 1e-12);
}

#[test]
fn aggregates_run_over_the_sequence() {
    let sequence = [0.1, 0.4, 0.7];
    let close = |text: &str, expected: [f64; 3]| {
        let found = values(text, 1, &sequence);
        let right = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14);
        assert!(right, "{text}: {found:?}, not {expected:?}");
    };
    close("sum(x1)", [1.2; 3]);
    close("mean(x1)", [0.4; 3]);
    close("min(x1)", [0.1; 3]);
    close("max(x1)", [0.7; 3]);
    close("var(x1)", [0.06; 3]);
    close("x1 - mean(x1)", [-0.3, 0.0, 0.3]);
    close("sum(step(own1 - x1))", [1.0, 2.0, 3.0]);
    close("max(abs(x1 - own1))", [0.6, 0.3, 0.6]);
    close("own1", sequence);
    // Inside the inner mean x1 is the innermost running token, and own1 still the output token.
    close("mean(abs(x1 - mean(x1)))", [0.2; 3]);
    close("sum(x1*mean(x1 + own1))", [0.6, 0.96, 1.32]);
    close("max(x1, 0.5)", [0.5, 0.5, 0.7]);
    close("sum(1)", [3.0; 3]);
    close("sum(x1*(1 - self))", [1.1, 0.8, 0.5]);
    close("sum(place)*ownplace", [6.0, 12.0, 18.0]);
}

#[test]
fn the_example_of_the_format() {
    let found = values("x1*mean(x2); x2 - max(x1)", 2, &[0.5, 0.2, 0.25, 0.6]);
    let expected = [0.2, -0.3, 0.1, 0.1];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
}

#[test]
fn mistakes_are_shown_where_they_are() {
    assert_eq!(
        error("x1 + * 2", 1),
        "the function, character 6: expected a number, a name or \"(\", found \"*\"; operators stand between two operands\n  \
         x1 + * 2\n       ^"
    );
    for (text, dim, parts) in [
        ("", 1, vec!["character 1", "found nothing"]),
        ("x1 +", 1, vec!["character 5", "found the end"]),
        ("(x1", 1, vec!["character 4", "\")\" for the \"(\" at character 1"]),
        ("x1)", 1, vec!["character 3", "there is no \"(\" for it"]),
        ("2x1", 1, vec!["character 2", "2*x1"]),
        ("x1 x1", 1, vec!["character 4", "products are written with *"]),
        ("x1^^2", 1, vec!["character 4"]),
        ("x1**2", 1, vec!["character 3", "\"**\"", "x1^2"]),
        ("foo(x1)", 1, vec!["character 1", "unknown name \"foo\"", "there is x1"]),
        ("men(x1)", 1, vec!["unknown name \"men\"", "did you mean"]),
        ("ln(x1)", 1, vec!["natural logarithm is log"]),
        ("x", 2, vec!["did you mean x1?"]),
        ("x5; x1", 2, vec!["character 1", "x5 with tokens of 2 coordinates", "x1 to x2"]),
        ("own3; x1", 2, vec!["own1 to own2"]),
        ("x0", 1, vec!["x0 with tokens of 1 coordinate", "there is x1"]),
        ("x01", 1, vec!["unknown name"]),
        ("sin x1", 1, vec!["character 5", "expected \"(\" after sin"]),
        ("x1(2)", 1, vec!["character 3", "not a function"]),
        ("sin(x1, x1)", 1, vec!["2 arguments for sin", "takes one"]),
        ("sum(x1, x1)", 1, vec!["2 arguments for sum"]),
        ("mean()", 1, vec!["character 6", "found \")\""]),
        ("x1", 2, vec!["character 3", "1 expression for tokens of 2 coordinates"]),
        ("x1; x1; x1", 2, vec!["character 9", "3 expressions for tokens of 2 coordinates"]),
        ("x1;", 1, vec!["character 4", "nothing follows the last semicolon"]),
        ("x1;;x1", 2, vec!["character 4", "before the semicolon"]),
        ("1e999*x1", 1, vec!["character 1", "not finite"]),
        ("x1 − 1", 1, vec!["character 4", "minus sign"]),
        ("x1 < 1", 1, vec!["step(a - b)"]),
        ("x1, x1", 1, vec!["semicolons the outputs"]),
        ("ééé + ?", 1, vec!["character 7"]),
        ("zoo:softmx", 1, vec!["did you mean zoo:softmax"]),
    ] {
        let message = error(text, dim);
        for part in parts {
            assert!(message.contains(part), "{text:?} gave {message:?}, without {part:?}");
        }
    }
    assert!(Expression::parse("x1", 0).is_err() && Expression::parse("x1", 1).unwrap().at_length(0).is_err());
}

#[test]
fn hostile_text_neither_overflows_the_stack_nor_hangs() {
    for text in
        ["(".repeat(60_000), "-".repeat(60_000), "2^".repeat(30_000), "sin(".repeat(15_000), "sum(".repeat(15_000)]
    {
        assert!(error(&text, 1).len() < 500);
    }
    assert!(error(&"x1+".repeat(100_000), 1).contains("bytes of text"));
    let long = format!("x1{}", "+x1".repeat(20_000));
    assert_eq!(values(&long, 1, &[1.0]), [20_001.0]);
    let nested = format!("{}x1{}", "sum(".repeat(150), ")".repeat(150));
    program(&nested, 1, 8).values(&[0.0; 8], &mut [0.0; 8]);
    assert!(error("1e99999999999999999999", 1).contains("not finite"));
    assert_eq!(constant("1e-99999999999999999999"), 0.0);
    assert!(Expression::parse("mean(abs(x1 - own1) + sin(x1))", 1).unwrap().at_length(10_000_000).is_err());
}

#[test]
fn every_function_of_the_zoo_has_values_on_the_cube() {
    for named in monolayer::approximate::expression::zoo::ZOO {
        for (dim, length) in [(1, 1), (1, 3), (2, 2)] {
            let function = program(named.name, dim, length);
            assert_eq!(
                program(&format!("zoo:{}", named.name), dim, length).expression().text(),
                function.expression().text()
            );
            assert!(matches!(function.domain(10_000), Domain::Defined(_)), "{}", named.name);
        }
    }
    let documented = include_str!("../../../../docs/format.md");
    for named in monolayer::approximate::expression::zoo::ZOO {
        let row = format!("| `{}` | `{}` | {} |", named.name, named.text(1), named.what);
        assert!(documented.contains(&row), "docs/format.md lacks {row}");
    }
    let nearest = values("nearest", 1, &[0.1, 0.4, 0.9]);
    assert!(nearest.iter().zip([0.3, 0.3, 0.5]).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-15), "{nearest:?}");
    assert_eq!(values("xor", 1, &[0.1, 0.6, 0.9]), [0.0; 3]);
    assert_eq!(values("rank", 1, &[0.6, 0.1]), [1.0, 0.5]);
}

#[test]
fn undefined_somewhere_in_the_cube() {
    for (text, dim, length, part) in [
        ("1/x1", 1, 2, "division by zero: x1 is 0"),
        ("1/(x1 - 0.3)", 1, 2, "division by zero: x1 - 0.3 passes 0 on the way"),
        ("1/(x1 - own1 + mean(x1) - 0.7)", 1, 2, "passes 0"),
        ("sin(x1)/x1", 1, 1, "division by zero"),
        ("x1/sum(x1)", 1, 3, "sum(x1) is 0"),
        ("log(x1 - 0.2)", 1, 2, "the logarithm of x1 - 0.2, which is"),
        ("log(x1)", 1, 2, "the logarithm of x1, which is 0"),
        ("sqrt(x1 - 0.3)", 1, 2, "the square root of x1 - 0.3"),
        ("(x1 - 0.5)^0.5", 1, 2, "a real power of"),
        ("x1^-2", 1, 2, "division by zero"),
        ("x1^(-x1 - 1)", 1, 2, "division by zero"),
        ("tan(pi*x1)", 1, 2, "tangent"),
        ("exp(1000*x1)", 1, 2, "exp(1000*x1) is not finite"),
        ("exp(exp(10*x1))", 1, 1, "not finite"),
        ("1/sign(x1 - mean(x1))", 1, 2, "division by zero"),
        ("1/0", 1, 1, "division by zero: 0 is 0"),
        ("log(-1)", 1, 1, "logarithm"),
        ("x1; 1/(x1 - x2)", 2, 2, "x1 - x2 is 0"),
        ("1/(mean(x1) - 0.999)", 1, 3, "passes 0"),
    ] {
        match program(text, dim, length).domain(10_000) {
            Domain::Undefined { witness, what } => {
                assert!(what.contains(part), "{text}: {what}");
                assert_eq!(witness.len(), dim * length);
                assert!(witness.iter().all(|x| (0.0..=1.0).contains(x)), "{text}: {witness:?}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn defined_on_the_whole_cube() {
    for (text, length) in [
        ("1/(0.01 + x1)", 2),
        ("1/(1.1 + x1 - max(x1))", 3),
        ("sqrt(x1 - x1*mean(x1))", 2),
        ("sqrt(var(x1))", 3),
        ("x1^x1", 2),
        ("x1^0.5 + x1^1.5", 2),
        ("log(1.001 - x1^2)", 2),
        ("tan(1.57*x1)", 2),
        ("exp(700*x1)", 2),
        ("1/(1 + exp(-50*(x1 - 0.5)))", 2),
        ("exp(-1/(0.01 + (x1 - 0.5)^2))", 2),
        ("(x1 - 0.5)^3 + (x1 - 2)^-3", 2),
        ("1/(2 + sign(x1 - 0.5))", 2),
    ] {
        let domain = program(text, 1, length).domain(20_000);
        assert!(matches!(domain, Domain::Defined(_)), "{text}: {domain:?}");
    }
}

#[test]
fn what_cannot_be_decided_is_not_decided() {
    for text in ["1/(x1 - 1/3)^2", "sqrt(mean(x1^2) - mean(x1)^2)"] {
        let domain = program(text, 1, 2).domain(500);
        assert!(matches!(domain, Domain::Undecided { .. }), "{text}: {domain:?}");
    }
}

/// Expressions that are defined on the cube, of tokens with two coordinates.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x1".to_owned()),
        Just("x2".to_owned()),
        Just("own1".to_owned()),
        Just("pi".to_owned()),
        (0..40_i32).prop_map(|k| format!("{}", f64::from(k) / 8.0)),
        Just("0.3".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let unary = prop::sample::select(vec![
            "-(#)",
            "sin(#)",
            "cos(3*#)",
            "exp(-abs(#))",
            "log(0.1 + abs(#))",
            "sqrt(abs(#))",
            "abs(#)",
            "tanh(#)",
            "sign(#)",
            "step(#)",
            "(#)^2",
            "(#)^3",
            "abs(#)^0.5",
            "abs(#)^1.7",
            "(1 + abs(#))^-2",
            "sum(#)",
            "mean(#)",
            "min(#)",
            "max(#)",
            "var(#)",
            "tan(tanh(#))",
            "abs(#)^abs(x2)",
        ]);
        let binary =
            prop::sample::select(vec!["(# + @)", "(# - @)", "(# * @)", "# / (1 + abs(@))", "max(#, @)", "min(#, @)"]);
        prop_oneof![
            (unary, inner.clone()).prop_map(|(form, a)| form.replace('#', &a)),
            (binary, inner.clone(), inner).prop_map(|(form, a, b)| form.replace('#', &a).replace('@', &b)),
        ]
    })
}

/// A box of sequences, and points inside of it as fractions of its sides.
fn place() -> impl Strategy<Value = (Vec<(f64, f64)>, Vec<Vec<f64>>)> {
    let side = (0.0..1.0, prop_oneof![0.0..1.0, 0.0..0.1, Just(0.0), 0.0..1e-6]);
    let sides = prop::collection::vec(side, 6);
    (sides, prop::collection::vec(prop::collection::vec(prop_oneof![0.0..=1.0, Just(0.0), Just(1.0)], 6), 6))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn enclosures_contain_values((text, (sides, points)) in (expression(), place())) {
        let program = program(&format!("{text}; {text} - x2"), 2, 3);
        let sequence: Vec<Interval> = sides.iter().map(|(lo, width)| Interval::new(*lo, (lo + width).min(1.0))).collect();
        for token in 0..3 {
            let enclosures = [0, 1].map(|output| program.enclose(&sequence, token, output));
            for point in &points {
                let x: Vec<f64> = sequence.iter().zip(point).map(|(x, t)| (x.lo() + t * (x.hi() - x.lo())).min(x.hi())).collect();
                let exact = [0, 1].map(|output| program.enclose(&x.iter().map(|x| Interval::point(*x)).collect::<Vec<_>>(), token, output));
                let mut outputs = vec![0.0; 6];
                program.values(&x, &mut outputs);
                for (k, (over, at)) in enclosures.iter().zip(&exact).enumerate() {
                    // Two enclosures of the same value have a point in common.
                    let meet = |a: Interval, b: Interval| a.lo() <= b.hi() && b.lo() <= a.hi();
                    prop_assert!(meet(over.range, at.range), "{text} {x:?}: {over:?} without {at:?}");
                    let linear = (0..6).fold(over.center, |sum, i| {
                        sum + over.slopes[i] * (Interval::point(x[i]) - Interval::point(sequence[i].center()))
                    });
                    prop_assert!(meet(linear, at.range), "{text} {x:?}: {over:?} leads to {linear:?} without {at:?}");
                    // Floats stay near, but for jumps: their argument may be rounded to the other side.
                    let jumps = text.contains("sign") || text.contains("step");
                    let value = outputs[token * 2 + k];
                    let slack = 1e-6 * (1.0 + value.abs());
                    let near = at.range.lo() - slack <= value && value <= at.range.hi() + slack;
                    prop_assert!(jumps || near, "{text} {x:?}: {value} is not {at:?}");
                }
            }
        }
    }

    #[test]
    fn permuted_sequences_have_permuted_values(text in expression(), x in prop::collection::vec(0.0..1.0, 6)) {
        prop_assume!(!text.contains("sign") && !text.contains("step"));
        let program = program(&format!("{text}; x1"), 2, 3);
        let (mut outputs, mut rotated) = (vec![0.0; 6], vec![0.0; 6]);
        program.values(&x, &mut outputs);
        let y: Vec<f64> = x[2..].iter().chain(&x[..2]).copied().collect();
        program.values(&y, &mut rotated);
        for i in 0..6 {
            prop_assert!((rotated[i] - outputs[(i + 2) % 6]).abs() <= 1e-6 * (1.0 + outputs[(i + 2) % 6].abs()), "{text}");
        }
    }
}
