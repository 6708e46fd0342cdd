//! Cells: products of plateaus, one per coordinate of each token, as the output token sees them.
//!
//! Without positions, and for a function that does not know places, the order of the other tokens is of no matter: the
//! cell of the output token with the multiset of the others' stands for all arrangements, and one output token for all.

use super::network::{Code, Network};
use super::parts::{Part, Side};
use crate::interval::Interval;
use crate::model::Model;

/// Numbers that cells may take up in memory.
const MOST: u128 = 1 << 24;

/// All cells.
pub struct Cells {
    length: usize,
    /// One for all places, or one per place; `[places][d]`.
    sides: Vec<Vec<Side>>,
    /// The quantizer's output on each token cell, `[places][token cells]`.
    codes: Vec<Vec<Code>>,
    /// And anywhere in the cube, `[places]`.
    whole: Vec<Code>,
    symmetric: bool,
    /// Token cells, `[cells / places asked, n]`; up to symmetry the output token's first.
    tokens: Vec<u32>,
    /// How many cells.
    pub count: usize,
    /// The measure of the sequences with some coordinate on a ramp, from above.
    pub steep: f64,
}

impl Cells {
    /// All cells of sequences of `length` tokens; an error says why there is no such thing.
    pub fn new(network: &Network, model: &Model, length: usize, equivariant: bool) -> Result<Self, String> {
        let d = model.d;
        let places = model.positions.as_ref().map_or(1, |_| length);
        if length == 0 || (length as u128) * (d as u128) > 64 {
            return Err(format!("sequences of {length} tokens of {d} coordinates are out of this checker's reach"));
        }
        if model.max_length.is_some_and(|most| most < length) {
            return Err(format!("the model reads fewer than {length} tokens"));
        }
        let side = |place: usize, t: usize| {
            let p = model.positions.as_ref().map_or(0.0, |positions| positions[place * d + t]);
            let none = || format!("the quantizer has no plateau in coordinate {}", t + 1);
            Side::new(&network.quantizer[t], d, p).ok_or_else(none)
        };
        let row = |place: usize| (0..d).map(|t| side(place, t)).collect::<Result<Vec<Side>, String>>();
        let sides = (0..places).map(row).collect::<Result<Vec<_>, String>>()?;
        let symmetric = model.positions.is_none() && equivariant;

        let counts: Vec<u128> = (0..length).map(|place| token_cells(&sides[place.min(places - 1)])).collect();
        let size = if symmetric {
            // m C(m + n - 2, n - 1), built up as binomials.
            (1..length as u128).fold(counts[0], |count, i| count.saturating_mul(counts[0] + i - 1) / i)
        } else {
            counts.iter().fold(1_u128, |all, count| all.saturating_mul(*count))
        };
        let answers = if symmetric { 1 } else { length as u128 };
        if size.saturating_mul(answers).saturating_mul((length * d) as u128) > MOST {
            return Err(format!("{size} cells of {length} tokens are too many to look at"));
        }
        let flat = sides.iter().cycle().take(length).flatten().map(Side::flat);
        let steep = (Interval::point(1.0) - flat.fold(Interval::point(1.0), |all, flat| all * flat)).hi.max(0.0);
        let code = |sides: &Vec<Side>| {
            let cells = 0..token_cells(sides) as u32;
            cells.map(|cell| network.code(&parts(sides, cell).collect::<Vec<_>>())).collect()
        };
        let whole = |sides: &Vec<Side>| network.code(&sides.iter().map(|side| &side.whole).collect::<Vec<_>>());
        Ok(Self {
            length,
            codes: sides.iter().map(code).collect(),
            whole: sides.iter().map(whole).collect(),
            tokens: if symmetric { multisets(counts[0] as u32, length) } else { tuples(&counts) },
            count: (size * answers) as usize,
            sides,
            symmetric,
            steep,
        })
    }

    /// The token cells of a cell.
    fn tokens(&self, i: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let row = i % (self.tokens.len() / self.length);
        let tokens = &self.tokens[row * self.length..(row + 1) * self.length];
        let last = self.sides.len() - 1;
        tokens.iter().enumerate().map(move |(place, cell)| (place.min(last), *cell))
    }

    /// The place of the output token.
    pub fn own(&self, i: usize) -> usize {
        i / (self.tokens.len() / self.length)
    }

    /// The codes of all tokens.
    pub fn codes(&self, i: usize) -> impl Iterator<Item = &Code> {
        self.tokens(i).map(|(place, cell)| &self.codes[place][cell as usize])
    }

    /// The codes of all tokens anywhere in the cube, and the output tokens to ask for.
    pub fn whole(&self) -> (Vec<&Code>, std::ops::Range<usize>) {
        (self.whole.iter().cycle().take(self.length).collect(), 0..self.whole.len())
    }

    /// The sides of a cell, ramps shared out among neighbors.
    pub fn tile(&self, i: usize) -> Vec<Interval> {
        self.tokens(i).flat_map(|(place, cell)| parts(&self.sides[place], cell).map(|part| part.tile)).collect()
    }

    /// How many places of the output token and orders of the others a cell stands for.
    pub fn arrangements(&self, i: usize) -> f64 {
        if !self.symmetric {
            return 1.0;
        }
        let tokens: Vec<u32> = self.tokens(i).map(|(_, cell)| cell).collect();
        // n times (n - 1)! over the factorials of how often each cell occurs.
        let (mut orders, mut run) = (self.length as f64, 0.0);
        for (k, pair) in tokens.windows(2).enumerate() {
            run = if k > 0 && pair[0] == pair[1] { run + 1.0 } else { 1.0 };
            orders *= (k + 1) as f64 / run;
        }
        orders
    }
}

fn token_cells(sides: &[Side]) -> u128 {
    sides.iter().fold(1, |all, side| all.saturating_mul(side.parts.len() as u128))
}

/// The parts of a token cell: coordinate 0 varies slowest.
fn parts(sides: &[Side], cell: u32) -> impl Iterator<Item = &Part> {
    let mut stride = token_cells(sides) as usize;
    let mut rest = cell as usize;
    sides.iter().map(move |side| {
        stride /= side.parts.len();
        let part = &side.parts[rest / stride];
        rest %= stride;
        part
    })
}

/// All tuples of token cells, one per place.
fn tuples(counts: &[u128]) -> Vec<u32> {
    let mut all = Vec::new();
    let mut tuple = vec![0_u32; counts.len()];
    loop {
        all.extend_from_slice(&tuple);
        let Some(place) = (0..tuple.len()).rev().find(|&place| u128::from(tuple[place]) + 1 < counts[place]) else {
            return all;
        };
        tuple[place] += 1;
        tuple[place + 1..].fill(0);
    }
}

/// All token cells, each with all multisets of n - 1 others, ascending.
fn multisets(m: u32, length: usize) -> Vec<u32> {
    let mut all = Vec::new();
    for own in 0..m {
        let mut tokens = vec![0_u32; length];
        tokens[0] = own;
        loop {
            all.extend_from_slice(&tokens);
            let Some(place) = (1..length).rev().find(|&place| tokens[place] + 1 < m) else { break };
            let next = tokens[place] + 1;
            tokens[place..].fill(next);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multisets_and_tuples_are_complete() {
        // m C(m + n - 2, n - 1).
        assert_eq!(multisets(5, 3).len(), 3 * 5 * 15);
        assert_eq!(multisets(4, 1), [0, 1, 2, 3]);
        assert_eq!(multisets(2, 3)[..9], [0, 0, 0, 0, 0, 1, 0, 1, 1]);
        assert_eq!(tuples(&[2, 3]), [0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2]);
    }
}
