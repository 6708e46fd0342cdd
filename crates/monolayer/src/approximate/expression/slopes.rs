//! How outputs change over a box: slopes, from the outputs back to the entries.
//!
//! For each node phi(u) and all u in its box, phi(u) - phi(c) = s (u - c) with s in an interval that needs no derivative: |u|
//! and max have slopes too. Products of such intervals along all ways from an entry to an output, added up, are slopes of the
//! output: f(x) is in f(c) + sum of s_i (x_i - c_i).

use super::elementary;
use super::parse::{Binary, Unary};
use super::tape::{Index, Node, Tape};
use crate::arithmetic::Interval;

fn point(x: f64) -> Interval {
    Interval::point(x)
}

impl Tape {
    /// Slopes of node `from` with respect to the `entries` entries, from the nodes' values over the box and at its center.
    ///
    /// With the box in place of the center they are derivatives: where they have one sign the node is monotone.
    pub fn slopes(&self, from: Index, over: &[Interval], center: &[Interval], entries: usize) -> Vec<Interval> {
        let mut slopes = vec![point(0.0); from as usize + 1];
        let mut result = vec![point(0.0); entries];
        slopes[from as usize] = point(1.0);
        for (index, node) in self.nodes[..=from as usize].iter().enumerate().rev() {
            let slope = slopes[index];
            if slope == point(0.0) {
                continue;
            }
            let mut add = |a: Index, local: Interval| slopes[a as usize] = slopes[a as usize] + slope * local;
            let (u, c) = (|a: Index| over[a as usize], |a: Index| center[a as usize]);
            match node {
                Node::Constant(_) => {}
                Node::Entry(i) => result[*i] = slope,
                Node::Unary(function, a) => add(*a, unary(*function, u(*a), c(*a), over[index])),
                Node::Binary(function, a, b) => {
                    let (of_a, of_b) = binary(*function, (u(*a), u(*b)), (c(*a), c(*b)));
                    add(*a, of_a);
                    add(*b, of_b);
                }
                Node::Power(a, 2) => add(*a, u(*a) + c(*a)),
                Node::Power(a, exponent) => add(*a, point(f64::from(*exponent)) * u(*a).powi(exponent - 1)),
                Node::Variance(tokens) => {
                    for (i, token) in tokens.iter().enumerate() {
                        add(*token, variance(tokens, i, over) + variance(tokens, i, center));
                    }
                }
            }
        }
        result
    }
}

/// `(x_i - mean x) / n`: since deviations add up to 0, var(x) - var(c) is the sum of
/// `(x_i - mean x + c_i - mean c) (x_i - c_i) / n`.
fn variance(tokens: &[Index], i: usize, values: &[Interval]) -> Interval {
    let n = point(tokens.len() as f64);
    let x = values[tokens[i] as usize];
    let others = tokens.iter().enumerate().filter(|(j, token)| *j != i && **token != tokens[i]);
    others.fold(point(0.0), |sum, (_, token)| sum + (x - values[*token as usize])) / n.square()
}

/// Slopes of a function of one number over `u`, from `c` in `u`; `value` contains its values.
fn unary(function: Unary, u: Interval, c: Interval, value: Interval) -> Interval {
    match function {
        Unary::Neg => point(-1.0),
        Unary::Sin => u.cos(),
        Unary::Cos => -u.sin(),
        Unary::Tan => point(1.0) + value.square(),
        Unary::Exp => value,
        Unary::Log => point(1.0) / u,
        Unary::Sqrt => point(1.0) / (value + elementary::unary(Unary::Sqrt, c)),
        Unary::Abs => rectifier(u, c) * point(2.0) - point(1.0),
        Unary::Tanh => point(1.0) - value.square(),
        Unary::Sign | Unary::Instruction if value.lo() == value.hi() => point(0.0),
        Unary::Sign | Unary::Instruction => Interval::WHOLE,
    }
}

/// Slopes of a function of two numbers over `u` and `v`, from `a` in `u` and `b` in `v`.
fn binary(function: Binary, (u, v): (Interval, Interval), (a, b): (Interval, Interval)) -> (Interval, Interval) {
    match function {
        Binary::Add => (point(1.0), point(1.0)),
        Binary::Sub => (point(1.0), point(-1.0)),
        // x y - a b = b (x - a) + x (y - b) = y (x - a) + a (y - b).
        Binary::Mul if u.width() < v.width() => (b, u),
        Binary::Mul => (v, a),
        // x / y - a / b = (x - a) / y - (a / b) (y - b) / y.
        Binary::Div => (point(1.0) / v, -(a / b) / v),
        Binary::Pow => power(u, v, a),
        Binary::Max => {
            let first = rectifier(u - v, a - b);
            (first, point(1.0) - first)
        }
        Binary::Min => {
            let second = rectifier(u - v, a - b);
            (point(1.0) - second, second)
        }
    }
}

/// Slopes of max(t, 0) over `t`, from `c`: 0 and 1, or between, since it is convex.
fn rectifier(t: Interval, c: Interval) -> Interval {
    let (mut lo, mut hi) = (0.0, 1.0);
    if t.lo() >= 0.0 {
        lo = 1.0;
    } else if t.hi() <= 0.0 {
        hi = 0.0;
    } else if c.lo() > 0.0 && t.is_bounded() {
        lo = (point(c.lo()) / (point(c.lo()) - point(t.lo()))).lo();
    } else if c.hi() < 0.0 && t.is_bounded() {
        hi = (point(t.hi()) / (point(t.hi()) - point(c.hi()))).hi();
    }
    Interval::new(lo, hi).clamp(0.0, 1.0)
}

/// Slopes of x^y: `y x^(y - 1)` and `a^y log a`. A concave power has its largest slope from `a` toward 0, where it is `a^(y - 1)`.
fn power(u: Interval, v: Interval, a: Interval) -> (Interval, Interval) {
    let u = u.clamp(0.0, f64::INFINITY);
    let concave = u.lo() == 0.0 && v.lo() > 0.0 && v.hi() <= 1.0;
    let of_base = if concave { Interval::new(0.0, a.powf(v - point(1.0)).hi()) } else { v * u.powf(v - point(1.0)) };
    (of_base, a.powf(v) * a.ln())
}
