//! A drawing as a few kinds of shapes, which SVG knows.

use super::ink::Ink;

/// Shapes in a rectangle, in pixels from its upper left corner.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// The shapes, the first lowest.
    pub shapes: Vec<Shape>,
}

/// A shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A line through points.
    Line {
        /// The points.
        points: Vec<[f64; 2]>,
        /// Its color.
        ink: Ink,
        /// Its width.
        width: f64,
        /// Lengths of dashes and of gaps, or nothing for a solid line.
        dash: Option<[f64; 2]>,
    },
    /// A filled polygon.
    Area {
        /// The corners.
        points: Vec<[f64; 2]>,
        /// Its color.
        ink: Ink,
        /// How opaque it is.
        opacity: f64,
    },
    /// A disc, or a ring in the paper's color.
    Disc {
        /// The center.
        at: [f64; 2],
        /// The radius.
        radius: f64,
        /// Its color.
        ink: Ink,
        /// Whether only its rim has the color.
        hollow: bool,
    },
    /// A line of text.
    Text {
        /// Where the baseline starts, or where its middle or end is.
        at: [f64; 2],
        /// The size of the font.
        size: f64,
        /// Which part of it is there.
        anchor: Anchor,
        /// Its color.
        ink: Ink,
        /// The text.
        text: String,
    },
}

/// Which part of a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The start.
    Start,
    /// The middle.
    Middle,
    /// The end.
    End,
}

impl Scene {
    /// An empty scene.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    /// Adds a line.
    pub fn line(&mut self, points: Vec<[f64; 2]>, ink: Ink, width: f64, dash: Option<[f64; 2]>) {
        self.shapes.push(Shape::Line { points, ink, width, dash });
    }

    /// Adds a polygon.
    pub fn area(&mut self, points: Vec<[f64; 2]>, ink: Ink, opacity: f64) {
        self.shapes.push(Shape::Area { points, ink, opacity });
    }

    /// Adds a disc, or a ring.
    pub fn disc(&mut self, at: [f64; 2], radius: f64, ink: Ink, hollow: bool) {
        self.shapes.push(Shape::Disc { at, radius, ink, hollow });
    }

    /// Adds a text.
    pub fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, ink: Ink, text: impl Into<String>) {
        self.shapes.push(Shape::Text { at: [x, y], size, anchor, ink, text: text.into() });
    }

    /// Adds another scene, moved.
    pub fn place(&mut self, other: Scene, dx: f64, dy: f64) {
        let moved = |[x, y]: [f64; 2]| [x + dx, y + dy];
        self.shapes.extend(other.shapes.into_iter().map(|mut shape| {
            match &mut shape {
                Shape::Line { points, .. } | Shape::Area { points, .. } => {
                    points.iter_mut().for_each(|point| *point = moved(*point));
                }
                Shape::Disc { at, .. } | Shape::Text { at, .. } => *at = moved(*at),
            }
            shape
        }));
    }
}
