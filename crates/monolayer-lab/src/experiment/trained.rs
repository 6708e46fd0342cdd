//! Trained models as learners: the same architecture as the compiled one, or with full-rank attention, at equal parameters.

use monolayer::Result;
use monolayer_train::Options;
use monolayer_train::options::Rank;
use monolayer_train::schedule::Schedule;
use monolayer_train::training_data::Source;

use super::learner::{CompiledLearner, Learned, Learner, Task};
use super::training::{Training, size, with_parameters};

/// Embedding dimensions of trained models: the first that leaves half of the parameters to hidden units, or else the last.
const DIMENSIONS: [usize; 4] = [64, 32, 16, 8];
/// Steps of an epoch, at least, where there are as many sequences.
const STEPS: usize = 16;

/// Adam on one layer, with attention of rank 1 (eq. 20) or of full rank.
pub struct TrainedLearner {
    /// Whether attention has full rank, and value weights of its own.
    pub full_rank: bool,
}

impl Learner for TrainedLearner {
    fn name(&self) -> &'static str {
        if self.full_rank { "trained, full rank" } else { "trained, rank 1" }
    }

    fn learn(&self, task: &Task) -> Result<Learned> {
        let options = Options {
            dim: DIMENSIONS.last().copied(),
            rank: if self.full_rank { Rank::Full } else { Rank::Of(1) },
            tied: !self.full_rank,
            positions: task.positions,
            rate: 3e-3,
            schedule: Schedule::Cosine,
            epochs: if task.quick { 100 } else { 400 },
            // Some steps per epoch for small data, too.
            batch: (task.data.sequences() / STEPS).clamp(1, 32),
            // A checkpoint every epoch; a quick point takes about as long as one.
            eval_every: if task.quick { 10 } else { 1 },
            seed: task.seed,
            ..Options::default()
        };
        let parameters = CompiledLearner.parameters(task)?;
        let with = |dim: usize| Options { dim: Some(dim), hidden: 0, ..options.clone() };
        let fits = |options: &Options| size(options, task.data).is_ok_and(|size| 2 * size <= parameters);
        let options = DIMENSIONS.map(with).into_iter().find(fits).unwrap_or(options);
        let options = with_parameters(&options, task.data, parameters)?;
        let training = Training::of_all(Source::Data(task.data), &options, task.stop);
        let trained = training.run(task.scratch)?;
        Ok(Learned {
            right: (trained.best() * task.data.tokens() as f64).round() as usize,
            parameters: trained.parameters,
            proved: None,
            ratios: None,
            gap: None,
        })
    }
}
