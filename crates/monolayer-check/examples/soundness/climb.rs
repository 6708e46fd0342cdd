//! Climbing: programs whose choices push one quantity as far as possible.

use super::float::Float;
use super::graph::{Factor, Graph, Operation, Term};
use super::program::{self, Genes};
use super::random::Random;
use super::sum::{CHAIN_DOWN, CHAIN_UP, DOWN, METHODS, UP};

/// A linear combination of quantities, to be made as large as possible.
pub type Target = Vec<(usize, f64)>;

pub fn height<F: Float>(target: &Target, values: &[F]) -> f64 {
    target.iter().map(|&(i, c)| c * values[i].wide()).sum()
}

/// The derivative of the target with respect to every quantity, roughly.
fn derivatives(graph: &Graph, values: &[f64], target: &Target) -> Vec<f64> {
    let mut by = vec![0.0; graph.nodes.len()];
    for &(i, c) in target {
        by[i] += c;
    }
    let value = |f: Factor| match f {
        Factor::Number(x) => x,
        Factor::Node(i) => values[i],
    };
    for (at, node) in graph.nodes.iter().enumerate().rev() {
        let own = by[at];
        if own == 0.0 || own.is_nan() {
            continue;
        }
        match &node.operation {
            Operation::Sum(terms) => {
                for term in terms {
                    match *term {
                        Term::Product(a, b) => {
                            push(&mut by, a, own * value(b));
                            push(&mut by, b, own * value(a));
                        }
                        Term::Plain(a) => push(&mut by, a, own),
                    }
                }
            }
            &Operation::Relu(x) => by[x] += if values[x] > 0.0 { own } else { 0.0 },
            Operation::Max(all) => {
                if let Some(&most) = all.iter().find(|&&i| values[i] == values[at]) {
                    by[most] += own;
                }
            }
            &Operation::Exp(a, b) => {
                by[a] += own * values[at];
                by[b] -= own * values[at];
            }
            Operation::Equal(..) => {}
            &Operation::Quotient(a, b) => {
                by[a] += own / values[b];
                by[b] -= own * values[at] / values[b];
            }
            Operation::Mean { exps, values: column, total, .. } => {
                for (&e, &v) in exps.iter().zip(column) {
                    by[e] += own * values[v] / values[*total];
                    by[v] += own * values[e] / values[*total];
                }
                by[*total] -= own * values[at] / values[*total];
            }
        }
    }
    by
}

fn push(by: &mut [f64], factor: Factor, x: f64) {
    if let Factor::Node(i) = factor {
        by[i] += x;
    }
}

/// A gene that moves a quantity up or down.
fn greedy(random: &mut Random, up: bool) -> u32 {
    let seed = random.bits() as u32 & !(METHODS - 1);
    let chain = random.once_in(4);
    seed | match (chain, up) {
        (false, true) => UP,
        (false, false) => DOWN,
        (true, true) => CHAIN_UP,
        (true, false) => CHAIN_DOWN,
    }
}

/// Genes in which every rounding goes the way that helps the target, as far as derivatives know.
pub fn steered(graph: &Graph, values: &[f64], target: &Target, random: &mut Random) -> Genes {
    let by = derivatives(graph, values, target);
    let gene = |by: f64, random: &mut Random| {
        if by == 0.0 || by.is_nan() { random.bits() as u32 } else { greedy(random, by > 0.0) }
    };
    by.into_iter().map(|by| gene(by, random)).collect()
}

/// Climbs for so many evaluations; `seen` gets every run.
pub fn climb<F: Float>(
    graph: &Graph,
    target: &Target,
    evaluations: usize,
    random: &mut Random,
    mut seen: impl FnMut(&[F]),
) {
    let mut values: Vec<F> = Vec::new();
    program::run(graph, &program::random(graph, random), &mut values);
    seen(&values);
    let wide: Vec<f64> = values.iter().map(|x| x.wide()).collect();
    let mut best = steered(graph, &wide, target, random);
    program::run(graph, &best, &mut values);
    seen(&values);
    let mut most = height(target, &values);
    for _ in 2..evaluations {
        let mut genes = best.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(genes.len());
            genes[at] = match random.below(4) {
                0 => random.bits() as u32,
                1 => greedy(random, true),
                2 => greedy(random, false),
                // Another seed, the same way.
                _ => (random.bits() as u32 & !(METHODS - 1)) | (genes[at] % METHODS),
            };
        }
        program::run(graph, &genes, &mut values);
        seen(&values);
        let height = height(target, &values);
        if height >= most || most.is_nan() {
            (best, most) = (genes, height);
        }
    }
}

/// The textbook bound on the target's error, to first order: every rounding times what it does to the target. Nothing where a
/// sum could overflow in some order, or where ties decide.
pub fn textbook(graph: &Graph, values: &[f64], target: &Target, single: bool) -> Option<f64> {
    let (unit, least, top) = if single {
        (2_f64.powi(-24), 2_f64.powi(-149), f64::from(f32::MAX))
    } else {
        (f64::EPSILON / 2.0, f64::from_bits(1), f64::MAX)
    };
    let by = derivatives(graph, values, target);
    let size = |f: Factor| match f {
        Factor::Number(x) => x.abs(),
        Factor::Node(i) => values[i].abs(),
    };
    let mut bound = 0.0;
    for (at, node) in graph.nodes.iter().enumerate() {
        let (terms, sum) = match &node.operation {
            Operation::Sum(terms) => {
                let of = |t: &Term| match *t {
                    Term::Product(a, b) => size(a) * size(b),
                    Term::Plain(a) => size(a),
                };
                (terms.len(), terms.iter().map(of).sum())
            }
            Operation::Mean { exps, values: column, total, .. } => {
                let sum: f64 = exps.iter().zip(column).map(|(&e, &v)| values[e] * values[v].abs()).sum();
                (exps.len() + 2, sum / values[*total])
            }
            &Operation::Exp(a, b) => (5, values[at] * (1.0 + (values[a] - values[b]).abs())),
            Operation::Quotient(..) => (1, values[at].abs()),
            Operation::Equal(..) => return None,
            Operation::Relu(_) | Operation::Max(_) => continue,
        };
        if !sum.is_finite() || sum > top / 4.0 {
            return None;
        }
        bound += by[at].abs() * (terms as f64 + 1.0) * (unit * sum + least);
    }
    Some(bound).filter(|b| b.is_finite())
}
