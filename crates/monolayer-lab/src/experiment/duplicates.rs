//! What happens as tokens repeat: attention sees normalized multisets, so without positions repetition hides differences.

use std::path::Path;

use monolayer::Result;
use monolayer::data::context::Contexts;
use monolayer::paper::attention::Mask;
use serde_json::{Value, json};

use super::capacity::learner;
use super::learner::{Task, all};
use super::point::{at, found};
use super::tasks::random_labels;
use super::{At, Experiment, Found, Learner, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure};

/// The experiment.
pub struct Duplicates;

impl Experiment for Duplicates {
    fn name(&self) -> &'static str {
        "duplicates"
    }

    fn question(&self) -> &'static str {
        "What can be memorized as tokens repeat, with and without positions?"
    }

    fn parameters(&self, quick: bool) -> Value {
        if quick {
            json!({ "vocabulary": [2, 8, 64], "sequences": 50, "length": 8, "labels": 4 })
        } else {
            json!({ "vocabulary": [1, 2, 4, 8, 16, 32, 64, 128], "sequences": 150, "length": 8, "labels": 4 })
        }
    }

    fn learners(&self) -> Vec<Box<dyn Learner>> {
        all()
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        for learner in &settings.learners {
            for positions in ["with positions", "without positions"] {
                for vocabulary in settings.list("vocabulary")? {
                    grid.extend(settings.seeds.iter().map(|seed| {
                        at(json!({
                            "learner": learner.name(), "positions": positions, "vocabulary": vocabulary, "seed": seed,
                        }))
                    }));
                }
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let whole = |name: &str| settings.number(name).map(|x| x as usize);
        let (count, length) = (whole("sequences")?, whole("length")?);
        let data = random_labels(count, length, at.count("vocabulary"), whole("labels")?, at.seed());
        let positions = at.text("positions") == "with positions";
        let ids = data.token_ids();
        let different =
            |range: std::ops::Range<usize>| ids[range].iter().collect::<std::collections::HashSet<_>>().len();
        let repeats: f64 = data.ranges().map(|r| r.len() as f64 / different(r) as f64).sum::<f64>() / count as f64;
        // No weights do better than the contexts allow.
        let contexts = Contexts::new(&ids, &data.offsets, &Mask::None, positions);
        let impossible = contexts.agree(&data.label_ids().unwrap_or_default()).impossible.len();
        let task =
            Task { data: &data, positions, seed: at.seed(), quick: settings.quick, scratch, stop: settings.stop };
        let learned = learner(settings, at)?.learn(&task)?;
        let tokens = data.tokens() as f64;
        Ok(found(json!({
            "repeats": repeats,
            "possible": 1.0 - impossible as f64 / tokens,
            "missed": data.tokens() - impossible - learned.right.min(data.tokens() - impossible),
            "memorized": learned.right as f64 / tokens,
            "parameters": learned.parameters,
        })))
    }

    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        let figure = |positions: String| {
            let own = points.with("positions", &positions);
            let (x, y) = (
                Axis::log("vocabulary", "different words"),
                Axis::linear("memorized", "share of tokens").between(0.0, 1.02),
            );
            let (name, title) =
                (positions.replace(' ', "-"), format!("Random labels memorized as words repeat, {positions}"));
            let mut figure = Figure::new(&name, title, x, y)
                .caption(
                    "The smaller the vocabulary, the more often a word occurs in a sequence. The ceiling is what any weights \
                     can reach.",
                )
                .line("ceiling", own.curve("vocabulary", "possible"));
            for name in own.names("learner") {
                let curve = own.with("learner", &name).curve("vocabulary", "memorized");
                figure = figure.points(name, curve);
            }
            figure
        };
        points.names("positions").into_iter().map(figure).collect()
    }

    fn summary(&self, _: &Settings, points: &Points) -> String {
        let mut text = String::new();
        for name in points.names("learner") {
            for positions in points.names("positions") {
                let own = points.with("learner", &name).with("positions", &positions);
                let least = own.all("memorized").into_iter().fold(f64::INFINITY, f64::min);
                let short = own.all("missed").into_iter().fold(0.0, f64::max);
                text += &format!(
                    "- {name}, {positions}: at worst {} of all tokens; at most {} of those that any weights can get right are missed.\n",
                    number(least),
                    number(short)
                );
            }
        }
        format!(
            "Without positions, sequences that are permutations of each other, or repetitions, are one context.\n\n{text}"
        )
    }
}
