//! One line of JSON: its tokens and labels go straight into the values of the whole file, so that an error knows the
//! column and the token.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::{Fault, ReadValues, SHAPE};
use crate::data::free_label::FREE_INTEGER;

/// Which fields a line has.
#[derive(Default, Clone, Copy)]
pub(super) struct Fields {
    pub(super) tokens: bool,
    pub(super) labels: bool,
}

/// Adds the tokens and labels of a line to those of the lines before.
pub(super) fn parse(text: &str, tokens: &mut ReadValues, labels: &mut ReadValues) -> Result<Fields, Fault> {
    let mut row = LineReader { tokens, labels, watch: Watch::default() };
    let mut json = serde_json::Deserializer::from_str(text);
    let fields = json.deserialize_map(&mut row).and_then(|fields| json.end().map(|()| fields));
    fields.map_err(|error| row.watch.explain(&error, text))
}

/// How far the parser has come in a line, for its errors.
#[derive(Default)]
struct Watch {
    /// The token, counted from 1, that is being read or that a label is being read for.
    token: Option<usize>,
    /// What is wrong, where that is more than the parser's own words.
    fault: Option<Fault>,
}

impl Watch {
    fn explain(self, error: &serde_json::Error, text: &str) -> Fault {
        let column = Some(error.column()).filter(|&column| column > 0);
        let fault = self.fault.unwrap_or_else(|| {
            let near = text.get(error.column().saturating_sub(1)..).unwrap_or("");
            if near.starts_with("NaN") || near.starts_with("Infinity") {
                return Fault::new("a number that is not finite", "remove or replace it: JSON has no NaN or Infinity");
            }
            let message = error.to_string();
            let position = format!(" at line {} column {}", error.line(), error.column());
            let message = message.strip_suffix(&position).unwrap_or(&message);
            let range = "numbers are 64-bit floats, which end near 1.8e308";
            Fault::new(message, if message == "number out of range" { range } else { SHAPE })
        });
        Fault { column, token: self.token, ..fault }
    }

    fn refuse<E: serde::de::Error>(&mut self, fault: Fault) -> E {
        self.fault = Some(fault);
        E::custom("refused")
    }
}

/// A line being read.
struct LineReader<'a> {
    tokens: &'a mut ReadValues,
    labels: &'a mut ReadValues,
    watch: Watch,
}

impl<'de> Visitor<'de> for &mut LineReader<'_> {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<String>()? {
            let (seen, values, labels) = match key.as_str() {
                "tokens" => (&mut fields.tokens, &mut *self.tokens, false),
                "labels" => (&mut fields.labels, &mut *self.labels, true),
                _ => return Err(self.watch.refuse(Fault::new(format!("unknown field {key:?}"), SHAPE))),
            };
            if std::mem::replace(seen, true) {
                let what = format!("the field {key:?} a second time");
                return Err(self.watch.refuse(Fault::new(what, "give every field once")));
            }
            map.next_value_seed(List { values, labels, watch: &mut self.watch })?;
        }
        Ok(fields)
    }
}

/// The list of a line's tokens, or of its labels.
struct List<'a> {
    values: &'a mut ReadValues,
    labels: bool,
    watch: &'a mut Watch,
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        for token in 1.. {
            self.watch.token = Some(token);
            let item = EntryReader { values: self.values, labels: self.labels, watch: self.watch };
            if list.next_element_seed(item)?.is_none() {
                break;
            }
        }
        self.watch.token = None;
        Ok(())
    }
}

/// One token or label.
struct EntryReader<'a> {
    values: &'a mut ReadValues,
    labels: bool,
    watch: &'a mut Watch,
}

impl<'de> DeserializeSeed<'de> for EntryReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl EntryReader<'_> {
    fn integer<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.values.push_name(text, true).map_err(|fault| self.watch.refuse(fault))
    }

    fn number<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let (what, help) = if self.labels {
            ("label", "labels are strings, integers of 64 bits or vectors; [1.5] is a vector")
        } else {
            ("token", "tokens are strings, integers of 64 bits or vectors")
        };
        Err(self.watch.refuse(Fault::new(format!("the number {text} as a {what}"), help)))
    }
}

impl<'de> Visitor<'de> for EntryReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, an integer or a vector")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<(), E> {
        self.values.push_name(name, false).map_err(|fault| self.watch.refuse(fault))
    }

    fn visit_u64<E: serde::de::Error>(self, k: u64) -> Result<(), E> {
        self.integer(&k.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, k: i64) -> Result<(), E> {
        if self.labels && k == FREE_INTEGER {
            let free = self.values.expect_names(true).and_then(|()| self.values.push_free());
            return free.map_err(|fault| self.watch.refuse(fault));
        }
        self.integer(&k.to_string())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        if !self.labels {
            return Err(E::invalid_type(serde::de::Unexpected::Unit, &self));
        }
        self.values.push_free().map_err(|fault| self.watch.refuse(fault))
    }

    fn visit_f64<E: serde::de::Error>(self, x: f64) -> Result<(), E> {
        self.number(&format!("{x:?}"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let data = self.values.vector().map_err(|fault| self.watch.refuse(fault))?;
        let start = data.len();
        while let Some(x) = entries.next_element::<f64>()? {
            data.push(x);
        }
        let length = data.len() - start;
        self.values.end_vector(length).map_err(|fault| self.watch.refuse(fault))
    }
}
