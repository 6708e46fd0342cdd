//! Whatever turns a dataset into a model: the compiler, and a trainer that is asked to do the same.

use std::path::Path;

use monolayer::data::positions::Positions;
use monolayer::model::certificate::Claim;
use monolayer::{Dataset, Result};
use monolayer::{Memorizer, Precision};

use super::trained::TrainedLearner;

/// What a learner is given besides the data.
pub struct Task<'a> {
    /// The data.
    pub data: &'a Dataset,
    /// Whether tokens know their places.
    pub positions: bool,
    /// The seed.
    pub seed: u64,
    /// Whether it should take seconds only.
    pub quick: bool,
    /// A directory for what should survive an interruption.
    pub scratch: &'a Path,
    /// Whether to stop as soon as what was done is safe.
    pub stop: fn() -> bool,
}

/// What a learner has learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// Tokens that come out right.
    pub right: usize,
    /// Numbers stored.
    pub parameters: usize,
    /// Tokens proved right in single and in double precision, where anything is proved.
    pub proved: Option<[usize; 2]>,
    /// The smallest margin over its error bound in single and in double precision.
    pub ratios: Option<[f64; 2]>,
    /// The smallest gap between differently labeled contexts of one token, over the ids' standard deviation.
    pub gap: Option<f64>,
}

/// Something that learns a dataset.
pub trait Learner {
    /// Its name in figures.
    fn name(&self) -> &'static str;

    /// Learns a dataset of words with classes.
    fn learn(&self, task: &Task) -> Result<Learned>;
}

/// All learners.
pub fn all() -> Vec<Box<dyn Learner>> {
    vec![
        Box::new(CompiledLearner),
        Box::new(TrainedLearner { full_rank: false }),
        Box::new(TrainedLearner { full_rank: true }),
    ]
}

/// The compiler: Corollary 2.
pub struct CompiledLearner;

impl CompiledLearner {
    fn memorizer(task: &Task) -> Memorizer<'static> {
        Memorizer::new()
            .positions(if task.positions { Positions::Sign(32) } else { Positions::None })
            .seed(task.seed)
            .candidates(if task.quick { 64 } else { 256 })
    }

    /// How many numbers the compiled model stores.
    pub fn parameters(&self, task: &Task) -> Result<usize> {
        Ok(Self::memorizer(task).compile(task.data)?.model().parameters())
    }
}

impl Learner for CompiledLearner {
    fn name(&self) -> &'static str {
        "compiled"
    }

    fn learn(&self, task: &Task) -> Result<Learned> {
        let memorizer = Self::memorizer(task);
        let auto = memorizer.compile(task.data)?;
        // Both precisions of one and the same single-precision model.
        let single = memorizer.precision(Precision::F32).compile(task.data)?;
        let right = |claim: &Claim| if let Claim::Labels { right, .. } = claim { Some(*right) } else { None };
        let proved: Vec<usize> = single.claims().iter().filter_map(right).collect();
        Ok(Learned {
            right: auto.right(),
            parameters: auto.model().parameters(),
            proved: proved.try_into().ok(),
            ratios: single.gated().and_then(|details| details.ratios.clone().try_into().ok()),
            gap: Some(auto.gap()).filter(|gap| gap.is_finite()),
        })
    }
}
