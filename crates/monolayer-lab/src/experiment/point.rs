//! Grid points, and what was found there.

use serde_json::{Map, Value, json};

use crate::plot::Point;

/// A grid point: named coordinates.
#[derive(Debug, Clone, PartialEq)]
pub struct At(pub Map<String, Value>);

/// What was found at a grid point: named values.
#[derive(Debug, Clone, PartialEq)]
pub struct Found(pub Map<String, Value>);

/// A grid point from a JSON object.
pub fn at(value: Value) -> At {
    At(object(value))
}

/// Findings from a JSON object.
pub fn found(value: Value) -> Found {
    Found(object(value))
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

impl At {
    /// A coordinate that is a number; not a number where it is none.
    pub fn number(&self, name: &str) -> f64 {
        self.0.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// A coordinate that is a whole number.
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// A coordinate that is a name.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.number("seed") as u64
    }
}

/// Grid points with what was found there, in the order of the grid.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Points(pub Vec<(At, Found)>);

impl Points {
    /// Those whose coordinate has a name.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        Self(self.0.iter().filter(|(at, _)| at.text(name) == value).cloned().collect())
    }

    /// Those whose coordinate is a number.
    #[must_use]
    pub fn where_number(&self, name: &str, value: f64) -> Self {
        Self(self.0.iter().filter(|(at, _)| at.number(name) == value).cloned().collect())
    }

    /// The different names of a coordinate, in order of appearance.
    pub fn names(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (at, _) in &self.0 {
            if !names.iter().any(|known| known == at.text(name)) {
                names.push(at.text(name).to_owned());
            }
        }
        names
    }

    /// The different values of a coordinate, in increasing order.
    pub fn values(&self, name: &str) -> Vec<f64> {
        let mut values: Vec<f64> = self.0.iter().map(|(at, _)| at.number(name)).filter(|x| x.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// All numbers found under a name.
    pub fn all(&self, name: &str) -> Vec<f64> {
        self.0.iter().filter_map(|(_, found)| found.0.get(name).and_then(Value::as_f64)).collect()
    }

    /// A finding against a coordinate: the median at each of its values, with the range where seeds differ.
    pub fn curve(&self, along: &str, name: &str) -> Vec<Point> {
        self.values(along).into_iter().map(|x| Point::over(x, &self.where_number(along, x).all(name))).collect()
    }
}

/// A line of points.jsonl.
pub(super) fn line(at: &At, found: &Found) -> String {
    format!("{}\n", json!({ "at": at.0, "found": found.0 }))
}

/// A line of points.jsonl, read; nothing where it is no such line.
pub(super) fn read(line: &str) -> Option<(At, Found)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let part = |name: &str| value.get(name).and_then(Value::as_object).cloned();
    Some((At(part("at")?), Found(part("found")?)))
}
