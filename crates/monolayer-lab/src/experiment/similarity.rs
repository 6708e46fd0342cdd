//! What happens as sequences come to differ in one token only.

use std::path::Path;

use monolayer::{Dataset, Error, Result};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};

use super::capacity::learner;
use super::learner::{Task, all};
use super::point::{at, found};
use super::tasks::{labeled, random};
use super::{At, Experiment, Found, Learner, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure};

/// The experiment.
pub struct Similarity;

impl Experiment for Similarity {
    fn name(&self) -> &'static str {
        "similarity"
    }

    fn question(&self) -> &'static str {
        "What happens as sequences come to differ in one token only?"
    }

    fn parameters(&self, quick: bool) -> Value {
        if quick {
            json!({ "differences": [1, 4, 16], "length": 16, "families": 4, "variants": 8, "vocabulary": 100, "labels": 4 })
        } else {
            json!({ "differences": [1, 2, 4, 8, 16], "length": 16, "families": 10, "variants": 12, "vocabulary": 100,
                    "labels": 4 })
        }
    }

    fn learners(&self) -> Vec<Box<dyn Learner>> {
        all()
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        for learner in &settings.learners {
            for differences in settings.list("differences")? {
                if !(1.0..=settings.number("length")?).contains(&differences) {
                    return Err(Error::setting(
                        format!("{differences} differences"),
                        "write 1 to the length of a sequence",
                    ));
                }
                grid.extend(
                    settings
                        .seeds
                        .iter()
                        .map(|seed| at(json!({ "learner": learner.name(), "differences": differences, "seed": seed }))),
                );
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let data = families(settings, at)?;
        let task =
            Task { data: &data, positions: true, seed: at.seed(), quick: settings.quick, scratch, stop: settings.stop };
        let learned = learner(settings, at)?.learn(&task)?;
        let tokens = data.tokens() as f64;
        Ok(found(json!({
            "memorized": learned.right as f64 / tokens,
            "gap": learned.gap,
            "ratio_f32": learned.ratios.map(|r| r[0]).filter(|r| r.is_finite()),
            "ratio_f64": learned.ratios.map(|r| r[1]).filter(|r| r.is_finite()),
            "parameters": learned.parameters,
        })))
    }

    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        let x = || Axis::log("tokens in which two variants differ from their original", "tokens");
        let mut memorized = Figure::new(
            "memorized",
            "Random labels memorized",
            x(),
            Axis::linear("memorized", "share of tokens").between(0.0, 1.02),
        );
        let mut gap = Figure::new(
            "gap",
            "The smallest gap that decides a label",
            x(),
            Axis::log("gap", "standard deviations of the ids"),
        );
        for name in points.names("learner") {
            let own = points.with("learner", &name);
            memorized = memorized.line(name.clone(), own.curve("differences", "memorized"));
            gap = gap.line(name.clone(), own.curve("differences", "gap"));
        }
        let margin = Figure::new(
            "margin",
            "The smallest margin over its error bound",
            x(),
            Axis::log("margin over error", "ratio"),
        )
        .line("f32", points.curve("differences", "ratio_f32"))
        .line("f64", points.curve("differences", "ratio_f64"))
        .level("certain above", 1.0);
        vec![memorized, gap, margin]
    }

    fn summary(&self, _: &Settings, points: &Points) -> String {
        let first = points.values("differences").into_iter().fold(f64::INFINITY, f64::min);
        let line = |name: String| {
            let own = points.with("learner", &name);
            let least = own.all("memorized").into_iter().fold(f64::INFINITY, f64::min);
            let gap = own.where_number("differences", first).all("gap").into_iter().fold(f64::INFINITY, f64::min);
            let gap = if gap.is_finite() {
                format!(", and the closest ids there are {} sd apart", number(gap))
            } else {
                String::new()
            };
            format!(
                "- {name}: at least {} of all tokens memorized down to a difference of {} token{}{gap}.\n",
                number(least),
                number(first),
                if first > 1.0 { "s" } else { "" }
            )
        };
        let lines: String = points.names("learner").into_iter().map(line).collect();
        format!(
            "Families of sequences that differ from an original in a few places each, all tokens with random labels.\n\n{lines}"
        )
    }
}

/// Originals, each with variants that differ from it in some places.
fn families(settings: &Settings, at: &At) -> Result<Dataset> {
    let whole = |name: &str| settings.number(name).map(|x| x as usize);
    let (length, vocabulary) = (whole("length")?, whole("vocabulary")?.max(2));
    let mut rng = random(at.seed(), 5);
    let mut places: Vec<usize> = (0..length).collect();
    let mut sequences = Vec::new();
    for _ in 0..whole("families")? {
        let original: Vec<usize> = (0..length).map(|_| rng.random_range(0..vocabulary)).collect();
        for _ in 0..whole("variants")? {
            let mut variant = original.clone();
            places.shuffle(&mut rng);
            for &place in &places[..at.count("differences")] {
                variant[place] = (original[place] + rng.random_range(1..vocabulary)) % vocabulary;
            }
            sequences.push(variant);
        }
    }
    // The same variant twice, with other labels, would contradict itself.
    sequences.sort();
    sequences.dedup();
    Ok(labeled(&sequences, whole("labels")?, at.seed()))
}
