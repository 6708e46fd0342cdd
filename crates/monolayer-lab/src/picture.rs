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
    sentence: Vec<String>,
}

impl DrawnContext {
    /// `g(y) = sum v_i e^(y k_i) / sum e^(y k_i)`, which is eq. 20's mixture where keys are values.
    fn g(&self, y: f64) -> f64 {
        let top = self.tokens.iter().map(|(k, _)| y * k).fold(f64::NEG_INFINITY, f64::max);
        let weight = |k: f64| (y * k - top).exp();
        let total: f64 = self.tokens.iter().map(|&(k, _)| weight(k)).sum();
        self.tokens.iter().map(|&(k, v)| v * weight(k)).sum::<f64>() / total
    }

    /// The sentence, with the word that is meant in brackets.
    fn marked(&self, place: usize) -> String {
        let word = |(i, word): (usize, &String)| if i == place { format!("[{word}]") } else { word.clone() };
        self.sentence.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The size of the picture.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 840.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 314.0;
/// The height of the line of ids.
const LINE: f64 = BOTTOM + 26.0;
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
    let frame = IdFrame::new(&contexts);
    let names = names(&contexts);
    let ink = |label: &str| {
        if label == "O" { Ink::Muted } else { Ink::Series(names.iter().position(|n| n == label).unwrap_or(0)) }
    };
    let mut scene = Scene::new(WIDTH, LINE + 64.0 + ROW * (contexts.len() as f64 + 0.4));
    let title = format!(
        "“{word}” as word {} of {} sentences: attention gives each its own number",
        position + 1,
        contexts.len()
    );
    scene.text(16.0, 26.0, 17.0, Anchor::Start, Ink::Text, title);
    key(&mut scene, &names, &ink);
    frame.axes(&mut scene);
    for context in &contexts {
        let steps = (0..=120).map(|i| frame.query + frame.reach * (f64::from(i) / 60.0 - 1.0));
        let inside = steps.map(|q| (context.g(q), q)).filter(|(id, _)| (frame.low..=frame.high).contains(id));
        scene.line(inside.map(|(id, q)| [frame.x(id), frame.y(q)]).collect(), ink(&context.label), 2.2, None);
    }
    let asks = format!("“{word}” asks with y = {}", number(frame.query));
    scene.text(RIGHT, frame.y(frame.query) + 17.0, 13.0, Anchor::End, Ink::Text, asks);
    // The rightmost first, so that no line runs through a text.
    for (i, context) in contexts.iter().rev().enumerate() {
        let (at, color) = (frame.x(context.id), ink(&context.label));
        let row = LINE + 66.0 + ROW * i as f64;
        scene.line(vec![[at, frame.y(frame.query)], [at, LINE]], color, 1.4, Some([2.0, 3.0]));
        scene.line(vec![[at, LINE], [at, row - 4.0], [at + 8.0, row - 4.0]], Ink::Grid, 1.2, None);
        scene.disc([at, frame.y(frame.query)], 4.5, color, false);
        scene.disc([at, LINE], 6.5, color, false);
        // The word that is meant, where the sentence has it more than once.
        let id = format!("{:.2}", context.id).replace('-', "−");
        let text = format!("{id}: {} → {}", context.marked(position), context.label);
        scene.text(at + 13.0, row, 13.5, Anchor::Start, color_of_text(color), text);
    }
    Ok(scene)
}

/// Where ids and queries lie in the picture.
struct IdFrame {
    query: f64,
    low: f64,
    high: f64,
    reach: f64,
}

impl IdFrame {
    fn new(contexts: &[DrawnContext]) -> Self {
        let ids = || contexts.iter().map(|c| c.id);
        let (low, high) = (ids().fold(f64::INFINITY, f64::min), ids().fold(f64::NEG_INFINITY, f64::max));
        // Room to the sides, so that the curves are seen to bend.
        let room = 0.7 * (high - low).max(1e-9);
        let query = contexts[0].query;
        Self { query, low: low - room, high: high + 1.5 * room, reach: 3.6 * query.abs() }
    }

    fn x(&self, id: f64) -> f64 {
        LEFT + (id - self.low) / (self.high - self.low) * (RIGHT - LEFT)
    }

    fn y(&self, query: f64) -> f64 {
        f64::midpoint(TOP, BOTTOM) - (query - self.query) / self.reach * (BOTTOM - TOP) / 2.0
    }

    /// Both axes with their numbers, and the line at the word's query.
    fn axes(&self, scene: &mut Scene) {
        scene.text(16.0, TOP - 14.0, 13.0, Anchor::Start, Ink::Muted, "query y");
        for value in round_values(self.query - 0.95 * self.reach, self.query + 0.95 * self.reach, 4) {
            scene.line(vec![[LEFT, self.y(value)], [RIGHT, self.y(value)]], Ink::Grid, 1.0, None);
            scene.text(LEFT - 8.0, self.y(value) + 4.0, 12.0, Anchor::End, Ink::Muted, number(value));
        }
        scene.line(vec![[LEFT, self.y(self.query)], [RIGHT, self.y(self.query)]], Ink::Muted, 1.2, Some([5.0, 4.0]));
        scene.line(vec![[LEFT, LINE], [RIGHT, LINE]], Ink::Text, 1.4, None);
        for value in round_values(self.low, self.high, 7) {
            let at = self.x(value);
            scene.line(vec![[at, LINE], [at, LINE + 6.0]], Ink::Text, 1.2, None);
            scene.text(at, LINE + 21.0, 12.0, Anchor::Middle, Ink::Muted, number(value));
        }
        scene.text(RIGHT, LINE + 40.0, 13.0, Anchor::End, Ink::Muted, "context id g(y)");
    }
}

/// Which color is which label.
fn key(scene: &mut Scene, names: &[String], ink: &impl Fn(&str) -> Ink) {
    let mut at = LEFT + 30.0;
    for name in names.iter().map(String::as_str).chain(["O"]) {
        scene.disc([at, TOP - 18.0], 6.0, ink(name), false);
        scene.text(at + 12.0, TOP - 13.5, 13.0, Anchor::Start, Ink::Text, name);
        at += 12.0 + 10.0 * name.chars().count() as f64 + 26.0;
    }
    scene.text(
        at - 4.0,
        TOP - 13.5,
        13.0,
        Anchor::Start,
        Ink::Muted,
        "the label that the word has; each curve is one sentence",
    );
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
                sentence: range.map(|t| data.token_text(t)).collect(),
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
