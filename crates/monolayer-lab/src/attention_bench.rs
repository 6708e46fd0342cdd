//! Runs of rank-1 attention for measuring: numbers of a given score range, times, and errors against direct sums.

use std::time::Instant;

use monolayer::arithmetic::kernels::Real;
use monolayer::attention::{FastAttention, Gradients, HeadInputs, Route, StreamingHead, Work};
use monolayer::{Mask, Result};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, StandardNormal};
use rayon::prelude::*;

use crate::plot::scale::Axis;
use crate::plot::{Figure, Point};

/// Up to so many tokens every query is compared with its direct sum, beyond that a sample of [`SAMPLE`], or fewer.
const ALL: usize = 8192;
const SAMPLE: usize = 4096;
/// Queries whose direct sums are timed, at most.
const TIMED: usize = 4096;
/// Scores that are formed for either, at most.
const SCORES: usize = 1 << 33;

/// Normal keys, values and queries, the largest score of which is the range.
#[derive(Debug, Clone)]
pub struct Numbers<R> {
    /// Keys.
    pub keys: Vec<R>,
    /// Values.
    pub values: Vec<R>,
    /// Queries.
    pub queries: Vec<R>,
    /// A gradient of the output.
    pub upstream: Vec<R>,
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Tokens.
    pub tokens: usize,
    /// Seconds of the fastest run.
    pub seconds: f64,
    /// The largest error of the output over the largest value.
    pub max_error: f64,
    /// The largest errors of the gradients of keys, values and queries over the largest entry of each; up to 8,192 tokens.
    pub gradient_error: Option<[f64; 3]>,
    /// What was done.
    pub work: Work,
    /// Seconds of direct sums; where it takes long, of some of the queries, times as many as there are.
    pub direct_seconds: f64,
    /// Queries that were timed for that.
    pub direct_queries: usize,
    /// Seconds of one pass over the numbers.
    pub bytes_seconds: f64,
    /// Seconds for a token of a stream, under a causal mask; nothing where the range is too large for one.
    pub push_seconds: Option<f64>,
}

impl<R: Real> Numbers<R> {
    /// So many of each, from a seed.
    pub fn new(tokens: usize, range: f64, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = |_| -> f64 { StandardNormal.sample(&mut random) };
        let [mut keys, values, mut queries, upstream] =
            [(); 4].map(|()| (0..tokens).map(&mut normal).collect::<Vec<f64>>());
        let largest = |x: &[f64]| x.iter().fold(f64::MIN_POSITIVE, |a, b| a.max(b.abs()));
        for numbers in [&mut keys, &mut queries] {
            let scale = range.sqrt() / largest(numbers);
            numbers.iter_mut().for_each(|x| *x *= scale);
        }
        let cast = |x: Vec<f64>| x.into_iter().map(R::from_f64).collect();
        Self { keys: cast(keys), values: cast(values), queries: cast(queries), upstream: cast(upstream) }
    }

    /// As a head takes them.
    pub fn inputs(&self) -> HeadInputs<'_, R> {
        HeadInputs { keys: &self.keys, values: &self.values, queries: &self.queries }
    }

    fn in_f64(&self) -> Numbers<f64> {
        let cast = |x: &[R]| x.iter().map(|x| x.to_f64()).collect();
        Numbers {
            keys: cast(&self.keys),
            values: cast(&self.values),
            queries: cast(&self.queries),
            upstream: cast(&self.upstream),
        }
    }
}

/// The fastest of several runs, for half a second at most where one takes less.
fn fastest(mut run: impl FnMut() -> Result<Work>) -> Result<(f64, Work)> {
    let (start, mut best, mut runs) = (Instant::now(), (f64::INFINITY, run()?), 0);
    while runs < 3 || (start.elapsed().as_secs_f64() < 0.5 && runs < 1000) {
        let start = Instant::now();
        let work = run()?;
        best = (best.0.min(start.elapsed().as_secs_f64()), work);
        runs += 1;
    }
    Ok(best)
}

/// Measures a forward pass, or forward and backward.
pub fn measure<R: Real>(numbers: &Numbers<R>, causal: bool, backward: bool) -> Result<Measured> {
    let tokens = numbers.keys.len();
    let mask = if causal { Mask::Causal } else { Mask::None };
    let attention = FastAttention::new().mask(mask);
    let (mut out, mut gradients) = (vec![R::ZERO; tokens], Gradients::default());
    let (seconds, work) = fastest(|| {
        let work = attention.forward(numbers.inputs(), &mut out)?;
        if backward {
            attention.backward(numbers.inputs(), &numbers.upstream, &mut gradients)?;
        }
        Ok(work)
    })?;
    let exact = numbers.in_f64();
    let max_error = error(&exact, causal, &out)?;
    let gradient_error =
        if backward && tokens <= ALL { Some(gradient_error(&exact, &attention, &gradients)?) } else { None };
    let timed = if tokens <= 4 * TIMED { tokens } else { TIMED.min(SCORES / 4 / tokens).max(64) };
    let direct =
        attention.clone().route(Route::Direct).mask(if timed < tokens { Mask::None } else { attention_mask(causal) });
    let some = HeadInputs { queries: &numbers.queries[..timed], ..numbers.inputs() };
    let mut scratch = vec![R::ZERO; timed];
    let (direct_seconds, _) = if timed < tokens {
        let start = Instant::now();
        let work = direct.forward(some, &mut scratch)?;
        (start.elapsed().as_secs_f64(), work)
    } else {
        fastest(|| direct.forward(some, &mut scratch))?
    };
    // Half of the pairs under a causal mask.
    let share = tokens as f64 / timed.max(1) as f64 * if causal && timed < tokens { 0.5 } else { 1.0 };
    let bytes_seconds = one_pass(numbers, &mut out)?;
    Ok(Measured {
        tokens,
        seconds,
        max_error,
        gradient_error,
        work,
        direct_seconds: direct_seconds * share,
        direct_queries: timed,
        bytes_seconds,
        push_seconds: if causal { push_seconds(numbers)? } else { None },
    })
}

/// Seconds for a token of a stream: the mean over as many as 65,536, in the faster of two runs.
fn push_seconds<R: Real>(numbers: &Numbers<R>) -> Result<Option<f64>> {
    let end = |list: &[R], above: bool| {
        list.iter().copied().reduce(|a, b| if (b > a) == above { b } else { a }).expect("there are tokens")
    };
    let count = numbers.keys.len().min(1 << 16);
    let largest = end(&numbers.queries, true).larger(R::ZERO - end(&numbers.queries, false));
    let mut best = f64::INFINITY;
    for _ in 0..2 {
        let (low, high) = (end(&numbers.keys, false), end(&numbers.keys, true));
        let Ok(mut head) = StreamingHead::<R>::new(low, high, largest) else { return Ok(None) };
        let start = Instant::now();
        for i in 0..count {
            std::hint::black_box(head.push(numbers.keys[i], numbers.values[i], numbers.queries[i])?);
        }
        best = best.min(start.elapsed().as_secs_f64() / count as f64);
    }
    Ok(Some(best))
}

fn attention_mask(causal: bool) -> Mask {
    if causal { Mask::Causal } else { Mask::None }
}

/// The largest error of some outputs, over the largest value, against direct sums in double precision.
fn error<R: Real>(exact: &Numbers<f64>, causal: bool, out: &[R]) -> Result<f64> {
    let tokens = out.len();
    let places: Vec<usize> = if tokens <= ALL {
        (0..tokens).collect()
    } else {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let share = if causal { 16 } else { 1 };
        (0..SAMPLE.min(SCORES / share / tokens).max(16)).map(|_| random.random_range(0..tokens)).collect()
    };
    let direct = FastAttention::new().route(Route::Direct);
    let largest = exact.values.iter().fold(f64::MIN_POSITIVE, |a, b| a.max(b.abs()));
    let off = |place: usize, mean: f64| (mean - out[place].to_f64()).abs() / largest;
    if !causal {
        let queries: Vec<f64> = places.iter().map(|&place| exact.queries[place]).collect();
        let mut means = vec![0.0; queries.len()];
        direct.forward(HeadInputs { queries: &queries, ..exact.inputs() }, &mut means)?;
        return Ok(places.iter().zip(means).fold(0.0, |worst, (&place, mean)| f64::max(worst, off(place, mean))));
    }
    let one = |&place: &usize| {
        let mut mean = [0.0];
        let (keys, values) = (&exact.keys[..=place], &exact.values[..=place]);
        direct.forward(HeadInputs { keys, values, queries: &exact.queries[place..=place] }, &mut mean)?;
        Ok(off(place, mean[0]))
    };
    places.par_iter().map(one).try_reduce(|| 0.0, |a, b| Ok(a.max(b)))
}

fn gradient_error<R: Real>(exact: &Numbers<f64>, attention: &FastAttention, found: &Gradients<R>) -> Result<[f64; 3]> {
    let mut direct = Gradients::default();
    attention.clone().route(Route::Direct).backward(exact.inputs(), &exact.upstream, &mut direct)?;
    let pairs = [(&direct.keys, &found.keys), (&direct.values, &found.values), (&direct.queries, &found.queries)];
    Ok(pairs.map(|(direct, found)| {
        let largest = direct.iter().fold(f64::MIN_POSITIVE, |a, b| a.max(b.abs()));
        direct.iter().zip(found).fold(0.0, |worst, (a, b)| f64::max(worst, (a - b.to_f64()).abs() / largest))
    }))
}

/// Seconds of reading all numbers once and writing as many as there are outputs.
fn one_pass<R: Real>(numbers: &Numbers<R>, out: &mut [R]) -> Result<f64> {
    const CHUNK: usize = 1 << 14;
    let (seconds, _) = fastest(|| {
        let inputs = numbers.keys.par_chunks(CHUNK).zip(numbers.values.par_chunks(CHUNK));
        let inputs = inputs.zip(numbers.queries.par_chunks(CHUNK));
        out.par_chunks_mut(CHUNK).zip(inputs).for_each(|(out, ((keys, values), queries))| {
            for (i, out) in out.iter_mut().enumerate() {
                *out = keys[i] + values[i] + queries[i];
            }
        });
        Ok(Work { route: Route::Direct, bins: 0, nodes: 0, bound: 0.0 })
    })?;
    Ok(seconds)
}

/// A measured run, and the seconds of the peer where there is one.
type ComparedRun = (Measured, Option<f64>);

/// Time against the number of tokens: ours, direct sums, one pass over the bytes, and the peer's where there is one.
pub fn figure(runs: &[ComparedRun]) -> Figure {
    let points = |of: &dyn Fn(&ComparedRun) -> Option<f64>| -> Vec<Point> {
        runs.iter().filter_map(|run| of(run).map(|seconds| Point::new(run.0.tokens as f64, seconds))).collect()
    };
    let mut figure =
        Figure::new("attention", "Rank-1 attention, forward", Axis::log("tokens", ""), Axis::log("seconds", ""))
            .line("monolayer", points(&|(run, _)| Some(run.seconds)))
            .line("direct sums", points(&|(run, _)| Some(run.direct_seconds)))
            .line("one pass over the bytes", points(&|(run, _)| Some(run.bytes_seconds)));
    let peer = points(&|(_, peer)| *peer);
    if !peer.is_empty() {
        figure = figure.line("PyTorch", peer);
    }
    figure
}
