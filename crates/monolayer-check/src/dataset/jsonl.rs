//! JSON lines: an object with "tokens" and "labels" per line.

use super::{Alphabet, Dataset, Labels, Names, Points};
use crate::error::{Error, Result};
use crate::read::json::{self, Json};

/// What one column of the file (its tokens, or its labels) holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Absent,
    Words,
    Integers,
    Vectors(usize),
}

#[derive(Default)]
struct Column {
    kind: Option<Kind>,
    names: Names,
    points: Points,
    ids: Vec<u32>,
}

pub(super) fn parse(name: &str, content: &[u8]) -> Result<Dataset> {
    let mut dataset = Dataset::empty(name, Alphabet::Words(vec![]), Labels::None);
    let (mut tokens, mut labels) = (Column::default(), Column::default());
    for (at, line) in content.split(|&b| b == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let place = || format!("{name}:{}", at + 1);
        let fail = |what: String| {
            Error::new(
                place(),
                what,
                "write {\"tokens\": [...], \"labels\": [...]} on each line, all lines of one kind",
            )
        };
        let line = json::parse(line).map_err(fail)?;
        let items = line.get("tokens").list().ok_or_else(|| fail("no list of tokens".into()))?;
        if items.is_empty() {
            return Err(fail("the sequence is empty".into()));
        }
        tokens.extend(items, false).map_err(|e| fail(format!("tokens: {e}")))?;
        match line.get("labels") {
            Json::Null => labels.set(Kind::Absent).map_err(|e| fail(format!("labels: {e}")))?,
            Json::List(list) if list.len() == items.len() => {
                labels.extend(list, true).map_err(|e| fail(format!("labels: {e}")))?;
            }
            Json::List(list) => return Err(fail(format!("{} labels for {} tokens", list.len(), items.len()))),
            _ => return Err(fail("labels is not a list".into())),
        }
        dataset.lines.extend(items.iter().map(|_| u32::try_from(at + 1).unwrap_or(u32::MAX)));
        dataset.offsets.push(dataset.lines.len());
    }
    dataset.ids = tokens.ids;
    dataset.alphabet = match tokens.kind {
        Some(Kind::Vectors(d)) => Alphabet::Vectors { d, data: tokens.points.data },
        _ => Alphabet::Words(tokens.names.names),
    };
    dataset.labels = match labels.kind {
        Some(Kind::Vectors(d)) => Labels::Vectors(labels.ids, d, labels.points.data),
        Some(Kind::Words | Kind::Integers) => Labels::Classes(labels.ids, labels.names.names),
        _ => Labels::None,
    };
    Ok(dataset)
}

impl Column {
    fn set(&mut self, kind: Kind) -> std::result::Result<(), String> {
        match self.kind.replace(kind) {
            Some(before) if before != kind => Err(format!("{kind} here, {before} before")),
            _ => Ok(()),
        }
    }

    fn extend(&mut self, items: &[Json], integers: bool) -> std::result::Result<(), String> {
        for item in items {
            let id = match item {
                Json::Text(word) => {
                    self.set(Kind::Words)?;
                    self.names.id(word)
                }
                Json::Integer(value) if integers => {
                    self.set(Kind::Integers)?;
                    self.names.id(&value.to_string())
                }
                Json::List(entries) => {
                    let point: Option<Vec<f64>> = entries.iter().map(Json::number).collect();
                    let point = point.ok_or("a vector has an entry that is not a number")?;
                    if point.is_empty() || point.iter().any(|x| !x.is_finite()) {
                        return Err("a vector is empty or has an entry that is not finite".into());
                    }
                    self.set(Kind::Vectors(point.len()))?;
                    self.points.id(&point)
                }
                _ => return Err("an item is of no known kind".into()),
            };
            self.ids.push(id);
        }
        Ok(())
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Absent => f.write_str("none"),
            Kind::Words => f.write_str("strings"),
            Kind::Integers => f.write_str("integers"),
            Kind::Vectors(d) => write!(f, "vectors of length {d}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_integer_labels() {
        let dataset =
            parse("x", b"{\"tokens\": [\"a\", \"b\"], \"labels\": [3, 4]}\n\n{\"tokens\":[\"a\"],\"labels\":[4]}")
                .unwrap();
        assert_eq!(dataset.ids, [0, 1, 0]);
        assert_eq!(dataset.lines, [1, 1, 3]);
        assert_eq!(dataset.labels, Labels::Classes(vec![0, 1, 1], vec!["3".into(), "4".into()]));
    }

    #[test]
    fn minus_zero_is_zero() {
        let dataset = parse("x", b"{\"tokens\": [[0.0, 1], [-0.0, 1]]}").unwrap();
        assert_eq!(dataset.ids, [0, 0]);
        assert_eq!(dataset.labels, Labels::None);
    }

    #[test]
    fn mixed_lines_are_errors() {
        for bad in [
            "{\"tokens\": [\"a\", [1]]}",
            "{\"tokens\": []}",
            "{\"tokens\": [\"a\"], \"labels\": [1, 2]}",
            "{\"tokens\": [\"a\"], \"labels\": [1]}\n{\"tokens\": [\"a\"]}",
            "{\"tokens\": [\"a\"], \"labels\": [1.5]}",
            "{\"tokens\": [[1], [1, 2]]}",
            "{\"tokens\": [[1e999]]}",
        ] {
            assert!(parse("x", bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
