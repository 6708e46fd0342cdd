//! The ids of each token's contexts in increasing order, with certain distances between neighbors.
//!
//! Enclosures of `g` are sorted, and neighbors compared: no pass over all pairs. Intervals settle most of them; where two
//! are not far enough apart to give the distance three digits, balls of twice as many bits follow, again and again. By
//! [`super::coincidence`] that ends, unless the two are exactly equal, which is decided first.

use std::collections::BTreeMap;

use crate::arithmetic::parallel;
use crate::arithmetic::rational;
use crate::arithmetic::sorting;
use crate::arithmetic::{Ball, Interval, Magnitude, Number};
use crate::context_map::coincidence::{Key, exact_projection, key};
use crate::context_map::{ContextMap, Groups, Member, View};
use crate::paper::boltzmann::g;

/// The bits of the first balls.
const FIRST_BITS: usize = 128;

/// Tokens whose ids are one and the same number, or (undecided) within one small ball.
#[derive(Debug, Clone, PartialEq)]
pub struct IdLevel {
    /// One token for each context.
    pub tokens: Vec<usize>,
    /// Whether the ids are exactly equal; otherwise, with more than one token, the bits did not suffice.
    pub equal: bool,
    /// A lower bound of the distance to the ids of the level before; `None` for the first.
    pub above: Option<Magnitude>,
}

/// The contexts of each token, ordered by `g`.
#[derive(Debug, Clone, PartialEq)]
pub struct IdOrder {
    /// The levels of each token that has several contexts, in increasing order.
    pub groups: Vec<Vec<IdLevel>>,
    /// The largest number of bits that was used: 53 where intervals sufficed.
    pub bits: usize,
}

/// The closest ids of one token that should differ, and those that do not.
#[derive(Debug, Clone, PartialEq)]
pub struct Gaps {
    /// The smallest distance of `g` between levels, bounded from below, and two tokens on either side.
    pub smallest: Option<(Magnitude, (usize, usize))>,
    /// Pairs with exactly equal ids.
    pub coinciding: Vec<(usize, usize)>,
    /// Pairs for which the bits did not suffice.
    pub undecided: Vec<(usize, usize)>,
}

impl IdOrder {
    /// Orders the members of each group, with balls of up to `most_bits` bits.
    pub fn new(view: &View, map: &ContextMap, groups: &Groups, most_bits: usize) -> Self {
        let enclosures = Enclosures::new(view, map);
        let of_group = |group: &Vec<Member>| {
            let tokens: Vec<usize> = group.iter().map(|m| m.token).collect();
            let mut bits = 53;
            let levels = enclosures.by_intervals(&tokens, most_bits, &mut bits);
            (levels, bits)
        };
        let (groups, bits): (Vec<_>, Vec<usize>) = parallel::map_slice(&groups.0, of_group).into_iter().unzip();
        Self { groups, bits: bits.into_iter().max().unwrap_or(53) }
    }

    /// The gaps between tokens of different classes; tokens without a class need not be told apart from any.
    pub fn gaps(&self, class: impl Fn(usize) -> Option<u32>) -> Gaps {
        let mut gaps = Gaps { smallest: None, coinciding: Vec::new(), undecided: Vec::new() };
        for levels in &self.groups {
            // The last level with a class, and how far above it the present one is at least: with levels in between, as far
            // as the widest step.
            let (mut below, mut distance): (Vec<usize>, _) = (Vec::new(), Magnitude::ZERO);
            for level in levels {
                let step = level.above.unwrap_or(Magnitude::ZERO);
                distance = if step > distance { step } else { distance };
                let tokens: Vec<usize> = level.tokens.iter().copied().filter(|&t| class(t).is_some()).collect();
                let Some(&first) = tokens.first() else { continue };
                let others = tokens[1..].iter().filter(|&&t| class(t) != class(first)).map(|&t| (first, t));
                if level.equal { &mut gaps.coinciding } else { &mut gaps.undecided }.extend(others);
                if gaps.smallest.is_none_or(|(smallest, _)| smallest > distance) {
                    let differ = |&a: &usize| tokens.iter().find(|&&b| class(a) != class(b)).map(|&b| (a, b));
                    gaps.smallest = below.iter().find_map(differ).map(|pair| (distance, pair)).or(gaps.smallest);
                }
                (below, distance) = (tokens, Magnitude::ZERO);
            }
        }
        gaps
    }
}

/// Enclosures of the projections of all tokens.
struct Enclosures<'a> {
    view: &'a View<'a>,
    map: &'a ContextMap,
    keys: Vec<Interval>,
    queries: Vec<Interval>,
}

/// An enclosure of `v . x` for every token of the dataset.
pub fn projections(view: &View, v: &[f64]) -> Vec<Interval> {
    let words: Vec<Interval> = view.vectors.words.iter_rows().map(|x| dot(x, v, Interval::point)).collect();
    let places: Option<Vec<Interval>> =
        view.vectors.positions.as_ref().map(|p| p.iter_rows().map(|x| dot(x, v, Interval::point)).collect());
    let place = |t: usize| places.as_ref().map_or(Interval::point(0.0), |places| places[view.place(t).1]);
    view.token_ids.iter().enumerate().map(|(t, &id)| words[id as usize] + place(t)).collect()
}

/// `x . v` in some arithmetic.
fn dot<N: Number>(x: &[f64], v: &[f64], number: impl Fn(f64) -> N) -> N {
    let terms = x.iter().zip(v).filter(|&(&x, &v)| x != 0.0 && v != 0.0);
    terms.map(|(&x, &v)| number(x) * number(v)).reduce(|sum, term| sum + term).unwrap_or_else(|| number(0.0))
}

impl<'a> Enclosures<'a> {
    fn new(view: &'a View<'a>, map: &'a ContextMap) -> Self {
        Self { view, map, keys: projections(view, &map.v), queries: projections(view, &map.v_q) }
    }

    /// `g` of token `t` in an interval.
    fn interval(&self, t: usize) -> Interval {
        g(self.view.pick(t, &self.keys, &mut Vec::new()), &self.queries[t]).unwrap_or(Interval::WHOLE)
    }

    /// `g` of token `t` in a ball.
    fn ball(&self, t: usize, bits: usize) -> Ball {
        let vectors = self.view.vectors;
        let project = |enclosure: Interval, v: &[f64], t: usize| {
            let number = |x| Ball::new(x, bits);
            if enclosure.lo() == enclosure.hi() {
                return number(enclosure.lo());
            }
            let word = dot(vectors.words.row(self.view.token_ids[t] as usize), v, number);
            let place = vectors.positions.as_ref().map(|p| dot(p.row(self.view.place(t).1), v, number));
            place.map_or(word.clone(), |place| word + place)
        };
        let keys: Vec<Ball> = self.view.visible(t).map(|i| project(self.keys[i], &self.map.v, i)).collect();
        g(&keys, &project(self.queries[t], &self.map.v_q, t)).unwrap_or_else(|_| Ball::whole(bits))
    }

    /// What `g` of token `t` depends on, exactly.
    fn key(&self, t: usize) -> Key {
        let project = |enclosure: Interval, v: &[f64], t: usize| {
            let point = enclosure.lo() == enclosure.hi();
            if point { rational(enclosure.lo()) } else { exact_projection(self.view, v, t) }
        };
        let visible: Vec<_> = self.view.visible(t).map(|i| project(self.keys[i], &self.map.v, i)).collect();
        key(&project(self.queries[t], &self.map.v_q, t), &visible)
    }

    fn by_intervals(&self, tokens: &[usize], most_bits: usize, bits: &mut usize) -> Vec<IdLevel> {
        let mut sorted: Vec<(Interval, usize)> = tokens.iter().map(|&t| (self.interval(t), t)).collect();
        sorting::sort_by(&mut sorted, |a, b| a.0.center().total_cmp(&b.0.center()));
        // With the widest enclosure's width for all, the order of the centers is the order of both ends.
        let width = sorted.iter().map(|x| x.0.width()).fold(0.0, f64::max);
        let slack = Interval::new(-width, width);
        let distance = |a: &(Interval, usize), b: &(Interval, usize)| {
            let distance = Interval::point(b.0.center()) - Interval::point(a.0.center()) + slack + slack;
            let known = distance.lo().is_normal() && distance.lo() > 0.0 && distance.lo() >= 0.999 * distance.hi();
            known.then(|| Magnitude::new(distance.lo(), 0))
        };
        let mut levels = Vec::new();
        for (above, run) in runs(sorted, distance) {
            let start = levels.len();
            let equal = self.equal(run.into_iter().map(|(_, t)| t).collect());
            levels.extend(self.by_balls(equal, FIRST_BITS, most_bits, bits));
            levels[start].above = above;
        }
        levels
    }

    /// Tokens with exactly equal ids, together.
    fn equal(&self, mut tokens: Vec<usize>) -> Vec<Vec<usize>> {
        tokens.sort_unstable();
        if tokens.len() == 1 {
            return vec![tokens];
        }
        let mut by_key: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for t in tokens {
            by_key.entry(self.key(t)).or_default().push(t);
        }
        by_key.into_values().collect()
    }

    /// The levels of tokens whose ids are different numbers but for those that stand together.
    fn by_balls(&self, equal: Vec<Vec<usize>>, precision: usize, most_bits: usize, bits: &mut usize) -> Vec<IdLevel> {
        if equal.len() == 1 {
            return equal.into_iter().map(|tokens| IdLevel { tokens, equal: true, above: None }).collect();
        }
        if precision > most_bits {
            return vec![IdLevel { tokens: equal.concat(), equal: false, above: None }];
        }
        *bits = precision.max(*bits);
        let mut sorted: Vec<(Ball, Vec<usize>)> =
            equal.into_iter().map(|tokens| (self.ball(tokens[0], precision), tokens)).collect();
        sorting::sort_by(&mut sorted, |a, b| {
            let (a, b) = (a.0.midpoint(), b.0.midpoint());
            b.certainly_less(&a).cmp(&a.certainly_less(&b))
        });
        let radius =
            sorted.iter().map(|x| x.0.radius()).fold(Magnitude::ZERO, |m, radius| if radius > m { radius } else { m });
        let distance = |a: &(Ball, Vec<usize>), b: &(Ball, Vec<usize>)| {
            let (lower, upper) = (b.0.midpoint() - a.0.midpoint()).widened(radius + radius).absolute_bounds();
            (!lower.is_zero() && lower * Magnitude::new(1.001, 0) >= upper).then_some(lower)
        };
        let mut levels = Vec::new();
        for (above, run) in runs(sorted, distance) {
            let start = levels.len();
            let run = run.into_iter().map(|(_, tokens)| tokens).collect();
            levels.extend(self.by_balls(run, 2 * precision, most_bits, bits));
            levels[start].above = above;
        }
        levels
    }
}

/// Cuts a list where the distance of neighbors is known; each run comes with its distance from the one before.
fn runs<T>(sorted: Vec<T>, distance: impl Fn(&T, &T) -> Option<Magnitude>) -> Vec<(Option<Magnitude>, Vec<T>)> {
    let mut runs: Vec<(Option<Magnitude>, Vec<T>)> = Vec::new();
    for item in sorted {
        match runs.last_mut() {
            None => runs.push((None, vec![item])),
            Some((_, run)) => match distance(&run[run.len() - 1], &item) {
                None => run.push(item),
                known => runs.push((known, vec![item])),
            },
        }
    }
    runs
}
