//! Attention of size 1 over long sequences, in which few tokens differ: for each query its sums grow from token to token.

use std::collections::BTreeMap;

use super::attention::{Projected, Seen, Weights, rounded_average, sums_fit, weights};
use super::ball::{Ball, shift};
use super::matrix::Matrix;
use super::network::Tick;
use super::sum::Arithmetic;
use crate::model::Attention;
use crate::parallel::parallel;

/// Shorter sequences are read token by token.
pub const LONG: usize = 512;
/// Bits of a table entry; sums of up to 2^24 of them fit an i128.
const ENTRY: i32 = 100;
const MOST_TOKENS: usize = 1 << 24;
/// Prefixes whose weights are further than this many binades below the greatest one of the sequence are read by themselves.
const DEEP: i32 = 32;

/// A sequence by its distinct keys and queries.
struct Repeated<'a> {
    projected: &'a Projected,
    arithmetic: Arithmetic,
    /// The number of each token's key and value, and a token that has them.
    kinds: Vec<usize>,
    examples: Vec<usize>,
    /// How many tokens there are of each.
    counts: Vec<usize>,
    /// An exponent above all values.
    largest: i32,
    /// The sizes of the first values summed up, for each number of them, in units of 2^(largest - `ENTRY`).
    sizes: Vec<u128>,
}

/// What a kind of token adds to the sums of a query: its weight, its weight times its value less a number, and its weight times the
/// size of its value, each in units of its own.
#[derive(Clone, Copy, Default)]
struct Entry {
    weight: (i128, u128),
    moved: (i128, u128),
    size: u128,
}

/// What every token reads in a head of size 1; nothing where that is better found token by token. Tokens that are not found this
/// way are left out.
///
/// **Rule 10.** Softmax weights that Rule 3 gives for all tokens of a sequence, with c their greatest score, hold for the tokens
/// that a query sees, too. With T the sum of their weights and P that of W (v - a), for any numbers a and b, the average is
/// a + b + (P - b T) / T.
pub fn read(
    arithmetic: Arithmetic,
    layer: &Attention<Matrix>,
    projected: &Projected,
    seen: &(impl Fn(usize) -> Seen + Sync),
    (threads, tick): (usize, Tick),
) -> Option<Vec<Option<Ball>>> {
    let n = projected.keys.len();
    if layer.hard || projected.width != 1 || n >= MOST_TOKENS {
        return None;
    }
    let repeated = Repeated::new(arithmetic, projected)?;
    let mut queries: BTreeMap<Kind, Vec<(usize, usize)>> = BTreeMap::new();
    for i in 0..n {
        queries.entry(kind(projected.queries[i], Ball::ZERO)).or_default().push((i, seen(i).first()?));
    }
    if 2 * repeated.examples.len() > n || 2 * queries.len() > n {
        return None;
    }
    let queries: Vec<Vec<(usize, usize)>> = queries.into_values().collect();
    let mut all = vec![None; n];
    let one = |at: usize| {
        let found = repeated.query(&queries[at]);
        found.iter().filter(|(_, ball)| ball.is_some()).for_each(|(i, _)| tick(*i));
        found
    };
    for (i, ball) in parallel(threads, queries.len(), one).into_iter().flatten() {
        all[i] = ball;
    }
    Some(all)
}

/// A ball, or two, as something that can be compared.
type Kind = [(i64, u64, i32); 2];

fn kind(a: Ball, b: Ball) -> Kind {
    [(a.m, a.r, a.e), (b.m, b.r, b.e)]
}

impl<'a> Repeated<'a> {
    fn new(arithmetic: Arithmetic, projected: &'a Projected) -> Option<Self> {
        let n = projected.keys.len();
        let (mut numbers, mut examples) = (BTreeMap::new(), vec![]);
        let mut number = |i: usize| {
            *numbers.entry(kind(projected.keys[i], projected.values[i])).or_insert_with(|| {
                examples.push(i);
                examples.len() - 1
            })
        };
        let kinds: Vec<usize> = (0..n).map(&mut number).collect();
        let mut counts = vec![0; examples.len()];
        kinds.iter().for_each(|kind| counts[*kind] += 1);
        let largest = projected.values.iter().map(|v| v.top()).max()?;
        let mut sizes = vec![0];
        for v in &projected.values {
            sizes.push(sizes[sizes.len() - 1] + above(v.size(), largest));
        }
        let fits = sums_fit(arithmetic, largest, n);
        fits.then_some(Self { projected, arithmetic, kinds, examples, counts, largest, sizes })
    }

    /// What some tokens with one query read, each with how many tokens it sees; nothing for those that are better read by themselves.
    fn query(&self, tokens: &[(usize, usize)]) -> Vec<(usize, Option<Ball>)> {
        let nothing = || tokens.iter().map(|(i, _)| (*i, None)).collect();
        // Kinds are numbered in the order in which they come: those that come later are not seen.
        let last = tokens.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let examples = Seen::of(&self.examples[..self.examples.partition_point(|i| *i < last)]);
        let Some(scores) = self.projected.scores(self.arithmetic, tokens[0].0, &(0..1), &examples) else {
            return nothing();
        };
        let Weights::Known(weights) = weights(self.arithmetic, false, &scores) else { return nothing() };
        let Some((a, units, table)) = self.table(&weights) else { return nothing() };
        let (mut sums, mut next, mut done) = (Entry::default(), 0, vec![]);
        // Tokens come in order, and see no less than those before them.
        for &(i, count) in tokens {
            for kind in &self.kinds[next.min(count)..count] {
                sums.add(&table[*kind]);
            }
            let in_order = next <= count;
            next = next.max(count);
            done.push((i, self.average(&sums, a, units, count).filter(|_| in_order)));
        }
        done
    }

    /// A number near the average over all tokens, exponents above weights and above weights times distances, and the entries.
    fn table(&self, weights: &[Ball]) -> Option<(Ball, (i32, i32), Vec<Entry>)> {
        let value = |kind: usize| self.projected.values[self.examples[kind]];
        let kinds = 0..weights.len();
        let counted = |k: usize| weights[k].times(Ball::whole(self.counts[k])).middle();
        let total = kinds.clone().fold(Ball::ZERO, |all, k| all.plus(counted(k)).middle());
        let moved = kinds.clone().fold(Ball::ZERO, |all, k| all.plus(counted(k).times(value(k))).middle());
        let a = moved.near_quotient(total)?;
        let moved: Vec<Ball> = kinds.clone().map(|k| weights[k].times(value(k).plus(a.minus()))).collect();
        let top = |of: &[Ball]| of.iter().filter(|x| !x.is_zero()).map(|x| x.top()).max().unwrap_or(0);
        let (high, high_moved) = (top(weights), top(&moved));
        let entry = |k: usize| Entry {
            weight: fixed(weights[k], high),
            moved: fixed(moved[k], high_moved),
            size: above(weights[k].size().times(value(k).size()).size(), high + self.largest),
        };
        Some((a, (high, high_moved), kinds.map(entry).collect()))
    }

    /// The average over the first tokens, as a program computes it.
    fn average(&self, sums: &Entry, a: Ball, (high, high_moved): (i32, i32), count: usize) -> Option<Ball> {
        let ball = |(m, r): (i128, u128), high: i32| Ball::pack(m, r, high - ENTRY);
        let total = ball(sums.weight, high);
        if !total.is_positive() || total.top() < high - DEEP {
            return None;
        }
        let moved = ball(sums.moved, high_moved);
        let b = moved.near_quotient(total)?;
        let left = moved.plus(b.minus().times(total)).quotient_above(total)?.within();
        let exact = a.plus(b).plus(left);
        let Arithmetic::Float { format, .. } = self.arithmetic else { return Some(exact) };
        let mean = ball((0, sums.size), high + self.largest).quotient_above(total)?;
        rounded_average(format, count, (exact, mean), ball((0, self.sizes[count]), self.largest).size())
    }
}

impl Entry {
    fn add(&mut self, other: &Self) {
        self.weight.0 += other.weight.0;
        self.weight.1 += other.weight.1;
        self.moved.0 += other.moved.0;
        self.moved.1 += other.moved.1;
        self.size += other.size;
    }
}

/// A ball in units of 2^(high - `ENTRY`), where it is below 2^high.
fn fixed(x: Ball, high: i32) -> (i128, u128) {
    if x.is_zero() {
        return (0, 0);
    }
    shift(x.m.into(), x.r.into(), x.e - high + ENTRY)
}

/// The size of a ball's farthest number in such units, rounded up.
fn above(x: Ball, high: i32) -> u128 {
    let (m, r) = fixed(x, high);
    m.unsigned_abs() + r
}
