//! Running a tape over floats and over boxes of sequences.

use super::elementary::{self, Trouble};
use super::tape::{Index, Node, Tape};
use super::variance;
use crate::arithmetic::Interval;

/// All nodes over a box of sequences.
pub(super) struct Ranges {
    /// Contains the values of each node, where it is defined.
    pub nodes: Vec<Interval>,
    /// The first node that may be undefined or not finite, the first certain one if there is any, and why.
    pub trouble: Option<(Index, Trouble)>,
}

impl Tape {
    /// All nodes for one sequence; NaN or infinite where the expression is undefined.
    pub fn floats(&self, entry: impl Fn(usize) -> f64, nodes: &mut Vec<f64>) {
        nodes.clear();
        for node in &self.nodes {
            let at = |a: Index| nodes[a as usize];
            let value = match node {
                Node::Constant(constant) => constant.nearest,
                Node::Entry(i) => entry(*i),
                Node::Unary(function, a) => elementary::unary_float(*function, at(*a)),
                Node::Binary(function, a, b) => elementary::binary_float(*function, at(*a), at(*b)),
                Node::Power(a, exponent) => elementary::power_float(at(*a), *exponent),
                Node::Variance(tokens) => variance::of_floats(tokens.iter().map(|a| at(*a))),
            };
            nodes.push(value);
        }
    }

    /// All nodes over a box of sequences.
    pub fn ranges(&self, entry: impl Fn(usize) -> Interval) -> Ranges {
        self.ranges_given(entry, &[])
    }

    /// All nodes over a box of sequences, where something is known about some of them.
    pub fn ranges_given(&self, entry: impl Fn(usize) -> Interval, known: &[(Index, Interval)]) -> Ranges {
        let mut nodes: Vec<Interval> = Vec::with_capacity(self.nodes.len());
        let mut first: Option<(Index, Trouble)> = None;
        for node in &self.nodes {
            let at = |a: Index| nodes[a as usize];
            let (value, trouble) = match node {
                Node::Constant(constant) => (constant.exact, None),
                Node::Entry(i) => (entry(*i), None),
                Node::Unary(function, a) => {
                    (elementary::unary(*function, at(*a)), elementary::unary_trouble(*function, at(*a)))
                }
                Node::Binary(function, a, b) => (
                    elementary::binary(*function, at(*a), at(*b)),
                    elementary::binary_trouble(*function, at(*a), at(*b)),
                ),
                Node::Power(a, exponent) => (at(*a).powi(*exponent), elementary::power_trouble(at(*a), *exponent)),
                Node::Variance(tokens) => {
                    (variance::of_intervals(&tokens.iter().map(|a| at(*a)).collect::<Vec<_>>()), None)
                }
            };
            let value = known
                .iter()
                .filter(|(a, _)| *a as usize == nodes.len())
                .fold(value, |value, (_, range)| value.clamp(range.lo(), range.hi()));
            if let Some(trouble) = trouble.or_else(|| elementary::overflow(value))
                && first.is_none_or(|(_, earlier)| trouble.certain && !earlier.certain)
            {
                first = Some((nodes.len() as Index, trouble));
            }
            nodes.push(value);
        }
        Ranges { nodes, trouble: first }
    }
}
