//! The distance between theory and practice: the bits of gaps at every scale, on a logarithmic axis.

use std::path::Path;

use anyhow::Result;
use monolayer::Dataset;
use monolayer::context_map::View;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::context_map::theorem_weights::weights::Scale;
use monolayer::context_map::theorem_weights::{Request, Way, certify, toys};
use monolayer::data::embedding::Embedding;
use monolayer::data::positions::Positions;
use monolayer::data::token_vectors::TokenVectors;
use monolayer::paper::attention::Mask;
use monolayer_lab::plot::Scene;
use monolayer_lab::plot::ink::Ink;
use monolayer_lab::plot::scene::Anchor;

/// The binary logarithms of one dataset's gaps.
pub struct Row {
    pub name: String,
    /// (8).
    pub theorem: Option<f64>,
    /// The paper's weights, proved.
    pub paper: Option<f64>,
    /// The smallest weights that the lemmas allow, proved.
    pub certified: Option<f64>,
    /// The tight map, proved.
    pub tight: Option<f64>,
}

/// The rows of the three toys.
pub fn toys(request: Request) -> Result<Vec<Row>> {
    [toys::four(), toys::five(), toys::nine()].iter().map(|data| toy(data, request)).collect()
}

fn toy(data: &Dataset, request: Request) -> Result<Row> {
    let vectors = TokenVectors::new(data, &Embedding::Sign(1), &Positions::None, 0, request.seed)?;
    let view = View::new(data, &vectors, Mask::None);
    let at = |scale| certify(&view, &Request { scale, way: Way::Identity, ..request });
    let paper = at(Scale::Paper)?;
    let tight = FloatWeights { labels_only: false, kappa: None, w_o: None, seed: request.seed, candidates: 40 };
    Ok(Row {
        name: data.name.clone(),
        theorem: Some(paper.theorem.log2_delta),
        paper: paper.log2_delta(),
        certified: at(Scale::Certified)?.log2_delta(),
        tight: tight.build(&view, None)?.certificate.log2_delta(),
    })
}

/// The scales, by shape as well as by color.
const SERIES: [(&str, Marker); 4] = [
    ("Theorem 2 promises (eq. 8)", Marker::Square),
    ("its weights, proved", Marker::Circle),
    ("smallest weights the lemmas allow, proved", Marker::Triangle),
    ("tight map, proved", Marker::Diamond),
];

#[derive(Clone, Copy)]
enum Marker {
    Square,
    Circle,
    Triangle,
    Diamond,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 36.0;
const TOP: f64 = 132.0;
const STEP: f64 = 62.0;
/// Sizes of text.
const TITLE: f64 = 18.0;
const LABEL: f64 = 13.0;
const SMALL: f64 = 11.0;

/// Writes the picture.
pub fn write(file: &Path, rows: &[Row]) -> monolayer::Result<()> {
    let alt = "Bits that hold the smallest gap of context ids, by dataset and by scale of the weights";
    monolayer::fs::replace_file(file, draw(rows).svg_file(alt).as_bytes())
}

/// The bits that a number needs to hold a gap.
fn bits(log2: Option<f64>) -> Option<f64> {
    log2.filter(|log2| log2.is_finite()).map(|log2| (-log2).max(1.0))
}

fn draw(rows: &[Row]) -> Scene {
    let values = |row: &Row| [row.theorem, row.paper, row.certified, row.tight].map(bits);
    let largest = rows.iter().flat_map(values).flatten().fold(1e3, f64::max);
    // Powers of ten, three at a time.
    let decades = (largest.log10() / 3.0).ceil() * 3.0;
    let x = |bits: f64| LEFT + (WIDTH - LEFT - RIGHT) * bits.log10() / decades;
    let bottom = TOP + STEP * rows.len() as f64;
    let mut scene = Scene::new(WIDTH, bottom + 76.0);
    let title = "How many bits it takes to tell two contexts apart";
    scene.text(24.0, 32.0, TITLE, Anchor::Start, Ink::Text, title);
    legend(&mut scene);
    for power in (0..=decades as i32).step_by(3) {
        let at = x(10_f64.powi(power));
        scene.line(vec![[at, TOP], [at, bottom]], Ink::Grid, 1.0, None);
        scene.text(at, bottom + 22.0, LABEL, Anchor::Middle, Ink::Muted, format!("1e{power}"));
    }
    let marks = [(53.0, "double precision"), (8e12, "1 TB")];
    for (bits, name) in marks.into_iter().filter(|mark| mark.0 < largest) {
        let at = x(bits);
        scene.line(vec![[at, TOP - 4.0], [at, bottom]], Ink::Muted, 1.0, Some([4.0, 4.0]));
        scene.text(at, TOP - 9.0, SMALL, Anchor::Middle, Ink::Muted, name);
    }
    let below = "bits of one number that holds the smallest gap (logarithmic)";
    scene.text(f64::midpoint(LEFT, WIDTH - RIGHT), bottom + 52.0, LABEL, Anchor::Middle, Ink::Text, below);
    for (i, row) in rows.iter().enumerate() {
        one_row(&mut scene, row, values(row), TOP + STEP * (i as f64 + 0.5), &x);
    }
    scene
}

/// The names of the series, two in a line.
fn legend(scene: &mut Scene) {
    for (i, (name, shape)) in SERIES.into_iter().enumerate() {
        let (left, y) = (32.0 + 360.0 * (i % 2) as f64, 60.0 + 24.0 * (i / 2) as f64);
        marker(scene, shape, i, left, y);
        scene.text(left + 14.0, y + 4.5, LABEL, Anchor::Start, Ink::Text, name);
    }
}

/// A dataset: its name, a line from the smallest to the largest number, and a marker with its number for each scale.
fn one_row(scene: &mut Scene, row: &Row, values: [Option<f64>; 4], y: f64, x: &impl Fn(f64) -> f64) {
    scene.text(LEFT - 18.0, y + 4.5, LABEL, Anchor::End, Ink::Text, row.name.clone());
    let known = || values.into_iter().flatten();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    if most > 0.0 {
        scene.line(vec![[x(least), y], [x(most), y]], Ink::Muted, 2.0, None);
    }
    for (i, (bits, (_, shape))) in values.into_iter().zip(SERIES).enumerate() {
        let Some(bits) = bits else { continue };
        marker(scene, shape, i, x(bits), y);
        // Numbers stand above and below in turn: neighbors may be close.
        let label = if i % 2 == 0 { y - 12.0 } else { y + 22.0 };
        scene.text(x(bits), label, SMALL, Anchor::Middle, Ink::Text, short(bits));
    }
}

fn marker(scene: &mut Scene, shape: Marker, series: usize, x: f64, y: f64) {
    const RADIUS: f64 = 6.5;
    let corners: &[(f64, f64)] = match shape {
        Marker::Circle => return scene.disc([x, y], RADIUS, Ink::Series(series), false),
        Marker::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Marker::Triangle => &[(0.0, -1.1), (1.1, 0.9), (-1.1, 0.9)],
        Marker::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
    };
    let points = corners.iter().map(|(dx, dy)| [x + dx * RADIUS, y + dy * RADIUS]).collect();
    scene.area(points, Ink::Series(series), 1.0);
}

/// A number of bits in few characters.
fn short(bits: f64) -> String {
    if bits < 99_999.5 { crate::output::count(bits.round() as usize) } else { format!("{bits:.1e}") }
}
