//! Which fields hold tokens and labels, and what classes are called.

use serde_json::Value;

use super::Object;
use crate::data::readers::DataOptions;
use crate::data::readers::fill::FillKind;
use crate::data::readers::recognize::LABEL_NAMES;

/// The fields of tokens and labels.
pub(super) struct ChosenFields {
    pub(super) tokens: String,
    pub(super) labels: Option<String>,
}

/// What is wrong, and what would help.
type Doubt = (String, String);

impl ChosenFields {
    /// Chooses by the options, by names that everybody uses, or not at all.
    pub(super) fn choose(first: &Object, options: &DataOptions) -> Result<Self, Doubt> {
        let tokens = match &options.tokens_from {
            Some(field) => there(first, field, "tokens_from")?,
            None => known_tokens(first)?,
        };
        let labels = match options.labels_from.as_deref() {
            Some("none") if !first.contains_key("none") => None,
            Some(field) => Some(there(first, field, "labels_from")?),
            None => match unique(first, &LABEL_NAMES, "labels_from")? {
                Some(field) => Some(field),
                None => unlabeled(first, &tokens)?,
            },
        };
        Ok(Self { tokens, labels })
    }
}

/// The field of tokens by its name: lists of tokens first, then texts.
pub(super) fn known_tokens(first: &Object) -> Result<String, Doubt> {
    let lists = unique(first, &["tokens", "words"], "tokens_from")?;
    let texts = unique(first, &["text", "sentence"], "tokens_from")?;
    let doubt =
        || (format!("no field of tokens among {}", names(first)), "give `tokens_from`, and `labels_from`".to_owned());
    let ids = first.get("input_ids").map(|_| "input_ids".to_owned());
    lists.or(texts).or(ids).ok_or_else(doubt)
}

fn names(object: &Object) -> String {
    let names: Vec<String> = object.keys().map(|name| format!("{name:?}")).collect();
    if names.is_empty() { "no fields".to_owned() } else { some_names(&names) }
}

/// More names than these are counted, not listed.
const LISTED: usize = 20;

/// Names for people: a few of many.
pub(crate) fn some_names(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let listed = names[..names.len() - more].join(", ");
    if more == 0 { listed } else { format!("{listed} and {more} more") }
}

fn there(object: &Object, field: &str, option: &str) -> Result<String, Doubt> {
    match object.get(field) {
        Some(_) => Ok(field.to_owned()),
        None => Err((format!("no field {field:?} among {}", names(object)), format!("give another `{option}`"))),
    }
}

/// The only one of some fields that is there.
fn unique(object: &Object, known: &[&str], option: &str) -> Result<Option<String>, Doubt> {
    let found: Vec<&&str> = known.iter().filter(|name| object.contains_key(**name)).collect();
    match found[..] {
        [] => Ok(None),
        [only] => Ok(Some((*only).to_owned())),
        [first, second, ..] => {
            let help = format!("give `{option}`: {first} or {second}");
            Err((format!("both {first:?} and {second:?} are there"), help))
        }
    }
}

/// A field that is known to hold labels, or is a list: labels, or spans of the text with labels.
pub(super) fn may_hold_labels(others: &Object) -> Option<&String> {
    let list = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
    let known = |name: &str| LABEL_NAMES.contains(&name);
    others
        .iter()
        .find(|(name, value)| known(name) || (list(value) && FillKind::of(name).is_none()))
        .map(|(name, _)| name)
}

/// No labels, if no other field may hold some.
fn unlabeled(object: &Object, tokens: &str) -> Result<Option<String>, Doubt> {
    let mut others = object.clone();
    others.shift_remove(tokens);
    match may_hold_labels(&others) {
        Some(name) => {
            Err((format!("the field {name:?} may hold the labels"), format!("give `labels_from`: {name}, or none")))
        }
        None => Ok(None),
    }
}

/// The names of a field's classes in the features of a Hugging Face dataset: a list of fields with types, or a type by field.
pub(super) fn class_names(features: &Value, field: &str) -> Option<Vec<String>> {
    let by_name = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some(field);
    let mut kind = match features {
        Value::Array(list) => list.iter().find(by_name)?.get("type")?,
        Value::Object(fields) => fields.get(field)?,
        _ => return None,
    };
    // A list of classes is around the class.
    while let Some(inner) = kind.get("feature") {
        kind = inner;
    }
    let names = kind.get("names")?.as_array()?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}
