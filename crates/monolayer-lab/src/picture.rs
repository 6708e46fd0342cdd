//! The theorem in one picture: the sentences in which a word stands, each as its Boltzmann curve; the word's query cuts them
//! at different ids, and the ids lie on a line, each with its label.

use monolayer::arithmetic::kernels::Real;
use monolayer::{AnyModel, Dataset, Error, Mask, Model, Result};

use crate::plot::Scene;
use crate::plot::ink::Ink;
use crate::plot::scale::{number, round_values};
use crate::plot::scene::Anchor;
use crate::report::sample::{Projected, Reading, obstacle};

/// A context of the word.
struct DrawnContext {
    /// What the tokens that the word sees are worth as keys and as values.
    tokens: Vec<(f64, f64)>,
    query: f64,
    id: f64,
    label: String,
    sentence: String,
}

impl DrawnContext {
    /// `g(y) = sum v_i e^(y k_i) / sum e^(y k_i)`, which is eq. 20's mixture where keys are values.
    fn g(&self, y: f64) -> f64 {
        let top = self.tokens.iter().map(|(k, _)| y * k).fold(f64::NEG_INFINITY, f64::max);
        let weight = |k: f64| (y * k - top).exp();
        let total: f64 = self.tokens.iter().map(|&(k, _)| weight(k)).sum();
        self.tokens.iter().map(|&(k, v)| v * weight(k)).sum::<f64>() / total
    }
}

/// The size of the picture.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 840.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 300.0;
/// The distance of lines of text.
const ROW: f64 = 19.0;

/// The picture of a word at a position, from 0, over a dataset's contexts.
pub fn ids(model: &AnyModel, data: &Dataset, word: &str, position: usize) -> Result<Scene> {
    match model {
        AnyModel::F32(model) => scene(model, data, word, position),
        AnyModel::F64(model) => scene(model, data, word, position),
        AnyModel::Exact(_) => Err(Error::mismatch("no picture of this model: it is exact", "take one in f32 or f64")),
    }
}

fn scene<R: Real>(model: &Model<R>, data: &Dataset, word: &str, position: usize) -> Result<Scene> {
    if let Some(why) = obstacle(model) {
        return Err(Error::mismatch(
            format!("no picture of this model: {why}"),
            "take one that memorize makes from words",
        ));
    }
    let contexts = contexts(model, data, word, position)?;
    let ids = || contexts.iter().map(|c| c.id);
    let (low, high) = (ids().fold(f64::INFINITY, f64::min), ids().fold(f64::NEG_INFINITY, f64::max));
    // Room to the sides, so that the curves are seen to bend.
    let room = 0.7 * (high - low).max(1e-9);
    let (low, high) = (low - room, high + 1.5 * room);
    let query = contexts[0].query;
    let reach = 3.6 * query.abs();
    let x = |id: f64| LEFT + (id - low) / (high - low) * (RIGHT - LEFT);
    let y = |q: f64| f64::midpoint(TOP, BOTTOM) - (q - query) / reach * (BOTTOM - TOP) / 2.0;
    let line = BOTTOM + 26.0;
    let mut scene = Scene::new(WIDTH, line + 44.0 + ROW * (contexts.len() as f64 + 0.4));
    let title = format!("One word, {} sentences: a rank-1 layer gives each its own number", contexts.len());
    scene.text(16.0, 24.0, 16.0, Anchor::Start, Ink::Text, title);
    scene.text(16.0, 48.0, 12.5, Anchor::Start, Ink::Muted, "query y (per unit of projection)");
    let names = names(&contexts);
    let ink = |label: &str| {
        if label == "O" { Ink::Muted } else { Ink::Series(names.iter().position(|n| n == label).unwrap_or(0)) }
    };

    scene.line(vec![[LEFT, y(query)], [RIGHT, y(query)]], Ink::Muted, 1.2, Some([5.0, 4.0]));
    for value in round_values(query - 0.95 * reach, query + 0.95 * reach, 4) {
        scene.line(vec![[LEFT, y(value)], [RIGHT, y(value)]], Ink::Grid, 1.0, None);
        scene.text(LEFT - 8.0, y(value) + 4.0, 11.5, Anchor::End, Ink::Muted, number(value));
    }
    let asks = format!("“{word}” asks with y = {}", number(query));
    scene.text(RIGHT, y(query) + 16.0, 12.5, Anchor::End, Ink::Muted, asks);
    for context in &contexts {
        let steps = (0..=120).map(|i| query + reach * (f64::from(i) / 60.0 - 1.0)).map(|q| (context.g(q), q));
        let points = steps.filter(|(id, _)| (low..=high).contains(id)).map(|(id, q)| [x(id), y(q)]);
        scene.line(points.collect(), ink(&context.label), 2.2, None);
    }
    scene.line(vec![[LEFT, line], [RIGHT, line]], Ink::Text, 1.4, None);
    // The rightmost first, so that no line runs through a text.
    for (i, context) in contexts.iter().rev().enumerate() {
        let (at, color) = (x(context.id), ink(&context.label));
        let row = line + 44.0 + ROW * i as f64;
        scene.line(vec![[at, y(query)], [at, line]], color, 1.4, Some([2.0, 3.0]));
        scene.line(vec![[at, line], [at, row - 4.0], [at + 8.0, row - 4.0]], Ink::Grid, 1.2, None);
        scene.disc([at, y(query)], 4.5, color, false);
        scene.disc([at, line], 6.5, color, false);
        let text = format!("{}  {}", context.sentence, context.label);
        scene.text(at + 13.0, row, 13.0, Anchor::Start, color_of_text(color), text);
    }
    scene.text(RIGHT, line + 20.0, 12.5, Anchor::End, Ink::Muted, "context id g(y) (units of projection)");
    Ok(scene)
}

/// Text of the background's label stays readable.
fn color_of_text(ink: Ink) -> Ink {
    if ink == Ink::Muted { Ink::Text } else { ink }
}

/// The labels, in order of appearance.
fn names(contexts: &[DrawnContext]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for context in contexts {
        if context.label != "O" && !names.contains(&context.label) {
            names.push(context.label.clone());
        }
    }
    names
}

/// The different contexts of a word at a place, by id.
fn contexts<R: Real>(model: &Model<R>, data: &Dataset, word: &str, place: usize) -> Result<Vec<DrawnContext>> {
    let unknown = || Error::mismatch("the model does not know all words of the data", "give the data it was made from");
    let reading = Reading::new(model, data).ok_or_else(unknown)?;
    let [q, k, v] = Projected::of(model).ok_or_else(unknown)?;
    let mask = model.transformer.layers[0].attention.as_ref().map_or(&Mask::None, |attention| &attention.mask);
    let mut contexts = Vec::new();
    for range in data.ranges().filter(|range| range.len() > place) {
        let t = range.start + place;
        if data.word(t) == Some(word) {
            let words = &reading.words[range.clone()];
            contexts.push(DrawnContext {
                tokens: k.seen(mask, words, place).into_iter().zip(v.seen(mask, words, place)).collect(),
                query: q.at(words, place),
                id: reading.ids[t],
                label: data.label_text(t),
                sentence: range.map(|t| data.token_text(t)).collect::<Vec<_>>().join(" "),
            });
        }
    }
    contexts.sort_by(|a, b| a.id.total_cmp(&b.id));
    contexts.dedup_by(|a, b| a.id == b.id);
    if contexts.len() < 2 {
        let what = format!("{word:?} has {} contexts as word {} of a sentence", contexts.len(), place + 1);
        return Err(Error::mismatch(what, "take a word with several"));
    }
    Ok(contexts)
}
