//! Proposition 1 in figures: error against grid, ids and parameters, with and without the quantizer, compiled and trained.

use std::path::Path;

use crate::approximation_study::{self as study, Row};
use monolayer::approximate::Approximator;
use monolayer::approximate::expression::{Expression, Program};
use monolayer::approximate::function::Function as _;
use monolayer::approximate::measured_distance::distance;
use monolayer::arithmetic::kernels::Real;
use monolayer::model::Model;
use monolayer::model::forward;
use monolayer::{AnyModel, Error, Result};
use monolayer_train::Options;
use monolayer_train::options::Rank;
use monolayer_train::schedule::Schedule;
use monolayer_train::training_data::{Function, Source};
use serde_json::{Value, json};

use super::point::{at, found};
use super::training::{Training, nearest};
use super::{At, Experiment, Found, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure};

/// What approximates.
const COMPILED: &str = "compiled";
const BARE: &str = "without quantizer";
/// Trained ones: name, layers, whether attention has full rank.
const TRAINED: [(&str, usize, bool); 3] =
    [("trained, rank 1", 1, false), ("trained, rank 1, deep", 3, false), ("trained, full rank, deep", 3, true)];

/// The experiment.
pub struct Approximation;

impl Experiment for Approximation {
    fn name(&self) -> &'static str {
        "approximation"
    }

    fn question(&self) -> &'static str {
        "How fast does the error fall, compiled and trained, with and without the quantizer?"
    }

    fn parameters(&self, quick: bool) -> Value {
        // Functions in order of complexity.
        let functions = ["zoo:centering", "zoo:bump", "zoo:wave", "zoo:xor"];
        if quick {
            json!({ "function": [functions[0], functions[2], functions[3]], "dim": 2, "length": 2, "grid": [2, 4], "epochs": 20, "samples": 1024, "rate": 0.005,
                    "points": 4096 })
        } else {
            json!({ "function": functions, "dim": 2, "length": 2, "grid": [2, 3, 4, 6, 8], "epochs": 400, "samples": 8192,
                    "rate": 0.005, "points": 65_536 })
        }
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        let names: Vec<&str> = [COMPILED, BARE].into_iter().chain(TRAINED.map(|(name, ..)| name)).collect();
        for function in settings.names("function")? {
            program(settings, &function)?;
            for parts in settings.list("grid")? {
                if parts < 1.0 || parts.fract() != 0.0 {
                    return Err(Error::setting(format!("a grid of {parts}"), "write whole numbers from 1"));
                }
                for &name in &names {
                    // Compiling knows no chance that matters here: one seed will do.
                    let seeds = if name == COMPILED { &settings.seeds[..1] } else { &settings.seeds[..] };
                    grid.extend(
                        seeds.iter().map(|seed| {
                            at(json!({ "function": function, "grid": parts, "model": name, "seed": seed }))
                        }),
                    );
                }
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        let f = program(settings, at.text("function"))?;
        let points = settings.count("points")?;
        let compiled = Approximator::new().compile(&f, at.count("grid"))?;
        let size = compiled.size();
        match at.text("model") {
            COMPILED => {
                let row = Row::new(&f, &compiled, 2.0, points);
                Ok(found(json!({
                    "ids": size.ids, "hidden": size.hidden, "quantizer": size.quantizer, "parameters": size.parameters,
                    "bound": row.bound, "error": row.measured.distance, "standard_error": row.measured.error,
                    "plain_parameters": row.plain.parameters, "plain_error": row.plain_measured.distance,
                })))
            }
            BARE => {
                let d = f.dim();
                // Attention has 4 d numbers, a unit 2 d + 1, the block's bias d.
                let hidden = size.parameters.saturating_sub(5 * d) / (2 * d + 1);
                let bare = study::without_quantizer(&f, hidden, points, at.seed());
                Ok(found(json!({
                    "hidden": bare.hidden, "parameters": bare.hidden * (2 * d + 1) + 5 * d,
                    "error": bare.measured.distance, "standard_error": bare.measured.error, "floor": bare.floor,
                    "constant": bare.constant.distance,
                })))
            }
            name => train(settings, at, &f, name, size.parameters, scratch),
        }
    }

    fn figures(&self, settings: &Settings, points: &Points) -> Vec<Figure> {
        let mut figures = Vec::new();
        let root = distance_unit(settings);
        let mut grid = Figure::new(
            "grid",
            "The compiled model's error against the grid",
            Axis::log("grid", "parts of each coordinate"),
            Axis::log("distance d_2 from the function", &root),
        );
        for function in points.names("function") {
            let own = points.with("function", &function).with("model", COMPILED);
            grid = grid.line(format!("{}, measured", short(&function)), own.curve("grid", "error"));
        }
        for function in points.names("function") {
            let own = points.with("function", &function).with("model", COMPILED);
            grid = grid.points(format!("{}, bound", short(&function)), own.curve("grid", "bound"));
        }
        figures.push(grid);
        for (i, function) in points.names("function").into_iter().enumerate() {
            let own = points.with("function", &function);
            let name = format!("parameters-{}-{}", i + 1, slug(&function));
            let title = format!("Error against size: {}", short(&function));
            let (x, y) =
                (Axis::log("parameters", "numbers stored"), Axis::log("distance d_2 from the function", &root));
            let mut figure = Figure::new(&name, title, x, y);
            for model in own.names("model") {
                figure = figure.line(model.clone(), by_parameters(&own.with("model", &model), "error"));
            }
            let constant = own.all("constant").into_iter().fold(f64::NAN, f64::min);
            figures.push(figure.level("a constant", constant));
        }
        figures
    }

    fn summary(&self, settings: &Settings, points: &Points) -> String {
        let mut text = format!(
            "Tokens of {} coordinates, sequences of {}; d_2 of eq. 1, measured at points that no model was made from. Trained models \
             have as many parameters as the compiled one of the same grid, and no embedding: their tokens have the function's \
             dimension. What is compiled without the quantizer has one layer of rank 1; its read-out sees all coordinates and has at most 500 units.\n\n",
            number(settings.number("dim").unwrap_or(f64::NAN)),
            number(settings.number("length").unwrap_or(f64::NAN)),
        );
        for function in points.names("function") {
            let own = points.with("function", &function);
            let compiled = own.with("model", COMPILED);
            let finest = compiled.values("grid").into_iter().fold(0.0, f64::max);
            let series: Vec<(f64, f64)> =
                compiled.curve("grid", "error").into_iter().map(|p| (p.x, p.y)).filter(|p| p.1 > 0.0).collect();
            let falls = if series.len() > 1 {
                format!("the compiled error falls like grid^{:.2}", study::slope(&series))
            } else {
                "the compiled error is 0 at all grids but one at most".to_owned()
            };
            let here = own.where_number("grid", finest);
            let at = |name: String| {
                let error = crate::plot::Point::over(0.0, &here.with("model", &name).all("error")).y;
                format!("{name} {}", number(error))
            };
            let errors: Vec<String> = here.names("model").into_iter().map(at).collect();
            let first = |points: &Points, name: &str| points.all(name).first().copied().unwrap_or(f64::NAN);
            text += &format!(
                "- {}: {falls}. At grid {} ({} ids, {} parameters, bound {}): {}; floor without \
                 quantizer {}, a constant {}.\n",
                short(&function),
                number(finest),
                number(first(&here.with("model", COMPILED), "ids")),
                number(first(&here.with("model", COMPILED), "parameters")),
                number(first(&here.with("model", COMPILED), "bound")),
                errors.join(", "),
                number(here.with("model", BARE).all("floor").into_iter().fold(f64::INFINITY, f64::min)),
                number(first(&here.with("model", BARE), "constant")),
            );
        }
        text
    }
}

/// The function of a text.
fn program(settings: &Settings, text: &str) -> Result<Program> {
    let program = Expression::parse(text, settings.count("dim")?)?.at_length(settings.count("length")?)?;
    if !program.is_equivariant() {
        return Err(Error::setting(
            format!("{text} treats places differently"),
            "use functions that commute with permutations: trained models here have no positions",
        ));
    }
    Ok(program)
}

/// Adam on samples of the function, at the size of the compiled model.
fn train(settings: &Settings, at: &At, f: &Program, name: &str, parameters: usize, scratch: &Path) -> Result<Found> {
    let &(_, layers, full) = TRAINED
        .iter()
        .find(|(known, ..)| *known == name)
        .ok_or_else(|| Error::setting(format!("no model {name:?}"), "leave it out"))?;
    let (dim, length) = (f.dim(), f.length());
    let options = Options {
        layers,
        dim: Some(dim),
        rank: if full { Rank::Full } else { Rank::Of(1) },
        tied: !full,
        rate: settings.number("rate")?,
        schedule: Schedule::Cosine,
        epochs: settings.count("epochs")?,
        eval_every: if settings.quick { settings.count("epochs")? } else { 1 },
        seed: at.seed(),
        ..Options::default()
    };
    let sizes = |hidden: usize| -> Result<usize> {
        let options = Options { hidden, ..options.clone() };
        Ok(options.architecture(None, Some(dim), None, length)?.parameters())
    };
    let options = Options { hidden: nearest(parameters, sizes(1)?, sizes(2)?), ..options };
    let apply = |x: &[f64], y: &mut [f64]| f.values(x, y);
    let text = f.expression().text().to_owned();
    let function = Function { text, dim, length, samples: settings.count("samples")?, apply: &apply };
    let training = Training::of_all(Source::Function(&function), &options, settings.stop);
    let trained = training.run(scratch)?;
    let points = settings.count("points")?;
    let model = AnyModel::open(scratch)?;
    let run = |x: &[f64], y: &mut [f64]| match &model {
        AnyModel::F32(model) => evaluate(model, length, x, y),
        AnyModel::F64(model) => evaluate(model, length, x, y),
        AnyModel::Exact(_) => unreachable!("training makes floats"),
    };
    let measured = distance(&apply, &run, dim * length, 2.0, points, 1);
    Ok(found(json!({
        "hidden": options.hidden,
        "parameters": trained.parameters,
        "error": Some(measured.distance).filter(|error| error.is_finite()),
        "standard_error": measured.error,
        "diverged": trained.diverged,
    })))
}

/// A model without words, places or head on one sequence.
fn evaluate<R: Real>(model: &Model<R>, length: usize, x: &[f64], y: &mut [f64]) {
    let mut h: Vec<R> = x.iter().map(|&x| R::from_f64(x)).collect();
    forward::transform(&model.transformer, &[0, length], &mut h);
    y.iter_mut().zip(&h).for_each(|(y, h)| *y = h.to_f64());
}

/// A finding against the number of parameters, grid by grid.
fn by_parameters(points: &Points, name: &str) -> Vec<crate::plot::Point> {
    let at = |grid: f64| {
        let here = points.where_number("grid", grid);
        let size = crate::plot::Point::over(0.0, &here.all("parameters")).y;
        crate::plot::Point::over(size, &here.all(name))
    };
    points.values("grid").into_iter().map(at).collect()
}

/// What d_2 is measured in.
fn distance_unit(settings: &Settings) -> String {
    let entries = settings.number("dim").unwrap_or(f64::NAN) * settings.number("length").unwrap_or(f64::NAN);
    format!("L2 norm over all {} outputs", number(entries))
}

/// A function's name.
fn short(function: &str) -> &str {
    function.strip_prefix("zoo:").unwrap_or(function)
}

/// A function's name for a file.
fn slug(function: &str) -> String {
    let name: String =
        short(function).chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(24).collect();
    name.trim_matches('-').to_owned()
}
