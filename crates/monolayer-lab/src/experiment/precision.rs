//! What single and double precision can prove, against the size of the dataset.

use std::path::Path;

use monolayer::Result;
use serde_json::{Value, json};

use super::learner::{Learner as _, Task};
use super::point::{at, found};
use super::tasks::{distinct, prefix};
use super::{At, Experiment, Found, Points, Settings, learner};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure};

/// The experiment.
pub struct Precision;

impl Experiment for Precision {
    fn name(&self) -> &'static str {
        "precision"
    }

    fn question(&self) -> &'static str {
        "How large a dataset can f32 and f64 hold, with proof?"
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn parameters(&self, quick: bool) -> Value {
        let most = if quick { 8 } else { 12 };
        let sequences: Vec<u64> = (3..=most).map(|e| 1 << e).collect();
        json!({ "sequences": sequences, "length": 10, "vocabulary": 100, "labels": 4 })
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let sizes = settings.list("sequences")?;
        Ok(sizes
            .into_iter()
            .flat_map(|count| settings.seeds.iter().map(move |seed| at(json!({ "sequences": count, "seed": seed }))))
            .collect())
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let whole = |name: &str| settings.number(name).map(|x| x as usize);
        let data = match &settings.data {
            Some(data) => prefix(data, at.count("sequences")),
            None => {
                distinct(at.count("sequences"), whole("length")?, whole("vocabulary")?, whole("labels")?, at.seed())
            }
        };
        let task =
            Task { data: &data, positions: true, seed: at.seed(), quick: settings.quick, scratch, stop: settings.stop };
        let learned = learner::CompiledLearner.learn(&task)?;
        let tokens = data.tokens() as f64;
        Ok(found(json!({
            "tokens": data.tokens(),
            "right": learned.right as f64 / tokens,
            "proved_f32": learned.proved.map(|p| p[0] as f64 / tokens),
            "proved_f64": learned.proved.map(|p| p[1] as f64 / tokens),
            "ratio_f32": learned.ratios.map(|r| r[0]).filter(|r| r.is_finite()),
            "ratio_f64": learned.ratios.map(|r| r[1]).filter(|r| r.is_finite()),
            "gap": learned.gap,
        })))
    }

    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        let x = || Axis::log("size of the dataset", "sequences");
        let curve = |name: &str| points.curve("sequences", name);
        vec![
            Figure::new(
                "margin",
                "The smallest margin against its error bound",
                x(),
                Axis::log("margin over error", "ratio"),
            )
            .line("f32", curve("ratio_f32"))
            .line("f64", curve("ratio_f64"))
            .level("certain above", 1.0)
            .caption("The worst token of all; a label is proved where the ratio is above 1."),
            Figure::new(
                "proved",
                "Tokens proved right",
                x(),
                Axis::linear("proved", "share of tokens").between(0.0, 1.02),
            )
            .line("f32", curve("proved_f32"))
            .line("f64", curve("proved_f64"))
            .line("right, proved or not", curve("right")),
            Figure::new(
                "gap",
                "The smallest gap that decides a label",
                x(),
                Axis::log("gap", "standard deviations of the ids"),
            )
            .line("after the search", curve("gap")),
        ]
    }

    fn summary(&self, settings: &Settings, points: &Points) -> String {
        let holds = |name: &str| {
            let whole = points.curve("sequences", name).into_iter().filter(|p| p.y > 1.0).map(|p| p.x);
            number(whole.fold(0.0, f64::max))
        };
        let what =
            if settings.data.is_some() { "the data's first sequences" } else { "random words with random labels" };
        format!(
            "On {what}, every token is proved in f32 up to {} sequences and in f64 up to {} (the largest size tried: {}).",
            holds("ratio_f32"),
            holds("ratio_f64"),
            number(points.values("sequences").into_iter().fold(0.0, f64::max)),
        )
    }
}
