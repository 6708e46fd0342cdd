//! Which columns of a table hold words, labels and sentences.

use super::RowTable;
use crate::data::Format;
use crate::data::readers::DataOptions;
use crate::data::readers::options::Column;
use crate::data::readers::recognize::{NameKind, is_header, name_kind, tag_like};
use crate::error::{Error, Result};

/// The columns, from 0, and the header if there is one.
pub(super) struct ColumnChoice {
    pub(super) token: usize,
    pub(super) label: Option<usize>,
    pub(super) sentence: Option<usize>,
    header: Option<Vec<String>>,
}

impl ColumnChoice {
    /// Chooses, and takes the header away from the rows.
    pub(super) fn make(table: &mut RowTable, options: &DataOptions) -> Result<Self> {
        let first = &table.rows[0];
        let named =
            |column: &Column| matches!(column, Column::Name(name) if !is_none(column, &first.cells) || name != "none");
        let wanted = options.columns.iter().chain(&options.sentence).any(named);
        // A column alone has a name if it is a usual one. Lines of words have none.
        let alone = table.format != Format::Conll && first.cells.len() == 1 && table.rows.len() > 1;
        let alone =
            alone && matches!(name_kind(&first.cells[0]), Some(NameKind::Word | NameKind::Words | NameKind::Sentence));
        let certain = alone || is_header(&first.cells, table.rows[1..].iter().map(|row| &row.cells));
        let header = (wanted || certain).then(|| first.cells.clone());
        let line = first.line;
        let find = |column: &Column| find(table, header.as_deref(), column);
        let sentence = match &options.sentence {
            Some(column) if is_none(column, &first.cells) => None,
            Some(column) => Some(find(column)?),
            // Texts with one label each are sequences, whatever numbers them.
            None if options.label_at.is_some() && table.holds_texts(header.as_deref()) => None,
            None => header.as_deref().and_then(sentence_column),
        };
        let (token, label) = match options.columns.as_slice() {
            [] => by_names(table, header.as_deref(), sentence)?,
            [token] => (find(token)?, None),
            [token, label] => (find(token)?, Some(find(label)?)),
            _ => {
                let help = "give the column of the words and that of the labels, or the first alone";
                return Err(Error::setting("`columns` with more than two columns", help));
            }
        };
        let choice = Self { token, label, sentence, header };
        if choice.header.is_some() {
            table.rows.remove(0);
            if table.rows.is_empty() {
                return Err(table.fault(line, "a header and no rows", "if it is no header, give `columns` by number"));
            }
        } else if options.columns.is_empty() {
            choice.doubt(table)?;
        }
        Ok(choice)
    }

    /// A column for people.
    pub(super) fn shown(&self, column: usize) -> String {
        match self.header.as_ref().and_then(|header| header.get(column)) {
            Some(name) => format!("column {} ({name})", column + 1),
            None => format!("column {}", column + 1),
        }
    }

    /// Whether rows are tokens, not sequences.
    pub(super) fn rows_are_tokens(&self, table: &RowTable, options: &DataOptions) -> Result<bool> {
        let name = self.header.as_ref().and_then(|header| name_kind(&header[self.token]));
        let sequences = matches!(name, Some(NameKind::Words | NameKind::Sentence));
        let spaced = || table.rows.iter().find(|row| row.cells[self.token].contains(char::is_whitespace));
        if let (Some(column), None, true, Some(row)) = (self.sentence, &options.sentence, sequences, spaced()) {
            let what = format!("a text in a row, beside {}, which tells sequences apart", self.shown(column));
            let help = format!(
                "give `sentence` {} if rows are tokens, `label_at` if they are sequences with one label; else remove the column",
                column + 1
            );
            return Err(table.fault(row.line, what, help));
        }
        if self.sentence.is_some() || options.sentence.is_some() || table.format == Format::Conll {
            return Ok(true);
        }
        if sequences || options.label_at.is_some() || (spaced().is_some() && name != Some(NameKind::Word)) {
            let gap = table.rows.iter().skip(1).find(|row| row.gap).filter(|_| options.label_at.is_none());
            return gap.map_or(Ok(false), |row| {
                let help = "give `sentence` none if rows are tokens and empty rows separate sequences; if rows are sequences, remove empty rows";
                Err(table.fault(row.line, "an empty row before it, where rows look like sequences", help))
            });
        }
        if table.rows.len() > 1 && !table.rows.iter().skip(1).any(|row| row.gap) {
            let help = "give `sentence`, the column that tells sequences apart, or none if all rows are one sequence";
            return Err(table.fault(table.rows[0].line, "tokens in rows, and nothing between sequences", help));
        }
        Ok(true)
    }

    /// Whether the first row may be a header: it has a name that columns have, or a label unlike those below, which come again or
    /// are all numbers.
    fn may_have_header(&self, rows: &[super::TableRow], label: usize) -> bool {
        let others = || rows[1..].iter().map(|row| row.cells[label].as_str());
        let first = rows[0].cells[label].as_str();
        let named = matches!(
            name_kind(&rows[0].cells[self.token]),
            Some(NameKind::Word | NameKind::Words | NameKind::Sentence)
        );
        let number = |label: &str| label.parse::<f64>().is_ok();
        let numbers = rows.len() > 1 && !number(first) && others().all(number);
        let alone = rows.len() > 2 && others().all(|other| other != first);
        let repeated = || others().collect::<std::collections::HashSet<_>>().len() < rows.len() - 1;
        named || numbers || (alone && repeated())
    }

    /// Refuses a table without a header that could be read in several ways.
    fn doubt(&self, table: &RowTable) -> Result<()> {
        let Some(label) = self.label else { return Ok(()) };
        let rows = &table.rows;
        let line = rows[0].line;
        let labels = || rows.iter().map(|row| row.cells[label].as_str());
        if table.format != Format::Conll && self.may_have_header(rows, label) {
            let [token, label] = [self.token, label].map(|column| &rows[0].cells[column]);
            let help = format!("give `columns`: {token},{label} if it is one, else 1,2");
            return Err(table.fault(line, "the first row may be a header", help));
        }
        let words = rows.iter().any(|row| row.cells[self.token].contains(char::is_whitespace));
        if !words && labels().any(|label| label.contains(char::is_whitespace)) {
            let help = "give `columns`: that of the words, then that of the labels (2,1 for labels first)";
            return Err(table.fault(line, "blanks in the second column and none in the first", help));
        }
        let tags = |column: usize| rows.iter().all(|row| tag_like(&row.cells[column]));
        if table.format != Format::Conll && rows.len() > 2 && tags(self.token) && !tags(label) {
            let help = "give `columns`: 2,1 if labels come first, else 1,2";
            return Err(table.fault(line, "the first column looks like labels, the second like words", help));
        }
        let number = |row: &super::TableRow| row.cells[self.token].parse::<i64>().is_ok();
        if table.format != Format::Conll && rows.iter().all(number) {
            let help = "give `columns`: that of the words, then that of the labels; and `sentence` if there is one";
            return Err(table.fault(line, "nothing but numbers in the first column", help));
        }
        Ok(())
    }
}

/// Whether a column is the word `none`, which says that there is none.
fn is_none(column: &Column, header: &[String]) -> bool {
    matches!(column, Column::Name(name) if name == "none" && !header.contains(name))
}

/// The number of a column, from 0.
fn find(table: &RowTable, header: Option<&[String]>, column: &Column) -> Result<usize> {
    let first = &table.rows[0];
    let width = first.cells.len();
    match column {
        Column::Number(number) if *number <= width => Ok(number - 1),
        Column::Number(number) => {
            Err(table.fault(first.line, format!("no column {number}: there are {width}"), "give another one"))
        }
        Column::Name(name) => {
            let header = header.unwrap_or_default();
            let same = |cell: &&String| cell.eq_ignore_ascii_case(name);
            let exact = header.iter().filter(|cell| *cell == name).count();
            match header.iter().filter(same).count() {
                _ if exact == 1 => Ok(header.iter().position(|cell| cell == name).unwrap_or(0)),
                1 => Ok(header.iter().position(|cell| cell.eq_ignore_ascii_case(name)).unwrap_or(0)),
                0 => {
                    let what = format!("no column {name:?} in the header: {}", header.join(", "));
                    Err(table.fault(first.line, what, "give a name of the header, or the column's number from 1"))
                }
                _ => Err(table.fault(
                    first.line,
                    format!("several columns {name:?}"),
                    "give the column's number, from 1",
                )),
            }
        }
    }
}

impl RowTable<'_> {
    /// Whether there is a column of texts by its name, none of words, and some text has more than one word.
    fn holds_texts(&self, header: Option<&[String]>) -> bool {
        let at = |wanted| header.and_then(|names| names.iter().position(|name| name_kind(name) == Some(wanted)));
        let spaced = |column: usize| self.rows[1..].iter().any(|row| row.cells[column].contains(char::is_whitespace));
        at(NameKind::Word).is_none() && at(NameKind::Words).is_some_and(spaced)
    }
}

/// The column of sentences, where there is also one of words.
fn sentence_column(header: &[String]) -> Option<usize> {
    let at = |wanted: NameKind| header.iter().position(|name| name_kind(name) == Some(wanted));
    at(NameKind::Word).or_else(|| at(NameKind::Words)).and_then(|_| at(NameKind::Sentence))
}

/// The columns of words and labels by their names, or by their order where there are no names.
fn by_names(table: &RowTable, header: Option<&[String]>, sentence: Option<usize>) -> Result<(usize, Option<usize>)> {
    let first = &table.rows[0];
    let width = first.cells.len();
    let Some(header) = header else {
        return match (width, table.format) {
            (1, _) => Ok((0, None)),
            (_, Format::Conll) => Ok((0, Some(width - 1))),
            (2, _) if sentence.is_none() => Ok((0, Some(1))),
            _ => {
                let help = "give `columns`: that of the words, then that of the labels, by number from 1 or by name";
                Err(table.fault(first.line, format!("{width} columns without a known header"), help))
            }
        };
    };
    let all = |wanted: NameKind| -> Vec<usize> {
        (0..width).filter(|&i| Some(i) != sentence && name_kind(&header[i]) == Some(wanted)).collect()
    };
    let one = |kinds: &[NameKind], what: &str| match kinds.iter().map(|&kind| all(kind)).find(|found| !found.is_empty())
    {
        Some(found) if found.len() == 1 => Ok(Some(found[0])),
        Some(found) => {
            let names: Vec<&str> = found.iter().map(|&i| header[i].as_str()).collect();
            let help = "give `columns`: that of the words, then that of the labels";
            Err(table.fault(first.line, format!("several columns of {what}: {}", names.join(", ")), help))
        }
        None => Ok(None),
    };
    let token = one(&[NameKind::Word, NameKind::Words, NameKind::Sentence], "words")?;
    let label = one(&[NameKind::Label, NameKind::OtherLabel], "labels")?;
    let known = |i: &usize| Some(*i) == sentence || name_kind(&header[*i]).is_some();
    match (token, label) {
        (Some(token), Some(label)) => Ok((token, Some(label))),
        (Some(token), None) if (0..width).all(|i| known(&i)) => Ok((token, None)),
        _ => {
            let help = "give `columns`: that of the words, then that of the labels, or the first alone";
            Err(table.fault(first.line, format!("a header that does not tell: {}", header.join(", ")), help))
        }
    }
}
