//! Running an approximation, and its model directory with the certificate.

use std::path::Path;

use serde_json::{Value, json};

use super::Approximation;
use crate::error::Result;
use crate::model;
use crate::model::certificate::{self, Claim};
use crate::model::forward;

/// Sorted ids are given as hints up to so many.
const MOST_HINTS: usize = 20_000;

impl Approximation {
    /// The outputs of the model for a sequence, both row-major `[n, d]`.
    pub fn evaluate(&self, sequence: &[f64], outputs: &mut [f64]) {
        outputs.copy_from_slice(sequence);
        if let Some(positions) = &self.model.positions {
            outputs.iter_mut().zip(&positions.data).for_each(|(x, p)| *x += p);
        }
        forward::transform(&self.model.transformer, &[0, self.cells.length], outputs);
    }

    /// Hidden units of the quantizer and of the read-out.
    pub fn units(&self) -> (usize, usize) {
        let transformer = &self.model.transformer;
        let read_out = transformer.layers[0].feed_forward.as_ref().map_or(0, |block| block.b1.len());
        (transformer.pre_feed_forward.as_ref().map_or(0, |block| block.b1.len()), read_out)
    }

    /// What is claimed: the distance from the function, and the ranks.
    pub fn claims(&self) -> Vec<Claim> {
        let (arithmetic, bound) = if self.floats { ("f64", self.bound.inside) } else { ("real", self.bound.real) };
        let (arithmetic, function) = (arithmetic.to_owned(), self.function.clone());
        let mut claims = vec![Claim::Distance { arithmetic, p: self.p, bound, function }];
        claims.extend(Claim::rank_one());
        claims
    }

    /// Cell edges, ramps, and the sorted ids with their cells and levels.
    fn hints(&self) -> Value {
        let mut hints = json!({
            "length": self.cells.length,
            "edges": self.grid.edges,
            "ramp": self.ramp,
        });
        if self.order.len() <= MOST_HINTS {
            let d = self.grid.edges.len();
            let row = |(&cell, id): (&u32, &f64)| {
                let tokens = self.cells.cell(u64::from(cell));
                json!([id, tokens.token, tokens.tokens, self.levels[cell as usize * d..(cell as usize + 1) * d]])
            };
            hints["ids"] = self.order.iter().zip(&self.ids).map(row).collect();
        }
        hints
    }

    /// Writes the model directory with its certificate, whole or not at all.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.save_with(dir, |_| Ok(()))
    }

    /// The same; `more` may add files to the directory.
    pub fn save_with(&self, dir: impl AsRef<Path>, more: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        model::directory::write(&self.model, dir.as_ref(), |dir| {
            certificate::write_for_function(dir, &self.claims(), self.vouched.clone(), self.hints())?;
            more(dir)
        })
    }
}
