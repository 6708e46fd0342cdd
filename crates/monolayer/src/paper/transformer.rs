//! The block (4), `F_FF o F_SA`, and the class (19), `F_FF,2 o F_SA o F_FF,1`: layers one after another.

use crate::arithmetic::Number;
use crate::arithmetic::matrix::Matrix;
use crate::error::Result;
use crate::paper::attention::Attention;
use crate::paper::feed_forward::FeedForward;

/// Layers one after another, with an optional feed-forward block before the first (the quantizer of eq. 19).
#[derive(Debug, Clone, PartialEq)]
pub struct Transformer<T> {
    /// The dimension of tokens.
    pub d: usize,
    /// The feed-forward block before the first layer.
    pub pre_feed_forward: Option<FeedForward<T>>,
    /// The layers.
    pub layers: Vec<Layer<T>>,
}

/// Eq. 4: self-attention, then a feed-forward block. Either may be missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer<T> {
    /// Eq. 2 or 5.
    pub attention: Option<Attention<T>>,
    /// Eq. 3.
    pub feed_forward: Option<FeedForward<T>>,
}

impl<N: Number> Transformer<N> {
    /// The output for one sequence, one token per row.
    pub fn apply(&self, z: &Matrix<N>) -> Result<Matrix<N>> {
        let mut z = z.clone();
        if let Some(block) = &self.pre_feed_forward {
            z = block.apply(&z);
        }
        for layer in &self.layers {
            z = layer.apply(&z)?;
        }
        Ok(z)
    }
}

impl<N: Number> Layer<N> {
    /// The output for one sequence, one token per row.
    pub fn apply(&self, z: &Matrix<N>) -> Result<Matrix<N>> {
        let mut z = z.clone();
        if let Some(block) = &self.attention {
            z = block.apply(&z)?;
        }
        if let Some(block) = &self.feed_forward {
            z = block.apply(&z);
        }
        Ok(z)
    }
}
