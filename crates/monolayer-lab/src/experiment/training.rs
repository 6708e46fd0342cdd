//! A training run within a grid point: checkpoints in the point's own directory, so that an interruption costs an epoch.

use std::ops::ControlFlow;
use std::path::Path;

use monolayer::{Dataset, Error, Result};
use monolayer_train::Options;
use monolayer_train::checkpoint::{FILE, Progress};
use monolayer_train::metrics::Metrics;
use monolayer_train::run::{End, Event, Fixed, Job, train};
use monolayer_train::training_data::Source;
use serde_json::{Value, json};

use super::{Points, interrupted};
use crate::plot::Point;

/// What is trained, and how. It ends early where the training accuracy is 1: nothing is left to learn.
pub struct Training<'a> {
    /// What is trained on.
    pub source: Source<'a>,
    /// How.
    pub options: &'a Options,
    /// Tensors that are not trained.
    pub fixed: &'a [Fixed],
    /// Whether to stop as soon as what was done is safe.
    pub stop: fn() -> bool,
}

/// How a training went.
#[derive(Debug, Clone)]
pub struct Trained {
    /// Numbers trained.
    pub parameters: usize,
    /// All evaluations.
    pub history: Vec<Metrics>,
    /// Tokens per second of the fastest epoch.
    pub tokens_per_second: Option<f64>,
    /// Whether the numbers went out of bounds; the evaluations are those before.
    pub diverged: bool,
}

impl<'a> Training<'a> {
    /// All tensors are trained.
    pub fn of_all(source: Source<'a>, options: &'a Options, stop: fn() -> bool) -> Self {
        Self { source, options, fixed: &[], stop }
    }

    /// Trains in a directory, from its checkpoint on where there is one.
    pub fn run(&self, directory: &Path) -> Result<Trained> {
        let enough = |metrics: &Metrics| metrics.train_accuracy.is_some_and(|share| share >= 1.0);
        let resume = directory.join(FILE).is_file();
        let mut learned = resume && Progress::read(directory)?.history.last().is_some_and(enough);
        let job = Job { source: self.source, dev: None, options: self.options, out: directory, fixed: self.fixed };
        let report = train(&job, resume, &mut |event| {
            if let Event::Evaluated(metrics) = event {
                learned |= enough(metrics);
            }
            if learned || (self.stop)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if report.end == End::Stopped && !learned {
            return Err(interrupted());
        }
        Ok(Trained {
            parameters: report.parameters,
            tokens_per_second: report.progress.tokens_per_second,
            history: report.progress.history,
            diverged: matches!(report.end, End::Diverged(_)),
        })
    }
}

impl Trained {
    /// The best training accuracy; 0 where there is none.
    pub fn best(&self) -> f64 {
        self.history.iter().filter_map(|metrics| metrics.train_accuracy).fold(0.0, f64::max)
    }

    /// The first epoch with a training accuracy; none if it was not reached.
    pub fn epochs_to(&self, accuracy: f64) -> Option<usize> {
        let there = |metrics: &&Metrics| metrics.train_accuracy.is_some_and(|share| share >= accuracy);
        self.history.iter().find(there).map(|metrics| metrics.epoch)
    }

    /// The training accuracy after each evaluated epoch: `[[epoch, accuracy], ...]`.
    pub fn curve(&self) -> Value {
        self.history.iter().map(|metrics| json!([metrics.epoch, metrics.train_accuracy])).collect()
    }
}

/// Curves of grid points as one: the median with the range over seeds. A run that ended early stays where it was.
pub fn median_curve(points: &Points, name: &str) -> Vec<Point> {
    let curve = |value: &Value| -> Vec<(f64, f64)> {
        let pairs = value.as_array().into_iter().flatten();
        pairs.filter_map(|pair| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?))).collect()
    };
    let curves: Vec<Vec<(f64, f64)>> = points
        .0
        .iter()
        .filter_map(|(_, found)| found.0.get(name))
        .map(curve)
        .filter(|curve| !curve.is_empty())
        .collect();
    let mut epochs: Vec<f64> = curves.iter().flatten().map(|&(epoch, _)| epoch).collect();
    epochs.sort_by(f64::total_cmp);
    epochs.dedup();
    let value_at = |curve: &Vec<(f64, f64)>, epoch: f64| {
        let reached = curve.partition_point(|&(e, _)| e <= epoch);
        reached.checked_sub(1).map(|i| curve[i].1)
    };
    let at = |&epoch: &f64| {
        Point::over(epoch, &curves.iter().filter_map(|curve| value_at(curve, epoch)).collect::<Vec<f64>>())
    };
    epochs.iter().map(at).collect()
}

/// Numbers trained by these options on words with classes.
pub fn size(options: &Options, data: &Dataset) -> Result<usize> {
    let words = data.token_ids().into_iter().max().map_or(0, |id| id as usize + 1);
    let labels = data.label_ids().and_then(|ids| ids.into_iter().flatten().max()).map(|id| id as usize + 1);
    // The trainer adds a row for unknown words.
    Ok(options.architecture(Some(words + 1), None, labels, data.longest())?.parameters())
}

/// The options with as many hidden units as bring a model on this data nearest to so many parameters; at least one unit.
pub fn with_parameters(options: &Options, data: &Dataset, parameters: usize) -> Result<Options> {
    let with = |hidden: usize| Options { hidden, ..options.clone() };
    Ok(with(nearest(parameters, size(&with(1), data)?, size(&with(2), data)?)))
}

/// Hidden units for a number of parameters, given those of one and of two units.
pub fn nearest(parameters: usize, one: usize, two: usize) -> usize {
    let each = (two - one).max(1);
    1 + (parameters.saturating_sub(one) + each / 2) / each
}

/// An error for data that cannot be trained on.
pub fn words_and_classes(data: &Dataset) -> Result<()> {
    if data.token_ids().is_empty() || data.label_ids().is_none() {
        return Err(Error::data(data.location(0), "no words with classes", "use data with classes as labels"));
    }
    Ok(())
}
