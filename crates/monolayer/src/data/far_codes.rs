//! Codes of +1 and -1 any two of which are far apart, however many there are: extended BCH codes.
//!
//! The code of an index has the sign of `Tr(a_1 x + a_3 x^3 + a_5 x^5 + ...) + c` at each x of the field with 2^m elements. The
//! bits of the index are those of c, a_1, a_3, ..., lowest first. Traces are linear, so that two codes differ where the code of
//! the exclusive or of their indices is +1, and the smallest number of entries in which two of them differ is the smallest
//! number of +1 in a code other than that of 0. Tests count it for all codes of each kind.

use crate::arithmetic::matrix::Matrix;
use crate::error::{Error, Result};

/// The odd powers of x, in the order in which indices get to them.
const POWERS: [u32; 5] = [1, 3, 5, 7, 11];

/// A family of codes of one dimension.
struct Family {
    dimension: usize,
    /// The dimension is 2 to this power.
    m: u32,
    /// What the field is modulo: t^5 + t^2 + 1, or t^6 + t + 1.
    modulus: u32,
    /// Bits of indices, and in how many entries any two codes of such indices differ at least.
    distances: &'static [(u32, usize)],
}

const FAMILIES: [Family; 2] = [
    Family { dimension: 32, m: 5, modulus: 0b10_0101, distances: &[(6, 16), (11, 12), (16, 8), (21, 6), (26, 4)] },
    Family { dimension: 64, m: 6, modulus: 0b100_0011, distances: &[(7, 32), (13, 24), (19, 16), (25, 14)] },
];

impl Family {
    fn of(dimension: usize) -> Option<&'static Self> {
        FAMILIES.iter().find(|family| family.dimension == dimension)
    }

    /// The product in the field.
    fn times(&self, a: u32, b: u32) -> u32 {
        let mut product = (0..self.m).filter(|i| b >> i & 1 == 1).fold(0, |sum, i| sum ^ (a << i));
        for i in (self.m..2 * self.m - 1).rev() {
            if product >> i & 1 == 1 {
                product ^= self.modulus << (i - self.m);
            }
        }
        product
    }

    /// The trace from the field to {0, 1}: x + x^2 + x^4 + ...
    fn trace(&self, x: u32) -> u32 {
        let (mut power, mut sum) = (x, 0);
        for _ in 0..self.m {
            sum ^= power;
            power = self.times(power, power);
        }
        sum
    }

    /// The codes of 1, 2, 4, 8, ... as bits, one per entry.
    fn basis(&self) -> Vec<u64> {
        let points = 0..1_u32 << self.m;
        let word = |bit: &dyn Fn(u32) -> u32| points.clone().fold(0, |word, x| word | u64::from(bit(x)) << x);
        let mut basis = vec![word(&|_| 1)];
        for power in POWERS {
            let raised = |x: u32| (0..power).fold(1, |product, _| self.times(product, x));
            basis.extend((0..self.m).map(|i| word(&|x| self.trace(self.times(1 << i, raised(x))))));
        }
        basis
    }

    /// Bits of indices for so many codes, and their distance.
    fn size(&self, count: usize) -> Option<(u32, usize)> {
        self.distances.iter().copied().find(|&(bits, _)| count <= 1 << bits)
    }
}

/// In how many entries any two of `count` codes differ at least; none where there are no such codes.
pub fn distance(dimension: usize, count: usize) -> Option<usize> {
    Family::of(dimension)?.size(count).map(|(_, distance)| distance)
}

/// `count` codes. Which code an index has depends on the seed; it is its own for the seed 0.
pub fn codes(dimension: usize, count: usize, seed: u64) -> Result<Matrix<f64>> {
    let family = Family::of(dimension).ok_or_else(|| {
        Error::setting(format!("there are no far codes of dimension {dimension}"), "use far:32 or far:64")
    })?;
    let (bits, _) = family.size(count).ok_or_else(|| {
        let what = format!("{count} words are too many for far codes of dimension {dimension}");
        Error::too_large(what, "use sign:64, or sign:D with a larger D")
    })?;
    let basis = family.basis();
    // An odd factor and a summand: all indices of so many bits, in another order.
    let hash = blake3::hash(&seed.to_le_bytes());
    let number = |at: usize| u64::from_le_bytes(hash.as_bytes()[at..at + 8].try_into().expect("eight bytes"));
    let (factor, summand) = if seed == 0 { (1, 0) } else { (number(0) | 1, number(8)) };
    let code = |index: usize| {
        let index = (index as u64).wrapping_mul(factor).wrapping_add(summand) & ((1 << bits) - 1);
        basis.iter().enumerate().filter(|&(i, _)| index >> i & 1 == 1).fold(0, |code, (_, &word)| code ^ word)
    };
    let mut data = Vec::with_capacity(count * dimension);
    for index in 0..count {
        let code = code(index);
        data.extend((0..dimension).map(|x| if code >> x & 1 == 1 { 1.0 } else { -1.0 }));
    }
    Ok(Matrix::new(count, dimension, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_codes_are_as_far_apart_as_stated() {
        for family in &FAMILIES {
            let basis = family.basis();
            let (mut code, mut fewest) = (0_u64, u32::MAX);
            let mut stated = family.distances.iter();
            let mut next = stated.next();
            // In the order of a Gray code, in which an index differs from the last by one bit.
            for step in 1_u64..1 << family.distances.last().unwrap().0 {
                code ^= basis[step.trailing_zeros() as usize];
                fewest = fewest.min(code.count_ones());
                if let Some(&(bits, distance)) = next
                    && step + 1 == 1 << bits
                {
                    assert_eq!(fewest as usize, distance, "{bits} bits");
                    next = stated.next();
                }
            }
            assert!(next.is_none());
        }
    }

    #[test]
    fn seeds_reorder_codes() {
        for (dimension, count) in [(32, 40), (64, 3000)] {
            let rows = |seed: u64| codes(dimension, count, seed).unwrap();
            let (a, b) = (rows(0), rows(1));
            assert_ne!(a, b);
            for codes in [a, b] {
                let differ = |i: usize, j: usize| codes.row(i).iter().zip(codes.row(j)).filter(|(x, y)| x != y).count();
                let nearest =
                    (0..200.min(count)).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| differ(i, j)).min();
                assert!(nearest >= distance(dimension, count));
            }
        }
        assert_eq!(distance(64, 1 << 20), Some(14));
        assert!(codes(48, 3, 0).is_err() && codes(32, 1 << 27, 0).is_err());
    }
}
