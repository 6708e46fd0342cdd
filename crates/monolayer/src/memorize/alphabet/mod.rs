//! Small alphabets: with one-hot codes every word and every place has a key and a query of its own, and the compiler chooses
//! what attention sees and which tokens share hidden units, so that few units are needed.

pub mod architecture;
pub mod context_table;
mod least_units;
pub(crate) mod plane_orders;
pub mod scalars;
pub mod search;

use std::sync::atomic::{AtomicUsize, Ordering};

use architecture::{Alternative, Architecture, Gates, Reads};
use context_table::{ContextTable, Sequences};
use scalars::Scalars;
use search::{Budget, FoundScalars, search};

use super::settings::Memorizer;
use crate::arithmetic::sorting;
use crate::context_map::ContextMap;
use crate::data::embedding::Embedding;
use crate::data::positions::Positions;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Tokens};
use crate::paper::mask::Mask;

/// The most words and places, multiplied, that count as a small alphabet.
const MOST_QUERIES: usize = 512;
/// How many architectures are searched for longer.
const LONGER: usize = 2;
/// The most tokens of such a dataset.
const MOST_TOKENS: usize = 2_000_000;

/// What was chosen for a dataset over a small alphabet.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What attention sees, and which tokens share their units.
    pub architecture: Architecture,
    /// The keys and queries.
    pub scalars: Scalars,
    /// The label that wins without units.
    pub default: u32,
    /// The fewest units that the architecture needs, whatever its keys and queries.
    pub least_units: usize,
    /// Everything that was considered, the chosen one first.
    pub alternatives: Vec<Alternative>,
    /// Projections tried.
    pub candidates: usize,
}

/// Whether an alphabet is small, so that there is a choice.
pub fn is_small(data: &Dataset) -> bool {
    let Tokens::Words { vocabulary, .. } = &data.tokens else { return false };
    (vocabulary.len() + 1) * data.longest() <= MOST_QUERIES && data.tokens() <= MOST_TOKENS
}

impl Choice {
    /// Chooses for a dataset, or not at all: where it is no small alphabet, where the embedding or the positions are given, or
    /// where no scalars were found that tell all contexts apart.
    pub fn new(data: &Dataset, memorizer: &Memorizer) -> Option<Self> {
        let (Tokens::Words { vocabulary, word_ids }, Labels::Classes { label_ids, .. }) = (&data.tokens, &data.labels)
        else {
            return None;
        };
        let given = memorizer.wanted.embedding.is_some() || memorizer.text.is_some() || memorizer.unknown;
        let positions = matches!(memorizer.positions, Positions::Auto | Positions::None);
        if given || !positions || !is_small(data) || label_ids.iter().all(Option::is_none) {
            return None;
        }
        let sequences = Sequences {
            word_ids,
            offsets: &data.offsets,
            labels: label_ids,
            words: vocabulary.len(),
            longest: data.longest(),
        };
        choose(sequences, memorizer)
    }

    /// The same with the units that were built: more than were counted where machine numbers do not bear the slopes that few need.
    #[must_use]
    pub fn with_units(&self, units: usize) -> Self {
        let mut choice = self.clone();
        choice.alternatives[0].units = Some(units);
        choice
    }

    /// The settings that the choice amounts to.
    pub fn settings<'a>(&self, memorizer: &Memorizer<'a>) -> Memorizer<'a> {
        let positions = if self.architecture.reads.positions() { Positions::OneHot } else { Positions::None };
        let mut chosen = memorizer.clone();
        chosen.embedding = Embedding::OneHot;
        chosen.positions = positions;
        chosen.mask = self.architecture.mask.clone();
        chosen.start = self.architecture.start;
        chosen
    }

    /// The layer: a key and a query for each coordinate of the one-hot codes.
    pub fn map(&self, vectors: &TokenVectors) -> ContextMap {
        let place = |scalars: &[f64], zero: f64| {
            let start = vectors.start.as_ref().map(|_| zero);
            let places = vectors.positions.as_ref().map_or(&[][..], |_| scalars);
            start
                .into_iter()
                .filter(|_| vectors.positions.is_some())
                .chain(places.iter().copied())
                .collect::<Vec<f64>>()
        };
        let row = |words: &[f64], start: f64, places: &[f64]| {
            let start = vectors.start.as_ref().map(|_| start);
            let mut row: Vec<f64> = words.iter().copied().chain(start).chain(place(places, 0.0)).collect();
            row.resize(vectors.d(), 0.0);
            row
        };
        let Scalars { word_keys, place_keys, word_queries, place_queries, start } = &self.scalars;
        let mut w = vec![0.0; vectors.d()];
        w[vectors.used] = 1.0;
        ContextMap { v: row(word_keys, *start, place_keys), v_q: row(word_queries, 0.0, place_queries), w }
    }
}

/// The architectures to be considered, the simplest first.
fn architectures(memorizer: &Memorizer) -> Vec<Architecture> {
    let wanted = &memorizer.wanted;
    let masks = wanted.mask.clone().map_or_else(|| vec![Mask::None, Mask::Causal], |mask| vec![mask]);
    let starts = wanted.start.map_or_else(|| vec![false, true], |start| vec![start]);
    let reads = Reads::ALL.into_iter().filter(|&reads| {
        wanted.reads.is_none_or(|wanted| reads == wanted)
            && (memorizer.positions != Positions::None || !reads.positions())
            && wanted.gates.is_none_or(|gates| reads.positions() || !gates.reads().1)
    });
    let with = |reads: Reads| {
        let (masks, starts) = (masks.clone(), starts.clone());
        starts.into_iter().flat_map(move |start| {
            masks.clone().into_iter().map(move |mask| Architecture { mask, start, reads, gates: Gates::Shared })
        })
    };
    reads.flat_map(with).collect()
}

/// The gates to be considered.
fn gates(memorizer: &Memorizer, table: &ContextTable) -> Vec<Gates> {
    memorizer.wanted.gates.map_or_else(|| table.gates().collect(), |gates| vec![gates])
}

/// How long every architecture is searched for, and how long the most promising ones.
fn budgets(memorizer: &Memorizer) -> (impl Fn(&ContextTable) -> Budget, impl Fn(&ContextTable) -> Budget) {
    let n = memorizer.candidates;
    (
        move |table: &ContextTable| Budget::new(table, n, n),
        move |table: &ContextTable| Budget::new(table, 2 * n, 40 * n),
    )
}

/// How many scalars are tried at most: which tables are searched for longer is not known beforehand.
fn most_tries<'a>(memorizer: &Memorizer, tables: impl Iterator<Item = &'a ContextTable>) -> usize {
    let (short, long) = budgets(memorizer);
    let (short, mut long): (Vec<usize>, Vec<usize>) = tables.map(|t| (short(t).total(), long(t).total())).unzip();
    long.sort_unstable_by_key(|&total| std::cmp::Reverse(total));
    short.iter().chain(long.iter().take(LONGER)).sum()
}

/// Tells of scalars tried, as shares of the candidates asked for.
fn shares(memorizer: &Memorizer, all: usize) -> impl Fn(usize) + Sync {
    let done = AtomicUsize::new(0);
    let share = move |done: usize| done.min(all) * memorizer.candidates / all.max(1);
    move |tried: usize| {
        let before = done.fetch_add(tried, Ordering::Relaxed);
        let more = share(before + tried) - share(before);
        if more > 0 {
            memorizer.report(more, 0.0);
        }
    }
}

fn choose(data: Sequences, memorizer: &Memorizer) -> Option<Choice> {
    let tables: Vec<(Architecture, ContextTable)> =
        architectures(memorizer).into_iter().map(|a| (a.clone(), ContextTable::new(data, &a))).collect();
    let least = tables.iter().map(|(_, table)| table.impossible).min()?;
    let (short, long) = budgets(memorizer);
    let eligible = tables.iter().map(|(_, table)| table).filter(|table| table.impossible == least);
    let report = shares(memorizer, most_tries(memorizer, eligible));
    let mut considered: Vec<(usize, FoundScalars)> = Vec::new();
    let mut alternatives: Vec<Alternative> = Vec::new();
    let mut candidates = 0;
    for (i, (architecture, table)) in tables.iter().enumerate() {
        let mut alternative =
            Alternative { architecture: architecture.clone(), impossible: table.impossible, units: None };
        if table.impossible == least {
            let budget = short(table);
            let found = search(table, &gates(memorizer, table), budget, memorizer.seed, &report);
            candidates += budget.total();
            alternative.architecture.gates = found.gates;
            alternative.units = (found.count.collisions == 0).then_some(found.count.units);
            considered.push((i, found));
        }
        alternatives.push(alternative);
    }
    // The most promising ones are searched for longer.
    sorting::sort_by_key(&mut considered, |(i, found)| (found.count.collisions, found.count.units, *i));
    considered.truncate(LONGER);
    for (i, found) in &mut considered {
        let table = &tables[*i].1;
        let budget = long(table);
        let next = search(table, &gates(memorizer, table), budget, memorizer.seed ^ 1, &report);
        candidates += budget.total();
        if next.count.better(&found.count) {
            *found = next;
        }
        alternatives[*i].architecture.gates = found.gates;
        alternatives[*i].units = (found.count.collisions == 0).then_some(found.count.units);
    }
    let (best, found) =
        considered.into_iter().min_by_key(|(i, found)| (found.count.collisions, found.count.units, *i))?;
    if found.count.collisions > 0 {
        return None;
    }
    let least_units = tables[best].1.least_units(found.gates);
    let chosen = alternatives.remove(best);
    sorting::sort_by_key(&mut alternatives, |a| (a.impossible, a.units.unwrap_or(usize::MAX)));
    let architecture = chosen.architecture.clone();
    alternatives.insert(0, chosen);
    Some(Choice {
        architecture,
        scalars: found.scalars,
        default: found.count.default,
        least_units,
        alternatives,
        candidates,
    })
}
