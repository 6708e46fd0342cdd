//! Scenes as SVG: files that follow the reader's light or dark setting, and parts of a page that follow the page's.

use std::fmt::Write as _;

use super::ink::{Ink, variables};
use super::scene::{Anchor, Scene, Shape};

/// The fonts of every text.
pub const FONTS: &str = "system-ui, 'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif";

impl Scene {
    /// An SVG file of its own. `alt` says what it shows.
    pub fn svg_file(&self, alt: &str) -> String {
        let mut out = self.open(alt, &format!("font-family=\"{FONTS}\""));
        let _ = writeln!(
            out,
            "<style>svg{{{}}}@media(prefers-color-scheme:dark){{svg{{{}}}}}</style>",
            variables(false),
            variables(true)
        );
        let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" {}/>", fill(Ink::Paper));
        out + &self.body() + "</svg>\n"
    }

    /// An SVG element for a page that defines the colors; `attributes` are added to it as they are.
    pub fn svg_element(&self, alt: &str, attributes: &str) -> String {
        self.open(alt, attributes) + &self.body() + "</svg>"
    }

    fn open(&self, alt: &str, attributes: &str) -> String {
        let alt = escape(alt);
        let size = format!("{} {}", short(self.width), short(self.height));
        let (w, h) = size.split_once(' ').unwrap_or_default();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
             aria-label=\"{alt}\" {attributes}>\n"
        )
    }

    fn body(&self) -> String {
        self.shapes.iter().fold(String::new(), |mut out, shape| {
            write_shape(&mut out, shape).expect("strings take everything");
            out
        })
    }
}

fn write_shape(out: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Line { points, ink, width, dash } => {
            let dash = dash.map_or(String::new(), |[on, off]| format!(" stroke-dasharray=\"{on} {off}\""));
            let (points, stroke) = (list(points), stroke(*ink));
            writeln!(
                out,
                "<polyline points=\"{points}\" fill=\"none\" {stroke} stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash}/>"
            )
        }
        Shape::Area { points, ink, opacity } => {
            writeln!(out, "<polygon points=\"{}\" {} fill-opacity=\"{opacity}\"/>", list(points), fill(*ink))
        }
        Shape::Disc { at: [x, y], radius, ink, hollow } => {
            let (x, y) = (short(*x), short(*y));
            let rim = || paint(&[("fill", Ink::Paper), ("stroke", *ink)]) + " stroke-width=\"1.5\"";
            let paint = if *hollow { rim() } else { fill(*ink) };
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {paint}/>")
        }
        Shape::Text { at: [x, y], size, anchor, ink, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (x, y, paint) = (short(*x), short(*y), fill(*ink));
            let text = escape(text);
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" {paint}>{text}</text>"
            )
        }
    }
}

/// Colors as a style, because variables work only there; the plain attributes are for programs without variables.
fn paint(parts: &[(&str, Ink)]) -> String {
    let plain = |(property, ink): &(&str, Ink)| format!("{property}=\"{}\"", ink.css(false));
    let plain = parts.iter().map(plain).collect::<Vec<_>>().join(" ");
    let variable = |(property, ink): &(&str, Ink)| Some(format!("{property}:var({})", ink.variable()?));
    let style = parts.iter().filter_map(variable).collect::<Vec<_>>().join(";");
    if style.is_empty() { plain } else { format!("{plain} style=\"{style}\"") }
}

fn fill(ink: Ink) -> String {
    paint(&[("fill", ink)])
}

fn stroke(ink: Ink) -> String {
    paint(&[("stroke", ink)])
}

fn list(points: &[[f64; 2]]) -> String {
    let point = |[x, y]: &[f64; 2]| format!("{},{}", short(*x), short(*y));
    points.iter().map(point).collect::<Vec<_>>().join(" ")
}

/// A coordinate to a hundredth of a pixel.
fn short(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Text as XML has it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Figure, Heat, Point};

    fn figure() -> Figure {
        let at = |x: f64, y: f64| Point { x, y, band: Some([y / 2.0, y * 2.0]) };
        Figure::new("f", "A <b> & \"c\"", Axis::log("gap", "ids' deviations"), Axis::linear("share", "tokens"))
            .line("one", [at(1.0, 0.1), at(10.0, 0.2), at(0.0, 0.3), at(f64::NAN, 1.0)])
            .points("</text><script>", [Point::new(3.0, 0.4)])
            .level("the paper", 0.9872)
    }

    #[test]
    fn text_is_escaped_and_axes_are_named() {
        for text in [figure().scene(500.0, 320.0).svg_file("<i>"), figure().svg_element(380.0, 300.0)] {
            assert!(!text.contains("<script>") && !text.contains("<b>") && !text.contains("<i>"), "{text}");
            assert!(text.contains("gap (ids&#39; deviations)") && text.contains("share (tokens)"), "{text}");
            assert!(text.contains("the paper: 0.9872") && !text.contains("NaN"), "{text}");
        }
    }

    #[test]
    fn heat_maps_show_their_values() {
        let heat = Heat {
            name: "share (tokens)".to_owned(),
            x: vec![1.0, 2.0],
            y: vec![4.0, 8.0],
            range: None,
            values: vec![vec![Some(0.25), None], vec![Some(0.5), Some(1.0)]],
        };
        let figure = Figure::new("h", "Heat", Axis::linear("N", "sequences"), Axis::linear("n", "tokens")).heat(heat);
        let text = figure.svg_element(400.0, 300.0);
        assert!(text.contains(">0.25<") && text.contains("N (sequences)") && text.contains("n (tokens)"), "{text}");
    }
}
