//! How far two functions are from each other, measured: d_p of eq. 1 by quasi-Monte-Carlo.

/// A measured distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The estimate of d_p.
    pub distance: f64,
    /// Its standard error.
    pub error: f64,
    /// Sequences evaluated.
    pub points: usize,
}

/// A function on sequences, row-major, into outputs of all tokens.
pub type Evaluate<'a> = dyn Fn(&[f64], &mut [f64]) + Sync + 'a;

/// d_p between f and g over the cube `[0, 1]^entries`, from 16 random shifts of a lattice of `points / 16` points.
pub fn distance(f: &Evaluate, g: &Evaluate, entries: usize, p: f64, points: usize, seed: u64) -> Measured {
    let _ = (f, g);
    todo!("{entries} {p} {points} {seed}")
}
