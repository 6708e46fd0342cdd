//! Random edits of a compiled model, one at a time and all at once: how many are certified, what they cost, and whether labels
//! change where they should and nowhere else.

use std::time::Instant;

use monolayer::data::context::{Contexts, START};
use monolayer::edit::{Edit, Editor, Outcome};
use monolayer::{AnyModel, Dataset, Error, Labels, Mask, Predictions, Result, Tokens};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// What was measured.
#[derive(Debug, Clone)]
pub struct EditRuns {
    /// The edits.
    pub edits: Vec<Edit>,
    /// Seconds to make an editor of a loaded model and the data.
    pub load_seconds: f64,
    /// What came of each, made by itself.
    pub single: Vec<Outcome>,
    /// Milliseconds of each.
    pub milliseconds: Vec<f64>,
    /// What came of each, made with all others.
    pub together: Vec<Outcome>,
    /// Seconds for all together.
    pub seconds: f64,
    /// Tokens of contexts that were not edited whose label changed anyway, as this library computes.
    pub changed: usize,
    /// Tokens of contexts that were edited that did not get their label.
    pub missed: usize,
}

/// Makes random edits of a model, which knows the words and labels of the data: so many, each of another context.
pub fn run(model: &AnyModel, data: &Dataset, count: usize, seed: u64, done: &dyn Fn(usize)) -> Result<EditRuns> {
    let start = Instant::now();
    let editor = Editor::new(model.clone(), Some(data))?;
    let load_seconds = start.elapsed().as_secs_f64();
    let contexts = contexts(model, data);
    let tokens = random_tokens(&contexts, data, count, seed);
    let before = labels(model, data)?;
    let names = model.label_names().unwrap_or_default();
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 1);
    let edit = |&t: &usize| {
        let range = data.range(data.offsets.partition_point(|&start| start <= t) - 1);
        // Another label than it has.
        let label = (before[t] as usize + random.random_range(1..names.len().max(2))) % names.len();
        let words = range.clone().map(|t| data.word(t).unwrap_or_default());
        Edit::new(words, t - range.start, &names[label])
    };
    let edits: Vec<Edit> = tokens.iter().map(edit).collect();
    let (mut single, mut milliseconds) = (Vec::new(), Vec::new());
    for edit in &edits {
        let start = Instant::now();
        let edited = editor.edit(std::slice::from_ref(edit))?;
        milliseconds.push(1e3 * start.elapsed().as_secs_f64());
        single.push(edited.outcomes()[0].clone());
        done(1);
    }
    let start = Instant::now();
    let edited = editor.edit(&edits)?;
    let seconds = start.elapsed().as_secs_f64();
    let after = labels(edited.model(), data)?;
    let mut wanted: Vec<Option<u32>> = vec![None; contexts.count];
    for ((&t, edit), outcome) in tokens.iter().zip(&edits).zip(edited.outcomes()) {
        if !matches!(outcome, Outcome::Refused { .. }) {
            wanted[contexts.of_token[t] as usize] = names.iter().position(|name| *name == edit.label).map(|l| l as u32);
        }
    }
    let (mut changed, mut missed) = (0, 0);
    for (t, &context) in contexts.of_token.iter().enumerate() {
        match wanted[context as usize] {
            Some(label) => missed += usize::from(after[t] != label),
            None => changed += usize::from(after[t] != before[t]),
        }
    }
    let together = edited.outcomes().to_vec();
    Ok(EditRuns { edits, load_seconds, single, milliseconds, together, seconds, changed, missed })
}

/// Tokens of different contexts, drawn at random; none whose context has several labels in the data.
fn random_tokens(contexts: &Contexts, data: &Dataset, count: usize, seed: u64) -> Vec<usize> {
    let mut used = vec![false; contexts.count];
    if let Labels::Classes { label_ids, .. } = &data.labels {
        contexts.agree(label_ids).impossible.iter().for_each(|&t| used[contexts.of_token[t] as usize] = true);
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut tokens = Vec::new();
    // A dataset may have fewer contexts.
    for _ in 0..100 * count {
        let t = random.random_range(0..data.tokens());
        if tokens.len() < count && !std::mem::replace(&mut used[contexts.of_token[t] as usize], true) {
            tokens.push(t);
        }
    }
    tokens
}

fn contexts(model: &AnyModel, data: &Dataset) -> Contexts {
    let (mask, start) = match model {
        AnyModel::F32(model) => (mask_of(model), model.start().is_some()),
        AnyModel::F64(model) => (mask_of(model), model.start().is_some()),
        AnyModel::Exact(_) => (Mask::None, false),
    };
    let positions = model.config().max_length.is_some();
    Contexts::with_start(start.then_some(START), &data.token_ids(), &data.offsets, &mask, positions)
}

fn mask_of<T>(model: &monolayer::Model<T>) -> Mask {
    let attention = model.transformer.layers.first().and_then(|layer| layer.attention.as_ref());
    attention.map_or(Mask::None, |attention| attention.mask.clone())
}

fn labels(model: &AnyModel, data: &Dataset) -> Result<Vec<u32>> {
    if !matches!(data.tokens, Tokens::Words { .. }) {
        return Err(Error::mismatch("vectors cannot be edited", "give words with classes"));
    }
    match model.predict(data)? {
        Predictions::Labels(labels) => Ok(labels),
        Predictions::Outputs(_) => Err(Error::mismatch("outputs are no labels", "give words with classes")),
    }
}
