//! The grammar, by recursive descent:
//!
//! ```text
//! function   = expression { ";" expression }
//! expression = term { ("+" | "-") term }
//! term       = signed { ("*" | "/") signed }
//! signed     = ("-" | "+") signed | power
//! power      = atom [ "^" signed ]
//! atom       = number | name | name "(" expression { "," expression } ")" | "(" expression ")"
//! ```
//!
//! The result is postfix code, but for aggregates, which stand before their bodies: they are run once per token.

use std::ops::Range;

use super::lexer::{Constant, Placed, Word, mistake, words};
use super::names::{Name, meaning, unknown};
use crate::arithmetic::Interval;
use crate::error::{Error, Result};

/// Parentheses, calls, signs and powers inside each other, at most.
const DEEPEST: usize = 200;

/// Functions of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Unary {
    Neg,
    Sin,
    Cos,
    Tan,
    Exp,
    Log,
    Sqrt,
    Abs,
    Tanh,
    Sign,
    Instruction,
}

/// Functions of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Min,
    Max,
}

/// Functions of what all tokens of a sequence say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Aggregate {
    Sum,
    Mean,
    Min,
    Max,
    Var,
}

/// A step of a stack machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Instruction {
    /// Push a number.
    Number(Constant),
    /// Push a coordinate, from 0, of the running token.
    Coordinate(usize),
    /// Push a coordinate, from 0, of the output token.
    Own(usize),
    /// Push 1 if the running token is the output token, else 0.
    Itself,
    /// Push the place, from 1, of the running token.
    Place,
    /// Push the place, from 1, of the output token.
    OwnPlace,
    /// Replace the top.
    Unary(Unary),
    /// Replace the two at the top.
    Binary(Binary),
    /// Run the steps that follow, up to `end`, for each token, and push what they come to together.
    Aggregate { kind: Aggregate, end: usize },
    /// Nothing.
    Pass,
}

/// The code of one expression, with the bytes of the text that each step comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Code {
    pub steps: Vec<Instruction>,
    pub spans: Vec<Range<usize>>,
}

/// Reads one expression for each of `dim` coordinates.
pub(super) fn parse(text: &str, dim: usize) -> Result<Vec<Code>> {
    let mut parser =
        ExpressionParser { text, dim, words: words(text)?, at: 0, depth: 0, steps: Vec::new(), spans: Vec::new() };
    let mut codes = Vec::new();
    loop {
        parser.expression()?;
        codes.push(Code { steps: std::mem::take(&mut parser.steps), spans: std::mem::take(&mut parser.spans) });
        match parser.word() {
            Word::Sign(';') => parser.at += 1,
            Word::End => break,
            _ => return Err(parser.unexpected("an operator, \";\" or the end")),
        }
        if codes.len() == dim {
            return Err(parser.too_many());
        }
    }
    if codes.len() < dim {
        let what = format!("{} for tokens of {dim} coordinates", count(codes.len(), "expression"));
        let help = "write one expression per coordinate, separated by semicolons, or set `dim`";
        return Err(mistake(text, text.len(), what, help));
    }
    Ok(codes)
}

/// "1 argument", "2 arguments".
fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

struct ExpressionParser<'a> {
    text: &'a str,
    dim: usize,
    words: Vec<Placed>,
    at: usize,
    depth: usize,
    steps: Vec<Instruction>,
    spans: Vec<Range<usize>>,
}

impl ExpressionParser<'_> {
    fn word(&self) -> &Word {
        &self.words[self.at].word
    }

    fn start(&self) -> usize {
        self.words[self.at].span.start
    }

    /// Takes a sign if it is one of `signs`.
    fn take(&mut self, signs: &[char]) -> Option<char> {
        match *self.word() {
            Word::Sign(sign) if signs.contains(&sign) => {
                self.at += 1;
                Some(sign)
            }
            _ => None,
        }
    }

    /// Adds a step for the text from byte `start` to the last word taken.
    fn emit(&mut self, step: Instruction, start: usize) {
        self.steps.push(step);
        self.spans.push(start..self.words[self.at - 1].span.end);
    }

    fn expression(&mut self) -> Result<()> {
        let start = self.start();
        self.term()?;
        while let Some(sign) = self.take(&['+', '-']) {
            self.term()?;
            self.emit(Instruction::Binary(if sign == '+' { Binary::Add } else { Binary::Sub }), start);
        }
        Ok(())
    }

    fn term(&mut self) -> Result<()> {
        let start = self.start();
        self.signed()?;
        while let Some(sign) = self.take(&['*', '/']) {
            self.signed()?;
            self.emit(Instruction::Binary(if sign == '*' { Binary::Mul } else { Binary::Div }), start);
        }
        Ok(())
    }

    fn signed(&mut self) -> Result<()> {
        let start = self.start();
        self.depth += 1;
        if self.depth > DEEPEST {
            let what = format!("more than {DEEPEST} parentheses, signs and powers inside each other");
            return Err(mistake(self.text, start, what, "write it with fewer"));
        }
        match self.take(&['-', '+']) {
            Some('-') => {
                self.signed()?;
                self.emit(Instruction::Unary(Unary::Neg), start);
            }
            Some(_) => self.signed()?,
            None => self.power()?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn power(&mut self) -> Result<()> {
        let start = self.start();
        self.atom()?;
        if self.take(&['^']).is_some() {
            self.signed()?;
            self.emit(Instruction::Binary(Binary::Pow), start);
        }
        Ok(())
    }

    fn atom(&mut self) -> Result<()> {
        let start = self.start();
        match self.word().clone() {
            Word::Number(constant) => {
                self.at += 1;
                self.emit(Instruction::Number(constant), start);
                Ok(())
            }
            Word::Name(name) => self.name(&name),
            Word::Sign('(') => {
                self.at += 1;
                self.expression()?;
                self.close(start)
            }
            _ => Err(self.unexpected("a number, a name or \"(\"")),
        }
    }

    fn name(&mut self, name: &str) -> Result<()> {
        let start = self.start();
        let meaning = meaning(name, self.dim).ok_or_else(|| unknown(self.text, start, name, self.dim))?;
        self.at += 1;
        let called = *self.word() == Word::Sign('(');
        let step = match meaning {
            Name::Unary(_) | Name::Aggregate(_) if !called => {
                let help = format!("{name} is a function: write {name}(x1)");
                return Err(mistake(self.text, self.start(), format!("expected \"(\" after {name}"), help));
            }
            Name::Unary(function) => return self.unary(name, function, start),
            Name::Aggregate(kind) => return self.aggregate(name, kind, start),
            _ if called => {
                let help = format!("{name} is a number, not a function; products are written {name}*(...)");
                return Err(mistake(self.text, self.start(), format!("\"(\" after {name}"), help));
            }
            Name::Coordinate(k) => Instruction::Coordinate(k),
            Name::Own(k) => Instruction::Own(k),
            Name::Itself => Instruction::Itself,
            Name::Place => Instruction::Place,
            Name::OwnPlace => Instruction::OwnPlace,
            Name::Pi => Instruction::Number(Constant { nearest: std::f64::consts::PI, exact: Interval::pi() }),
        };
        self.emit(step, start);
        Ok(())
    }

    fn unary(&mut self, name: &str, function: Unary, start: usize) -> Result<()> {
        let arguments = self.arguments()?;
        if arguments != 1 {
            let help = format!("{name} takes one");
            return Err(mistake(self.text, start, format!("{} for {name}", count(arguments, "argument")), help));
        }
        self.emit(Instruction::Unary(function), start);
        Ok(())
    }

    /// With one argument an aggregate; min and max of more are plain.
    fn aggregate(&mut self, name: &str, kind: Aggregate, start: usize) -> Result<()> {
        let header = self.steps.len();
        self.emit(Instruction::Pass, start);
        let arguments = self.arguments()?;
        let plain = match kind {
            _ if arguments == 1 => {
                self.steps[header] = Instruction::Aggregate { kind, end: self.steps.len() };
                self.spans[header].end = self.words[self.at - 1].span.end;
                return Ok(());
            }
            Aggregate::Min => Binary::Min,
            Aggregate::Max => Binary::Max,
            _ => {
                let help = format!("{name} runs over the tokens of the sequence and takes one expression");
                return Err(mistake(self.text, start, format!("{} for {name}", count(arguments, "argument")), help));
            }
        };
        for _ in 1..arguments {
            self.emit(Instruction::Binary(plain), start);
        }
        Ok(())
    }

    /// Reads what stands in parentheses after a name; how many arguments there are.
    fn arguments(&mut self) -> Result<usize> {
        let open = self.start();
        self.at += 1;
        self.expression()?;
        let mut arguments = 1;
        while self.take(&[',']).is_some() {
            self.expression()?;
            arguments += 1;
        }
        self.close(open)?;
        Ok(arguments)
    }

    /// Takes the parenthesis that closes the one at byte `open`.
    fn close(&mut self, open: usize) -> Result<()> {
        if self.take(&[')']).is_some() {
            return Ok(());
        }
        let opened = self.text[..open].chars().count() + 1;
        Err(self.unexpected(&format!("an operator or \")\" for the \"(\" at character {opened}")))
    }

    fn too_many(&self) -> Error {
        let more = 1 + self.words[self.at..].iter().filter(|placed| placed.word == Word::Sign(';')).count();
        if more == 1 && *self.word() == Word::End {
            return mistake(self.text, self.start(), "nothing follows the last semicolon", "remove it");
        }
        let what = format!("{} for tokens of {}", count(self.dim + more, "expression"), count(self.dim, "coordinate"));
        mistake(self.text, self.start(), what, "write one expression per coordinate, or set `dim`")
    }

    /// What stands here is not what was expected.
    fn unexpected(&self, expected: &str) -> Error {
        let (found, help) = match self.word() {
            Word::End if self.text.trim().is_empty() => {
                ("nothing".to_owned(), "write an expression, as in x1 - mean(x1)")
            }
            Word::End => ("the end".to_owned(), "something is missing"),
            Word::Sign(';') => ("\";\"".to_owned(), "something is missing before the semicolon"),
            Word::Sign(')') if self.depth == 0 => ("\")\"".to_owned(), "there is no \"(\" for it"),
            Word::Sign(',') => {
                ("\",\"".to_owned(), "commas separate the arguments of min and max, semicolons the outputs")
            }
            Word::Sign(sign) => (format!("{:?}", sign.to_string()), "operators stand between two operands"),
            Word::Number(_) | Word::Name(_) => {
                let found = &self.text[self.words[self.at].span.clone()];
                (format!("{found:?}"), "products are written with *, as in 2*x1")
            }
        };
        mistake(self.text, self.start(), format!("expected {expected}, found {found}"), help)
    }
}
