//! JSON without surprises: an object that names a field twice is refused, because two readers could read it two ways.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, its fields in the order of the file.
    Object(Vec<(String, Json)>),
}

/// Reads one JSON value; what follows it must be white space.
pub fn parse(bytes: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(bytes).map_err(|e| e.to_string())
}

impl Json {
    /// A field of an object; null where it is absent or this is no object.
    pub fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(fields) => fields.iter().find(|(key, _)| key == name).map_or(&Json::Null, |(_, value)| value),
            _ => &Json::Null,
        }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    /// A whole number that fits `usize`.
    pub fn size(&self) -> Option<usize> {
        if let Json::Integer(value) = self { usize::try_from(*value).ok() } else { None }
    }

    /// Any number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Json::Integer(value) => Some(*value as f64),
            Json::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// The items of an array.
    pub fn list(&self) -> Option<&[Json]> {
        if let Json::List(items) = self { Some(items) } else { None }
    }

    /// The fields of an object.
    pub fn object(&self) -> Option<&[(String, Json)]> {
        if let Json::Object(fields) = self { Some(fields) } else { None }
    }

    /// Whether this is null (or absent).
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some((key, value)) = entries.next_entry::<String, Json>()? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format!("the field {key:?} appears twice")));
            }
            fields.push((key, value));
        }
        Ok(Json::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_named_twice_is_refused() {
        assert!(parse(br#"{"a": 1, "a": 2}"#).unwrap_err().contains("appears twice"));
        assert!(parse(br#"[{"a": {"b": 1, "b": 1}}]"#).is_err());
        assert_eq!(parse(br#"{"a": 1, "b": 1.5}"#).unwrap().get("b"), &Json::Number(1.5));
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_crash() {
        assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
    }
}
