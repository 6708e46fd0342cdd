//! The embedding rows of a batch: which there are, what they have missed ([`crate::lazy_adam`]), their gradients, their update.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use std::ops::Range;

use monolayer::arithmetic::kernels::{self, Real};

use crate::lazy_adam::{CatchUp, MissedSteps};
use crate::optimizer::{Optimizer, Update};
use crate::pass::{Chunk, Parameters};

/// Rows lie far apart in a large table: a row is asked for so many rows before it is read.
pub(crate) const AHEAD: usize = 8;

/// The distinct words of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchRows<R> {
    /// For each word of the vocabulary, its place in `distinct` plus 1, or 0.
    slot: Vec<u32>,
    /// In ascending order: so the rows of a share are all of a part of the table.
    distinct: Vec<u32>,
    /// What each distinct word's row has missed.
    catch_ups: Vec<Option<CatchUp<R>>>,
    /// The gradient of each distinct word's row.
    gradient: Vec<R>,
}

impl<R: Real> BatchRows<R> {
    pub fn new(words: usize) -> Self {
        Self { slot: vec![0; words], ..Self::default() }
    }

    /// Finds the distinct words of a batch, and what their rows have missed.
    pub fn find(&mut self, ids: &[u32], seen: &[u32], missed: &mut MissedSteps, optimizer: &Optimizer) {
        self.distinct.drain(..).for_each(|word| self.slot[word as usize] = 0);
        for &id in ids {
            let slot = &mut self.slot[id as usize];
            if *slot == 0 {
                self.distinct.push(id);
                *slot = 1;
            }
        }
        self.distinct.sort_unstable();
        missed.add_up(optimizer);
        self.catch_ups.clear();
        for (i, &word) in (1..).zip(&self.distinct) {
            self.slot[word as usize] = i;
            self.catch_ups.push(missed.catch_up(optimizer, seen[word as usize]));
        }
    }

    /// The rows have seen all of so many steps.
    pub fn set_seen(&self, seen: &mut [u32], steps: u32) {
        self.distinct.iter().for_each(|&word| seen[word as usize] = steps);
    }

    /// A list for the gradients of the rows.
    pub fn take_gradient(&mut self, d: usize) -> Vec<R> {
        let mut gradient = std::mem::take(&mut self.gradient);
        gradient.resize(self.distinct.len() * d, R::ZERO);
        gradient
    }

    /// Gives the list back.
    pub fn give_gradient(&mut self, gradient: Vec<R>) {
        self.gradient = gradient;
    }

    /// The rows, so many at a time.
    pub fn ranges<'a>(&'a self, size: usize, chunks: &'a [Chunk<R>], ids: &'a [u32], d: usize) -> Vec<RowRange<'a, R>> {
        let starts = (0..self.distinct.len()).step_by(size);
        let range =
            |start| RowRange { rows: self, range: start..self.distinct.len().min(start + size), chunks, ids, d };
        starts.map(range).collect()
    }

    /// What the row of a word of the batch has missed.
    #[inline(always)]
    pub fn catch_up(&self, word: u32) -> Option<&CatchUp<R>> {
        self.catch_ups[self.slot[word as usize] as usize - 1].as_ref()
    }
}

/// Some of the distinct words of a batch.
pub(crate) struct RowRange<'a, R> {
    rows: &'a BatchRows<R>,
    range: Range<usize>,
    chunks: &'a [Chunk<R>],
    ids: &'a [u32],
    d: usize,
}

impl<R: Real> RowRange<'_, R> {
    /// From the first of the rows to the last, in the table.
    pub fn place(&self) -> Range<usize> {
        let words = &self.rows.distinct[self.range.clone()];
        words[0] as usize * self.d..(words[words.len() - 1] as usize + 1) * self.d
    }

    /// Adds the gradients of the batch's tokens up, in order.
    #[inline(always)]
    pub fn add_gradients(&self, gradient: &mut [R]) {
        let (d, mut ids) = (self.d, self.ids);
        gradient.fill(R::ZERO);
        for Chunk { d_tokens: rows, .. } in self.chunks {
            let (own, rest) = ids.split_at(rows.len() / d);
            for (&id, row) in own.iter().zip(rows.chunks_exact(d)) {
                let at = (self.rows.slot[id as usize] as usize - 1).wrapping_sub(self.range.start);
                if at < self.range.len() {
                    gradient[at * d..][..d].iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
                }
            }
            ids = rest;
        }
    }

    /// Takes the steps that the rows have missed, then one with their gradients. The lists hold [`Self::place`]; `second` is empty for SGD.
    #[inline(always)]
    pub fn update(&self, update: &Update<R>, scale: R, [parameters, first, second]: [&mut [R]; 3], gradient: &[R]) {
        let (d, words) = (self.d, &self.rows.distinct[self.range.clone()]);
        let place = |word: u32| (word - words[0]) as usize * d..((word - words[0]) as usize + 1) * d;
        for (i, gradient) in gradient.chunks_exact(d).enumerate() {
            if let Some(&next) = words.get(i + AHEAD) {
                for list in [&*parameters, &*first, &*second] {
                    kernels::prefetch(list.get(place(next)).unwrap_or_default());
                }
            }
            let own = place(words[i]);
            let (row, first) = (&mut parameters[own.clone()], &mut first[own.clone()]);
            let second = second.get_mut(own).unwrap_or_default();
            if let Some(catch_up) = &self.rows.catch_ups[self.range.start + i] {
                catch_up.apply_here(row, first, second);
            }
            update.apply(scale, row, first, second, gradient);
        }
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
