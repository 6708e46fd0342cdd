//! An expression over a box of sequences: range, value at the center, and slopes.
//!
//! Slopes s_i are intervals with f(x) in f(c) + sum of s_i (x_i - c_i) for all x of the box, c its center. A smooth phi has
//! phi(u) - phi(c) = (phi'(c) + phi''(xi) (u - c) / 2) (u - c); |u| and max have slopes without derivatives.

use super::{Binary, Expression, Op, Over, Unary};
use crate::interval::Interval;

const ZERO: Interval = Interval { lo: 0.0, hi: 0.0 };
const ONE: Interval = Interval { lo: 1.0, hi: 1.0 };
const HALF: Interval = Interval { lo: 0.5, hi: 0.5 };

/// Runs an expression. A number is a frame: its range, its value at the center, and a slope per entry of the sequence.
pub struct Machine<'a> {
    expression: &'a Expression,
    /// Entries of a sequence, n d.
    entries: usize,
    /// For each output, whether it uses each of the aggregates.
    needed: Vec<Vec<bool>>,
    stack: Vec<Interval>,
    slots: Vec<Interval>,
    spare: Vec<Interval>,
    /// Something may be undefined in the box.
    undefined: bool,
}

/// One output over a box.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Contains every value in the box.
    pub range: Interval,
    /// Contains the value at the center.
    pub center: Interval,
    /// One per entry of the sequence.
    pub slopes: &'a [Interval],
}

/// The running token and the output token.
#[derive(Clone, Copy)]
struct Tokens {
    running: usize,
    own: usize,
}

impl<'a> Machine<'a> {
    /// A machine for sequences of `length` tokens.
    pub fn new(expression: &'a Expression, length: usize) -> Self {
        let entries = length * expression.dim;
        let needed = expression.outputs.iter().map(|output| needed(expression, output)).collect();
        Self { expression, entries, needed, stack: vec![], slots: vec![], spare: vec![], undefined: false }
    }

    fn frame(&self) -> usize {
        2 + self.entries
    }

    /// What one coordinate of the output token is over a box of sequences; the whole line where something may be undefined.
    pub fn run(&mut self, sides: &[Interval], own: usize, output: usize) -> View<'_> {
        self.slots.clear();
        self.undefined = false;
        let expression = self.expression;
        for (slot, aggregate) in expression.aggregates.iter().enumerate() {
            self.stack.clear();
            if self.needed[output][slot] {
                for running in 0..self.entries / expression.dim {
                    self.steps(&aggregate.body, sides, Tokens { running, own });
                }
                self.join(aggregate.over, sides);
            } else {
                self.constant(ZERO);
            }
            self.slots.extend_from_slice(&self.stack);
        }
        self.stack.clear();
        self.steps(&expression.outputs[output], sides, Tokens { running: own, own });
        if self.undefined {
            self.stack.fill(Interval::WHOLE);
        }
        View { range: self.stack[0], center: self.stack[1], slopes: &self.stack[2..] }
    }

    /// Steps of intervals that a run takes, about.
    pub fn cost(&self, output: usize) -> u64 {
        let tokens = self.entries / self.expression.dim;
        let of = |aggregate: &super::Aggregate| {
            let pairs = if aggregate.over == Over::Var { 3 * tokens * tokens } else { tokens };
            tokens * aggregate.body.len() + pairs
        };
        let aggregates = self.expression.aggregates.iter().zip(&self.needed[output]);
        let steps = aggregates.filter(|(_, needed)| **needed).map(|(aggregate, _)| of(aggregate)).sum::<usize>();
        ((steps + self.expression.outputs[output].len()) * self.frame()) as u64
    }

    fn steps(&mut self, ops: &[Op], sides: &[Interval], tokens: Tokens) {
        let dim = self.expression.dim;
        for op in ops {
            match *op {
                Op::Number(x) => self.constant(x),
                Op::X(k) => self.entry(tokens.running * dim + k, sides),
                Op::Own(k) => self.entry(tokens.own * dim + k, sides),
                Op::Place => self.constant(Interval::point((tokens.running + 1) as f64)),
                Op::OwnPlace => self.constant(Interval::point((tokens.own + 1) as f64)),
                Op::Itself if tokens.running == tokens.own => self.constant(ONE),
                Op::Itself => self.constant(ZERO),
                Op::Slot(slot) => {
                    let at = slot * self.frame();
                    self.stack.extend_from_slice(&self.slots[at..at + self.frame()]);
                }
                Op::Unary(function) => self.unary(function, sides),
                Op::Binary(function) => self.binary(function, sides),
            }
        }
    }

    fn constant(&mut self, x: Interval) {
        self.stack.extend([x, x]);
        self.stack.resize(self.stack.len() + self.entries, ZERO);
    }

    fn entry(&mut self, i: usize, sides: &[Interval]) {
        self.stack.extend([sides[i], Interval::point(sides[i].middle())]);
        let first = self.stack.len();
        self.stack.resize(first + self.entries, ZERO);
        self.stack[first + i] = ONE;
    }

    /// The frame at the top, with its range also bounded by its slopes.
    fn settle(&mut self, sides: &[Interval]) {
        let at = self.stack.len() - self.frame();
        let frame = &mut self.stack[at..];
        let mut linear = frame[1];
        for (slope, side) in frame[2..].iter().zip(sides) {
            if *slope != ZERO {
                linear = linear + *slope * (*side - Interval::point(side.middle()));
            }
        }
        frame[0] = frame[0].meet(linear);
        frame[1] = frame[1].meet(frame[0]);
    }

    fn unary(&mut self, function: Unary, sides: &[Interval]) {
        let at = self.stack.len() - self.frame();
        let frame = &mut self.stack[at..];
        let (u, c) = (frame[0], frame[1]);
        self.undefined |= match function {
            Unary::Log => u.lo <= 0.0,
            Unary::Sqrt => u.lo < 0.0,
            Unary::Tan => u.tan() == Interval::WHOLE,
            _ => false,
        };
        let value = value(function, u);
        let slope = slope(function, u, c, value);
        frame[0] = value;
        frame[1] = self::value(function, c);
        frame[2..].iter_mut().for_each(|s| *s = *s * slope);
        self.settle(sides);
    }

    fn binary(&mut self, function: Binary, sides: &[Interval]) {
        let size = self.frame();
        let (at, next) = (self.stack.len() - 2 * size, self.stack.len() - size);
        let (left, right) = self.stack[at..].split_at_mut(size);
        let ((u, v), (a, b)) = ((left[0], right[0]), (left[1], right[1]));
        let whole = |x: Interval| x.lo == x.hi && x.lo.fract() == 0.0 && x.lo.abs() <= 1e9;
        self.undefined |= match function {
            Binary::Div => v.contains(0.0),
            Binary::Pow if whole(v) => v.lo < 0.0 && u.contains(0.0),
            Binary::Pow => u.lo < 0.0 || (u.lo == 0.0 && v.lo < 0.0),
            _ => false,
        };
        let of = |u: Interval, v: Interval| match function {
            Binary::Add => u + v,
            Binary::Sub => u - v,
            Binary::Mul => u * v,
            Binary::Div => u / v,
            Binary::Pow if whole(v) => u.powi(v.lo as i32),
            Binary::Pow => u.pow(v),
            Binary::Min => u.min(v),
            Binary::Max => u.max(v),
        };
        let (of_u, of_v) = slopes(function, (u, v), (a, b), whole(v));
        left[0] = of(u, v);
        left[1] = of(a, b);
        for (s, t) in left[2..].iter_mut().zip(&right[2..]) {
            *s = *s * of_u + *t * of_v;
        }
        self.stack.truncate(next);
        self.settle(sides);
    }

    /// What the values of all tokens, which are the whole stack, come to.
    fn join(&mut self, over: Over, sides: &[Interval]) {
        let tokens = self.stack.len() / self.frame();
        match over {
            Over::Var => return self.variance(tokens, sides),
            Over::Min => (1..tokens).for_each(|_| self.binary(Binary::Min, sides)),
            Over::Max => (1..tokens).for_each(|_| self.binary(Binary::Max, sides)),
            Over::Sum | Over::Mean => (1..tokens).for_each(|_| self.binary(Binary::Add, sides)),
        }
        if over == Over::Mean {
            self.constant(Interval::point(tokens as f64));
            self.binary(Binary::Div, sides);
        }
    }

    /// The sum over all pairs of (x_i - x_j)^2 / n^2.
    fn variance(&mut self, tokens: usize, sides: &[Interval]) {
        let size = self.frame();
        let values = std::mem::replace(&mut self.stack, std::mem::take(&mut self.spare));
        self.stack.clear();
        self.constant(ZERO);
        for i in 0..tokens {
            for j in 0..i {
                self.stack.extend_from_slice(&values[i * size..(i + 1) * size]);
                self.stack.extend_from_slice(&values[j * size..(j + 1) * size]);
                self.binary(Binary::Sub, sides);
                self.constant(Interval::point(2.0));
                self.binary(Binary::Pow, sides);
                self.binary(Binary::Add, sides);
            }
        }
        self.constant(Interval::point((tokens * tokens) as f64));
        self.binary(Binary::Div, sides);
        self.spare = values;
    }
}

/// Which aggregates some steps use, themselves or through others.
fn needed(expression: &Expression, ops: &[Op]) -> Vec<bool> {
    let mut needed = vec![false; expression.aggregates.len()];
    let mark = |ops: &[Op], needed: &mut Vec<bool>| {
        for op in ops {
            if let Op::Slot(slot) = op {
                needed[*slot] = true;
            }
        }
    };
    mark(ops, &mut needed);
    // Inner ones stand before those that use them.
    for slot in (0..needed.len()).rev() {
        if needed[slot] {
            mark(&expression.aggregates[slot].body, &mut needed);
        }
    }
    needed
}

fn value(function: Unary, u: Interval) -> Interval {
    match function {
        Unary::Neg => -u,
        Unary::Sin => u.sin(),
        Unary::Cos => u.cos(),
        Unary::Tan => u.tan(),
        Unary::Exp => u.exp(),
        Unary::Log => u.ln(),
        Unary::Sqrt => u.sqrt(),
        Unary::Abs => u.abs(),
        Unary::Tanh => u.tanh(),
        Unary::Sign => {
            let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
            Interval::new(sign(u.lo), sign(u.hi))
        }
        Unary::Step => {
            let step = |x: f64| f64::from(u8::from(x >= 0.0));
            Interval::new(step(u.lo), step(u.hi))
        }
    }
}

/// phi' and phi'' of a smooth function over an interval.
fn derivatives(function: Unary, u: Interval) -> (Interval, Interval) {
    match function {
        Unary::Sin => (u.cos(), -u.sin()),
        Unary::Cos => (-u.sin(), -u.cos()),
        Unary::Tan => {
            let (t, first) = (u.tan(), ONE + u.tan().square());
            (first, (t + t) * first)
        }
        Unary::Exp => (u.exp(), u.exp()),
        Unary::Log => (ONE / u, -(ONE / u.square())),
        Unary::Tanh => {
            let (t, first) = (u.tanh(), ONE - u.tanh().square());
            (first, -(t + t) * first)
        }
        _ => (Interval::WHOLE, Interval::WHOLE),
    }
}

/// Slopes of a function of one number over `u` from `c`; `value` contains its values.
fn slope(function: Unary, u: Interval, c: Interval, value: Interval) -> Interval {
    match function {
        Unary::Neg => -ONE,
        Unary::Abs => rectified(u, c) * Interval::point(2.0) - ONE,
        Unary::Sqrt => ONE / (value + c.sqrt()),
        Unary::Sign | Unary::Step if value.lo == value.hi => ZERO,
        Unary::Sign | Unary::Step => Interval::WHOLE,
        _ => {
            let (over, at) = (derivatives(function, u), derivatives(function, c).0);
            over.0.meet(at + HALF * over.1 * (u - c))
        }
    }
}

/// Slopes of max(t, 0) over `t` from `c`: it is convex, so they lie between those toward the ends.
fn rectified(t: Interval, c: Interval) -> Interval {
    if t.lo >= 0.0 {
        return ONE;
    }
    if t.hi <= 0.0 {
        return ZERO;
    }
    let mut slopes = Interval::new(0.0, 1.0);
    if c.lo > 0.0 {
        let from = Interval::point(c.lo);
        slopes.lo = (from / (from - Interval::point(t.lo))).lo.max(0.0);
    } else if c.hi < 0.0 {
        let to = Interval::point(t.hi);
        slopes.hi = (to / (to - Interval::point(c.hi))).hi.min(1.0);
    }
    slopes
}

/// Slopes of a function of two numbers over `u` and `v` from `a` and `b`.
fn slopes(
    function: Binary,
    (u, v): (Interval, Interval),
    (a, b): (Interval, Interval),
    whole: bool,
) -> (Interval, Interval) {
    match function {
        Binary::Add => (ONE, ONE),
        Binary::Sub => (ONE, -ONE),
        // x y - a b = b (x - a) + x (y - b) = y (x - a) + a (y - b), and so is every mean of the two.
        Binary::Mul => (HALF * (v + b), HALF * (u + a)),
        // x / y - a / b = ((x - a) - (a / b) (y - b)) / y.
        Binary::Div => (ONE / v, -(a / b) / v),
        Binary::Pow if whole => (power(u, a, v.lo as i32), ZERO),
        // A concave power is steepest toward 0, where its slope is a^(v - 1).
        Binary::Pow if u.lo >= 0.0 && v.lo > 0.0 && v.hi <= 1.0 => {
            let (flat, steep) = (v * Interval::point(u.hi).pow(v - ONE), Interval::point(a.lo).pow(v - ONE));
            (Interval::new(flat.lo.max(0.0), steep.hi), a.pow(v) * a.ln())
        }
        Binary::Pow => (v * u.pow(v - ONE), a.pow(v) * a.ln()),
        Binary::Max => {
            let first = rectified(u - v, a - b);
            (first, ONE - first)
        }
        Binary::Min => {
            let second = rectified(u - v, a - b);
            (ONE - second, second)
        }
    }
}

/// Slopes of u^k from c.
fn power(u: Interval, c: Interval, k: i32) -> Interval {
    let factor = Interval::point(f64::from(k));
    match k {
        0 => ZERO,
        1 => ONE,
        2 => u + c,
        _ => {
            let second = factor * (factor - ONE) * u.powi(k.saturating_sub(2));
            let linear = factor * c.powi(k - 1) + HALF * second * (u - c);
            (factor * u.powi(k - 1)).meet(linear)
        }
    }
}
