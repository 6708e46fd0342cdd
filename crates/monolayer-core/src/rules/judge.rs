//! The judge: a verdict for every token.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::ball::Ball;
use super::by_word::ByWord;
use super::network::{Attended, Block, Network, Open, Output, Tick};
use super::sum::Sum;
use crate::model::Tensor;
use crate::number::Dyadic;
use crate::parallel::in_order;

/// With more labels than this to look at, an output is bounded anew, coordinate by coordinate.
pub(super) const MANY_RIVALS: usize = 32;
/// Jobs whose results are kept at a time.
pub(super) const BATCH: usize = 1 << 10;

/// Sequences of tokens as a model reads them.
pub struct Inputs<'a> {
    /// The distinct tokens' vectors.
    pub vectors: Vectors<'a>,
    /// The vector of each token of the data.
    pub ids: &'a [u32],
    /// Where each sequence starts, and the number of tokens at the end.
    pub offsets: &'a [usize],
    /// The start token's vector.
    pub start: Option<Vec<Dyadic>>,
}

/// Vectors of one dimension.
pub enum Vectors<'a> {
    /// As they are.
    Given(&'a [Vec<Dyadic>]),
    /// One after another, with their dimension.
    Flat(&'a [Dyadic], usize),
    /// Rows of a matrix: they are read wherever they are used.
    Rows(&'a Tensor, Vec<u32>),
}

impl Vectors<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Given(all) => all.len(),
            Self::Flat(all, d) => all.len() / d,
            Self::Rows(_, rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Vector `at`.
    pub fn get(&self, at: usize) -> Vec<Dyadic> {
        match self {
            Self::Given(all) => all[at].clone(),
            Self::Flat(all, d) => all[at * d..(at + 1) * d].to_vec(),
            Self::Rows(matrix, rows) => {
                let d = matrix.shape[1];
                (rows[at] as usize * d..(rows[at] as usize + 1) * d).map(|i| matrix.get(i)).collect()
            }
        }
    }

    /// Their dimension, if there are any.
    pub fn dimension(&self) -> Option<usize> {
        (!self.is_empty()).then(|| self.get(0).len())
    }
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

/// What is wanted of every token: each different one once.
pub struct Wishes<'a> {
    /// The number of each token's, if something is wanted of it.
    pub labels: &'a [Option<u32>],
    /// What they are.
    pub each: Vec<Wanted>,
}

impl Wishes<'_> {
    /// What is wanted of a token.
    pub fn of(&self, t: usize) -> &Wanted {
        self.labels[t].map_or(&Wanted::Free, |label| &self.each[label as usize])
    }
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

impl Inputs<'_> {
    /// How many sequences there are.
    pub fn sequences(&self) -> usize {
        self.offsets.len() - 1
    }
}

/// A model with the sequences it is judged on.
pub struct Judge<'a> {
    /// The model.
    pub network: &'a Network,
    /// The sequences.
    pub inputs: &'a Inputs<'a>,
}

/// The tokens of a sequence before a layer, and what each has read in it.
type Reads = (Vec<Vec<Ball>>, Vec<Vec<Ball>>);

impl Judge<'_> {
    /// The tokens of a sequence behind so many blocks of the model, the start token first.
    pub fn tokens(&self, sequence: usize, blocks: usize) -> Option<Vec<Vec<Ball>>> {
        let range = self.inputs.offsets[sequence]..self.inputs.offsets[sequence + 1];
        let own = self.inputs.ids[range].iter().map(|&id| self.inputs.vectors.get(id as usize));
        let all = self.inputs.start.iter().cloned().chain(own).enumerate();
        let input = |(place, x): (usize, Vec<Dyadic>)| {
            Some(self.network.input(&x, place)?.into_iter().map(Ball::exact).collect::<Vec<_>>())
        };
        let tokens = all.map(input).collect::<Option<Vec<_>>>()?;
        self.network.blocks[..blocks].iter().try_fold(tokens, |tokens, block| self.network.apply(block, &tokens))
    }

    pub(super) fn last(&self) -> &Block {
        self.network.blocks.last().expect("there is a block")
    }

    /// The tokens of a sequence (without the start token) before the last layer, and what they read in it.
    pub(super) fn reads(&self, sequence: usize, threads: usize, tick: Tick) -> Option<Reads> {
        let mut tokens = self.tokens(sequence, self.network.blocks.len() - 1)?;
        let start = usize::from(self.inputs.start.is_some());
        // Reading is half of the work: every other token counts here, and the others when they are judged.
        let mut z = self.network.read(self.last(), &tokens, threads, &|i| tick((i - start.min(i)) % 2))?;
        Some((tokens.split_off(start), z.split_off(start)))
    }

    /// The outputs of all tokens of a sequence, before the head.
    pub fn outputs(&self, sequence: usize) -> Option<Vec<Vec<Ball>>> {
        let mut tokens = self.tokens(sequence, self.network.blocks.len())?;
        Some(tokens.split_off(usize::from(self.inputs.start.is_some())))
    }

    /// Judges one token, from what it was before the last layer and has read there; `open` names the units that may be on.
    pub(super) fn token(&self, x: &[Ball], z: &[Ball], open: Option<&[Open]>, wanted: &Wanted) -> Judged {
        let decide = || {
            let token = self.last().skip(self.network.arithmetic, x, z)?;
            let output = self.network.output(self.last(), &token, open)?;
            match wanted {
                Wanted::Free => None,
                Wanted::Label(label) => self.label(&token, &output, *label),
                Wanted::Near(target, tolerance) => self.near(&token, &output, target, *tolerance),
            }
        };
        match wanted {
            Wanted::Free => Judged { verdict: Verdict::Free, ..Judged::UNKNOWN },
            _ => decide().unwrap_or(Judged::UNKNOWN),
        }
    }

    /// Whether a label is given: whether its score is the greatest, the first of equal ones.
    fn label(&self, token: &Attended, output: &Output, wanted: Option<usize>) -> Option<Judged> {
        let network = self.network;
        let labels = network.head.as_ref()?.0.rows();
        let greatest = |scores: &[(usize, Sum)]| {
            let middle = |at: usize| scores[at].1.exact.middle();
            (1..scores.len()).fold(0, |best, at| if middle(best).is_below(middle(at)) { at } else { best })
        };
        let scores = |y: &[Ball], near: &[usize]| {
            near.iter().map(|&l| Some((l, network.score(l, y)?))).collect::<Option<Vec<_>>>()
        };
        let Some(wanted) = wanted else {
            let given = greatest(&scores(&output.whole, &(0..labels).collect::<Vec<_>>())?);
            return Some(Judged { verdict: Verdict::Wrong, rival: given, given: Some(given), margin: None });
        };
        let prepared = OnceCell::new();
        let prepared = || prepared.get_or_init(|| self.last().prepare(token, output));
        // Most of many labels are far away, some only once the output is known well.
        let (mut y, mut near) = (Cow::Borrowed(&output.whole), network.rivals(&output.whole, wanted));
        if near.as_ref().is_some_and(|near| near.len() > MANY_RIVALS) {
            y = Cow::Owned(prepared().sharpened(network.head_columns()));
            near = network.rivals(&y, wanted);
        }
        let near = near.unwrap_or_else(|| (0..labels).filter(|l| *l != wanted).collect());
        let (own, scores) = (network.score(wanted, &y)?, scores(&y, &near)?);
        let sharp =
            |(l, other): &(usize, Sum)| network.margin(prepared(), wanted, *l).plus(own.rounding.plus(other.rounding));
        let rough = |at: usize| own.computed().plus(scores[at].1.computed().minus());
        // Of equal scores that of the lower label wins.
        let judged = decide(0..near.len(), |at| wanted < near[at], rough, |at| sharp(&scores[at]));
        let rival = near.get(judged.rival).copied().unwrap_or(0);
        let mut all = scores;
        all.insert(near.partition_point(|l| *l < wanted), (wanted, own));
        Some(Judged { given: Some(all[greatest(&all)].0), rival, ..judged })
    }

    /// Whether every output is within the tolerance of its target.
    fn near(&self, token: &Attended, output: &Output, target: &[Dyadic], tolerance: Ball) -> Option<Judged> {
        let network = self.network;
        let scores = (0..target.len()).map(|c| network.score(c, &output.whole)).collect::<Option<Vec<_>>>()?;
        let margin = |c: usize, y: Ball| {
            let gap = y.plus(Ball::exact(target[c]).minus());
            let sure = gap.is_not_negative() || gap.minus().is_not_negative();
            // |gap|: with its sign where that is known, else from 0 to the farthest.
            let gap = if gap.m < 0 { gap.minus() } else { gap };
            tolerance.plus(if sure { gap } else { gap.relu() }.minus())
        };
        let prepared = OnceCell::new();
        let sharp = |c: usize| {
            let (a, bias) = network.reader(c);
            let prepared = prepared.get_or_init(|| self.last().prepare(token, output));
            margin(c, prepared.reading(&a).plus(bias).plus(scores[c].rounding))
        };
        Some(decide(0..target.len(), |_| true, |c| margin(c, scores[c].computed()), sharp))
    }

    /// Judges every token of the data; `found` is told of each, in no order.
    pub fn judge(&self, wanted: &Wishes, threads: usize, tick: Tick, found: &mut dyn FnMut(usize, Judged)) {
        if let [block] = &self.network.blocks[..]
            && block.hidden() >= 64
            && block.attention.as_ref().is_none_or(|a| a.heads * a.size <= 4)
        {
            return ByWord::new(self, wanted, threads, tick).judge(found);
        }
        let one = |s: usize| {
            let tokens = self.inputs.offsets[s]..self.inputs.offsets[s + 1];
            tick(tokens.len());
            let Some((x, z)) = self.reads(s, 1, &|_| ()) else { return vec![Judged::UNKNOWN; tokens.len()] };
            tokens.enumerate().map(|(i, t)| self.token(&x[i], &z[i], None, wanted.of(t))).collect::<Vec<Judged>>()
        };
        let mut next = 0;
        in_order(threads, self.inputs.sequences(), BATCH, one, |judged| {
            for judged in judged {
                found(next, judged);
                next += 1;
            }
        });
    }
}

/// Right if every margin is above zero (or zero, where that is enough), wrong if one is below. Margins that are not decided are
/// bounded once more, sharply.
fn decide(
    each: impl Iterator<Item = usize>,
    zero_is_enough: impl Fn(usize) -> bool,
    rough: impl Fn(usize) -> Ball,
    sharp: impl Fn(usize) -> Ball,
) -> Judged {
    let mut judged = Judged { verdict: Verdict::Right, ..Judged::UNKNOWN };
    for rival in each {
        let above = |x: Ball, zero: bool| if zero { x.is_not_negative() } else { x.is_positive() };
        let holds = |margin: Ball| above(margin, zero_is_enough(rival));
        let fails = |margin: Ball| above(margin.minus(), !zero_is_enough(rival));
        let mut margin = rough(rival);
        if !holds(margin) && !fails(margin) {
            margin = sharp(rival);
        }
        if fails(margin) {
            return Judged { verdict: Verdict::Wrong, margin: Some(margin), rival, given: None };
        }
        if !holds(margin) {
            judged.verdict = Verdict::Unknown;
        }
        // The smallest margin against its radius; one that is exactly zero has none.
        let by = |x: Ball, r: Ball| x.middle().times(r.spread().size());
        if judged.margin.is_none_or(|least| least.is_zero() || by(margin, least).is_below(by(least, margin))) {
            (judged.margin, judged.rival) = (Some(margin), rival);
        }
    }
    judged
}
