//! The embedding rows of a batch: which there are, what they have missed ([`crate::lazy_adam`]), their gradients, their update.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use std::ops::Range;

use monolayer::arithmetic::kernels::{self, Real};

use crate::lazy_adam::{CatchUp, MissedSteps};
use crate::optimizer::{Optimizer, Update};
use crate::pass::{Chunk, Parameters};
use crate::team::{Task, pieces};

/// Rows lie far apart in a large table: a row is asked for so many rows before it is read.
pub(crate) const AHEAD: usize = 8;

/// Rows of a task.
const ROWS: usize = 96;

/// The distinct words of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchRows<R> {
    /// For each word of the vocabulary, its place in `distinct` plus 1, or 0.
    slot: Vec<u32>,
    distinct: Vec<u32>,
    /// What each distinct word's row has missed.
    catch_ups: Vec<Option<CatchUp<R>>>,
    /// The gradient of each distinct word's row.
    gradient: Vec<R>,
    /// A buffer for the distinct words.
    sorted: Vec<u32>,
}

impl<R: Real> BatchRows<R> {
    pub fn new(words: usize) -> Self {
        Self { slot: vec![0; words], ..Self::default() }
    }

    /// Finds the distinct words of a batch, and what their rows have missed.
    pub fn find(&mut self, ids: &[u32], seen: &[u32], missed: &mut MissedSteps, optimizer: &Optimizer) {
        self.distinct.drain(..).for_each(|word| self.slot[word as usize] = 0);
        self.catch_ups.clear();
        missed.add_up(optimizer);
        for &id in ids {
            let slot = &mut self.slot[id as usize];
            if *slot == 0 {
                self.distinct.push(id);
                self.catch_ups.push(missed.catch_up(optimizer, seen[id as usize]));
                *slot = self.distinct.len() as u32;
            }
        }
    }

    /// What the row of a word of the batch has missed.
    #[inline(always)]
    pub fn catch_up(&self, word: u32) -> Option<&CatchUp<R>> {
        self.catch_ups[self.slot[word as usize] as usize - 1].as_ref()
    }

    /// Adds the gradients of the batch's tokens up, in order, and returns the sum of squares.
    pub fn add_gradients(&mut self, mut ids: &[u32], d: usize, chunks: &[Chunk<R>]) -> f64 {
        self.gradient.clear();
        self.gradient.resize(self.distinct.len() * d, R::ZERO);
        kernels::vectorized(
            #[inline(always)]
            || {
                for Chunk { d_tokens: rows, .. } in chunks {
                    let (own, rest) = ids.split_at(rows.len() / d);
                    for (&id, row) in own.iter().zip(rows.chunks_exact(d)) {
                        let slot = self.slot[id as usize] as usize - 1;
                        self.gradient[slot * d..][..d].iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
                    }
                    ids = rest;
                }
                kernels::dot(&self.gradient, &self.gradient).to_f64()
            },
        )
    }

    /// Tasks that take the steps that the rows have missed, then one with their gradients. `second` is empty for SGD.
    pub fn update<'a>(
        &'a mut self,
        update: (&'a Update<R>, R),
        d: usize,
        lists: [&'a mut [R]; 3],
        (seen, steps): (&mut [u32], u32),
        tasks: &mut Vec<Task<'a>>,
    ) {
        self.distinct.iter().for_each(|&word| seen[word as usize] = steps);
        // The table is cut so that each task has as many rows.
        self.sorted.clone_from(&self.distinct);
        self.sorted.sort_unstable();
        let firsts = self.sorted.chunks(ROWS).map(|words| words[0] as usize);
        let mut cuts: Vec<usize> = firsts.chain([self.slot.len()]).collect();
        cuts[0] = 0;
        let ranges: Vec<Range<usize>> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
        let places: Vec<Range<usize>> = ranges.iter().map(|range| range.start * d..range.end * d).collect();
        let rows = &*self;
        let [parameters, first, second] = lists.map(|list| pieces(list, &places));
        for (((range, p), m), v) in ranges.into_iter().zip(parameters).zip(first).zip(second) {
            tasks.push(Box::new(move || rows.update_range(update, d, range, [p, m, v])));
        }
    }

    /// The rows of words in a range, which is what the lists hold.
    fn update_range(
        &self,
        (update, scale): (&Update<R>, R),
        d: usize,
        range: Range<usize>,
        [parameters, first, second]: [&mut [R]; 3],
    ) {
        let row = |word: u32| (word as usize - range.start) * d..(word as usize - range.start + 1) * d;
        let within = |word: u32| range.contains(&(word as usize));
        kernels::vectorized(
            #[inline(always)]
            || {
                let rows = self.distinct.iter().zip(&self.catch_ups).zip(self.gradient.chunks_exact(d));
                for (i, ((&word, catch_up), gradient)) in rows.enumerate() {
                    if let Some(&next) = self.distinct.get(i + AHEAD).filter(|&&next| within(next)) {
                        let own = row(next);
                        for list in [&*parameters, &*first, &*second] {
                            kernels::prefetch(list.get(own.clone()).unwrap_or_default());
                        }
                    }
                    if !within(word) {
                        continue;
                    }
                    let own = row(word);
                    let (row, first) = (&mut parameters[own.clone()], &mut first[own.clone()]);
                    let second = second.get_mut(own).unwrap_or_default();
                    if let Some(catch_up) = catch_up {
                        catch_up.apply_here(row, first, second);
                    }
                    update.apply_here(scale, row, first, second, gradient);
                }
            },
        );
    }
}

/// What a pass needs to read embedding rows that are behind.
#[derive(Clone, Copy)]
pub(crate) struct LateRows<'a, R> {
    pub rows: &'a BatchRows<R>,
    pub first: &'a Parameters<R>,
    pub second: &'a Parameters<R>,
}

impl<R: Real> LateRows<'_, R> {
    /// Asks for the row of a word and all that [`CatchUp`] reads beside it.
    #[inline(always)]
    pub fn prefetch(&self, word: u32, d: usize, embedding: &[R]) {
        let own = word as usize * d..(word as usize + 1) * d;
        for list in [embedding, &self.first.embedding, &self.second.embedding] {
            kernels::prefetch(list.get(own.clone()).unwrap_or_default());
        }
    }
}
