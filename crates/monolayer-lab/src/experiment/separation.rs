//! The gap of context ids and the bits it takes, against each constant of Theorem 2: as the theorem guarantees it, and as a
//! searched and certified map has it.

use std::path::Path;

use monolayer::context_map::View;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::context_map::theorem_weights::weights::Scale;
use monolayer::context_map::theorem_weights::{Request, Way, certify};
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::separation::separation;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::data::{Labels, Orderings, Tokens, Written};
use monolayer::paper::attention::Mask;
use monolayer::paper::theorem_two::Guarantee;
use monolayer::{Dataset, Error, Result};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_distr::StandardNormal;
use serde_json::{Value, json};

use super::point::{at, found};
use super::tasks::random;
use super::{At, Experiment, Found, Points, Settings};
use crate::plot::scale::number;
use crate::plot::{Axis, Figure, Point};

/// What is varied: the parameter, what it is, its unit.
const AXES: [(&str, &str, &str); 4] = [
    ("epsilon", "smallest distance of two tokens", "length"),
    ("vocabulary", "size of the vocabulary", "tokens"),
    ("length", "length of sequences", "tokens"),
    ("dimension", "dimension", "coordinates"),
];
/// Where the others stand meanwhile.
const CENTER: [f64; 4] = [0.25, 16.0, 6.0, 4.0];
/// All tokens but the two nearest are at least this far apart where they find room.
const ROOM: f64 = 0.5;

/// The experiment.
pub struct Separation;

impl Experiment for Separation {
    fn name(&self) -> &'static str {
        "separation"
    }

    fn question(&self) -> &'static str {
        "How far apart are context ids, and how many bits does that take?"
    }

    fn parameters(&self, quick: bool) -> Value {
        if quick {
            json!({ "epsilon": [0.01, 0.05, 0.25], "vocabulary": [8, 16, 32], "length": [2, 4, 6], "dimension": [2, 4, 16],
                    "sequences": 60, "candidates": 64 })
        } else {
            json!({ "epsilon": [0.001, 0.003, 0.01, 0.03, 0.1, 0.25], "vocabulary": [8, 16, 32, 64, 128, 256],
                    "length": [2, 3, 4, 6, 8, 12], "dimension": [2, 4, 8, 16, 32, 64], "sequences": 1000, "candidates": 400 })
        }
    }

    fn grid(&self, settings: &Settings) -> Result<Vec<At>> {
        let mut grid = Vec::new();
        for (axis, (name, ..)) in AXES.into_iter().enumerate() {
            for value in settings.list(name)? {
                for seed in &settings.seeds {
                    let mut constants = CENTER;
                    constants[axis] = value;
                    let [epsilon, vocabulary, length, dimension] = constants;
                    if epsilon <= 0.0 || dimension < 2.0 || length < 2.0 || vocabulary < length {
                        let help = "epsilon > 0, at least 2 dimensions, 2 to |V| tokens in a sequence";
                        return Err(Error::setting(format!("{name} = {value} is out of range"), help));
                    }
                    grid.push(at(json!({
                        "varied": name, "epsilon": epsilon, "vocabulary": vocabulary, "length": length,
                        "dimension": dimension, "seed": seed,
                    })));
                }
            }
        }
        Ok(grid)
    }

    fn measure(&self, settings: &Settings, at: &At, _: &Path) -> Result<Found> {
        let tokens = vocabulary(at);
        let d = at.count("dimension");
        let data = sequences(at, &tokens, settings.number("sequences")? as usize);
        let constants = separation(d, &tokens.concat());
        let guarantee = Guarantee::new(tokens.len(), at.count("length"), d, &constants);
        let vectors = TokenVectors::new(&data, &Embedding::Sign(1), &Positions::None, 0, at.seed())?;
        let view = View::new(&data, &vectors, Mask::None);
        let scale = FloatWeights {
            labels_only: false,
            kappa: None,
            w_o: None,
            seed: at.seed(),
            candidates: settings.number("candidates")? as usize,
        };
        let tight = scale.build(&view, None)?;
        // Definition 2 in full: ids of different tokens must be apart, too.
        let log2_gap = tight.certificate.log2_delta().filter(|x| x.is_finite());
        let proved = |scale: Scale| -> Result<Option<f64>> {
            let request = Request { scale, way: Way::Identity, max_bits: 53, seed: at.seed(), candidates: 16 };
            Ok(certify(&view, &request)?.log2_delta().filter(|x| x.is_finite()))
        };
        Ok(found(json!({
            "r_min": constants.r_min, "r_max": constants.r_max, "epsilon": constants.epsilon,
            "contexts": view.contexts.count,
            "bits_theorem": guarantee.and_then(|g| g.bits()),
            "bits_paper": proved(Scale::Paper)?.map(|x| -x),
            "bits_certified": proved(Scale::Certified)?.map(|x| -x),
            "bits_tight": log2_gap.map(|x| (-x).max(1.0)),
        })))
    }

    fn figures(&self, _: &Settings, points: &Points) -> Vec<Figure> {
        let figure = |(name, label, unit): (&str, &str, &str)| {
            let own = points.with("varied", name);
            let axis = Axis::log("bits of the gap", "−log2 of the smallest distance");
            Figure::new(name, format!("Bits of the gap against the {label}"), Axis::log(label, unit), axis)
                .line("what Theorem 2 guarantees (8)", own.curve(name, "bits_theorem"))
                .line("what its weights have, proved", own.curve(name, "bits_paper"))
                .line("certified scale, proved", own.curve(name, "bits_certified"))
                .line("tight scale, searched and proved", own.curve(name, "bits_tight"))
        };
        AXES.into_iter().map(figure).collect()
    }

    fn summary(&self, _: &Settings, points: &Points) -> String {
        let range = |name: &str| {
            let Point { y, band, .. } = Point::over(0.0, &points.all(name));
            let [low, high] = band.unwrap_or([y, y]);
            format!("{} to {}", number(low), number(high))
        };
        let undecided = points.0.len() - points.all("bits_tight").len();
        format!(
            "Theorem 2 guarantees a gap of {} bits over this grid. Its weights have, proved in real arithmetic for the contexts \
             of the data, one of {} bits; weights no larger than the lemmas need {} bits; a searched map {} bits. {}\n\nThe theorem's bits grow like |V|^4, d and 1/epsilon; the tight \
             map's follow the number of contexts, and hardly the geometry.",
            range("bits_theorem"),
            range("bits_paper"),
            range("bits_certified"),
            range("bits_tight"),
            if undecided == 0 {
                "No pair of ids stayed undecided.".to_owned()
            } else {
                format!("At {undecided} points two ids coincide or stay undecided; they are left out.")
            }
        )
    }
}

/// A vocabulary whose two nearest tokens are exactly as far apart as asked, in floats.
fn vocabulary(at: &At) -> Vec<Vec<f64>> {
    let (d, count, epsilon) = (at.count("dimension"), at.count("vocabulary"), at.number("epsilon"));
    let mut rng = random(at.seed(), 3);
    let mut tokens: Vec<Vec<f64>> = Vec::new();
    // In few dimensions a shell holds few tokens: it grows until it holds them.
    let (mut outer, mut tries) = (1.5, 0);
    while tokens.len() + 1 < count {
        let direction: Vec<f64> = (0..d).map(|_| rng.sample(StandardNormal)).collect();
        let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
        let length = rng.random_range(1.0..outer);
        let token: Vec<f64> = direction.iter().map(|x| x / norm * length).collect();
        let room = ROOM.max(2.0 * epsilon);
        if tokens.iter().all(|other| distance(other, &token) >= room) {
            tokens.push(token);
        }
        tries += 1;
        if tries % 1000 == 0 {
            outer *= 1.1;
        }
    }
    let mut near = tokens[0].clone();
    let norm = near.iter().map(|x| x * x).sum::<f64>().sqrt();
    near.iter_mut().for_each(|x| *x *= 1.0 + epsilon / norm);
    tokens.push(near);
    tokens
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt()
}

/// Random sequences of different tokens.
fn sequences(at: &At, tokens: &[Vec<f64>], count: usize) -> Dataset {
    let mut rng = random(at.seed(), 4);
    let length = at.count("length");
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    let mut data = Vec::new();
    for _ in 0..count {
        order.shuffle(&mut rng);
        order[..length].iter().for_each(|&i| data.extend(&tokens[i]));
    }
    Dataset {
        name: "generated".to_owned(),
        tokens: Tokens::Vectors { d: at.count("dimension"), data },
        labels: Labels::None,
        offsets: (0..=count).map(|i| i * length).collect(),
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
        orderings: Orderings::Given,
    }
}
