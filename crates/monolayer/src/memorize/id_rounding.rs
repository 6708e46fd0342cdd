//! The id of a token, `g = sum_i p_i e^(y p_i) / sum_i e^(y p_i)`: a float near it, and how far a program's can be from that.
//!
//! A program computes keys, values and the query as sums of products in any order, each score as one product, subtracts
//! the largest score, takes exponentials within [`EXP_ULP`](crate::arithmetic::softmax_error::EXP_ULP) units in the last place, and forms two sums in any order and
//! quotients before or after the second. The float here is the result of one such program in double precision, so the same
//! bound holds for it.

use super::gated::stages::wire::{Wire, fields};
use super::gated::stored::Stored;
use crate::arithmetic::float_model::{ANY_GRID, DOUBLE, FloatFormat, Up, sum_above, sum_below};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::softmax_error::{InnerProduct, Softmax};
use crate::context_map::{View, seen_projections};
use crate::paper::mask::Mask;

/// The inner products of all words and places with some weights.
struct Products {
    words: Vec<InnerProduct>,
    places: Vec<InnerProduct>,
}

impl Products {
    fn new(stored: &Stored, weights: &[f64]) -> Self {
        let (word, place) = weights.split_at(stored.words.cols);
        let products = |codes: &Matrix<f64>, w: &[f64]| -> Vec<InnerProduct> {
            (0..codes.rows).map(|i| InnerProduct::new(w, codes.row(i))).collect()
        };
        Self { words: products(&stored.words, word), places: products(&stored.places, place) }
    }

    fn at(&self, word: u32, place: usize) -> InnerProduct {
        // Where there are no positions, the only row of places is empty.
        self.words[word as usize].plus(self.places[place.min(self.places.len() - 1)])
    }

    /// That of the start token, where there is one.
    fn start(&self, stored: &Stored) -> Option<InnerProduct> {
        stored.start.map(|word| self.at(word, 0))
    }
}

/// What is known of the id of a token.
#[derive(Debug, Clone, Copy)]
pub struct ContextId {
    /// A float near it.
    pub center: f64,
    /// How far the center can be from the id.
    off: Up,
    /// The mean of `|p_i - g|` and of `|p_i|` under the weights.
    deviation: Up,
    absolute: Up,
    softmax: Softmax,
}

impl ContextId {
    /// The id that a query `y` reads off projections, of which `key` bounds the rounding.
    fn new(p: &[f64], key: InnerProduct, query: InnerProduct, terms: usize) -> Self {
        let y = query.value;
        let top = p.iter().map(|p| y * p).fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut sum, mut absolute) = (0.0, 0.0, 0.0);
        let weights: Vec<f64> = p.iter().map(|p| core_math::exp(y * p - top)).collect();
        for (w, p) in weights.iter().zip(p) {
            total += w;
            sum += w * p;
            absolute += w * p.abs();
        }
        let center = sum / total;
        let deviation: f64 = weights.iter().zip(p).map(|(w, p)| w * (p - center).abs()).sum();
        let largest = p.iter().fold(0.0_f64, |m, p| m.max(p.abs()));
        let softmax = Softmax {
            length: p.len(),
            terms,
            largest: Up::size(largest) + key.error(&DOUBLE, terms),
            query_size: Up::size(y) + query.error(&DOUBLE, terms),
            key,
            query,
        };
        // What was computed here is off by as much as double precision allows.
        let own = softmax.rounding(&DOUBLE);
        let summed = DOUBLE.gamma(2 * p.len() + 8);
        let grown = (Up::count(1) + own.theta).over(own.theta.below_one()).over(summed.below_one());
        let mean = |sum: f64| Up::new(sum / total) * grown + own.key + own.lost;
        let (about_center, absolute) = (mean(deviation), mean(absolute));
        // |center - g| <= weights (mean |p - g|) + rest, and mean |p - g| <= mean |p - center| + |center - g|.
        let off = (own.weights * about_center + own.rest(absolute)).over(own.weights.below_one());
        let off = if center.is_finite() { off } else { Up::UNKNOWN };
        Self { center, off, deviation: about_center + off, absolute, softmax }
    }

    /// How far the id that a program computes can be from the center.
    pub fn error(&self, format: &FloatFormat) -> Up {
        self.off + self.softmax.error(format, self.deviation, self.absolute)
    }
}

/// The ids of some tokens.
pub fn context_ids(view: &View, stored: &Stored, tokens: &[usize]) -> Vec<ContextId> {
    IdReader::new(stored).ids(view, tokens)
}

/// Reads ids of tokens off the projections of all words and places.
pub struct IdReader {
    keys: Products,
    queries: Products,
    terms: usize,
    start: Option<InnerProduct>,
}

impl IdReader {
    /// For the words and places of a model.
    pub fn new(stored: &Stored) -> Self {
        let (keys, queries) = (Products::new(stored, &stored.key), Products::new(stored, &stored.query));
        Self { start: keys.start(stored), keys, queries, terms: stored.key.len() }
    }

    /// Bounds of all values that attention takes a mean of, as a program computes them.
    pub fn values(&self, format: &FloatFormat) -> (f64, f64) {
        let ends = |list: &[InnerProduct]| {
            let fold = |(low, high): (f64, f64), p: &InnerProduct| (low.min(p.value), high.max(p.value));
            list.iter().fold((f64::INFINITY, f64::NEG_INFINITY), fold)
        };
        let largest = |list: &[InnerProduct]| list.iter().map(|p| p.size).fold(Up::ZERO, Up::max);
        let (words, places) = (ends(&self.keys.words), ends(&self.keys.places));
        let size = largest(&self.keys.words) + largest(&self.keys.places);
        let error = format.sum_error(self.terms, size) + DOUBLE.sum_error(self.terms + 1, size);
        (sum_below(sum_below(words.0, places.0), -error.get()), sum_above(sum_above(words.1, places.1), error.get()))
    }

    /// The ids of some tokens.
    pub fn ids(&self, view: &View, tokens: &[usize]) -> Vec<ContextId> {
        let keys = self.keys(view);
        parallel::map_slice(tokens, |&t| {
            let (sequence, place) = view.place(t);
            let p = &keys.p[view.offsets[sequence]..view.offsets[sequence + 1]];
            self.id(&view.mask, (p, keys.worst[sequence]), (view.token_ids[t], place), &mut Vec::new())
        })
    }

    /// Calls `see` with all tokens of sequences, one after the other, and their ids. A sequence is the number of its first
    /// token and its words.
    pub fn each<'a>(
        &self,
        sequences: impl Iterator<Item = (usize, &'a [u32])>,
        mask: &Mask,
        mut see: impl FnMut(usize, &ContextId),
    ) {
        let (mut p, mut room) = (Vec::new(), Vec::new());
        for (start, words) in sequences {
            p.clear();
            let worst = self.sequence_keys(words, &mut p);
            for (place, &word) in words.iter().enumerate() {
                see(start + place, &self.id(mask, (&p, worst), (word, place), &mut room));
            }
        }
    }

    /// The id of a word at a place of a sequence with these projections.
    fn id(
        &self,
        mask: &Mask,
        (p, worst): (&[f64], InnerProduct),
        (word, place): (u32, usize),
        room: &mut Vec<f64>,
    ) -> ContextId {
        let seen = seen_projections(mask, self.start.map(|key| key.value), p, place, room);
        let query = self.queries.at(word, self.first_place() + place);
        ContextId::new(seen, worst, query, self.terms)
    }

    /// The row of places of the first token: the start token has the first.
    fn first_place(&self) -> usize {
        usize::from(self.start.is_some())
    }

    fn keys(&self, view: &View) -> SequenceKeys {
        let mut p = Vec::with_capacity(view.token_ids.len());
        let keys = |window: &[usize]| self.sequence_keys(&view.token_ids[window[0]..window[1]], &mut p);
        let worst = view.offsets.windows(2).map(keys).collect();
        SequenceKeys { p, worst }
    }

    /// Appends the projections of a sequence, and returns the worst.
    fn sequence_keys(&self, words: &[u32], p: &mut Vec<f64>) -> InnerProduct {
        let mut worst = InnerProduct { value: 0.0, size: Up::ZERO, grid: ANY_GRID };
        let mut include = |key: InnerProduct| {
            worst.size = worst.size.max(key.size);
            worst.grid = worst.grid.min(key.grid);
        };
        self.start.into_iter().for_each(&mut include);
        for (place, &word) in (self.first_place()..).zip(words) {
            let key = self.keys.at(word, place);
            p.push(key.value);
            include(key);
        }
        worst
    }
}

impl Wire for InnerProduct {
    fn put(&self, out: &mut Vec<u8>) {
        (self.value, self.size.get(), self.grid).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let (value, size, grid) = Wire::get(from)?;
        Some(Self { value, size: Up::new(size), grid })
    }
}

fields!(Products { words, places });

impl Wire for IdReader {
    fn put(&self, out: &mut Vec<u8>) {
        self.keys.put(out);
        self.queries.put(out);
        (self.terms, self.start.into_iter().collect::<Vec<_>>()).put(out);
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        let (keys, queries) = (Wire::get(from)?, Wire::get(from)?);
        let (terms, mut start) = <(usize, Vec<InnerProduct>)>::get(from)?;
        Some(Self { keys, queries, terms, start: start.pop() })
    }
}

/// The projections of all tokens, and of each sequence the worst, which stands for what any of its tokens sees.
struct SequenceKeys {
    p: Vec<f64>,
    worst: Vec<InnerProduct>,
}
