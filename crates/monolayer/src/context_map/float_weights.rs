//! A contextual map whose weights and ids fit into floats: found by search, then certified.
//!
//! Theorem 2 takes weights so large that a formula bounds every gap, but the gaps are then too small for floats. For
//! moderate weights no formula is known: a search finds weights with large gaps, and the gaps it found are then proved.

use std::time::{Duration, Instant};

use crate::context_map::coincidence::tellable;
use crate::context_map::proved_gaps::{MOST_BITS, ProvedGaps, output_length};
use crate::context_map::search::{Search, SearchResult};
use crate::context_map::token_separation::{TokenSeparation, token_separation};
use crate::context_map::{ContextMap, Groups, Projection, View, standard_deviation};
use crate::error::Result;

/// The entries of v are multiples of this: projections of codes of up to 4096 coordinates are then exact in double precision,
/// in any order of summation.
const GRID: f64 = 1.0 / (1_u64 << 40) as f64;

/// How to look for a map.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatWeights {
    /// Widen the gap between contexts with different labels only.
    pub labels_only: bool,
    /// The scale of queries, in place of one that is searched for.
    pub kappa: Option<f64>,
    /// The length of `W_O`, in place of eq. 32.
    pub w_o: Option<f64>,
    /// The seed of the search.
    pub seed: u64,
    /// The effort of the search.
    pub candidates: usize,
}

/// A map, and what was proved of it.
#[derive(Debug, Clone)]
pub struct CertifiedMap {
    /// Its weights.
    pub map: ContextMap,
    /// What was searched for, and how the search went.
    pub found: SearchResult,
    /// Definition 1 for the tokens.
    pub separation: TokenSeparation,
    /// Definition 2, proved.
    pub certificate: ProvedGaps,
    /// The standard deviation of `g` over all tokens: what gaps are measured against.
    pub deviation: f64,
    /// How long the search took.
    pub search_time: Duration,
    /// How long the certificate took.
    pub certificate_time: Duration,
}

impl FloatWeights {
    /// Searches and certifies. `label` has one label for each context, none where any will do.
    pub fn build(&self, view: &View, label: Option<&[Option<u32>]>) -> Result<CertifiedMap> {
        self.build_with(view, label, &|_, _| ())
    }

    /// The same; `on_progress` hears of candidates tried and the best gap.
    pub fn build_with(
        &self,
        view: &View,
        label: Option<&[Option<u32>]>,
        on_progress: &dyn Fn(usize, f64),
    ) -> Result<CertifiedMap> {
        let separation = token_separation(view)?;
        let groups = match label {
            Some(label) if self.labels_only => Groups::by_label(view, label),
            _ => Groups::by_context(view),
        };
        let groups = tellable(view, groups);

        let start = Instant::now();
        let search = Search::new().kappa(self.kappa).grid(GRID).seed(self.seed).candidates(self.candidates);
        let found = search.run_with(view, &groups, on_progress);
        let search_time = start.elapsed();

        let start = Instant::now();
        let map = self.weights(view, &found.projection, &separation);
        let certificate = ProvedGaps::new(view, &map, &separation, label, MOST_BITS);
        let certificate_time = start.elapsed();
        let deviation = standard_deviation(&found.projection.context_ids(view));
        Ok(CertifiedMap { map, found, separation, certificate, deviation, search_time, certificate_time })
    }

    /// The weights: any direction will do for `W_O`, and the last axis is one.
    fn weights(&self, view: &View, projection: &Projection, separation: &TokenSeparation) -> ContextMap {
        let mut w = vec![0.0; view.vectors.d()];
        w[view.vectors.d() - 1] = self.w_o.unwrap_or_else(|| output_length(view, &projection.v, separation));
        ContextMap::new(projection, w)
    }
}
