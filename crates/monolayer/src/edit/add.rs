//! New sequences, and new words with new codes.

use super::session::{Edit, Editor};
use super::site::Site;
use crate::arithmetic::kernels::{Real, dot};
use crate::data::{Dataset, Labels};
use crate::error::{Error, Result};
use crate::model::{AnyModel, Model};

/// Codes that are drawn for a new word; the one that is farthest from all others is taken.
const DRAWS: u32 = 64;

impl Editor {
    /// An editor of a model with the words of some sequences added, and the edits that give their tokens their labels. A new word
    /// has a code of its own; what is stated of the difference is about the words that were there before.
    pub fn adding(model: AnyModel, data: Option<&Dataset>, sequences: &Dataset) -> Result<(Self, Vec<Edit>)> {
        if !matches!(sequences.labels, Labels::Classes { .. }) {
            return Err(Error::mismatch("new sequences without classes", "give a label for each token"));
        }
        let mut edits = Vec::new();
        for range in sequences.ranges() {
            let words: Vec<&str> = range.clone().map(|t| sequences.word(t).unwrap_or_default()).collect();
            let labeled = range.clone().filter_map(|t| Some((t - range.start, sequences.label(t)?)));
            edits.extend(labeled.map(|(place, label)| Edit::new(words.iter().copied(), place, label)));
        }
        let before = model.vocabulary().map_or(0, crate::Vocabulary::len);
        let site = Site::new(&model)?;
        let known = |word: &str| site.vocabulary.get(word).is_some();
        let mut new: Vec<String> = Vec::new();
        for word in edits.iter().flat_map(|edit| &edit.tokens) {
            if !known(word) && !new.contains(word) {
                new.push(word.clone());
            }
        }
        let codes = new_codes(&site, &new)?;
        let model = match model {
            AnyModel::F32(model) => with_words(model, &new, &codes).into(),
            AnyModel::F64(model) => with_words(model, &new, &codes).into(),
            exact @ AnyModel::Exact(_) => exact,
        };
        let mut editor = Self::new(model, data)?;
        editor.words_before = before;
        Ok((editor, edits))
    }
}

/// A code of +1 and -1 for each new word, far from all others, whose value for attention is among those that there are.
fn new_codes(site: &Site, words: &[String]) -> Result<Vec<Vec<f64>>> {
    let columns = site.stored.words.cols;
    let mut rows: Vec<&[f64]> = site.stored.words.iter_rows().collect();
    let sign = |row: &&[f64]| row.iter().all(|x| x.abs() == 1.0);
    // A row of zeros is that of unknown words.
    rows.retain(|row| row.iter().any(|&x| x != 0.0));
    if !words.is_empty() && !rows.iter().all(sign) {
        let what = format!("the model has no room for the new word {:?}", words[0]);
        let help = "more codes can be drawn where they have entries +1 and -1, as in `embedding` sign:64; one coordinate for each word \
                    leaves none for a new one, and vectors from elsewhere do not say which it should be";
        return Err(Error::mismatch(what, help));
    }
    let key = &site.stored.key[..columns];
    let values: Vec<f64> = rows.iter().map(|row| dot(key, row)).collect();
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
    let mut codes: Vec<Vec<f64>> = Vec::new();
    for word in words {
        let draw = |i: u32| -> Vec<f64> {
            let mut bytes = vec![0; columns.div_ceil(8)];
            let mut hasher = blake3::Hasher::new();
            hasher.update(word.as_bytes()).update(&i.to_le_bytes()).finalize_xof().fill(&mut bytes);
            (0..columns).map(|c| if bytes[c / 8] >> (c % 8) & 1 == 1 { 1.0 } else { -1.0 }).collect()
        };
        let nearest = |code: &Vec<f64>| {
            let others = rows.iter().copied().chain(codes.iter().map(Vec::as_slice));
            others.map(|other| dot(code, other)).fold(f64::MIN, f64::max)
        };
        let inside = |code: &Vec<f64>| (low..=high).contains(&dot(key, code));
        let drawn = (0..DRAWS).map(draw).filter(inside).map(|code| (nearest(&code), code));
        let best = drawn.min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(nearest, _)| *nearest < columns as f64);
        let Some((_, code)) = best else {
            let what = format!("no code is free for the new word {word:?}");
            return Err(Error::too_close(what, "use codes of a larger dimension, as in `embedding` sign:96"));
        };
        codes.push(code);
    }
    Ok(codes)
}

fn with_words<R: Real>(mut model: Model<R>, new: &[String], codes: &[Vec<f64>]) -> Model<R> {
    let d = model.transformer.d;
    if let Some(words) = &mut model.words {
        for (word, code) in new.iter().zip(codes) {
            words.vocabulary.add(word);
            words.embedding.data.extend((0..d).map(|i| R::from_f64(code.get(i).copied().unwrap_or(0.0))));
            words.embedding.rows += 1;
        }
    }
    model
}
