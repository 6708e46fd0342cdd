//! The rank of attention: how a rank above 1 changes training, approximation, and the gaps between context ids.

use std::path::Path;

use crate::approximation_study as study;
use monolayer::approximate::expression::{Expression, Program};
use monolayer::approximate::function::Function as _;
use monolayer::context_map::{Groups, Projection, View, standard_deviation};
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::Mask;
use monolayer::{Error, Result};
use monolayer_train::Options;
use monolayer_train::options::Rank;
use monolayer_train::schedule::Schedule;
use monolayer_train::training_data::{Function, Source};
use rand::RngExt as _;
use rand_distr::StandardNormal;
use serde_json::{Value, json};

use super::point::{at, found};
use super::tasks::random;
use super::training::{Training, median_curve, nearest, size, with_parameters};
use super::{At, Experiment, Found, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure};

/// Training labels, training a function, and the ids of random projections.
const PARTS: [&str; 3] = ["labels", "function", "gap"];
/// Points on which the function's spread is measured.
const POINTS: usize = 1 << 14;

/// The experiment.
pub struct AttentionRank;

impl Experiment for AttentionRank {
    fn name(&self) -> &'static str {
        "rank"
    }

    fn question(&self) -> &'static str {
        "What is a higher rank of the attention weights worth?"
    }

    fn parameters(&self, quick: bool) -> Value {
        // `hidden` units are those at rank 1; other ranks have as many parameters. A rank of `dim` is full.
        if quick {
            json!({ "rank": [1, 2, 4, 8, 64], "rate": 0.003, "epochs": 40, "batch": 16, "dim": 64, "hidden": 512, "positions": 1,
                    "tied": 0, "sequences": 100, "length": 10, "vocabulary": 200, "labels": 4,
                    "function": ["zoo:attention"], "function_dim": 8, "function_length": 4, "function_hidden": 128,
                    "function_epochs": 20, "samples": 2048 })
        } else {
            json!({ "rank": [1, 2, 4, 8, 64], "rate": 0.003, "epochs": 200, "batch": 32, "dim": 64, "hidden": 768, "positions": 1,
                    "tied": 0, "sequences": 500, "length": 10, "vocabulary": 200, "labels": 4,
                    "function": ["zoo:attention"], "function_dim": 8, "function_length": 4, "function_hidden": 256,
                    "function_epochs": 300, "samples": 8192 })
        }
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        for part in PARTS {
            let full = settings.count(if part == "function" { "function_dim" } else { "dim" })? as f64;
            let mut ranks: Vec<f64> = settings.list("rank")?.into_iter().map(|rank| rank.min(full)).collect();
            if let Some(rank) = ranks.iter().find(|rank| **rank < 1.0 || rank.fract() != 0.0) {
                return Err(Error::setting(format!("rank {rank}"), "write whole numbers from 1"));
            }
            ranks.dedup();
            for rank in ranks {
                let seeds = settings.seeds.iter();
                grid.extend(seeds.map(|seed| at(json!({ "part": part, "rank": rank, "seed": seed }))));
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
        match at.text("part") {
            "labels" => labels(settings, at, scratch),
            "function" => function(settings, at, scratch),
            _ => gap(settings, at),
        }
    }

    fn figures(&self, settings: &Settings, points: &Points) -> Vec<Figure> {
        let rank = || Axis::log("rank of the attention weights", "rows");
        let of = |part: &str, name: &str| points.with("part", part).curve("rank", name);
        let mut curves = Figure::new(
            "curves",
            "Training accuracy",
            Axis::linear("epoch", "passes over the data"),
            Axis::linear("training accuracy", "share of tokens").between(0.0, 1.02),
        );
        let trained = points.with("part", "labels");
        for k in trained.values("rank") {
            curves =
                curves.line(format!("rank {}", number(k)), median_curve(&trained.where_number("rank", k), "curve"));
        }
        let speed = Axis::linear("training speed", "thousand tokens per second");
        let scaled = of("labels", "tokens_per_second").into_iter().map(|mut p| {
            p.y /= 1000.0;
            p.band = p.band.map(|band| band.map(|y| y / 1000.0));
            p
        });
        let text = settings.names("function").map(|list| list.join("; ")).unwrap_or_default();
        let spread = points.with("part", "function").all("spread").first().copied().unwrap_or(f64::NAN);
        vec![
            curves,
            Figure::new("speed", "Training speed on this machine", rank(), speed)
                .line("fastest epoch", scaled)
                .caption("By the clock: another machine, or a busy one, gives other numbers."),
            Figure::new(
                "error",
                format!("Error of trained models of {text}"),
                rank(),
                Axis::log("error", "root mean square of an output"),
            )
            .line("one layer, equal parameters", of("function", "error"))
            .level("a constant", spread),
            Figure::new(
                "gap",
                "The smallest distance that decides a label",
                rank(),
                Axis::log("distance of ids", "standard deviations"),
            )
            .line("as many rank-1 heads, random projections", of("gap", "gap"))
            .caption("Two contexts are as far apart as in the projection that holds them farthest apart."),
        ]
    }

    fn summary(&self, settings: &Settings, points: &Points) -> String {
        let curve = |part: &str, name: &str| points.with("part", part).curve("rank", name);
        let listed = |part: &str, name: &str| {
            let list = curve(part, name).into_iter().filter(|p| p.y.is_finite());
            list.map(|p| format!("{} at rank {}", number(p.y), number(p.x))).collect::<Vec<_>>().join(", ")
        };
        let what = if settings.data.is_some() { "the data" } else { "random words with random labels" };
        format!(
            "One layer, {} parameters whatever the rank for labels and {} for the function; medians over seeds.\n\n\
             - training accuracy on {what} after at most {} epochs: {}\n\
             - epochs to 99 %: {}\n\
             - tokens per second, on the machine of this run: {}\n\
             - root mean square error of an output of the function: {} (a constant: {})\n\
             - smallest distance of ids of k rank-1 heads with random projections, in standard deviations: {}\n\n\
             The compiler uses one projection, of rank 1, and searches for it; the last line is for projections that nobody \
             searched for, so that only their number counts.",
            number(points.with("part", "labels").all("parameters").into_iter().fold(0.0, f64::max)),
            number(points.with("part", "function").all("parameters").into_iter().fold(0.0, f64::max)),
            number(settings.number("epochs").unwrap_or(f64::NAN)),
            listed("labels", "accuracy"),
            Some(listed("labels", "epochs")).filter(|list| !list.is_empty()).unwrap_or_else(|| "not reached".into()),
            listed("labels", "tokens_per_second"),
            listed("function", "error"),
            number(points.with("part", "function").all("spread").first().copied().unwrap_or(f64::NAN)),
            listed("gap", "gap"),
        )
    }
}

/// What all trainings share.
fn options(settings: &Settings, at: &At, dim: usize) -> Result<Options> {
    let rank = at.count("rank");
    Ok(Options {
        dim: Some(dim),
        rank: if rank == dim { Rank::Full } else { Rank::Of(rank) },
        tied: settings.count("tied")? > 0,
        rate: settings.number("rate")?,
        batch: settings.count("batch")?.max(1),
        eval_every: 1,
        seed: at.seed(),
        ..Options::default()
    })
}

/// A corpus, trained on.
fn labels(settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
    let data = settings.corpus(at.seed())?;
    let options = Options {
        positions: settings.count("positions")? > 0,
        epochs: settings.count("epochs")?,
        ..options(settings, at, settings.count("dim")?)?
    };
    let one = Options { rank: Rank::Of(1), hidden: settings.count("hidden")?, ..options.clone() };
    let options = with_parameters(&options, &data, size(&one, &data)?)?;
    let training = Training::of_all(Source::Data(&data), &options, settings.stop);
    let trained = training.run(scratch)?;
    Ok(found(json!({
        "hidden": options.hidden,
        "parameters": trained.parameters,
        "accuracy": trained.best(),
        "epochs": trained.epochs_to(0.99),
        "tokens_per_second": trained.tokens_per_second,
        "diverged": trained.diverged,
        "curve": trained.curve(),
    })))
}

/// The function of the settings.
fn program(settings: &Settings) -> Result<Program> {
    let text = settings.names("function")?.join("; ");
    Expression::parse(&text, settings.count("function_dim")?)?.at_length(settings.count("function_length")?)
}

/// A function, trained on.
fn function(settings: &Settings, at: &At, scratch: &Path) -> Result<Found> {
    let program = program(settings)?;
    let apply = |x: &[f64], y: &mut [f64]| program.values(x, y);
    let text = program.expression().text().to_owned();
    let (dim, length) = (program.dim(), program.length());
    let function = Function { text, dim, length, samples: settings.count("samples")?, apply: &apply };
    let options = Options {
        epochs: settings.count("function_epochs")?,
        schedule: Schedule::Cosine,
        ..options(settings, at, dim)?
    };
    let sizes = |rank: Rank, hidden: usize| -> Result<usize> {
        Ok(Options { rank, hidden, ..options.clone() }.architecture(None, Some(dim), None, length)?.parameters())
    };
    let wanted = sizes(Rank::Of(1), settings.count("function_hidden")?)?;
    let hidden = nearest(wanted, sizes(options.rank, 1)?, sizes(options.rank, 2)?);
    let options = Options { hidden, ..options };
    let training = Training::of_all(Source::Function(&function), &options, settings.stop);
    let trained = training.run(scratch)?;
    let error = trained.history.iter().map(|metrics| metrics.train_loss).fold(f64::INFINITY, f64::min).sqrt();
    Ok(found(json!({
        "hidden": hidden,
        "parameters": trained.parameters,
        "error": Some(error).filter(|error| error.is_finite()),
        "spread": study::variance(&program, POINTS).sqrt(),
        "diverged": trained.diverged,
    })))
}

/// How far apart k random projections hold contexts with different labels.
fn gap(settings: &Settings, at: &At) -> Result<Found> {
    let data = settings.corpus(at.seed())?;
    let (seed, positions) = (at.seed(), settings.count("positions")? > 0);
    let positions = if positions { Positions::Sign(32) } else { Positions::None };
    let vectors = TokenVectors::new(&data, &Embedding::Sign(64), &positions, 0, seed)?;
    let view = View::new(&data, &vectors, Mask::None);
    let groups = Groups::by_label(&view, &view.contexts.agree(&data.label_ids().unwrap_or_default()).label);
    let mut rng = random(seed, 7);
    let mut ids = || {
        let v: Vec<f64> = (0..vectors.d()).map(|_| rng.sample(StandardNormal)).collect();
        let projected = view.project(&v);
        // Scores of a few tenths: where floats hold ids farthest apart.
        let size = (projected.iter().map(|p| p * p).sum::<f64>() / projected.len() as f64).sqrt();
        let ids = Projection { v, kappa: 0.3 / (size * standard_deviation(&projected)) }.context_ids(&view);
        let spread = standard_deviation(&ids);
        ids.into_iter().map(|id| id / spread).collect::<Vec<f64>>()
    };
    let heads: Vec<Vec<f64>> = (0..at.count("rank")).map(|_| ids()).collect();
    let apart = |a: usize, b: usize| heads.iter().map(|ids| (ids[a] - ids[b]).abs()).fold(0.0, f64::max);
    let mut smallest = f64::INFINITY;
    for group in &groups.0 {
        for (i, a) in group.iter().enumerate() {
            let others = group[..i].iter().filter(|b| b.class != a.class);
            smallest = others.map(|b| apart(a.token, b.token)).fold(smallest, f64::min);
        }
    }
    Ok(found(json!({ "gap": Some(smallest).filter(|gap| gap.is_finite()), "contexts": view.contexts.count })))
}
