//! The sequences of a dataset as a model reads them, and what is wanted of their tokens.

use std::collections::HashMap;

use crate::model::{Mask, Model, Numbers};
use crate::number::Dyadic;
use crate::read::data::Data;
use crate::rules::ball::Ball;
use crate::rules::judge::{Inputs, Wanted};

/// The name of the row for words that a model does not know.
const UNKNOWN: &str = "<unk>";

/// Whether a model has room for the longest sequence of a dataset; an error says where not.
pub(super) fn room(model: &Model, data: &Data) -> Result<(), String> {
    let longest = data.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
    let places = longest + usize::from(model.start.is_some());
    if let Some(most) = model.max_length.filter(|most| *most < places) {
        return Err(format!("a sequence needs {places} places, and the model has {most}"));
    }
    for layer in &model.layers {
        if let Some(Mask::Matrix(n, _)) = layer.attention.as_ref().map(|a| &a.mask)
            && *n < longest
        {
            return Err(format!("a sequence has {longest} tokens, and the mask is for {n}"));
        }
    }
    Ok(())
}

impl Inputs {
    /// The tokens of a dataset for a model of floats; an error says what does not fit and where.
    pub fn new(model: &Model, data: &Data) -> Result<Self, String> {
        room(model, data)?;
        let values = &data.values;
        let row = |row: usize| match &model.embedding {
            Some(Numbers::Floats(all)) => Ok((row * model.d..(row + 1) * model.d).map(|i| all.get(i)).collect()),
            _ => Err("exact models are judged in real arithmetic".to_owned()),
        };
        let vectors = match &model.vocabulary {
            Some(vocabulary) if values.d == 0 => {
                values.names.iter().map(|word| row(find(vocabulary, word)?)).collect::<Result<_, _>>()?
            }
            None if values.d == model.d => values.entries.chunks_exact(values.d).map(<[Dyadic]>::to_vec).collect(),
            None => return Err(format!("the model reads vectors of dimension {}, and the data has others", model.d)),
            Some(_) => return Err("the model reads words, and the data has vectors".into()),
        };
        let start = model.start.map(row).transpose()?;
        Ok(Self { vectors, ids: data.tokens.clone(), offsets: data.offsets.clone(), start })
    }
}

pub(super) fn find(vocabulary: &[(String, usize)], word: &str) -> Result<usize, String> {
    let at = |word: &str| vocabulary.binary_search_by(|(known, _)| known.as_str().cmp(word)).ok();
    let at = at(word).or_else(|| at(UNKNOWN));
    at.map(|at| vocabulary[at].1).ok_or_else(|| format!("the model does not know the word {word:?}"))
}

/// What is wanted of every token; `tolerance` is for labels that are vectors. An error says what the model cannot give.
pub fn wanted(model: &Model, data: &Data, tolerance: Option<Ball>) -> Result<Vec<Wanted>, String> {
    let labels = data.labels.as_ref().ok_or("the data has no labels")?;
    let (names, values) = (model.head.as_ref().and_then(|head| head.labels.as_ref()), &data.label_values);
    if values.d == 0 {
        let names = names.ok_or("the data has classes, and the model gives vectors")?;
        let numbers: HashMap<&str, usize> = names.iter().enumerate().map(|(l, name)| (name.as_str(), l)).collect();
        let of: Vec<Option<usize>> = values.names.iter().map(|class| numbers.get(class.as_str()).copied()).collect();
        let one = |label: &Option<u32>| label.map_or(Wanted::Free, |label| Wanted::Label(of[label as usize]));
        return Ok(labels.iter().map(one).collect());
    }
    let outputs = model.head.as_ref().map_or(model.d, |head| head.bias.len());
    if names.is_some() || outputs != values.d {
        return Err(format!("the labels are vectors of dimension {}, which the model does not give", values.d));
    }
    let tolerance = tolerance.ok_or("the labels are vectors, and no tolerance was given")?;
    let target = |at: u32| values.entries[at as usize * values.d..(at as usize + 1) * values.d].to_vec();
    let one = |label: &Option<u32>| label.map_or(Wanted::Free, |at| Wanted::Near(target(at), tolerance));
    Ok(labels.iter().map(one).collect())
}
