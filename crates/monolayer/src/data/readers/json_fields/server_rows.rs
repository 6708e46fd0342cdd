//! What the server of Hugging Face datasets gives: rows with their cells, some cut short, and perhaps not all rows.

use serde_json::Value;

use super::Object;
use super::field_choice::ChosenFields;
use crate::data::readers::thousands_apart;

/// What stands around the rows of such a file; nothing for others.
#[derive(Debug, Default)]
pub(super) struct ServerNotes {
    pub(super) features: Option<Value>,
    /// The fields of each row that the server cut short.
    pub(super) truncated: Vec<Vec<Value>>,
    pub(super) warning: Option<String>,
}

impl ServerNotes {
    /// The rows of an answer, and what stands around them.
    pub(super) fn take(rows: Vec<Value>, features: Option<Value>, around: &Object) -> (Vec<Value>, Self) {
        let mut notes = Self { features, ..Self::default() };
        let total = around.get("num_rows_total").and_then(Value::as_u64);
        let partial = around.get("partial") == Some(&Value::Bool(true));
        let count = |n: u64| thousands_apart(&n.to_string());
        let here = rows.len() as u64;
        notes.warning = match total.filter(|&total| total > here) {
            Some(total) => Some(format!("{} of {} rows: the file is a part of a dataset", count(here), count(total))),
            None => partial.then(|| "\"partial\": the file is a part of a dataset".to_owned()),
        };
        let unwrapped = rows.into_iter().map(|mut row| {
            let Some(inner) = row.get_mut("row").map(Value::take) else { return row };
            let cut = row.get("truncated_cells").and_then(Value::as_array);
            notes.truncated.push(cut.cloned().unwrap_or_default());
            inner
        });
        let rows = unwrapped.collect();
        (rows, notes)
    }

    /// A field of tokens or labels that is cut short in row `i`.
    pub(super) fn cut_short(&self, i: usize, fields: &ChosenFields) -> Option<&str> {
        let mut cut = self.truncated.get(i)?.iter().filter_map(Value::as_str);
        cut.find(|field| *field == fields.tokens || Some(*field) == fields.labels.as_deref())
    }
}
