//! Scenes as PNG, on white paper, with a font of their own: the same bytes on every machine.

use std::sync::LazyLock;

use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::ink::Ink;
use super::scene::{Anchor, Scene, Shape};

/// Pixels of the picture for each one of the scene.
const DENSITY: f32 = 2.0;

static FONT: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(dejavu::sans::regular(), 0).expect("a font that came with the program"));

impl Scene {
    /// The bytes of a PNG file.
    pub fn png(&self) -> Vec<u8> {
        let pixels = |x: f64| (x as f32 * DENSITY).ceil().max(1.0) as u32;
        let mut canvas = Pixmap::new(pixels(self.width), pixels(self.height)).expect("a size above 0");
        canvas.fill(color(Ink::Paper, 1.0));
        self.shapes.iter().for_each(|shape| draw(&mut canvas, shape));
        canvas.encode_png().expect("memory takes everything")
    }
}

fn draw(canvas: &mut Pixmap, shape: &Shape) {
    match shape {
        Shape::Line { points, ink, width, dash } => {
            let dash = dash.and_then(|[on, off]| StrokeDash::new(vec![on as f32, off as f32], 0.0));
            stroke(canvas, through(points, false), *ink, *width as f32, dash);
        }
        Shape::Area { points, ink, opacity } => fill(canvas, through(points, true), *ink, *opacity as f32),
        Shape::Disc { at: [x, y], radius, ink, hollow } => {
            let circle = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32);
            if *hollow {
                fill(canvas, circle.clone(), Ink::Paper, 1.0);
                stroke(canvas, circle, *ink, 1.5, None);
            } else {
                fill(canvas, circle, *ink, 1.0);
            }
        }
        Shape::Text { at: [x, y], size, anchor, ink, text } => {
            let width = text_width(text, *size);
            let start = match anchor {
                Anchor::Start => *x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            fill(canvas, outline(text, start as f32, *y as f32, *size as f32), *ink, 1.0);
        }
    }
}

fn color(ink: Ink, opacity: f32) -> Color {
    let [_, r, g, b] = ink.color(false).to_be_bytes();
    let mut color = Color::from_rgba8(r, g, b, 255);
    color.set_alpha(opacity);
    color
}

fn paint(ink: Ink, opacity: f32) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(color(ink, opacity));
    paint
}

fn fill(canvas: &mut Pixmap, path: Option<Path>, ink: Ink, opacity: f32) {
    let scale = Transform::from_scale(DENSITY, DENSITY);
    if let Some(path) = path {
        canvas.fill_path(&path, &paint(ink, opacity), FillRule::Winding, scale, None);
    }
}

fn stroke(canvas: &mut Pixmap, path: Option<Path>, ink: Ink, width: f32, dash: Option<StrokeDash>) {
    let scale = Transform::from_scale(DENSITY, DENSITY);
    let stroke = Stroke { width, dash, line_join: LineJoin::Round, line_cap: LineCap::Butt, ..Stroke::default() };
    if let Some(path) = path {
        canvas.stroke_path(&path, &paint(ink, 1.0), &stroke, scale, None);
    }
}

fn through(points: &[[f64; 2]], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, [x, y]) in points.iter().enumerate() {
        if i == 0 { path.move_to(*x as f32, *y as f32) } else { path.line_to(*x as f32, *y as f32) }
    }
    if closed {
        path.close();
    }
    path.finish()
}

/// How wide a text is in the font of pictures: near enough in others, too.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let face = &*FONT;
    let advance = |c| face.glyph_hor_advance(glyph(c)).map_or(0.0, f64::from);
    text.chars().map(advance).sum::<f64>() * size / f64::from(face.units_per_em())
}

fn glyph(c: char) -> GlyphId {
    FONT.glyph_index(c).unwrap_or(GlyphId(0))
}

/// The outline of a text that starts at (x, y).
fn outline(text: &str, x: f32, y: f32, size: f32) -> Option<Path> {
    let face = &*FONT;
    let scale = size / f32::from(face.units_per_em());
    let mut pen = Pen { path: PathBuilder::new(), x, y, scale };
    for c in text.chars() {
        face.outline_glyph(glyph(c), &mut pen);
        pen.x += face.glyph_hor_advance(glyph(c)).map_or(0.0, f32::from) * scale;
    }
    pen.path.finish()
}

/// Draws glyphs, whose vertical axis points up, at a place.
struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
