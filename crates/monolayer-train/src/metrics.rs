//! The metrics of a run: loss, accuracy, F1, speed.

use monolayer::data::{Dataset, Labels};
use serde::{Deserialize, Serialize};

use crate::times::Times;
use monolayer::data::entities::{EntityScores, Tag};

/// One evaluation: a line of metrics.jsonl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Epochs done.
    pub epoch: usize,
    /// Steps done.
    pub steps: u64,
    /// The mean loss over the tokens of the last epoch, while its steps changed the model; null before the first.
    pub loss: Option<f64>,
    /// The mean loss over the training set.
    pub train_loss: f64,
    /// The share of the labeled tokens of the training set that are right; null for vectors.
    pub train_accuracy: Option<f64>,
    /// Sequences of the training set all of whose labeled tokens are right; null for vectors.
    #[serde(default)]
    pub sequences_right: Option<usize>,
    /// The share of hidden units above zero.
    #[serde(default)]
    pub firing: f64,
    /// What came of the dev set; null without one.
    pub dev: Option<Dev>,
    /// Tokens per second of the fastest epoch so far, training alone.
    pub tokens_per_second: Option<f64>,
    /// Seconds so far.
    pub seconds: Seconds,
}

/// What came of the dev set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dev {
    /// The mean squared error; null for labels.
    pub loss: Option<f64>,
    /// The share of the labeled tokens that are right; null for vectors, and where all are free.
    pub accuracy: Option<f64>,
    /// The share of predicted entities that are right, as the CoNLL evaluation counts; null where labels are no entities.
    pub precision: Option<f64>,
    /// The share of entities that were found.
    pub recall: Option<f64>,
    /// The harmonic mean of both.
    pub f1: Option<f64>,
    /// F1 by type of entity.
    pub f1_by_type: std::collections::BTreeMap<String, f64>,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Training steps, by the clock.
    pub training: f64,
    /// Evaluations and files.
    pub evaluation: f64,
    /// The parts of training steps, added up over threads.
    pub parts: Times,
}

/// The scores of entities of predicted label names; `None` where a label is no tag. Tokens whose label is free are in no entity.
pub fn entity_scores(data: &Dataset, predicted: &[u32], names: &[String]) -> Option<EntityScores> {
    let Labels::Classes { label_ids: ids, names: own } = &data.labels else { return None };
    let parse = |names: &'_ [String]| names.iter().map(|name| Tag::parse(name).is_some()).collect::<Vec<_>>();
    if !parse(own.names()).iter().chain(&parse(names)).all(|&tag| tag) {
        return None;
    }
    let tag = |name: &str| Tag::parse(name).is_some_and(|tag| tag.kind().is_some());
    // Without a single type there is nothing to find.
    if !own.names().iter().any(|name| tag(name)) {
        return None;
    }
    let mut scores = EntityScores::default();
    for range in data.ranges() {
        let truth = range.clone().filter_map(|t| tag_of(ids[t].map(|id| &own.names()[id as usize])));
        let guess = range.filter_map(|t| tag_of(ids[t].map(|_| &names[predicted[t] as usize])));
        scores.add(truth, guess);
    }
    Some(scores)
}

/// The tag of a label; outside where there is none.
fn tag_of(name: Option<&String>) -> Option<Tag<'_>> {
    name.map_or(Some(Tag::Outside), |name| Tag::parse(name))
}
