//! The functions of distance claims (docs/format.md, "Expressions"): reading them, and enclosing them over boxes.
//!
//! ```text
//! expression = term { ("+" | "-") term }
//! term       = signed { ("*" | "/") signed }
//! signed     = ("-" | "+") signed | power
//! power      = atom [ "^" signed ]
//! atom       = number | name | name "(" expression { "," expression } ")" | "(" expression ")"
//! ```

use std::cmp::Ordering;

use super::big::Big;
use super::real::{Rational, Real, Scaled};

/// The longest text that is read, in bytes.
const LONGEST: usize = 1 << 16;
/// Parentheses, signs and powers inside each other, at most.
const DEEPEST: usize = 200;
/// What reading the numbers of a text may cost (see [`Rational::parse`]).
const READING: u64 = 1 << 26;
/// Bits of the enclosures.
pub(super) const BITS: usize = 60;
/// Bits of elementary functions: their sums then stay below 63.
const ROUGH: usize = 36;
/// Functions of one number.
const UNARY: [&str; 10] = ["sin", "cos", "tan", "exp", "log", "sqrt", "abs", "tanh", "sign", "step"];
/// What runs over all tokens.
const OVER: [&str; 5] = ["sum", "mean", "min", "max", "var"];

/// A step of a stack machine.
#[derive(Debug, Clone)]
enum Op {
    Number(Real),
    /// A coordinate of the running token, or of the output token.
    Entry(bool, usize),
    /// The place, from 1, of the running token, or of the output token.
    Place(bool),
    /// 1 where the running token is the output token, else 0.
    Itself,
    /// The value of an aggregate.
    Slot(usize),
    /// One of [`UNARY`], or "-".
    Unary(&'static str),
    /// One of + - * / ^ min max.
    Binary(&'static str),
}

/// One coordinate of a function, for any number of tokens.
#[derive(Debug, Clone)]
pub struct Expression {
    dim: usize,
    /// One of [`OVER`] and the value of a token; inner ones before those that use them.
    aggregates: Vec<(&'static str, Vec<Op>)>,
    output: Vec<Op>,
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
    budget: u64,
    made: Expression,
}

impl Expression {
    /// Reads one expression for each of `dim` coordinates, separated by semicolons; nothing where the text is none.
    pub fn parse(text: &str, dim: usize) -> Option<Vec<Self>> {
        let one = |rest| {
            let made = Self { dim, aggregates: vec![], output: vec![] };
            let mut parser = Parser { rest, depth: 0, budget: READING, made };
            parser.chain(true)?;
            parser.rest.trim_start().is_empty().then_some(parser.made)
        };
        let all = text.split(';').filter(|_| text.len() <= LONGEST).map(one).collect::<Option<Vec<_>>>()?;
        Some(all).filter(|all| all.len() == dim)
    }
}

impl Parser<'_> {
    fn take(&mut self, sign: &str) -> bool {
        self.rest = self.rest.trim_start();
        let left = self.rest.strip_prefix(sign);
        self.rest = left.unwrap_or(self.rest);
        left.is_some()
    }

    /// A sum of terms, or a product.
    fn chain(&mut self, sum: bool) -> Option<()> {
        let signs = if sum { ["+", "-"] } else { ["*", "/"] };
        let part = |parser: &mut Self| if sum { parser.chain(false) } else { parser.signed() };
        part(self)?;
        while let Some(sign) = signs.into_iter().find(|sign| self.take(sign)) {
            part(self)?;
            self.made.output.push(Op::Binary(sign));
        }
        Some(())
    }

    fn signed(&mut self) -> Option<()> {
        self.depth = Some(self.depth + 1).filter(|depth| *depth <= DEEPEST)?;
        let minus = self.take("-");
        if minus || self.take("+") {
            self.signed()?;
            self.made.output.extend(minus.then_some(Op::Unary("-")));
        } else {
            self.atom()?;
            if self.take("^") {
                self.signed()?;
                self.made.output.push(Op::Binary("^"));
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn atom(&mut self) -> Option<()> {
        if self.take("(") {
            self.chain(true)?;
            return self.take(")").then_some(());
        }
        let split = |text: &str, member: fn(char) -> bool| text.find(|c| !member(c)).unwrap_or(text.len());
        let mut end = split(self.rest, |c| c.is_ascii_digit() || c == '.');
        if end == 0 {
            let (name, rest) = self.rest.split_at(split(self.rest, |c| c.is_alphanumeric() || c == '_'));
            self.rest = rest;
            return self.name(name);
        }
        if let Some(exponent) = self.rest[end..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let digits = split(&exponent[sign..], |c| c.is_ascii_digit());
            end += if digits > 0 { 1 + sign + digits } else { 0 };
        }
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.made.output.push(Op::Number(Rational::parse(number, &mut self.budget)?.enclosure(BITS)));
        Some(())
    }

    fn name(&mut self, name: &str) -> Option<()> {
        let numbered = |prefix: &str| {
            let digits = name.strip_prefix(prefix)?;
            let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse().ok().filter(|k| plain && (1..=self.made.dim).contains(k)).map(|k: usize| k - 1)
        };
        let op = match (name, numbered("x"), numbered("own")) {
            ("pi", ..) => Op::Number(Real::pi()),
            ("place", ..) => Op::Place(false),
            ("ownplace", ..) => Op::Place(true),
            ("self", ..) => Op::Itself,
            (_, Some(k), _) => Op::Entry(false, k),
            (_, _, Some(k)) => Op::Entry(true, k),
            _ => return self.call(name),
        };
        self.made.output.push(op);
        Some(())
    }

    /// min and max of several arguments are plain; of one, and other aggregates, they run over all tokens.
    fn call(&mut self, name: &str) -> Option<()> {
        let name = UNARY.into_iter().chain(OVER).find(|known| *known == name)?;
        let (start, mut count) = (self.made.output.len(), 0);
        while self.take(if count == 0 { "(" } else { "," }) {
            self.chain(true)?;
            count += 1;
        }
        self.take(")").then_some(())?;
        match (name, count) {
            (_, 1) if UNARY.contains(&name) => self.made.output.push(Op::Unary(name)),
            (_, 1) => {
                let body = self.made.output.split_off(start);
                self.made.output.push(Op::Slot(self.made.aggregates.len()));
                self.made.aggregates.push((name, body));
            }
            ("min" | "max", 2..) => self.made.output.extend((1..count).map(|_| Op::Binary(name))),
            _ => return None,
        }
        Some(())
    }
}

/// What an expression is over a box of sequences. Slopes s_i are intervals with f(x) in f(c) + the sum of s_i (x_i - c_i) for all
/// x of the box, c its center.
#[derive(Debug, Clone)]
pub struct View {
    /// Contains every value in the box.
    pub range: Real,
    /// Contains the value at the center.
    pub center: Real,
    /// One per entry of the sequence.
    pub slopes: Vec<Real>,
}

/// A box of sequences, and the output token.
pub(super) struct Boxed {
    /// One per entry of the sequence.
    pub sides: Vec<Real>,
    /// The centers, exactly.
    pub centers: Vec<Real>,
    pub own: usize,
}

impl Boxed {
    pub fn new(sides: &[(Scaled, Scaled)], own: usize) -> Self {
        let center = |(lo, hi): &(Scaled, Scaled)| Real::point(lo.plus(hi).scaled(-1));
        let side = |(lo, hi): &(Scaled, Scaled)| Real::new(lo.clone(), hi.clone());
        Self { sides: sides.iter().map(side).collect(), centers: sides.iter().map(center).collect(), own }
    }

    fn constant(&self, x: &Real) -> View {
        View { range: x.clone(), center: x.clone(), slopes: vec![Real::ZERO; self.sides.len()] }
    }

    /// With the range also bounded by the slopes; nothing where it has no bounds: something is undefined there, or too large.
    fn settled(&self, mut view: View) -> Option<View> {
        let mut linear = view.center.clone();
        for ((slope, side), center) in view.slopes.iter().zip(&self.sides).zip(&self.centers) {
            if *slope != Real::ZERO {
                linear = linear.plus(&slope.times(&side.minus(center, BITS), BITS), BITS);
            }
        }
        view.range.ends()?;
        view.range = view.range.meet(&linear);
        view.center = view.center.meet(&view.range);
        Some(view)
    }
}

impl Expression {
    /// What it is over a box; nothing where it may be undefined.
    pub(super) fn over(&self, all: &Boxed) -> Option<View> {
        let mut slots = Vec::new();
        let tokens = all.sides.len() / self.dim;
        for (over, body) in &self.aggregates {
            let values =
                (0..tokens).map(|running| self.steps(body, all, running, &slots)).collect::<Option<Vec<_>>>()?;
            slots.push(join(over, values, all)?);
        }
        self.steps(&self.output, all, all.own, &slots)
    }

    fn steps(&self, ops: &[Op], all: &Boxed, running: usize, slots: &[View]) -> Option<View> {
        let mut stack: Vec<View> = Vec::new();
        let token = |own: bool| if own { all.own } else { running };
        for op in ops {
            let next = match op {
                Op::Number(x) => all.constant(x),
                Op::Entry(own, k) => {
                    let i = token(*own) * self.dim + k;
                    let mut view = all.constant(&all.sides[i]);
                    (view.center, view.slopes[i]) = (all.centers[i].clone(), Real::whole(1));
                    view
                }
                Op::Place(own) => all.constant(&Real::whole(token(*own) as i64 + 1)),
                Op::Itself => all.constant(&Real::whole(i64::from(running == all.own))),
                Op::Slot(slot) => slots[*slot].clone(),
                Op::Unary(name) => unary(name, &stack.pop()?, all)?,
                Op::Binary(name) => {
                    let right = stack.pop()?;
                    binary(name, &stack.pop()?, &right, all)?
                }
            };
            stack.push(next);
        }
        stack.pop()
    }
}

/// What the values of all tokens come to. The variance is the sum over all pairs of (x_i - x_j)^2 / n^2.
fn join(over: &str, values: Vec<View>, all: &Boxed) -> Option<View> {
    let tokens = values.len() as i64;
    let (name, share) = match over {
        "mean" => ("+", tokens),
        "var" => ("+", tokens * tokens),
        "sum" => ("+", 1),
        other => (other, 1),
    };
    let number = |x: i64| all.constant(&Real::whole(x));
    let square = |x: &View, y: &View| binary("^", &binary("-", x, y, all)?, &number(2), all);
    let pairs = (0..values.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let terms = match over {
        "var" => pairs.map(|(i, j)| square(&values[i], &values[j])).collect::<Option<Vec<_>>>()?,
        _ => values,
    };
    let sum = terms.into_iter().map(Some).reduce(|sum, term| binary(name, &sum?, &term?, all));
    let sum = sum.unwrap_or_else(|| Some(number(0)))?;
    if share == 1 { Some(sum) } else { binary("/", &sum, &number(share), all) }
}

/// phi(x) - phi(c) is x - c times a value of phi' between them.
fn unary(name: &str, of: &View, all: &Boxed) -> Option<View> {
    let (range, slope) = value(name, &of.range)?;
    let slopes = of.slopes.iter().map(|s| s.times(&slope, BITS)).collect();
    all.settled(View { center: value(name, &of.center)?.0, range, slopes })
}

/// A function of one number and its derivative; nothing where it may be undefined.
fn value(name: &str, u: &Real) -> Option<(Real, Real)> {
    let (one, (lo, _)) = (Real::whole(1), u.ends()?);
    let square = |x: &Real| x.power(2, BITS);
    let jump = |values: Real| {
        let slope = if values.only().is_some() { Real::ZERO } else { Real::UNBOUNDED };
        (values, slope)
    };
    let waves = if matches!(name, "sin" | "cos" | "tan") { u.waves(ROUGH) } else { [Real::ZERO, Real::ZERO] };
    let found = match (name, waves) {
        ("-", _) => (u.negated(), one.negated()),
        ("sin", [sin, cos]) => (sin, cos),
        ("cos", [sin, cos]) => (cos, sin.negated()),
        ("tan", [sin, cos]) => (sin.over(&cos, BITS), one.plus(&square(&sin.over(&cos, BITS)), BITS)),
        ("exp", _) => {
            let value = u.exp(ROUGH);
            (value.clone(), value)
        }
        ("log", _) => (u.log(ROUGH), one.over(u, BITS)),
        ("sqrt", _) if lo.sign() != Ordering::Less => (u.sqrt(), one.over(&u.sqrt().plus(&u.sqrt(), BITS), BITS)),
        ("abs", _) => (u.abs(), jumps(u, |sign| sign as i64)),
        ("tanh", _) => (u.tanh(ROUGH), one.minus(&square(&u.tanh(ROUGH)), BITS)),
        ("sign", _) => jump(jumps(u, |sign| sign as i64)),
        ("step", _) => jump(jumps(u, |sign| i64::from(sign.is_ge()))),
        _ => return None,
    };
    Some(found).filter(|(value, _)| value.ends().is_some())
}

/// The values of a function of the sign that does not decrease.
fn jumps(t: &Real, f: fn(Ordering) -> i64) -> Real {
    t.ends().map_or(Real::UNBOUNDED, |(lo, hi)| Real::whole(f(lo.sign())).hull(&Real::whole(f(hi.sign()))))
}

/// The whole number that an exponent is, up to 10^9.
fn whole(x: &Real) -> Option<i64> {
    let (m, e) = x.only()?.parts();
    let m = if e < 0 { m.shr(e.unsigned_abs().min(128) as usize) } else { m.shl(e.min(64) as usize) };
    let Big::Small(k @ -1_000_000_000..=1_000_000_000) = m else { return None };
    (Real::whole(k) == *x).then_some(k)
}

/// x^y, from x's ends where y is whole.
pub(super) fn raised(x: &Real, y: &Real) -> Real {
    whole(y).map_or_else(|| x.pow(y, ROUGH), |k| x.power(k, BITS))
}

fn binary(name: &str, left: &View, right: &View, all: &Boxed) -> Option<View> {
    let (u, v, a, b) = (&left.range, &right.range, &left.center, &right.center);
    let (one, half) = (Real::whole(1), Real::point(Scaled::new(Big::ONE, -1)));
    let exponent = whole(v);
    let of = |u: &Real, v: &Real| match (name, exponent) {
        ("+", _) => u.plus(v, BITS),
        ("-", _) => u.minus(v, BITS),
        ("*", _) => u.times(v, BITS),
        ("/", _) => u.over(v, BITS),
        ("^", _) => raised(u, v),
        ("max", _) => u.max(v),
        _ => u.negated().max(&v.negated()).negated(),
    };
    let (of_u, of_v) = match (name, exponent) {
        ("+", _) => (one.clone(), one),
        ("-", _) => (one.clone(), one.negated()),
        // x y - a b = b (x - a) + x (y - b) = y (x - a) + a (y - b), and so is every mean of the two.
        ("*", _) => (v.plus(b, BITS).times(&half, BITS), u.plus(a, BITS).times(&half, BITS)),
        // x / y - a / b = ((x - a) - (a / b) (y - b)) / y.
        ("/", _) => (one.over(v, BITS), a.over(b, BITS).negated().over(v, BITS)),
        ("^", Some(2)) => (u.plus(a, BITS), Real::ZERO),
        ("^", Some(k)) => (u.power(k - 1, BITS).times(&Real::whole(k), BITS), Real::ZERO),
        // x^y - a^b = (x^y - a^y) + (a^y - a^b).
        ("^", None) => (v.times(&u.pow(&v.minus(&one, BITS), ROUGH), BITS), a.pow(v, ROUGH).times(&a.log(ROUGH), BITS)),
        _ => {
            // The larger is y + max(x - y, 0), the smaller x - max(x - y, 0).
            let first = jumps(&u.minus(v, BITS), |sign| i64::from(sign.is_gt()));
            let second = one.minus(&first, BITS);
            if name == "max" { (first, second) } else { (second, first) }
        }
    };
    let slopes = left.slopes.iter().zip(&right.slopes);
    let slopes = slopes.map(|(s, t)| s.times(&of_u, BITS).plus(&t.times(&of_v, BITS), BITS)).collect();
    let (range, center) = (of(u, v), of(a, b));
    center.ends()?;
    all.settled(View { range, center, slopes })
}

#[cfg(test)]
mod tests;
