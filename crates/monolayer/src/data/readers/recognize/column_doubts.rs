//! Columns in all lines of a file: what would be doubted at its beginning is doubted later on, too.

use std::collections::HashSet;

use super::ColumnStyle;
use crate::data::readers::table::cell_split::CellSplit;

/// What is doubtful about the lines of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnDoubts {
    /// Whether there are comments: lines with `#` where a sequence starts that are not as wide as token lines.
    pub(crate) comments: bool,
    /// The first line that may be a comment, or the token `#`: as wide as others, with a label that no other line has.
    pub(crate) comment_or_token: Option<usize>,
    /// The first line that is another one if it is split at tabs alone: a cell is empty, quoted, or has a blank inside.
    pub(crate) tabs: Option<usize>,
}

impl ColumnDoubts {
    /// Looks at all lines of a text without a byte order mark.
    pub(crate) fn of(text: &[u8], style: &ColumnStyle) -> Self {
        let mut doubts = Self::default();
        let mut labels: HashSet<&[u8]> = HashSet::new();
        let mut hashes: Vec<(usize, &[u8])> = Vec::new();
        let mut start = true;
        for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.starts_with(b"-DOCSTART-") || line.trim_ascii().is_empty() {
                start = true;
                continue;
            }
            let hash = start && line.starts_with(b"#");
            start = hash;
            if !hash {
                labels.extend(columns(line).last());
                if doubts.tabs.is_none() && !same_by_tabs(line, style.width) {
                    doubts.tabs = Some(i + 1);
                }
                continue;
            }
            let width = match style.split {
                CellSplit::Blanks => columns(line).count(),
                split => split.cells(&String::from_utf8_lossy(line)).len(),
            };
            if width == style.width {
                hashes.extend(columns(line).last().map(|label| (i + 1, label)));
            } else {
                doubts.comments = true;
            }
        }
        let doubtful = hashes.iter().find(|(_, label)| style.width > 1 && !labels.contains(label));
        doubts.comment_or_token = doubtful.map(|&(line, _)| line);
        doubts
    }
}

/// The columns of a line, split at blanks.
fn columns(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| b" \t".contains(byte)).filter(|column| !column.is_empty())
}

/// Whether a line has so many cells between its tabs, all of which are columns as they stand.
fn same_by_tabs(line: &[u8], width: usize) -> bool {
    let cells = || line.split(|&byte| byte == b'\t').map(<[u8]>::trim_ascii);
    cells().count() == width
        && cells().all(|cell| !cell.is_empty() && !cell.contains(&b' '))
        && (!line.contains(&b'"') || !is_quoted(&String::from_utf8_lossy(line)))
}

/// Whether cells between tabs are others once their quotation marks are taken off.
pub(super) fn is_quoted(line: &str) -> bool {
    line.contains('"')
        && !CellSplit::Tabs
            .cells(line)
            .iter()
            .map(String::as_str)
            .eq(line.split('\t').map(|cell| cell.trim_matches(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_looked_at() {
        let of = |text: &str| {
            let style = ColumnStyle { split: CellSplit::Blanks, comments: false, width: 2, universal: false };
            ColumnDoubts::of(text.as_bytes(), &style)
        };
        let doubts = |comments, comment_or_token, tabs| ColumnDoubts { comments, comment_or_token, tabs };
        assert_eq!(of("a\tX\nb\tY\n\n"), doubts(false, None, None));
        assert_eq!(of("a\tX\n\n# text = b\n#\tX\nb\tY"), doubts(true, None, None));
        assert_eq!(of("a\tX\n\n# text = b\n# newpar\nb\tY"), doubts(true, Some(4), None));
        assert_eq!(of("a\tX\n#\tnew\n"), doubts(false, None, None));
        assert_eq!(of("a\tX\nb\t\tY\n"), doubts(false, None, Some(2)));
        assert_eq!(of("a\tX\r\nNew York\tY\n"), doubts(false, None, Some(2)));
        assert_eq!(of("a\tX\n\"b\"\tY\n\"b\"\t\"Y\"\n"), doubts(false, None, Some(3)));
    }
}
