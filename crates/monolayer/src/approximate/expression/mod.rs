//! Functions as text: one expression per output coordinate, separated by semicolons (docs/format.md, "Expressions").
//!
//! Text is parsed into steps of a stack machine, steps are written out into a tape for sequences of a given length, and tapes
//! are run over floats, for values, and over intervals, for what is certain about values in a box.

mod domain;
mod elementary;
mod evaluate;
mod lexer;
mod names;
mod parse;
mod slopes;
mod tape;
mod unroll;
mod variance;
pub mod zoo;

use crate::approximate::function::{Enclosure, Function};
use crate::arithmetic::Interval;
use crate::error::{Error, Result};
pub use domain::Domain;
use parse::{Code, Instruction};
use tape::Tape;

/// A function given as text, for tokens of d coordinates and any number of tokens.
///
/// ```
/// use monolayer::{Expression, Function};
///
/// let f = Expression::parse("x1 * max(x1)", 1)?.at_length(3)?;
/// let mut outputs = [0.0; 3];
/// f.values(&[0.5, 0.25, 1.0], &mut outputs);
/// assert_eq!(outputs, [0.5, 0.25, 1.0]);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    dim: usize,
    codes: Vec<Code>,
}

impl Expression {
    /// Reads `text`, one expression for each of the `dim` coordinates, or the name of a function of the zoo.
    pub fn parse(text: &str, dim: usize) -> Result<Self> {
        if dim == 0 {
            return Err(Error::setting("tokens of 0 coordinates", "set `dim` to 1 or more"));
        }
        let text = zoo::find(text, dim)?.unwrap_or_else(|| text.to_owned());
        let codes = parse::parse(&text, dim)?;
        Ok(Self { text, dim, codes })
    }

    /// The text: of a function of the zoo, what its name stands for.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The coordinates of a token: d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Whether the function knows the places of tokens, and may therefore not be equivariant.
    pub fn uses_places(&self) -> bool {
        let mut steps = self.codes.iter().flat_map(|code| &code.steps);
        steps.any(|step| matches!(step, Instruction::Place | Instruction::OwnPlace))
    }

    /// What is to be done for the output token `own`.
    fn tapes(&self, length: usize, own: usize) -> Result<Vec<Tape>> {
        self.codes.iter().map(|code| unroll::unroll(code, self.dim, length, own)).collect()
    }

    /// The function on sequences of `length` tokens.
    pub fn at_length(&self, length: usize) -> Result<Program> {
        if length == 0 {
            return Err(Error::setting("sequences of 0 tokens", "set `length` to 1 or more"));
        }
        let tapes = if self.uses_places() { length } else { 1 };
        let tapes = (0..tapes).map(|own| self.tapes(length, own)).collect::<Result<Vec<Vec<Tape>>>>()?;
        Ok(Program { expression: self.clone(), length, tapes })
    }
}

/// An expression on sequences of a fixed length.
#[derive(Debug, Clone)]
pub struct Program {
    expression: Expression,
    length: usize,
    /// For each output token, or only the first one if the function is equivariant, one per output coordinate.
    tapes: Vec<Vec<Tape>>,
}

impl Program {
    /// The expression.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The tapes for an output token, and the entry of the sequence that stands for each of its entries: up to symmetry the
    /// output token changes places with the first one.
    fn tapes(&self, token: usize) -> (&[Tape], impl Fn(usize) -> usize + use<>) {
        let (tapes, swapped) = if self.tapes.len() == 1 { (&self.tapes[0], token) } else { (&self.tapes[token], 0) };
        let d = self.expression.dim;
        let entry = move |i: usize| match i / d {
            0 => swapped * d + i,
            j if j == swapped => i - swapped * d,
            _ => i,
        };
        (tapes, entry)
    }
}

impl Function for Program {
    fn description(&self) -> String {
        self.expression.text.clone()
    }

    fn dim(&self) -> usize {
        self.expression.dim
    }

    fn length(&self) -> usize {
        self.length
    }

    fn is_equivariant(&self) -> bool {
        self.tapes.len() == 1
    }

    fn values(&self, sequence: &[f64], outputs: &mut [f64]) {
        let mut nodes = Vec::new();
        for (token, outputs) in outputs.chunks_exact_mut(self.expression.dim).enumerate() {
            let (tapes, entry) = self.tapes(token);
            for (output, tape) in outputs.iter_mut().zip(tapes) {
                tape.floats(|i| sequence[entry(i)], &mut nodes);
                *output = nodes[tape.output as usize];
            }
        }
    }

    fn enclose(&self, sequence: &[Interval], token: usize, output: usize) -> Enclosure {
        let (tapes, entry) = self.tapes(token);
        let tape = &tapes[output];
        let middle = |i: usize| Interval::point(sequence[i].center());
        let over = tape.ranges(|i| sequence[entry(i)]).nodes;
        let center = tape.ranges(|i| middle(entry(i))).nodes;
        let of_tape = tape.slopes(tape.output, &over, &center, sequence.len());
        // The swap of tokens is its own inverse.
        let slopes: Vec<Interval> = (0..sequence.len()).map(|i| of_tape[entry(i)]).collect();
        let center = center[tape.output as usize];
        let linear = (0..sequence.len()).fold(center, |sum, i| sum + slopes[i] * (sequence[i] - middle(i)));
        Enclosure { range: intersection(over[tape.output as usize], linear), center, slopes, lipschitz: None }
    }
}

/// What two enclosures of the same values have in common.
fn intersection(a: Interval, b: Interval) -> Interval {
    let (lo, hi) = (a.lo().max(b.lo()), a.hi().min(b.hi()));
    // Of a function that is defined nowhere in a box there are no values.
    if lo <= hi { Interval::new(lo, hi) } else { a }
}
