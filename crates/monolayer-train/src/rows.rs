//! The embedding rows of a batch: which there are, what they have missed ([`crate::lazy_adam`]), their gradients, their update.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use monolayer::arithmetic::kernels::{self, Real};

use crate::lazy_adam::{CatchUp, MissedSteps};
use crate::optimizer::{Optimizer, Update};
use crate::pass::{Chunk, Parameters};

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

    /// Takes the steps that the rows have missed, then one with their gradients. `second` is empty for SGD.
    pub fn update(
        &self,
        (update, scale): (&Update<R>, R),
        d: usize,
        [parameters, first, second]: [&mut [R]; 3],
        (seen, steps): (&mut [u32], u32),
    ) {
        kernels::vectorized(
            #[inline(always)]
            || {
                let rows = self.distinct.iter().zip(&self.catch_ups).zip(self.gradient.chunks_exact(d));
                for ((&word, catch_up), gradient) in rows {
                    let own = word as usize * d..(word as usize + 1) * d;
                    let (row, first) = (&mut parameters[own.clone()], &mut first[own.clone()]);
                    let second = second.get_mut(own).unwrap_or_default();
                    if let Some(catch_up) = catch_up {
                        catch_up.apply_here(row, first, second);
                    }
                    update.apply_here(scale, row, first, second, gradient);
                    seen[word as usize] = steps;
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
