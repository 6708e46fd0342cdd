//! The picture of a run: f, g and their difference, the staircase of the quantizer, the ids along the line.

use monolayer::approximate::Approximation;
use monolayer::approximate::expression::Program;
use monolayer::approximate::function::Function as _;
use monolayer_lab::plot::ink::Ink;
use monolayer_lab::plot::scene::Anchor;
use monolayer_lab::plot::{Axis, Figure, Point, Scene};

/// Points along a side of a heat map (of models with very many units), and along a curve.
const PIXELS: usize = 48;
const FEW_PIXELS: usize = 24;
const MANY_UNITS: usize = 200_000;
const POINTS: usize = 400;
/// Shades of a heat map: few, so that neighbors are often equal and drawn as one.
const SHADES: usize = 48;
/// A panel, and what is above the panels.
const WIDE: f64 = 300.0;
const TALL: f64 = 290.0;
const TOP: f64 = 34.0;
/// The ids along the line.
const LINE: f64 = 110.0;
const MARGIN: f64 = 16.0;
/// Sizes of text.
const TITLE: f64 = 16.0;
const LABEL: f64 = 12.0;

/// The picture as an SVG file.
pub fn draw(f: &Program, g: &Approximation, text: &str) -> String {
    let mut panels = if f.length() == 2 && f.dim() == 1 { heat_maps(f, g) } else { slices(f, g) };
    panels.push(staircase(g));
    let mut scene = Scene::new(panels.len() as f64 * WIDE, TOP + TALL + LINE);
    scene.text(MARGIN, 22.0, TITLE, Anchor::Start, Ink::Text, text);
    for (i, panel) in panels.into_iter().enumerate() {
        scene.place(panel, i as f64 * WIDE, TOP);
    }
    let width = scene.width;
    scene.place(ids(g, width), 0.0, TOP + TALL);
    scene.svg_file(&format!("The function {text}, the model, and the ids along the line"))
}

/// The first output coordinate of the first token of f and of g.
fn both(f: &Program, g: &Approximation, sequence: &[f64]) -> (f64, f64) {
    let (mut y, mut z) = (vec![0.0; sequence.len()], vec![0.0; sequence.len()]);
    f.values(sequence, &mut y);
    g.evaluate(sequence, &mut z);
    (y[0], z[0])
}

fn heat_maps(f: &Program, g: &Approximation) -> Vec<Scene> {
    let pixels = if g.units().1 > MANY_UNITS { FEW_PIXELS } else { PIXELS };
    let at = |i: usize| (i as f64 + 0.5) / pixels as f64;
    let points: Vec<(f64, f64)> =
        (0..pixels * pixels).map(|i| both(f, g, &[at(i % pixels), at(pixels - 1 - i / pixels)])).collect();
    let range = range(points.iter().flat_map(|&(y, z)| [y, z]));
    let off: Vec<f64> = points.iter().map(|(y, z)| (y - z).abs()).collect();
    let most = off.iter().copied().fold(0.0, f64::max);
    let values = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    vec![
        heat("f, output of token 1", &values(|p| p.0), pixels, range),
        heat("g, the model", &values(|p| p.1), pixels, range),
        heat("|f - g|", &off, pixels, (0.0, most)),
    ]
}

/// A heat map of rows from top to bottom, equal neighbors as one.
fn heat(title: &str, values: &[f64], pixels: usize, (lo, hi): (f64, f64)) -> Scene {
    let mut scene = Scene::new(WIDE, TALL);
    let (left, top, side) = (MARGIN, 2.0 * LABEL, TALL - 4.5 * LABEL);
    scene.text(left, LABEL, LABEL, Anchor::Start, Ink::Text, title);
    let size = side / pixels as f64;
    let shade = |x: f64| (scaled(x, lo, hi) * (SHADES - 1) as f64).round() as usize;
    for (y, row) in values.chunks(pixels).enumerate() {
        let mut x = 0;
        for stretch in row.chunk_by(|&a, &b| shade(a) == shade(b)) {
            let (a, b) = (left + x as f64 * size, left + (x + stretch.len()) as f64 * size);
            let (c, d) = (top + y as f64 * size, top + (y + 1) as f64 * size);
            let ink = Ink::Heat((shade(stretch[0]) * 255 / (SHADES - 1)) as u8);
            scene.area(vec![[a, c], [b, c], [b, d], [a, d]], ink, 1.0);
            x += stretch.len();
        }
    }
    let below = top + side + 1.3 * LABEL;
    scene.text(left, below, LABEL, Anchor::Start, Ink::Muted, "token 1; upward: token 2");
    scene.text(left + side, below, LABEL, Anchor::End, Ink::Muted, format!("{lo:.3} to {hi:.3}"));
    scene
}

/// Curves along the first coordinate of the first token, the other entries fixed.
fn slices(f: &Program, g: &Approximation) -> Vec<Scene> {
    let entries = f.dim() * f.length();
    let slice = |others: f64| {
        let at = |i: usize| (i as f64 + 0.5) / POINTS as f64;
        let sequence = |i: usize| {
            // Not all equal, so that tokens differ.
            let mut x: Vec<f64> = (0..entries).map(|k| (others + 0.618 * (k / f.dim()) as f64).fract()).collect();
            x[0] = at(i);
            x
        };
        let points: Vec<(f64, f64)> = (0..POINTS).map(|i| both(f, g, &sequence(i))).collect();
        let curve = |of: fn(&(f64, f64)) -> f64| points.iter().enumerate().map(move |(i, p)| Point::new(at(i), of(p)));
        let fixed: Vec<String> = sequence(0)[1..].iter().take(5).map(|x| format!("{x:.2}")).collect();
        let (x, y) = (Axis::linear("coordinate 1 of token 1", ""), Axis::linear("output 1", ""));
        let figure = Figure::new("slice", format!("others {}", fixed.join(", ")), x, y);
        figure.line("f", curve(|p| p.0)).line("g", curve(|p| p.1)).scene(WIDE, TALL)
    };
    // Not on edges of common grids: on a ramp g is anything.
    vec![slice(0.2137), slice(0.4853), slice(0.7911)]
}

/// What the quantizer makes of the first coordinate, from its lowest to its highest value.
fn staircase(g: &Approximation) -> Scene {
    let block = g.model.transformer.pre_feed_forward.as_ref().expect("a quantizer");
    let places = g.model.positions.as_ref().map_or(1, |p| p.rows);
    let end = 2.0 * places as f64 - 1.0;
    let output = |x: f64| {
        let mut token = vec![0.5; g.grid.edges.len()];
        token[0] = x;
        block.apply_token(&token)[0]
    };
    // Outputs differ by little of their size: what is drawn counts from the lowest step.
    let at = |i: usize| (i as f64 + 0.5) / POINTS as f64 * end;
    let lowest = output(at(0));
    let point = |i: usize| Point::new(at(i), output(at(i)) - lowest);
    let title = format!("the quantizer: {} parts, ramps {:.1e} wide", g.grid.edges[0].len() - 1, g.ramp);
    let figure = Figure::new(
        "quantizer",
        title,
        Axis::linear("coordinate 1", ""),
        Axis::linear("output above the lowest step", ""),
    );
    figure.line("F1", (0..POINTS).map(point)).scene(WIDE, TALL)
}

/// The ids with the first coordinate of their levels, left to right as they lie.
fn ids(g: &Approximation, width: f64) -> Scene {
    const MOST: usize = 3000;
    const HEIGHT: f64 = 60.0;
    let mut scene = Scene::new(width, LINE);
    let d = g.grid.edges.len();
    let (first, last) = (g.ids[0], g.ids[g.ids.len() - 1]);
    let (lo, hi) = range(g.levels.iter().step_by(d).copied());
    let stride = g.ids.len().div_ceil(MOST);
    let every = if stride > 1 { format!(", every {stride}th shown") } else { String::new() };
    let title = format!("{} ids along the line{every}; height and color: level of output 1", g.ids.len());
    scene.text(MARGIN, LABEL, LABEL, Anchor::Start, Ink::Text, title);
    let bottom = 1.6 * LABEL + HEIGHT;
    for (&cell, id) in g.order.iter().zip(&g.ids).step_by(stride) {
        let level = scaled(g.levels[cell as usize * d], lo, hi);
        let x = MARGIN + scaled(*id, first, last) * (width - 2.0 * MARGIN);
        let top = bottom - 4.0 - level * (HEIGHT - 4.0);
        scene.line(vec![[x, bottom], [x, top]], Ink::Heat((level * 255.0).round() as u8), 0.6, None);
    }
    scene.line(vec![[MARGIN, bottom], [width - MARGIN, bottom]], Ink::Text, 1.0, None);
    scene
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)))
}

fn scaled(x: f64, lo: f64, hi: f64) -> f64 {
    if hi > lo { ((x - lo) / (hi - lo)).clamp(0.0, 1.0) } else { 0.5 }
}
