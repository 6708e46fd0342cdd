//! How a function is approximated: one set of defaults, and a builder.

use std::fmt;
use std::sync::Arc;

use super::Tried;

/// How many codes are tried where nothing else is asked for.
pub const CANDIDATES: usize = 64;
/// Evaluations of the function in a cell, likewise.
pub const EFFORT: usize = 64;
/// The most ids, likewise.
pub const MOST_IDS: u64 = 4_000_000;

/// How a function is approximated.
///
/// ```
/// use monolayer::{Approximator, Expression};
///
/// let f = Expression::parse("x1*mean(x1)", 1)?.at_length(2)?;
/// let approximation = Approximator::new().p(2.0).compile(&f, 4)?;
/// assert!(approximation.certified() < 0.3);
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Clone)]
pub struct Approximator<'a> {
    pub(super) p: f64,
    pub(super) seed: u64,
    pub(super) candidates: usize,
    pub(super) effort: usize,
    pub(super) most_ids: u64,
    pub(super) uniform: bool,
    on_progress: Option<Arc<StepListener<'a>>>,
}

type StepListener<'a> = dyn Fn(&Progress) + Send + Sync + 'a;

/// What an approximation tells on its way.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// So many more codes were tried.
    Codes(usize),
    /// The error in more cells was bounded; all may be gone through several times.
    Cells {
        /// How many more.
        more: usize,
        /// Of how many.
        of: usize,
    },
    /// A grid was tried.
    Grid(Tried),
}

impl Default for Approximator<'_> {
    fn default() -> Self {
        Self {
            p: 2.0,
            seed: 0,
            candidates: CANDIDATES,
            effort: EFFORT,
            most_ids: MOST_IDS,
            uniform: false,
            on_progress: None,
        }
    }
}

impl<'a> Approximator<'a> {
    /// The defaults: d_2, seed 0, at most 4 million ids.
    pub fn new() -> Self {
        Self::default()
    }

    /// The exponent p of d_p, at least 1.
    #[must_use]
    pub fn p(self, p: f64) -> Self {
        Self { p, ..self }
    }

    /// The seed of the search for codes, where there is one.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// How many codes to try there.
    #[must_use]
    pub fn candidates(self, candidates: usize) -> Self {
        Self { candidates, ..self }
    }

    /// Evaluations of the function in a cell, at most: more make the bound sharper.
    #[must_use]
    pub fn effort(self, effort: usize) -> Self {
        Self { effort, ..self }
    }

    /// More ids than this are refused.
    #[must_use]
    pub fn most_ids(self, most_ids: u64) -> Self {
        Self { most_ids, ..self }
    }

    /// Grids of equal parts only, where the grid is searched for.
    #[must_use]
    pub fn uniform(self, uniform: bool) -> Self {
        Self { uniform, ..self }
    }

    /// Hears what was tried.
    #[must_use]
    pub fn on_progress(self, on_progress: impl Fn(&Progress) + Send + Sync + 'a) -> Self {
        Self { on_progress: Some(Arc::new(on_progress)), ..self }
    }

    /// The exponent p of d_p.
    pub fn exponent(&self) -> f64 {
        self.p
    }

    pub(super) fn cells(&self, more: usize, of: usize) {
        self.report(&Progress::Cells { more, of });
    }

    pub(super) fn report(&self, progress: &Progress) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(progress);
        }
    }
}

impl fmt::Debug for Approximator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approximator")
            .field("p", &self.p)
            .field("seed", &self.seed)
            .field("candidates", &self.candidates)
            .field("effort", &self.effort)
            .field("most_ids", &self.most_ids)
            .field("uniform", &self.uniform)
            .finish_non_exhaustive()
    }
}
