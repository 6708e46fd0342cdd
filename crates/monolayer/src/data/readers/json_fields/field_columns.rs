//! An object with a list for each field, as a table of rows; or the one row that it is.

use serde_json::Value;

use super::Object;
use super::field_choice::known_tokens;
use crate::data::readers::DataOptions;
use crate::error::{Error, Location, Result};

/// What the field of tokens holds.
enum TokenField {
    /// An entry for each row.
    Rows(usize),
    /// The tokens of one row.
    OneRow,
    /// It could be either: what is wrong, and what would help.
    Doubt(&'static str, &'static str),
}

/// Rows from a list for each field, or the one row that the fields are. The field of the tokens alone decides.
pub(super) fn rows(name: &str, fields: Object, options: &DataOptions) -> Result<Vec<Value>> {
    // Without tokens, the choice of fields says what is wrong.
    let field = options.tokens_from.clone().or_else(|| known_tokens(&fields).ok()).unwrap_or_default();
    match fields.get(&field).map_or(TokenField::OneRow, |tokens| token_field(&field, tokens)) {
        TokenField::OneRow => Ok(vec![fields.into()]),
        TokenField::Rows(n) => split(name, fields, n),
        TokenField::Doubt(what, help) => Err(Error::data(Location::file(name), format!("{field:?}: {what}"), help)),
    }
}

fn token_field(field: &str, tokens: &Value) -> TokenField {
    let Some(list) = tokens.as_array().filter(|list| !list.is_empty()) else { return TokenField::OneRow };
    if list.iter().all(Value::is_array) {
        let entries = || list.iter().filter_map(Value::as_array).flatten();
        return match () {
            // The vectors of one sequence.
            () if entries().any(Value::is_f64) => TokenField::OneRow,
            () if entries().all(Value::is_number) => TokenField::Doubt(
                "lists of integers, which could be the ids of several sequences or the vectors of one",
                "write JSON lines with one object per sequence; vectors as floats, 1.0 and not 1",
            ),
            () => TokenField::Rows(list.len()),
        };
    }
    if !list.iter().any(Value::is_string) {
        return TokenField::OneRow;
    }
    // A text for each row, as in rows; or words.
    let blanks = list.iter().filter_map(Value::as_str).any(|text| text.contains(char::is_whitespace));
    match field {
        "text" | "sentence" => TokenField::Rows(list.len()),
        "tokens" | "words" if !blanks => TokenField::OneRow,
        "tokens" | "words" => TokenField::Doubt(
            "blanks in its entries, which could be tokens of one sequence or the texts of several",
            "call texts \"text\", or write JSON lines with one object per sequence",
        ),
        _ if blanks => TokenField::Rows(list.len()),
        _ => TokenField::Doubt(
            "words, which could be one sequence or texts of one word each",
            "call the tokens of one sequence \"tokens\" and texts \"text\", or write JSON lines with one object per sequence",
        ),
    }
}

/// Row i has entry i of each field.
fn split(name: &str, fields: Object, n: usize) -> Result<Vec<Value>> {
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
                let help = "give all columns one length, or an object per sequence";
                return Err(Error::data(Location::file(name), what, help));
            }
        }
    }
    Ok(rows.into_iter().map(Value::Object).collect())
}
