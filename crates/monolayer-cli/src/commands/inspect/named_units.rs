//! `--unit` and `--word`: what hidden units do, in words, as names.json has it.

use std::path::Path;

use anyhow::Result;
use monolayer::model::names::{Firing, NamedUnit, UnitKind};
use monolayer::{AnyModel, Error, ModelNames};
use serde_json::{Value, json};

use crate::commands::unit_words::{digits, id_digits, tokens, word as word_of};
use crate::output::count;

/// How many tokens a sentence names.
const SHOWN: usize = 12;

/// The unit of a number, or the units that fire for a word; for machines and for people.
pub fn about(dir: &Path, model: &AnyModel, unit: Option<usize>, word: Option<&str>) -> Result<(Value, String)> {
    let missing = || {
        let what = "the model has no names.json, which `memorize` writes for words with classes";
        Error::mismatch(what, "leave --unit and --word out, or memorize the data again")
    };
    let names = ModelNames::open(dir)?.ok_or_else(missing)?;
    if let Some(unit) = unit.filter(|&unit| unit >= names.units.len()) {
        let what = format!("unit {unit} of {}", names.units.len());
        return Err(Error::mismatch(what, "units are counted from 0").into());
    }
    if let Some(word) = word.filter(|word| model.vocabulary().is_none_or(|known| known.get(word).is_none())) {
        return Err(Error::mismatch(format!("{word:?} is no word of the model"), "see its vocabulary.json").into());
    }
    let of_word = |firing: &Firing| word.is_none_or(|word| firing.word.as_ref().is_none_or(|own| own == word));
    let chosen: Vec<NamedUnit> = names
        .units
        .into_iter()
        .filter(|named| unit.is_none_or(|unit| unit == named.unit))
        .map(|named| NamedUnit { fires: named.fires.into_iter().filter(&of_word).collect(), ..named })
        .filter(|named| unit.is_some() || !named.fires.is_empty())
        .collect();
    // Places are counted from 1 for people, and the start token has none.
    let first = usize::from(model.config().start.is_none());
    let exact = id_digits(&model.config().dtype);
    let text: String = chosen.iter().map(|named| sentence(named, first, exact)).collect();
    let none = "no hidden unit fires for it: it gets the label that wins without units\n";
    Ok((json!({ "ids": names.ids, "units": chosen }), if text.is_empty() { none.to_owned() } else { text }))
}

fn sentence(named: &NamedUnit, first: usize, exact: usize) -> String {
    let shown: Vec<String> = named.fires.iter().take(SHOWN).map(|firing| tokens(firing, first, exact)).collect();
    let more = match named.fires.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {} more", count(more)),
    };
    let fires = if shown.is_empty() { "no token of the data".to_owned() } else { shown.join("; ") + &more };
    let per = match named.kind {
        UnitKind::Context => "per unit of the id beyond that",
        _ => "per unit of what it computes",
    };
    let adds: Vec<String> =
        named.adds.iter().map(|(label, x)| format!("{} to {}", digits(*x), word_of(label))).collect();
    let computes = match named.activation {
        Some([least, most]) if least == most => format!(" It computes {} for them.", digits(least)),
        Some([least, most]) => format!(" It computes {} to {} for them.", digits(least), digits(most)),
        None => String::new(),
    };
    let adds = if adds.is_empty() { "nothing".to_owned() } else { adds.join(", ") };
    let others = named.adds_others.map_or(String::new(), |x| format!(", at most {} to other labels", digits(x)));
    format!("unit {} fires for {fires}.{computes} It adds {adds}{others}, {per}.\n", named.unit)
}
