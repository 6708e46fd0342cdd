//! Softmax at growing inverse temperature: two sequences that no hardmax layer tells apart (Theorem 1) fade into each other.

use std::path::Path;

use monolayer::paper::boltzmann::{difference, g};
use monolayer::{Error, Result};
use serde_json::{Value, json};

use super::point::{at, found};
use super::{At, Experiment, Found, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure, Point};

/// Same minimum, same maximum, same mean: all that a hardmax head can return.
const A: [f64; 4] = [1.0, 2.0, 5.0, 6.0];
const B: [f64; 4] = [1.0, 3.0, 4.0, 6.0];
/// Bits of the exact curve.
const BITS: usize = 256;

/// The experiment.
pub struct Hardmax;

impl Experiment for Hardmax {
    fn name(&self) -> &'static str {
        "hardmax"
    }

    fn question(&self) -> &'static str {
        "How does softmax attention go blind as it approaches hardmax?"
    }

    fn parameters(&self, quick: bool) -> Value {
        // The query tokens are those that both sequences have.
        let step = if quick { 2 } else { 1 };
        let beta: Vec<f64> = (-16..=14).step_by(step).map(|e| f64::from(e) / 2.0).map(f64::exp2).collect();
        json!({ "inverse_temperature": beta, "query": [1, 6] })
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        for query in settings.list("query")? {
            for beta in settings.list("inverse_temperature")? {
                if !(1e-6..=1e6).contains(&beta) {
                    return Err(Error::setting(format!("an inverse temperature of {beta}"), "write 1e-6 to 1e6"));
                }
                grid.push(at(json!({ "query": query, "inverse_temperature": beta })));
            }
        }
        Ok(grid)
    }

    fn measure(&self, _: &Settings, at: &At, _: &Path) -> Result<Found> {
        let y = at.number("inverse_temperature") * at.number("query");
        let scores = |p: &[f64; 4]| p.map(|x| y * x);
        // boltz(y p) = y g(y), so the difference of the operators is y times that of the ids.
        let exact = difference(&scores(&A), &scores(&B), BITS)?.log2_abs().hi() - y.abs().log2();
        let double = (g(&A, &y)? - g(&B, &y)?).abs();
        let narrow = |p: &[f64; 4]| p.map(|x| x as f32);
        let single = (g(&narrow(&A), &(y as f32))? - g(&narrow(&B), &(y as f32))?).abs();
        Ok(found(json!({ "log2_gap": exact, "gap_f64": double, "gap_f32": single })))
    }

    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        let figure = |query: f64| {
            let own = points.where_number("query", query);
            let exact = own.curve("inverse_temperature", "log2_gap").into_iter().map(|p| Point::new(p.x, p.y.exp2()));
            let name = format!("query-{query}");
            let title = format!("Ids of (1, 2, 5, 6) and (1, 3, 4, 6) at token {query}");
            let x = Axis::log("inverse temperature", "per unit of score");
            Figure::new(&name, title, x, Axis::log("gap of the two ids", "units of the tokens"))
                .line("real arithmetic", exact.filter(|p| p.y > 1e-60))
                .line("f64", own.curve("inverse_temperature", "gap_f64"))
                .line("f32", own.curve("inverse_temperature", "gap_f32"))
                .caption(
                    "Open circles at the foot are gaps of exactly 0. To the left lies the mean, to the right hardmax: both \
                     are the same for the two sequences.",
                )
        };
        points.values("query").into_iter().map(figure).collect()
    }

    fn summary(&self, _: &Settings, points: &Points) -> String {
        let mut text =
            "The sequences (1, 2, 5, 6) and (1, 3, 4, 6) share their minimum, maximum and mean, so a hardmax head \
                        returns the same for both, whatever its weights.\n\n"
                .to_owned();
        for query in points.values("query") {
            let own = points.where_number("query", query);
            let (best, gap) = own
                .curve("inverse_temperature", "log2_gap")
                .into_iter()
                .map(|p| (p.x, p.y))
                .fold((f64::NAN, f64::NEG_INFINITY), |best, p| if p.1 > best.1 { p } else { best });
            let blind = |name: &str| {
                let zero = own.curve("inverse_temperature", name).into_iter().filter(|p| p.x > best && p.y == 0.0);
                zero.map(|p| p.x).fold(f64::INFINITY, f64::min)
            };
            let from = |x: f64| if x.is_finite() { format!("from {}", number(x)) } else { "nowhere here".to_owned() };
            text += &format!(
                "- At token {query} the gap is widest, {}, at inverse temperature {}; f32 sees none {}, f64 {}.\n",
                number(gap.exp2()),
                number(best),
                from(blind("gap_f32")),
                from(blind("gap_f64")),
            );
        }
        text + "\nIn real arithmetic the gap is never 0 at a finite temperature: it falls like e^(-beta t), t the token that asks."
    }
}
