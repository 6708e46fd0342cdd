//! `CoNLL` columns: the token first, its label last, a blank line between sequences.

use super::{Alphabet, Dataset, Labels, Names};
use crate::error::{Error, Result};

pub(super) fn parse(name: &str, content: &[u8]) -> Result<Dataset> {
    let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
    let mut dataset = Dataset::empty(name, Alphabet::Words(vec![]), Labels::None);
    let (mut words, mut labels, mut classes) = (Names::default(), Names::default(), Vec::new());
    let mut first: Option<(usize, usize)> = None;
    let mut latin = Vec::new();
    for (at, line) in content.split(|&b| b == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = std::str::from_utf8(line).map_or_else(
            |_| {
                latin.push(at + 1);
                line.iter().map(|&b| char::from(b)).collect()
            },
            str::to_owned,
        );
        let columns: Vec<&str> = line.split([' ', '\t']).filter(|column| !column.is_empty()).collect();
        if columns.is_empty() || line.starts_with("-DOCSTART-") {
            end_sequence(&mut dataset);
            continue;
        }
        let &mut (line_of_first, count) = first.get_or_insert((at + 1, columns.len()));
        if columns.len() != count {
            let what = format!("{} columns here, but {count} in line {line_of_first}", columns.len());
            return Err(Error::new(format!("{name}:{}", at + 1), what, "give every token line the same columns"));
        }
        dataset.ids.push(words.id(columns[0]));
        dataset.lines.push(u32::try_from(at + 1).unwrap_or(u32::MAX));
        if count > 1 {
            classes.push(labels.id(columns[count - 1]));
        }
    }
    end_sequence(&mut dataset);
    if let Some(line) = latin.first() {
        let count = latin.len();
        dataset
            .warnings
            .push(format!("{name}: {count} lines are not UTF-8 (first: line {line}) and were read as Latin-1"));
    }
    dataset.alphabet = Alphabet::Words(words.names);
    if first.is_some_and(|(_, columns)| columns > 1) {
        dataset.labels = Labels::Classes(classes, labels.names);
    }
    Ok(dataset)
}

fn end_sequence(dataset: &mut Dataset) {
    if dataset.ids.len() > dataset.offsets[dataset.offsets.len() - 1] {
        dataset.offsets.push(dataset.ids.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_sequences_and_separators() {
        let text = b"\xEF\xBB\xBF-DOCSTART- -X- O\r\n\r\na X O\r\nb\tY  P\r\n \t\nc X O\n-DOCSTART-\nd X O";
        let dataset = parse("x", text).unwrap();
        assert_eq!(dataset.offsets, [0, 2, 3, 4]);
        assert_eq!(dataset.lines, [3, 4, 6, 8]);
        assert_eq!(dataset.alphabet, Alphabet::Words(["a", "b", "c", "d"].map(str::to_owned).to_vec()));
        assert_eq!(dataset.labels, Labels::Classes(vec![0, 1, 0, 0], vec!["O".into(), "P".into()]));
    }

    #[test]
    fn ragged_columns_name_the_line() {
        let error = parse("x", b"a O\nb\n").unwrap_err();
        assert_eq!(error.place, "x:2");
        assert_eq!(parse("x", b"a\nb\n").unwrap().labels, Labels::None);
    }

    #[test]
    fn a_line_that_is_not_utf8_is_latin1() {
        let dataset = parse("x", b"caf\xE9 O\ncaf\xC3\xA9 O\n").unwrap();
        assert_eq!(dataset.alphabet, Alphabet::Words(vec!["caf\u{e9}".into()]));
        assert_eq!(dataset.warnings.len(), 1);
    }
}
