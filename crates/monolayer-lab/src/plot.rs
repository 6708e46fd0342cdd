//! Figures: what to draw, as plain data that a run directory keeps, a page shows and a file holds as SVG.
//!
//! - [`scale`]: scales, ticks, and numbers for people.
//! - [`scene`]: a figure as a few kinds of shapes.
//! - [`svg`]: shapes as a file.

mod draw;
mod heat;
pub mod ink;
mod page;
pub mod scale;
pub mod scene;
pub mod svg;
mod text;

use serde::{Deserialize, Serialize};

pub use self::scale::Axis;
pub use self::scene::Scene;

/// A figure: marks in one coordinate system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The stem of its files.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// What to see in it, in a sentence or two.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first lowest.
    pub marks: Vec<Mark>,
}

/// A part of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Points joined by a line, in order, with a band where they have one.
    Line(Series),
    /// Points alone.
    Points(Series),
    /// A horizontal line at a value.
    Level {
        /// What it is.
        name: String,
        /// Where it is.
        at: f64,
    },
    /// A value for each cell of a grid; the axes then have one place per column and row.
    Heat(Heat),
}

/// Points of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// What they are.
    pub name: String,
    /// The points.
    pub points: Vec<Point>,
}

/// A point, with a band around it or without.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The band, from and to: the range over seeds, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<[f64; 2]>,
}

/// Values on a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// What the values are, with their unit.
    pub name: String,
    /// The columns.
    pub x: Vec<f64>,
    /// The rows, from below.
    pub y: Vec<f64>,
    /// The values of the first and the last color; those of the smallest and the largest value where they are not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// A value per row and column; none where nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
}

impl Figure {
    /// A figure with nothing in it.
    pub fn new(name: &str, title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { name: name.to_owned(), title: title.into(), caption: String::new(), x, y, marks: Vec::new() }
    }

    /// With a caption.
    #[must_use]
    pub fn caption(mut self, text: impl Into<String>) -> Self {
        self.caption = text.into();
        self
    }

    /// With a line; points that are not finite are left out, and a line without any is not drawn.
    #[must_use]
    pub fn line(self, name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        let series = Series::new(name, points);
        if series.points.is_empty() { self } else { self.mark(Mark::Line(series)) }
    }

    /// With points that are not joined; those that are not finite are left out.
    #[must_use]
    pub fn points(self, name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        let series = Series::new(name, points);
        if series.points.is_empty() { self } else { self.mark(Mark::Points(series)) }
    }

    /// With a horizontal line.
    #[must_use]
    pub fn level(self, name: impl Into<String>, at: f64) -> Self {
        self.mark(Mark::Level { name: name.into(), at })
    }

    /// With a heat map.
    #[must_use]
    pub fn heat(self, heat: Heat) -> Self {
        self.mark(Mark::Heat(heat))
    }

    fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    /// The figure drawn in a rectangle of so many pixels.
    pub fn scene(&self, width: f64, height: f64) -> Scene {
        draw::draw(self, width, height)
    }
}

impl Series {
    /// The finite ones of some points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        let points = points.into_iter().filter(|p| p.x.is_finite() && p.y.is_finite());
        Self { name: name.into(), points: points.collect() }
    }
}

impl Point {
    /// A point without a band.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, band: None }
    }

    /// The median of some values at `x`, with their range as a band where there are several; not a number for none.
    pub fn over(x: f64, values: &[f64]) -> Self {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else { return Self::new(x, f64::NAN) };
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Self { x, y: median, band: (low < high).then_some([low, high]) }
    }
}

/// Figures side by side in `columns`, under one title.
pub fn sheet(title: &str, figures: &[Figure], columns: usize, width: f64, height: f64) -> Scene {
    const TITLE: f64 = 34.0;
    let rows = figures.len().div_ceil(columns);
    let mut scene = Scene::new(width * columns as f64, TITLE + height * rows as f64);
    scene.text(16.0, 22.0, 16.0, scene::Anchor::Start, ink::Ink::Text, title);
    for (i, figure) in figures.iter().enumerate() {
        let (row, column) = (i / columns, i % columns);
        scene.place(figure.scene(width, height), width * column as f64, TITLE + height * row as f64);
    }
    scene
}
