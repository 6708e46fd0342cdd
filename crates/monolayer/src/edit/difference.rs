//! difference.json: how a model differs from the one that it was edited from.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::model::directory::{parse_json, read_file};
use crate::model::{AnyModel, certificate};

/// The version of the file.
pub const FORMAT: &str = "monolayer-difference/1";
/// Its name.
pub const FILE: &str = "difference.json";

/// How a model differs from another: for every sequence of the words of both, up to the longest, and every program that computes
/// both in the same order, scores are equal at every (word, place) that no change names, and elsewhere labels are equal for all
/// ids outside of the intervals of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// [`FORMAT`].
    pub format: String,
    /// The hashes of the files of the model before.
    pub from: Value,
    /// The hashes of the files of the model after.
    pub to: Value,
    /// The numbers that both compute with.
    pub arithmetic: String,
    /// The most tokens of a sequence that the statement speaks of, where there are no positions to say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<usize>,
    /// Whether spare units were filled, so that shapes are the same, or units were appended.
    pub units: UnitsAdded,
    /// Where labels can change.
    pub changes: Vec<Change>,
    /// What takes the edits back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
}

/// Where new units are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitsAdded {
    /// In the place of spare units: all shapes are as before.
    Filled,
    /// Some behind all others.
    Appended,
}

/// Labels that can change, of a word at a place, for ids of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The word.
    pub word: String,
    /// The row of its position; none where there are no positions.
    pub place: Option<usize>,
    /// The lowest and the highest id.
    pub id: [f64; 2],
    /// The label before; none where it may be any.
    pub from: Option<String>,
    /// The label after; none where it may be any.
    pub to: Option<String>,
}

/// What takes edits back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// How many hidden units there were, spare ones included.
    pub hidden: usize,
    /// The units that were spare.
    pub filled: Vec<usize>,
    /// How many words there were.
    pub words: usize,
}

impl Difference {
    /// Reads the difference of a model directory; none where there is none.
    pub fn open(dir: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = dir.as_ref().join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let help = "see docs/format.md for what difference.json holds";
        let value = parse_json(&path, &read_file(&path)?, help)?;
        let difference: Self = serde_json::from_value(value).map_err(|e| Error::model(&path, e.to_string(), help))?;
        if difference.format != FORMAT {
            return Err(Error::model(&path, format!("format {:?}", difference.format), help));
        }
        Ok(Some(difference))
    }

    /// Writes it beside the files of the model after the edits; `from` has those of the model before.
    pub(super) fn write(&self, from: &Path, dir: &Path) -> Result<()> {
        let difference = Self { from: certificate::hashes(from)?, to: certificate::hashes(dir)?, ..self.clone() };
        let text = serde_json::to_string_pretty(&difference).expect("plain data");
        let path = dir.join(FILE);
        std::fs::write(&path, text + "\n").map_err(|e| Error::io(path, e))
    }
}

/// What is said of two model directories without running them.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// What difference.json states, where it is of these two.
    pub stated: Option<Stated>,
    /// What differs: words, labels, fields of config.json, tensors.
    pub parts: Vec<String>,
}

/// What difference.json states of two models.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated {
    /// Where labels can change, from the first model to the second.
    pub changes: Vec<Change>,
    /// Whether the second was edited from the first, and not the other way round.
    pub forward: bool,
}

impl Compared {
    /// Compares two model directories, which were read.
    pub fn of(before: &Path, old: &AnyModel, after: &Path, new: &AnyModel) -> Result<Self> {
        let hashes = [certificate::hashes(before)?, certificate::hashes(after)?];
        let stated = |dir: &Path, from: &Value, to: &Value| -> Result<Option<Vec<Change>>> {
            let found = Difference::open(dir)?;
            Ok(found.filter(|found| found.from == *from && found.to == *to).map(|found| found.changes))
        };
        let forward = stated(after, &hashes[0], &hashes[1])?.map(|changes| Stated { changes, forward: true });
        let backward = stated(before, &hashes[1], &hashes[0])?;
        let reversed = |change: Change| Change { from: change.to, to: change.from, ..change };
        let backward =
            backward.map(|changes| Stated { changes: changes.into_iter().map(reversed).collect(), forward: false });
        Ok(Self { stated: forward.or(backward), parts: parts(old, new) })
    }
}

/// What differs between two models.
fn parts(old: &AnyModel, new: &AnyModel) -> Vec<String> {
    let mut parts = Vec::new();
    let (a, b) = (old.config(), new.config());
    let mut compare = |name: &str, same: bool| {
        if !same {
            parts.push(name.to_owned());
        }
    };
    compare("words", old.vocabulary() == new.vocabulary());
    compare("labels", old.label_names() == new.label_names());
    compare("dtype", a.dtype == b.dtype);
    compare("start token", a.start == b.start);
    compare("hidden units and masks", a.layers == b.layers);
    let (old, new) = (old.tensors(), new.tensors());
    for (name, shape, numbers) in &old {
        let other = new.iter().find(|tensor| tensor.0 == *name);
        if other.is_none_or(|other| other.1 != *shape || other.2 != *numbers) {
            parts.push(name.clone());
        }
    }
    parts.extend(new.iter().filter(|t| old.iter().all(|other| other.0 != t.0)).map(|t| t.0.clone()));
    parts
}
