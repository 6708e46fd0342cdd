//! Programs: every covered evaluation of a graph in binary32 or binary64, one gene per operation.

use super::float::Float;
use super::graph::{Factor, Graph, Operation, Term};
use super::random::Random;
use super::sum::{self, CHAIN_DOWN, CHAIN_UP, DOWN, Item, UP};

/// Every choice of a program: for a sum its tree and fusing, for an exponential its error, for a mean when to divide.
pub type Genes = Vec<u32>;

/// Left to right, not fused, the exponential rounded correctly, normalized before.
pub fn plain(graph: &Graph) -> Genes {
    vec![NORMALIZED_BEFORE; graph.nodes.len()]
}

pub fn random(graph: &Graph, random: &mut Random) -> Genes {
    graph.nodes.iter().map(|_| random.bits() as u32).collect()
}

/// A bit of the gene of a mean: weights are normalized before the weighted sum.
const NORMALIZED_BEFORE: u32 = 1 << 31;

/// The error of an exponential, in steps.
fn steps(gene: u32) -> i64 {
    match gene % 16 {
        UP | CHAIN_UP => 4,
        DOWN | CHAIN_DOWN => -4,
        0 => 0,
        _ => i64::from(gene / 16 % 9) - 4,
    }
}

/// All quantities of a program, in the order of the graph.
pub fn run<F: Float>(graph: &Graph, genes: &[u32], values: &mut Vec<F>) {
    values.clear();
    let mut items: Vec<Item<F>> = Vec::new();
    for (node, &gene) in graph.nodes.iter().zip(genes) {
        let value = match &node.operation {
            Operation::Sum(terms) => {
                items.clear();
                items.extend(terms.iter().map(|term| item(term, values)));
                sum::add(&mut items, gene)
            }
            &Operation::Relu(x) => relu(values[x]),
            Operation::Max(all) => max(all, values),
            &Operation::Exp(a, b) => (values[a] - values[b]).exp_moved(steps(gene)),
            &Operation::Equal(a, b) => {
                if values[a] == values[b] {
                    F::ONE
                } else {
                    F::ZERO
                }
            }
            &Operation::Quotient(a, b) => values[a] / values[b],
            Operation::Mean { exps, weights, values: column, total } => {
                let before = gene & NORMALIZED_BEFORE != 0;
                items.clear();
                let factors = if before { weights } else { exps };
                items.extend(factors.iter().zip(column).map(|(&w, &v)| Item::Product(values[w], values[v])));
                let sum = sum::add(&mut items, gene);
                if before { sum } else { sum / values[*total] }
            }
        };
        values.push(value);
    }
}

fn number<F: Float>(factor: Factor, values: &[F]) -> F {
    match factor {
        Factor::Number(x) => F::of(x),
        Factor::Node(i) => values[i],
    }
}

fn item<F: Float>(term: &Term, values: &[F]) -> Item<F> {
    match *term {
        Term::Product(a, b) => Item::Product(number(a, values), number(b, values)),
        Term::Plain(a) => Item::Value(number(a, values)),
    }
}

/// As PyTorch has it: what is not a number stays so.
fn relu<F: Float>(x: F) -> F {
    if x < F::ZERO { F::ZERO } else { x }
}

fn max<F: Float>(all: &[usize], values: &[F]) -> F {
    all.iter().map(|&i| values[i]).reduce(|a, b| if b > a || b.wide().is_nan() { b } else { a }).unwrap_or(F::ZERO)
}

/// The label of some scores: ties go to the first; nothing where one of them is no number.
pub fn label(scores: impl Iterator<Item = f64>) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (l, score) in scores.enumerate() {
        if score.is_nan() {
            return None;
        }
        if best.is_none_or(|(_, most)| score > most) {
            best = Some((l, score));
        }
    }
    best.map(|(l, _)| l)
}
