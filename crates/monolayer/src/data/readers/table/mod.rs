//! Tables: CoNLL columns with options, CSV and TSV. A row is a token, or a whole sequence.

pub(super) mod cell_split;
mod column_choice;

use std::collections::HashMap;

use serde_json::Value;

use self::cell_split::{CellSplit, TableRow, decode, records};
use self::column_choice::ColumnChoice;
use super::recognize::ColumnStyle;
use super::via_json_lines::{Converted, FREE, FoundData, FoundLabels, FoundSequence};
use super::{DataOptions, Fault};
use crate::data::Format;
use crate::data::free_label::{FREE_DIGITS, FREE_NAME};
use crate::error::{Error, Location, Result};

/// Reads a table.
pub(super) fn read(
    name: &str,
    bytes: &[u8],
    format: Format,
    style: &ColumnStyle,
    options: &DataOptions,
) -> Result<FoundData> {
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        let line = Some(bytes[..at].split(|&byte| byte == b'\n').count());
        let help = "this is not UTF-8 text: save it as UTF-8, or give the format of a binary file";
        return Err(Error::data(Location { line, ..Location::file(name) }, "a NUL byte", help));
    }
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut table = RowTable { name, format, rows: Vec::new(), latin: Vec::new(), notes: Vec::new(), decimals: false };
    table.split(text, style, options.documents)?;
    table.even()?;
    let choice = ColumnChoice::make(&mut table, options)?;
    let (tokens_from, labels_from) = (choice.shown(choice.token), choice.label.map(|label| choice.shown(label)));
    table.decimals = choice.label.is_some_and(|column| table.holds_decimals(column));
    let mut converted = Converted::new(name);
    if table.decimals {
        table.one_spelling(choice.label.unwrap_or_default())?;
    }
    let dropped = table.dropped_gaps(&choice, options);
    let split = if choice.rows_are_tokens(&table, options)? {
        table.token_rows(&choice, &mut converted)?;
        ""
    } else {
        table.sequence_rows(&choice, options, &mut converted)?;
        ", split at white space"
    };
    let mut data = converted.finish(options)?;
    data.warnings.extend(table.warning());
    data.warnings.extend(dropped);
    Ok(FoundData { data, tokens_from: tokens_from + split, labels_from, notes: table.notes })
}

/// The rows of a file.
struct RowTable<'a> {
    name: &'a str,
    format: Format,
    rows: Vec<TableRow>,
    /// Lines that are not UTF-8.
    latin: Vec<u32>,
    /// What was left out.
    notes: Vec<String>,
    /// Whether labels are numbers, and not classes.
    decimals: bool,
}

impl RowTable<'_> {
    fn fault(&self, line: u32, what: impl Into<String>, help: impl Into<String>) -> Error {
        Error::data(Location { line: Some(line as usize), ..Location::file(self.name) }, what, help)
    }

    fn split(&mut self, text: &[u8], style: &ColumnStyle, documents: bool) -> Result<()> {
        if let CellSplit::Quoted(delimiter) = style.split {
            let found = records(text, delimiter, true, &mut self.latin);
            self.rows = found.map_err(|(line, Fault { what, help, .. })| self.fault(line, what, help))?;
            return Ok(());
        }
        let (mut gap, mut start, mut comments, mut skipped) = (false, true, 0, 0);
        let mut found = 0;
        for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let number = u32::try_from(i + 1).unwrap_or(u32::MAX);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let document = line.starts_with(b"-DOCSTART-") || (style.comments && line.starts_with(b"# newdoc"));
            found += usize::from(document);
            if line.starts_with(b"-DOCSTART-") || line.trim_ascii().is_empty() {
                (gap, start) = (gap || document || !documents, true);
                continue;
            }
            gap |= document;
            let text = decode(line, number, &mut self.latin);
            let cells = style.split.cells(&text);
            if style.comments && start && text.starts_with('#') && cells.len() != style.width {
                comments += 1;
                continue;
            }
            start = false;
            if style.universal && cells[0].contains(['-', '.']) {
                skipped += 1;
                continue;
            }
            if cells.iter().all(String::is_empty) {
                gap |= !documents;
            } else {
                self.rows.push(TableRow { line: number, gap: std::mem::take(&mut gap), cells });
            }
        }
        if documents && found == 0 {
            let help = "leave `documents` out, or mark where each document begins";
            let what = "no line begins with -DOCSTART- (or # newdoc), so it is not known where documents begin";
            return Err(Error::data(Location::file(self.name), what, help));
        }
        let counted = |n: usize, what: &str| {
            let noun = if n == 1 { "line" } else { "lines" };
            (n > 0).then(|| format!("{n} {noun} {what} skipped"))
        };
        self.notes.extend(counted(comments, "of comments"));
        self.notes.extend(counted(skipped, "of joined or empty words"));
        Ok(())
    }

    /// All rows must have as many cells as the first one.
    fn even(&self) -> Result<()> {
        let Some(first) = self.rows.first() else {
            let help = "give a file with a token or a sequence per row";
            return Err(Error::data(Location::file(self.name), "an empty file: it has no tokens", help));
        };
        let (line, width) = (first.line, first.cells.len());
        match self.rows.iter().find(|row| row.cells.len() != width) {
            Some(row) => {
                let what = format!("{} columns where line {line} has {width}", row.cells.len());
                let help = match self.format {
                    Format::Csv => {
                        "is a cell with a comma (or what else separates cells) not quoted, or `format` another one?"
                    }
                    _ => "is there a blank inside a cell, or a label missing?",
                };
                Err(self.fault(row.line, what, help))
            }
            None => Ok(()),
        }
    }

    fn warning(&self) -> Option<String> {
        let first = self.latin.first()?;
        let noun = if self.latin.len() == 1 { "line" } else { "lines" };
        Some(format!("{} {noun} not UTF-8, read as Latin-1; the first is line {first}", self.latin.len()))
    }

    /// A warning about empty rows that separate nothing, because a column of sentences or the rows themselves do.
    fn dropped_gaps(&self, choice: &ColumnChoice, options: &DataOptions) -> Option<String> {
        let by_rows = options.label_at.is_some() && self.format != Format::Conll;
        let inside = |pair: &[TableRow]| match choice.sentence {
            Some(column) => pair[1].gap && pair[0].cells[column] == pair[1].cells[column],
            None => by_rows && pair[1].gap,
        };
        let line = self.rows.windows(2).find(|pair| inside(pair))?[1].line;
        let what = match choice.sentence {
            Some(column) => format!("the sequences are those of {}", choice.shown(column)),
            None => "every row is a sequence of its own".to_owned(),
        };
        Some(format!("empty rows are ignored, the first before line {line}: {what}"))
    }

    /// Every row is a token. Rows are taken one by one, so that the words of a long table are in memory once.
    fn token_rows(&mut self, choice: &ColumnChoice, converted: &mut Converted) -> Result<()> {
        let starts = self.starts(choice)?;
        let mut found: Option<FoundSequence> = None;
        for (mut row, start) in std::mem::take(&mut self.rows).into_iter().zip(starts) {
            let label = choice.label.map(|label| self.label(&row, label));
            let token = std::mem::take(&mut row.cells[choice.token]);
            if token.is_empty() || token.contains(['\n', '\r']) {
                let what = if token.is_empty() { "a token without a word" } else { "a line break inside a word" };
                return Err(self.fault(row.line, what, "is a quotation mark not doubled, or `columns` another one?"));
            }
            if start {
                found.take().into_iter().for_each(|found| converted.push(found));
            }
            let now = found.get_or_insert_with(|| FoundSequence {
                tokens: Vec::new(),
                labels: choice.label.map_or(FoundLabels::None, |_| FoundLabels::Each(Vec::new())),
                lines: Vec::new(),
                told: Vec::new(),
            });
            now.tokens.push(token.into());
            now.lines.push(row.line);
            if let (FoundLabels::Each(labels), Some(label)) = (&mut now.labels, label) {
                labels.push(label?);
            }
        }
        found.into_iter().for_each(|found| converted.push(found));
        Ok(())
    }

    /// The label of a row.
    fn label(&self, row: &TableRow, column: usize) -> Result<Value> {
        match row.cells[column].as_str() {
            "" => Err(self.fault(row.line, "a token without a label", "give it one; _ is for any")),
            label => Ok(self.class(label)),
        }
    }

    /// A class by its name. `_`, and -100 in tables, may be anything.
    fn class(&self, name: &str) -> Value {
        match name {
            FREE_NAME => FREE,
            FREE_DIGITS if self.format != Format::Conll => FREE,
            name => self.class_or_number(name),
        }
    }

    fn class_or_number(&self, label: &str) -> Value {
        if self.decimals { decimal(label).into() } else { label.into() }
    }

    /// Whether the labels of a table are numbers, some of them with a decimal point.
    fn holds_decimals(&self, column: usize) -> bool {
        let cells = || self.rows.iter().flat_map(|row| row.cells[column].split_whitespace());
        let free = |cell: &str| cell == FREE_NAME || cell == FREE_DIGITS;
        let number = |cell: &str| free(cell) || decimal(cell).is_some();
        self.format != Format::Conll && cells().any(|cell| cell.contains('.')) && cells().all(number)
    }

    /// Refuses numbers that are spelled in two ways, or that no float is: classes such as 1.1 and 1.10 would become one output.
    fn one_spelling(&self, column: usize) -> Result<()> {
        let mut spellings: HashMap<u64, &str> = HashMap::new();
        for row in &self.rows {
            for cell in row.cells[column].split_whitespace() {
                let Some(x) = decimal(cell) else { continue };
                let integer = cell.parse::<i128>().map(|k| k as f64 as i128 == k);
                if integer == Ok(false) || (integer.is_err() && !cell.contains(['.', 'e', 'E'])) {
                    let what = format!("the output {cell}, which no 64-bit float is");
                    return Err(self.fault(
                        row.line,
                        what,
                        "write outputs as decimals; classes need a letter, as in v1.5",
                    ));
                }
                let known = *spellings.entry(x.to_bits()).or_insert(cell);
                if known != cell {
                    let what = format!("the labels {known} and {cell}, which are one number");
                    let help = "spell a number one way; if they are classes, write them with a letter, as in v1.5";
                    return Err(self.fault(row.line, what, help));
                }
            }
        }
        Ok(())
    }

    /// Whether each row starts a sequence.
    fn starts(&self, choice: &ColumnChoice) -> Result<Vec<bool>> {
        let Some(column) = choice.sentence else { return Ok(self.rows.iter().map(|row| row.gap).collect()) };
        let mut seen = std::collections::HashSet::new();
        let mut last: Option<&str> = None;
        let mut starts = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let cell = row.cells[column].as_str();
            // Programs that fill a table write the number once, and then nothing, or NaN.
            let goes_on = cell.is_empty() || cell.eq_ignore_ascii_case("nan") || last == Some(cell);
            if last.is_none() && cell.is_empty() {
                return Err(self.fault(row.line, "no sentence in the first row", "is `sentence` another column?"));
            }
            let start = !goes_on || last.is_none();
            if start && !seen.insert(cell) {
                let what = format!("the sentence {cell:?} a second time");
                return Err(self.fault(row.line, what, "sort the rows, so that those of a sentence stand together"));
            }
            if start {
                last = Some(cell);
            }
            starts.push(start);
        }
        Ok(starts)
    }

    /// Every row is a sequence: words at white space, and as many labels or one.
    fn sequence_rows(&self, choice: &ColumnChoice, options: &DataOptions, converted: &mut Converted) -> Result<()> {
        let words = |cell: &str| cell.split_whitespace().map(Value::from).collect::<Vec<_>>();
        let counts =
            |row: &TableRow| (words(&row.cells[choice.token]).len(), choice.label.map(|c| words(&row.cells[c]).len()));
        let each = options.label_at.is_none() && self.rows.iter().map(counts).all(|(n, labels)| labels == Some(n));
        let one = options.label_at.is_some() || self.rows.iter().map(counts).all(|(_, labels)| labels == Some(1));
        for row in &self.rows {
            let tokens = words(&row.cells[choice.token]);
            let printed =
                [Some(choice.token), choice.label].into_iter().flatten().any(|c| is_printed_list(&row.cells[c]));
            if printed {
                let help =
                    "save it as JSON lines: with pandas, to_json(\"data.jsonl\", orient=\"records\", lines=True)";
                return Err(self.fault(row.line, "a cell that is a printed list", help));
            }
            if tokens.is_empty() {
                return Err(self.fault(row.line, "a row without words", "leave it out, or give other `columns`"));
            }
            let labels = match choice.label {
                None => FoundLabels::None,
                Some(column) if one && !each => FoundLabels::One(self.label(row, column)?),
                Some(column) => {
                    let names = row.cells[column].split_whitespace();
                    let labels: Vec<Value> = names.map(|name| self.class(name)).collect();
                    if labels.len() != tokens.len() {
                        let what = format!("{} labels for {} tokens", labels.len(), tokens.len());
                        let help = "give a label for each word, or one for all and `label_at`; or other `columns`";
                        return Err(self.fault(row.line, what, help));
                    }
                    FoundLabels::Each(labels)
                }
            };
            let lines = vec![row.line; tokens.len()];
            converted.push(FoundSequence { tokens, labels, lines, told: Vec::new() });
        }
        Ok(())
    }
}

/// A number, if it is written as one.
fn decimal(cell: &str) -> Option<f64> {
    let digits = cell.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    cell.parse().ok().filter(|x: &f64| digits && x.is_finite())
}

/// Whether a cell is what a program prints for a list: `['a', 'b']`.
fn is_printed_list(cell: &str) -> bool {
    let inner = cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']'));
    inner.is_some_and(|inner| {
        inner.trim().is_empty() || inner.contains(['\'', '"', ',']) || inner.trim().parse::<f64>().is_ok()
    })
}
