//! Rows of text split into cells: at blanks, at tabs, or at commas with quotes.

use std::borrow::Cow;

use crate::data::readers::Fault;

/// How a row is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellSplit {
    /// At spaces and tabs, as CoNLL columns are.
    Blanks,
    /// At tabs.
    Tabs,
    /// At this byte, with quotes (RFC 4180).
    Quoted(u8),
}

/// A row: its line (from 1), its cells, and whether something empty stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableRow {
    pub(crate) line: u32,
    pub(crate) gap: bool,
    pub(crate) cells: Vec<String>,
}

/// Text as UTF-8, or else as Latin-1, with a note of the line.
pub(crate) fn decode<'a>(bytes: &'a [u8], line: u32, latin: &mut Vec<u32>) -> Cow<'a, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    latin.push(line);
    Cow::Owned(latin_1(bytes))
}

/// Every byte is the code point of that number.
fn latin_1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

impl CellSplit {
    /// The cells of a line. Quotes over several lines are for [`records`].
    pub(crate) fn cells(self, line: &str) -> Vec<String> {
        match self {
            Self::Blanks => line.split([' ', '\t']).filter(|cell| !cell.is_empty()).map(str::to_owned).collect(),
            Self::Tabs => {
                let cells: Vec<&str> = line.split('\t').map(|cell| cell.trim_matches(' ')).collect();
                let all = cells.iter().all(|cell| cell.is_empty() || inside(cell).is_some());
                cells.into_iter().map(|cell| unquoted(cell, all)).collect()
            }
            Self::Quoted(delimiter) => line.split(char::from(delimiter)).map(|cell| cell.trim().to_owned()).collect(),
        }
    }
}

/// What stands between quotation marks, if those inside are doubled.
fn inside(cell: &str) -> Option<&str> {
    let inner = cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"'));
    inner.filter(|inner| !inner.replace("\"\"", "").contains('"'))
}

/// A cell of a table with tabs. Programs quote all cells, or only those with quotation marks inside, which are doubled then: other
/// quotation marks are those of the text.
fn unquoted(cell: &str, all: bool) -> String {
    let inner = inside(cell).filter(|inner| all || inner.contains('"'));
    inner.map_or_else(|| cell.to_owned(), |inner| inner.replace("\"\"", "\""))
}

/// The records of a text with quotes. One that is cut off at the end of what was read counts only if the text is whole.
pub(crate) fn records(
    text: &[u8],
    delimiter: u8,
    whole: bool,
    latin: &mut Vec<u32>,
) -> Result<Vec<TableRow>, (u32, Fault)> {
    let mut parser = Records { text, delimiter, next: 0, line: 1 };
    let (mut rows, mut gap) = (Vec::new(), false);
    while parser.next < text.len() {
        let (line, start) = (parser.line, parser.next);
        let cells = match parser.record() {
            Ok(cells) => cells,
            // What is cut off cannot be judged.
            Err(_) if !whole => break,
            Err(fault) => return Err((line, fault)),
        };
        if !whole && parser.next == text.len() && text[start..].last() != Some(&b'\n') {
            break;
        }
        // A record is UTF-8 or Latin-1 as a whole, as a line is.
        let cells: Vec<String> = if std::str::from_utf8(&text[start..parser.next]).is_ok() {
            cells.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
        } else {
            latin.push(line);
            cells.iter().map(|cell| latin_1(cell)).collect()
        };
        if cells.iter().all(String::is_empty) {
            gap = true;
        } else {
            rows.push(TableRow { line, gap: std::mem::take(&mut gap), cells });
        }
    }
    Ok(rows)
}

struct Records<'a> {
    text: &'a [u8],
    delimiter: u8,
    next: usize,
    line: u32,
}

impl<'a> Records<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.next).copied()
    }

    /// One record, and its end.
    fn record(&mut self) -> Result<Vec<Cow<'a, [u8]>>, Fault> {
        let mut cells = Vec::new();
        loop {
            cells.push(self.cell()?);
            match self.peek() {
                Some(byte) if byte == self.delimiter => self.next += 1,
                Some(b'\n') => {
                    self.next += 1;
                    self.line = self.line.saturating_add(1);
                    return Ok(cells);
                }
                _ => return Ok(cells),
            }
        }
    }

    /// One cell, up to what separates it from the next one.
    fn cell(&mut self) -> Result<Cow<'a, [u8]>, Fault> {
        let start = self.next;
        while matches!(self.peek(), Some(b' ')) {
            self.next += 1;
        }
        if self.peek() == Some(b'"') {
            self.next += 1;
            return self.quoted().map(Cow::Owned);
        }
        let rest = &self.text[start..];
        let end = rest.iter().position(|&byte| byte == self.delimiter || byte == b'\n').unwrap_or(rest.len());
        self.next = start + end;
        Ok(Cow::Borrowed(rest[..end].trim_ascii()))
    }

    /// The rest of a cell after its first quotation mark.
    fn quoted(&mut self) -> Result<Vec<u8>, Fault> {
        let mut cell = Vec::new();
        while let Some(byte) = self.peek() {
            self.next += 1;
            match byte {
                b'"' if self.peek() == Some(b'"') => {
                    cell.push(b'"');
                    self.next += 1;
                }
                b'"' => {
                    while matches!(self.peek(), Some(b' ' | b'\r')) {
                        self.next += 1;
                    }
                    let ended = self.peek().is_none_or(|byte| byte == b'\n' || byte == self.delimiter);
                    let help = "double the quotation marks inside of a cell: \"\"\"\" is one";
                    return if ended { Ok(cell) } else { Err(Fault::new("text after a quoted cell", help)) };
                }
                _ => {
                    self.line = self.line.saturating_add(u32::from(byte == b'\n'));
                    cell.push(byte);
                }
            }
        }
        Err(Fault::new(
            "a quotation mark that is never closed",
            "write \"\"\"\" for the word \", and quote no half cells",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<Vec<String>> {
        records(text.as_bytes(), b',', true, &mut Vec::new()).unwrap().into_iter().map(|row| row.cells).collect()
    }

    #[test]
    fn quotes_are_those_of_rfc_4180() {
        assert_eq!(cells("a,X\r\n\",\",\"\"\"\"\n"), [["a", "X"], [",", "\""]]);
        assert_eq!(cells("\"two\nlines\", X \n"), [["two\nlines", "X"]]);
        assert_eq!(cells("a,,\n, \"b\" ,"), [["a", "", ""], ["", "b", ""]]);
        assert_eq!(cells("5\" disk,X\n"), [["5\" disk", "X"]]);
        for (text, line) in [("a,X\n\"b\"c,X\n", 2), ("a,X\n\"b,X\n", 2)] {
            assert_eq!(records(text.as_bytes(), b',', true, &mut Vec::new()).unwrap_err().0, line);
        }
    }

    #[test]
    fn lines_gaps_and_latin_1() {
        let mut latin = Vec::new();
        let rows = records(b"a,\"x\ny\"\n\n,\n\xE9,\xE9\nb,c", b',', true, &mut latin).unwrap();
        assert_eq!(rows.iter().map(|row| (row.line, row.gap)).collect::<Vec<_>>(), [(1, false), (5, true), (6, false)]);
        assert_eq!((rows[1].cells[0].as_str(), latin), ("é", vec![5]));
        let mut latin = Vec::new();
        let rows =
            records("é,X\u{80}\né,".bytes().chain([0xE9]).collect::<Vec<_>>().as_slice(), b',', true, &mut latin);
        let cells: Vec<Vec<String>> = rows.unwrap().into_iter().map(|row| row.cells).collect();
        assert_eq!((cells, latin), (vec![vec!["é".into(), "X\u{80}".into()], vec!["Ã©".into(), "é".into()]], vec![2]));
        assert_eq!(records(b"a,b\nc,\"d", b',', false, &mut Vec::new()).unwrap().len(), 1);
        assert_eq!(records(b"a,b\nc,d", b',', false, &mut Vec::new()).unwrap().len(), 1);
    }

    #[test]
    fn tabs_keep_lone_quotation_marks() {
        assert_eq!(CellSplit::Tabs.cells("\"\tO"), ["\"", "O"]);
        assert_eq!(CellSplit::Tabs.cells("\"\"\"\"\tO"), ["\"", "O"]);
        assert_eq!(CellSplit::Tabs.cells("\"New \"\"York\"\"\"\t\tO"), ["New \"York\"", "", "O"]);
        assert_eq!(CellSplit::Tabs.cells("\"a\"b\"\tO"), ["\"a\"b\"", "O"]);
        assert_eq!(CellSplit::Tabs.cells("\"hello\"\tO"), ["\"hello\"", "O"]);
        assert_eq!(CellSplit::Tabs.cells("\"hello\"\t\"O\""), ["hello", "O"]);
        assert_eq!(CellSplit::Blanks.cells(" a\t b  c "), ["a", "b", "c"]);
    }
}
