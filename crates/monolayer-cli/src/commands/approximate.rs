//! `monolayer approximate`: a function into the weights of one rank-1 layer.

mod figure;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use monolayer::Error;
use monolayer::approximate::expression::{Domain, Expression, Program, zoo};
use monolayer::approximate::function::Function;
use monolayer::approximate::measured_distance::{Measured, distance};
use monolayer::approximate::{
    Approximation, Approximator, CANDIDATES, EFFORT, MOST_IDS, Needed, Progress as Step, SmallestGrid, Tried,
};
use monolayer::arithmetic::Interval;
use monolayer::fs::replace_file;
use serde_json::{Value, json};

use super::{DOES, Outcome, READS, Shared, WRITES, replacing};
use crate::output::{Progress, count, table};

/// Compile a function on sequences into a quantizer, one rank-1 attention layer and one feed-forward block
///
/// The result comes with a certified bound on d_p, the L^p distance between the model and the function over the unit cube of
/// d x n numbers (Proposition 1). Outside the cube the model returns 0.
///
/// The function is given by one expression per output coordinate, separated by semicolons. x1 to xd are the coordinates of
/// the token. sum, mean, min, max and var with one argument run over all tokens; inside them, x1 to xd belong to the running
/// token and own1 to ownd to the output token. place is the position of the token, counted from 1.
#[derive(clap::Args)]
#[command(
    after_help = "Example: monolayer approximate --function 'x1*mean(x1)' --dim 1 --length 2 --epsilon 0.1 --out model"
)]
pub struct Args {
    /// The function: one expression per output coordinate, separated by semicolons, or a name from --list
    #[arg(long, value_name = "EXPR", required_unless_present = "list", allow_hyphen_values = true, help_heading = READS)]
    function: Option<String>,
    /// Number d of coordinates of a token
    #[arg(long, value_name = "D", required_unless_present = "list", help_heading = READS)]
    dim: Option<usize>,
    /// Number n of tokens in a sequence
    #[arg(long, value_name = "N", required_unless_present = "list", help_heading = READS)]
    length: Option<usize>,
    /// Cut each coordinate into this many parts
    #[arg(long, value_name = "G", conflicts_with = "epsilon", required_unless_present_any = ["epsilon", "list"], help_heading = DOES)]
    grid: Option<usize>,
    /// Use the smallest grid whose certified bound on d_p is at most this
    #[arg(long, value_name = "E", allow_negative_numbers = true, help_heading = DOES)]
    epsilon: Option<f64>,
    /// With --epsilon: use parts of equal width instead of adapting them to the function
    #[arg(long, help_heading = DOES)]
    uniform: bool,
    /// Exponent p of d_p
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true, help_heading = DOES)]
    p: f64,
    /// Position vectors
    #[arg(long, value_enum, default_value = "auto", num_args = 0..=1, default_missing_value = "auto", help_heading = DOES)]
    positions: PositionsArg,
    /// Seed of the search for cell codes and of the measured distance
    #[arg(long, default_value_t = 0, help_heading = DOES)]
    seed: u64,
    /// Number of codes to try, where codes are searched for (d >= 2 and n >= 3)
    #[arg(long, value_name = "N", default_value_t = CANDIDATES, help_heading = DOES)]
    candidates: usize,
    /// Largest number of boxes a cell is cut into for its error bound; more give a sharper bound
    #[arg(long, value_name = "N", default_value_t = EFFORT, help_heading = DOES)]
    effort: usize,
    /// Largest number of context ids allowed
    #[arg(long, value_name = "N", default_value_t = MOST_IDS, help_heading = DOES)]
    most_ids: u64,
    /// Number of sequences for measuring d_p (default: as many as take a few seconds)
    #[arg(long, value_name = "N", help_heading = DOES)]
    points: Option<usize>,
    /// List the functions that have a name
    #[arg(long, help_heading = DOES)]
    list: bool,
    /// The model directory to write
    #[arg(long, value_name = "DIR", required_unless_present = "list", help_heading = WRITES)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PositionsArg {
    /// Used if the function uses `place`
    Auto,
    /// Not used; a function that uses `place` is refused
    None,
}

/// Boxes that the search for a point where the function is undefined looks at.
const DOMAIN_BUDGET: usize = 100_000;
/// Additions and multiplications that measuring may take.
const MEASURING: f64 = 2e10;

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let start = Instant::now();
    let (Some(function), Some(dim), Some(length), Some(out)) = (&args.function, args.dim, args.length, &args.out)
    else {
        return Ok(list());
    };
    let expression = Expression::parse(function, dim)?;
    if expression.uses_places() && args.positions == PositionsArg::None {
        return Err(Error::setting("the function uses places, and --positions is none", "use --positions auto").into());
    }
    let program = expression.at_length(length)?;
    if let Some(outcome) = undefined(&program)? {
        return Ok(outcome);
    }
    let approximation = compile(args, shared, &program)?;
    let measured = measure(args, &program, &approximation);
    let text = expression.text();
    let picture = figure::draw(&program, &approximation, text);
    replacing(out, shared);
    approximation.save_with(out, |dir| replace_file(dir.join("figure.svg"), picture.as_bytes()))?;
    let holds = approximation.floats || args.epsilon.is_none();
    let seconds = start.elapsed().as_secs_f64();
    let facts = Facts { args, text, approximation: &approximation, measured, seconds };
    Ok(Outcome::decided(facts.json(), facts.text(out), holds))
}

/// Compiles the function on the grid that is asked for, or on the smallest that does.
fn compile(args: &Args, shared: &Shared, program: &Program) -> Result<Approximation> {
    let progress = Progress::new(shared, "choosing a grid", 0, "cells");
    let approximator = Approximator::new()
        .p(args.p)
        .seed(args.seed)
        .candidates(args.candidates)
        .effort(args.effort)
        .most_ids(args.most_ids)
        .uniform(args.uniform)
        .on_progress(|step| match step {
            Step::Codes(_) => progress.stage("choosing codes", 0),
            Step::Cells { more, of } => progress.more("bounding the error", *more, *of),
            Step::Grid(tried) => {
                progress.line(&said(tried));
                progress.stage("choosing a grid", 0);
            }
        });
    match (args.grid, args.epsilon) {
        (Some(grid), _) => Ok(approximator.compile(program, grid)?),
        (None, epsilon) => match approximator.compile_within(program, epsilon.unwrap_or_default())? {
            SmallestGrid::Met(approximation) => Ok(*approximation),
            SmallestGrid::TooFine { tried, needed } => Err(short(args, &tried, needed.as_ref()).into()),
        },
    }
}

fn list() -> Outcome {
    let rows: Vec<Vec<String>> =
        zoo::ZOO.iter().map(|f| [f.name, f.what, &f.text(1)].map(str::to_owned).to_vec()).collect();
    let named = zoo::ZOO.iter().map(|f| json!({ "name": f.name, "what": f.what, "function": f.text(1) }));
    Outcome::done(json!({ "functions": named.collect::<Vec<_>>() }), table(&rows, &[1, 2]))
}

/// A function that is not defined on the whole cube is bad input, with a point that shows it; one of which that could not
/// be decided is undecided.
fn undefined(program: &Program) -> Result<Option<Outcome>> {
    let tokens = |entries: &[String]| -> String {
        let tokens: Vec<String> = entries.chunks(program.dim()).map(|t| format!("({})", t.join(", "))).collect();
        tokens.join(", ")
    };
    match program.domain(DOMAIN_BUDGET) {
        Domain::Defined(_) => Ok(None),
        Domain::Undefined { witness, what } => {
            let place = tokens(&witness.iter().map(ToString::to_string).collect::<Vec<_>>());
            Err(Error::setting(
                format!("the function is not defined on the whole cube: {what}, for the tokens {place}"),
                "change it there, for example with max or abs",
            )
            .into())
        }
        Domain::Undecided { place, what } => {
            let range = |x: &Interval| format!("{:.6}..{:.6}", x.lo(), x.hi());
            let place = tokens(&place.iter().map(range).collect::<Vec<_>>());
            let error =
                format!("it could not be decided whether the function is defined: {what}, near the tokens {place}");
            let text = format!("{error}\n");
            Ok(Some(Outcome { json: json!({ "error": error, "where": place }), text, code: 1 }))
        }
    }
}

fn said(tried: &Tried) -> String {
    format!("grid {}: {} ids, bound {}", by(&tried.grid), count(tried.ids as usize), digits(tried.bound))
}

/// Four digits that count, so that a bound that is above another is shown above it.
fn digits(x: f64) -> String {
    if (1e-3..1e4).contains(&x) {
        format!("{x:.*}", (3 - x.log10().floor() as i32).max(0) as usize)
    } else {
        format!("{x:.3e}")
    }
}

/// The parts of all coordinates: 8, or 4 x 3.
fn by<T: ToString + PartialEq>(parts: &[T]) -> String {
    let all: Vec<String> = parts.iter().map(ToString::to_string).collect();
    if parts.iter().all(|p| *p == parts[0]) { all[0].clone() } else { all.join(" x ") }
}

/// What it would take.
fn short(args: &Args, tried: &[Tried], needed: Option<&Needed>) -> Error {
    let epsilon = args.epsilon.unwrap_or_default();
    let best = tried.iter().min_by(|a, b| a.bound.total_cmp(&b.bound));
    let best = best.map_or("nothing fits".to_owned(), |best| {
        format!("the best bound found is {}, with {} ids", digits(best.bound), count(best.ids as usize))
    });
    let needed = match needed {
        None => "it does not fall with finer grids".to_owned(),
        Some(Needed { grid, ids: None }) => format!("it would take a grid of about {}, more than 2^63 ids", by(grid)),
        Some(Needed { grid, ids: Some(ids) }) => format!(
            "it would take a grid of about {}: {} ids, about {} hidden units",
            by(grid),
            count(*ids as usize),
            count(2 * *ids as usize + 1)
        ),
    };
    Error::setting(
        format!(
            "d_{} <= {epsilon} is not met with {} ids or fewer: {best}; {needed}",
            args.p,
            count(args.most_ids as usize)
        ),
        "use a larger --epsilon, or more --most-ids",
    )
}

/// d_p by quasi-Monte-Carlo, with the weights as they are.
fn measure(args: &Args, program: &Program, approximation: &Approximation) -> Measured {
    let (n, d) = (program.length(), program.dim());
    let cost = (n * approximation.units().1 * 4 * d) as f64;
    let points = args.points.unwrap_or((MEASURING / cost).clamp(512.0, 262_144.0) as usize / 16 * 16);
    distance(&|x, y| program.values(x, y), &|x, y| approximation.evaluate(x, y), n * d, args.p, points, args.seed)
}

/// What there is to say.
struct Facts<'a> {
    args: &'a Args,
    text: &'a str,
    approximation: &'a Approximation,
    measured: Measured,
    seconds: f64,
}

impl Facts<'_> {
    fn json(&self) -> Value {
        let a = self.approximation;
        let (size, plain) = (a.size(), a.plain());
        let everywhere = Some(a.bound.everywhere).filter(|x| x.is_finite());
        json!({
            "function": self.text,
            "grid": a.grid.parts().into_iter().max(),
            "parts": a.grid.parts(),
            "edges": a.grid.edges,
            "ramp": a.ramp,
            "ids": size.ids,
            "hidden": size.hidden,
            "quantizer_hidden": size.quantizer,
            "parameters": size.parameters,
            "nonzero": size.nonzero,
            "plain": { "ids": plain.ids, "hidden": plain.hidden, "parameters": plain.parameters },
            "p": self.args.p,
            "bound": a.certified(),
            "arithmetic": if a.floats { "f64" } else { "real" },
            "bound_parts": { "cells": a.bound.cells, "ramps": a.bound.ramps, "rounding": a.bound.rounding },
            "bound_everywhere": everywhere,
            "measured": self.measured.distance,
            "measured_error": self.measured.error,
            "points": self.measured.points,
            "id_margin": a.margin,
            "epsilon": self.args.epsilon,
            "seconds": self.seconds,
        })
    }

    fn text(&self, out: &std::path::Path) -> String {
        let a = self.approximation;
        let row = |name: &str, value: String, note: String| vec![name.to_owned(), value, note];
        let (size, plain) = (a.size(), a.plain());
        let (bound, of) = (a.certified(), &a.bound);
        let arithmetic = if a.floats {
            "in f64, rounding included, whatever the order of the sums"
        } else {
            "in real arithmetic; f64 does not hold these ids"
        };
        let everywhere = if of.everywhere.is_finite() {
            format!("{} everywhere, f = 0 outside the cube", digits(of.everywhere))
        } else {
            "on the cube only".to_owned()
        };
        // Finer cells need wider ramps between them: more ids leave less of a float for each.
        let coarser = if of.ramps > of.cells { "; the ramps weigh most: a coarser grid may do better" } else { "" };
        let rows = vec![
            row("d_p bound", digits(bound), format!("p = {}, {arithmetic}; {everywhere}", self.args.p)),
            row(
                "of which",
                String::new(),
                format!(
                    "cells {}, ramps {}, rounding {:.1e}{coarser}",
                    digits(of.cells),
                    digits(of.ramps),
                    of.rounding
                ),
            ),
            row(
                "measured",
                digits(self.measured.distance),
                format!("+- {:.1e}, {} sequences", self.measured.error, count(self.measured.points)),
            ),
            row("grid", by(&a.grid.parts()), format!("parts per coordinate, ramps {:.1e} wide", a.ramp)),
            row("ids", count(a.order.len()), format!("{:.1} times the error of a computed id apart", a.margin)),
            row(
                "hidden units",
                count(size.hidden),
                format!("and {} in the quantizer; plain: {}", count(size.quantizer), count(plain.hidden)),
            ),
            row("parameters", count(size.parameters), format!("plain: {}", count(plain.parameters))),
            row("seconds", format!("{:.2}", self.seconds), String::new()),
        ];
        let out = out.display();
        table(&rows, &[2])
            + &format!("picture: {out}/figure.svg; next: monolayer predict {out} DATA, monolayer verify {out}\n")
    }
}
