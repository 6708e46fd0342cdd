//! Compiler and checker read functions alike: the same texts are accepted, and they mean the same.

use monolayer::approximate::expression::Expression as TheirExpression;
use monolayer::approximate::function::Function as _;
use monolayer::arithmetic::Interval as Theirs;
use monolayer_check::expression::{Expression, Machine};
use monolayer_check::interval::Interval;
use proptest::prelude::*;

/// Random expressions for two coordinates, most of them defined on the cube.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x1".to_owned()),
        Just("x2".to_owned()),
        Just("own1".to_owned()),
        Just("own2".to_owned()),
        Just("pi".to_owned()),
        Just("self".to_owned()),
        Just("0.1".to_owned()),
        Just("2".to_owned()),
        (0_u32..4000).prop_map(|k| format!("{}", f64::from(k) / 1000.0)),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop::sample::select(vec!["+", "-", "*"])).prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            two.clone().prop_map(|(a, b)| format!("{a}/(1.5 + abs({b}))")),
            two.prop_map(|(a, b)| format!("max({a}, {b}, 0.3)")),
            (inner.clone(), prop::sample::select(vec!["sum", "mean", "min", "max", "var"]))
                .prop_map(|(a, name)| format!("{name}({a})")),
            (inner.clone(), prop::sample::select(vec!["sin", "cos", "tanh", "abs", "sign", "step"]))
                .prop_map(|(a, name)| format!("{name}({a})")),
            inner.clone().prop_map(|a| format!("exp(-abs({a}))")),
            inner.clone().prop_map(|a| format!("sqrt(abs({a}))")),
            inner.clone().prop_map(|a| format!("log(0.2 + ({a})^2)")),
            inner.clone().prop_map(|a| format!("abs({a})^1.5")),
            inner.prop_map(|a| format!("-(0.5 - {a})^3")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn values_and_enclosures_agree(
        first in expression(),
        second in expression(),
        at in prop::collection::vec(0.0_f64..1.0, 6),
        width in prop::sample::select(vec![0.0, 1e-3, 0.2]),
        own in 0_usize..3,
    ) {
        let text = format!("{first}; {second}");
        let theirs = TheirExpression::parse(&text, 2).unwrap().at_length(3).unwrap();
        let ours = Expression::parse(&text, 2).unwrap();
        prop_assert!(ours.is_equivariant());
        let sides: Vec<Interval> = at.iter().map(|x| Interval::new(x * (1.0 - width), (x + width).min(1.0))).collect();
        let mut machine = Machine::new(&ours, 3);
        let boxed: Vec<Theirs> = sides.iter().map(|side| Theirs::new(side.lo, side.hi)).collect();
        let enclosures = [0, 1].map(|output| theirs.enclose(&boxed, own, output));
        // A point of the box that is neither its center nor a corner.
        let point: Vec<f64> = sides.iter().map(|side| side.lo + 0.7 * (side.hi - side.lo)).collect();
        let mut outputs = vec![0.0; 6];
        theirs.values(&point, &mut outputs);
        for (c, enclosure) in enclosures.iter().enumerate() {
            let view = machine.run(&sides, own, c);
            let other = enclosure.range;
            prop_assert!(view.range.lo <= other.hi() && other.lo() <= view.range.hi, "{text}: {view:?} {enclosure:?}");
            let value = outputs[own * 2 + c];
            // Jumps may fall the other way in floats.
            if value.is_finite() && !text.contains("sign") && !text.contains("step") {
                let slack = 1e-9 * (1.0 + value.abs());
                prop_assert!(view.range.lo - slack <= value && value <= view.range.hi + slack, "{text}: {value} {view:?}");
                let linear = view.slopes.iter().zip(&sides).zip(&point).fold(view.center, |sum, ((slope, side), x)| {
                    sum + *slope * Interval::new(x - side.middle() - 1e-15, x - side.middle() + 1e-15)
                });
                prop_assert!(linear.lo - slack <= value && value <= linear.hi + slack, "{text}: {value} {view:?}");
            }
        }
    }

    #[test]
    fn both_read_the_same_texts(text in "[x12own(),;+*/^ .e5-]{0,12}|[a-z]{1,4}\\(x1\\)|-?x1( [-+*/^] ?-?[0-9.]{1,4}){0,3}") {
        for dim in [1, 2] {
            prop_assert_eq!(TheirExpression::parse(&text, dim).is_ok(), Expression::parse(&text, dim).is_ok(), "{}", text);
        }
    }
}
