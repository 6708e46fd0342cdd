//! The smallest and the largest of many numbers, and whether all are finite.

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};
use crate::error::{Error, Result};

/// The smallest and the largest of some numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits<R> {
    pub low: R,
    pub high: R,
}

/// Lanes of the search for the smallest and the largest number.
const LANES: usize = 32;

/// Takes a number into account: the smallest, the largest, and a sum that is no number from the first one on that is not finite.
#[inline(always)]
#[allow(clippy::inline_always)]
fn take<R: Real>([low, high, poison]: &mut [[R; LANES]; 3], l: usize, x: R) {
    low[l] = if x < low[l] { x } else { low[l] };
    high[l] = if x > high[l] { x } else { high[l] };
    poison[l] += x * R::ZERO;
}

impl<R: Real> Limits<R> {
    /// The range of numbers, at least one, all of which must be finite.
    #[allow(clippy::inline_always)]
    pub fn new(what: &str, numbers: &[R]) -> Result<Self> {
        const CHUNK: usize = 1 << 14;
        let chunk = |numbers: &[R]| {
            kernels::vectorized(
                #[inline(always)]
                || {
                    let mut lanes = [[numbers[0]; LANES], [numbers[0]; LANES], [R::ZERO; LANES]];
                    let (blocks, rest) = numbers.as_chunks::<LANES>();
                    for block in blocks {
                        for (l, &x) in block.iter().enumerate() {
                            take(&mut lanes, l, x);
                        }
                    }
                    for (l, &x) in rest.iter().enumerate() {
                        take(&mut lanes, l, x);
                    }
                    let [low, high, poison] = lanes;
                    let low = low.iter().fold(low[0], |a, &b| if b < a { b } else { a });
                    (low, kernels::largest(&high), kernels::sum(&poison))
                },
            )
        };
        let join = |a: (R, R, R), b: (R, R, R)| (if b.0 < a.0 { b.0 } else { a.0 }, a.1.larger(b.1), a.2 + b.2);
        let (low, high, poison) = if numbers.len() > 2 * CHUNK {
            numbers.par_chunks(CHUNK).map(chunk).reduce_with(join).expect("there are numbers")
        } else {
            chunk(numbers)
        };
        if poison == R::ZERO {
            return Ok(Self { low, high });
        }
        let at = numbers.iter().position(|x| !x.finite()).expect("one is not finite");
        Err(Error::setting(
            format!("{what} {at} (from 0) is {:?}", numbers[at]),
            "give finite numbers: a softmax of others has no value",
        ))
    }
}
