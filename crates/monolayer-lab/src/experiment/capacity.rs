//! The memorized fraction of random labels against the number and the length of sequences.

use std::path::Path;

use monolayer::memorize::paper_parameters;
use monolayer::{Error, Result};
use serde_json::{Value, json};

use super::learner::{CompiledLearner, Task, all};
use super::point::{at, found};
use super::tasks::distinct;
use super::{At, Experiment, Found, Learner, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure, Heat};

/// The experiment.
pub struct Capacity;

/// The learner of a grid point.
pub(super) fn learner<'a>(settings: &'a Settings, at: &At) -> Result<&'a dyn Learner> {
    let found = settings.learners.iter().find(|learner| learner.name() == at.text("learner"));
    found
        .map(AsRef::as_ref)
        .ok_or_else(|| Error::setting(format!("no learner {:?}", at.text("learner")), "leave it out"))
}

impl Experiment for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn question(&self) -> &'static str {
        "How many sequences of random labels can one rank-1 layer memorize?"
    }

    fn parameters(&self, quick: bool) -> Value {
        // Models are trained on datasets of up to `trained_tokens` tokens: that takes hours for larger ones.
        if quick {
            json!({ "sequences": [8, 32, 64], "length": [2, 8], "vocabulary": 50, "labels": 4, "trained_tokens": 512 })
        } else {
            json!({ "sequences": [16, 64, 256, 1024, 2048], "length": [2, 4, 8, 16, 32], "vocabulary": 50, "labels": 4,
                    "trained_tokens": 4096 })
        }
    }

    fn learners(&self) -> Vec<Box<dyn Learner>> {
        all()
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        for learner in &settings.learners {
            for length in settings.list("length")? {
                for sequences in settings.list("sequences")? {
                    if learner.name() != CompiledLearner.name()
                        && length * sequences > settings.number("trained_tokens")?
                    {
                        continue;
                    }
                    grid.extend(settings.seeds.iter().map(|seed| {
                        at(json!({ "learner": learner.name(), "length": length, "sequences": sequences, "seed": seed }))
                    }));
                }
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let whole = |name: &str| settings.number(name).map(|x| x as usize);
        let data =
            distinct(at.count("sequences"), at.count("length"), whole("vocabulary")?, whole("labels")?, at.seed());
        let task =
            Task { data: &data, positions: true, seed: at.seed(), quick: settings.quick, scratch, stop: settings.stop };
        let learned = learner(settings, at)?.learn(&task)?;
        let tokens = data.tokens() as f64;
        Ok(found(json!({
            "tokens": data.tokens(),
            "memorized": learned.right as f64 / tokens,
            "proved": learned.proved.map(|p| p[1] as f64 / tokens),
            "parameters": learned.parameters,
            "paper_parameters": paper_parameters(&data, 1, 102),
        })))
    }

    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        let mut figures = Vec::new();
        for name in points.names("learner") {
            let own = points.with("learner", &name);
            let (x, y) = (own.values("sequences"), own.values("length"));
            let median = |n: f64, length: f64| {
                let at = own.where_number("sequences", n).where_number("length", length);
                at.curve("length", "memorized").first().map(|p| p.y)
            };
            let values = y.iter().map(|&l| x.iter().map(|&n| median(n, l)).collect()).collect();
            let heat = Heat { name: "memorized (share of tokens)".to_owned(), x, y, range: Some([0.0, 1.0]), values };
            let (n, length) = (Axis::linear("sequences", "count"), Axis::linear("length", "tokens"));
            let stem = format!("memorized-{}", name.replace(", ", "-").replace(' ', "-"));
            figures.push(Figure::new(&stem, format!("Random labels memorized, {name}"), n, length).heat(heat));
        }
        let longest = points.values("length").into_iter().fold(0.0, f64::max);
        let own = points.where_number("length", longest);
        let title = format!("Parameters for sequences of {} tokens", number(longest));
        let mut figure = Figure::new(
            "parameters",
            title,
            Axis::log("sequences", "count"),
            Axis::log("parameters", "numbers stored"),
        );
        for name in points.names("learner") {
            figure = figure.line(name.clone(), own.with("learner", &name).curve("sequences", "parameters"));
        }
        figures.push(figure.line("the paper's count", own.curve("sequences", "paper_parameters")));
        figures
    }

    fn summary(&self, _: &Settings, points: &Points) -> String {
        let line = |name: String| {
            let own = points.with("learner", &name);
            let worst = own.all("memorized").into_iter().fold(f64::INFINITY, f64::min);
            let tokens = own.all("tokens").into_iter().fold(0.0, f64::max);
            format!(
                "- {name}: at least {} of all tokens memorized at every point of the grid; the largest dataset has {} tokens.\n",
                number(worst),
                number(tokens)
            )
        };
        let lines: String = points.names("learner").into_iter().map(line).collect();
        format!(
            "Labels are random: there is nothing to understand. No two sequences are equal and tokens know their places, so no two contexts contradict. \
             Trained models have as many parameters as the compiled one, or as few as a dimension of 8 allows.\n\n{lines}"
        )
    }
}
