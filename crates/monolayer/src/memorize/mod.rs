//! Corollaries 1 and 2: any consistent dataset into one rank-1 attention layer and one feed-forward block, without training.

mod compiled;
pub mod context_id;
pub mod deep;
pub mod gated;
pub mod paper;
mod settings;
pub mod vectors;

pub use compiled::{Compiled, DeepDetails, Details, GatedDetails, HingeDetails};
pub use settings::{Memorizer, Method, Precision};

use crate::data::Dataset;
use crate::data::context::Contexts;
use crate::data::positions::Positions;
use crate::error::Result;
use crate::model::Source;

impl Memorizer<'_> {
    /// Compiles a dataset into a model, and proves what it does.
    pub fn compile(&self, data: &Dataset) -> Result<Compiled> {
        let method = self.method.unwrap_or_else(|| Method::for_data(data));
        self.check(method)?;
        match (method, self.precision) {
            (Method::Gated, _) => gated::memorize_words(data, self),
            (Method::Plateau, Precision::Exact) => vectors::memorize_exactly(data, self),
            (Method::Plateau | Method::Interpolate, _) => vectors::memorize_vectors(data, self, method),
            (Method::Deep, _) => deep::memorize_deep(data, self),
            (Method::Paper, _) => paper::memorize_paper(data, self),
        }
    }

    /// Positions are used by default where contexts contradict each other without them.
    fn positions_for(&self, data: &Dataset, labels: &[u32]) -> Positions {
        if self.positions != Positions::Auto {
            return self.positions.clone();
        }
        let ids = data.token_ids();
        let conflicts =
            |positions| Contexts::new(&ids, &data.offsets, self.mask, positions).agree(labels).impossible.len();
        if conflicts(false) > conflicts(true) { Positions::Auto } else { Positions::None }
    }

    /// How a model was made; all candidates were tried.
    fn source(&self, data_hash: &str, method: Method) -> Source {
        Source::Memorize {
            method,
            seed: self.seed,
            candidates: self.candidates.max(1),
            data_hash: data_hash.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The paper's count of parameters for a dataset, `4 (s + d) + d (2 n N + d)` for heads of size s.
pub fn paper_parameters(data: &Dataset, s: usize, d: usize) -> usize {
    4 * (s + d) + d * (2 * data.longest() * data.sequences() + d)
}
