//! The picture of a run: f, g and their difference, the staircase of the quantizer, the ids along the line.

use monolayer::approximate::Approximation;
use monolayer::approximate::expression::Program;
use monolayer::approximate::function::Function as _;

/// Points along a side of a heat map (of models with very many units), and along a curve.
const PIXELS: usize = 72;
const FEW_PIXELS: usize = 24;
const MANY_UNITS: usize = 200_000;
const POINTS: usize = 400;
/// Shades of a heat map.
const SHADES: usize = 48;
/// The side of a panel, and the space around it.
const SIDE: f64 = 220.0;
const SPACE: f64 = 46.0;
const TOP: f64 = 54.0;

pub fn draw(f: &Program, g: &Approximation, text: &str) -> String {
    let mut panels = if f.length() == 2 && f.dim() == 1 { heat_maps(f, g) } else { slices(f, g) };
    panels.push(staircase(g));
    let width = SPACE + panels.len() as f64 * (SIDE + SPACE);
    let line = ids(g, width - 2.0 * SPACE);
    let height = TOP + SIDE + 170.0;
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='sans-serif' \
         font-size='11' fill='#222'>\n<rect width='{width}' height='{height}' fill='#fff'/>\n\
         <text x='{SPACE}' y='22' font-size='14'>{}</text>\n",
        escape(text)
    );
    for (i, panel) in panels.iter().enumerate() {
        let x = SPACE + i as f64 * (SIDE + SPACE);
        svg += &format!("<g transform='translate({x} {TOP})'>\n{panel}</g>\n");
    }
    svg + &format!("<g transform='translate({SPACE} {})'>\n{line}</g>\n</svg>\n", TOP + SIDE + 62.0)
}

/// The first output coordinate of the first token of f and of g.
fn both(f: &Program, g: &Approximation, sequence: &[f64]) -> (f64, f64) {
    let (mut y, mut z) = (vec![0.0; sequence.len()], vec![0.0; sequence.len()]);
    f.values(sequence, &mut y);
    g.evaluate(sequence, &mut z);
    (y[0], z[0])
}

fn heat_maps(f: &Program, g: &Approximation) -> Vec<String> {
    let pixels = if g.units().1 > MANY_UNITS { FEW_PIXELS } else { PIXELS };
    let at = |i: usize| (i as f64 + 0.5) / pixels as f64;
    let points: Vec<(f64, f64)> =
        (0..pixels * pixels).map(|i| both(f, g, &[at(i % pixels), at(pixels - 1 - i / pixels)])).collect();
    let (lo, hi) = range(points.iter().flat_map(|&(y, z)| [y, z]));
    let off: Vec<f64> = points.iter().map(|(y, z)| (y - z).abs()).collect();
    let (_, most) = range(off.iter().copied());
    let of = |values: Vec<f64>, (lo, hi), title: &str, note: String| {
        frame(title, &note, "token 1", "token 2") + &heat(&values, pixels, lo, hi)
    };
    let note = format!("{lo:.3} to {hi:.3}");
    vec![
        of(points.iter().map(|p| p.0).collect(), (lo, hi), "f, output of token 1", note.clone()),
        of(points.iter().map(|p| p.1).collect(), (lo, hi), "g, the model", note),
        of(off, (0.0, most), "|f - g|", format!("0 to {most:.3}")),
    ]
}

/// A heat map of rows from top to bottom: for each shade one path of all its stretches.
fn heat(values: &[f64], pixels: usize, lo: f64, hi: f64) -> String {
    let size = SIDE / pixels as f64;
    let shade = |x: f64| ((x - lo) / (hi - lo).max(1e-300) * (SHADES - 1) as f64).round().clamp(0.0, 47.0) as usize;
    let mut paths = vec![String::new(); SHADES];
    for (y, row) in values.chunks(pixels).enumerate() {
        let mut x = 0;
        for stretch in row.chunk_by(|&a, &b| shade(a) == shade(b)) {
            let (left, top, wide) = (x as f64 * size, y as f64 * size, stretch.len() as f64 * size);
            paths[shade(stretch[0])] += &format!("M{left:.2} {top:.2}h{wide:.2}v{size:.2}h-{wide:.2}z");
            x += stretch.len();
        }
    }
    let path = |(i, d): (usize, &String)| {
        let fill = color(i as f64 / (SHADES - 1) as f64);
        if d.is_empty() {
            String::new()
        } else {
            format!("<path fill='{fill}' stroke='{fill}' stroke-width='.3' d='{d}'/>\n")
        }
    };
    paths.iter().enumerate().map(path).collect()
}

/// Curves along the first coordinate of the first token, the other entries fixed.
fn slices(f: &Program, g: &Approximation) -> Vec<String> {
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
        let (lo, hi) = range(points.iter().flat_map(|&(y, z)| [y, z]));
        let curve = |of: &dyn Fn(&(f64, f64)) -> f64| -> Vec<(f64, f64)> {
            points.iter().enumerate().map(|(i, p)| (at(i), scaled(of(p), lo, hi))).collect()
        };
        let fixed: Vec<String> = sequence(0)[1..].iter().take(5).map(|x| format!("{x:.2}")).collect();
        let title = format!("f (gray), g (red); others {}", fixed.join(", "));
        frame(&title, &format!("{lo:.3} to {hi:.3}"), "coordinate 1 of token 1", "output 1")
            + &polyline(&curve(&|p| p.0), "#999", 3.0)
            + &polyline(&curve(&|p| p.1), "#c22", 1.0)
    };
    // Not on edges of common grids: on a ramp g is anything.
    vec![slice(0.2137), slice(0.4853), slice(0.7911)]
}

/// What the quantizer makes of the first coordinate, from its lowest to its highest value.
fn staircase(g: &Approximation) -> String {
    let block = g.model.transformer.pre_feed_forward.as_ref().expect("a quantizer");
    let places = g.model.positions.as_ref().map_or(1, |p| p.rows);
    let end = 2.0 * places as f64 - 1.0;
    let points: Vec<(f64, f64)> = (0..POINTS)
        .map(|i| {
            let mut token = vec![0.5; g.grid.edges.len()];
            let x = (i as f64 + 0.5) / POINTS as f64;
            token[0] = x * end;
            (x, block.apply_token(&token)[0])
        })
        .collect();
    let (lo, hi) = range(points.iter().map(|p| p.1));
    let points: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x, scaled(y, lo, hi))).collect();
    let note = format!("{} parts, ramps {:.1e} wide", g.grid.edges[0].len() - 1, g.ramp);
    frame("the quantizer F1", &note, "coordinate 1", "code") + &polyline(&points, "#24a", 1.2)
}

/// The ids with the first coordinate of their levels, left to right as they lie.
fn ids(g: &Approximation, width: f64) -> String {
    const MOST: usize = 3000;
    const HEIGHT: f64 = 60.0;
    let d = g.grid.edges.len();
    let (first, last) = (g.ids[0], g.ids[g.ids.len() - 1]);
    let (lo, hi) = range(g.levels.iter().step_by(d).copied());
    let stride = g.ids.len().div_ceil(MOST);
    let mut marks = String::new();
    for (&cell, id) in g.order.iter().zip(&g.ids).step_by(stride) {
        let level = scaled(g.levels[cell as usize * d], lo, hi);
        let x = scaled(*id, first, last) * width;
        marks += &format!(
            "<path stroke='{}' d='M{x:.2} {HEIGHT}V{:.2}'/>",
            color(level),
            HEIGHT - 4.0 - level * (HEIGHT - 4.0)
        );
    }
    let every = if stride > 1 { format!(", every {stride}th shown") } else { String::new() };
    format!(
        "<text y='-8'>{} ids along the line{every}; height and color: level of output 1</text>\n<g stroke-width='.6'>{marks}</g>\n\
         <path stroke='#222' d='M0 {HEIGHT}H{width}'/>\n",
        g.ids.len()
    )
}

fn frame(title: &str, note: &str, x: &str, y: &str) -> String {
    let middle = SIDE / 2.0;
    format!(
        "<text y='-6'>{}</text><text x='{SIDE}' y='{}' text-anchor='end' fill='#666'>{note}</text>\
         <rect width='{SIDE}' height='{SIDE}' fill='#f7f7f7' stroke='#ccc'/>\
         <text x='0' y='{}'>{x}</text><text transform='translate(-6 {middle}) rotate(-90)' text-anchor='middle'>{y}</text>\n",
        escape(title),
        SIDE + 28.0,
        SIDE + 14.0,
    )
}

fn polyline(points: &[(f64, f64)], stroke: &str, width: f64) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{:.2},{:.2}", x * SIDE, SIDE - y * SIDE)).collect();
    format!("<polyline fill='none' stroke='{stroke}' stroke-width='{width}' points='{}'/>\n", points.join(" "))
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)))
}

fn scaled(x: f64, lo: f64, hi: f64) -> f64 {
    if hi > lo { (x - lo) / (hi - lo) } else { 0.5 }
}

/// From dark blue over green to yellow.
fn color(t: f64) -> String {
    const STOPS: [[f64; 3]; 5] =
        [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];
    let at = t.clamp(0.0, 1.0) * 4.0;
    let i = (at as usize).min(3);
    let mix = |k: usize| (STOPS[i][k] + (at - i as f64) * (STOPS[i + 1][k] - STOPS[i][k])).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
