//! What is so, as far as exact arithmetic says: contexts, distances of contexts, ranks.

use std::collections::{BTreeMap, HashMap};

use dashu_ratio::RBig;

use super::case::{Data, Mask, Model, Token, Wanted};
use super::exact::{self, Big, Real, big};
use super::graph::Graph;

/// What the architecture can tell apart: tokens of one class have equal outputs for all weights. Attention sees a token and
/// the normalized multiset of classes of visible tokens, layer by layer; `layers` says how many layers are looked through.
pub fn classes(model: &Model, data: &Data, layers: usize) -> Vec<Vec<usize>> {
    let mut vectors: Vec<&Token> = Vec::new();
    let mut first: HashMap<(usize, usize), usize> = HashMap::new();
    let mut states: Vec<Vec<usize>> = Vec::new();
    let start = model.start.map(Token::Word);
    for sequence in &data.sequences {
        let mut state = Vec::new();
        for (place, token) in start.iter().chain(sequence).enumerate() {
            let id = vectors.iter().position(|t| *t == token).unwrap_or_else(|| {
                vectors.push(token);
                vectors.len() - 1
            });
            let next = first.len();
            state.push(*first.entry((id, if model.positions.is_some() { place } else { 0 })).or_insert(next));
        }
        states.push(state);
    }
    let skip = usize::from(model.start.is_some());
    for layer in &model.layers[..layers] {
        let Some(a) = &layer.attention else { continue };
        let mut names: HashMap<(usize, Vec<(usize, usize)>), usize> = HashMap::new();
        for state in &mut states {
            let next: Vec<usize> = (0..state.len())
                .map(|i| {
                    let fresh = names.len();
                    *names.entry((state[i], visible(a.mask, state, i, skip))).or_insert(fresh)
                })
                .collect();
            *state = next;
        }
    }
    states.iter().map(|s| s[skip..].to_vec()).collect()
}

/// The normalized multiset of classes that place i sees.
fn visible(mask: Mask, state: &[usize], i: usize, skip: usize) -> Vec<(usize, usize)> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for (j, &class) in state.iter().enumerate() {
        if mask.sees(i as i64 - skip as i64, j as i64 - skip as i64) {
            *counts.entry(class).or_default() += 1;
        }
    }
    let common = counts.values().fold(0, |a, &b| gcd(b, a));
    counts.into_iter().map(|(class, count)| (class, count / common)).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether a token may be called impossible: another token of its class, with another label that is at least as frequent.
pub fn may_be_impossible(model: &Model, data: &Data) -> Vec<bool> {
    let classes = classes(model, data, model.layers.len());
    let flat: Vec<(usize, &Wanted)> = classes.iter().flatten().copied().zip(data.wanted.iter().flatten()).collect();
    let count = |class: usize, wanted: &Wanted| flat.iter().filter(|(c, w)| *c == class && *w == wanted).count();
    let other = |class: usize, wanted: &Wanted| {
        let own = count(class, wanted);
        flat.iter().any(|(c, w)| *c == class && *w != wanted && count(class, w) >= own)
    };
    flat.iter().map(|(class, wanted)| other(*class, wanted)).collect()
}

/// log2 of a number that is not 0.
pub fn log2(x: &Big) -> f64 {
    let short = x.clone().with_precision(53).value();
    let repr = short.repr();
    let digits = repr.digits_ub() as isize;
    let mantissa = Big::from_parts(repr.significand().clone(), -digits).to_f64().value();
    (repr.exponent() + digits) as f64 + mantissa.abs().log2()
}

fn square(vector: &[Real]) -> Real {
    vector.iter().fold(Real::of(0.0), |sum, x| sum.add(&x.times(x)))
}

/// log2 of the largest norm after the attention of a layer, and of the smallest distance of two tokens of different
/// contexts (minus infinity for 0). Nothing where arithmetic does not decide.
pub fn mapping(model: &Model, data: &Data, layer: usize) -> Option<(f64, f64)> {
    let classes: Vec<usize> = classes(model, data, layer + 1).concat();
    let mut points: Vec<(usize, Vec<Real>)> = Vec::new();
    for (i, sequence) in data.sequences.iter().enumerate() {
        let graph = Graph::new(model, sequence);
        let values = exact::run(&graph)?;
        for token in &graph.attended[layer] {
            let class = classes[points.len()];
            points.push((class, token.iter().map(|&n| values[n].clone()).collect()));
        }
        debug_assert!(i < data.sequences.len());
    }
    let half_log = |x: &Real| match x.sign() {
        Some(0) => Some(f64::NEG_INFINITY),
        // Certain to at least 40 bits.
        Some(_) if exact::size(&x.mid) - 40.0 > x.error => Some(log2(&x.mid) / 2.0),
        _ => None,
    };
    let mut most = f64::NEG_INFINITY;
    let mut least = f64::INFINITY;
    for (i, (class, x)) in points.iter().enumerate() {
        most = most.max(half_log(&square(x))?);
        for (_, y) in points[..i].iter().filter(|(other, _)| other != class) {
            let difference: Vec<Real> = x.iter().zip(y).map(|(x, y)| x.minus(y)).collect();
            least = least.min(half_log(&square(&difference))?);
        }
    }
    Some((most, least))
}

/// The rank of a matrix, exactly.
pub fn rank(data: &[f64], rows: usize, columns: usize) -> usize {
    let exact = |x: f64| RBig::try_from(x).expect("finite");
    let mut matrix: Vec<Vec<RBig>> =
        (0..rows).map(|r| data[r * columns..(r + 1) * columns].iter().map(|&x| exact(x)).collect()).collect();
    let mut rank = 0;
    for c in 0..columns {
        let Some(pivot) = (rank..rows).find(|&r| !matrix[r][c].is_zero()) else { continue };
        matrix.swap(rank, pivot);
        let top = matrix[rank].clone();
        for row in &mut matrix[rank + 1..] {
            let factor = &row[c] / &top[c];
            for (x, t) in row.iter_mut().zip(&top) {
                *x = &*x - &factor * t;
            }
        }
        rank += 1;
    }
    rank
}

/// Whether |x - y| is at most the tolerance, exactly.
pub fn within(x: f64, y: f64, tolerance: f64) -> bool {
    if !x.is_finite() {
        return false;
    }
    let difference = big(x) - big(y);
    let size = if difference < Big::ZERO { -difference } else { difference };
    size <= big(tolerance)
}
