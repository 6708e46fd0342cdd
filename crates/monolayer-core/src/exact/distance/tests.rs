use std::sync::Arc;

use super::*;
use crate::exact::forward::tests::{bare, tensor};
use crate::model::{Attention, FeedForward, Layer};
use crate::number::Format;

mod staircase;

use staircase::{Block, FUNCTION, KEY, QUERY, VALUE, blocks, distance};

fn block(Block { units, bias }: &Block) -> FeedForward {
    let q = units.len();
    let column = |pick: fn(&(f64, f64, f64)) -> f64| units.iter().map(pick).collect::<Vec<f64>>();
    FeedForward {
        hidden: q,
        w1: tensor(&[q, 1], &column(|u| u.0)),
        b1: tensor(&[q], &column(|u| u.1)),
        w2: tensor(&[1, q], &column(|u| u.2)),
        b2: tensor(&[1], &[*bias]),
    }
}

fn staircase() -> Model {
    let [first, second] = blocks();
    let weight = |x: f64| tensor(&[1, 1, 1], &[x]);
    let attention = Attention {
        hard: false,
        heads: 1,
        size: 1,
        mask: Mask::None,
        w_q: weight(QUERY),
        w_k: weight(KEY),
        w_v: weight(KEY),
        w_o: weight(VALUE),
    };
    Model {
        pre_feed_forward: Some(block(&first)),
        layers: vec![Layer { attention: Some(attention), feed_forward: Some(block(&second)) }],
        ..bare(1)
    }
}

fn ratio(x: f64) -> Rational {
    Rational::parse(&format!("{x:e}"), &mut 1_000_000).unwrap()
}

/// Judges a claim in real arithmetic, and in floats with an attention that is off by some units in the last place.
fn judged(model: &Model, p: f64, bound: f64, function: &str) -> [Found; 2] {
    let (p, bound) = (ratio(p), ratio(bound));
    let claim = Claim { p: &p, bound: &bound, function, length: 2 };
    let exact = Exact::new(model).unwrap();
    let attend = |codes: &[Vec<Real>], own: usize| {
        let h = exact.attend(model.layers[0].attention.as_ref()?, codes, &[own], 200)?.swap_remove(0);
        let off = |h: Real| {
            let most = h.abs().times(&Real::point(Scaled::new(Big::ONE, -48)), 60);
            h.plus(&most.hull(&most.negated()), 200)
        };
        Some(h.into_iter().map(off).collect())
    };
    [check(model, claim, None), check(model, claim, Some(&attend))]
}

fn verdicts(model: &Model, p: f64, bound: f64, function: &str) -> [Option<bool>; 2] {
    judged(model, p, bound, function).map(|found| found.0)
}

#[test]
fn true_claims_hold_and_false_ones_do_not() {
    let (truth, model) = (distance(2.0), staircase());
    for (factor, verdict) in [(1.01, Some(true)), (0.95, Some(false)), (0.5, Some(false))] {
        for (found, enclosure) in judged(&model, 2.0, factor * truth, FUNCTION) {
            assert_eq!(found, verdict, "{factor}");
            let (lo, hi) = enclosure.ends().unwrap();
            let near = |x: f64| Scaled::from(Dyadic::from_bits(Format::F64, (x * truth).to_bits()).unwrap());
            assert!(*lo < near(1.0001) && near(0.9999) < *hi, "{factor}");
        }
    }
}

#[test]
fn other_exponents() {
    let model = staircase();
    for p in [1.0, 1.5, 3.0, 5.0] {
        let truth = distance(p);
        assert_eq!(verdicts(&model, p, 1.3 * truth, FUNCTION), [Some(true); 2], "{p}");
        // A fifth power is less than what the ramps may hide.
        if p < 4.0 {
            assert_eq!(verdicts(&model, p, 0.3 * truth, FUNCTION), [Some(false); 2], "{p}");
        }
    }
    for p in [0.5, -1.0, 0.0] {
        assert_eq!(verdicts(&model, p, 1.0, FUNCTION), [None; 2]);
    }
}

#[test]
fn a_changed_weight_is_noticed() {
    let bound = 1.01 * distance(2.0);
    let change = |numbers: &mut Numbers, factor: f64| {
        let Numbers::Floats(tensor) = numbers else { panic!("floats") };
        let at = tensor.len() / 3 * 8;
        let x = f64::from_le_bytes(tensor.bytes[at..at + 8].try_into().unwrap());
        let x = if x == 0.0 { 0.5 } else { factor * x };
        Arc::make_mut(&mut tensor.bytes)[at..at + 8].copy_from_slice(&x.to_le_bytes());
    };
    for which in 0..12 {
        let mut model = staircase();
        let attention = model.layers[0].attention.as_mut().unwrap();
        let (numbers, factor) = match which {
            0 => (&mut attention.w_q, 40.0),
            1 => (&mut attention.w_k, 40.0),
            2 => (&mut attention.w_v, 4.0),
            3 => (&mut attention.w_o, 4.0),
            _ => {
                let part = if which < 8 { &mut model.pre_feed_forward } else { &mut model.layers[0].feed_forward };
                let part = part.as_mut().unwrap();
                ([&mut part.w1, &mut part.b1, &mut part.w2, &mut part.b2].into_iter().nth(which % 4).unwrap(), 4.0)
            }
        };
        change(numbers, factor);
        for found in verdicts(&model, 2.0, bound, FUNCTION) {
            assert_ne!(found, Some(true), "{which}");
        }
    }
}

#[test]
fn another_function_is_noticed() {
    let (bound, model) = (1.01 * distance(2.0), staircase());
    for function in ["x1*mean(x1) + 0.05", "x1*max(x1)", "own1*x1", "mean(x1)", "x1*mean(x1)*(1 + step(x1 - 0.9))"] {
        assert_eq!(verdicts(&model, 2.0, bound, function), [Some(false); 2], "{function}");
    }
    // The same function in other words.
    for function in ["x1*(sum(x1)/2)", "mean(x1*own1)", "(x1^2 + x1*(sum(x1) - x1))/2", "x1*mean(x1) + 0*place"] {
        assert_eq!(verdicts(&model, 2.0, bound, function), [Some(true); 2], "{function}");
    }
}

#[test]
fn what_is_not_decided_is_unknown() {
    let model = staircase();
    let undefined = ["log(x1)", "x1/(x1 - own1)", "0*log(x1 - 2)", "step(log(0 - x1))", "1/x1", "x1 +", "", "x2"];
    for function in undefined {
        assert_eq!(verdicts(&model, 2.0, 1e9, function), [None; 2], "{function}");
    }
    for length in [0, 65, usize::MAX] {
        let (p, bound) = (ratio(2.0), ratio(1.0));
        assert_eq!(check(&model, Claim { p: &p, bound: &bound, function: FUNCTION, length }, None).0, None);
    }
    let mut causal = staircase();
    causal.layers[0].attention.as_mut().unwrap().mask = Mask::Causal;
    let mut hard = staircase();
    hard.layers[0].attention.as_mut().unwrap().hard = true;
    for model in [causal, hard] {
        assert_eq!(verdicts(&model, 2.0, 1.0, FUNCTION), [None; 2]);
    }
}

#[test]
fn arrangements_are_counted() {
    // Three tokens over two cells: each of the 8 sequences has three output tokens.
    let all = [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 1]];
    assert_eq!(all.iter().map(|tuple| arrangements(tuple).unwrap()).sum::<i64>(), 24);
    assert_eq!(arrangements(&[0, 1, 2, 2, 3]), Some(5 * 12));
}

/// Positions that are too few, and weights of another shape.
#[test]
fn broken_models_are_unknown() {
    let mut short = staircase();
    short.positions = Some(tensor(&[1, 1], &[0.0]));
    let mut other = staircase();
    other.layers[0].feed_forward.as_mut().unwrap().w1 = tensor(&[1, 1], &[1.0]);
    let (p, bound) = (ratio(2.0), ratio(1.0));
    for model in [short, other] {
        assert_eq!(check(&model, Claim { p: &p, bound: &bound, function: FUNCTION, length: 2 }, None).0, None);
    }
}

/// Powers and slopes that are far too small, and far too large: some take all boxes that are allowed, but none takes much memory.
#[test]
fn extreme_exponents_come_to_an_end() {
    let model = staircase();
    for (p, bound, function) in [
        (1000.0, 1e-3, FUNCTION),
        (2.0, 1e-170, FUNCTION),
        (1e9, 1e-3, FUNCTION),
        (1.5, 1e-170, FUNCTION),
        (2.0, 1e-3, "exp(-1000000000*x1)"),
        (2.0, 1e-3, "exp(1000000000*x1)"),
        (2.0, 1e-3, "x1^1000000000"),
    ] {
        let (p, bound) = (ratio(p), ratio(bound));
        let found = check(&model, Claim { p: &p, bound: &bound, function, length: 2 }, None).0;
        assert_ne!(found, Some(true), "{function}");
    }
}
