//! The sequences of a dataset as a model reads them, and what is wanted of their tokens.

use std::collections::HashMap;

use crate::model::{Mask, Model, Numbers};
use crate::number::Dyadic;
use crate::read::data::Data;
use crate::rules::ball::Ball;
use crate::rules::judge::{Inputs, Vectors, Wanted, Wishes};

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

impl<'a> Inputs<'a> {
    /// The tokens of a dataset for a model of floats; an error says what does not fit and where.
    pub fn new(model: &'a Model, data: &'a Data) -> Result<Self, String> {
        room(model, data)?;
        let values = &data.values;
        let matrix = || match &model.embedding {
            Some(Numbers::Floats(all)) => Ok(all),
            _ => Err("exact models are judged in real arithmetic".to_owned()),
        };
        let vectors = match &model.vocabulary {
            Some(vocabulary) if values.d == 0 => {
                let rows = values.names.iter().map(|word| Ok(find(vocabulary, word)? as u32));
                Vectors::Rows(matrix()?, rows.collect::<Result<_, String>>()?)
            }
            None if values.d == model.d => Vectors::Flat(&values.entries, values.d),
            None => return Err(format!("the model reads vectors of dimension {}, and the data has others", model.d)),
            Some(_) => return Err("the model reads words, and the data has vectors".into()),
        };
        let row = |row: usize| Ok::<_, String>(Vectors::Rows(matrix()?, vec![row as u32]).get(0));
        let start = model.start.map(row).transpose()?;
        Ok(Self { vectors, ids: &data.tokens, offsets: &data.offsets, start })
    }
}

pub(super) fn find(vocabulary: &[(String, usize)], word: &str) -> Result<usize, String> {
    let at = |word: &str| vocabulary.binary_search_by(|(known, _)| known.as_str().cmp(word)).ok();
    let at = at(word).or_else(|| at(UNKNOWN));
    at.map(|at| vocabulary[at].1).ok_or_else(|| format!("the model does not know the word {word:?}"))
}

/// What is wanted of every token; `tolerance` is for labels that are vectors. An error says what the model cannot give.
pub fn wanted<'a>(model: &Model, data: &'a Data, tolerance: Option<Ball>) -> Result<Wishes<'a>, String> {
    let labels = data.labels.as_ref().ok_or("the data has no labels")?;
    let (names, values) = (model.head.as_ref().and_then(|head| head.labels.as_ref()), &data.label_values);
    if values.d == 0 {
        let names = names.ok_or("the data has classes, and the model gives vectors")?;
        let numbers: HashMap<&str, usize> = names.iter().enumerate().map(|(l, name)| (name.as_str(), l)).collect();
        let one = |class: &String| Wanted::Label(numbers.get(class.as_str()).copied());
        return Ok(Wishes { labels, each: values.names.iter().map(one).collect() });
    }
    let outputs = model.head.as_ref().map_or(model.d, |head| head.bias.len());
    if names.is_some() || outputs != values.d {
        return Err(format!("the labels are vectors of dimension {}, which the model does not give", values.d));
    }
    let tolerance = tolerance.ok_or("the labels are vectors, and no tolerance was given")?;
    let one = |target: &[Dyadic]| Wanted::Near(target.to_vec(), tolerance);
    Ok(Wishes { labels, each: values.entries.chunks_exact(values.d).map(one).collect() })
}
