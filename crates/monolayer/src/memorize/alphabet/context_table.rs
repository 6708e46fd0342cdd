//! The contexts of a dataset over a small alphabet, each once: what a search evaluates thousands of times.

use std::collections::{BTreeMap, HashMap};

use super::architecture::{Architecture, Gates, Reads};
use super::scalars::Scalars;
use crate::context_map::standard_deviation;
use crate::data::context::{Contexts, START};
use crate::memorize::gated::label_hinges::label_cost;

/// Every different context of some sequences: a token with the tokens it sees, and its label.
///
/// A *query* is a word, at a place where places count: `word * places + place`. A *key* is the same of a token that is seen, its
/// place only where keys read places; the start token is the last key.
pub struct ContextTable {
    words: usize,
    places: usize,
    reads: Reads,
    keys: usize,
    /// The query and the label of each context.
    of_context: Vec<(u32, u32)>,
    /// Where the keys of each context start.
    offsets: Vec<u32>,
    /// The keys seen, each with how often.
    seen: Vec<(u32, f64)>,
    /// Tokens that no weights get right.
    pub impossible: usize,
}

/// How many hidden units some ids need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitCount {
    /// Changes of label between ids that are too close to be told apart.
    pub collisions: usize,
    /// Hidden units.
    pub units: usize,
    /// The smallest distance of neighboring ids with different labels, over the standard deviation of all ids, or over a tenth of the
    /// largest, if that is more.
    pub gap: f64,
    /// The label that wins without units.
    pub default: u32,
}

/// Ids closer than this part of their spread are too close even for double precision.
const TOO_CLOSE: f64 = 1e-9;
/// Ids that are wider apart than this are likely to be told apart in single precision.
const WIDE: f64 = 2e-5;

impl UnitCount {
    /// Whether these are better than others: fewer collisions, then a lower cost, then a wider gap.
    pub fn better(&self, other: &Self) -> bool {
        let order = self.collisions.cmp(&other.collisions).then(self.cost().total_cmp(&other.cost()));
        order.is_lt() || (order.is_eq() && self.gap > other.gap)
    }

    /// One number that is smaller for better ones, but for the gap: single precision is worth some units.
    pub fn cost(&self) -> f64 {
        let precision = if self.gap < WIDE { 1.1 } else { 1.0 };
        self.units as f64 * precision + 10.0 * self.collisions as f64
    }
}

/// The sequences of a dataset: words of tokens, where sequences start, labels.
#[derive(Clone, Copy)]
pub struct Sequences<'a> {
    /// The word of each token.
    pub word_ids: &'a [u32],
    /// Where each sequence starts, and the end of the last.
    pub offsets: &'a [usize],
    /// The label of each token; none where any will do.
    pub labels: &'a [Option<u32>],
    /// How many words there are.
    pub words: usize,
    /// The longest sequence.
    pub longest: usize,
}

impl ContextTable {
    /// The contexts as an architecture sees them, with the labels that no weights contradict; its gates do not matter.
    pub fn new(data: Sequences, architecture: &Architecture) -> Self {
        let reads = architecture.reads;
        let places = if reads.positions() { data.longest } else { 1 };
        let key_places = if reads == Reads::Places { places } else { 1 };
        let start_key = (data.words * key_places) as u32;
        // The labels that a model with such positions is asked for: those of its full contexts.
        let start = architecture.start.then_some(START);
        let contexts = Contexts::with_start(start, data.word_ids, data.offsets, &architecture.mask, reads.positions());
        let agreement = contexts.agree(data.labels);
        let mut numbers: HashMap<(u32, Vec<u32>), usize> = HashMap::new();
        let mut counts: Vec<HashMap<u32, usize>> = Vec::new();
        let mut visible = Vec::new();
        for window in data.offsets.windows(2) {
            let sequence = &data.word_ids[window[0]..window[1]];
            for (place, &word) in sequence.iter().enumerate() {
                let full = contexts.of_token[window[0] + place] as usize;
                let Some(label) = agreement.label[full].filter(|_| data.labels[window[0] + place].is_some()) else {
                    continue;
                };
                let key = |k: usize| sequence[k] * key_places as u32 + if key_places > 1 { k as u32 } else { 0 };
                visible.clear();
                visible.extend(architecture.mask.seen(place, sequence.len()).places().map(key));
                visible.extend(architecture.start.then_some(start_key));
                visible.sort_unstable();
                normalize(&mut visible);
                let query = word * places as u32 + if places > 1 { place as u32 } else { 0 };
                let next = counts.len();
                let context = *numbers.entry((query, visible.clone())).or_insert(next);
                if context == next {
                    counts.push(HashMap::new());
                }
                *counts[context].entry(label).or_insert(0) += 1;
            }
        }
        let mut listed: Vec<((u32, Vec<u32>), usize)> = numbers.into_iter().collect();
        listed.sort_unstable_by_key(|(_, number)| *number);
        let mut table = Self {
            words: data.words,
            places,
            reads,
            keys: start_key as usize + 1,
            of_context: Vec::with_capacity(listed.len()),
            offsets: vec![0],
            seen: Vec::new(),
            impossible: agreement.impossible.len(),
        };
        for (((query, visible), _), counts) in listed.into_iter().zip(counts) {
            let most = counts.iter().map(|(&label, &count)| (count, std::cmp::Reverse(label))).max();
            let (count, std::cmp::Reverse(label)) = most.expect("a context has a token");
            table.impossible += counts.values().sum::<usize>() - count;
            table.of_context.push((query, label));
            table.seen.extend(visible.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64)));
            table.offsets.push(table.seen.len() as u32);
        }
        table
    }

    /// How many contexts there are.
    pub fn contexts(&self) -> usize {
        self.of_context.len()
    }

    /// The scalars that a projection of this table has: words, places, of keys and of queries. Scalars that nothing reads are 0.
    pub fn shape(&self) -> (usize, usize, Reads) {
        (self.words, self.places, self.reads)
    }

    /// The context ids, in plain floating point. Not numbers where exponentials leave the range of floats.
    pub fn ids(&self, scalars: &Scalars) -> Vec<f64> {
        let queries = self.words * self.places;
        let p: Vec<f64> = (0..self.keys).map(|key| self.key(scalars, key)).collect();
        let mut weights = vec![(0.0, 0.0); queries * self.keys];
        for (query, row) in weights.chunks_exact_mut(self.keys).enumerate() {
            let y = scalars.query(query / self.places, query % self.places);
            let top = p.iter().map(|p| y * p).fold(f64::NEG_INFINITY, f64::max);
            for (weight, p) in row.iter_mut().zip(&p) {
                let e = (y * p - top).exp();
                *weight = (e, e * p);
            }
        }
        let id = |(&(query, _), window): (&(u32, u32), &[u32])| {
            let row = &weights[query as usize * self.keys..];
            let (mut total, mut sum) = (0.0, 0.0);
            for &(key, count) in &self.seen[window[0] as usize..window[1] as usize] {
                let (weight, weighted) = row[key as usize];
                total += count * weight;
                sum += count * weighted;
            }
            sum / total
        };
        self.of_context.iter().zip(self.offsets.windows(2)).map(id).collect()
    }

    fn key(&self, scalars: &Scalars, key: usize) -> f64 {
        if key + 1 == self.keys {
            return scalars.start;
        }
        match self.reads {
            Reads::Places => scalars.word_keys[key / self.places] + scalars.place_keys[key % self.places],
            _ => scalars.word_keys[key],
        }
    }

    /// How many hidden units the ids need where tokens share units as `gates` say.
    pub fn units(&self, ids: &[f64], gates: Gates) -> UnitCount {
        let largest = ids.iter().fold(0.0_f64, |m, id| m.max(id.abs()));
        // Ids that differ by little more than their rounding are not told apart, however small their spread.
        let spread = standard_deviation(ids).max(0.1 * largest);
        if !spread.is_finite() || spread == 0.0 {
            return UnitCount { collisions: self.contexts(), units: self.contexts(), gap: 0.0, default: 0 };
        }
        let mut sorted: Vec<(u32, f64, u32)> = ids
            .iter()
            .zip(&self.of_context)
            .map(|(&id, &(query, label))| (self.group(query, gates), id, label))
            .collect();
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let (mut collisions, mut gap) = (0, f64::INFINITY);
        let mut lists: Vec<Vec<u32>> = Vec::new();
        for list in sorted.chunk_by(|a, b| a.0 == b.0) {
            let mut runs = vec![list[0].2];
            for pair in list.windows(2).filter(|pair| pair[0].2 != pair[1].2) {
                let apart = pair[1].1 - pair[0].1;
                gap = gap.min(apart);
                collisions += usize::from(apart <= TOO_CLOSE * spread);
                runs.push(pair[1].2);
            }
            lists.push(runs);
        }
        let (units, default) = least_hinges(&lists);
        UnitCount { collisions, units, gap: gap / spread, default }
    }

    /// The number of a query's group, below `u32::MAX`.
    pub fn group(&self, query: u32, gates: Gates) -> u32 {
        let places = self.places as u32;
        match gates {
            Gates::Shared => 0,
            Gates::Word => query / places,
            Gates::Place => query % places,
            Gates::WordPlace => query,
        }
    }

    /// The gates that make a difference here.
    pub fn gates(&self) -> impl Iterator<Item = Gates> + '_ {
        Gates::ALL.into_iter().filter(|gates| self.places > 1 || !gates.reads().1)
    }

    /// Whether the lines through all contexts are few enough to be walked. Where keys are words at places, each is seen once at
    /// most, and lines have two contexts at most.
    pub fn lines_are_few(&self) -> bool {
        self.reads != Reads::Places && self.contexts() * self.keys * self.keys <= 20_000_000
    }

    /// The query of a context, its label, and the keys it sees, each with how often.
    pub fn of_context(&self, context: usize) -> (u32, u32, &[(u32, f64)]) {
        let (query, label) = self.of_context[context];
        (query, label, &self.seen[self.offsets[context] as usize..self.offsets[context + 1] as usize])
    }
}

/// The fewest hinges for the labels of runs in some lists, and the label that wins without any.
fn least_hinges(lists: &[Vec<u32>]) -> (usize, u32) {
    /// As many labels are tried, those that most lists have.
    const MOST_TRIED: usize = 2;
    // In how many lists each label is, and the last of them.
    let mut with_label: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for (i, list) in lists.iter().enumerate() {
        for &label in list {
            let (count, last) = with_label.entry(label).or_insert((0, usize::MAX));
            if *last != i {
                (*count, *last) = (*count + 1, i);
            }
        }
    }
    let mut tried: Vec<u32> = with_label.keys().copied().collect();
    tried.sort_by_key(|label| std::cmp::Reverse(with_label[label].0));
    tried.truncate(MOST_TRIED);
    let units = |&base: &u32| (lists.iter().map(|list| label_cost(list, base)).sum(), base);
    tried.iter().map(units).min_by_key(|&(units, _)| units).unwrap_or((0, 0))
}

/// Divides the multiplicities of a sorted list by their greatest common divisor: attention sees proportions.
fn normalize(sorted: &mut Vec<u32>) {
    let mut counts = sorted.chunk_by(|a, b| a == b).map(<[u32]>::len);
    let gcd = counts.clone().fold(0, |mut a, mut b| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    });
    if gcd > 1 && counts.all(|count| count % gcd == 0) {
        let mut i = 0;
        sorted.retain(|_| {
            i += 1;
            i % gcd == 0
        });
    }
}
