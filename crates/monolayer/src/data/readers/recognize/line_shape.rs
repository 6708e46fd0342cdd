//! Text in lines: columns split at blanks, at tabs or at commas, or running text.

use std::collections::{HashMap, HashSet};

use super::super::DataOptions;
use super::super::table::cell_split::{CellSplit, records};
use super::column_doubts::is_quoted;
use super::{FileStart, NameKind, name_kind, tag_like};
use crate::data::Format;
use crate::error::{Error, Location, Result};

/// How rows of columns are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnStyle {
    pub(crate) split: CellSplit,
    /// Whether lines that start with `#` and are not as wide as others are comments.
    pub(crate) comments: bool,
    /// How many columns rows have.
    pub(crate) width: usize,
    /// Whether this is CoNLL-U: ten columns, the first one counting the words of a sentence.
    pub(crate) universal: bool,
}

/// A line at the beginning of a file that is neither blank nor the start of a document.
struct StartLine<'a> {
    text: std::borrow::Cow<'a, str>,
    /// Whether it starts with `#` where a sequence starts: a comment, or a token.
    hash: bool,
}

/// What the lines at the beginning of a file look like.
pub(crate) struct LineShape<'a> {
    rows: Vec<StartLine<'a>>,
    gaps: bool,
}

impl<'a> LineShape<'a> {
    pub(crate) fn of(file_start: &'a FileStart) -> Self {
        let (mut rows, mut gaps, mut start) = (Vec::new(), false, true);
        for line in file_start.lines() {
            if line.starts_with(b"-DOCSTART-") || line.trim_ascii().is_empty() {
                gaps |= !rows.is_empty();
                start = true;
                continue;
            }
            let hash = start && line.starts_with(b"#");
            rows.push(StartLine { text: String::from_utf8_lossy(line), hash });
            start = hash;
        }
        Self { rows, gaps }
    }

    fn plain(&self) -> impl Iterator<Item = &StartLine<'a>> {
        self.rows.iter().filter(|row| !row.hash)
    }

    /// The commonest number of cells of a row, and in how many rows it is found.
    fn width(&self, split: CellSplit) -> (usize, usize) {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        let widths = self.plain().map(|row| split.cells(&row.text).len());
        widths.for_each(|width| *counts.entry(width).or_default() += 1);
        let best = counts.into_iter().max_by_key(|&(width, count)| (count, width));
        best.unwrap_or_else(|| (self.rows.first().map_or(0, |row| split.cells(&row.text).len()), self.rows.len()))
    }

    /// The cells of all rows that are no comments.
    pub(crate) fn cells(&self, split: CellSplit) -> Vec<Vec<String>> {
        let width = self.width(split).0;
        let token = |row: &&StartLine| !row.hash || split.cells(&row.text).len() == width;
        self.rows.iter().filter(token).map(|row| split.cells(&row.text)).collect()
    }

    /// How columns are to be read.
    pub(crate) fn style(&self, split: CellSplit) -> ColumnStyle {
        let width = self.width(split).0;
        let comments = self.rows.iter().any(|row| row.hash && split.cells(&row.text).len() != width);
        let cells = self.cells(split);
        let universal = width == 10 && split != CellSplit::Blanks && counting(&cells) && self.gaps_or_few(&cells);
        ColumnStyle { split, comments, width, universal }
    }

    fn gaps_or_few(&self, cells: &[Vec<String>]) -> bool {
        self.gaps || cells.len() < 200
    }

    /// Whether all rows have one number of cells between tabs, more than one.
    pub(crate) fn tabbed(&self) -> bool {
        let (width, count) = self.width(CellSplit::Tabs);
        width > 1 && count == self.plain().count()
    }

    /// The split of CoNLL columns: at tabs where all rows have ten cells then, as CoNLL-U has.
    pub(crate) fn conll_split(&self) -> CellSplit {
        let tabs = self.style(CellSplit::Tabs);
        if tabs.universal { CellSplit::Tabs } else { CellSplit::Blanks }
    }

    /// Whether the first column, or the last, holds decimals in all rows: neither words nor labels.
    pub(crate) fn decimals(&self) -> Option<&'static str> {
        let cells = self.cells(CellSplit::Blanks);
        let decimal = |cell: Option<&String>| {
            cell.is_some_and(|cell| cell.contains('.') && cell.parse::<f64>().is_ok_and(f64::is_finite))
        };
        if cells.len() < 2 || cells[0].len() < 2 {
            return None;
        }
        let first = cells.iter().all(|row| decimal(row.first()));
        let last = cells.iter().all(|row| decimal(row.last()));
        if first { Some("first") } else { last.then_some("last") }
    }

    /// Whether the first column holds no words: it counts the words of a sentence, or the sentences, or names the document.
    pub(crate) fn counts(&self) -> bool {
        let cells = self.cells(CellSplit::Blanks);
        let documents = self.rows.iter().any(|row| row.text.starts_with("#begin document"));
        let same = cells.len() > 1 && cells[0].len() > 2 && cells.iter().all(|row| row[0] == cells[0][0]);
        cells.first().is_some_and(|row| row.len() > 1) && (documents || same || counting(&cells) || numbered(&cells))
    }
}

/// Whether the first cells count from 1, again and again; `1-2` and `1.1` stand between, as in CoNLL-U.
fn counting(rows: &[Vec<String>]) -> bool {
    let (mut last, mut longest) = (0, 0);
    let follows = |row: &Vec<String>| {
        let Some(first) = row.first() else { return false };
        let between = |mark| first.split_once(mark).is_some_and(|(a, b)| is_number(a) && is_number(b));
        if between('-') || between('.') {
            return true;
        }
        let Ok(number) = first.parse::<usize>() else { return false };
        let fits = number == 1 || number == last + 1;
        (last, longest) = (number, longest.max(number));
        fits
    };
    !rows.is_empty() && rows.iter().all(follows) && longest > 1
}

/// Whether the first cells number sentences: whole numbers from 0 or 1, each as the one before it or one more, some of them
/// several times.
fn numbered(rows: &[Vec<String>]) -> bool {
    let numbers: Option<Vec<i64>> = rows.iter().map(|row| row.first()?.parse().ok()).collect();
    let Some(numbers) = numbers.filter(|numbers| matches!(numbers.first(), Some(0 | 1))) else { return false };
    let steps: Vec<i64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.iter().all(|step| (0..=1).contains(step)) && steps.contains(&0) && steps.contains(&1) && rows[0].len() > 2
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a first row is certainly a header: it names a column of words (or of sentences) and one of labels, and what it calls
/// them is no value of theirs.
pub(crate) fn is_header<'a>(first: &[String], others: impl IntoIterator<Item = &'a Vec<String>>) -> bool {
    let kinds: Vec<Option<NameKind>> = first.iter().map(|name| name_kind(name)).collect();
    let at = |wanted: &[NameKind]| kinds.iter().position(|kind| kind.is_some_and(|kind| wanted.contains(&kind)));
    let words = at(&[NameKind::Word, NameKind::Words]);
    let labels = at(&[NameKind::Label, NameKind::OtherLabel]);
    let pair = match (words, labels, at(&[NameKind::Sentence])) {
        (Some(words), Some(labels), _) => [words, labels],
        (Some(other), None, Some(sentence)) | (None, Some(other), Some(sentence)) => [sentence, other],
        _ => return false,
    };
    let again = |row: &Vec<String>| pair.iter().all(|&i| row.get(i) == first.get(i));
    !others.into_iter().any(again)
}

/// Which format lines of text have.
pub(super) fn format(
    name: &str,
    file_start: &FileStart,
    hint: Option<Format>,
    options: &DataOptions,
) -> Result<Format> {
    let shape = LineShape::of(file_start);
    if shape.rows.is_empty() {
        // Its reader says that there are no tokens.
        return Ok(Format::Conll);
    }
    let refuse = |what: &str, help: &str| Error::data(Location::file(name), what, help);
    let text = file_start.text().trim_ascii();
    if text.contains(&b'\r') && !text.contains(&b'\n') {
        return Err(refuse("lines that end with CR alone", "convert it: tr '\\r' '\\n' < FILE > data.txt"));
    }
    if let Some(found) = delimited(&shape, file_start, hint) {
        return match found {
            Certainty::Yes(format) => Ok(format),
            Certainty::Doubt(format) => {
                let what = format!("it could be {}, CoNLL columns or running text", format.title());
                Err(refuse(&what, &format!("give `format`: {format} or conll; or use `text` for running text")))
            }
        };
    }
    let (width, count) = shape.width(CellSplit::Blanks);
    let all = shape.plain().count().max(1);
    let said = hint == Some(Format::Conll) || !options.columns.is_empty();
    if !said && width == 1 && !likely_delimiters(file_start).is_empty() {
        let help = "give `format`: csv, whose reader names the first uneven row, or conll for one column of words";
        return Err(refuse("it could be CSV with uneven rows, or one column of words", help));
    }
    if said || (count < all && all >= 5 && count * 5 >= all * 4 && width > 1) {
        return Ok(Format::Conll);
    }
    let text = "looks like running text";
    if count < all {
        return Err(refuse(text, "use `text` for it; if it is columns, `format` conll tells where they are uneven"));
    }
    let cells = shape.cells(CellSplit::Blanks);
    if width > 1 && !cells.iter().any(|row| row.len() != width) && words_for_labels(&shape, &cells) {
        return Err(refuse(
            &format!("{text}, or like columns whose last one is no label"),
            "use `text`, or give `format` conll",
        ));
    }
    Ok(Format::Conll)
}

/// Whether the last column, split off at a space, looks like the ends of sentences: most values come once, and not all are
/// written as tags are, or there are too many for tags.
fn words_for_labels(shape: &LineShape, cells: &[Vec<String>]) -> bool {
    let tabs = shape.rows.iter().any(|row| row.text.trim().contains('\t'));
    let header = usize::from(cells.first().is_some_and(|first| is_header(first, &cells[1..])));
    let labels: Vec<&String> = cells[header..].iter().filter_map(|row| row.last()).collect();
    let different: HashSet<&String> = labels.iter().copied().collect();
    let tags = labels.iter().all(|label| tag_like(label));
    !tabs && if tags { labels.len() > 3 && different.len() == labels.len() } else { different.len() * 2 > labels.len() }
}

enum Certainty {
    Yes(Format),
    Doubt(Format),
}

/// Whether the lines are a table with tabs or commas.
fn delimited(shape: &LineShape, file_start: &FileStart, hint: Option<Format>) -> Option<Certainty> {
    let even = |split| {
        let (width, count) = shape.width(split);
        (width > 1 && count == shape.plain().count()).then_some(width)
    };
    if even(CellSplit::Tabs).is_some() {
        let rows = shape.cells(CellSplit::Tabs);
        let plain = |cell: &String| !cell.is_empty() && !cell.contains(' ');
        if is_header(&rows[0], &rows[1..]) {
            return Some(Certainty::Yes(Format::Tsv));
        }
        let quoted = shape.plain().filter(|row| is_quoted(&row.text)).count();
        let marks_count = if hint == Some(Format::Conll) { quoted == shape.plain().count() } else { quoted > 0 };
        if marks_count {
            return Some(if hint == Some(Format::Tsv) {
                Certainty::Yes(Format::Tsv)
            } else {
                Certainty::Doubt(Format::Tsv)
            });
        }
        if rows.iter().flatten().all(plain) || shape.style(CellSplit::Tabs).universal {
            return Some(Certainty::Yes(Format::Conll));
        }
        let sure = hint == Some(Format::Tsv) || (rows.len() > 1 && rows.iter().all(|row| same_words(row)));
        return match hint {
            // Where columns are uneven, their reader names the line.
            Some(Format::Conll) if even(CellSplit::Blanks).is_none() => Some(Certainty::Yes(Format::Conll)),
            _ if sure => Some(Certainty::Yes(Format::Tsv)),
            _ => Some(Certainty::Doubt(Format::Tsv)),
        };
    }
    if hint == Some(Format::Tsv) && even(CellSplit::Blanks).is_none() {
        return Some(Certainty::Yes(Format::Tsv));
    }
    if hint == Some(Format::Csv) {
        return Some(Certainty::Yes(Format::Csv));
    }
    let (_, rows) = delimiters(file_start).into_iter().next()?;
    let columns = even(CellSplit::Blanks);
    match hint {
        _ if is_header(&rows[0], &rows[1..]) => Some(Certainty::Yes(Format::Csv)),
        Some(Format::Conll) => None,
        _ if columns.is_none() && shape.width(CellSplit::Blanks) == (1, shape.plain().count()) && rows.len() > 2 => {
            Some(Certainty::Yes(Format::Csv))
        }
        _ => Some(Certainty::Doubt(Format::Csv)),
    }
}

/// Whether two cells have as many words each, and more than one.
fn same_words(row: &[String]) -> bool {
    let words = |cell: &String| cell.split_whitespace().count();
    row.len() == 2 && words(&row[0]) > 1 && words(&row[0]) == words(&row[1])
}

/// The delimiters by which all records have one number of cells, more than one; and the records. Where several do, only those
/// with a header count, if there are some.
pub(crate) fn delimiters(file_start: &FileStart) -> Vec<(u8, Vec<Vec<String>>)> {
    let even = |byte: u8| {
        let rows = records(file_start.text(), byte, file_start.whole, &mut Vec::new()).ok()?;
        let width = rows.first()?.cells.len();
        let even = width > 1 && rows.iter().all(|row| row.cells.len() == width);
        even.then(|| (byte, rows.into_iter().map(|row| row.cells).collect()))
    };
    let all: Vec<(u8, Vec<Vec<String>>)> = [b',', b';', b'|'].into_iter().filter_map(even).collect();
    let named = |(_, rows): &&(u8, Vec<Vec<String>>)| is_header(&rows[0], &rows[1..]);
    let with_header: Vec<_> = all.iter().filter(named).cloned().collect();
    if with_header.is_empty() { all } else { with_header }
}

/// The delimiters by which the first record and at least half of all have one number of cells, in a file without commas: its reader
/// names the first that has not.
pub(crate) fn likely_delimiters(file_start: &FileStart) -> Vec<u8> {
    let widths = |byte: u8| -> Vec<usize> {
        let rows = records(file_start.text(), byte, file_start.whole, &mut Vec::new()).unwrap_or_default();
        rows.into_iter().map(|row| row.cells.len()).collect()
    };
    let likely = |&byte: &u8| {
        let widths = widths(byte);
        let same = widths.iter().filter(|width| **width == widths[0]).count();
        widths.first().is_some_and(|&width| width > 1) && same * 2 >= widths.len()
    };
    let commas = widths(b',').iter().any(|&width| width > 1);
    if commas { Vec::new() } else { [b';', b'|', b'\t'].into_iter().filter(likely).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(name: &str, text: &str) -> Result<Format> {
        let file_start = FileStart { bytes: text.as_bytes().to_vec(), whole: true };
        format(name, &file_start, super::super::hint(name), &DataOptions::default())
    }

    #[test]
    fn columns_are_told_from_text_and_tables() {
        for (name, text, expected) in [
            ("f", "a X\nb Y\n", Some(Format::Conll)),
            ("f", "a\nb\n", Some(Format::Conll)),
            ("f", "a\tx\nb\ty\n\nc\tx\n", Some(Format::Conll)),
            ("f", "Roses are red\nviolets are blue\n", None),
            ("f", "Roses are red.\nViolets are blue, they say.\n", None),
            ("f", "May sails in May\n", None),
            ("f.conll", "May sails in May\n", Some(Format::Conll)),
            ("f", "word,tag\na,X\nb,Y\n", Some(Format::Csv)),
            ("f", "a,X\nb,Y\nc,X\n", Some(Format::Csv)),
            ("f", "a,X\n", None),
            ("f.csv", "a,X\n", Some(Format::Csv)),
            ("f", "1,000 CD\n2,000 CD\n", None),
            ("f", "a;X\nb;Y\nc;X\n", Some(Format::Csv)),
            ("f", "a;X\nb;Y;Z\nc;X\n", None),
            ("f.conll", "a;X\nb;Y;Z\nc;X\n", Some(Format::Conll)),
            ("f", "a\nb;Y\nc;X\n", Some(Format::Conll)),
            ("f", ",\n.\na\n", Some(Format::Conll)),
            ("f", "New York\tB-LOC\nnew shoes\tO\n", None),
            ("f", "a b\tX Y\nc d e\tX Y Y\n", Some(Format::Tsv)),
            ("f", "sentence\tword\ttag\n1\ta\tX\n", Some(Format::Tsv)),
            ("f", "a X\nb X\nc X\nd X\ne\n", Some(Format::Conll)),
            ("f", "tokens labels\na X\nb Y\n", Some(Format::Conll)),
            ("f", "I am here\nYou are there\nWe are happy\nThey are happy\n", None),
            ("f", "Chapter 1\nChapter 2\nChapter 3\nChapter 4\n", None),
            ("f", "a noun\nb verb\nc noun\nd noun\n", Some(Format::Conll)),
            ("f.csv", "text\nthe cat sat\nno\n", Some(Format::Csv)),
        ] {
            let found = look(name, text);
            assert_eq!(found.as_ref().ok().copied(), expected, "{text:?}: {found:?}");
        }
    }

    #[test]
    fn comments_are_told_from_tokens() {
        let style = |text: &str| {
            let file_start = FileStart { bytes: text.as_bytes().to_vec(), whole: true };
            let shape = LineShape::of(&file_start);
            let style = shape.style(shape.conll_split());
            let doubts = super::super::ColumnDoubts::of(text.as_bytes(), &style);
            assert_eq!(style.comments, doubts.comments, "{text:?}");
            (style.comments, doubts.comment_or_token)
        };
        assert_eq!(style("# a sentence\na X\n# X\n\n# 2\nb Y\n"), (true, Some(5)));
        assert_eq!(style("# X\na X\n"), (false, None));
        assert_eq!(style("# text = a\n#id\na X\n"), (true, None));
        assert_eq!(style("a X\n#\tX\n"), (false, None));
        assert_eq!(style("#\nb\n\n#\n"), (false, None));
    }

    #[test]
    fn columns_that_count() {
        let counts = |text: &str| LineShape::of(&FileStart { bytes: text.as_bytes().to_vec(), whole: true }).counts();
        assert!(counts("1 a X\n2 b Y\n\n1 c X\n"));
        assert!(counts("1 a X\n1 b Y\n2 c X\n2 d X\n"));
        assert!(counts("#begin document (x)\nx 0 a X\ny 0 b X\n"));
        assert!(counts("x 0 a X\nx 0 b X\n"));
        let decimals =
            |text: &str| LineShape::of(&FileStart { bytes: text.as_bytes().to_vec(), whole: true }).decimals();
        assert_eq!(decimals("0.5 1.5 X\n1.0 2.5 Y\n"), Some("first"));
        assert_eq!(decimals("a X 0.5\nb Y 0.25\n"), Some("last"));
        assert_eq!(decimals("0.5 NUM\na X\n"), None);
        assert!(!counts("1 X\n4 Y\n"));
        assert!(!counts("a X\n1 Y\n"));
        assert!(!counts("1\n2\n"));
    }
}
