//! Vectors for positions (Corollary 2, with another E than the paper's).

use std::path::PathBuf;
use std::str::FromStr;

use crate::arithmetic::matrix::Matrix;
use crate::data::Vocabulary;
use crate::data::embedding::Embedding;
use crate::data::far_codes;
use crate::data::separation::separation;
use crate::error::{Error, Result};

/// Where the vectors of places come from.
///
/// ```
/// use monolayer::{Dataset, Mask, Memorizer, Positions};
///
/// let data = Dataset::from_sequences(&[["a", "a"]], &[["first", "second"]])?;
/// let without = Memorizer::new().mask(Mask::None).positions(Positions::None).compile(&data)?;
/// assert_eq!(without.impossible(), [1]);
/// let with: Positions = "auto".parse()?;
/// assert!(Memorizer::new().positions(with).compile(&data)?.impossible().is_empty());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Positions {
    /// Used when contexts contradict each other without them.
    Auto,
    /// Not used.
    None,
    /// A coordinate of its own for each place.
    OneHot,
    /// Entries +1 and -1.
    Sign(usize),
    /// Entries +1 and -1, any two vectors far apart.
    Far(usize),
    /// Standard normal entries.
    Random(usize),
    /// A text file: a place, from 1, and its numbers per line.
    File(PathBuf),
}

impl FromStr for Positions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            _ => match text.parse()? {
                Embedding::OneHot => Self::OneHot,
                Embedding::Sign(d) => Self::Sign(d),
                Embedding::Far(d) => Self::Far(d),
                Embedding::Random(d) => Self::Random(d),
                Embedding::File(path) => Self::File(path),
            },
        })
    }
}

/// The dimension of sign codes for places unless another is asked for.
pub const SIGN_DIMENSION: usize = 32;

impl Positions {
    /// One vector per place, all different, for sequences of up to `length` tokens. Must not be [`Positions::None`].
    pub fn codes(&self, length: usize, seed: u64) -> Result<Matrix<f64>> {
        let mut places = Vocabulary::default();
        for place in 1..=length {
            places.add(&place.to_string());
        }
        match self {
            Self::Auto | Self::Sign(SIGN_DIMENSION) if length <= FAR_PLACES => {
                far_codes::codes(SIGN_DIMENSION, length, 0)
            }
            Self::Auto => Embedding::Sign(SIGN_DIMENSION).codes(&places, seed),
            Self::OneHot => Embedding::OneHot.codes(&places, seed),
            Self::Sign(d) => Embedding::Sign(*d).codes(&places, seed),
            Self::Far(d) => Embedding::Far(*d).codes(&places, seed),
            Self::Random(d) => Embedding::Random(*d).codes(&places, seed),
            Self::File(path) => Embedding::File(path.clone()).codes(&places, seed),
            Self::None => Err(Error::setting("no positions were asked for", "choose other `positions`")),
        }
    }
}

/// For Corollary 2, in place of (48): `E_k = c k e_1` with `c >= 2 r_max + epsilon`. Vectors at different places are then more than epsilon
/// apart, and those at one place as far as they were.
pub fn far_steps(vectors: &Matrix<f64>, length: usize) -> Matrix<f64> {
    let s = separation(vectors.cols, &vectors.data);
    // One part in a thousand covers what rounding may take away.
    let c = (2.0 * s.r_max + if s.epsilon.is_finite() { s.epsilon } else { s.r_max }) * 1.001;
    Matrix::from_fn(length, vectors.cols, |k, j| if j == 0 { (k + 1) as f64 * c } else { 0.0 })
}

/// Up to so many places get [`far_codes`], any two of which differ in at least 12 entries, which random ones do not.
const FAR_PLACES: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_steps_keep_the_separation() {
        let vectors = Matrix::new(3, 2, vec![1.0, 0.5, -1.0, -0.5, 1.0, 0.75]);
        let steps = far_steps(&vectors, 4);
        let at = |k: usize| {
            vectors.iter_rows().flat_map(move |x| [x[0], x[1]]).zip(steps.row(k).repeat(3)).map(|(x, e)| x + e)
        };
        let all: Vec<f64> = (0..4).flat_map(at).collect();
        let epsilon = separation(2, &vectors.data).epsilon;
        assert!((separation(2, &all).epsilon - epsilon).abs() < 1e-12);
    }

    #[test]
    fn specifications() {
        assert_eq!("auto".parse::<Positions>().unwrap(), Positions::Auto);
        assert_eq!("random:8".parse::<Positions>().unwrap(), Positions::Random(8));
        assert_eq!(Positions::Sign(9).codes(20, 1).unwrap().rows, 20);
        assert_eq!(Positions::Auto.codes(3000, 1).unwrap().rows, 3000);
    }
}
