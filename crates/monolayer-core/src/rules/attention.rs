//! Attention (eqs. 2 and 5) as programs compute it.
//!
//! Programs covered: keys, queries and values are projections of the tokens; scores are their products; the greatest score
//! is subtracted; exp is within its stated error; weights are normalized before or after the weighted sum, by a division
//! or by a product with the inverse; sums run in any order. A masked token may still be multiplied by a weight of zero, so
//! that every token of the sequence must be finite.

use std::ops::Range;

use super::ball::Ball;
use super::exp::exp_ball;
use super::matrix::Matrix;
use super::sum::{Arithmetic, Term, real_sum, sum};
use crate::model::{Attention, Mask};
use crate::number::Format;

/// Projections of the tokens of one sequence, `[n, heads s]` each; the start token comes first where there is one.
pub struct Projected {
    /// Keys.
    pub keys: Vec<Ball>,
    /// Values.
    pub values: Vec<Ball>,
    /// Queries.
    pub queries: Vec<Ball>,
    /// heads s.
    pub(super) width: usize,
}

/// Projects all tokens of a sequence; nothing where a program may overflow, in a score that a mask hides too.
pub fn project(arithmetic: Arithmetic, layer: &Attention<Matrix>, tokens: &[Vec<Ball>]) -> Option<Projected> {
    let width = layer.heads * layer.size;
    let all = |matrix: &Matrix| {
        let one = |at: usize| {
            let terms = matrix.weights(at % width).map(|(c, w)| Term::weighted(w, tokens[at / width][c]));
            Some(sum(arithmetic, terms)?.computed())
        };
        (0..tokens.len() * width).map(one).collect::<Option<Vec<_>>>()
    };
    let (keys, queries) = (all(&layer.w_k)?, all(&layer.w_q)?);
    let values = if layer.w_v == layer.w_k { keys.clone() } else { all(&layer.w_v)? };
    let projected = Projected { keys, values, queries, width };
    projected.scores_fit(arithmetic, layer.size).then_some(projected)
}

impl Projected {
    /// Whether no score of any pair of tokens can overflow.
    fn scores_fit(&self, arithmetic: Arithmetic, size: usize) -> bool {
        let Arithmetic::Float { format, .. } = arithmetic else { return true };
        let top = |of: &[Ball], c: usize| of[c..].iter().step_by(self.width).map(|x| x.top()).max().unwrap_or(0);
        let greatest = (0..self.width).map(|c| top(&self.keys, c) + top(&self.queries, c)).max().unwrap_or(0);
        greatest + super::ball::bits(size as u128) + 2 < format.top()
    }

    /// What token i reads, a ball per coordinate of the heads' values; nothing where a program may overflow.
    pub fn read(&self, arithmetic: Arithmetic, layer: &Attention<Matrix>, i: usize, seen: &Seen) -> Option<Vec<Ball>> {
        let mut out = Vec::with_capacity(self.width);
        for head in 0..layer.heads {
            let columns = head * layer.size..(head + 1) * layer.size;
            let scores = self.scores(arithmetic, i, &columns, seen)?;
            let weights = weights(arithmetic, layer.hard, &scores);
            for c in columns {
                let values: Vec<Ball> = seen.iter().map(|j| self.values[j * self.width + c]).collect();
                out.push(average(arithmetic, &weights, &values)?);
            }
        }
        Some(out)
    }

    /// The scores of the tokens that i sees.
    pub fn scores(&self, arithmetic: Arithmetic, i: usize, columns: &Range<usize>, seen: &Seen) -> Option<Vec<Ball>> {
        let one = |j: usize| {
            let pair = |c: usize| Term::product(self.keys[j * self.width + c], self.queries[i * self.width + c]);
            Some(sum(arithmetic, columns.clone().map(pair))?.computed())
        };
        seen.iter().map(one).collect()
    }
}

/// The tokens that a token sees: a range, and the start token, which is number 0 where there is one; or some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen(Vec<Range<usize>>);

impl Seen {
    /// What token i of a sequence sees (of `n` tokens, the start token included).
    pub fn new(mask: &Mask, i: usize, n: usize, start: bool) -> Self {
        let s = usize::from(start);
        // Among the sequence's own tokens, the start token being number -1.
        let own = n - s;
        let range = match mask {
            Mask::None => 0..own,
            Mask::Causal => 0..(i + 1 - s.min(i + 1)),
            Mask::Prefix(k) => 0..own.min((*k).max(i + 1 - s)),
            Mask::Band(before, after) => {
                let first = i.saturating_sub(s).saturating_sub(if i < s { 0 } else { *before });
                first..own.min((i + 1).saturating_add(*after).saturating_sub(s))
            }
            Mask::Matrix(size, bytes) => {
                let mut runs: Vec<_> = std::iter::once(0..s).collect();
                if i >= s {
                    let row = &bytes[(i - s) * size..];
                    runs.extend((0..own).filter(|&j| row[j] == 1).map(|j| j + s..j + s + 1));
                }
                return Self(runs);
            }
        };
        Self(vec![0..s, range.start + s..range.end + s])
    }

    /// The tokens.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().flat_map(Clone::clone)
    }

    /// Some tokens.
    pub(super) fn of(tokens: &[usize]) -> Self {
        Self(tokens.iter().map(|&j| j..j + 1).collect())
    }

    /// How many there are, where they are the first ones of the sequence.
    pub fn first(&self) -> Option<usize> {
        let [start, own] = &self.0[..] else { return None };
        (own.start == start.end).then_some(own.end)
    }

    /// The ranges that they make up.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }
}

/// The weights of scores.
pub fn weights(arithmetic: Arithmetic, hard: bool, scores: &[Ball]) -> Weights {
    let any = || Weights::Some(vec![true; scores.len()]);
    if hard { hardmax(scores) } else { softmax(arithmetic, scores).unwrap_or_else(any) }
}

/// Attention weights up to a common factor.
pub enum Weights {
    /// Each within its ball.
    Known(Vec<Ball>),
    /// Those marked may have any weight from 0 on, the others have none.
    Some(Vec<bool>),
}

/// Softmax up to a common factor; nothing where a score is so uncertain that nothing is known.
///
/// **Rule 3.** Let computed scores be s(j), their greatest M, and c any number. A program's weight before it is normalized is
/// E(j) = exp(d(j)) (1 + t) + w with d(j) the rounded s(j) - M, |t| <= 2 `exp_ulp` 2^-p, and |w| at most the smallest normal number.
/// So exp(M - c) E(j) is exp(s(j) - c + v) (1 + t) + exp(M - c) w, |v| <= 2^-p |s(j) - M|; the factor is the same for all j,
/// and an average does not see it.
fn softmax(arithmetic: Arithmetic, scores: &[Ball]) -> Option<Weights> {
    let c = scores.iter().fold(scores[0], |c, s| if c.middle().is_below(s.middle()) { *s } else { c });
    let shifted: Vec<Ball> = scores.iter().map(|s| s.plus(c.middle().minus())).collect();
    let Arithmetic::Float { format, exp_ulp } = arithmetic else {
        return Some(Weights::Known(shifted.into_iter().map(exp_ball).collect::<Option<_>>()?));
    };
    // |M - c|: M is at least the lower end of the score around c, and at most the greatest upper end.
    let mut off = c.spread().size();
    for s in &shifted {
        let (_, high, e) = s.ends();
        let high = Ball::pack(high.max(0), 0, e).size();
        off = if off.is_below(high) { high } else { off };
    }
    let p = format.bits();
    let normal = exp_ball(off)?.size().times(Ball::power(format.least() + p - 1)).within();
    let one = |s: &Ball| {
        let gap = s.size().plus(off).size().scaled(-p).within();
        let e = exp_ball(s.plus(gap))?;
        let relative = e.size().times(Ball::pack(2 * i128::from(exp_ulp), 0, -p)).within();
        Some(e.plus(relative).plus(normal))
    };
    Some(Weights::Known(shifted.iter().map(one).collect::<Option<_>>()?))
}

/// Hardmax: equal weights for those that surely share the greatest score, else any for those that may have it.
fn hardmax(scores: &[Ball]) -> Weights {
    // The greatest lower end.
    let low = |s: &Ball| s.middle().plus(Ball { m: -(s.r as i64), r: 0, e: s.e });
    let best = scores.iter().reduce(|best, s| if low(best).is_below(low(s)) { s } else { best });
    let marked: Vec<bool> = scores.iter().map(|s| !best.is_some_and(|best| s.is_below(*best))).collect();
    let winners: Vec<&Ball> = scores.iter().zip(&marked).filter(|(_, may)| **may).map(|(s, _)| s).collect();
    if winners.len() > 1 && winners.iter().any(|s| s.r > 0 || **s != *winners[0]) {
        return Weights::Some(marked);
    }
    Weights::Known(marked.iter().map(|may| if *may { Ball::power(0) } else { Ball::ZERO }).collect())
}

/// The average of the values with these weights, as a program computes it.
///
/// **Rule 4.** For weights W(j) >= 0 with sum T > 0 and any number a, sum W v / T - a = sum W (v - a) / T. Every term of a
/// program's average carries at most 2 n + 2 factors 1 + d or 1 / (1 + d), |d| <= 2^-p: a product or division, the
/// additions of numerator and denominator, an inverse. So it is off by at most g A, g = (2 n + 2) / (2^p - 2 n - 2) and
/// A = sum W |v| / T, and, where something underflows, by eta (2 n + 2 + sum |v|): products, weights and the quotient lose
/// eta / 2 each, the first are divided by no less than 1/2, and later roundings less than double it.
fn average(arithmetic: Arithmetic, weights: &Weights, values: &[Ball]) -> Option<Ball> {
    let n = values.len();
    let largest = values.iter().map(|v| v.top()).max()?;
    if !sums_fit(arithmetic, largest, n) {
        return None;
    }
    let hull = |may: &dyn Fn(usize) -> bool| (0..n).filter(|j| may(*j)).map(|j| values[j]).reduce(Ball::hull);
    let (exact, mean) = match weights {
        Weights::Known(weights) => {
            let sizes: Vec<Ball> = values.iter().map(|v| v.size()).collect();
            match (exact_average(weights, values), exact_average(weights, &sizes)) {
                (Some(exact), Some(mean)) => (exact, mean.size()),
                _ => (hull(&|_| true)?, Ball::power(largest)),
            }
        }
        Weights::Some(marked) => (hull(&|j| marked[j])?, Ball::power(largest)),
    };
    let Arithmetic::Float { format, .. } = arithmetic else { return Some(exact) };
    if let Weights::Known(weights) = weights
        && let [(w, v)] = weights.iter().zip(values).filter(|(w, _)| !w.is_zero()).collect::<Vec<_>>()[..]
        && w.r == 0
    {
        // One weight of 1 and zeros: nothing is rounded.
        return Some(*v);
    }
    let all = values.iter().map(|v| Term::addend(v.size()));
    rounded_average(format, n, (exact, mean), real_sum(all))
}

/// Rule 4's bound around an average of n values: `exact` is that of the weights, `mean` that of the values' sizes, `all` their sum.
pub(super) fn rounded_average(format: Format, n: usize, (exact, mean): (Ball, Ball), all: Ball) -> Option<Ball> {
    let k = 2 * n + 2;
    let left = (1_usize << format.bits()).checked_sub(k).filter(|left| *left > 0)?;
    let relative = mean.times(Ball::whole(k)).quotient_above(Ball::whole(left))?;
    let absolute = all.plus(Ball::whole(k)).size().scaled(format.least());
    Some(exact.plus(relative.plus(absolute).within()))
}

/// Whether no sum of n numbers below 2^largest in size can overflow, nor what rounding makes of it.
pub(super) fn sums_fit(arithmetic: Arithmetic, largest: i32, n: usize) -> bool {
    let Arithmetic::Float { format, .. } = arithmetic else { return true };
    largest + super::ball::bits(n as u128) + 2 < format.top()
}

/// sum W v / sum W, without rounding.
fn exact_average(weights: &[Ball], values: &[Ball]) -> Option<Ball> {
    let total = real_sum(weights.iter().map(|w| Term::addend(*w)));
    let products = weights.iter().zip(values).map(|(w, v)| Term::product(*w, *v));
    let near = real_sum(products).near_quotient(total)?;
    let moved = weights.iter().zip(values).map(|(w, v)| Term::product(*w, v.plus(near.minus())));
    Some(near.plus(real_sum(moved).quotient_above(total)?.within()))
}
