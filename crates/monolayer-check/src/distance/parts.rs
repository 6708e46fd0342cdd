//! The plateaus of the quantizer: the parts that it cuts the unit interval of a coordinate into.

use crate::hinges::{Hinges, Reading};
use crate::interval::Interval;

/// A slope below this part of a neighbor's is a plateau's.
const FLAT: f64 = 1e-3;

/// A plateau.
#[derive(Debug, Clone)]
pub struct Part {
    /// Where the coordinate is on it, in [0, 1].
    pub plateau: Interval,
    /// The same with half of the ramps beside it: tiles cover [0, 1].
    pub tile: Interval,
    /// What the quantizer reads there, the position's entry included.
    pub at: Interval,
    /// What the hidden units make of it.
    pub reading: Reading,
}

/// A coordinate of the tokens at one place.
#[derive(Debug, Clone)]
pub struct Side {
    /// Its plateaus, from left to right.
    pub parts: Vec<Part>,
    /// All of [0, 1] as one part.
    pub whole: Part,
}

impl Side {
    /// Cuts a coordinate into plateaus, for a position's entry p; `None` where there is none.
    pub fn new(table: &Hinges, d: usize, p: f64) -> Option<Self> {
        let unit = Interval::new(0.0, 1.0);
        let domain = unit + Interval::point(p);
        let whole = Part { plateau: unit, tile: unit, at: domain, reading: table.read(domain) };
        let first = table.at.partition_point(|at| at.hi <= domain.lo);
        let last = table.at.partition_point(|at| at.lo < domain.hi);
        let flat = |piece: usize| {
            (0..d).all(|c| {
                let size = |piece: usize| table.slope(piece, c).magnitude();
                let (left, right) = (piece.saturating_sub(1), (piece + 1).min(table.at.len()));
                size(piece) <= FLAT * size(left).max(size(right))
            })
        };
        let mut parts: Vec<Part> = Vec::new();
        for piece in first..=last {
            let lo = if piece == first { domain.lo } else { table.at[piece - 1].hi };
            let hi = if piece == last { domain.hi } else { table.at[piece].lo };
            // Inward: what is certainly on the plateau.
            let (from, to) = (Interval::point(lo) - Interval::point(p), Interval::point(hi) - Interval::point(p));
            let plateau = Interval::new(from.hi.max(0.0), to.lo.min(1.0));
            if plateau.lo < plateau.hi && flat(piece) {
                let at = Interval::new(lo, hi);
                parts.push(Part { plateau, tile: plateau, at, reading: table.read(at) });
            }
        }
        let end = parts.len().checked_sub(1)?;
        (parts[0].tile.lo, parts[end].tile.hi) = (0.0, 1.0);
        for i in 0..end {
            let middle = f64::midpoint(parts[i].plateau.hi, parts[i + 1].plateau.lo);
            (parts[i].tile.hi, parts[i + 1].tile.lo) = (middle, middle);
        }
        Some(Self { parts, whole })
    }

    /// How much of [0, 1] the plateaus take up.
    pub fn flat(&self) -> Interval {
        let lengths = self.parts.iter().map(|part| Interval::point(part.plateau.hi) - Interval::point(part.plateau.lo));
        lengths.fold(Interval::point(0.0), |sum, length| sum + length)
    }
}
