//! Tokens and labels as numbers, equal for equal ones, and as text for people.

use super::{Dataset, Labels, Tokens};
use crate::data::context::distinct_rows;
use crate::data::free_label::FREE_NAME;

impl Dataset {
    /// A number per token, equal for equal words or vectors.
    pub fn token_ids(&self) -> Vec<u32> {
        match &self.tokens {
            Tokens::Words { word_ids, .. } => word_ids.clone(),
            Tokens::Vectors { d, data } => distinct_rows(*d, data).0,
        }
    }

    /// A number per label, equal for equal classes or vectors, none for a free label; `None` without labels.
    pub fn label_ids(&self) -> Option<Vec<Option<u32>>> {
        match &self.labels {
            Labels::None => None,
            Labels::Classes { label_ids, .. } => Some(label_ids.clone()),
            Labels::Vectors { d, data } => Some(distinct_rows(*d, data).0.into_iter().map(Some).collect()),
        }
    }

    /// Token `t` for people.
    pub fn token_text(&self, t: usize) -> String {
        match &self.tokens {
            Tokens::Words { word_ids, vocabulary } => vocabulary.name(word_ids[t]).to_owned(),
            Tokens::Vectors { d, data } => vector_text(&data[t * d..(t + 1) * d]),
        }
    }

    /// The label of token `t` for people; empty without labels, and `_` where any will do.
    pub fn label_text(&self, t: usize) -> String {
        match &self.labels {
            Labels::None => String::new(),
            Labels::Classes { label_ids, names } => label_ids[t].map_or(FREE_NAME, |id| names.name(id)).to_owned(),
            Labels::Vectors { d, data } => vector_text(&data[t * d..(t + 1) * d]),
        }
    }

    /// The label with a number of [`Self::label_ids`], for people.
    pub fn label_name(&self, id: u32) -> String {
        match &self.labels {
            Labels::Classes { names, .. } => names.name(id).to_owned(),
            Labels::None => String::new(),
            Labels::Vectors { d, data } => {
                let (_, first) = distinct_rows(*d, data);
                self.label_text(first[id as usize])
            }
        }
    }
}

fn vector_text(vector: &[f64]) -> String {
    let numbers: Vec<String> = vector.iter().map(f64::to_string).collect();
    format!("({})", numbers.join(", "))
}
