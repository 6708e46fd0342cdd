//! Straight-line programs: what an expression comes to for sequences of fixed length, one output token and one coordinate.
//!
//! Equal subexpressions are one node, constants are folded, and `a - a` is 0: since the output token is one of the
//! running tokens, `x1 - own1` is exactly 0 there, where an enclosure of the difference would not be.

use std::collections::HashMap;

use super::elementary;
use super::lexer::Constant;
use super::parse::{Binary, Unary};

/// The number of a node.
pub(super) type Index = u32;

/// What a node computes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// A number.
    Constant(Constant),
    /// An entry of the sequence.
    Entry(usize),
    /// A function of one node.
    Unary(Unary, Index),
    /// A function of two nodes.
    Binary(Binary, Index, Index),
    /// A power with a constant integer exponent.
    Power(Index, i32),
    /// The population variance.
    Variance(Vec<Index>),
}

/// Nodes in order of computation.
#[derive(Debug, Clone, Default)]
pub(super) struct Tape {
    /// A node uses only nodes before it.
    pub nodes: Vec<Node>,
    /// The output.
    pub output: Index,
    /// For each node the step of the code where it first came from.
    pub origins: Vec<usize>,
}

/// A node by its parts, floats by their bits.
#[derive(PartialEq, Eq, Hash)]
enum NodeKey {
    Constant(u64, u64, u64),
    Entry(usize),
    Unary(Unary, Index),
    Binary(Binary, Index, Index),
    Power(Index, i32),
    Variance(Vec<Index>),
}

/// Makes a tape, sharing what is equal.
#[derive(Default)]
pub(super) struct Builder {
    pub tape: Tape,
    /// Where new nodes come from.
    pub origin: usize,
    known: HashMap<NodeKey, Index>,
    /// Whether a node is defined everywhere.
    total: Vec<bool>,
}

impl Builder {
    pub fn float(&mut self, x: f64) -> Index {
        self.constant(Constant::float(x))
    }

    pub fn constant(&mut self, constant: Constant) -> Index {
        self.add(Node::Constant(constant))
    }

    pub fn entry(&mut self, entry: usize) -> Index {
        self.add(Node::Entry(entry))
    }

    pub fn unary(&mut self, function: Unary, a: Index) -> Index {
        if let Some(x) = self.known_constant(a) {
            let exact = elementary::unary(function, x.exact);
            if exact.is_bounded() && elementary::unary_trouble(function, x.exact).is_none() {
                return self.constant(Constant { nearest: elementary::unary_float(function, x.nearest), exact });
            }
        }
        self.add(Node::Unary(function, a))
    }

    pub fn binary(&mut self, function: Binary, a: Index, b: Index) -> Index {
        let (x, y) = (self.known_constant(a), self.known_constant(b));
        if let (Binary::Pow, Some(y)) = (function, y)
            && let Some(exponent) = integer(y)
        {
            return self.power(a, exponent);
        }
        if let (Some(x), Some(y)) = (x, y) {
            let exact = elementary::binary(function, x.exact, y.exact);
            if exact.is_bounded() && elementary::binary_trouble(function, x.exact, y.exact).is_none() {
                return self
                    .constant(Constant { nearest: elementary::binary_float(function, x.nearest, y.nearest), exact });
            }
        }
        let is = |constant: Option<Constant>, value: f64| constant == Some(Constant::float(value));
        match function {
            Binary::Sub if a == b && self.total[a as usize] => self.float(0.0),
            Binary::Min | Binary::Max if a == b => a,
            Binary::Mul if a == b => self.power(a, 2),
            Binary::Add | Binary::Sub if is(y, 0.0) => a,
            Binary::Add if is(x, 0.0) => b,
            Binary::Mul | Binary::Div if is(y, 1.0) => a,
            Binary::Mul if is(x, 1.0) => b,
            // Sums and products do not depend on the order.
            Binary::Add | Binary::Mul if a > b => self.add(Node::Binary(function, b, a)),
            _ => self.add(Node::Binary(function, a, b)),
        }
    }

    /// `a^exponent`, with 0^0 = 1.
    fn power(&mut self, a: Index, exponent: i32) -> Index {
        if let Some(x) = self.known_constant(a) {
            let exact = x.exact.powi(exponent);
            if exact.is_bounded() {
                return self.constant(Constant { nearest: elementary::power_float(x.nearest, exponent), exact });
            }
        }
        match exponent {
            0 if self.total[a as usize] => self.float(1.0),
            1 => a,
            _ => self.add(Node::Power(a, exponent)),
        }
    }

    pub fn variance(&mut self, mut tokens: Vec<Index>) -> Index {
        let same = tokens.iter().all(|token| *token == tokens[0]);
        if same && self.total[tokens[0] as usize] {
            return self.float(0.0);
        }
        tokens.sort_unstable();
        self.add(Node::Variance(tokens))
    }

    fn known_constant(&self, a: Index) -> Option<Constant> {
        match self.tape.nodes[a as usize] {
            Node::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    fn add(&mut self, node: Node) -> Index {
        let key = match &node {
            Node::Constant(c) => NodeKey::Constant(c.nearest.to_bits(), c.exact.lo().to_bits(), c.exact.hi().to_bits()),
            Node::Entry(entry) => NodeKey::Entry(*entry),
            Node::Unary(function, a) => NodeKey::Unary(*function, *a),
            Node::Binary(function, a, b) => NodeKey::Binary(*function, *a, *b),
            Node::Power(a, exponent) => NodeKey::Power(*a, *exponent),
            Node::Variance(tokens) => NodeKey::Variance(tokens.clone()),
        };
        if let Some(index) = self.known.get(&key) {
            return *index;
        }
        let index = self.tape.nodes.len() as Index;
        self.total.push(self.is_total(&node));
        self.tape.nodes.push(node);
        self.tape.origins.push(self.origin);
        self.known.insert(key, index);
        index
    }

    fn is_total(&self, node: &Node) -> bool {
        let total = |a: &Index| self.total[*a as usize];
        match node {
            Node::Constant(_) | Node::Entry(_) => true,
            Node::Unary(Unary::Tan | Unary::Log | Unary::Sqrt, _) | Node::Binary(Binary::Div | Binary::Pow, ..) => {
                false
            }
            Node::Unary(_, a) => total(a),
            Node::Binary(_, a, b) => total(a) && total(b),
            Node::Power(a, exponent) => *exponent >= 0 && total(a),
            Node::Variance(tokens) => tokens.iter().all(total),
        }
    }
}

/// The integer that a constant certainly is.
fn integer(constant: Constant) -> Option<i32> {
    let x = constant.nearest;
    let exact = constant.exact.lo() == x && constant.exact.hi() == x;
    (exact && x.fract() == 0.0 && x.abs() <= 1e9).then_some(x as i32)
}
