//! The end of a step: the chunks' gradients are added up, and the optimizer moves the parameters. Both are done share by share, a
//! task each; the shares depend on the data alone.

// Only what is inlined into `vectorized` is compiled for wider vector units.
#![allow(clippy::inline_always)]

use std::ops::Range;

use monolayer::arithmetic::kernels::{self, Real};

use crate::optimizer::Update;
use crate::pass::{Chunk, Parameters};
use crate::rows::{BatchRows, RowRange};
use crate::team::{self, Task, pieces};

/// Dense numbers of a share: their gradients, momenta and so on stay in a core's fastest memory from the sum to the update.
const BLOCK: usize = 1 << 11;
/// Rows of a share.
const ROWS: usize = 64;

/// Some of the dense parameters, and whether steps move them.
#[derive(Debug, Clone)]
pub(crate) struct ParameterBlock {
    pub range: Range<usize>,
    pub moves: bool,
}

/// A range in parts of at most [`BLOCK`] numbers.
pub(crate) fn blocks(range: Range<usize>, moves: bool) -> impl Iterator<Item = ParameterBlock> {
    range.clone().step_by(BLOCK).map(move |start| ParameterBlock { range: start..range.end.min(start + BLOCK), moves })
}

/// A part of the parameters.
struct Share<'a, R> {
    /// Dense parameters: the first chunk's gradient, to which the others' are added.
    gradient: &'a mut [R],
    from: From<'a, R>,
    /// Parameters, momentum, mean square, where the latter exists; none where steps do not move them.
    lists: Option<[&'a mut [R]; 3]>,
    squares: f64,
}

/// Where a share's gradient comes from.
enum From<'a, R> {
    /// The gradients of the other chunks.
    Dense(Vec<&'a [R]>),
    /// The gradients of the batch's tokens.
    Rows(RowRange<'a, R>),
}

impl<R: Real> Share<'_, R> {
    /// Adds the gradients up, in order.
    fn add(&mut self) {
        let Self { gradient, from, squares, .. } = self;
        kernels::vectorized(
            #[inline(always)]
            || {
                match from {
                    From::Dense(others) => {
                        for other in others {
                            gradient.iter_mut().zip(&**other).for_each(|(sum, &x)| *sum += x);
                        }
                    }
                    From::Rows(rows) => rows.add_gradients(gradient),
                }
                *squares = kernels::dot(gradient, gradient).to_f64();
            },
        );
    }

    /// The optimizer's step, with gradients times `scale`.
    fn update(&mut self, update: &Update<R>, scale: R) {
        let Some([parameters, first, second]) = &mut self.lists else { return };
        kernels::vectorized(
            #[inline(always)]
            || match &self.from {
                From::Dense(_) => update.apply(scale, parameters, first, second, self.gradient),
                From::Rows(rows) => rows.update(update, scale, [parameters, first, second], self.gradient),
            },
        );
    }
}

/// What a step changes.
pub(crate) struct Moved<'a, R> {
    pub parameters: &'a mut Parameters<R>,
    pub first: &'a mut Parameters<R>,
    pub second: &'a mut Parameters<R>,
    pub blocks: &'a [ParameterBlock],
}

impl<R: Real> Moved<'_, R> {
    /// One step with the gradients of some chunks, the first of which then holds the sum of the dense ones; `words` are the batch's, if
    /// it has words. Returns the norm of the gradient, which is made no longer than `clip`.
    pub fn step(
        self,
        update: &Update<R>,
        clip: Option<f64>,
        chunks: &mut [Chunk<R>],
        rows: &mut BatchRows<R>,
        (words, d): (&[u32], usize),
    ) -> f64 {
        let mut dense = std::mem::take(&mut chunks[0].gradient);
        let mut of_rows = rows.take_gradient(d);
        let mut shares = self.shares(&mut dense, &mut of_rows, chunks, rows, (words, d));
        let norm = |shares: &[Share<R>]| shares.iter().map(|share| share.squares).sum::<f64>().sqrt();
        let norm = if let Some(clip) = clip {
            each(&mut shares, &Share::add);
            let norm = norm(&shares);
            let scale = R::from_f64((clip / (norm + 1e-6)).min(1.0));
            each(&mut shares, &|share| share.update(update, scale));
            norm
        } else {
            // At one go: a share's numbers are at hand.
            each(&mut shares, &|share| {
                share.add();
                share.update(update, R::ONE);
            });
            norm(&shares)
        };
        drop(shares);
        chunks[0].gradient = dense;
        rows.give_gradient(of_rows);
        norm
    }

    fn shares<'a>(
        self,
        dense: &'a mut [R],
        of_rows: &'a mut [R],
        chunks: &'a [Chunk<R>],
        rows: &'a BatchRows<R>,
        (words, d): (&'a [u32], usize),
    ) -> Vec<Share<'a, R>>
    where
        Self: 'a,
    {
        let Self { parameters, first, second, blocks } = self;
        let mut shares = Vec::new();
        // Rows come first: their numbers lie far apart, so they take longer.
        let ranges = rows.ranges(ROWS, chunks, words, d);
        let places: Vec<Range<usize>> = ranges.iter().map(RowRange::place).collect();
        let lists = [&mut parameters.embedding, &mut first.embedding, &mut second.embedding];
        let [p, m, v] = lists.map(|list| pieces(list, &places).into_iter());
        for ((((gradient, range), p), m), v) in of_rows.chunks_mut(ROWS * d).zip(ranges).zip(p).zip(m).zip(v) {
            shares.push(Share { gradient, from: From::Rows(range), lists: Some([p, m, v]), squares: 0.0 });
        }
        let places: Vec<Range<usize>> = blocks.iter().map(|block| block.range.clone()).collect();
        let lists = [dense, &mut parameters.dense, &mut first.dense, &mut second.dense];
        let [sum, p, m, v] = lists.map(|list| pieces(list, &places).into_iter());
        for ((((gradient, block), p), m), v) in sum.zip(blocks).zip(p).zip(m).zip(v) {
            let others = chunks[1..].iter().map(|chunk| &chunk.gradient[block.range.clone()]);
            let (from, lists) = (From::Dense(others.collect()), block.moves.then_some([p, m, v]));
            shares.push(Share { gradient, from, lists, squares: 0.0 });
        }
        shares
    }
}

/// A task for several shares at a time: one takes less than a microsecond.
fn each<'a, R: Real>(shares: &mut [Share<'a, R>], f: &(impl Fn(&mut Share<'a, R>) + Sync)) {
    let tasks = shares.chunks_mut(SHARES).map(|shares| Box::new(move || shares.iter_mut().for_each(f)) as Task);
    team::run(tasks.collect());
}

/// Shares of a task.
const SHARES: usize = 4;
