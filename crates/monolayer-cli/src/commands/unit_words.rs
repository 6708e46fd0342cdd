//! Hidden units in words.

use monolayer::model::names::Firing;

/// Tokens for which a unit fires. Places are counted from `first` for people; `exact` digits tell all ids of the data apart.
pub fn tokens(firing: &Firing, first: usize, exact: usize) -> String {
    let word = firing.word.as_deref().map_or_else(|| "any word".to_owned(), word);
    let place = firing.place.map_or(String::new(), |place| format!(" at place {}", place + first));
    let bound = |side: &str, bound: Option<f64>| {
        bound.map_or(String::new(), |x| format!(" where the context id is {side} {}", significant(x, exact)))
    };
    format!("{word}{place}{}{}", bound("above", firing.id_above), bound("below", firing.id_below))
}

/// A word for a line of text: as it is, or quoted where it could be taken for a part of the line, or cannot be seen.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.'$%&/".contains(c);
    let is_plain = text.chars().all(plain) && text.contains(char::is_alphanumeric) && text != "and";
    if is_plain { text.to_owned() } else { format!("{text:?}") }
}

/// The digits that ids of a precision have.
pub fn id_digits(dtype: &str) -> usize {
    if dtype == "f32" { 7 } else { 15 }
}

/// A number in so many digits at most.
pub fn significant(x: f64, digits: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    let text = format!("{x:.*e}", digits - 1);
    let rounded: f64 = text.parse().unwrap_or(x);
    if (1e-4..1e9).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

/// A number in a few digits.
pub fn digits(x: f64) -> String {
    significant(x, if x.abs() >= 1e3 { 6 } else { 4 })
}
