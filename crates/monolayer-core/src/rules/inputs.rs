//! The sequences of a dataset as a model reads them.

use super::ball::Ball;
use super::judge::{Inputs, Wanted};
use crate::model::{Mask, Model, Numbers};
use crate::number::Dyadic;
use crate::read::data::{Alphabet, Data, Labels};

/// The name of the row for words that a model does not know.
const UNKNOWN: &str = "<unk>";

impl Inputs {
    /// The tokens of a dataset for a model of floats; an error says what does not fit and where.
    pub fn new(model: &Model, data: &Data) -> Result<Self, String> {
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
        let vectors = match (&data.alphabet, &model.embedding, &model.vocabulary) {
            (Alphabet::Words(words), Some(embedding), Some(vocabulary)) => {
                words.iter().map(|word| row(embedding, find(vocabulary, word)?, model.d)).collect::<Result<_, _>>()?
            }
            (Alphabet::Vectors(points), None, _) if points.d == model.d => {
                points.entries.chunks_exact(points.d).map(<[Dyadic]>::to_vec).collect()
            }
            (Alphabet::Vectors(points), None, _) => {
                return Err(format!("tokens have dimension {}, and the model reads dimension {}", points.d, model.d));
            }
            (Alphabet::Words(_), ..) => return Err("the data has words, and the model reads vectors".into()),
            (Alphabet::Vectors(_), ..) => return Err("the data has vectors, and the model reads words".into()),
        };
        let start = match (model.start, &model.embedding) {
            (Some(at), Some(embedding)) => Some(row(embedding, at, model.d)?),
            _ => None,
        };
        Ok(Self { vectors, ids: data.ids.clone(), offsets: data.offsets.clone(), start })
    }
}

fn find(vocabulary: &[(String, usize)], word: &str) -> Result<usize, String> {
    let at = |word: &str| vocabulary.binary_search_by(|(known, _)| known.as_str().cmp(word)).ok();
    let at = at(word).or_else(|| at(UNKNOWN));
    at.map(|at| vocabulary[at].1).ok_or_else(|| format!("the model does not know the word {word:?}"))
}

fn row(embedding: &Numbers, row: usize, d: usize) -> Result<Vec<Dyadic>, String> {
    match embedding {
        Numbers::Floats(tensor) => Ok((row * d..(row + 1) * d).map(|i| tensor.get(i)).collect()),
        Numbers::Exact(..) => Err("exact models are judged in real arithmetic".into()),
    }
}

/// What is wanted of every token; `tolerance` is for labels that are vectors. An error says what the model cannot give.
pub fn wanted(model: &Model, data: &Data, tolerance: Option<Ball>) -> Result<Vec<Wanted>, String> {
    let names = model.head.as_ref().and_then(|head| head.labels.as_ref());
    match &data.labels {
        Labels::None => Err("the data has no labels".into()),
        Labels::Classes(labels, classes) => {
            let names = names.ok_or("the data has classes, and the model gives vectors")?;
            let of: Vec<Option<usize>> =
                classes.iter().map(|class| names.iter().position(|name| name == class)).collect();
            let one = |label: &Option<u32>| label.map_or(Wanted::Free, |label| Wanted::Label(of[label as usize]));
            Ok(labels.iter().map(one).collect())
        }
        Labels::Vectors(labels, points) => {
            let outputs = model.head.as_ref().map_or(model.d, |head| head.bias.len());
            if names.is_some() || outputs != points.d {
                return Err(format!("the labels are vectors of dimension {}, which the model does not give", points.d));
            }
            let tolerance = tolerance.ok_or("the labels are vectors, and no tolerance was given")?;
            let target = |at: u32| points.entries[at as usize * points.d..(at as usize + 1) * points.d].to_vec();
            let one = |label: &Option<u32>| label.map_or(Wanted::Free, |at| Wanted::Near(target(at), tolerance));
            Ok(labels.iter().map(one).collect())
        }
    }
}
