//! Words with classes, at any scale: the proof of Corollary 2 as passes over shards of the data (docs/scale.md).
//!
//! 1. Labels of words are counted: every word gets its commonest one as base label, and a word with one label is done.
//! 2. Words at places with several labels are *groups*. The contexts of their tokens are told apart, and the tokens that
//!    contradict their context are set aside.
//! 3. A projection is searched for on the largest groups, and all ids are computed with it.
//! 4. Codes have a guaranteed distance, so that the code of a word at a place is itself the gate that holds its units shut
//!    for all others. Each group gets its hinges and its proof by itself.
//!
//! What is kept grows with the tokens of groups, not with the data. No result depends on how the data is cut into shards.

mod build;
pub mod cluster;
mod contexts;
mod counts;
mod hinge_groups;
mod ids;
mod passes;
mod sample;
mod shard;
mod whole;
pub(crate) mod wire;
mod word_blocks;
mod word_groups;

use std::borrow::Cow;

use super::assembly::label_codes;
use crate::arithmetic::matrix::Matrix;
use crate::context_map::search::{SINGLE_GRID, Search};
use crate::context_map::{ContextMap, Projection};
use crate::data::context::START;
use crate::data::embedding::Embedding;
use crate::data::far_codes;
use crate::data::positions::{Positions, SIGN_DIMENSION};
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::memorize::compiled::{Compiled, Details};
use crate::memorize::model_labels;
use crate::memorize::settings::{Effort, MEMORY, Memorizer, Precision};
use build::Stages;
use contexts::{ContextRule, GroupContexts};
use passes::{InMemory, LabelPass, PlacePass, Runner};
use sample::Sample;
use shard::Shard;
use word_groups::{GroupTable, WordLabels};

/// From so many tokens on, data is memorized in stages unless asked otherwise.
const LARGE: usize = 1_000_000;
/// Up to so many words codes are of dimension 64; beyond, the codes of dimension 32 make smaller models.
const LONG_CODES: usize = 1 << 16;
/// From so many contexts on, projections on the grid of single precision collide too often to be worth a search.
const SINGLE_CONTEXTS: usize = 1 << 17;
/// A gap below this part of the ids' standard deviation is beyond single precision.
const SINGLE_GAP: f64 = 1e-6;
/// How often a search is repeated with another seed where two ids coincide that must not.
const SEARCHES: u64 = 4;

/// Whether a dataset is memorized in stages: what is asked for must leave codes to the compiler, or name far ones.
pub fn fit(memorizer: &Memorizer, data: &Dataset) -> bool {
    let places = data.longest() + usize::from(memorizer.start);
    memorizer.effort == Effort::Fast
        && (memorizer.memory.is_some() || data.tokens() >= LARGE)
        && memorizer.text.is_none()
        && memorizer.like.is_none()
        && matches!(memorizer.wanted.embedding, None | Some(Embedding::Far(_)))
        && match memorizer.positions {
            Positions::None => true,
            Positions::Auto | Positions::Sign(SIGN_DIMENSION) => places <= 2048,
            Positions::Far(d) => far_codes::distance(d, places).is_some(),
            _ => false,
        }
}

/// Memorizes a dataset of words with classes.
pub fn memorize(data: &Dataset, memorizer: &Memorizer) -> Result<Compiled> {
    let (Tokens::Words { word_ids, .. }, Labels::Classes { label_ids, .. }) = (&data.tokens, &data.labels) else {
        return Err(no_words());
    };
    let shards = Shard::all(data, word_ids, label_ids);
    memorize_with(data, &InMemory { shards, memory: memorizer.memory.unwrap_or(MEMORY) }, memorizer)
}

fn no_words() -> Error {
    Error::mismatch("gated units need words with classes", "use `method` plateau or interpolate")
}

/// The same where passes run over shards that are anywhere: nothing is read of the tokens of `data` here.
fn memorize_with(data: &Dataset, runner: &impl Runner, memorizer: &Memorizer) -> Result<Compiled> {
    let (Tokens::Words { vocabulary, .. }, Labels::Classes { names, .. }) = (&data.tokens, &data.labels) else {
        return Err(no_words());
    };
    let names = model_labels(names);
    let labels = WordLabels::new(&runner.pass(&LabelPass {}, &[])?, vocabulary.len(), names.len());
    let groups = Grouped::new(data, runner, &labels, memorizer)?;
    let start = memorizer.start_for(vocabulary);
    let label_codes = label_codes(&names, memorizer.seed)?;
    let vectors = {
        let embedding = embedding(memorizer, vocabulary);
        let extra = 1 + label_codes.cols;
        TokenVectors::with_start(start.as_deref(), data, &embedding, &groups.positions, extra, memorizer.seed)?
    };
    let stages = Stages {
        data,
        memorizer,
        runner,
        labels: &labels,
        groups: &groups,
        vectors: &vectors,
        start: start.as_deref(),
        vocabulary,
        names: &names,
        label_codes: &label_codes,
        hash: whole::hash(data, runner)?,
    };
    let compiled = compile(&stages, &Sample::new(data, runner, &groups.found.contexts)?)?;
    memorizer.finish_with(data, compiled, || whole::covered(data, vocabulary.len(), runner))
}

/// Vectors for words where the compiler chooses.
fn embedding(memorizer: &Memorizer, vocabulary: &Vocabulary) -> Embedding {
    let far = Embedding::Far(if vocabulary.len() < LONG_CODES { 64 } else { 32 });
    memorizer.wanted.embedding.clone().unwrap_or(far)
}

/// The groups of a dataset with their contexts, and the positions that these take.
pub struct Grouped {
    table: GroupTable,
    found: GroupContexts,
    positions: Positions,
}

impl Grouped {
    /// With positions where they are asked for, or where contexts contradict each other without them and less with them.
    fn new(data: &Dataset, runner: &impl Runner, labels: &WordLabels, memorizer: &Memorizer) -> Result<Self> {
        let start = memorizer.start.then_some(START);
        let with = |positions: Positions| -> Result<Self> {
            let places = positions != Positions::None;
            let counts =
                runner.pass(&PlacePass { ambiguous: Cow::Borrowed(&labels.ambiguous), positions: places }, &[])?;
            let table = GroupTable::new(&counts, labels);
            let rule = ContextRule { start, mask: Cow::Borrowed(&memorizer.mask), positions: places };
            let found = runner.contexts(&table, &rule)?;
            Ok(Self { table, found, positions })
        };
        if memorizer.positions != Positions::Auto {
            return with(memorizer.positions.clone());
        }
        let without = with(Positions::None)?;
        if without.found.impossible.is_empty() || data.tokens() == 0 {
            return Ok(without);
        }
        let with_places = with(Positions::Auto)?;
        Ok(if without.found.impossible.len() > with_places.found.impossible.len() { with_places } else { without })
    }
}

/// A projection, and the units it leads to: in single precision where all labels are proved so, else in double.
fn compile(stages: &Stages<impl Runner>, sample: &Sample) -> Result<Compiled> {
    let memorizer = stages.memorizer;
    let precision = memorizer.precision;
    let single = precision == Precision::F32
        || precision == Precision::Auto && stages.groups.found.contexts.len() <= SINGLE_CONTEXTS;
    let search = |grid: f64, round: u64| -> (ContextMap, usize, f64) {
        let search = Search::new().seed(memorizer.seed.wrapping_add(round)).candidates(memorizer.candidates).grid(grid);
        let report = |tried: usize, gap: f64| memorizer.report(tried, gap);
        let (projection, candidates, gap) = sample.search(&search, stages.vectors, &memorizer.mask, &report);
        (context_map(stages.vectors, &projection), candidates, gap)
    };
    let mut proved_in_single = None;
    if single {
        let (map, candidates, gap) = search(SINGLE_GRID, 0);
        if precision == Precision::F32 || gap > SINGLE_GAP {
            match stages.build::<f32>(&map, candidates)? {
                Some(compiled) if precision == Precision::F32 || compiled.is_proved() => return Ok(compiled),
                Some(compiled) => proved_in_single = Some(compiled.certified()),
                None if precision == Precision::F32 => return Err(super::ids_too_close()),
                None => {}
            }
        }
    }
    for round in 0..SEARCHES {
        let (map, candidates, _) = search(super::compile::FINE_GRID, round);
        if let Some(mut compiled) = stages.build::<f64>(&map, candidates)? {
            if let Details::Gated(details) = &mut compiled.details {
                details.proved_in_single = proved_in_single;
            }
            return Ok(compiled);
        }
    }
    Err(Error::too_close(
        "two contexts with different labels have the same id under every projection tried",
        "raise `candidates`, or try another `seed` or a larger code dimension",
    ))
}

/// The layer of a projection, which adds ids to the coordinate behind the codes.
fn context_map(vectors: &TokenVectors, projection: &Projection) -> ContextMap {
    let w = (0..vectors.d()).map(|i| if i == vectors.used { 1.0 } else { 0.0 }).collect();
    ContextMap::new(projection, w)
}

/// Names and label codes, whoever has them.
type Names<'a> = &'a Cow<'a, Vocabulary>;
type LabelCodes<'a> = &'a Matrix<f64>;
