//! CoNLL columns: a token per line, its word in the first column, its label in the last, a blank line between
//! sequences.
//!
//! Columns are split on spaces and tabs, and on nothing else. Every token line has as many columns as the first one;
//! with one column there are no labels. The label `_` may be anything. A line that starts with `-DOCSTART-` separates sequences as a blank line does.
//! A line that is not UTF-8 is read as Latin-1, with a warning.

use std::borrow::Cow;
use std::io::Read;

use super::lines::Lines;
use super::{Dataset, Labels, Orderings, Tokens, Vocabulary, Written};
use crate::data::free_label::FREE_NAME;
use crate::error::{Error, Location, Result};

/// Reads CoNLL columns; `name` is what errors call the file.
pub(super) fn read(name: &str, reader: impl Read) -> Result<Dataset> {
    let mut lines = Lines::new(name, reader);
    let mut columns = Columns { offsets: vec![0], ..Columns::default() };
    while let Some((number, line)) = lines.advance()? {
        if line.starts_with(b"-DOCSTART-") || line.iter().all(|&byte| is_blank(byte)) {
            columns.end_sequence();
        } else {
            columns.token(name, number, line)?;
        }
    }
    columns.end_sequence();
    columns.finish(name)
}

/// Whether a byte separates columns. A `&str` may be split there, because both are ASCII.
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// What has been read so far.
#[derive(Default)]
struct Columns {
    words: Vec<u32>,
    vocabulary: Vocabulary,
    classes: Vec<Option<u32>>,
    names: Vocabulary,
    offsets: Vec<usize>,
    lines: Vec<u32>,
    /// How many columns the first token line has.
    width: usize,
    latin1: Counted,
    carriage_returns: Counted,
}

/// How often something was seen, and the first line where it was.
#[derive(Default)]
struct Counted {
    lines: usize,
    first: u32,
}

impl Counted {
    fn add(&mut self, number: u32) {
        if self.lines == 0 {
            self.first = number;
        }
        self.lines += 1;
    }

    fn warning(&self, what: &str) -> Option<String> {
        let noun = if self.lines == 1 { "line" } else { "lines" };
        (self.lines > 0).then(|| format!("{} {noun} {what}; the first is line {}", self.lines, self.first))
    }
}

impl Columns {
    fn end_sequence(&mut self) {
        if self.offsets.last() != Some(&self.words.len()) {
            self.offsets.push(self.words.len());
        }
    }

    fn token(&mut self, name: &str, number: u32, line: &[u8]) -> Result<()> {
        let text = if let Ok(text) = std::str::from_utf8(line) {
            Cow::Borrowed(text)
        } else {
            self.latin1.add(number);
            Cow::Owned(line.iter().map(|&byte| char::from(byte)).collect())
        };
        if line.contains(&b'\r') {
            self.carriage_returns.add(number);
        }

        let mut columns = text.split([' ', '\t']).filter(|column| !column.is_empty());
        let word = columns.next().expect("a line that is not blank has a column");
        let (mut width, mut label) = (1, word);
        for column in columns {
            (width, label) = (width + 1, column);
        }
        if self.lines.is_empty() {
            refuse_json(name, number, line)?;
            self.width = width;
        } else if width != self.width {
            return Err(self.uneven(name, number, line, width));
        }

        self.words.push(self.vocabulary.add(word));
        if width > 1 {
            self.classes.push((label != FREE_NAME).then(|| self.names.add(label)));
        }
        self.lines.push(number);
        Ok(())
    }

    /// The error of a line whose number of columns is not that of the first token line.
    fn uneven(&self, name: &str, number: u32, line: &[u8], width: usize) -> Error {
        let plural = if width == 1 { "" } else { "s" };
        let what = format!("{width} column{plural} where line {} has {}", self.lines[0], self.width);
        let help = if width < self.width { "is the label missing?" } else { "is there a blank inside a column?" };
        let start = self.offsets[self.offsets.len() - 1];
        let location = Location {
            file: name.to_owned(),
            line: Some(number as usize),
            column: Some(end_of_column(line, self.width) + 1),
            sequence: Some(self.offsets.len()),
            token: Some(self.words.len() - start + 1),
        };
        Error::data(location, what, help)
    }

    fn finish(self, name: &str) -> Result<Dataset> {
        if self.words.is_empty() {
            let help = "give a file with a token per line and a blank line between sequences";
            return Err(Error::data(Location::file(name), "an empty file: it has no tokens", help));
        }
        let warnings = [
            self.latin1.warning("not UTF-8, read as Latin-1"),
            self.carriage_returns.warning("with a carriage return inside: lines end with LF or CRLF"),
        ];
        Ok(Dataset {
            name: name.to_owned(),
            tokens: Tokens::Words { word_ids: self.words, vocabulary: self.vocabulary },
            labels: match self.width {
                1 => Labels::None,
                _ => Labels::Classes { label_ids: self.classes, names: self.names },
            },
            offsets: self.offsets,
            lines: self.lines,
            warnings: warnings.into_iter().flatten().collect(),
            written: Written::default(),
            orderings: Orderings::Given,
        })
    }
}

/// The byte just after column `count` of a line, or just after its last column when it has fewer.
fn end_of_column(line: &[u8], count: usize) -> usize {
    let ends = (1..=line.len()).filter(|&i| !is_blank(line[i - 1]) && line.get(i).is_none_or(|&byte| is_blank(byte)));
    ends.take(count).last().unwrap_or(0)
}

/// JSON lines would pass for columns: their mistake would be seen late, or never.
fn refuse_json(name: &str, number: u32, line: &[u8]) -> Result<()> {
    if !line.starts_with(b"{\"tokens\"") && !line.starts_with(b"{\"labels\"") {
        return Ok(());
    }
    let location = Location { line: Some(number as usize), ..Location::file(name) };
    Err(Error::data(
        location,
        "JSON where CoNLL columns were expected",
        "end its name in .jsonl, or give the format jsonl",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(data: &Dataset) -> Vec<Vec<&str>> {
        data.ranges().map(|range| range.map(|t| data.word(t).unwrap()).collect()).collect()
    }

    fn labels(data: &Dataset) -> Vec<&str> {
        (0..data.tokens()).map(|t| data.label(t).unwrap()).collect()
    }

    #[test]
    fn first_column_is_the_word_and_last_the_label() {
        let text = b"-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects\tVBZ  I-VP \t O \n\n \t\n EU NNP I-NP O";
        let data = read("f", text.as_slice()).unwrap();
        assert_eq!(words(&data), [vec!["EU", "rejects"], vec!["EU"]]);
        assert_eq!(labels(&data), ["I-ORG", "O", "O"]);
        assert_eq!(data.lines, [3, 4, 7]);
        assert_eq!(data.offsets, [0, 2, 3]);
        assert_eq!(data.warnings, [""; 0]);
        assert_eq!(data.location(2).to_string(), "f:7 (sequence 2, token 1)");
    }

    #[test]
    fn one_column_means_no_labels() {
        let data = read("f", b"a\nb\n\na\n".as_slice()).unwrap();
        assert_eq!(words(&data), [vec!["a", "b"], vec!["a"]]);
        assert_eq!(data.labels, Labels::None);
    }

    #[test]
    fn document_starts_separate_without_blank_lines() {
        let data = read("f", b"a X\n-DOCSTART-\nb X\n-DOCSTART- -X- O O\n".as_slice()).unwrap();
        assert_eq!(words(&data), [vec!["a"], vec!["b"]]);
    }

    #[test]
    fn byte_order_mark_and_carriage_returns_change_nothing() {
        let plain = read("f", b"a X\nb Y\n\nc X\n".as_slice()).unwrap();
        let windows = read("f", b"\xEF\xBB\xBFa X\r\nb Y\r\n\r\nc X\r\n".as_slice()).unwrap();
        assert_eq!(windows, plain);
    }

    #[test]
    fn only_spaces_and_tabs_split() {
        let data = read("f", "a\u{a0}b\u{2003}c\u{b}d\u{85} X\n".as_bytes()).unwrap();
        assert_eq!(words(&data), [["a\u{a0}b\u{2003}c\u{b}d\u{85}"]]);
    }

    #[test]
    fn lines_that_are_not_utf8_are_latin1_and_counted() {
        let data = read("f", b"caf\xC3\xA9 X\n\xC3\xA9t\xE9 Y\n\xA0 Y\n".as_slice()).unwrap();
        assert_eq!(words(&data), [["café", "Ã©té", "\u{a0}"]]);
        assert_eq!(data.warnings, ["2 lines not UTF-8, read as Latin-1; the first is line 2"]);
    }

    #[test]
    fn carriage_returns_inside_lines_are_kept_with_a_warning() {
        let data = read("f", b"a\rb X\n".as_slice()).unwrap();
        assert_eq!(words(&data), [["a\rb"]]);
        assert_eq!(
            data.warnings,
            ["1 line with a carriage return inside: lines end with LF or CRLF; the first is line 1"]
        );
    }

    #[test]
    fn errors_say_where_and_what_would_help() {
        let cases: [(&[u8], &str); 9] = [
            (b"", "f: an empty file: it has no tokens; give a file"),
            (b"-DOCSTART- O\n\n \t \n\r\n", "f: an empty file: it has no tokens; give a file"),
            (
                b"\n\na B c D\nb B D\n",
                "f:4:6 (sequence 1, token 2): 3 columns where line 3 has 4; is the label missing?",
            ),
            (b"a X\n\nb  \n", "f:3:2 (sequence 2, token 1): 1 column where line 1 has 2; is the label missing?"),
            (
                b"a X\nb c Y\n",
                "f:2:4 (sequence 1, token 2): 3 columns where line 1 has 2; is there a blank inside a column?",
            ),
            (b"a\n\nb\tX\n", "f:3:2 (sequence 2, token 1): 2 columns where line 1 has 1; is there"),
            (b"a X\nb\0 Y\n", "f:2:2: a NUL byte; "),
            (b"{\"tokens\": [\"a\"]}\n", "f:1: JSON where CoNLL columns were expected; end its name in .jsonl"),
            (b"a X\n\xE9\xE9 Y Z\n", "f:2:5 (sequence 1, token 2): 3 columns"),
        ];
        for (text, expected) in cases {
            let error = read("f", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
