//! Does depth speed up learning, as section 5 conjectures? Epochs to a training accuracy against layers, at equal parameters.

use std::path::Path;

use monolayer::{Error, Result};
use monolayer_train::Options;
use monolayer_train::training_data::Source;
use serde_json::{Value, json};

use super::point::{at, found};
use super::training::{Training, median_curve, size, with_parameters};
use super::{At, Experiment, Found, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure};

/// The experiment.
pub struct Depth;

impl Experiment for Depth {
    fn name(&self) -> &'static str {
        "depth"
    }

    fn question(&self) -> &'static str {
        "Does depth speed up learning, at equal parameters?"
    }

    fn parameters(&self, quick: bool) -> Value {
        // `hidden` units are those of one layer; deeper models have as many parameters.
        if quick {
            json!({ "layers": [1, 3, 6], "rate": [0.003], "accuracy": 0.99, "epochs": 100, "batch": 16, "dim": 64, "hidden": 768,
                    "positions": 1, "sequences": 100, "length": 10, "vocabulary": 200, "labels": 4 })
        } else {
            json!({ "layers": [1, 2, 3, 4, 6], "rate": [0.001, 0.003], "accuracy": 0.99, "epochs": 200, "batch": 32, "dim": 64,
                    "hidden": 768, "positions": 1, "sequences": 500, "length": 10, "vocabulary": 200, "labels": 4 })
        }
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        for rate in settings.list("rate")? {
            for layers in settings.list("layers")? {
                if layers < 1.0 || layers.fract() != 0.0 {
                    return Err(Error::setting(format!("{layers} layers"), "write whole numbers from 1"));
                }
                let seeds = settings.seeds.iter();
                grid.extend(seeds.map(|seed| at(json!({ "rate": rate, "layers": layers, "seed": seed }))));
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let data = settings.corpus(at.seed())?;
        let one = Options {
            dim: Some(settings.count("dim")?),
            hidden: settings.count("hidden")?,
            positions: settings.count("positions")? > 0,
            rate: at.number("rate"),
            batch: settings.count("batch")?.max(1),
            epochs: settings.count("epochs")?,
            eval_every: 1,
            seed: at.seed(),
            ..Options::default()
        };
        let options =
            with_parameters(&Options { layers: at.count("layers"), ..one.clone() }, &data, size(&one, &data)?)?;
        let training = Training::of_all(Source::Data(&data), &options, settings.stop);
        let trained = training.run(scratch)?;
        Ok(found(json!({
            "hidden": options.hidden,
            "parameters": trained.parameters,
            "epochs": trained.epochs_to(settings.number("accuracy")?),
            "accuracy": trained.best(),
            "diverged": trained.diverged,
            "curve": trained.curve(),
        })))
    }

    fn figures(&self, settings: &Settings, points: &Points) -> Vec<Figure> {
        let target = settings.number("accuracy").unwrap_or(f64::NAN);
        let title = format!("Epochs to a training accuracy of {}", number(target));
        let y = Axis::log("epochs", "passes over the data");
        let mut epochs = Figure::new("epochs", title, Axis::linear("layers", "count"), y)
            .caption("All models have the same number of parameters. Runs that did not get there are left out.");
        for rate in points.values("rate") {
            let curve = points.where_number("rate", rate).curve("layers", "epochs");
            epochs = epochs.line(format!("learning rate {}", number(rate)), curve);
        }
        let mut figures = if epochs.marks.is_empty() { Vec::new() } else { vec![epochs] };
        for rate in points.values("rate") {
            let own = points.where_number("rate", rate);
            let y = Axis::linear("training accuracy", "share of tokens").between(0.0, 1.02);
            let name = format!("curves-{}", number(rate));
            let title = format!("Training accuracy, learning rate {}", number(rate));
            let mut figure = Figure::new(&name, title, Axis::linear("epoch", "passes over the data"), y);
            for layers in own.values("layers") {
                let curve = median_curve(&own.where_number("layers", layers), "curve");
                figure = figure.line(layers_of(layers), curve);
            }
            figures.push(figure.level("asked for", target));
        }
        figures
    }

    fn summary(&self, settings: &Settings, points: &Points) -> String {
        let sizes = points.all("parameters");
        let (least, most) = sizes.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
        let mut text = format!(
            "Rank-1 attention without layer norm, {} to {} parameters whatever the depth, Adam at a constant rate, at most {} epochs, {} seed{}.\n\n",
            number(least),
            number(most),
            number(settings.number("epochs").unwrap_or(f64::NAN)),
            settings.seeds.len(),
            if settings.seeds.len() == 1 { "" } else { "s" },
        );
        for rate in points.values("rate") {
            let own = points.where_number("rate", rate);
            let curve = own.curve("layers", "epochs");
            let line = |layers: f64| {
                let here = own.where_number("layers", layers);
                let (there, runs) = (here.all("epochs").len(), here.0.len());
                let median = curve.iter().find(|p| p.x == layers).map_or(f64::NAN, |p| p.y);
                let name = layers_of(layers);
                match there {
                    0 => format!("{name} never (best accuracy {})", number(highest(&here, "accuracy"))),
                    _ if there < runs => format!("{name} in {} ({there} of {runs} runs)", number(median)),
                    _ => format!("{name} in {}", number(median)),
                }
            };
            let lines: Vec<String> = own.values("layers").into_iter().map(line).collect();
            text += &format!("- learning rate {}, median epochs: {}.\n", number(rate), lines.join(", "));
        }
        text + "\n" + &verdict(points)
    }
}

fn layers_of(layers: f64) -> String {
    format!("{} layer{}", number(layers), if layers == 1.0 { "" } else { "s" })
}

fn highest(points: &Points, name: &str) -> f64 {
    points.all(name).into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// The fewest median epochs of each depth over all rates, the first depth against the others. Only depths that all seeds
/// bring there count.
fn verdict(points: &Points) -> String {
    let best = |layers: f64| {
        let of_rate = |rate: &f64| {
            let here = points.where_number("rate", *rate).where_number("layers", layers);
            let all = here.all("epochs").len() == here.0.len();
            here.curve("layers", "epochs").first().map(|p| p.y).filter(|y| all && y.is_finite())
        };
        points.values("rate").iter().filter_map(of_rate).min_by(f64::total_cmp)
    };
    let depths = points.values("layers");
    let Some(&shallow) = depths.first() else { return String::new() };
    let deep = depths.iter().skip(1).filter_map(|&layers| Some((layers, best(layers)?)));
    let shallow_name = layers_of(shallow);
    match (best(shallow), deep.min_by(|a, b| a.1.total_cmp(&b.1))) {
        (Some(one), Some((layers, epochs))) => format!(
            "At the best rate of each, {shallow_name}: {} epochs; {}, the fastest of the deeper ones: {}. Here depth {} learning.",
            number(one),
            layers_of(layers),
            number(epochs),
            if epochs < one { "speeds up" } else { "does not speed up" },
        ),
        (None, Some((layers, epochs))) => {
            format!("{} in {} epochs; {shallow_name} not in all runs.", layers_of(layers), number(epochs))
        }
        (Some(one), None) => format!("{shallow_name} in {} epochs; deeper models not in all runs.", number(one)),
        (None, None) => "No depth gets there in all runs: nothing can be said.".to_owned(),
    }
}
