//! JSON whose fields are not just `tokens` and `labels`: objects per line, in an array, in columns, or as a server of datasets
//! gives them.

mod field_choice;

use serde_json::{Map, Value};

use self::field_choice::ChosenFields;
use super::DataOptions;
use super::lines::Lines;
use super::via_json_lines::{Converted, FREE, FoundData, FoundLabels, FoundSequence};
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
        match strict_json::parse(line) {
            Ok(Value::Object(row)) => rows.push((number, row)),
            Ok(_) => return Err(Error::data(location(), "no object", help)),
            Err(what) => return Err(Error::data(location(), what, help)),
        }
    }
    convert(name, rows.into_iter().map(|(line, row)| (Some(line), row)).collect(), None, options)
}

/// Reads a file that is one value of JSON.
pub(super) fn read_whole(name: &str, bytes: &[u8], options: &DataOptions) -> Result<FoundData> {
    let refuse = |what: String, help: &str| Error::data(Location::file(name), what, help);
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let help = "is the file complete? Objects that follow each other stand one per line: jq -c . FILE > data.jsonl";
    let value = strict_json::parse(text).map_err(|what| refuse(what, help))?;
    let (rows, features) = match value {
        Value::Array(rows) => (rows, None),
        Value::Object(mut fields) => match (fields.shift_remove("rows"), fields.shift_remove("features")) {
            (Some(Value::Array(rows)), features) => {
                let rows = rows.into_iter().map(|mut row| match row.get_mut("row") {
                    Some(inner) => inner.take(),
                    None => row,
                });
                (rows.collect(), features)
            }
            (None, features) if fields.values().any(Value::is_array) || fields.contains_key("tokens") => {
                (columns(name, fields)?, features)
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
    convert(name, objects.collect::<Result<_>>()?, features.as_ref(), options)
}

/// Objects from a list for each field, or the one object that the fields are.
fn columns(name: &str, fields: Object) -> Result<Vec<Value>> {
    let known = ["tokens", "words"].iter().find_map(|field| fields.get(*field));
    let lists = known.or_else(|| fields.values().find(|value| is_nested(value))).filter(|value| is_nested(value));
    let Some(lists) = lists else { return Ok(vec![fields.into()]) };
    let entries = || lists.as_array().into_iter().flatten().filter_map(Value::as_array).flatten();
    if entries().any(Value::is_f64) {
        // The vectors of one sequence.
        return Ok(vec![fields.into()]);
    }
    if entries().all(Value::is_number) {
        let what = "lists of integers, which could be the ids of several sequences or the vectors of one";
        let help = "write JSON lines with one object per sequence; vectors as floats, 1.0 and not 1";
        return Err(Error::data(Location::file(name), what, help));
    }
    let n = lists.as_array().map_or(0, Vec::len);
    let mut rows = vec![Object::new(); n];
    for (field, value) in fields {
        match value {
            Value::Array(list) if list.len() == n => {
                for (row, item) in rows.iter_mut().zip(list) {
                    row.insert(field.clone(), item);
                }
            }
            _ => {
                let what = format!("a field {field:?} that is no list of {n}, as others are");
                return Err(Error::data(
                    Location::file(name),
                    what,
                    "give all columns one length, or an object per sequence",
                ));
            }
        }
    }
    Ok(rows.into_iter().map(Value::Object).collect())
}

/// Whether this is a list of lists.
fn is_nested(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_array))
}

/// Takes tokens and labels out of the objects.
fn convert(
    name: &str,
    rows: Vec<(Option<u32>, Object)>,
    features: Option<&Value>,
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
    let names = fields.labels.as_ref().and_then(|field| field_choice::class_names(features?, field));
    let (mut ignored, mut split): (Vec<String>, bool) = (Vec::new(), false);
    for (i, (line, mut row)) in rows.into_iter().enumerate() {
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
        if options.padding.is_none() && field_choice::shows_padding(&row) {
            let what = format!("{:?} has zeros: sequences are filled up", field_choice::MASK);
            return Err(Error::data(location(i, line, None), what, "give `padding`, the token that fills them up"));
        }
        let others = row.into_iter().map(|(field, _)| field).filter(|field| !ignored.contains(field));
        let others: Vec<String> = others.collect();
        ignored.extend(others);
        let lines = line.map_or(Vec::new(), |line| vec![line; tokens.len().max(1)]);
        converted.push(FoundSequence { tokens, labels, lines });
    }
    let mut notes: Vec<String> =
        names.iter().map(|names| format!("{} label names from its features", names.len())).collect();
    if !ignored.is_empty() {
        notes.push(format!("other fields ignored ({})", ignored.join(", ")));
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
