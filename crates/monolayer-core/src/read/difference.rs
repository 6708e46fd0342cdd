//! difference.json: what somebody claims about two models. Every change is checked, none is believed.

use super::decimal::nearest;
use super::directory::Hashes;
use super::json::{self, Json};
use super::{Limits, Result, at, within};
use crate::number::{Dyadic, Format};

/// A change as written: where the second model may give another label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The token.
    pub word: String,
    /// Its place, from 0; nothing for every place.
    pub place: Option<usize>,
    /// The least and the greatest number that the head reads there.
    pub id: (Dyadic, Dyadic),
    /// The labels of the first model and of the second; nothing for any.
    pub labels: Option<(String, String)>,
}

/// The file as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The hashes of the first model, as certificates list them.
    pub from: Hashes,
    /// Those of the second.
    pub to: Hashes,
    /// The arithmetic of the programs it speaks of.
    pub format: Format,
    /// Whether the second model may have other numbers of hidden units: then programs are meant that add up those of the first as before.
    pub appended: bool,
    /// The most tokens of the sequences it speaks of.
    pub longest: Option<usize>,
    /// The changes.
    pub changes: Vec<Change>,
}

/// Reads the file. What it has beside the fields that are known is not looked at; a change has nothing beside them.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Difference> {
    let json = json::parse(bytes)?;
    json.choice("format", &[("monolayer-difference/1", ())])?;
    let changes = json.need("changes", "a list", Json::list)?;
    within(changes.len(), "changes", "changes", limits.changes)?;
    let one = |(i, json): (usize, &Json)| at(format!("change {}", i + 1), change(json));
    let units = [("filled", false), ("appended", true)];
    Ok(Difference {
        from: at("\"from\"", hashes(json.get("from")))?,
        to: at("\"to\"", hashes(json.get("to")))?,
        format: json.choice("arithmetic", &[("f32", Format::F32), ("f64", Format::F64)])?,
        appended: json.field("units").is_some() && json.choice("units", &units)?,
        longest: json.optional("longest", "a positive integer", Json::positive)?,
        changes: changes.iter().enumerate().map(one).collect::<Result<_>>()?,
    })
}

fn known(json: &Json, names: &[&str]) -> Result<()> {
    let fields = json.object().ok_or("this is not an object")?;
    match fields.iter().find(|(name, _)| !names.contains(&&**name)) {
        Some((name, _)) => Err(format!("{name:?} is no field of it").into()),
        None => Ok(()),
    }
}

fn hashes(json: &Json) -> Result<Hashes> {
    let names = ["config", "tensors", "vocabulary", "mask"];
    known(json, &names)?;
    let [config, tensors, vocabulary, mask] =
        names.map(|name| json.optional(name, "a string", |hash| hash.text().map(str::to_owned)));
    Ok([config?, tensors?, vocabulary?, mask?])
}

fn change(json: &Json) -> Result<Change> {
    known(json, &["word", "place", "id", "from", "to"])?;
    let text = |json: &Json| json.text().map(str::to_owned);
    let ends = |json: &Json| match json.list()? {
        [Json::Number(low), Json::Number(high)] => Some((nearest(low)?, nearest(high)?)),
        _ => None,
    };
    let id = json.need("id", "two numbers within binary64", ends)?;
    if above(id.0, id.1) {
        return Err("\"id\" ends before it begins".into());
    }
    for name in ["place", "from", "to"] {
        // A field that may be null must be there, so that nobody forgets it.
        json.field(name).ok_or_else(|| format!("{name:?} is missing"))?;
    }
    let labels = (json.optional("from", "null or a label", text)?, json.optional("to", "null or a label", text)?);
    let labels = match labels {
        (Some(from), Some(to)) => Some((from, to)),
        (None, None) => None,
        _ => return Err("of \"from\" and \"to\" one is null".into()),
    };
    let place = json.optional("place", "null or a place from 0", Json::size)?;
    Ok(Change { word: json.need("word", "a string", text)?, place, id, labels })
}

/// Whether the first of two numbers of binary64 is above the second.
fn above(a: Dyadic, b: Dyadic) -> bool {
    let place = |x: Dyadic| Format::F64.below(x.m.into(), x.e);
    place(a) > place(b)
}
