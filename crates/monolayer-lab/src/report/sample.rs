//! The value that a head of size 1 computes for every token of a dataset, and the sentences that the tour starts with.

use std::collections::{HashMap, HashSet};

use monolayer::arithmetic::kernels::{Real, dot};
use monolayer::data::Tokens;
use monolayer::data::context::check_mask;
use monolayer::model::Words;
use monolayer::paper::attention::AttentionKind;
use monolayer::{Dataset, Mask, Matrix, Model};

/// At most so many sentences are shown.
const SENTENCES: usize = 60;
/// Longer sentences are shown only where all are.
const LONGEST: usize = 24;

/// A model's reading of a dataset: g at every token.
pub struct Reading {
    /// The context id of each token.
    pub ids: Vec<f64>,
    /// The word (as the model numbers it) of each token.
    pub words: Vec<u32>,
}

/// Why a model has no tour; `None` where it has one.
pub fn obstacle<R: Real>(model: &Model<R>) -> Option<&'static str> {
    let [layer] = &model.transformer.layers[..] else { return Some("it has more than one layer") };
    let Some(attention) = &layer.attention else { return Some("it has no attention") };
    match &attention.heads[..] {
        _ if attention.kind == AttentionKind::Hardmax => Some("its attention is hardmax: there is no curve to show"),
        [head] if head.w_q.rows == 1 => None,
        _ => Some("its ids are not single numbers: it has more than one head, or a larger one"),
    }
    .or(model.words.is_none().then_some("its inputs are vectors, not words"))
    .or(model.head.is_none().then_some("its outputs are vectors, not labels"))
    .or(model.transformer.pre_feed_forward.is_some().then_some("it has a feed-forward block before its attention"))
}

impl Reading {
    /// The ids of all tokens. A model without [`obstacle`]; words that it knows.
    pub fn new<R: Real>(model: &Model<R>, data: &Dataset) -> Option<Self> {
        let (Tokens::Words { word_ids: ids, vocabulary }, Some(known)) = (&data.tokens, &model.words) else {
            return None;
        };
        let unknown = known.vocabulary.get(monolayer::model::UNKNOWN);
        let rows: Vec<Option<u32>> =
            vocabulary.names().iter().map(|word| known.vocabulary.get(word).or(unknown)).collect();
        let words: Vec<u32> = ids.iter().map(|&id| rows[id as usize]).collect::<Option<_>>()?;
        let places = data.longest() + usize::from(known.start.is_some());
        if model.positions.as_ref().is_some_and(|positions| places > positions.rows) {
            return None;
        }
        let attention = model.transformer.layers[0].attention.as_ref()?;
        check_mask(data, &attention.mask).ok()?;
        let [q, k, v] = Projected::of(model)?;
        let mut out = Vec::with_capacity(words.len());
        for range in data.ranges() {
            let sentence = &words[range];
            for place in 0..sentence.len() {
                let y = q.at(sentence, place);
                let [keys, values] = [&k, &v].map(|projected| projected.seen(&attention.mask, sentence, place));
                let scores: Vec<f64> = keys.iter().map(|k| y * k).collect();
                let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
                let mixed: f64 = weights.iter().zip(&values).map(|(w, v)| w * v).sum();
                out.push(mixed / weights.iter().sum::<f64>());
            }
        }
        Some(Self { ids: out, words })
    }
}

/// The inner products of words and places with one row of weights.
pub struct Projected {
    words: Vec<f64>,
    /// Of the places of a sentence's own words.
    places: Vec<f64>,
    /// Of the start token, at its place.
    start: Option<f64>,
}

impl Projected {
    /// Queries, keys and values of a model without [`obstacle`].
    pub fn of<R: Real>(model: &Model<R>) -> Option<[Self; 3]> {
        let words = model.words.as_ref()?;
        let head = &model.transformer.layers[0].attention.as_ref()?.heads[0];
        Some([&head.w_q, &head.w_k, &head.w_v].map(|w| Self::new(w, words, model.positions.as_ref())))
    }

    fn new<R: Real>(w: &Matrix<R>, words: &Words<R>, places: Option<&Matrix<R>>) -> Self {
        let wide = |row: &[R]| row.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
        let w = wide(w.row(0));
        let products = |rows: &Matrix<R>| rows.iter_rows().map(|row| dot(&w, &wide(row))).collect::<Vec<f64>>();
        let (embedding, mut places) = (products(&words.embedding), places.map_or_else(Vec::new, products));
        // The start token has the first of the places.
        let start = words.start.map(|row| embedding[row as usize] + places.first().copied().unwrap_or(0.0));
        places.drain(..usize::from(start.is_some()).min(places.len()));
        Self { words: embedding, places, start }
    }

    /// The products of the tokens that the one at a place of a sentence sees, the start token's first.
    pub fn seen(&self, mask: &Mask, sentence: &[u32], place: usize) -> Vec<f64> {
        let own = mask.seen(place, sentence.len()).places().map(|i| self.at(sentence, i));
        self.start.into_iter().chain(own).collect()
    }

    /// The product at a place of a sentence.
    pub fn at(&self, sentence: &[u32], place: usize) -> f64 {
        self.words[sentence[place] as usize] + self.places.get(place).copied().unwrap_or(0.0)
    }
}

/// Which sentences to show: all where there are few, else those in which most words can have several labels.
pub fn choose(data: &Dataset) -> Vec<usize> {
    if data.sequences() <= SENTENCES {
        return (0..data.sequences()).filter(|&i| !data.range(i).is_empty()).collect();
    }
    let words = data.token_ids();
    let mut labels: HashMap<u32, HashSet<u32>> = HashMap::new();
    for (&word, label) in words.iter().zip(data.label_ids().unwrap_or_default()) {
        labels.entry(word).or_default().extend(label);
    }
    let ambiguous =
        |i: usize| data.range(i).filter(|&t| labels.get(&words[t]).is_some_and(|labels| labels.len() > 1)).count();
    let mut order: Vec<usize> =
        (0..data.sequences()).filter(|&i| (3..=LONGEST).contains(&data.range(i).len())).collect();
    // The same words again teach nothing new.
    let mut seen = HashSet::new();
    order.retain(|&i| seen.insert(words[data.range(i)].to_vec()));
    order.sort_by_key(|&i| (std::cmp::Reverse(ambiguous(i)), i));
    order.truncate(SENTENCES);
    order.sort_unstable();
    order
}
