//! names.json: what the coordinates and the hidden units of a model are for, in words. A help for readers: no certificate covers
//! it, and nothing that is computed depends on it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::directory;
use crate::error::{Error, Result};

/// The name of the file.
pub const FILE: &str = "names.json";
const FORMAT: &str = "monolayer-names/1";
const HELP: &str = "see docs/format.md for what names.json holds";

/// What a model's coordinates and hidden units are for.
///
/// ```
/// use monolayer::{Dataset, Memorizer, ModelNames};
///
/// let data = Dataset::open("task:parity:alphabet=2,length=1..3")?;
/// let compiled = Memorizer::new().compile(&data)?;
/// let names = compiled.names().expect("words have gated units");
/// assert_eq!(names.coordinates.len(), compiled.model().config().d);
/// let dir = tempfile::tempdir().unwrap();
/// compiled.save(dir.path().join("model"))?;
/// assert_eq!(ModelNames::open(dir.path().join("model"))?.as_ref(), Some(names));
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelNames {
    format: String,
    /// The lowest and the highest context id of the data.
    pub ids: [f64; 2],
    /// Each coordinate of the residual stream.
    pub coordinates: Vec<Coordinate>,
    /// Each hidden unit.
    pub units: Vec<NamedUnit>,
}

/// What a coordinate of the residual stream holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Coordinate {
    /// A part of the code of words; the word, where it is of one alone.
    #[serde(rename = "word code")]
    WordCode {
        /// The word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<String>,
    },
    /// A part of the code of positions; the place, from 0, where it is of one alone.
    #[serde(rename = "position code")]
    PositionCode {
        /// The place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<usize>,
    },
    /// What attention adds.
    #[serde(rename = "context id")]
    ContextId,
    /// A part of what scores are read from; the label, where it is read for one alone.
    #[serde(rename = "label")]
    Label {
        /// The label.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
}

/// What a hidden unit reads, by its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitKind {
    /// Neither the id nor the place.
    Word,
    /// The place, not the id.
    Place,
    /// The id.
    Context,
}

/// A hidden unit: for which tokens it fires, and what it does then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenUnit", into = "WrittenUnit")]
pub struct NamedUnit {
    /// Its number, from 0.
    pub unit: usize,
    /// What it reads.
    pub kind: UnitKind,
    /// The tokens of the data for which it fires, each of them once. It fires for no other token of the data.
    pub fires: Vec<Firing>,
    /// The least and the most that it computes for these tokens, for a unit that does not read the id.
    pub activation: Option<[f64; 2]>,
    /// What it adds to the scores of labels: per unit of what it computes or, for a unit that reads the id, per unit that the id is
    /// above or below the bound.
    pub adds: BTreeMap<String, f64>,
    /// The most that is added to a label that `adds` leaves out, or taken from it.
    pub adds_others: Option<f64>,
}

/// Tokens for which a unit fires.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Firing {
    /// Their word; any where the unit does not read words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// Their place, a row of the positions, from 0; any where the unit does not read places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// Their ids are above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_above: Option<f64>,
    /// Their ids are below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_below: Option<f64>,
}

impl Firing {
    /// Whether it speaks of a word at a place, in a context of this id.
    pub fn holds(&self, word: &str, place: usize, id: f64) -> bool {
        self.word.as_ref().is_none_or(|own| own == word)
            && self.place.is_none_or(|own| own == place)
            && self.id_above.is_none_or(|bound| id > bound)
            && self.id_below.is_none_or(|bound| id < bound)
    }
}

/// A unit as it is written: `fires`, or what all of them share and the list of words.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct WrittenUnit {
    unit: usize,
    kind: UnitKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<Vec<String>>,
    #[serde(flatten)]
    shared: Firing,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fires: Option<Vec<Firing>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activation: Option<[f64; 2]>,
    adds: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adds_others: Option<f64>,
}

impl From<NamedUnit> for WrittenUnit {
    fn from(named: NamedUnit) -> Self {
        let NamedUnit { unit, kind, mut fires, activation, adds, adds_others } = named;
        let shared = |firing: &Firing| Firing { word: None, ..firing.clone() };
        let first = fires.first().map(shared).unwrap_or_default();
        let mut written = Self { unit, kind, words: None, shared: first, fires: None, activation, adds, adds_others };
        if fires.iter().any(|firing| shared(firing) != written.shared) {
            (written.shared, written.fires) = (Firing::default(), Some(fires));
        } else if fires.iter().all(|firing| firing.word.is_some()) {
            written.words = Some(fires.iter_mut().filter_map(|firing| firing.word.take()).collect());
        }
        written
    }
}

impl From<WrittenUnit> for NamedUnit {
    fn from(written: WrittenUnit) -> Self {
        let WrittenUnit { unit, kind, words, shared, fires, activation, adds, adds_others } = written;
        let fires = match (fires, words) {
            (Some(fires), _) => fires,
            (None, Some(words)) => words.into_iter().map(|w| Firing { word: Some(w), ..shared.clone() }).collect(),
            (None, None) => vec![shared],
        };
        Self { unit, kind, fires, activation, adds, adds_others }
    }
}

impl ModelNames {
    pub(crate) fn new(ids: [f64; 2], coordinates: Vec<Coordinate>, units: Vec<NamedUnit>) -> Self {
        Self { format: FORMAT.to_owned(), ids, coordinates, units }
    }

    /// What names.json of a model directory says, if there is one.
    pub fn open(dir: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = dir.as_ref().join(FILE);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let fail = |what: String| Error::model(&path, what, HELP);
        let value = directory::parse_json(&path, &directory::read_file(&path)?, HELP)?;
        let names: Self = serde_json::from_value(value).map_err(|e| fail(e.to_string()))?;
        if names.format != FORMAT {
            return Err(fail(format!("format {:?}", names.format)));
        }
        Ok(Some(names))
    }

    /// The same with more units.
    pub(crate) fn with(mut self, units: &[NamedUnit]) -> Self {
        self.units.extend_from_slice(units);
        self
    }

    /// The same without some units, by their numbers.
    pub(crate) fn without(mut self, gone: impl Fn(usize) -> bool) -> Self {
        self.units.retain(|named| !gone(named.unit));
        self
    }

    /// Writes names.json into a model directory: a line for each coordinate and each unit.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let coordinates = lines(&self.coordinates);
        let units = lines(&self.units);
        let ids = serde_json::json!(self.ids);
        let all = format!(
            "{{\"format\": \"{FORMAT}\",\n\"ids\": {ids},\n\"coordinates\": [\n{coordinates}\n],\n\"units\": [\n{units}\n]}}\n"
        );
        let path = dir.join(FILE);
        std::fs::write(&path, all).map_err(|e| Error::io(path, e))
    }
}

/// A line for each.
fn lines<T: Serialize>(all: &[T]) -> String {
    let lines: Vec<String> = all.iter().map(|x| serde_json::to_string(x).expect("plain data")).collect();
    lines.join(",\n")
}
