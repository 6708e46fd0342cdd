//! The judge of one layer with many hidden units: the tokens of a word together, so that units that are off need not be looked at one
//! by one.

use std::ops::Range;

use super::ball::Ball;
use super::gates::{Among, Item, Screen};
use super::judge::{BATCH, Inputs, Judge, Judged, Wishes};
use super::network::{Open, Tick};
use super::off_units::OffUnits;
use super::sum::Points;
use crate::number::Dyadic;
use crate::parallel::{in_order, parallel};

/// Items whose open units are found together, and how many times as many before their tokens are judged.
const ITEMS: usize = 128;
const BLOCKS: usize = 32;
/// Runs of an item, and tokens of a run, at most.
const RUNS: usize = 64;
const RUN: usize = 256;
/// Tokens that are judged before others are looked at, but for an item.
const TOKENS: usize = 1 << 18;

/// Some tokens of a word at a place, as a range of an order, and the place.
type Run = (Range<usize>, usize);

/// What is asked, and what tokens have read.
pub struct ByWord<'a> {
    judge: &'a Judge<'a>,
    wanted: &'a Wishes<'a>,
    threads: usize,
    tick: Tick<'a>,
    /// The tokens, sorted by their words and places, and where each word starts.
    order: (Vec<u32>, Vec<usize>),
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

impl<'a> ByWord<'a> {
    /// Finds what every token reads in the only layer.
    pub fn new(judge: &'a Judge<'a>, wanted: &'a Wishes<'a>, threads: usize, tick: Tick<'a>) -> Self {
        let Inputs { ids, offsets, .. } = *judge.inputs;
        let order = ordered(judge.inputs, judge.network.positions.is_some());
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
        Self { judge, wanted, threads, tick, order, heads }
    }

    /// Judges every token; `found` is told of each.
    pub fn judge(mut self, found: &mut dyn FnMut(usize, Judged)) {
        let Judge { network, inputs } = *self.judge;
        let units = OffUnits::new(network, inputs, &self.heads.around, self.threads);
        let screen = units.as_ref().map(|units| units.screen(&self.heads.around, self.threads));
        let known = units.as_ref().zip(screen.as_ref());
        let (mut order, starts) = std::mem::take(&mut self.order);
        let (mut items, mut tokens) = (vec![], 0);
        for word in starts.windows(2) {
            let runs = self.runs(&mut order, word[0]..word[1], units.as_ref());
            for item in runs.chunks(RUNS) {
                tokens += item.iter().map(|(run, _)| run.len()).sum::<usize>();
                items.push(item.to_vec());
                if items.len() == ITEMS * BLOCKS || tokens >= TOKENS {
                    self.items(&order, &items, known, found);
                    (items, tokens) = (vec![], 0);
                }
            }
        }
        self.items(&order, &items, known, found);
    }

    /// Judges the tokens of some items.
    fn items(
        &self,
        order: &[u32],
        items: &[Vec<Run>],
        known: Option<(&OffUnits, &Screen)>,
        found: &mut dyn FnMut(usize, Judged),
    ) {
        let blocks: Vec<&[Vec<Run>]> = items.chunks(ITEMS.min(items.len().div_ceil(self.threads)).max(1)).collect();
        let open = |at: usize| self.among(order, blocks[at], known);
        let open: Vec<Among> = parallel(self.threads, blocks.len(), open).into_iter().flatten().collect();
        let runs: Vec<&Run> = items.iter().flatten().collect();
        let one = |at: usize| {
            let (tokens, place) = runs[at];
            let known = known.zip(open[at].as_deref()).map(|((_, screen), among)| (screen, among));
            self.run(&order[tokens.clone()], *place, known)
        };
        in_order(self.threads, runs.len(), BATCH, one, |judged| {
            judged.into_iter().for_each(|(t, judged)| found(t as usize, judged));
        });
    }

    /// The vector of a token's word.
    fn word(&self, t: u32) -> Vec<Dyadic> {
        self.judge.inputs.vectors.get(self.judge.inputs.ids[t as usize] as usize)
    }

    /// The tokens of a word, sorted by places, in runs: some of one place each, near each other in what they read where there are many.
    fn runs(&self, order: &mut [u32], tokens: Range<usize>, units: Option<&OffUnits>) -> Vec<Run> {
        let (inputs, mut runs, mut first) = (self.judge.inputs, vec![], tokens.start);
        let start = usize::from(inputs.start.is_some());
        let positions = self.judge.network.positions.is_some();
        let place = |t: u32| if positions { t as usize - inputs.offsets[self.sequence(t)] + start } else { 0 };
        while first < tokens.end {
            let here = place(order[first]);
            let end = first + order[first..tokens.end].partition_point(|t| place(*t) == here);
            if let Some(units) = units.filter(|_| end - first > RUN && self.heads.width == 1) {
                order[first..end].sort_by_cached_key(|t| (units.ends(self.heads.of(*t))[0].0, *t));
            }
            runs.extend((first..end).step_by(RUN).map(|at| (at..end.min(at + RUN), here)));
            first = end;
        }
        runs
    }

    fn sequence(&self, t: u32) -> usize {
        self.judge.inputs.offsets.partition_point(|first| *first <= t as usize) - 1
    }

    /// The units that may be on for the runs of some items.
    fn among(&self, order: &[u32], items: &[Vec<Run>], known: Option<(&OffUnits, &Screen)>) -> Vec<Among> {
        let Some((units, screen)) = known else { return items.iter().flatten().map(|_| None).collect() };
        let run = |(tokens, place): &Run| (*place, order[tokens.clone()].iter().map(|t| self.heads.of(*t)));
        let item = |runs: &Vec<Run>| units.item(&self.word(order[runs[0].0.start]), runs.iter().map(run));
        screen.among(&items.iter().map(item).collect::<Vec<Item>>()).into_iter().flatten().collect()
    }

    /// Judges some tokens of a word at a place.
    fn run(&self, tokens: &[u32], place: usize, known: Option<(&Screen, &[(u32, i64)])>) -> Vec<(u32, Judged)> {
        let (Judge { network, inputs }, heads) = (self.judge, &self.heads);
        let x = network.input(&self.word(tokens[0]), place);
        let x: Option<Vec<Ball>> = x.map(|x| x.into_iter().map(Ball::exact).collect());
        let mut points: Vec<Option<Option<Points>>> = vec![None; known.map_or(0, |(_, among)| among.len())];
        let mut judge = |t: u32| {
            let spoiled = heads.spoiled && heads.none[self.sequence(t)];
            let Some(x) = x.as_ref().filter(|_| !spoiled) else { return Judged::UNKNOWN };
            let open = known.map(|(gates, among)| gates.open(among, place, heads.of(t)));
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
            network.positions.is_none() && read(a) == read(b) && self.sequence(a) == self.sequence(b)
        };
        let mut judged: Vec<(u32, Judged)> = vec![];
        for &t in tokens {
            let twin = judged.last().filter(|(last, _)| same(*last, t)).map(|(_, judged)| *judged);
            judged.push((t, twin.unwrap_or_else(|| judge(t))));
        }
        // Every other token was counted when it was read.
        let at = |t: &u32| *t as usize - inputs.offsets[self.sequence(*t)];
        (self.tick)(tokens.iter().filter(|t| at(t).is_multiple_of(2)).count());
        judged
    }
}

/// The tokens of all sequences, sorted by their words and, where there are positions, by their places; and where each word starts.
fn ordered(inputs: &Inputs, positions: bool) -> (Vec<u32>, Vec<usize>) {
    let mut all: Vec<u32> = (0..inputs.ids.len() as u32).collect();
    if positions {
        let mut places = all.clone();
        for range in inputs.offsets.windows(2) {
            (range[0]..range[1]).for_each(|t| places[t] = (t - range[0]) as u32);
        }
        all = sorted(&all, |t| places[t as usize] as usize).0;
    }
    sorted(&all, |t| inputs.ids[t as usize] as usize)
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
