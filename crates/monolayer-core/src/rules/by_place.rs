//! The judge of one layer with many hidden units: the tokens of a word at a place together, so that units that are off need not be
//! looked at one by one.

use std::ops::Range;

use super::ball::Ball;
use super::gates::{AtPlace, Item};
use super::judge::{BATCH, Inputs, Judge, Judged, Wishes};
use super::network::{Open, Tick};
use super::off_units::OffUnits;
use super::sum::Points;
use crate::number::Dyadic;
use crate::parallel::{in_order, parallel};

/// Runs whose open units are found together, and how many times as many before their tokens are judged.
const RUNS: usize = 256;
const BLOCKS: usize = 32;
/// Tokens of a word at a place that are judged together.
const RUN: usize = 256;

/// What is asked, and what tokens have read.
pub struct ByPlace<'a> {
    judge: &'a Judge<'a>,
    wanted: &'a Wishes<'a>,
    threads: usize,
    tick: Tick<'a>,
    heads: Heads,
}

/// What tokens have read in a layer.
struct Heads {
    width: usize,
    /// A ball per coordinate of the heads' values, token by token.
    z: Vec<Ball>,
    /// Balls around all of them.
    around: Vec<Ball>,
    /// Whether a program may overflow in a sequence: then nothing is known of it.
    none: Vec<bool>,
    /// Whether that is so for any.
    spoiled: bool,
}

impl Heads {
    fn of(&self, t: u32) -> &[Ball] {
        &self.z[t as usize * self.width..(t as usize + 1) * self.width]
    }
}

impl<'a> ByPlace<'a> {
    /// Finds what every token reads in the only layer.
    pub fn new(judge: &'a Judge<'a>, wanted: &'a Wishes<'a>, threads: usize, tick: Tick<'a>) -> Self {
        let Inputs { ids, offsets, .. } = *judge.inputs;
        let width = judge.last().attention.as_ref().map_or(0, |a| a.heads * a.size);
        let z = Vec::with_capacity(ids.len() * width);
        let mut heads = Heads { width, z, around: vec![], none: vec![], spoiled: false };
        // Where there are fewer sequences than threads, several threads share a sequence.
        let each = threads / judge.inputs.sequences().max(1);
        let read = |s: usize| judge.reads(s, each, tick).map(|(_, z)| z.concat());
        in_order(threads, judge.inputs.sequences(), BATCH, read, |z| {
            let s = heads.none.len();
            heads.none.push(z.is_none());
            heads.spoiled |= z.is_none();
            for z in z.iter().flat_map(|z| z.chunks_exact(width.max(1))) {
                heads.around = match &heads.around[..] {
                    [] => z.to_vec(),
                    all => all.iter().zip(z).map(|(all, z)| all.span(*z)).collect(),
                };
            }
            heads.z.extend(z.unwrap_or_else(|| vec![Ball::ZERO; (offsets[s + 1] - offsets[s]) * width]));
        });
        if heads.around.is_empty() {
            heads.around = vec![Ball::ZERO; width];
        }
        Self { judge, wanted, threads, tick, heads }
    }

    /// Judges every token; `found` is told of each.
    pub fn judge(&self, found: &mut dyn FnMut(usize, Judged)) {
        let Judge { network, inputs } = *self.judge;
        let units = OffUnits::new(network, inputs, &self.heads.around, self.threads);
        let start = usize::from(inputs.start.is_some());
        let mut places = Places::new(inputs, network.positions.is_some());
        for (place, tokens) in places.starts.windows(2).enumerate().filter(|(_, tokens)| tokens[0] < tokens[1]) {
            let (place, tokens) = (place + start, &mut places.order[tokens[0]..tokens[1]]);
            let runs = self.runs(tokens, units.as_ref());
            let gates = units.as_ref().map(|all| all.at_place(place, &self.heads.around, runs.len(), self.threads));
            for runs in runs.chunks(RUNS * BLOCKS) {
                let open = |at: usize| {
                    let runs = runs[at * RUNS..].iter().take(RUNS).map(|run| &tokens[run.clone()]);
                    self.among(runs, units.as_ref().zip(gates.as_ref()))
                };
                let open = parallel(self.threads, runs.len().div_ceil(RUNS), open);
                let open: Vec<Among> = open.into_iter().flatten().collect();
                let one =
                    |at: usize| self.run(&tokens[runs[at].clone()], place, gates.as_ref().zip(open[at].as_deref()));
                in_order(self.threads, runs.len(), BATCH, one, |judged| {
                    judged.into_iter().for_each(|(t, judged)| found(t as usize, judged));
                });
            }
        }
    }

    /// The vector of a token's word.
    fn word(&self, t: u32) -> Vec<Dyadic> {
        self.judge.inputs.vectors.get(self.judge.inputs.ids[t as usize] as usize)
    }

    /// The tokens of a place, sorted by words, in parts: some of one word each, near each other in what they read where there are many.
    fn runs(&self, tokens: &mut [u32], units: Option<&OffUnits>) -> Vec<Range<usize>> {
        let (ids, mut runs, mut first) = (self.judge.inputs.ids, vec![], 0);
        while first < tokens.len() {
            let word = ids[tokens[first] as usize];
            let end = first + tokens[first..].partition_point(|t| ids[*t as usize] == word);
            if let Some(units) = units.filter(|_| end - first > RUN && self.heads.width == 1) {
                tokens[first..end].sort_by_cached_key(|t| (units.ends(self.heads.of(*t))[0].0, *t));
            }
            runs.extend((first..end).step_by(RUN).map(|at| at..end.min(at + RUN)));
            first = end;
        }
        runs
    }

    /// The units that may be on for some runs.
    fn among<'r>(&self, runs: impl Iterator<Item = &'r [u32]>, known: Option<(&OffUnits, &AtPlace)>) -> Vec<Among> {
        let Some((units, gates)) = known else { return runs.map(|_| None).collect() };
        let item = |run: &[u32]| units.item(&self.word(run[0]), run.iter().map(|t| self.heads.of(*t)));
        gates.among(&runs.map(item).collect::<Vec<Item>>())
    }

    /// Judges some tokens of a word at a place.
    fn run(&self, tokens: &[u32], place: usize, known: Option<(&AtPlace, &[(u32, i64)])>) -> Vec<(u32, Judged)> {
        let (Judge { network, inputs }, heads) = (self.judge, &self.heads);
        let sequence = |t: u32| inputs.offsets.partition_point(|first| *first <= t as usize) - 1;
        let x = network.input(&self.word(tokens[0]), place);
        let x: Option<Vec<Ball>> = x.map(|x| x.into_iter().map(Ball::exact).collect());
        let mut points: Vec<Option<Option<Points>>> = vec![None; known.map_or(0, |(_, among)| among.len())];
        let mut judge = |t: u32| {
            let spoiled = heads.spoiled && heads.none[sequence(t)];
            let Some(x) = x.as_ref().filter(|_| !spoiled) else { return Judged::UNKNOWN };
            let open = known.map(|(gates, among)| gates.open(among, heads.of(t)));
            for (at, j) in open.iter().flatten().filter(|_| tokens.len() > 1) {
                points[*at].get_or_insert_with(|| self.judge.last().points(x, *j));
            }
            let open = open.map(|open| {
                open.iter().map(|(at, j)| (*j, points[*at].as_ref().and_then(Option::as_ref))).collect::<Vec<Open>>()
            });
            self.judge.token(x, heads.of(t), open.as_deref(), self.wanted.of(t as usize))
        };
        // A word that stands twice in a sequence, reads the same and shall be the same is judged once.
        let same = |a: u32, b: u32| {
            let read = |t: u32| (heads.of(t), self.wanted.of(t as usize));
            network.positions.is_none() && read(a) == read(b) && sequence(a) == sequence(b)
        };
        let mut judged: Vec<(u32, Judged)> = vec![];
        for &t in tokens {
            let twin = judged.last().filter(|(last, _)| same(*last, t)).map(|(_, judged)| *judged);
            judged.push((t, twin.unwrap_or_else(|| judge(t))));
        }
        // Every other token was counted when it was read.
        (self.tick)(tokens.iter().filter(|t| (**t as usize - inputs.offsets[sequence(**t)]).is_multiple_of(2)).count());
        judged
    }
}

/// The units that may be on for a run, with what its word adds to each; nothing where all are to be looked at.
type Among = Option<Vec<(u32, i64)>>;

/// Tokens sorted by their places, where there are positions, and by their words.
struct Places {
    order: Vec<u32>,
    /// Where the tokens of each place start, and the number of tokens at the end.
    starts: Vec<usize>,
}

impl Places {
    fn new(inputs: &Inputs, positions: bool) -> Self {
        let all: Vec<u32> = (0..inputs.ids.len() as u32).collect();
        let (order, _) = sorted(&all, |t| inputs.ids[t as usize] as usize);
        if !positions {
            return Self { starts: vec![0, order.len()], order };
        }
        let mut places = all;
        for range in inputs.offsets.windows(2) {
            (range[0]..range[1]).for_each(|t| places[t] = (t - range[0]) as u32);
        }
        let (order, starts) = sorted(&order, |t| places[t as usize] as usize);
        Self { order, starts }
    }
}

/// Tokens in the order of their keys, those with equal keys as they were, and where the tokens of each key start.
fn sorted(tokens: &[u32], key: impl Fn(u32) -> usize) -> (Vec<u32>, Vec<usize>) {
    let keys = tokens.iter().map(|t| key(*t) + 1).max().unwrap_or(0);
    let mut starts = vec![0; keys + 1];
    tokens.iter().for_each(|t| starts[key(*t) + 1] += 1);
    (0..keys).for_each(|key| starts[key + 1] += starts[key]);
    let (mut next, mut all) = (starts.clone(), vec![0; tokens.len()]);
    for t in tokens {
        all[next[key(*t)]] = *t;
        next[key(*t)] += 1;
    }
    (all, starts)
}
