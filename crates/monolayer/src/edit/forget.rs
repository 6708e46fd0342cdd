//! Exact forgetting: the model that there would be had it never seen some sequences.

use std::collections::HashSet;

use crate::data::{Dataset, Labels, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::memorize::{Compiled, Memorizer};
use crate::model::AnyModel;

/// What to forget, and how.
///
/// ```
/// use monolayer::edit::Forget;
/// use monolayer::{Dataset, Memorizer};
///
/// let data = Dataset::from_sequences(&[["May", "sails"], ["in", "May"]], &[["PER", "O"], ["O", "DATE"]])?;
/// let model = Memorizer::new().compile(&data)?.model().clone();
/// let secret = Dataset::from_sequences(&[["in", "May"]], &[["O", "DATE"]])?;
/// let forgotten = Forget::new(&data, &secret).from(&model)?;
/// let rest = Dataset::from_sequences(&[["May", "sails"]], &[["PER", "O"]])?;
/// let never_seen = Memorizer::new().like(&model)?.compile(&rest)?;
/// assert_eq!(forgotten.compiled.model(), never_seen.model());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Forget<'a> {
    data: &'a Dataset,
    sequences: &'a Dataset,
    fresh: Option<u64>,
}

/// A model that has forgotten.
#[derive(Debug, Clone)]
pub struct Forgotten {
    /// The model, compiled from the rest of the data.
    pub compiled: Compiled,
    /// The rest of the data.
    pub rest: Dataset,
    /// How many sequences of the data were left out.
    pub sequences: usize,
    /// How many tokens these have.
    pub tokens: usize,
}

impl<'a> Forget<'a> {
    /// Forgets sequences of the data that a model was made from: all copies of each.
    pub fn new(data: &'a Dataset, sequences: &'a Dataset) -> Self {
        Self { data, sequences, fresh: None }
    }

    /// With new codes, a new projection and the words of the rest alone, drawn with a seed: nothing of the old model is kept but its
    /// settings.
    #[must_use]
    pub fn fresh(self, seed: u64) -> Self {
        Self { fresh: Some(seed), ..self }
    }

    /// The model that there would be had it never seen these sequences: that of the rest of the data, in the coordinates of the
    /// model given, or in new ones.
    pub fn from(&self, model: &AnyModel) -> Result<Forgotten> {
        let forgotten = sequence_words(self.sequences)?;
        let all = sequence_words(self.data)?;
        let known: HashSet<&Vec<&str>> = all.iter().collect();
        if let Some(i) = forgotten.iter().position(|sequence| !known.contains(sequence)) {
            let location = self.sequences.location(self.sequences.offsets[i]);
            let what = "a sequence to forget that is not in the data";
            return Err(Error::data(location, what, "the model was not made from it, as far as the data tells"));
        }
        let left_out: HashSet<&Vec<&str>> = forgotten.iter().collect();
        let keep: Vec<bool> = all.iter().map(|sequence| !left_out.contains(sequence)).collect();
        let rest = part(self.data, &keep)?;
        let memorizer = match self.fresh {
            None => Memorizer::new().like(model)?,
            Some(seed) => Memorizer::settings_of(model, seed)?,
        };
        Ok(Forgotten {
            compiled: memorizer.compile(&rest)?,
            sequences: self.data.sequences() - rest.sequences(),
            tokens: self.data.tokens() - rest.tokens(),
            rest,
        })
    }
}

/// The words of each sequence.
fn sequence_words(data: &Dataset) -> Result<Vec<Vec<&str>>> {
    if !matches!(data.tokens, Tokens::Words { .. }) {
        return Err(Error::mismatch("data of vectors", "only models of words can forget"));
    }
    Ok(data.ranges().map(|range| range.map(|t| data.word(t).unwrap_or_default()).collect()).collect())
}

/// Some sequences of a dataset, as if the others had never been there.
fn part(data: &Dataset, keep: &[bool]) -> Result<Dataset> {
    if !keep.contains(&true) {
        return Err(Error::mismatch("nothing of the data is left", "a model needs at least one sequence"));
    }
    let ranges: Vec<_> = data.ranges().zip(keep).filter(|(_, keep)| **keep).map(|(range, _)| range).collect();
    let tokens: Vec<usize> = ranges.iter().cloned().flatten().collect();
    let mut offsets = vec![0];
    offsets.extend(ranges.iter().scan(0, |end, range| {
        *end += range.len();
        Some(*end)
    }));
    let (mut vocabulary, mut names) = (Vocabulary::default(), Vocabulary::default());
    let word_ids = tokens.iter().map(|&t| vocabulary.add(data.word(t).unwrap_or_default())).collect();
    let labels = match &data.labels {
        Labels::Classes { .. } => {
            let label_ids = tokens.iter().map(|&t| data.label(t).map(|label| names.add(label))).collect();
            Labels::Classes { label_ids, names }
        }
        _ => return Err(Error::mismatch("data without classes", "give the labels that the model was made from")),
    };
    Ok(Dataset {
        tokens: Tokens::Words { word_ids, vocabulary },
        labels,
        offsets,
        lines: tokens.iter().filter_map(|&t| data.lines.get(t).copied()).collect(),
        ..data.clone()
    })
}
