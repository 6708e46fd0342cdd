//! Figure 1 of the paper: the training accuracy of rank-1 Transformers (eq. 20) over epochs, beside what it has to be judged
//! by: the word majority, the ceilings with and without positions, and the compiled model.

use std::ops::ControlFlow;
use std::path::Path;

use monolayer::data::LabelScheme;
use monolayer::{Dataset, Error, Result};
use monolayer_train::Options;
use monolayer_train::ceilings::Ceilings;
use monolayer_train::checkpoint::FILE;
use monolayer_train::metrics::Metrics;
use monolayer_train::run::{End, Event, Job, train};
use monolayer_train::training_data::Source;
use serde_json::{Value, json};

use super::learner::{CompiledLearner, Learner as _, Task};
use super::point::{at, found};
use super::{At, Experiment, Found, Points, Settings, interrupted};
use crate::example;
use crate::plot::{Axis, Figure, Point};

/// The accuracy that the paper gives for one layer after 800 epochs.
pub const PAPER: f64 = 0.9872;

/// The experiment.
pub struct Figure1;

impl Experiment for Figure1 {
    fn name(&self) -> &'static str {
        "figure1"
    }

    fn question(&self) -> &'static str {
        "How fast do rank-1 Transformers of 1, 3 and 6 layers learn a corpus by heart, and how much is that?"
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn parameters(&self, quick: bool) -> Value {
        let (epochs, every) = if quick { ([120, 60, 60], 5) } else { ([800, 400, 400], 10) };
        json!({
            "layers": [1, 3, 6], "epochs": epochs, "eval_every": every, "labels": ["as-is", "iob2"],
            "dim": 64, "hidden": 256, "batch": if quick { 8 } else { 32 }, "rate": 0.001,
        })
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let (layers, epochs) = (settings.list("layers")?, settings.list("epochs")?);
        if layers.len() != epochs.len() {
            let what = format!("{} numbers of layers and {} of epochs", layers.len(), epochs.len());
            return Err(Error::setting(what, "give as many epochs as layers"));
        }
        let mut schemes = settings.names("labels")?;
        if settings.data.is_none() {
            // The embedded example has classes that are no chunks: there is one way to write them.
            schemes = vec!["as-is".to_owned()];
        }
        let known = |scheme: &String| at(json!({ "model": "compiled", "labels": scheme }));
        let mut grid: Vec<At> = schemes.iter().map(known).collect();
        for seed in &settings.seeds {
            for scheme in &schemes {
                grid.extend(layers.iter().zip(&epochs).map(|(layers, epochs)| {
                    at(json!({ "model": "trained", "labels": scheme, "layers": layers, "epochs": epochs, "seed": seed }))
                }));
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let scheme: LabelScheme = at.text("labels").parse()?;
        let data = scheme.apply(settings.data.clone().map_or_else(example::dataset, Ok)?)?;
        if at.text("model") == "compiled" {
            compiled(settings, &data, scratch)
        } else {
            trained(settings, at, &data, scratch)
        }
    }

    fn figures(&self, settings: &Settings, points: &Points) -> Vec<Figure> {
        let figure = |scheme: &String| {
            let own = points.with("labels", scheme);
            let level = |name: &str| own.all(name).first().copied().unwrap_or(f64::NAN);
            let majority = level("word_majority");
            // What lies further below the word majority than that lies below 1 is not worth the paper.
            let low = majority - (1.0 - majority);
            let y = Axis::linear("training accuracy", "share of tokens").between(low, 1.0 + 0.02 * (1.0 - low));
            let (name, title) = (format!("accuracy-{scheme}"), format!("Rank-1 Transformers, labels {scheme}"));
            let mut figure = Figure::new(&name, title, Axis::log("training", "epochs"), y);
            for layers in own.values("layers") {
                let curve = curve(&own.where_number("layers", layers));
                figure = figure.line(depth(layers), curve.into_iter().filter(|p| p.y >= low));
            }
            if settings.data.is_some() {
                figure = figure.level("the paper's 1 layer at 800 epochs", PAPER);
            }
            figure
                .level("each word's commonest label", majority)
                .level("best without positions", level("without_positions"))
                .level("compiled, with positions", level("compiled"))
                .caption("The band is the range over seeds. Up to the word majority nothing of the context is needed.")
        };
        points.names("labels").iter().map(figure).collect()
    }

    fn summary(&self, settings: &Settings, points: &Points) -> String {
        let mut text = String::new();
        for scheme in points.names("labels") {
            let own = points.with("labels", &scheme);
            let level = |name: &str| own.all(name).first().copied().unwrap_or(f64::NAN);
            let (majority, ceiling) = (level("word_majority"), level("without_positions"));
            text += &format!(
                "Labels {scheme}: the word majority is {majority:.4}, the best without positions {ceiling:.5}, the compiled model {:.5}.\n\n",
                level("compiled")
            );
            for layers in own.values("layers") {
                let curve = curve(&own.where_number("layers", layers));
                let Some(last) = curve.last() else { continue };
                let share = 100.0 * (last.y - majority) / (ceiling - majority);
                text += &format!(
                    "- {}: {:.5} after {} epochs, {share:.0} % of the way from the word majority to the ceiling",
                    depth(layers),
                    last.y,
                    last.x
                );
                if settings.data.is_some() {
                    text += &format!("; {PAPER} {}, 0.995 {}", reached(&curve, PAPER), reached(&curve, 0.995));
                }
                text += ".\n";
            }
            text += "\n";
        }
        text
    }
}

fn depth(layers: f64) -> String {
    if layers == 1.0 { "1 layer".to_owned() } else { format!("{layers} layers") }
}

/// When a curve first reaches an accuracy.
fn reached(curve: &[Point], accuracy: f64) -> String {
    let first = curve.iter().find(|p| p.y >= accuracy);
    first.map_or_else(|| "never reached".to_owned(), |p| format!("reached by epoch {}", p.x))
}

/// Accuracy over epochs: the median over runs with their range.
fn curve(runs: &Points) -> Vec<Point> {
    let numbers = |found: &Found, name: &str| -> Vec<f64> {
        found.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let curves: Vec<(Vec<f64>, Vec<f64>)> =
        runs.0.iter().map(|(_, found)| (numbers(found, "epoch"), numbers(found, "accuracy"))).collect();
    let Some((epochs, _)) = curves.first() else { return Vec::new() };
    let over = |(i, &x): (usize, &f64)| {
        Point::over(x, &curves.iter().filter_map(|(_, y)| y.get(i).copied()).collect::<Vec<_>>())
    };
    epochs.iter().enumerate().map(over).collect()
}

/// What needs no training: the ceilings, and the compiled model.
fn compiled(settings: &Settings, data: &Dataset, scratch: &Path) -> Result<Found> {
    let ceilings = Ceilings::of(data)
        .ok_or_else(|| Error::mismatch("the data has no classes", "give a file with a label per token"))?;
    let task = Task { data, positions: true, seed: 1, quick: settings.quick, scratch, stop: settings.stop };
    Ok(found(json!({
        "tokens": data.tokens(),
        "word_majority": ceilings.word_majority,
        "without_positions": ceilings.without_positions,
        "with_positions": ceilings.with_positions,
        "compiled": CompiledLearner.learn(&task)?.right as f64 / data.tokens() as f64,
    })))
}

/// A training run, or the rest of one.
fn trained(settings: &Settings, at: &At, data: &Dataset, scratch: &Path) -> Result<Found> {
    let whole = |name: &str| settings.number(name).map(|x| x as usize);
    let options = Options {
        layers: at.count("layers"),
        dim: Some(whole("dim")?),
        hidden: whole("hidden")?,
        batch: whole("batch")?,
        rate: settings.number("rate")?,
        epochs: at.count("epochs"),
        eval_every: whole("eval_every")?,
        seed: at.seed(),
        ..Options::default()
    };
    let job = Job { source: Source::Data(data), dev: None, options: &options, out: scratch, fixed: &[] };
    let resume = scratch.join(FILE).is_file();
    let (say, stop) = (&settings.say, settings.stop);
    let report = train(&job, resume, &mut |event| {
        if let Event::Evaluated(Metrics { epoch, train_accuracy: Some(accuracy), .. }) = event {
            let (layers, epochs, seed) = (options.layers, options.epochs, options.seed);
            let scheme = at.text("labels");
            say(&format!("layers {layers}, {scheme}, seed {seed}: epoch {epoch} of {epochs}, {accuracy:.5}"));
        }
        if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match report.end {
        End::Done => {}
        End::Stopped => return Err(interrupted()),
        End::Diverged(diverged) => {
            let what = format!("step {}: {} in {}", diverged.step, diverged.what, diverged.tensor);
            return Err(Error::undefined(what, "choose a smaller rate"));
        }
    }
    let history = &report.progress.history;
    Ok(found(json!({
        "parameters": report.parameters,
        "epoch": history.iter().map(|m| m.epoch).collect::<Vec<_>>(),
        "accuracy": history.iter().map(|m| m.train_accuracy).collect::<Vec<_>>(),
    })))
}
