//! What a file says about padding beside its tokens: masks of zeros and ones, and lengths.

use serde_json::{Map, Value};

/// Fields and arrays with how many tokens a sequence has.
const LENGTHS: [&str; 6] = ["lengths", "length", "seq_lengths", "sequence_lengths", "seq_lens", "seq_len"];

/// Fields and arrays with 1 for a token and 0 for padding.
const MASKS: [&str; 3] = ["attention_mask", "mask", "input_mask"];

/// Fields and arrays with 1 for padding, as PyTorch has them.
const PADDING_MASKS: [&str; 3] = ["padding_mask", "key_padding_mask", "src_key_padding_mask"];

/// What a field or an array says of padding, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FillKind {
    /// A mask, with 1 for tokens or, inverted, for padding.
    Mask { inverted: bool },
    /// How many tokens a sequence has.
    Length,
}

impl FillKind {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            _ if LENGTHS.contains(&name) => Some(Self::Length),
            _ if MASKS.contains(&name) => Some(Self::Mask { inverted: false }),
            _ if PADDING_MASKS.contains(&name) => Some(Self::Mask { inverted: true }),
            _ => None,
        }
    }
}

/// How many tokens a sequence has without its padding, by a field or an array beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToldLength {
    /// The name of the field or array.
    pub(super) from: String,
    pub(super) length: usize,
    /// Whether there are exactly so many. A field `length` may be about something else if it is larger.
    pub(super) exact: bool,
}

/// An entry of a mask as a number.
fn bit(entry: &Value) -> Option<f64> {
    entry.as_f64().or_else(|| entry.as_bool().map(f64::from))
}

/// How many tokens a mask leaves of `n`, or what is wrong with it.
pub(super) fn length_of_mask(
    entries: impl IntoIterator<Item = Option<f64>>,
    inverted: bool,
    n: usize,
) -> Result<usize, &'static str> {
    let (mut count, mut length) = (0, 0);
    for entry in entries {
        let token = match entry {
            Some(1.0) => !inverted,
            Some(0.0) => inverted,
            _ => return Err("is no list of zeros and ones"),
        };
        if token && length < count {
            return Err("has padding before tokens: only padding at the end is cut off");
        }
        count += 1;
        length += usize::from(token);
    }
    match length {
        _ if count != n => Err("has another length than the tokens"),
        0 => Err("shows nothing but padding"),
        length => Ok(length),
    }
}

/// What would help with a mask that is not understood.
pub(super) const MASK_HELP: &str = "cut the padding off, and leave the mask out";

/// What the other fields of a row say about its padding: what every mask and every length says.
pub(super) fn told_by_row(row: &Map<String, Value>, n: usize) -> Result<Vec<ToldLength>, String> {
    let mut told = Vec::new();
    for (name, value) in row {
        let from = name.clone();
        match (FillKind::of(name), value) {
            (Some(FillKind::Length), Value::Number(number)) => {
                let length = number.as_u64().and_then(|length| usize::try_from(length).ok());
                told.extend(length.map(|length| ToldLength { from, length, exact: false }));
            }
            (Some(FillKind::Mask { inverted }), Value::Array(mask)) => {
                // It may be about the ids of a text that is split into words here; then it says nothing of these.
                let ids = row.get("input_ids").and_then(Value::as_array);
                let of_ids = ids.is_some_and(|ids| ids.len() == mask.len());
                let full = mask.iter().all(|entry| bit(entry) == Some(f64::from(!inverted)));
                if mask.len() != n && (full || of_ids) {
                    continue;
                }
                let length = length_of_mask(mask.iter().map(bit), inverted, n);
                let length = length.map_err(|what| format!("{name:?} {what}"))?;
                told.push(ToldLength { from, length, exact: true });
            }
            _ => (),
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn masks_of_any_type_are_understood() {
        for (mask, expected) in [
            (json!([1, 1, 0]), Ok(2)),
            (json!([1.0, 0.0, 0.0]), Ok(1)),
            (json!([true, true, true]), Ok(3)),
            (json!([true, false, 0]), Ok(1)),
            (json!([0, 1, 1]), Err("has padding before tokens: only padding at the end is cut off")),
            (json!([1, 1]), Err("has another length than the tokens")),
            (json!([0, 0, 0]), Err("shows nothing but padding")),
            (json!([0.0, -1e9, 0.0]), Err("is no list of zeros and ones")),
            (json!([[1], [1], [0]]), Err("is no list of zeros and ones")),
        ] {
            let entries = mask.as_array().unwrap();
            assert_eq!(length_of_mask(entries.iter().map(bit), false, 3), expected, "{mask}");
        }
        assert_eq!(length_of_mask([Some(0.0), Some(0.0), Some(1.0)], true, 3), Ok(2));
    }
}
