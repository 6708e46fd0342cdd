//! The vectors that enter attention: a word's, plus its place's where positions are used.

use std::borrow::Cow;
use std::ops::Range;

use crate::arithmetic::kernels;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::sign_codes::SignCodes;
use crate::data::context::distinct_rows;
use crate::data::embedding::Embedding;
use crate::data::positions::Positions;
use crate::data::separation::separation;
use crate::data::{Dataset, Tokens};
use crate::error::{Error, Result};

/// The vector of token `id` at place `k`, from 0, is `words.row(id) + positions.row(k)`; behind a start token, which has the first
/// of the positions, `words.row(id) + positions.row(k + 1)`.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenVectors {
    /// One row per different word or vector of the dataset, numbered as by [`Dataset::token_ids`].
    pub words: Matrix<f64>,
    /// One row per place, the start token's first where there is one.
    pub positions: Option<Matrix<f64>>,
    /// The vector of the start token, where there is one.
    pub start: Option<Vec<f64>>,
    /// How many leading coordinates words use.
    pub word_columns: usize,
    /// How many leading coordinates words and places use; the others are 0.
    pub used: usize,
}

impl TokenVectors {
    /// Words get codes, and places codes of their own in further coordinates; `extra` coordinates after them stay 0.
    /// Vectors are used as they are, and places move them a little along one direction. `positions` decides alone
    /// whether places count; nothing here looks at labels.
    pub fn new(data: &Dataset, embedding: &Embedding, positions: &Positions, extra: usize, seed: u64) -> Result<Self> {
        Self::with_start(None, data, embedding, positions, extra, seed)
    }

    /// The same for sequences of words that stand behind a start token of this name, which must be no word of theirs.
    pub fn with_start(
        start: Option<&str>,
        data: &Dataset,
        embedding: &Embedding,
        positions: &Positions,
        extra: usize,
        seed: u64,
    ) -> Result<Self> {
        match &data.tokens {
            Tokens::Words { vocabulary, .. } => {
                let mut names = Cow::Borrowed(vocabulary);
                if let Some(start) = start {
                    names.to_mut().add(start);
                }
                let mut words = embedding.codes(&names, seed)?;
                let places = match positions {
                    Positions::None => None,
                    _ => Some(positions.codes(data.longest() + usize::from(start.is_some()), seed)?),
                };
                let used = words.cols + places.as_ref().map_or(0, |p| p.cols);
                let d = used + extra;
                words.rows = vocabulary.len();
                let mut start = start.is_some().then(|| words.data.split_off(words.rows * words.cols));
                start.iter_mut().for_each(|start| start.resize(d, 0.0));
                Ok(Self {
                    start,
                    positions: places.map(|p| shifted(&p, words.cols, d)),
                    words: shifted(&words, 0, d),
                    word_columns: words.cols,
                    used,
                })
            }
            Tokens::Vectors { .. } if start.is_some() => Err(Error::mismatch(
                "a start token is a word, and the tokens are vectors",
                "leave out `start`, or give words",
            )),
            Tokens::Vectors { d, data: vectors } => {
                let (_, first) = distinct_rows(*d, vectors);
                let rows: Vec<f64> = first.iter().flat_map(|&i| &vectors[i * d..(i + 1) * d]).copied().collect();
                let words = Matrix::new(first.len(), *d, rows);
                let positions = match positions {
                    Positions::None => None,
                    Positions::Auto => Some(small_steps(&words, data.longest())),
                    _ => Some(positions.codes(data.longest(), seed)?),
                };
                if positions.as_ref().is_some_and(|p| p.cols != *d) {
                    return Err(Error::mismatch(
                        format!("positions of another dimension than the vectors' {d}"),
                        format!("use `positions` auto, none, sign:{d} or random:{d}"),
                    ));
                }
                Ok(Self { words, positions, start: None, word_columns: *d, used: *d })
            }
        }
    }

    /// The dimension of the vectors.
    pub fn d(&self) -> usize {
        self.words.cols
    }

    /// The inner products of every token of a dataset with `v`. With codes and a `v` on a dyadic grid they are exact.
    pub fn project(&self, v: &[f64], ids: &[u32], offsets: &[usize]) -> Vec<f64> {
        let words = products(&self.words, 0..self.word_columns, v);
        let places = self.positions.as_ref().map(|p| products(p, self.place_columns(), v));
        self.at_tokens(&words, places, ids, offsets)
    }

    /// The sum of what a word has and what a place has, for every token of a dataset.
    fn at_tokens(&self, words: &[f64], places: Option<Vec<f64>>, ids: &[u32], offsets: &[usize]) -> Vec<f64> {
        let mut projected: Vec<f64> = ids.iter().map(|&id| words[id as usize]).collect();
        if let Some(places) = places {
            for window in offsets.windows(2) {
                projected[window[0]..window[1]]
                    .iter_mut()
                    .zip(&places[self.first_place()..])
                    .for_each(|(p, q)| *p += q);
            }
        }
        projected
    }

    /// The columns that places use: codes have columns of their own, positions of given vectors share theirs.
    fn place_columns(&self) -> Range<usize> {
        if self.used > self.word_columns { self.word_columns..self.used } else { 0..self.used }
    }

    /// The row of positions that a sequence's first token has: that behind the start token, or the first.
    pub fn first_place(&self) -> usize {
        usize::from(self.start.is_some())
    }

    /// The position of the token at a place of its sequence, where positions are used.
    pub fn position(&self, place: usize) -> Option<&[f64]> {
        self.positions.as_ref().map(|positions| positions.row(self.first_place() + place))
    }

    /// The inner product of the start token, at its place, with `v`. As exact as [`Self::project`].
    pub fn project_start(&self, v: &[f64]) -> Option<f64> {
        let words = 0..self.word_columns;
        let word = kernels::dot(&self.start.as_ref()?[words.clone()], &v[words]);
        let columns = self.place_columns();
        let place = self.positions.as_ref().map(|p| kernels::dot(&p.row(0)[columns.clone()], &v[columns]));
        Some(word + place.unwrap_or(0.0))
    }

    /// The vector of token `id` at place `k`.
    pub fn vector(&self, id: u32, place: usize) -> Vec<f64> {
        let mut x = self.words.row(id as usize).to_vec();
        if let Some(position) = self.position(place) {
            x.iter_mut().zip(position).for_each(|(x, p)| *x += p);
        }
        x
    }
}

/// Inner products of every token with many vectors, one after the other: faster for codes of +1 and -1.
pub(crate) struct Projector<'a> {
    vectors: &'a TokenVectors,
    words: Option<SignCodes>,
}

impl<'a> Projector<'a> {
    pub fn new(vectors: &'a TokenVectors) -> Self {
        Self { vectors, words: SignCodes::new(&vectors.words, 0..vectors.word_columns) }
    }

    /// What [`TokenVectors::project`] gives, but for rounding where products are not exact.
    pub fn project(&self, v: &[f64], ids: &[u32], offsets: &[usize]) -> Vec<f64> {
        let Some(signs) = &self.words else { return self.vectors.project(v, ids, offsets) };
        let mut words = vec![0.0; self.vectors.words.rows];
        signs.products(&v[..self.vectors.word_columns], &mut words);
        let places = self.vectors.positions.as_ref().map(|p| products(p, self.vectors.place_columns(), v));
        self.vectors.at_tokens(&words, places, ids, offsets)
    }
}

/// The inner products of rows with `v` over some columns, outside of which the rows are 0.
fn products(rows: &Matrix<f64>, columns: Range<usize>, v: &[f64]) -> Vec<f64> {
    let v = &v[columns.clone()];
    let mut out = vec![0.0; rows.rows];
    kernels::vectorized(
        #[inline(always)]
        || {
            for (out, row) in out.iter_mut().zip(rows.data.chunks_exact(rows.cols)) {
                *out = kernels::dot(&row[columns.clone()], v);
            }
        },
    );
    out
}

/// The rows moved to start at column `start` of `d` columns.
fn shifted(rows: &Matrix<f64>, start: usize, d: usize) -> Matrix<f64> {
    let end = start + rows.cols;
    Matrix::from_fn(rows.rows, d, |i, j| if (start..end).contains(&j) { rows.row(i)[j - start] } else { 0.0 })
}

/// For Corollary 2, in place of (48): `E_k = k epsilon / (4 n) e_1` leaves different vectors at least epsilon / 2 apart at any places.
fn small_steps(words: &Matrix<f64>, length: usize) -> Matrix<f64> {
    let epsilon = separation(words.cols, &words.data).epsilon;
    let epsilon = if epsilon.is_finite() { epsilon } else { 1.0 };
    let step = epsilon / (4.0 * length as f64);
    Matrix::from_fn(length, words.cols, |k, j| if j == 0 { (k + 1) as f64 * step } else { 0.0 })
}
