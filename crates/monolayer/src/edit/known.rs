//! The contexts of a dataset, with their ids: what edits must leave alone.

use std::collections::HashMap;

use rayon::prelude::*;

use super::along::Ids;
use super::context_of::{SeenTokens, seen_tokens};
use super::pair::WordPlace;
use super::site::Site;
use crate::arithmetic::float_model::{sum_above, sum_below};
use crate::context_map::View;
use crate::data::{Dataset, Labels};
use crate::error::Result;
use crate::model::AnyModel;

/// The contexts of a dataset.
pub struct KnownContexts {
    /// The dataset, with the model's words.
    data: Dataset,
    /// The contexts of each word at each place.
    pairs: HashMap<WordPlace, Vec<KnownContext>>,
    /// How many tokens there are.
    pub tokens: usize,
}

/// A context of a dataset.
#[derive(Debug, Clone, Copy)]
pub struct KnownContext {
    /// One of its tokens: of the longest sequence, which rounds most.
    pub token: usize,
    /// Its id, nearly, and all that programs can compute.
    pub center: f64,
    pub ids: Ids,
    /// Whether the data gives it more than one label.
    pub contradicts: bool,
}

/// The ids of some tokens: nearly, and all that programs can compute.
pub fn ids(site: &Site, view: &View, tokens: &[usize]) -> Vec<(f64, Ids)> {
    let range = |center: f64, error: f64| (center, (sum_below(center, -error), sum_above(center, error)));
    let ids = site.reader.ids(view, tokens);
    ids.par_iter().map(|id| range(id.center, id.error(&site.format).get())).collect()
}

impl KnownContexts {
    /// The contexts of a dataset, whose words the model must know.
    pub fn new(site: &Site, model: &AnyModel, given: &Dataset) -> Result<Self> {
        let rows = model.word_rows(given)?.unwrap_or_default();
        let sequences: Vec<Vec<u32>> = given.ranges().map(|range| rows[range].to_vec()).collect();
        let data = Site::dataset(&given.name, &sequences);
        let view = View::new(&data, &site.vectors, site.mask.clone());
        let label = |t: usize| if let Labels::Classes { label_ids, .. } = &given.labels { label_ids[t] } else { None };
        let none = (usize::MAX, None, false);
        let mut contexts: Vec<(usize, Option<u32>, bool)> = vec![none; view.contexts.count];
        for (t, &context) in view.contexts.of_token.iter().enumerate() {
            let (token, seen, contradicts) = &mut contexts[context as usize];
            if *token == usize::MAX || view.seen(t).0.count() > view.seen(*token).0.count() {
                *token = t;
            }
            *contradicts |= seen.is_some() && label(t).is_some() && *seen != label(t);
            *seen = seen.or(label(t));
        }
        let tokens: Vec<usize> = contexts.iter().map(|context| context.0).collect();
        let mut pairs: HashMap<WordPlace, Vec<KnownContext>> = HashMap::new();
        for ((token, _, contradicts), (center, ids)) in contexts.into_iter().zip(ids(site, &view, &tokens)) {
            let pair = (view.token_ids[token], site.row(view.place(token).1));
            pairs.entry(pair).or_default().push(KnownContext { token, center, ids, contradicts });
        }
        drop(view);
        Ok(Self { tokens: data.tokens(), data, pairs })
    }

    /// The contexts of a word at a place.
    pub fn of(&self, pair: WordPlace) -> &[KnownContext] {
        self.pairs.get(&pair).map_or(&[], |list| list)
    }

    /// What the tokens of some contexts see.
    pub fn seen(&self, site: &Site, contexts: &[KnownContext]) -> Vec<SeenTokens> {
        // A view of their sequences alone.
        let sequences: Vec<Vec<u32>> = contexts.iter().map(|context| self.sequence(context.token).0).collect();
        let data = Site::dataset(&self.data.name, &sequences);
        let view = View::new(&data, &site.vectors, site.mask.clone());
        let token = |(i, context): (usize, &KnownContext)| data.offsets[i] + self.sequence(context.token).1;
        contexts.iter().enumerate().map(|c| seen_tokens(&view, token(c))).collect()
    }

    /// The sequence of a token, and its place there.
    fn sequence(&self, t: usize) -> (Vec<u32>, usize) {
        let i = self.data.offsets.partition_point(|&start| start <= t) - 1;
        let crate::data::Tokens::Words { word_ids, .. } = &self.data.tokens else { return (Vec::new(), 0) };
        (word_ids[self.data.range(i)].to_vec(), t - self.data.offsets[i])
    }
}
