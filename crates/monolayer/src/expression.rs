//! Functions as text: one expression per output coordinate, separated by semicolons.

use crate::arithmetic::Interval;
use crate::error::Result;
use crate::function::{Enclosure, Function};

/// A function given as text, for tokens of d coordinates and any number of tokens.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    dim: usize,
}

impl Expression {
    /// Reads `text`, one expression for each of the `dim` coordinates, or the name of a function of the zoo.
    pub fn parse(text: &str, dim: usize) -> Result<Self> {
        todo!("{text} {dim}")
    }

    /// The text: of a function of the zoo, what its name stands for.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The coordinates of a token: d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The function on sequences of `length` tokens.
    pub fn at_length(&self, length: usize) -> Result<Program> {
        todo!("{length}")
    }
}

/// An expression unrolled for sequences of a fixed length.
#[derive(Debug, Clone)]
pub struct Program {
    dim: usize,
    length: usize,
}

/// Whether a function is defined and finite on the whole cube.
#[derive(Debug, Clone, PartialEq)]
pub enum Domain {
    /// It is, and here is a range for each output coordinate.
    Defined(Vec<Interval>),
    /// It is not: what goes wrong at which sequence.
    Undefined {
        /// The sequence, row-major.
        witness: Vec<f64>,
        /// What goes wrong there, in words.
        what: String,
    },
    /// The budget was used up; a box where it is open.
    Undecided {
        /// A box of sequences, row-major.
        place: Vec<Interval>,
        /// What may go wrong there, in words.
        what: String,
    },
}

impl Program {
    /// Whether the function is defined and finite on the whole cube, with at most `budget` evaluations.
    pub fn domain(&self, budget: usize) -> Domain {
        todo!("{budget}")
    }
}

impl Function for Program {
    fn dim(&self) -> usize {
        self.dim
    }

    fn length(&self) -> usize {
        self.length
    }

    fn is_equivariant(&self) -> bool {
        true
    }

    fn values(&self, sequence: &[f64], outputs: &mut [f64]) {
        todo!("{sequence:?} {outputs:?}")
    }

    fn enclose(&self, sequence: &[Interval], token: usize) -> Vec<Enclosure> {
        todo!("{sequence:?} {token}")
    }
}
