//! The blocks of a model as programs compute them: the skip around attention (eq. 2), hidden units (eq. 3), scores.

use std::iter;

use super::ball::Ball;
use super::prepare::{Attention, FeedForward, Head, Row};
use super::sum::{Arithmetic, Sum, Term, real_sum, sum, weighted_sum};
use crate::number::Dyadic;

/// Errors of heads' values are kept apart up to this many.
const SHARED: usize = 4;

/// A token after attention: x + `W_O` z.
///
/// The error of a head's value is one number that all coordinates share. Kept apart, it cancels where a reader of the token is
/// orthogonal to its column of `W_O`.
pub struct Attended {
    /// Each coordinate without the shared errors.
    pub own: Vec<Ball>,
    /// The errors of the heads' values, around zero.
    pub shared: Vec<Ball>,
    /// Each coordinate with them; midpoints and exponents are the same.
    pub whole: Vec<Ball>,
}

/// The skip: every coordinate is a sum of the incoming number and products of `W_O` and z.
pub fn skip(arithmetic: Arithmetic, layer: Option<&Attention>, x: &[Ball], z: &[Ball]) -> Option<Attended> {
    let Some(layer) = layer else {
        return Some(Attended { own: x.to_vec(), shared: vec![], whole: x.to_vec() });
    };
    let shared = if z.len() <= SHARED { z.iter().map(|z| z.spread()).collect() } else { vec![] };
    let mut out = Attended { own: x.to_vec(), shared, whole: x.to_vec() };
    for (c, row) in layer.w_o.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
        let own = iter::once(Term::addend(x[c]));
        let terms = own.clone().chain(row.iter().map(|&(k, w)| Term::weighted(w, z[k])));
        let sum = sum(arithmetic, terms)?;
        if out.shared.is_empty() {
            out.own[c] = sum.computed();
            out.whole[c] = out.own[c];
            continue;
        }
        let middle = own.chain(row.iter().map(|&(k, w)| Term::weighted(w, z[k].middle())));
        let shared = real_sum(row.iter().map(|&(k, w)| Term::weighted(w, out.shared[k])));
        (out.own[c], out.whole[c]) = real_sum(middle).plus(sum.rounding).widened(shared, arithmetic.bits());
    }
    Some(out)
}

/// A layer: attention or none, feed-forward or none, and how each hidden unit reads the heads' values.
pub struct Block<'a> {
    /// The attention.
    pub attention: Option<&'a Attention>,
    /// The feed-forward part.
    pub part: Option<&'a FeedForward>,
    /// Columns of `W_O`, where errors of the heads' values are kept apart.
    columns: Vec<Vec<(usize, Ball)>>,
    /// W1(j) . `W_O`(k) for each unit and column.
    gains: Vec<Vec<Ball>>,
}

/// A hidden unit that is not certainly off.
pub struct Unit {
    /// Its number.
    pub index: usize,
    /// What rounding adds to its sum.
    rounding: Ball,
    /// What it has computed before the ReLU.
    pub before: Ball,
    /// What it gives.
    pub after: Ball,
}

/// A token after the feed-forward layer.
pub struct Output {
    /// The coordinates.
    pub whole: Vec<Ball>,
    /// What rounding of the last sums adds to each.
    rounding: Vec<Ball>,
    /// The units that may be on.
    pub units: Vec<Unit>,
}

impl<'a> Block<'a> {
    /// Prepares a layer.
    pub fn new(attention: Option<&'a Attention>, part: Option<&'a FeedForward>) -> Self {
        let width = attention.map_or(0, |a| a.heads * a.size);
        let kept = if width <= SHARED { width } else { 0 };
        let mut columns = vec![vec![]; kept];
        for (c, row) in attention.iter().flat_map(|a| a.w_o.iter().enumerate()) {
            for &(k, w) in row.iter().filter(|(k, _)| *k < kept) {
                columns[k].push((c, Ball::exact(w)));
            }
        }
        let mut block = Self { attention, part, columns, gains: vec![] };
        for row in part.iter().flat_map(|part| &part.w1) {
            let row: Vec<(usize, Ball)> = row.iter().map(|&(c, w)| (c, Ball::exact(w))).collect();
            block.gains.push(block.columns.iter().map(|column| inner(&row, column)).collect());
        }
        block
    }

    /// What unit j reads of each coordinate of the heads' values.
    pub fn gains(&self, j: usize) -> &[Ball] {
        &self.gains[j]
    }

    /// One unit; nothing where a program may overflow.
    pub fn unit(&self, arithmetic: Arithmetic, token: &Attended, j: usize) -> Option<Unit> {
        let part = self.part.expect("a unit has a layer");
        let weighted = |&(c, w): &(usize, Dyadic)| (w, token.own[c], token.whole[c]);
        let Sum { exact, rounding, .. } =
            weighted_sum(arithmetic, part.w1[j].iter().map(weighted), Ball::exact(part.b1[j]))?;
        let shared = self.gains[j].iter().zip(&token.shared).map(|(g, s)| g.times(*s));
        let before = shared.fold(exact, Ball::plus);
        let before = before.plus(rounding).cut(arithmetic.bits());
        Some(Unit { index: j, rounding, before, after: before.relu() })
    }

    /// The token plus what its units add; `units` has all that are not certainly off.
    pub fn output(&self, arithmetic: Arithmetic, token: &Attended, units: Vec<Unit>) -> Option<Output> {
        let Some(part) = self.part else {
            let rounding = vec![Ball::ZERO; token.whole.len()];
            return Some(Output { whole: token.whole.clone(), rounding, units });
        };
        let (d, on) = (token.whole.len(), units.iter().filter(|unit| !unit.after.is_zero()).collect::<Vec<_>>());
        let coordinate = |c: usize| {
            let one = (Dyadic::new(1, 0), token.whole[c], token.whole[c]);
            let units = on.iter().map(|unit| (part.w2[unit.index * d + c], unit.after, unit.after));
            weighted_sum(arithmetic, units.chain([one]), Ball::exact(part.b2[c]))
        };
        let sums = (0..d).map(coordinate).collect::<Option<Vec<Sum>>>()?;
        let whole = sums.iter().map(|sum| sum.computed()).collect();
        Some(Output { whole, rounding: sums.iter().map(|sum| sum.rounding).collect(), units })
    }

    /// sum of a(c) y(c) over the coordinates y that a program has computed, with what its errors share kept together.
    ///
    /// **Lemma 5.** With H the token, W1 H + b1 + e before the ReLU of the units that are certainly on, and y = H + W2 relu + b2 + f,
    /// a.y = (a + sum over units on of A(j) W1(j)) . H + sum over units on of A(j) (b1(j) + e(j)) + sum over other units of
    /// A(j) relu(j) + a . (b2 + f), A(j) = a . W2(j).
    pub fn reading(&self, token: &Attended, output: &Output, a: &[(usize, Ball)]) -> Ball {
        let mut along = vec![Ball::ZERO; token.own.len()];
        for &(c, a) in a {
            along[c] = a;
        }
        let mut shared: Vec<Vec<Term>> = self.columns.iter().map(|w| vec![Term::addend(inner(a, w))]).collect();
        let mut terms = Vec::new();
        if let Some(part) = self.part {
            let last = |&(c, a): &(usize, Ball)| Term::product(a, Ball::exact(part.b2[c]).plus(output.rounding[c]));
            terms.extend(a.iter().map(last));
            for unit in output.units.iter().filter(|unit| !unit.after.is_zero()) {
                let j = unit.index;
                let d = token.own.len();
                let gain = real_sum(a.iter().map(|&(c, a)| Term::weighted(part.w2[j * d + c], a)));
                if gain.is_zero() {
                    continue;
                }
                if !unit.before.is_not_negative() {
                    terms.push(Term::product(gain, unit.after));
                    continue;
                }
                terms.push(Term::product(gain, Ball::exact(part.b1[j]).plus(unit.rounding)));
                for &(c, w) in &part.w1[j] {
                    along[c] = along[c].plus(gain.times(Ball::exact(w)));
                }
                for (terms, g) in shared.iter_mut().zip(&self.gains[j]) {
                    terms.push(Term::product(gain, *g));
                }
            }
        }
        terms.extend(along.iter().zip(&token.own).map(|(a, x)| Term::product(*a, *x)));
        terms.extend(shared.iter().zip(&token.shared).map(|(g, s)| Term::product(real_sum(g.iter().copied()), *s)));
        real_sum(terms.iter().copied())
    }
}

/// The inner product of two sparse vectors, in order of their coordinates.
fn inner(a: &[(usize, Ball)], b: &[(usize, Ball)]) -> Ball {
    let both = a.iter().filter_map(|(c, x)| Some((*x, b[b.binary_search_by_key(c, |(c, _)| *c).ok()?].1)));
    real_sum(both.map(|(x, y)| Term::product(x, y)))
}

/// The score of a row of the head, or an output of it.
pub fn score(arithmetic: Arithmetic, head: &Head, l: usize, y: &[Ball]) -> Option<Sum> {
    weighted_sum(arithmetic, head.weight[l].iter().map(|&(c, w)| (w, y[c], y[c])), Ball::exact(head.bias[l]))
}

/// Row a minus row b.
pub fn difference(a: &Row, b: &Row) -> Vec<(usize, Ball)> {
    let mut all: Vec<(usize, Dyadic, Dyadic)> = a.iter().map(|&(c, w)| (c, w, Dyadic::ZERO)).collect();
    all.extend(b.iter().map(|&(c, w)| (c, Dyadic::ZERO, w)));
    all.sort_by_key(|(c, ..)| *c);
    let mut out: Vec<(usize, Ball)> = Vec::new();
    for (c, x, y) in all {
        let x = Ball::exact(x).plus(Ball::exact(y).minus());
        match out.last_mut() {
            Some((last, sum)) if *last == c => *sum = sum.plus(x),
            _ => out.push((c, x)),
        }
    }
    out
}
