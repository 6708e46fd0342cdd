//! The judge: a verdict for every token.

use std::collections::HashMap;

use super::attention::{Seen, project};
use super::ball::Ball;
use super::forward::{Attended, Block, Output, Unit, difference, score, skip};
use super::parallel::parallel;
use super::prepare::Prepared;
use super::screen::{Entries, Screen};
use super::sum::Arithmetic;
use crate::number::Dyadic;

/// Sequences of tokens as a model reads them.
pub struct Inputs {
    /// The distinct tokens' vectors.
    pub vectors: Vec<Vec<Dyadic>>,
    /// The vector of each token of the data.
    pub ids: Vec<u32>,
    /// Where each sequence starts, and the number of tokens at the end.
    pub offsets: Vec<usize>,
    /// The start token's vector.
    pub start: Option<Vec<Dyadic>>,
}

/// What is wanted of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Free,
    /// The label of this number; a label that the model does not have is never given.
    Label(Option<usize>),
    /// Outputs this near, in every coordinate.
    Near(Vec<Dyadic>, Ball),
}

/// A verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every covered program gets it right.
    Right,
    /// Every covered program gets it wrong.
    Wrong,
    /// Neither was shown.
    Unknown,
    /// Nothing was asked.
    Free,
}

/// What was found of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Encloses the smallest margin: over another label, or of the tolerance over the distance. Nothing where a program may
    /// overflow.
    pub margin: Option<Ball>,
    /// The rival label or the coordinate of that margin.
    pub rival: usize,
    /// The label with the greatest score, as far as midpoints tell.
    pub given: Option<usize>,
}

impl Judged {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { verdict: Verdict::Unknown, margin: None, rival: 0, given: None };
}

/// A model with the sequences it is judged on.
pub struct Judge<'a> {
    prepared: &'a Prepared<'a>,
    /// The blocks of the model, in order.
    pub blocks: Vec<Block<'a>>,
    inputs: &'a Inputs,
}

/// What a token has read in the last layer.
struct Read {
    x: Vec<Ball>,
    z: Vec<Ball>,
}

impl<'a> Judge<'a> {
    /// Prepares a judgement.
    pub fn new(prepared: &'a Prepared<'a>, inputs: &'a Inputs) -> Self {
        let mut blocks: Vec<Block> = prepared.pre.iter().map(|part| Block::new(None, Some(part))).collect();
        let layers = prepared.layers.iter();
        blocks.extend(layers.map(|layer| Block::new(layer.attention.as_ref(), layer.feed_forward.as_ref())));
        if blocks.is_empty() {
            blocks.push(Block::new(None, None));
        }
        Self { prepared, blocks, inputs }
    }

    fn arithmetic(&self) -> Arithmetic {
        self.prepared.arithmetic
    }

    /// The tokens of a sequence as the model reads them, the start token first.
    pub fn tokens(&self, sequence: usize) -> Option<Vec<Vec<Ball>>> {
        let range = self.inputs.offsets[sequence]..self.inputs.offsets[sequence + 1];
        let own = self.inputs.ids[range].iter().map(|&id| &self.inputs.vectors[id as usize]);
        let all = self.inputs.start.iter().chain(own).enumerate();
        all.map(|(place, x)| Some(self.prepared.input(x, place)?.into_iter().map(Ball::exact).collect())).collect()
    }

    /// What each token of a sequence (the start token apart) has read in the last layer.
    fn reads(&self, sequence: usize) -> Option<Vec<Read>> {
        let mut tokens = self.tokens(sequence)?;
        let (last, before) = self.blocks.split_last().expect("there is a block");
        for block in before {
            let reads = self.read(block, tokens)?;
            let one = |read: &Read| {
                let token = skip(self.arithmetic(), block.attention, &read.x, &read.z)?;
                Some(self.output(block, &token, None)?.whole)
            };
            tokens = reads.iter().map(one).collect::<Option<_>>()?;
        }
        let mut reads = self.read(last, tokens)?;
        if self.inputs.start.is_some() {
            reads.remove(0);
        }
        Some(reads)
    }

    /// What every token reads in a layer; one token that may overflow spoils the sequence.
    fn read(&self, block: &Block, tokens: Vec<Vec<Ball>>) -> Option<Vec<Read>> {
        let Some(layer) = block.attention else {
            return Some(tokens.into_iter().map(|x| Read { x, z: vec![] }).collect());
        };
        let (n, start) = (tokens.len(), self.inputs.start.is_some());
        let projected = project(self.arithmetic(), layer, &tokens)?;
        let z = |i: usize| projected.read(self.arithmetic(), layer, i, &Seen::new(&layer.mask, i, n, start));
        let all: Option<Vec<Vec<Ball>>> = (0..n).map(z).collect();
        Some(tokens.into_iter().zip(all?).map(|(x, z)| Read { x, z }).collect())
    }

    /// The token after the feed-forward part; `open` names the units that are not known to be off.
    fn output(&self, block: &Block, token: &Attended, open: Option<&[usize]>) -> Option<Output> {
        let hidden = block.part.map_or(0, |part| part.w1.len());
        let unit = |j: usize| block.unit(self.arithmetic(), token, j);
        let units: Option<Vec<Unit>> = match open {
            Some(open) => open.iter().map(|&j| unit(j)).collect(),
            None => (0..hidden).map(unit).collect(),
        };
        block.output(self.arithmetic(), token, units?)
    }

    /// Judges one token.
    fn token(&self, read: &Read, open: Option<&[usize]>, wanted: &Wanted) -> Judged {
        if *wanted == Wanted::Free {
            return Judged { verdict: Verdict::Free, ..Judged::UNKNOWN };
        }
        let last = self.blocks.last().expect("there is a block");
        let all = || {
            let token = skip(self.arithmetic(), last.attention, &read.x, &read.z)?;
            let output = self.output(last, &token, open)?;
            Some((token, output))
        };
        let Some((token, output)) = all() else { return Judged::UNKNOWN };
        let decided = match wanted {
            Wanted::Free => None,
            Wanted::Label(label) => self.label(last, &token, &output, *label),
            Wanted::Near(target, tolerance) => self.near(last, &token, &output, target, *tolerance),
        };
        decided.unwrap_or(Judged::UNKNOWN)
    }

    /// Whether a label is given: whether its score is the greatest, the first of equal ones.
    fn label(&self, last: &Block, token: &Attended, output: &Output, wanted: Option<usize>) -> Option<Judged> {
        let head = self.prepared.head.as_ref()?;
        let scores = (0..head.bias.len()).map(|l| score(self.arithmetic(), head, l, &output.whole));
        let scores = scores.collect::<Option<Vec<_>>>()?;
        let given = (1..scores.len()).fold(0, |best, l| {
            let margin = scores[l].exact.middle().plus(scores[best].exact.middle().minus());
            if margin.is_positive() { l } else { best }
        });
        let mut judged = Judged { verdict: Verdict::Right, margin: None, rival: given, given: Some(given) };
        let Some(wanted) = wanted else { return Some(Judged { verdict: Verdict::Wrong, ..judged }) };
        for rival in (0..scores.len()).filter(|&l| l != wanted) {
            let wins = |margin: Ball| margin.is_positive() || (wanted < rival && margin.is_not_negative());
            let loses = |margin: Ball| margin.is_negative() || (wanted > rival && margin.is_not_positive());
            let mut margin = scores[wanted].computed().plus(scores[rival].computed().minus());
            if !wins(margin) && !loses(margin) {
                let a = difference(&head.weight[wanted], &head.weight[rival]);
                let bias = Ball::exact(head.bias[wanted]).plus(Ball::exact(head.bias[rival]).minus());
                let rounding = scores[wanted].rounding.plus(scores[rival].rounding);
                margin = last.reading(token, output, &a).plus(bias).plus(rounding);
            }
            if loses(margin) {
                let verdict = Verdict::Wrong;
                return Some(Judged { verdict, margin: Some(margin), rival, ..judged });
            }
            if !wins(margin) {
                judged.verdict = Verdict::Unknown;
            }
            if judged.margin.is_none_or(|least| closer(margin, least)) {
                (judged.margin, judged.rival) = (Some(margin), rival);
            }
        }
        Some(judged)
    }

    /// Whether every output is within the tolerance of its target.
    fn near(
        &self,
        last: &Block,
        token: &Attended,
        output: &Output,
        target: &[Dyadic],
        tolerance: Ball,
    ) -> Option<Judged> {
        let mut judged = Judged { verdict: Verdict::Right, margin: None, rival: 0, given: None };
        for (c, wanted) in target.iter().enumerate() {
            let wanted = Ball::exact(*wanted).minus();
            let (a, bias, rounding, rough) = match &self.prepared.head {
                None => (vec![(c, Ball { m: 1, r: 0, e: 0 })], Ball::ZERO, Ball::ZERO, output.whole[c]),
                Some(head) => {
                    let score = score(self.arithmetic(), head, c, &output.whole)?;
                    let a = head.weight[c].iter().map(|&(c, w)| (c, Ball::exact(w))).collect();
                    (a, Ball::exact(head.bias[c]), score.rounding, score.computed())
                }
            };
            let margin = |y: Ball| tolerance.plus(distance(y.plus(wanted)).minus());
            let mut found = margin(rough);
            if !found.is_not_negative() && !found.is_negative() {
                found = margin(last.reading(token, output, &a).plus(bias).plus(rounding));
            }
            if found.is_negative() {
                return Some(Judged { verdict: Verdict::Wrong, margin: Some(found), rival: c, given: None });
            }
            if !found.is_not_negative() {
                judged.verdict = Verdict::Unknown;
            }
            if judged.margin.is_none_or(|least| closer(found, least)) {
                (judged.margin, judged.rival) = (Some(found), c);
            }
        }
        Some(judged)
    }

    /// The outputs of all tokens of a sequence, before the head.
    pub fn outputs(&self, sequence: usize) -> Option<Vec<Vec<Ball>>> {
        let last = self.blocks.last().expect("there is a block");
        let one = |read: &Read| {
            let token = skip(self.arithmetic(), last.attention, &read.x, &read.z)?;
            Some(self.output(last, &token, None)?.whole)
        };
        self.reads(sequence)?.iter().map(one).collect()
    }

    /// Judges every token of the data.
    pub fn judge(&self, wanted: &[Wanted], threads: usize, tick: &(dyn Fn(usize) + Sync)) -> Vec<Judged> {
        let sequences = self.inputs.offsets.len() - 1;
        let positions = |s: usize| self.inputs.offsets[s]..self.inputs.offsets[s + 1];
        let hidden = self.blocks[0].part.map_or(0, |part| part.w1.len());
        if self.blocks.len() == 1 && hidden >= 64 && self.blocks[0].attention.is_none_or(|a| a.heads * a.size <= 4) {
            return self.by_word(wanted, threads, tick);
        }
        let one = |s: usize| {
            let wanted = &wanted[positions(s)];
            let judged: Vec<Judged> = match self.reads(s) {
                Some(reads) => reads.iter().zip(wanted).map(|(read, wanted)| self.token(read, None, wanted)).collect(),
                None => vec![Judged::UNKNOWN; wanted.len()],
            };
            tick(wanted.len());
            judged
        };
        parallel(threads, sequences, one).into_iter().flatten().collect()
    }

    /// The same for one layer, the tokens of a word together: which units are off is read from tables.
    fn by_word(&self, wanted: &[Wanted], threads: usize, tick: &(dyn Fn(usize) + Sync)) -> Vec<Judged> {
        let sequences = self.inputs.offsets.len() - 1;
        let heads = |s: usize| {
            let reads = self.reads(s);
            tick((self.inputs.offsets[s + 1] - self.inputs.offsets[s]) / 2);
            reads.map(|reads| reads.into_iter().map(|read| read.z).collect::<Vec<_>>())
        };
        let heads: Vec<Option<Vec<Vec<Ball>>>> = parallel(threads, sequences, heads);
        let tables = Tables::new(self, &heads);
        let mut words: HashMap<u32, Vec<(usize, usize)>> = HashMap::new();
        for s in 0..sequences {
            for t in self.inputs.offsets[s]..self.inputs.offsets[s + 1] {
                words.entry(self.inputs.ids[t]).or_default().push((s, t));
            }
        }
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_unstable();
        let start = usize::from(self.inputs.start.is_some());
        let one = |at: usize| {
            let (id, tokens) = &words[at];
            let vector = &self.inputs.vectors[*id as usize];
            let row = tables.as_ref().and_then(|tables| Some(tables.word(&self.prepared.rounded(vector)?)));
            let judge = |&(s, t): &(usize, usize)| {
                let place = t - self.inputs.offsets[s] + start;
                let z = heads[s].as_ref().map(|all| all[place - start].clone());
                let (Some(z), Some(x)) = (z, self.prepared.input(vector, place)) else { return (t, Judged::UNKNOWN) };
                let read = Read { x: x.into_iter().map(Ball::exact).collect(), z };
                let open = tables.as_ref().zip(row.as_ref()).map(|(tables, row)| tables.open(row, place, &read.z));
                (t, self.token(&read, open.as_deref(), &wanted[t]))
            };
            let judged: Vec<(usize, Judged)> = tokens.iter().map(judge).collect();
            tick(tokens.len() - tokens.len() / 2);
            judged
        };
        let mut all = vec![Judged::UNKNOWN; self.inputs.ids.len()];
        for (t, judged) in parallel(threads, words.len(), one).into_iter().flatten() {
            all[t] = judged;
        }
        all
    }
}

/// A token after the attention of the first layer, for tokens that are known to lie in balls.
pub fn attended(prepared: &Prepared, tokens: &[Vec<Ball>], i: usize) -> Option<Vec<Ball>> {
    let layer = prepared.layers.first()?.attention.as_ref()?;
    let seen = Seen::new(&layer.mask, i, tokens.len(), false);
    let z = project(prepared.arithmetic, layer, tokens)?.read(prepared.arithmetic, layer, i, &seen)?;
    Some(skip(prepared.arithmetic, Some(layer), &tokens[i], &z)?.whole)
}

/// |x| as a ball.
fn distance(x: Ball) -> Ball {
    if x.is_not_negative() {
        return x;
    }
    if x.is_not_positive() {
        return x.minus();
    }
    x.size().relu().hull(Ball::ZERO)
}

/// Whether a margin is smaller than another, against their radii.
fn closer(a: Ball, b: Ball) -> bool {
    let by = |x: Ball, r: Ball| x.middle().times(r.spread().size());
    by(a, b).plus(by(b, a).minus()).is_negative()
}

/// The tables of a first layer.
struct Tables<'a> {
    block: &'a Block<'a>,
    screen: Screen,
    places: Vec<Entries>,
    /// What the heads' values add to each unit at most.
    heads: Vec<Option<i64>>,
    /// What a place adds to each unit at most.
    greatest: Vec<i64>,
}

/// What a word adds, and the units that may be on for it.
struct Word {
    entries: Entries,
    open: Vec<usize>,
}

impl<'a> Tables<'a> {
    fn new(judge: &'a Judge, heads: &[Option<Vec<Vec<Ball>>>]) -> Option<Self> {
        let block = &judge.blocks[0];
        let d = judge.prepared.model.d;
        let largest = |rows: &[Vec<Dyadic>], c: usize| {
            let sizes = rows.iter().map(|x| Ball::exact(x[c]).size());
            sizes.reduce(|a, b| if a.plus(b.minus()).is_negative() { b } else { a }).unwrap_or(Ball::ZERO)
        };
        let longest =
            judge.inputs.offsets.windows(2).map(|w| w[1] - w[0]).max()? + usize::from(judge.inputs.start.is_some());
        let nothing = vec![Dyadic::ZERO; d];
        let places: Vec<Vec<Dyadic>> = match &judge.prepared.model.positions {
            Some(_) => (0..longest).map(|place| judge.prepared.input(&nothing, place)).collect::<Option<_>>()?,
            None => vec![nothing; 1],
        };
        let words = judge.inputs.vectors.iter().map(|x| judge.prepared.rounded(x)).collect::<Option<Vec<_>>>()?;
        let (mut sizes, mut both) = (Vec::new(), Vec::new());
        for c in 0..d {
            let (word, place) = (largest(&words, c), largest(&places, c));
            both.push(!word.is_zero() && !place.is_zero());
            // A sum of two, rounded.
            sizes.push(word.plus(place).scaled(i32::from(!word.is_zero() && !place.is_zero())).size());
        }
        let width = block.attention.map_or(0, |a| a.heads * a.size);
        let all = heads.iter().flatten().flatten();
        let z: Vec<Ball> = all.fold(vec![Ball::ZERO; width], |hull, z| {
            hull.iter().zip(z).map(|(hull, z)| if covers(*hull, *z) { *hull } else { hull.hull(*z) }).collect()
        });
        let screen = Screen::new(judge.arithmetic(), block, &sizes, &both, &z)?;
        let hidden = block.part?.w1.len();
        let places: Vec<Entries> = places.iter().map(|x| screen.entries(x)).collect();
        let of_heads = (0..hidden).map(|j| screen.of_heads(block.gains(j), &z, j)).collect();
        let greatest = (0..hidden).map(|j| places.iter().map(|place| place[j]).max().unwrap_or(0)).collect();
        Some(Self { block, screen, places, heads: of_heads, greatest })
    }

    fn word(&self, vector: &[Dyadic]) -> Word {
        let entries = self.screen.entries(vector);
        let off = |j: usize| self.screen.is_off(j, entries[j], self.greatest[j], self.heads[j]);
        Word { open: (0..entries.len()).filter(|&j| !off(j)).collect(), entries }
    }

    /// The units that are not off for a word at a place.
    fn open(&self, word: &Word, place: usize, z: &[Ball]) -> Vec<usize> {
        let place = &self.places[place.min(self.places.len() - 1)];
        let off = |j: usize| {
            let heads = self.screen.of_heads(self.block.gains(j), z, j);
            self.screen.is_off(j, word.entries[j], place[j], heads)
        };
        word.open.iter().copied().filter(|&j| !off(j)).collect()
    }
}

/// Whether the second ball lies within the first.
fn covers(a: Ball, b: Ball) -> bool {
    let gap = a.middle().plus(b.middle().minus()).size().plus(b.spread().size());
    let radius = Ball { m: a.r as i64, r: 0, e: a.e };
    radius.plus(gap.minus()).is_not_negative()
}
