//! Code into tapes: aggregates written out over the tokens of a sequence.

use std::collections::HashMap;

use super::parse::{Aggregate, Binary, Code, Instruction};
use super::tape::{Builder, Index, Tape};
use crate::error::{Error, Result};

/// Nodes of one tape, at most.
const LARGEST: usize = 1 << 22;

/// Writes the code out for sequences of `length` tokens of `dim` coordinates, and the output token `own`.
pub(super) fn unroll(code: &Code, dim: usize, length: usize, own: usize) -> Result<Tape> {
    let mut unroll = Unroll { code, dim, length, own, builder: Builder::default(), aggregates: HashMap::new() };
    unroll.builder.tape.output = unroll.run(0..code.steps.len(), own)?;
    Ok(unroll.builder.tape)
}

struct Unroll<'a> {
    code: &'a Code,
    dim: usize,
    length: usize,
    own: usize,
    builder: Builder,
    /// The nodes of aggregates that were written out: they depend on the output token, never on a running one.
    aggregates: HashMap<usize, Index>,
}

impl Unroll<'_> {
    /// The node that some steps come to for a running token.
    fn run(&mut self, steps: std::ops::Range<usize>, running: usize) -> Result<Index> {
        let mut stack: Vec<Index> = Vec::new();
        let mut at = steps.start;
        while at < steps.end {
            let mut pop = || stack.pop().expect("the parser balances the stack");
            self.builder.origin = at;
            let node = match self.code.steps[at] {
                Instruction::Number(constant) => self.builder.constant(constant),
                Instruction::Coordinate(k) => self.builder.entry(running * self.dim + k),
                Instruction::Own(k) => self.builder.entry(self.own * self.dim + k),
                Instruction::Itself => self.builder.float(f64::from(u8::from(running == self.own))),
                Instruction::Place => self.builder.float((running + 1) as f64),
                Instruction::OwnPlace => self.builder.float((self.own + 1) as f64),
                Instruction::Unary(function) => self.builder.unary(function, pop()),
                Instruction::Binary(function) => {
                    let (b, a) = (pop(), pop());
                    self.builder.binary(function, a, b)
                }
                Instruction::Aggregate { kind, end } => {
                    let node = self.aggregate(kind, at, end)?;
                    at = end - 1;
                    node
                }
                Instruction::Pass => {
                    at += 1;
                    continue;
                }
            };
            stack.push(node);
            at += 1;
            self.check_size()?;
        }
        Ok(stack.pop().expect("an expression comes to a number"))
    }

    fn aggregate(&mut self, kind: Aggregate, at: usize, end: usize) -> Result<Index> {
        if let Some(node) = self.aggregates.get(&at) {
            return Ok(*node);
        }
        let tokens = (0..self.length).map(|token| self.run(at + 1..end, token)).collect::<Result<Vec<Index>>>()?;
        self.builder.origin = at;
        let mut joined = |function| {
            let tokens = tokens.iter().copied();
            tokens.reduce(|a, b| self.builder.binary(function, a, b)).expect("at least one token")
        };
        let node = match kind {
            Aggregate::Sum => joined(Binary::Add),
            Aggregate::Mean => {
                let sum = joined(Binary::Add);
                let length = self.builder.float(self.length as f64);
                self.builder.binary(Binary::Div, sum, length)
            }
            Aggregate::Min => joined(Binary::Min),
            Aggregate::Max => joined(Binary::Max),
            Aggregate::Var => self.builder.variance(tokens),
        };
        self.aggregates.insert(at, node);
        Ok(node)
    }

    fn check_size(&self) -> Result<()> {
        if self.builder.tape.nodes.len() > LARGEST {
            let what =
                format!("the function written out for {} tokens has more than {LARGEST} operations", self.length);
            return Err(Error::too_large(what, "shorten the sequence or the function"));
        }
        Ok(())
    }
}
