//! The distance between theory and practice: the bits of gaps at every scale, on a logarithmic axis.

use std::fmt::Write as _;
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

/// Colors of Okabe and Ito, told apart by color-blind eyes; shapes differ as well.
const SERIES: [(&str, &str, Shape); 4] = [
    ("Theorem 2 promises (eq. 8)", "#D55E00", Shape::Square),
    ("its weights, proved", "#E69F00", Shape::Circle),
    ("smallest weights the lemmas allow, proved", "#0072B2", Shape::Triangle),
    ("tight map, proved", "#009E73", Shape::Diamond),
];

#[derive(Clone, Copy)]
enum Shape {
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

/// Writes the picture.
pub fn write(file: &Path, rows: &[Row]) -> monolayer::Result<()> {
    monolayer::fs::replace_file(file, svg(rows).as_bytes())
}

/// The bits that a number needs to hold a gap.
fn bits(log2: Option<f64>) -> Option<f64> {
    log2.filter(|log2| log2.is_finite()).map(|log2| (-log2).max(1.0))
}

fn svg(rows: &[Row]) -> String {
    let values = |row: &Row| [row.theorem, row.paper, row.certified, row.tight].map(bits);
    let largest = rows.iter().flat_map(values).flatten().fold(1e3, f64::max);
    // Powers of ten, three at a time.
    let decades = (largest.log10() / 3.0).ceil() * 3.0;
    let x = |bits: f64| LEFT + (WIDTH - LEFT - RIGHT) * bits.log10() / decades;
    let bottom = TOP + STEP * rows.len() as f64;
    let height = bottom + 76.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"24\" y=\"32\" font-size=\"18\" font-weight=\"bold\">How many bits it takes to tell two contexts apart</text>\n"
    );
    legend(&mut out);
    for power in (0..=decades as i32).step_by(3) {
        let at = x(10_f64.powi(power));
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">10</text><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\">{power}</text>",
            at + 6.0,
            bottom + 22.0,
            at + 7.0,
            bottom + 16.0
        );
    }
    let marks = [(53.0, "double precision"), (8e12, "1 TB")];
    for (bits, name) in marks.into_iter().filter(|mark| mark.0 < largest) {
        let at = x(bits);
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{bottom}\" stroke=\"#777\" stroke-dasharray=\"4 4\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#555\">{name}</text>",
            TOP - 4.0,
            TOP - 9.0
        );
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    let _ = writeln!(
        out,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">bits of one number that holds the smallest gap (logarithmic)</text>",
        bottom + 52.0
    );
    for (i, row) in rows.iter().enumerate() {
        one_row(&mut out, row, values(row), TOP + STEP * (i as f64 + 0.5), &x);
    }
    out + "</svg>\n"
}

/// The names of the series, two in a line.
fn legend(out: &mut String) {
    for (i, (name, color, shape)) in SERIES.into_iter().enumerate() {
        let (left, y) = (32.0 + 360.0 * (i % 2) as f64, 60.0 + 24.0 * (i / 2) as f64);
        let _ = writeln!(
            out,
            "{}<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            marker(shape, color, left, y),
            left + 14.0,
            y + 4.5
        );
    }
}

/// A dataset: its name, a line from the smallest to the largest number, and a marker with its number for each scale.
fn one_row(out: &mut String, row: &Row, values: [Option<f64>; 4], y: f64, x: &impl Fn(f64) -> f64) {
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        LEFT - 18.0,
        y + 4.5,
        escaped(&row.name)
    );
    let known = || values.into_iter().flatten();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    if most > 0.0 {
        let (a, b) = (x(least), x(most));
        let _ = writeln!(
            out,
            "<line x1=\"{a:.1}\" x2=\"{b:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#bbb\" stroke-width=\"2\"/>"
        );
    }
    for (i, (bits, (_, color, shape))) in values.into_iter().zip(SERIES).enumerate() {
        let Some(bits) = bits else { continue };
        // Numbers stand above and below in turn: neighbors may be close.
        let label = if i % 2 == 0 { y - 12.0 } else { y + 22.0 };
        let _ = writeln!(
            out,
            "{}<text x=\"{:.1}\" y=\"{label:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#333\">{}</text>",
            marker(shape, color, x(bits), y),
            x(bits),
            short(bits)
        );
    }
}

fn marker(shape: Shape, color: &str, x: f64, y: f64) -> String {
    let r = 6.5;
    let points = |list: &[(f64, f64)]| {
        let all: Vec<String> = list.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r)).collect();
        format!("<polygon points=\"{}\" fill=\"{color}\" stroke=\"#fff\"/>", all.join(" "))
    };
    match shape {
        Shape::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" fill=\"{color}\" stroke=\"#fff\"/>"),
        Shape::Square => points(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        Shape::Triangle => points(&[(0.0, -1.1), (1.1, 0.9), (-1.1, 0.9)]),
        Shape::Diamond => points(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
    }
}

/// A number of bits in few characters.
fn short(bits: f64) -> String {
    if bits < 99_999.5 { crate::output::count(bits.round() as usize) } else { format!("{bits:.1e}") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
