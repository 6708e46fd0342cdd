//! Contextual mappings (Definition 2): outputs of attention inside a ball of radius r, and more than delta apart where contexts
//! differ. Sorted along one direction, only near neighbors have to be compared.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::all_contexts;
use super::context::Context;
use super::inputs::find;
use crate::exact::forward::{Exact, Token, compare_norm};
use crate::exact::real::{Rational, Real};
use crate::model::Model;
use crate::parallel::parallel;
use crate::read::data::Data;
use crate::rules::ball::Ball;
use crate::rules::exp::exp_ball;
use crate::rules::judge::{Inputs, Judge, Verdict};
use crate::rules::network::Network;
use crate::rules::sum::{Arithmetic, Term, real_sum};

/// More near pairs than this are not compared, in midpoints and radii or with more bits.
const MOST_PAIRS: usize = 20_000_000;
const MOST_EXACT: usize = 20_000;
/// What more bits may cost in all (see [`More`]): minutes.
const WORK: usize = 1 << 40;

/// Each distinct token of the data as exact arithmetic takes it.
pub(super) fn rows<'a>(model: &Model, data: &'a Data) -> Result<Vec<Token<'a>>, String> {
    match &model.vocabulary {
        Some(vocabulary) if data.values.d == 0 => {
            data.values.names.iter().map(|word| Ok(Token::Row(find(vocabulary, word)?))).collect()
        }
        None if data.values.d == model.d => Ok(data.values.entries.chunks_exact(model.d).map(Token::Vector).collect()),
        _ => Err("the data does not have the kind of tokens that the model reads".into()),
    }
}

/// The sequence of a token, and its place there.
pub(super) fn sequence<'a>(data: &Data, rows: &[Token<'a>], token: usize) -> (Vec<Token<'a>>, usize) {
    let s = data.offsets.partition_point(|first| *first <= token) - 1;
    let ids = &data.tokens[data.offsets[s]..data.offsets[s + 1]];
    (ids.iter().map(|&id| rows[id as usize]).collect(), token - data.offsets[s])
}

/// A token for people: its line, sequence and place, from 1.
pub fn place(data: &Data, token: usize) -> String {
    let s = data.offsets.partition_point(|first| *first <= token) - 1;
    format!("line {} (sequence {}, token {})", data.line(token), s + 1, token - data.offsets[s] + 1)
}

/// A token that stands for its context.
struct Point {
    token: usize,
    context: Context,
    output: Vec<Ball>,
    /// Along the direction.
    along: Ball,
}

/// Checks that the attention of a layer is an (r, delta)-contextual mapping of the data, in real arithmetic.
pub fn check(
    model: &Model,
    data: &Data,
    layer: usize,
    (log2_r, log2_delta): (&Rational, &Rational),
    bits: usize,
    threads: usize,
) -> (Verdict, String) {
    let unknown = |why: &str| (Verdict::Unknown, why.to_owned());
    if model.layers.get(layer).and_then(|layer| layer.attention.as_ref()).is_none() {
        return (Verdict::Wrong, format!("the model has no attention in layer {layer}"));
    }
    let Some(mut points) = points(model, data, layer, threads) else {
        return unknown("an output has no bounds");
    };
    let (Some(radius), Some(apart)) = (power_of_two(log2_r), power_of_two(log2_delta)) else {
        return unknown("log2_r or log2_delta is out of range");
    };
    let (Some(exact), Ok(rows)) = (Exact::new(model), rows(model, data)) else {
        return unknown("the model is not one for real arithmetic");
    };
    let more = More { exact, data, rows, layer, bits, known: RefCell::default(), left: Cell::new(WORK) };
    for point in &points {
        let margin = radius.times(radius).plus(norm_squared(&point.output).minus());
        let place = place(data, point.token);
        match (margin.is_positive(), margin.is_negative()) {
            (true, _) => (),
            (_, true) => return (Verdict::Wrong, format!("the output at {place} is not inside the ball of radius r")),
            _ => match more.compare(point.token, None, log2_r) {
                Some(Ordering::Less) => (),
                Some(_) => {
                    return (Verdict::Wrong, format!("the output at {place} is not inside the ball of radius r"));
                }
                None => return (Verdict::Unknown, format!("the output at {place} may reach r")),
            },
        }
    }
    points.sort_by(|a, b| order(a.along, b.along));
    more.all_apart(&points, apart, log2_delta)
}

/// One token per context of a layer, with what its attention gives.
fn points(model: &Model, data: &Data, layer: usize, threads: usize) -> Option<Vec<Point>> {
    let mut cut = model.clone();
    cut.layers.truncate(layer + 1);
    cut.layers[layer].feed_forward = None;
    cut.head = None;
    let contexts = all_contexts(model, data, layer + 1, threads);
    let inputs = Inputs::new(&cut, data).ok()?;
    let judge = Judge { network: &Network::new(&cut, Arithmetic::Real)?, inputs: &inputs };
    let direction: Vec<Ball> = (0..model.d).map(|c| Ball { m: entry(c), r: 0, e: 0 }).collect();
    let outputs = parallel(threads, data.offsets.len() - 1, |s| judge.outputs(s));
    let (mut seen, mut all) = (HashSet::new(), Vec::new());
    for (s, outputs) in outputs.into_iter().enumerate() {
        for (token, output) in (data.offsets[s]..).zip(outputs?) {
            if seen.insert(contexts[token]) {
                let along = real_sum(direction.iter().zip(&output).map(|(a, x)| Term::product(*a, *x)));
                all.push(Point { token, context: contexts[token], along, output });
            }
        }
    }
    Some(all)
}

/// An entry of the direction: between 2^11 and 2^12 in size, so that no two contexts agree along it by accident.
fn entry(c: usize) -> i64 {
    let hash = (c as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let size = (1 << 11) + (hash >> 1 & 0x7FF) as i64;
    if hash & 1 == 0 { size } else { -size }
}

fn order(a: Ball, b: Ball) -> Ordering {
    let gap = a.middle().plus(b.middle().minus());
    gap.m.cmp(&0).then(a.r.cmp(&b.r))
}

/// Encloses the square of the Euclidean norm.
fn norm_squared(x: &[Ball]) -> Ball {
    real_sum(x.iter().map(|x| Term::product(*x, *x)))
}

/// Encloses 2^x; nothing where x is out of range.
fn power_of_two(x: &Rational) -> Option<Ball> {
    let ln_2 = Ball { m: 3_196_577_161_300_663_914, r: 2, e: -62 };
    exp_ball(Ball::around(&x.enclosure(62))?.times(ln_2))
}

/// Outputs by token and bits.
type Known = HashMap<(usize, usize), Option<Vec<Real>>>;

/// Outputs with more bits.
struct More<'a> {
    exact: Exact<'a>,
    data: &'a Data,
    rows: Vec<Token<'a>>,
    layer: usize,
    bits: usize,
    /// What was computed before, by token and bits.
    known: RefCell<Known>,
    /// Tokens that are looked at (pairs of them behind earlier layers) times the square of the bits: what is left.
    left: Cell<usize>,
}

impl More<'_> {
    fn output(&self, token: usize, bits: usize) -> Option<Vec<Real>> {
        let run = || {
            let (all, position) = sequence(self.data, &self.rows, token);
            let looks = if self.layer == 0 { all.len() } else { all.len().saturating_mul(all.len()) };
            self.left.set(self.left.get().checked_sub(looks.saturating_mul(bits * bits))?);
            self.exact.attended(self.layer, &all, position, bits)
        };
        self.known.borrow_mut().entry((token, bits)).or_insert_with(run).clone()
    }

    /// The length of an output, or of the difference of two, against 2^log2.
    fn compare(&self, token: usize, other: Option<usize>, log2: &Rational) -> Option<Ordering> {
        let mut bits = 256.min(self.bits);
        loop {
            let mut vector = self.output(token, bits)?;
            if let Some(other) = other {
                let other = self.output(other, bits)?;
                vector = vector.iter().zip(&other).map(|(a, b)| a.minus(b, bits)).collect();
            }
            match compare_norm(&vector, log2, bits) {
                Some(order) => return Some(order),
                None if bits >= self.bits => return None,
                None => bits = (4 * bits).min(self.bits),
            }
        }
    }

    /// Whether all points of different contexts are more than delta apart; the points are sorted along the direction.
    fn all_apart(&self, points: &[Point], apart: Ball, delta: &Rational) -> (Verdict, String) {
        // |a . (x - y)| <= |a| |x - y|, |a| at most the sum of its entries' sizes.
        let length = (0..points[0].output.len()).map(|c| i128::from(entry(c).abs())).sum();
        let span = apart.times(Ball::pack(length, 0, 0)).size();
        let widest =
            points.iter().map(|p| p.along.spread().size()).reduce(|a, b| if order(a, b).is_lt() { b } else { a });
        let reach = span.plus(widest.unwrap_or(Ball::ZERO).scaled(1)).size();
        let (mut pairs, mut exact) = (0, 0);
        for (at, a) in points.iter().enumerate() {
            for b in &points[at + 1..] {
                if b.along.middle().plus(a.along.middle().minus()).plus(reach.minus()).is_positive() {
                    break;
                }
                pairs += 1;
                if pairs > MOST_PAIRS {
                    return (Verdict::Unknown, "too many contexts lie close together".into());
                }
                let gap: Vec<Ball> = a.output.iter().zip(&b.output).map(|(a, b)| a.plus(b.minus())).collect();
                if a.context == b.context || norm_squared(&gap).plus(apart.times(apart).minus()).is_positive() {
                    continue;
                }
                exact += 1;
                let places = [a.token, b.token].map(|t| place(self.data, t));
                let [x, y] = &places;
                match Some(exact).filter(|n| *n <= MOST_EXACT).and_then(|_| self.compare(a.token, Some(b.token), delta))
                {
                    Some(Ordering::Greater) => (),
                    Some(_) => return (Verdict::Wrong, format!("{x} and {y} are not delta apart")),
                    None => {
                        return (Verdict::Unknown, format!("{x} and {y} are not told apart with {} bits", self.bits));
                    }
                }
            }
        }
        (Verdict::Right, format!("{} contexts, all inside the ball and delta apart", points.len()))
    }
}
