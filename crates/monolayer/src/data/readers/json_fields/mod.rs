//! JSON whose fields are not just `tokens` and `labels`: objects per line, in an array, in columns, or as a server of datasets
//! gives them.

mod field_choice;
mod field_columns;
mod server_rows;

use serde_json::{Map, Value};

use self::field_choice::ChosenFields;
pub(super) use self::field_choice::some_names;
use self::server_rows::ServerNotes;
use super::lines::Lines;
use super::via_json_lines::{Converted, FREE, FoundData, FoundLabels, FoundSequence};
use super::{DataOptions, fill};
use crate::data::free_label::FREE_INTEGER;
use crate::error::{Error, Location, Result};
use crate::model::strict_json;

type Object = Map<String, Value>;

/// Reads one object per line.
pub(super) fn read_lines(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let mut lines = Lines::new(name, bytes);
    let mut rows = Vec::new();
    while let Some((number, line)) = lines.advance()? {
        if line.iter().all(|byte| b" \t\r".contains(byte)) {
            continue;
        }
        let location =
            || Location { line: Some(number as usize), sequence: Some(rows.len() + 1), ..Location::file(name) };
        let help = "write one object per line, like {\"tokens\": [\"a\", \"b\"], \"labels\": [\"X\", \"Y\"]}";
        match strict_json::parse_exact(line) {
            Ok(Value::Object(row)) => rows.push((number, row)),
            Ok(_) => return Err(Error::data(location(), "no object", help)),
            Err(what) => return Err(Error::data(location(), what, help)),
        }
    }
    one_row_of_texts(name, &rows, options)?;
    convert(name, rows.into_iter().map(|(line, row)| (Some(line), row)).collect(), &ServerNotes::default(), options)
}

/// Refuses a list of texts in a field of that name: it may be a column of a table, all of which stands in one line.
fn one_row_of_texts(name: &str, rows: &[(u32, Object)], options: &DataOptions) -> Result<()> {
    let texts = |row: &Object| {
        let field = field_choice::known_tokens(row).ok().filter(|field| field == "text" || field == "sentence")?;
        let list = row[&field].as_array()?;
        let blanks = list.iter().filter_map(Value::as_str).any(|text| text.contains(char::is_whitespace));
        (blanks || (rows.len() == 1 && list.iter().any(Value::is_string))).then_some(field)
    };
    if options.format.is_some() || options.tokens_from.is_some() {
        return Ok(());
    }
    let Some((line, field)) = rows.iter().find_map(|(line, row)| Some((line, texts(row)?))) else { return Ok(()) };
    let what = format!("{field:?} is a list, which could be the tokens of one sequence or the texts of several");
    let help = "give `format`: json for a list for each field, jsonl for an object for each sequence";
    Err(Error::data(Location { line: Some(*line as usize), ..Location::file(name) }, what, help))
}

/// Reads a file that is one value of JSON.
pub(super) fn read_whole(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let refuse = |what: String, help: &str| Error::data(Location::file(name), what, help);
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let help = "is the file complete? Objects that follow each other stand one per line: jq -c . FILE > data.jsonl";
    let value = strict_json::parse_exact(text).map_err(|what| refuse(what, help))?;
    let (rows, notes) = match value {
        Value::Array(rows) => (rows, ServerNotes::default()),
        Value::Object(mut fields) => match (fields.shift_remove("rows"), fields.shift_remove("features")) {
            (Some(Value::Array(rows)), features) => ServerNotes::take(rows, features, &fields),
            (None, features) if fields.values().any(Value::is_array) || fields.contains_key("tokens") => {
                (field_columns::rows(name, fields, options)?, ServerNotes { features, ..ServerNotes::default() })
            }
            _ => {
                let help = "take the list of sequences out of it: jq -c '.NAME[]' FILE > data.jsonl";
                return Err(refuse("an object without a list of sequences".into(), help));
            }
        },
        _ => return Err(refuse("neither a list nor an object".into(), help)),
    };
    let objects = rows.into_iter().enumerate().map(|(i, row)| {
        if let Value::Object(row) = row {
            return Ok((None, row));
        }
        let location = Location { sequence: Some(i + 1), ..Location::file(name) };
        let help = "give objects, like [{\"tokens\": [\"a\", \"b\"], \"labels\": [\"X\", \"Y\"]}]";
        Err(Error::data(location, "an entry of the list that is no object", help))
    });
    let mut found = convert(name, objects.collect::<Result<_>>()?, &notes, options)?;
    found.data.warnings.extend(notes.warning);
    Ok(found)
}

/// Takes tokens and labels out of the objects.
fn convert(
    name: &str,
    rows: Vec<(Option<u32>, Object)>,
    served: &ServerNotes,
    options: &DataOptions,
) -> Result<FoundData> {
    let mut converted = Converted::new(name);
    let location = |i: usize, line: Option<u32>, token| Location {
        line: line.map(|line| line as usize),
        sequence: Some(i + 1),
        token,
        ..Location::file(name)
    };
    let Some((line, first)) = rows.first() else {
        let help = "give a list with an object for each sequence";
        return Err(Error::data(Location::file(name), "an empty file: it has no sequences", help));
    };
    let chosen = ChosenFields::choose(first, options);
    let fields = chosen.map_err(|(what, help)| Error::data(location(0, *line, None), what, help))?;
    let names = fields.labels.as_ref().and_then(|field| field_choice::class_names(served.features.as_ref()?, field));
    let (mut ignored, mut split): (Object, bool) = (Object::new(), false);
    for (i, (line, mut row)) in rows.into_iter().enumerate() {
        if let Some(field) = served.cut_short(i, &fields) {
            let what = format!("{field:?} is cut short by the server (\"truncated_cells\")");
            return Err(Error::data(
                location(i, line, None),
                what,
                "download the dataset's files instead of its preview",
            ));
        }
        let taken = take(&mut row, &fields).and_then(|(tokens, labels, text)| {
            split |= text;
            Ok((tokens, names.as_ref().map_or(Ok(labels.clone()), |names| named(labels, names))?))
        });
        let (tokens, labels) =
            taken.map_err(|(token, what, help)| Error::data(location(i, line, token), what, help))?;
        if fields.labels.is_none() && options.labels_from.is_none() {
            // The first row has none of these; so it is no choice of fields, but a row without labels.
            let found = field_choice::may_hold_labels(&row)
                .map(|field| format!("the field {field:?}, which the first row has not"));
            let help = "give labels in every row or in none; `labels_from` none ignores them";
            found.map_or(Ok(()), |what| Err(Error::data(location(i, line, None), what, help)))?;
        }
        let told = fill::told_by_row(&row, tokens.len())
            .map_err(|what| Error::data(location(i, line, None), what, fill::MASK_HELP))?;
        ignored.extend(row.into_iter().map(|(field, _)| (field, Value::Null)));
        let lines = line.map_or(Vec::new(), |line| vec![line; tokens.len().max(1)]);
        converted.push(FoundSequence { tokens, labels, lines, told });
    }
    let mut notes: Vec<String> =
        names.iter().map(|names| format!("{} label names from its features", names.len())).collect();
    if !ignored.is_empty() {
        let ignored: Vec<String> = ignored.into_iter().map(|(field, _)| field).collect();
        notes.push(format!("other fields ignored ({})", some_names(&ignored)));
    }
    let shown = format!("{:?}{}", fields.tokens, if split { ", split at white space" } else { "" });
    let labels_from = fields.labels.map(|field| format!("{field:?}"));
    Ok(FoundData { data: converted.finish(options)?, tokens_from: shown, labels_from, notes })
}

/// The token at fault, what is wrong, and what would help.
type RowFault = (Option<usize>, String, &'static str);

/// The tokens and labels of an object, and whether the tokens are a text.
fn take(row: &mut Object, fields: &ChosenFields) -> std::result::Result<(Vec<Value>, FoundLabels, bool), RowFault> {
    let fault = |what: String, help| Err((None, what, help));
    let (tokens, text) = match row.shift_remove(&fields.tokens) {
        Some(Value::Array(tokens)) => (tokens, false),
        Some(Value::String(text)) => (text.split_whitespace().map(Value::from).collect(), true),
        Some(_) => {
            return fault(format!("{:?} is neither a list nor a text", fields.tokens), "give another `tokens_from`");
        }
        None => return fault(format!("no field {:?}", fields.tokens), "give it in every row"),
    };
    let Some(field) = &fields.labels else { return Ok((tokens, FoundLabels::None, text)) };
    let labels = match row.shift_remove(field) {
        Some(Value::Array(labels)) => FoundLabels::Each(labels),
        Some(label @ (Value::String(_) | Value::Number(_) | Value::Null)) => FoundLabels::One(label),
        Some(_) => return fault(format!("{field:?} is neither a list nor a label"), "give another `labels_from`"),
        None => return fault(format!("no field {field:?}"), "give labels in every row or in none"),
    };
    Ok((tokens, labels, text))
}

/// Labels by their names; -100 and null may be anything.
fn named(labels: FoundLabels, names: &[String]) -> std::result::Result<FoundLabels, RowFault> {
    let name = |(t, label): (usize, Value)| match label.as_i64() {
        Some(FREE_INTEGER) => Ok(FREE),
        _ if label.is_null() => Ok(FREE),
        Some(k) => {
            let known = usize::try_from(k).ok().and_then(|k| names.get(k));
            let fault = || {
                (
                    Some(t + 1),
                    format!("the label {k}, where there are {} names", names.len()),
                    "are these its features?",
                )
            };
            known.map(|name| name.as_str().into()).ok_or_else(fault)
        }
        None => Ok(label),
    };
    match labels {
        FoundLabels::Each(labels) => {
            Ok(FoundLabels::Each(labels.into_iter().enumerate().map(name).collect::<std::result::Result<_, _>>()?))
        }
        FoundLabels::One(label) => {
            Ok(FoundLabels::One(name((0, label)).map_err(|(_, what, help)| (None, what, help))?))
        }
        FoundLabels::None => Ok(FoundLabels::None),
    }
}
