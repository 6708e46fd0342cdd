//! What a new model takes over from one that is there: codes, projection, words, places and the order of labels.

use crate::arithmetic::matrix::Matrix;
use crate::context_map::ContextMap;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Tokens, Vocabulary};
use crate::edit::site::Site;
use crate::error::{Error, Result};
use crate::memorize::settings::{Memorizer, Precision};
use crate::model::{AnyModel, Source, UNKNOWN};
use crate::{Embedding, Positions};

/// What is taken over from a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Like {
    /// The words, but for the start token and the row of unknown words.
    vocabulary: Vocabulary,
    /// The name of the start token.
    pub start: Option<String>,
    /// The codes of these words, of places and of the start token.
    pub vectors: TokenVectors,
    /// The labels, and a vector for each.
    pub labels: Vocabulary,
    pub label_codes: Matrix<f64>,
    /// The layer.
    pub map: ContextMap,
    /// The most tokens of a sequence.
    longest: usize,
}

impl Memorizer<'_> {
    /// Takes codes, projection, words, max_length, mask, precision and the order of labels over from a model: data with its words
    /// and labels is compiled into the same coordinates. For gated units.
    pub fn like(self, model: &AnyModel) -> Result<Self> {
        let site = Site::new(model)?;
        let mut names: Vec<&String> = site.vocabulary.names().iter().collect();
        let unknown = names.last().is_some_and(|name| *name == UNKNOWN)
            && site.stored.words.row(names.len() - 1).iter().all(|&x| x == 0.0);
        names.truncate(names.len() - usize::from(unknown));
        let start = site.stored.start.map(|row| site.vocabulary.name(row).to_owned());
        if start.is_some() {
            if names.last().copied() != start.as_ref() {
                let what = "a model whose words were added to after its start token";
                return Err(Error::mismatch(what, "use the model as it was compiled"));
            }
            names.pop();
        }
        let mut vocabulary = Vocabulary::default();
        names.iter().for_each(|name| {
            vocabulary.add(name);
        });
        let longest = site.longest();
        let Site { stored, mut vectors, mask, labels, .. } = site;
        vectors.words.rows = vocabulary.len();
        vectors.words.data.truncate(vectors.words.rows * vectors.words.cols);
        let wide = |row: &[f64]| [row, &vec![0.0; vectors.d() - row.len()]].concat();
        let w = (0..vectors.d()).map(|i| if i == vectors.used { 1.0 } else { 0.0 }).collect();
        let map = ContextMap { v: wide(&stored.key), v_q: wide(&stored.query), w };
        let mut label_names = Vocabulary::default();
        labels.iter().for_each(|name| {
            label_names.add(name);
        });
        let free = stored.carried.data.iter().any(|&x| x != 0.0);
        let precision = if matches!(model, AnyModel::F32(_)) { Precision::F32 } else { Precision::F64 };
        let has_start = start.is_some();
        let like = Like { vocabulary, start, vectors, labels: label_names, label_codes: stored.head, map, longest };
        let mut memorizer = self;
        (memorizer.free, memorizer.unknown, memorizer.start) = (free, unknown, has_start);
        (memorizer.precision, memorizer.mask) = (precision, mask);
        if let Source::Memorize { seed, candidates, effort, text, .. } = model.source() {
            (memorizer.seed, memorizer.candidates) = (*seed, *candidates);
            memorizer.effort = effort.unwrap_or_default();
            memorizer.text = text.as_ref().map(|text| text.split);
        }
        memorizer.like = Some(std::sync::Arc::new(like));
        Ok(memorizer)
    }
}

impl Memorizer<'static> {
    /// The settings of a model, as far as its numbers and its source tell, with another seed: codes of the same kind and size, but new
    /// ones. Codes that are neither one coordinate each nor +1 and -1 are drawn at random, wherever they came from.
    pub(crate) fn settings_of(model: &AnyModel, seed: u64) -> Result<Self> {
        let site = Site::new(model)?;
        let positions = match (&site.vectors.positions, code_kind(&site.stored.places)) {
            (None, _) => Positions::None,
            (_, CodeKind::OneHot) => Positions::OneHot,
            (_, CodeKind::Sign(n)) => Positions::Sign(n),
            (_, CodeKind::Other(n)) => Positions::Random(n),
        };
        let embedding = match code_kind(&site.stored.words) {
            CodeKind::OneHot => Embedding::OneHot,
            CodeKind::Sign(n) => Embedding::Sign(n),
            CodeKind::Other(n) => Embedding::Random(n),
        };
        let start = site.stored.start.is_some();
        let unknown = model.config().start.as_deref() != Some(UNKNOWN) && site.vocabulary.get(UNKNOWN).is_some();
        let precision = if matches!(model, AnyModel::F32(_)) { Precision::F32 } else { Precision::F64 };
        let mut memorizer = Memorizer::new().seed(seed).precision(precision).unknown(unknown);
        memorizer = memorizer.free(site.stored.carried.data.iter().any(|&x| x != 0.0)).spare(model.spare_units());
        memorizer = memorizer.embedding(embedding).positions(positions).mask(site.mask).start(start);
        if let Source::Memorize { candidates, effort, text, .. } = model.source() {
            (memorizer.candidates, memorizer.effort) = (*candidates, effort.unwrap_or_default());
            memorizer.text = text.as_ref().map(|text| text.split);
        }
        Ok(memorizer)
    }
}

/// What codes look like, and how many coordinates they have.
enum CodeKind {
    OneHot,
    Sign(usize),
    Other(usize),
}

fn code_kind(codes: &Matrix<f64>) -> CodeKind {
    // A row of zeros is that of unknown words.
    let rows = || codes.iter_rows().filter(|row| row.iter().any(|&x| x != 0.0));
    if rows().all(|row| row.iter().all(|x| x.abs() == 1.0)) {
        CodeKind::Sign(codes.cols)
    } else if rows().all(|row| row.iter().filter(|&&x| x != 0.0).eq([&1.0])) {
        CodeKind::OneHot
    } else {
        CodeKind::Other(codes.cols)
    }
}

impl Like {
    /// The data with the model's words and labels, by their numbers.
    pub fn data(&self, data: &Dataset) -> Result<Dataset> {
        let (Tokens::Words { word_ids, vocabulary }, Labels::Classes { label_ids, names }) =
            (&data.tokens, &data.labels)
        else {
            return Err(Error::mismatch("data that is not words with classes", "`like` is for these"));
        };
        if let Some(i) = (0..data.sequences()).find(|&i| data.range(i).len() > self.longest) {
            let what = format!("{} tokens where the model has {} places", data.range(i).len(), self.longest);
            return Err(Error::data(
                data.location(data.offsets[i]),
                what,
                "split the sequence, or compile without `like`",
            ));
        }
        let rows: Vec<Option<u32>> = vocabulary.names().iter().map(|word| self.vocabulary.get(word)).collect();
        let word = |(t, &id): (usize, &u32)| {
            let what = || format!("the model does not know the word {:?}", vocabulary.name(id));
            rows[id as usize].ok_or_else(|| Error::data(data.location(t), what(), "compile without `like`"))
        };
        let numbers: Vec<Option<u32>> = names.names().iter().map(|name| self.labels.get(name)).collect();
        let label = |(t, id): (usize, &Option<u32>)| {
            let Some(id) = id else { return Ok(None) };
            let what = || format!("the model has no label {:?}", names.name(*id));
            numbers[*id as usize]
                .map(Some)
                .ok_or_else(|| Error::data(data.location(t), what(), "compile without `like`"))
        };
        Ok(Dataset {
            tokens: Tokens::Words {
                word_ids: word_ids.iter().enumerate().map(word).collect::<Result<_>>()?,
                vocabulary: self.vocabulary.clone(),
            },
            labels: Labels::Classes {
                label_ids: label_ids.iter().enumerate().map(label).collect::<Result<_>>()?,
                names: self.labels.clone(),
            },
            ..data.clone()
        })
    }
}
