//! The size of a model: ids, hidden units, parameters; and the size of the plain construction, for comparison.

use super::Approximation;
use crate::model;

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSize {
    /// Context ids: M.
    pub ids: usize,
    /// Hidden units of the quantizer F1.
    pub quantizer: usize,
    /// Hidden units of the read-out F2.
    pub hidden: usize,
    /// Parameters stored.
    pub parameters: usize,
    /// Those that are not 0.
    pub nonzero: usize,
}

impl Approximation {
    /// The bound on d_p over the cube, in the arithmetic that [`Approximation::floats`] tells.
    pub fn certified(&self) -> f64 {
        if self.floats { self.bound.inside } else { self.bound.real }
    }

    /// What the model takes.
    pub fn size(&self) -> ModelSize {
        let tensors = model::directory::tensors(&self.model);
        let (quantizer, hidden) = self.units();
        ModelSize {
            ids: self.order.len(),
            quantizer,
            hidden,
            parameters: tensors.iter().map(|tensor| tensor.2.len()).sum(),
            nonzero: tensors.iter().flat_map(|tensor| tensor.2.iter()).filter(|&&x| x != 0.0).count(),
        }
    }

    /// What the plain construction takes on the same grid: `d (2 D + 3)` units before attention, `2 M + 2 d` after it.
    pub fn plain(&self) -> ModelSize {
        let (parts, ids) = (self.grid.parts(), self.order.len());
        let (d, all) = (parts.len(), parts.iter().sum::<usize>());
        let places = if self.cells.symmetric { 1 } else { self.cells.length };
        let (quantizer, hidden) = (2 * all * places + 3 * d, 2 * ids + 2 * d);
        // Both blocks, and v_1 twice, v_2 and W_O of attention, of which one entry each is not 0.
        let parameters = (quantizer + hidden) * (2 * d + 1) + 2 * d + 4 * d;
        let nonzero = quantizer * 3 + hidden * (d + 2) + 2 * d + 4;
        ModelSize { ids, quantizer, hidden, parameters, nonzero }
    }
}
