//! Where everything in a figure goes: title, legend, axes, marks.

use super::heat;
use super::ink::Ink;
use super::scale::{Scale, number};
use super::scene::{Anchor, Scene};
use super::text::text_width;
use super::{Figure, Mark, Series};

/// Sizes of fonts.
pub(super) const TITLE: f64 = 15.0;
pub(super) const LABEL: f64 = 12.5;
pub(super) const SMALL: f64 = 11.5;
/// Room around everything.
pub(super) const MARGIN: f64 = 12.0;
/// Dashes of series, so that color is not needed to tell them apart.
const DASHES: [Option<[f64; 2]>; 4] = [None, Some([7.0, 3.0]), Some([2.5, 2.5]), Some([10.0, 4.0])];
/// Dashes of levels.
const LEVEL: Option<[f64; 2]> = Some([1.5, 3.0]);
/// Lines with more points than this have no markers.
const MARKED: usize = 60;

/// The rectangle in which marks are drawn, and its scales.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    /// Left, top, right, bottom.
    pub(super) area: [f64; 4],
    pub(super) x: Scale,
    pub(super) y: Scale,
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> [f64; 2] {
        let [left, top, right, bottom] = self.area;
        // A little beyond the edge is enough for lines that leave the picture.
        let inside = |share: f64| share.clamp(-0.02, 1.02);
        [left + inside(self.x.at(x)) * (right - left), bottom - inside(self.y.at(y)) * (bottom - top)]
    }
}

/// The figure, drawn.
pub(super) fn draw(figure: &Figure, width: f64, height: f64) -> Scene {
    plan(figure, width, height).0
}

/// The figure, drawn, and where its marks are; heat maps have a frame of their own.
pub(super) fn plan(figure: &Figure, width: f64, height: f64) -> (Scene, Option<Frame>) {
    let mut scene = Scene::new(width, height);
    let mut top = MARGIN;
    for line in wrapped(&figure.title, TITLE, width - 2.0 * MARGIN) {
        top += TITLE;
        scene.text(MARGIN, top, TITLE, Anchor::Start, Ink::Text, line);
        top += 4.0;
    }
    if let Some(Mark::Heat(heat)) = figure.marks.iter().find(|mark| matches!(mark, Mark::Heat(_))) {
        heat::draw(&mut scene, figure, heat, top);
        return (scene, None);
    }
    top = legend(&mut scene, figure, top + 6.0) + 8.0;
    let frame = frame(&mut scene, figure, top);
    marks(&mut scene, figure, &frame);
    (scene, Some(frame))
}

/// Text in lines of at most this width.
fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// How a mark looks: its color and dashes. Levels count along with series.
fn look(i: usize, mark: &Mark) -> (Ink, Option<[f64; 2]>) {
    let ink = Ink::Series(i);
    if matches!(mark, Mark::Level { .. }) { (ink, LEVEL) } else { (ink, DASHES[i % DASHES.len()]) }
}

/// The names of the marks, in as many rows as it takes; where it ends.
fn legend(scene: &mut Scene, figure: &Figure, top: f64) -> f64 {
    const SAMPLE: f64 = 22.0;
    const ROW: f64 = 17.0;
    let (mut x, mut y) = (MARGIN, top);
    for (i, mark) in figure.marks.iter().enumerate() {
        let name = match mark {
            Mark::Line(series) | Mark::Points(series) => series.name.clone(),
            Mark::Level { name, at } => format!("{name}: {}", number(*at)),
            Mark::Heat(_) => continue,
        };
        let wide = SAMPLE + 6.0 + text_width(&name, SMALL) + 16.0;
        if x > MARGIN && x + wide - 16.0 > scene.width - MARGIN {
            (x, y) = (MARGIN, y + ROW);
        }
        let (ink, dash) = look(i, mark);
        let middle = y + ROW / 2.0;
        if !matches!(mark, Mark::Points(_)) {
            scene.line(vec![[x, middle], [x + SAMPLE, middle]], ink, 2.0, dash);
        }
        if !matches!(mark, Mark::Level { .. }) {
            marker(scene, i, [x + SAMPLE / 2.0, middle], ink);
        }
        scene.text(x + SAMPLE + 6.0, middle + 4.0, SMALL, Anchor::Start, Ink::Text, name);
        x += wide;
    }
    y + if figure.marks.is_empty() { 0.0 } else { ROW }
}

/// Axes with ticks, labels and grid.
fn frame(scene: &mut Scene, figure: &Figure, top: f64) -> Frame {
    let points = |f: fn(&Series) -> Vec<f64>| {
        figure.marks.iter().flat_map(move |mark| match mark {
            Mark::Line(series) | Mark::Points(series) => f(series),
            Mark::Level { .. } | Mark::Heat(_) => Vec::new(),
        })
    };
    let levels =
        figure.marks.iter().filter_map(|mark| if let Mark::Level { at, .. } = mark { Some(*at) } else { None });
    let x = Scale::new(&figure.x, points(|s| s.points.iter().map(|p| p.x).collect()));
    let ys = points(|s| {
        s.points.iter().flat_map(|p| [Some(p.y), p.band.map(|b| b[0]), p.band.map(|b| b[1])]).flatten().collect()
    });
    let y = Scale::new(&figure.y, ys.chain(levels));

    // The label of the vertical axis stands above it, where it can be read without turning the head.
    let top = top + LABEL;
    scene.text(MARGIN, top, LABEL, Anchor::Start, Ink::Muted, figure.y.text());
    let (top, bottom) = (top + 9.0, scene.height - MARGIN - 2.0 * LABEL - 10.0);
    let rows = y.ticks(((bottom - top) / 42.0).clamp(2.0, 8.0) as usize);
    let left = MARGIN + rows.iter().map(|(_, text)| text_width(text, SMALL)).fold(0.0, f64::max) + 8.0;
    let right = scene.width - MARGIN - 6.0;
    let frame = Frame { area: [left, top, right, bottom], x, y };
    for (value, text) in rows {
        let [_, at] = frame.at(0.0, value);
        scene.line(vec![[left, at], [right, at]], Ink::Grid, 1.0, None);
        scene.text(left - 7.0, at + 4.0, SMALL, Anchor::End, Ink::Muted, text);
    }
    for (value, text) in frame.x.ticks(((right - left) / 80.0).clamp(2.0, 9.0) as usize) {
        let [at, _] = frame.at(value, 1.0);
        scene.line(vec![[at, bottom], [at, bottom + 4.0]], Ink::Muted, 1.0, None);
        scene.text(at, bottom + 6.0 + SMALL, SMALL, Anchor::Middle, Ink::Muted, text);
    }
    scene.line(vec![[left, bottom], [right, bottom]], Ink::Muted, 1.0, None);
    scene.text(right, scene.height - MARGIN + 2.0, LABEL, Anchor::End, Ink::Muted, figure.x.text());
    frame
}

fn marks(scene: &mut Scene, figure: &Figure, frame: &Frame) {
    for (i, mark) in figure.marks.iter().enumerate() {
        let (ink, dash) = look(i, mark);
        match mark {
            Mark::Level { at, .. } => {
                let [_, y] = frame.at(0.0, *at);
                scene.line(vec![[frame.area[0], y], [frame.area[2], y]], ink, 1.8, dash);
            }
            Mark::Line(series) => line(scene, frame, series, i, ink, dash),
            Mark::Points(series) => points(scene, frame, series, i, ink),
            Mark::Heat(_) => {}
        }
    }
}

fn line(scene: &mut Scene, frame: &Frame, series: &Series, i: usize, ink: Ink, dash: Option<[f64; 2]>) {
    let end = |k: usize| {
        let banded = series.points.iter().filter_map(move |p| Some((p.x, p.band?[k])));
        banded.map(|(x, y)| frame.at(x, y)).collect::<Vec<_>>()
    };
    let (low, mut high) = (end(0), end(1));
    high.reverse();
    if low.len() > 1 {
        scene.area([low, high].concat(), ink, 0.18);
    }
    scene.line(series.points.iter().map(|p| frame.at(p.x, p.y)).collect(), ink, 2.0, dash);
    if series.points.len() <= MARKED {
        points(scene, frame, series, i, ink);
    }
}

fn points(scene: &mut Scene, frame: &Frame, series: &Series, i: usize, ink: Ink) {
    for point in &series.points {
        let at = frame.at(point.x, point.y);
        if frame.x.shows(point.x) && frame.y.shows(point.y) {
            marker(scene, i, at, ink);
        } else {
            // At the foot of a logarithmic axis stands what it cannot show: 0.
            scene.disc(at, 4.0, ink, true);
        }
    }
}

/// The marker of series `i`: disc, square, triangle, diamond in turn.
fn marker(scene: &mut Scene, i: usize, [x, y]: [f64; 2], ink: Ink) {
    const R: f64 = 3.4;
    let corners: &[[f64; 2]] = match i % 4 {
        0 => return scene.disc([x, y], R, ink, false),
        1 => &[[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
        2 => &[[0.0, -1.2], [1.1, 0.9], [-1.1, 0.9]],
        _ => &[[0.0, -1.3], [1.3, 0.0], [0.0, 1.3], [-1.3, 0.0]],
    };
    scene.area(corners.iter().map(|[dx, dy]| [x + R * dx, y + R * dy]).collect(), ink, 1.0);
}
