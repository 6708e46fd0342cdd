//! Training with attention fixed at the theorem's value: all that is learned then are embedding, feed-forward block and head.

use std::path::Path;

use monolayer::context_map::float_weights::FloatWeights;
use monolayer::context_map::theorem_weights::weights::{Scale, Weights};
use monolayer::context_map::{ContextMap, View};
use monolayer::data::context::Contexts;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::data::word_majority;
use monolayer::model::Model;
use monolayer::paper::attention::Mask;
use monolayer::{AnyModel, Dataset, Error, Result};
use monolayer_train::Options;
use monolayer_train::run::Fixed;
use monolayer_train::training_data::Source;
use serde_json::{Value, json};

use super::point::{at, found};
use super::training::{Training, median_curve};
use super::{At, Experiment, Found, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure};

/// How attention is trained, or fixed.
const FREE: &str = "free";
const TIGHT: &str = "fixed, tight scale";
const SPREAD: &str = "fixed, tight scale, ids spread by 1";
const PAPER: &str = "fixed, the theorem's scale";
const NOTHING: &str = "no attention";

/// The experiment.
pub struct FixedProjection;

impl Experiment for FixedProjection {
    fn name(&self) -> &'static str {
        "fixed-projection"
    }

    fn question(&self) -> &'static str {
        "What does training reach with attention fixed at the theorem's value?"
    }

    fn parameters(&self, quick: bool) -> Value {
        if quick {
            json!({ "rate": 0.003, "epochs": 60, "batch": 16, "dim": 64, "hidden": 512, "positions": 1, "candidates": 64,
                    "sequences": 100, "length": 10, "vocabulary": 50, "labels": 4 })
        } else {
            json!({ "rate": 0.003, "epochs": 200, "batch": 32, "dim": 64, "hidden": 768, "positions": 1, "candidates": 256,
                    "sequences": 500, "length": 10, "vocabulary": 50, "labels": 4 })
        }
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let all = [FREE, TIGHT, SPREAD, PAPER, NOTHING];
        let at = |attention| settings.seeds.iter().map(move |seed| at(json!({ "attention": attention, "seed": seed })));
        Ok(all.into_iter().flat_map(at).collect())
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let data = settings.corpus(at.seed())?;
        let options = Options {
            dim: Some(settings.count("dim")?),
            hidden: settings.count("hidden")?,
            positions: settings.count("positions")? > 0,
            rate: settings.number("rate")?,
            batch: settings.count("batch")?.max(1),
            epochs: settings.count("epochs")?,
            eval_every: 1,
            seed: at.seed(),
            ..Options::default()
        };
        let map = match at.text("attention") {
            FREE => None,
            NOTHING => Some(nothing(settings.count("dim")?)),
            attention => Some(theorem(settings, &data, &options, attention, scratch)?),
        };
        let fixed = map.as_ref().map_or_else(Vec::new, tensors);
        let training = Training { source: Source::Data(&data), options: &options, fixed: &fixed, stop: settings.stop };
        let trained = training.run(&scratch.join("run"))?;
        let contexts = Contexts::new(&data.token_ids(), &data.offsets, &Mask::None, options.positions);
        let impossible = contexts.agree(&data.label_ids().unwrap_or_default()).impossible.len();
        Ok(found(json!({
            "accuracy": trained.best(),
            "epochs": trained.epochs_to(0.99),
            "parameters": trained.parameters - fixed.iter().map(|fixed| fixed.numbers.len()).sum::<usize>(),
            "kappa": map.map(|map| length(&map.v_q) / length(&map.v)).filter(|kappa| kappa.is_finite()),
            "by_words": word_majority(&data, &data),
            "possible": 1.0 - impossible as f64 / (data.tokens() - data.free()) as f64,
            "diverged": trained.diverged,
            "curve": trained.curve(),
        })))
    }

    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        let (x, y) = (
            Axis::linear("epoch", "passes over the data"),
            Axis::linear("training accuracy", "share of tokens").between(0.0, 1.02),
        );
        let mut figure = Figure::new("curves", "Training with free and with fixed attention", x, y);
        for name in points.names("attention") {
            figure = figure.line(name.clone(), median_curve(&points.with("attention", &name), "curve"));
        }
        let first = |name: &str| points.all(name).first().copied().unwrap_or(f64::NAN);
        vec![figure.level("each word's majority", first("by_words")).level("what contexts allow", first("possible"))]
    }

    fn summary(&self, _: &Settings, points: &Points) -> String {
        let line = |name: String| {
            let own = points.with("attention", &name);
            let median = |what: &str| crate::plot::Point::over(0.0, &own.all(what)).y;
            let kappa = median("kappa");
            let epochs = match (own.all("epochs").len(), own.0.len()) {
                (0, _) => "99 % is not reached".to_owned(),
                (there, all) => format!("99 % after {} epochs ({there} of {all} runs)", number(median("epochs"))),
            };
            let kappa =
                if kappa.is_finite() { format!(", queries {} times keys", number(kappa)) } else { String::new() };
            format!("- {name}{kappa}: accuracy {}; {epochs}.\n", number(median("accuracy")))
        };
        let lines: String = points.names("attention").into_iter().map(line).collect();
        format!(
            "One layer of rank 1; medians over seeds. Where attention is fixed, W_K = W_V, W_Q and W_O are those of the theorem for the \
             random embedding that training starts from (the embedding itself goes on to move), as printed, with (29) and \
             (32), or at the scale that floats hold, searched for and certified; \"ids spread by 1\" has a longer W_O than (32) allows, \
             so that the ids have a standard deviation of 1.\n\n{lines}"
        )
    }
}

/// The theorem's weights for the embedding that training starts from.
fn theorem(settings: &Settings, data: &Dataset, options: &Options, scale: &str, scratch: &Path) -> Result<ContextMap> {
    // No epoch: what is written is the model before its first step.
    let none = Options { epochs: 0, ..options.clone() };
    let start = scratch.join("start");
    let training = Training::of_all(Source::Data(data), &none, settings.stop);
    training.run(&start)?;
    let vectors = token_vectors(&AnyModel::open(&start)?.widened())?;
    let view = View::new(data, &vectors, Mask::None);
    let (seed, candidates) = (options.seed, settings.count("candidates")?);
    if scale == PAPER {
        return Ok(Weights::new(&view, Scale::Paper, seed, candidates)?.map);
    }
    let tight = FloatWeights { labels_only: false, kappa: None, w_o: None, seed, candidates };
    let tight = tight.build(&view, None)?;
    let mut map = tight.map;
    if scale == SPREAD {
        let factor = 1.0 / (tight.deviation * length(&map.w));
        map.w.iter_mut().for_each(|w| *w *= factor);
    }
    Ok(map)
}

/// The vectors of a model's words and places.
fn token_vectors(model: &Model<f64>) -> Result<TokenVectors> {
    let words = model.words.as_ref().ok_or_else(|| Error::mismatch("no words", "use data of words with classes"))?;
    let d = model.transformer.d;
    Ok(TokenVectors {
        words: words.embedding.clone(),
        positions: model.positions.clone(),
        start: None,
        word_columns: d,
        used: d,
    })
}

/// Attention that adds nothing.
fn nothing(d: usize) -> ContextMap {
    ContextMap { v: vec![0.0; d], v_q: vec![0.0; d], w: vec![0.0; d] }
}

fn tensors(map: &ContextMap) -> Vec<Fixed> {
    let fixed =
        |name: &str, numbers: &[f64]| Fixed { name: format!("layers.0.attention.{name}"), numbers: numbers.to_vec() };
    vec![fixed("w_k", &map.v), fixed("w_q", &map.v_q), fixed("w_o", &map.w)]
}

fn length(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
