//! Takes the last edits of a model back.

use std::path::Path;

use super::difference::{Difference, FILE};
use super::units::remove_units;
use crate::error::{Error, Result};
use crate::model::{AnyModel, ModelNames, Storage, certificate};

/// Writes the model that an edited one was made from: the same tensors, byte for byte, as its difference.json names them, and names.json
/// without the units that are gone. An error where that does not come out.
pub fn undo(dir: impl AsRef<Path>, out: impl AsRef<Path>) -> Result<()> {
    let dir = dir.as_ref();
    let path = dir.join(FILE);
    let difference = Difference::open(dir)?
        .ok_or_else(|| Error::model(&path, "it is missing", "only a model that was edited can be taken back"))?;
    let bad = |what: &str| Error::model(&path, what, "take the model before its edits from elsewhere");
    let undo = difference.undo.as_ref().ok_or_else(|| bad("it does not say how to take the edits back"))?;
    if certificate::hashes(dir)? != difference.to {
        return Err(bad("it is not of this model: the files beside it have other hashes"));
    }
    let mut model = AnyModel::open(dir)?;
    let hidden = model.config().layers.first().map_or(0, |layer| layer.hidden);
    let words = model.vocabulary().map_or(0, crate::Vocabulary::len);
    if model.config().layers.len() != 1 || undo.hidden > hidden || undo.words > words {
        return Err(bad("it names more units or words than there are"));
    }
    let gone = |unit: usize| unit >= undo.hidden || undo.filled.contains(&unit);
    let names = ModelNames::open(dir)?.map(|names| names.without(gone));
    remove_units(&mut model, &undo.filled, undo.hidden);
    remove_words(&mut model, undo.words);
    // How the numbers were stored is not said, but there are few ways, and the hashes tell which it was.
    for storage in [Storage::Auto, Storage::Dense, Storage::Small, Storage::Sparse] {
        let mut same = false;
        let stage = tempfile::tempdir().map_err(|e| Error::io(out.as_ref(), e))?;
        let tried = stage.path().join("model");
        model.save_as(storage, &tried, |dir| {
            same = certificate::hashes(dir)? == difference.from;
            Ok(())
        })?;
        if same {
            return model.save_as(storage, out, |dir| names.iter().try_for_each(|names| names.write(dir)));
        }
    }
    Err(bad("without its edits the model has other bytes than the one before"))
}

/// Leaves the first words of a model.
fn remove_words(model: &mut AnyModel, words: usize) {
    fn remove<T>(model: &mut crate::Model<T>, count: usize) {
        let Some(words) = &mut model.words else { return };
        let mut vocabulary = crate::Vocabulary::default();
        words.vocabulary.names()[..count].iter().for_each(|name| {
            vocabulary.add(name);
        });
        words.vocabulary = vocabulary;
        words.embedding.rows = count;
        words.embedding.data.truncate(count * words.embedding.cols);
    }
    match model {
        AnyModel::F32(model) => remove(model, words),
        AnyModel::F64(model) => remove(model, words),
        AnyModel::Exact(_) => (),
    }
}
