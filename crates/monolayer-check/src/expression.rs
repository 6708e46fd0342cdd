//! The functions of `approximate`, as text: one expression per output coordinate, separated by semicolons.
//!
//! ```text
//! function   = expression { ";" expression }
//! expression = term { ("+" | "-") term }
//! term       = signed { ("*" | "/") signed }
//! signed     = ("-" | "+") signed | power
//! power      = atom [ "^" signed ]
//! atom       = number | name | name "(" expression { "," expression } ")" | "(" expression ")"
//! ```

mod number;
mod slopes;

use crate::interval::Interval;
pub use slopes::{Machine, View};

/// The longest text that is read, in bytes.
const LONGEST: usize = 1 << 16;
/// Parentheses, signs and powers inside each other, at most.
const DEEPEST: usize = 200;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// -x
    Neg,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The tangent.
    Tan,
    /// e^x
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// |x|
    Abs,
    /// The hyperbolic tangent.
    Tanh,
    /// -1, 0 or 1.
    Sign,
    /// 1 where x >= 0, else 0.
    Step,
}

/// A function of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// x + y
    Add,
    /// x - y
    Sub,
    /// x y
    Mul,
    /// x / y
    Div,
    /// x^y
    Pow,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

/// A function of the values of all tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The population variance.
    Var,
}

/// A step of a stack machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// Push a number.
    Number(Interval),
    /// Push a coordinate, from 0, of the running token.
    X(usize),
    /// Push a coordinate, from 0, of the output token.
    Own(usize),
    /// Push the place, from 1, of the running token.
    Place,
    /// Push the place, from 1, of the output token.
    OwnPlace,
    /// Push 1 where the running token is the output token, else 0.
    Itself,
    /// Push the value of an aggregate.
    Slot(usize),
    /// Replace the top.
    Unary(Unary),
    /// Replace the two at the top.
    Binary(Binary),
}

/// What runs over all tokens. It depends on the output token alone, so one evaluation serves every use.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// How values come together.
    pub over: Over,
    /// The value of a token.
    pub body: Vec<Op>,
}

/// A function, for any number of tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Coordinates of a token.
    pub dim: usize,
    /// Inner ones before those that use them.
    pub aggregates: Vec<Aggregate>,
    /// One per output coordinate.
    pub outputs: Vec<Vec<Op>>,
}

/// What is wrong with a text, and the character, from 1, where.
pub type Mistake = (usize, String);

const UNARY: [(&str, Unary); 10] = [
    ("sin", Unary::Sin),
    ("cos", Unary::Cos),
    ("tan", Unary::Tan),
    ("exp", Unary::Exp),
    ("log", Unary::Log),
    ("sqrt", Unary::Sqrt),
    ("abs", Unary::Abs),
    ("tanh", Unary::Tanh),
    ("sign", Unary::Sign),
    ("step", Unary::Step),
];

const OVER: [(&str, Over); 5] =
    [("sum", Over::Sum), ("mean", Over::Mean), ("min", Over::Min), ("max", Over::Max), ("var", Over::Var)];

impl Expression {
    /// Reads one expression for each of `dim` coordinates.
    pub fn parse(text: &str, dim: usize) -> Result<Self, Mistake> {
        if text.len() > LONGEST {
            return Err((1, format!("{} bytes of text, and at most {LONGEST} are read", text.len())));
        }
        let mut parser = Parser { text, at: 0, dim, depth: 0, ops: vec![], aggregates: vec![] };
        let mut outputs = Vec::new();
        loop {
            parser.expression()?;
            outputs.push(std::mem::take(&mut parser.ops));
            if !parser.take(';') {
                break;
            }
        }
        if parser.peek().is_some() {
            return Err(parser.mistake("expected an operator, \";\" or the end"));
        }
        if outputs.len() != dim {
            return Err((1, format!("{} expressions for tokens of {dim} coordinates", outputs.len())));
        }
        Ok(Self { dim, aggregates: parser.aggregates, outputs })
    }

    /// Whether permuting the tokens permutes the outputs: nothing in it tells the place of a token.
    pub fn is_equivariant(&self) -> bool {
        let bodies = self.aggregates.iter().map(|aggregate| &aggregate.body).chain(&self.outputs);
        !bodies.flatten().any(|op| matches!(op, Op::Place | Op::OwnPlace))
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    dim: usize,
    depth: usize,
    ops: Vec<Op>,
    aggregates: Vec<Aggregate>,
}

impl Parser<'_> {
    fn mistake(&self, what: impl Into<String>) -> Mistake {
        (self.text[..self.at].chars().count() + 1, what.into())
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest.chars().next()
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        self.at += if found { sign.len_utf8() } else { 0 };
        found
    }

    fn binary(&mut self, function: Binary) {
        self.ops.push(Op::Binary(function));
    }

    fn expression(&mut self) -> Result<(), Mistake> {
        self.term()?;
        loop {
            let function = if self.take('+') {
                Binary::Add
            } else if self.take('-') {
                Binary::Sub
            } else {
                return Ok(());
            };
            self.term()?;
            self.binary(function);
        }
    }

    fn term(&mut self) -> Result<(), Mistake> {
        self.signed()?;
        loop {
            let function = if self.take('*') {
                Binary::Mul
            } else if self.take('/') {
                Binary::Div
            } else {
                return Ok(());
            };
            self.signed()?;
            self.binary(function);
        }
    }

    fn signed(&mut self) -> Result<(), Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.mistake(format!("more than {DEEPEST} parentheses, signs and powers inside each other")));
        }
        if self.take('-') {
            self.signed()?;
            self.ops.push(Op::Unary(Unary::Neg));
        } else if self.take('+') {
            self.signed()?;
        } else {
            self.atom()?;
            if self.take('^') {
                self.signed()?;
                self.binary(Binary::Pow);
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn atom(&mut self) -> Result<(), Mistake> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.expression()?;
                self.close()
            }
            Some('0'..='9' | '.') => {
                let length = number::length(&self.text[self.at..]);
                let number = number::read(&self.text[self.at..self.at + length]).map_err(|what| self.mistake(what))?;
                self.at += length;
                self.ops.push(Op::Number(number));
                Ok(())
            }
            Some(c) if c.is_alphabetic() || c == '_' => self.name(),
            _ => Err(self.mistake("expected a number, a name or \"(\"")),
        }
    }

    fn close(&mut self) -> Result<(), Mistake> {
        if self.take(')') { Ok(()) } else { Err(self.mistake("expected an operator or \")\"")) }
    }

    fn name(&mut self) -> Result<(), Mistake> {
        let rest = &self.text[self.at..];
        let name = &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())];
        let here = self.at;
        self.at += name.len();
        if let Some((_, function)) = UNARY.iter().find(|(known, _)| *known == name) {
            return match self.arguments()? {
                1 => {
                    self.ops.push(Op::Unary(*function));
                    Ok(())
                }
                count => Err(self.mistake(format!("{count} arguments for {name}"))),
            };
        }
        if let Some((_, over)) = OVER.iter().find(|(known, _)| *known == name) {
            return self.over(name, *over);
        }
        let op = match (name, numbered(name, "x", self.dim), numbered(name, "own", self.dim)) {
            ("pi", ..) => Op::Number(Interval::PI),
            ("place", ..) => Op::Place,
            ("ownplace", ..) => Op::OwnPlace,
            ("self", ..) => Op::Itself,
            (_, Some(k), _) => Op::X(k),
            (_, _, Some(k)) => Op::Own(k),
            _ => {
                self.at = here;
                let shown: String = name.chars().take(40).collect();
                return Err(self.mistake(format!("unknown name {shown:?} for tokens of {} coordinates", self.dim)));
            }
        };
        self.ops.push(op);
        Ok(())
    }

    /// With one argument over all tokens; min and max of more are plain.
    fn over(&mut self, name: &str, over: Over) -> Result<(), Mistake> {
        let start = self.ops.len();
        let count = self.arguments()?;
        if count == 1 {
            let body = self.ops.split_off(start);
            self.ops.push(Op::Slot(self.aggregates.len()));
            self.aggregates.push(Aggregate { over, body });
            return Ok(());
        }
        let plain = match over {
            Over::Min => Binary::Min,
            Over::Max => Binary::Max,
            _ => return Err(self.mistake(format!("{count} arguments for {name}"))),
        };
        (1..count).for_each(|_| self.binary(plain));
        Ok(())
    }

    /// How many arguments stand in the parentheses that follow.
    fn arguments(&mut self) -> Result<usize, Mistake> {
        if !self.take('(') {
            return Err(self.mistake("expected \"(\" after the name of a function"));
        }
        self.expression()?;
        let mut count = 1;
        while self.take(',') {
            self.expression()?;
            count += 1;
        }
        self.close()?;
        Ok(count)
    }
}

/// The coordinate, from 0, that a name like x3 means.
fn numbered(name: &str, prefix: &str, dim: usize) -> Option<usize> {
    let digits = name.strip_prefix(prefix)?;
    let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|k| plain && (1..=dim).contains(k)).map(|k: usize| k - 1)
}
