//! Experiments: each a grid of points computed one by one and kept as it goes, then figures and a summary.
//!
//! A run is a directory: config.json (what was asked), points.jsonl (a line per grid point, written as soon as it is known),
//! figures.json with figures/*.svg, summary.md. Started again, a run goes on where it stopped.
//!
//! - [`run`]: the frame; [`point`]: a grid point and what was found there.
//! - [`learner`], [`trained`]: whatever turns a dataset into a model; compiled and trained models go through the same
//!   experiments.
//! - [`training`]: a training run within a grid point.
//! - [`tasks`]: generated data.
//! - the others: one experiment each.

pub mod approximation;
pub mod capacity;
pub mod depth;
pub mod duplicates;
pub mod figure1;
pub mod fixed_projection;
pub mod hardmax;
pub mod learner;
pub mod point;
pub mod precision;
pub mod rank;
pub mod run;
pub mod separation;
pub mod similarity;
pub mod tasks;
pub mod trained;
pub mod training;

use std::path::Path;

use monolayer::{Dataset, Error, Result};
use serde_json::{Map, Value};

pub use self::learner::Learner;
pub use self::point::{At, Found, Points};
use crate::plot::Figure;

/// What an experiment is asked to do.
pub struct Settings {
    /// Small and noisy, in seconds.
    pub quick: bool,
    /// Seeds; results are shown with their range over them.
    pub seeds: Vec<u64>,
    /// A dataset in place of a generated one, for experiments that take one.
    pub data: Option<Dataset>,
    /// Parameters: the experiment's own, changed by the user.
    pub parameters: Map<String, Value>,
    /// What turns datasets into models.
    pub learners: Vec<Box<dyn Learner>>,
    /// Whether to stop as soon as what was done is safe.
    pub stop: fn() -> bool,
    /// Hears of what goes on within a point that takes long.
    pub say: Box<dyn Fn(&str) + Sync>,
}

/// An experiment.
pub trait Experiment {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it asks, in a line.
    fn question(&self) -> &'static str;

    /// Whether a dataset can take the place of the generated one.
    fn takes_data(&self) -> bool {
        false
    }

    /// Its parameters with their values; a config file can change them, and nothing else.
    fn parameters(&self, quick: bool) -> Value;

    /// What it lets turn datasets into models.
    fn learners(&self) -> Vec<Box<dyn Learner>> {
        vec![Box::new(learner::CompiledLearner)]
    }

    /// The grid points, in order.
    fn grid(&self, settings: &Settings) -> Result<Vec<At>>;

    /// What is found at one of them. `scratch` is a directory of the point's own: what takes long can be kept there and taken
    /// up again after an interruption.
    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found>;

    /// The figures.
    fn figures(&self, settings: &Settings, points: &Points) -> Vec<Figure>;

    /// What was seen, in a few sentences.
    fn summary(&self, settings: &Settings, points: &Points) -> String;
}

/// All experiments.
pub fn all() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(figure1::Figure1),
        Box::new(separation::Separation),
        Box::new(hardmax::Hardmax),
        Box::new(precision::Precision),
        Box::new(capacity::Capacity),
        Box::new(duplicates::Duplicates),
        Box::new(similarity::Similarity),
        Box::new(depth::Depth),
        Box::new(rank::AttentionRank),
        Box::new(fixed_projection::FixedProjection),
        Box::new(approximation::Approximation),
    ]
}

/// The experiment of a name.
pub fn named(name: &str) -> Result<Box<dyn Experiment>> {
    let names: Vec<&str> = all().iter().map(|experiment| experiment.name()).collect();
    let found = all().into_iter().find(|experiment| experiment.name() == name);
    found.ok_or_else(|| {
        Error::setting(format!("no experiment is named {name:?}"), format!("the experiments are {}", names.join(", ")))
    })
}

/// What a run ends with that was told to stop.
pub fn interrupted() -> Error {
    Error::Interrupted { help: "the same command goes on from here".to_owned() }
}

impl Settings {
    /// What is asked of an experiment by default, with some parameters changed.
    pub fn new(experiment: &dyn Experiment, quick: bool, seeds: Vec<u64>, changes: Map<String, Value>) -> Result<Self> {
        let Value::Object(mut parameters) = experiment.parameters(quick) else {
            unreachable!("parameters are an object")
        };
        for (name, value) in changes {
            let known: Vec<String> = parameters.keys().cloned().collect();
            let Some(slot) = parameters.get_mut(&name) else {
                let help = format!("the parameters of {} are {}", experiment.name(), known.join(", "));
                return Err(Error::setting(format!("no parameter {name:?}"), help));
            };
            if std::mem::discriminant(slot) != std::mem::discriminant(&value) {
                return Err(Error::setting(
                    format!("the parameter {name:?} is {value}"),
                    format!("write it like {slot}"),
                ));
            }
            *slot = value;
        }
        let learners = experiment.learners();
        Ok(Self { quick, seeds, data: None, parameters, learners, stop: || false, say: Box::new(|_| {}) })
    }

    /// An error where the run should stop.
    pub fn go_on(&self) -> Result<()> {
        if (self.stop)() {
            return Err(interrupted());
        }
        Ok(())
    }

    /// A parameter that is a list of numbers.
    pub fn list(&self, name: &str) -> Result<Vec<f64>> {
        let numbers: Option<Vec<f64>> = self
            .parameters
            .get(name)
            .and_then(Value::as_array)
            .and_then(|list| list.iter().map(Value::as_f64).collect());
        numbers.filter(|list| !list.is_empty()).ok_or_else(|| {
            Error::setting(format!("the parameter {name:?} is not a list of numbers"), "write it like [1, 2, 4]")
        })
    }

    /// A parameter that is a list of names.
    pub fn names(&self, name: &str) -> Result<Vec<String>> {
        let list = self.parameters.get(name).and_then(Value::as_array);
        let names: Option<Vec<String>> =
            list.and_then(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        names.filter(|list| !list.is_empty()).ok_or_else(|| {
            Error::setting(format!("the parameter {name:?} is not a list of names"), "write it like [\"a\", \"b\"]")
        })
    }

    /// A parameter that is a whole number.
    pub fn count(&self, name: &str) -> Result<usize> {
        let number = self.number(name)?;
        if number.fract() != 0.0 || number < 0.0 {
            return Err(Error::setting(format!("the parameter {name:?} is {number}"), "write a whole number"));
        }
        Ok(number as usize)
    }

    /// The user's data, or random words with random labels: `sequences` of `length` words out of `vocabulary`, with one of
    /// `labels` labels for each token.
    pub fn corpus(&self, seed: u64) -> Result<Dataset> {
        let data = match &self.data {
            Some(data) => data.clone(),
            None => tasks::distinct(
                self.count("sequences")?,
                self.count("length")?,
                self.count("vocabulary")?,
                self.count("labels")?,
                seed,
            ),
        };
        training::words_and_classes(&data)?;
        Ok(data)
    }

    /// A parameter that is one number.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.parameters
            .get(name)
            .and_then(Value::as_f64)
            .ok_or_else(|| Error::setting(format!("the parameter {name:?} is not a number"), "write it like 16"))
    }
}
