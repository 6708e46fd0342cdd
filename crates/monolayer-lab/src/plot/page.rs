//! Figures as parts of a page, with what a script needs to show values under the pointer.

use serde_json::{Value, json};

use super::draw::{Frame, plan};
use super::svg::escape;
use super::{Figure, Mark};

impl Figure {
    /// An SVG element of so many pixels whose `data-plot` holds its scales and values.
    pub fn svg_element(&self, width: f64, height: f64) -> String {
        let (scene, frame) = plan(self, width, height);
        let alt = format!("{}: {} against {}", self.title, self.y.text(), self.x.text());
        let Some(frame) = frame else { return scene.svg_element(&alt, "class=\"plot\"") };
        let data = escape(&self.values(&frame).to_string());
        scene.svg_element(&alt, &format!("class=\"plot\" tabindex=\"0\" data-plot=\"{data}\""))
    }

    fn values(&self, frame: &Frame) -> Value {
        let series = self.marks.iter().enumerate().filter_map(|(i, mark)| match mark {
            Mark::Line(series) | Mark::Points(series) => {
                let points: Vec<Value> = series
                    .points
                    .iter()
                    .map(|p| p.band.map_or_else(|| json!([p.x, p.y]), |[low, high]| json!([p.x, p.y, low, high])))
                    .collect();
                Some(json!({ "name": series.name, "color": i, "points": points }))
            }
            Mark::Level { .. } | Mark::Heat(_) => None,
        });
        let axis =
            |axis: &super::Axis, ends| json!({ "label": axis.label, "unit": axis.unit, "log": axis.log, "ends": ends });
        json!({
            "area": frame.area,
            "x": axis(&self.x, frame.x.ends()),
            "y": axis(&self.y, frame.y.ends()),
            "series": series.collect::<Vec<Value>>(),
        })
    }
}
