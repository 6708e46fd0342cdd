//! Small models of vectors beside functions, with a claimed distance; the true one by quadrature.

use super::case::{Arithmetic, Attention, Block, Case, Claim, Data, Layer, Mask, Model, Token};
use super::graph::Graph;
use super::program;
use super::random::Random;

type Function = fn(&[f64], usize) -> f64;

const FUNCTIONS: [(&str, Function); 4] = [
    ("x1*mean(x1)", |x, i| x[i] * mean(x)),
    ("x1", |x, i| x[i]),
    ("max(x1) - x1", |x, i| x.iter().copied().fold(f64::NEG_INFINITY, f64::max) - x[i]),
    ("x1^2 + 1/4", |x, i| x[i] * x[i] + 0.25),
];

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn block(random: &mut Random, fit: impl Fn(f64) -> f64) -> Block {
    let hidden = 1 + random.below(5);
    let mut numbers = |n: usize, scale: f64| (0..n).map(|_| fit(scale * random.signed())).collect::<Vec<f64>>();
    Block { hidden, w1: numbers(hidden, 2.0), b1: numbers(hidden, 1.0), w2: numbers(hidden, 1.0), b2: numbers(1, 0.5) }
}

/// A staircase: flat between steep ramps, the number itself taken away again.
fn stairs(random: &mut Random, fit: impl Fn(f64) -> f64, low: f64, high: f64) -> Block {
    let steps = 1 + random.below(3);
    // Take away x where it is on either side of 0.
    let (mut w1, mut b1, mut w2) = (vec![1.0, -1.0], vec![0.0, 0.0], vec![-1.0, 1.0]);
    for _ in 0..steps {
        let steep = 2_f64.powi(3 + random.below(16) as i32);
        let at = low + (high - low) * (0.5 + 0.5 * random.signed());
        let rise = fit(random.signed());
        w1.extend([steep, steep]);
        b1.extend([fit(-steep * at), fit(fit(-steep * at) - 1.0)]);
        w2.extend([rise, -rise]);
    }
    if random.once_in(3) {
        let one = random.below(w2.len());
        w2[one] = fit(w2[one] * (1.0 + 1e-3 * random.signed()));
    }
    Block { hidden: w1.len(), w1, b1, w2, b2: vec![fit(random.signed())] }
}

/// A model of scalars on [0, 1]^n and a bound that is clearly enough, clearly not, or near the truth.
pub fn case(random: &mut Random, single: bool) -> Case {
    let fit = |x: f64| if single { f64::from(x as f32) } else { x };
    let plateaus = random.once_in(4);
    let pre =
        if plateaus { Some(stairs(random, fit, 0.0, 1.0)) } else { random.once_in(2).then(|| block(random, fit)) };
    let mut one = |scale: f64| vec![fit(scale * random.signed())];
    let attention = Attention {
        hard: false,
        heads: 1,
        size: 1,
        mask: Mask::None,
        w_q: one(2.0),
        w_k: one(2.0),
        w_v: one(1.0),
        w_o: one(1.0),
    };
    let attention = if !plateaus && random.once_in(3) { None } else { Some(attention) };
    let last = if plateaus { stairs(random, fit, -2.0, 2.0) } else { block(random, fit) };
    let layers = vec![Layer { attention, block: Some(last) }];
    let model = Model { single, d: 1, embedding: None, start: None, positions: None, pre, layers, head: None };
    let (name, _) = FUNCTIONS[random.below(FUNCTIONS.len())];
    let length = 1 + random.below(2);
    let (measured, _) = distance(&model, name, length);
    let bound = measured * [0.25, 0.7, 0.95, 1.0, 1.05, 1.5, 4.0][random.below(7)];
    let arithmetic = match random.below(4) {
        0 if single => Arithmetic::Single,
        0 | 1 => Arithmetic::Double,
        _ => Arithmetic::Real,
    };
    Case { kind: "distance", model, data: Data::default(), arithmetic, claim: Claim::Distance(2, bound, name, length) }
}

/// d_2 by the midpoint rule, and how far off it may be (seen from a coarser rule).
pub fn distance(model: &Model, function: &str, length: usize) -> (f64, f64) {
    let parts = if length > 1 { 48 } else { 1024 };
    let (fine, coarse) = (rule(model, function, length, parts), rule(model, function, length, parts / 2));
    (fine, 4.0 * (fine - coarse).abs() + 0.03 * fine)
}

fn rule(model: &Model, function: &str, length: usize, parts: usize) -> f64 {
    let f = FUNCTIONS.iter().find(|(name, _)| *name == function).expect("one of these").1;
    let mut values: Vec<f64> = Vec::new();
    let mut sum = 0.0;
    for k in 0..parts.pow(length as u32) {
        let x: Vec<f64> =
            (0..length).map(|i| ((k / parts.pow(i as u32) % parts) as f64 + 0.5) / parts as f64).collect();
        let tokens: Vec<Token> = x.iter().map(|&x| Token::Vector(vec![x])).collect();
        let graph = Graph::new(model, &tokens);
        program::run(&graph, &program::plain(&graph), &mut values);
        sum += (0..length).map(|i| (values[graph.outputs[i][0]] - f(&x, i)).powi(2)).sum::<f64>();
    }
    (sum / parts.pow(length as u32) as f64).sqrt()
}
