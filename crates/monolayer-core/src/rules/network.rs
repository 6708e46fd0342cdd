//! The layers of a model as programs compute them: the skip around attention (eq. 2), hidden units (eq. 3), scores.

use super::attention::{Seen, project};
use super::ball::Ball;
use super::matrix::{Fixed, Matrix};
use super::prefixes;
use super::rivals::ShortHead;
use super::sum::{Arithmetic, Points, Sum, Term, Together, real_sum, sum};
use crate::model::{Attention, FeedForward, Model, Numbers};
use crate::number::Dyadic;
use crate::parallel::parallel;

/// Told of something that is done.
pub type Tick<'a> = &'a (dyn Fn(usize) + Sync);

/// Errors of heads' values are kept apart up to this many.
const SHARED: usize = 4;

/// A layer adds at most some thousands to an exponent: after so many, exponents of balls are far from the ends of an i32.
const MOST_LAYERS: usize = 1 << 14;

/// A model of floats, rounded to the format that is judged.
pub struct Network {
    /// The arithmetic.
    pub arithmetic: Arithmetic,
    /// The block before the first layer, if there is one, and the layers; at least one.
    pub blocks: Vec<Block>,
    /// A row and a number per label or output.
    pub head: Option<(Matrix, Matrix)>,
    short_head: Option<ShortHead>,
    pub(super) positions: Option<Matrix>,
    /// Whether sequences begin with a start token.
    pub start: bool,
}

impl Network {
    /// Prepares a model of floats; nothing for an exact one, for too many layers, and where a number overflows the format.
    pub fn new(model: &Model, arithmetic: Arithmetic) -> Option<Self> {
        let to = |numbers: &Numbers| Matrix::new(numbers, arithmetic);
        let pre = model.pre_feed_forward.iter().map(|part| (None, Some(part)));
        let layers = model.layers.iter().map(|layer| (layer.attention.as_ref(), layer.feed_forward.as_ref()));
        let mut blocks = Vec::new();
        for (attention, part) in pre.chain(layers) {
            blocks.push(Block::new(each(attention, |part| part.map(to))?, each(part, |part| part.map(to))?));
        }
        if blocks.is_empty() {
            blocks.push(Block::new(None, None));
        }
        let head = each(model.head.as_ref(), |head| Some((to(&head.weight)?, to(&head.bias)?)))?;
        let short_head = head.as_ref().and_then(|(weight, bias)| ShortHead::new(weight, bias));
        let positions = each(model.positions.as_ref(), to)?;
        let few = blocks.len() <= MOST_LAYERS;
        few.then_some(Self { arithmetic, blocks, head, short_head, positions, start: model.start.is_some() })
    }

    /// The vector of a word (or a given vector) at a place, as a program computes it: one addition, rounded to nearest.
    pub fn input(&self, token: &[Dyadic], place: usize) -> Option<Vec<Dyadic>> {
        let one = |(c, x): (usize, &Dyadic)| {
            let x = self.arithmetic.round(*x)?;
            self.positions.as_ref().map_or(Some(x), |p| self.arithmetic.add(x, p.get(place, c)))
        };
        token.iter().enumerate().map(one).collect()
    }

    /// What every token reads in a layer, a ball per coordinate of the heads' values; one token that may overflow spoils the
    /// sequence. `tick` is told of each token.
    pub fn read(&self, block: &Block, tokens: &[Vec<Ball>], threads: usize, tick: Tick) -> Option<Vec<Vec<Ball>>> {
        let Some(layer) = &block.attention else { return Some(vec![vec![]; tokens.len()]) };
        let projected = project(self.arithmetic, layer, tokens)?;
        let seen = |i: usize| Seen::new(&layer.mask, i, tokens.len(), self.start);
        let long = tokens.len() >= prefixes::LONG;
        let found = long.then(|| prefixes::read(self.arithmetic, layer, &projected, &seen, (threads, tick))).flatten();
        let one = |i: usize| {
            if let Some(ball) = found.as_ref().and_then(|found| found[i]) {
                return Some(vec![ball]);
            }
            tick(i);
            projected.read(self.arithmetic, layer, i, &seen(i))
        };
        if threads > 1 {
            return parallel(threads, tokens.len(), one).into_iter().collect();
        }
        (0..tokens.len()).map(one).collect()
    }

    /// The token after the feed-forward part; `open` names the units that are not known to be off.
    pub fn output(&self, block: &Block, token: &Attended, open: Option<&[Open]>) -> Option<Output> {
        let units = 0..open.map_or(block.hidden(), <[Open]>::len);
        let unit = |i: usize| match open.map(|open| open[i]) {
            Some((j, points)) => block.unit_with(self.arithmetic, token, j, points),
            None => block.unit(self.arithmetic, token, i),
        };
        block.output(self.arithmetic, token, units.map(unit).collect::<Option<_>>()?)
    }

    /// The tokens after a layer.
    pub fn apply(&self, block: &Block, tokens: &[Vec<Ball>]) -> Option<Vec<Vec<Ball>>> {
        let one = |(x, z): (&Vec<Ball>, Vec<Ball>)| {
            Some(self.output(block, &block.skip(self.arithmetic, x, &z)?, None)?.whole)
        };
        tokens.iter().zip(self.read(block, tokens, 1, &|_| ())?).map(one).collect()
    }

    /// The score of a row of the head, or an output.
    pub fn score(&self, l: usize, y: &[Ball]) -> Option<Sum> {
        let Some((weight, bias)) = &self.head else { return Some(Sum { exact: y[l], rounding: Ball::ZERO }) };
        let terms = weight.weights(l).map(|(c, w)| Term::weighted(w, y[c]));
        sum(self.arithmetic, terms.chain([Term::addend(Ball::exact(bias.at(l)))]))
    }

    /// The labels that may win over the wanted one, or come nearest to it; nothing where all are to be looked at.
    pub fn rivals(&self, y: &[Ball], wanted: usize) -> Option<Vec<usize>> {
        let short = self.short_head.as_ref()?.scores(self.arithmetic, &self.head.as_ref()?.1, y)?;
        let score = |l: usize| Some(self.score(l, y)?.computed());
        Some(short.rivals(wanted, score(wanted)?.plus(score(short.nearest(wanted)?)?.minus())))
    }

    /// The label with the greatest score, as far as midpoints tell; nothing where a program may overflow.
    pub fn leader(&self, y: &[Ball]) -> Option<usize> {
        let (weight, bias) = self.head.as_ref()?;
        if let Some(short) = self.short_head.as_ref().and_then(|head| head.scores(self.arithmetic, bias, y)) {
            return short.nearest(usize::MAX);
        }
        let middle = |l: usize| Some(self.score(l, y)?.exact.middle());
        let mut best = (0, middle(0)?);
        for l in 1..weight.rows() {
            let own = middle(l)?;
            best = if best.1.is_below(own) { (l, own) } else { best };
        }
        Some(best.0)
    }

    /// By how much label a's score is above label b's, but for the rounding of both, with what errors share kept together.
    pub fn margin(&self, prepared: &Prepared, a: usize, b: usize) -> Ball {
        let ((mut all, bias), (other, other_bias)) = (self.reader(a), self.reader(b));
        for (c, w) in other {
            match all.binary_search_by_key(&c, |(c, _)| *c) {
                Ok(at) => all[at].1 = all[at].1.plus(w.minus()),
                Err(at) => all.insert(at, (c, w.minus())),
            }
        }
        prepared.reading(&all).plus(bias).plus(other_bias.minus())
    }

    /// The coordinates that labels are read from.
    pub fn head_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.short_head.iter().flat_map(ShortHead::columns)
    }

    /// A row of the head, and its bias; without a head, a coordinate.
    pub fn reader(&self, l: usize) -> (Vec<(usize, Ball)>, Ball) {
        match &self.head {
            Some((weight, bias)) => {
                (weight.weights(l).map(|(c, w)| (c, Ball::exact(w))).collect(), Ball::exact(bias.at(l)))
            }
            None => (vec![(l, Ball::power(0))], Ball::ZERO),
        }
    }
}

/// What is there in another form; nothing where it is there and has none.
#[expect(clippy::option_option, reason = "absent and impossible are two things")]
fn each<T, M>(part: Option<T>, to: impl Fn(T) -> Option<M>) -> Option<Option<M>> {
    part.map_or(Some(None), |part| to(part).map(Some))
}

impl Attention<Matrix> {
    /// What coordinate c of a token gets from each coordinate of the heads' values.
    pub(super) fn writes(&self, c: usize) -> impl Iterator<Item = (usize, Dyadic)> + Clone + '_ {
        let d = self.w_o.rows() / self.heads;
        (0..self.heads).flat_map(move |h| self.w_o.weights(h * d + c).map(move |(k, w)| (h * self.size + k, w)))
    }
}

/// A token after attention: x + `W_O` z.
///
/// The error of a head's value is one number that all coordinates share. Kept apart, it cancels where a reader of the token is
/// orthogonal to its column of `W_O`.
pub struct Attended {
    /// Each coordinate without the shared errors.
    pub own: Vec<Ball>,
    /// The errors of the heads' values, around zero.
    pub shared: Vec<Ball>,
    /// Each coordinate with them; midpoints and exponents are the same.
    pub whole: Vec<Ball>,
    /// The same in fixed point, where most are not known exactly.
    fixed: Option<Fixed>,
}

/// A layer: attention or none, feed-forward or none, and how each hidden unit reads the heads' values.
pub struct Block {
    /// The attention.
    pub attention: Option<Attention<Matrix>>,
    /// The feed-forward part.
    pub part: Option<FeedForward<Matrix>>,
    /// Columns of `W_O`, where errors of the heads' values are kept apart.
    columns: Vec<Vec<(usize, Ball)>>,
    /// W1(j) . `W_O`(k) for each unit and column.
    pub gains: Vec<Vec<Ball>>,
    /// Whether hidden units and b2 leave a coordinate as it is: all their weights are 0.
    passes: Vec<bool>,
    /// Columns of W2, where they have few weights.
    writes: Option<Writes>,
    /// The coordinates that attention adds something to.
    written: Vec<usize>,
}

/// The weights of W2 that are not zero, unit by unit.
struct Writes {
    starts: Vec<usize>,
    weights: Vec<(u32, Dyadic)>,
}

impl Writes {
    /// More weights than this are looked up in W2 itself.
    const MOST: usize = 1 << 23;

    fn new(part: &FeedForward<Matrix>) -> Option<Self> {
        let mut starts = vec![0; part.hidden + 1];
        for (j, _) in (0..part.w2.rows()).flat_map(|c| part.w2.weights(c)) {
            starts[j + 1] += 1;
        }
        (0..part.hidden).for_each(|j| starts[j + 1] += starts[j]);
        let mut weights = vec![(0, Dyadic::ZERO); starts.last().copied().filter(|n| *n <= Self::MOST)?];
        let mut next = starts.clone();
        for c in 0..part.w2.rows() {
            for (j, w) in part.w2.weights(c) {
                weights[next[j]] = (c as u32, w);
                next[j] += 1;
            }
        }
        Some(Self { starts, weights })
    }

    fn of(&self, j: usize) -> &[(u32, Dyadic)] {
        &self.weights[self.starts[j]..self.starts[j + 1]]
    }
}

/// A unit that may be on, with what it adds up of coordinates that attention leaves as they are, where that is known.
pub type Open<'a> = (usize, Option<&'a Points>);

/// A hidden unit that is not certainly off.
#[derive(Clone, Copy)]
pub struct Unit {
    /// Its number.
    pub index: usize,
    /// What rounding adds to its sum.
    rounding: Ball,
    /// What it has computed before the ReLU.
    pub before: Ball,
    /// What it gives.
    pub after: Ball,
}

/// A token after the feed-forward layer.
pub struct Output {
    /// The coordinates.
    pub whole: Vec<Ball>,
    /// What rounding of the last sums adds to each.
    rounding: Vec<Ball>,
    /// The units that may be on.
    pub units: Vec<Unit>,
}

impl Block {
    /// Prepares a layer.
    pub fn new(attention: Option<Attention<Matrix>>, part: Option<FeedForward<Matrix>>) -> Self {
        let mut columns = vec![];
        if let Some(layer) = attention.as_ref().filter(|layer| layer.heads * layer.size <= SHARED) {
            columns = vec![vec![]; layer.heads * layer.size];
            for c in 0..layer.w_o.rows() / layer.heads {
                layer.writes(c).for_each(|(k, w)| columns[k].push((c, Ball::exact(w))));
            }
        }
        let gains = |j: usize| {
            let weight = |c: usize| part.as_ref().map_or(Dyadic::ZERO, |part| part.w1.get(j, c));
            let gain =
                |column: &Vec<(usize, Ball)>| real_sum(column.iter().map(|(c, x)| Term::weighted(weight(*c), *x)));
            columns.iter().map(gain).collect()
        };
        let gains = (0..part.as_ref().map_or(0, |part| part.hidden)).map(gains).collect();
        let passes = |part: &FeedForward<Matrix>| {
            let zero = |c: usize| part.b2.at(c).is_zero() && part.w2.weights(c).next().is_none();
            (0..part.w2.rows()).map(zero).collect()
        };
        let passes = part.as_ref().map(passes).unwrap_or_default();
        let writes = part.as_ref().and_then(Writes::new);
        let adds = |layer: &Attention<Matrix>| {
            let coordinates = 0..layer.w_o.rows() / layer.heads;
            coordinates.filter(|c| layer.writes(*c).next().is_some()).collect()
        };
        let written = attention.as_ref().map(adds).unwrap_or_default();
        Self { attention, part, columns, gains, passes, writes, written }
    }

    /// The weights of a unit in W2 that are not zero, with their coordinates.
    pub(super) fn writes(&self, j: usize) -> impl Iterator<Item = (usize, Dyadic)> + '_ {
        let part = self.part.as_ref().filter(|_| self.writes.is_none());
        let all = part.into_iter().flat_map(move |part| (0..part.w2.rows()).map(move |c| (c, part.w2.get(c, j))));
        let known = self.writes.as_ref().map_or(&[][..], |writes| writes.of(j));
        known.iter().map(|(c, w)| (*c as usize, *w)).chain(all.filter(|(_, w)| !w.is_zero()))
    }

    /// How many hidden units there are.
    pub fn hidden(&self) -> usize {
        self.gains.len()
    }

    /// Whether a unit may fire at all: one that reads nothing and has no positive bias does not.
    pub(super) fn may_fire(&self, j: usize) -> bool {
        self.part.as_ref().is_none_or(|part| part.b1.at(j).m > 0 || part.w1.weights(j).next().is_some())
    }

    /// The skip: every coordinate is a sum of the incoming number and products of `W_O` and z.
    pub fn skip(&self, arithmetic: Arithmetic, x: &[Ball], z: &[Ball]) -> Option<Attended> {
        let mut out = Attended { own: x.to_vec(), shared: vec![], whole: x.to_vec(), fixed: None };
        if let Some(layer) = &self.attention {
            out.shared = z.iter().take(self.columns.len()).map(|z| z.spread()).collect();
            for (c, own) in x.iter().enumerate().filter(|(c, _)| layer.writes(*c).next().is_some()) {
                let products = |z: &[Ball]| layer.writes(c).map(|(k, w)| Term::weighted(w, z[k])).collect::<Vec<_>>();
                let all = |z: &[Ball]| products(z).into_iter().chain([Term::addend(*own)]);
                let sum = sum(arithmetic, all(z))?;
                if out.shared.is_empty() {
                    (out.own[c], out.whole[c]) = (sum.computed(), sum.computed());
                    continue;
                }
                let middle: Vec<Ball> = z.iter().map(|z| z.middle()).collect();
                let shared = real_sum(products(&out.shared).into_iter());
                (out.own[c], out.whole[c]) = real_sum(all(&middle)).plus(sum.rounding).widened(shared);
            }
        }
        let numbers = out.own.iter().zip(&out.whole).enumerate();
        out.fixed = Fixed::new(arithmetic, numbers.map(|(c, (own, whole))| (c, *own, *whole)));
        Some(out)
    }

    /// What a unit adds up of the coordinates that attention leaves as they are, and its bias; nothing where it is not worth it.
    pub fn points(&self, x: &[Ball], j: usize) -> Option<Points> {
        let part = self.part.as_ref()?;
        let still = part.w1.weights(j).filter(|(c, _)| self.written.binary_search(c).is_err());
        let bias = Term::addend(Ball::exact(part.b1.at(j)));
        Points::new(still.map(|(c, w)| Term::weighted(w, x[c])).chain([bias]))
    }

    /// One unit; nothing where a program may overflow.
    pub fn unit(&self, arithmetic: Arithmetic, token: &Attended, j: usize) -> Option<Unit> {
        self.unit_with(arithmetic, token, j, None)
    }

    /// The same, with what is known of the token before attention.
    fn unit_with(&self, arithmetic: Arithmetic, token: &Attended, j: usize, points: Option<&Points>) -> Option<Unit> {
        let part = self.part.as_ref()?;
        let bias = Term::addend(Ball::exact(part.b1.at(j)));
        let shared = self.gains[j].iter().zip(&token.shared).map(|(g, s)| g.times(*s)).fold(Ball::ZERO, Ball::plus);
        let term = |(c, w): (usize, Dyadic)| Term::weighted_apart(w, token.own[c], token.whole[c]);
        let terms = || part.w1.weights(j).map(term);
        let written = || self.written.iter().map(|c| (*c, part.w1.get(j, *c))).filter(|(_, w)| !w.is_zero()).map(term);
        let known = points.filter(|_| token.fixed.is_none());
        let sum = match known.map(|points| points.and(arithmetic, &written().collect::<Vec<_>>())) {
            Some(Together::Found(sum)) => sum,
            _ => part.w1.sum(arithmetic, j, (token.fixed.as_ref(), shared), terms, &[bias]),
        };
        let Sum { exact, rounding } = sum?;
        let before = exact.plus(shared).plus(rounding);
        Some(Unit { index: j, rounding, before, after: before.relu() })
    }

    /// The token plus what its units add; `units` has all that are not certainly off.
    pub fn output(&self, arithmetic: Arithmetic, token: &Attended, units: Vec<Unit>) -> Option<Output> {
        let Some(part) = &self.part else {
            let rounding = vec![Ball::ZERO; token.whole.len()];
            return Some(Output { whole: token.whole.clone(), rounding, units });
        };
        let on: Vec<&Unit> = units.iter().filter(|unit| !unit.after.is_zero()).collect();
        let fixed = Fixed::new(arithmetic, on.iter().map(|unit| (unit.index, unit.after, unit.after)));
        let mut products: Vec<Vec<Term>> = vec![vec![]; token.whole.len()];
        for unit in &on {
            self.writes(unit.index).for_each(|(c, w)| products[c].push(Term::weighted(w, unit.after)));
        }
        let coordinate = |c: usize| {
            if self.passes[c] {
                return Some(Sum { exact: token.whole[c], rounding: Ball::ZERO });
            }
            let others = [Term::addend(token.whole[c]), Term::addend(Ball::exact(part.b2.at(c)))];
            let products = || products[c].iter().copied();
            part.w2.sum(arithmetic, c, (fixed.as_ref(), Ball::ZERO), products, &others)
        };
        let sums = (0..token.whole.len()).map(coordinate).collect::<Option<Vec<Sum>>>()?;
        let whole = sums.iter().map(|sum| sum.computed()).collect();
        Some(Output { whole, rounding: sums.iter().map(|sum| sum.rounding).collect(), units })
    }

    /// What readings of a token's output need: its units without the coordinates that are not known exactly.
    pub fn prepare<'a>(&'a self, token: &'a Attended, output: &'a Output) -> Prepared<'a> {
        let inexact: Vec<usize> = (0..token.own.len()).filter(|c| token.own[*c].r > 0).collect();
        let mut units = vec![];
        if let Some(part) = &self.part {
            for unit in output.units.iter().filter(|unit| !unit.after.is_zero()) {
                if !unit.before.is_not_negative() {
                    units.push((unit.index, unit.after, None));
                    continue;
                }
                let exact = part.w1.weights(unit.index).filter(|(c, _)| token.own[*c].r == 0);
                let bias = [Term::addend(Ball::exact(part.b1.at(unit.index))), Term::addend(unit.rounding)];
                let base = real_sum(exact.map(|(c, w)| Term::weighted(w, token.own[c])).chain(bias));
                units.push((unit.index, base, Some(inexact.iter().map(|c| part.w1.get(unit.index, *c)).collect())));
            }
        }
        Prepared { block: self, token, output, inexact, units }
    }
}

/// A token's output, with its units that may be on: for those that are certainly on, what they give but for the coordinates of the token
/// that are not known exactly, and the weights of these.
pub struct Prepared<'a> {
    block: &'a Block,
    token: &'a Attended,
    output: &'a Output,
    inexact: Vec<usize>,
    units: Vec<(usize, Ball, Option<Vec<Dyadic>>)>,
}

impl Prepared<'_> {
    /// sum of a(c) y(c) over the coordinates y that a program has computed, with what its errors share kept together.
    ///
    /// **Rule 5.** With H the token, W1 H + b1 + e before the ReLU of the units that are certainly on, and y = H + W2 relu + b2 + f,
    /// a.y = (a + sum over units on of A(j) W1(j)) . H + sum over units on of A(j) (b1(j) + e(j)) + sum over other units of
    /// A(j) relu(j) + a . (b2 + f), A(j) = a . W2(j).
    pub fn reading(&self, a: &[(usize, Ball)]) -> Ball {
        let Self { block, token, output, .. } = *self;
        let mut terms = Vec::with_capacity(self.units.len() + 2 * a.len());
        // What multiplies each coordinate that is not known exactly, and each shared error.
        let mut along: Vec<Vec<Term>> = vec![vec![]; self.inexact.len()];
        let mut shared: Vec<Vec<Term>> = vec![vec![]; block.columns.len()];
        for &(c, a) in a {
            match self.inexact.binary_search(&c) {
                Ok(at) => along[at].push(Term::addend(a)),
                Err(_) => terms.push(Term::product(a, token.own[c])),
            }
            for (shared, column) in shared.iter_mut().zip(&block.columns) {
                let own = column.iter().filter(|(at, _)| *at == c);
                shared.extend(own.map(|(_, w)| Term::product(a, *w)));
            }
        }
        if let Some(part) = &block.part {
            let last = |&(c, a): &(usize, Ball)| Term::product(a, Ball::exact(part.b2.at(c)).plus(output.rounding[c]));
            terms.extend(a.iter().map(last));
            for (j, given, weights) in &self.units {
                let read = |(c, w): (usize, Dyadic)| {
                    a.binary_search_by_key(&c, |(c, _)| *c).ok().map(|at| Term::weighted(w, a[at].1))
                };
                let gain = match a {
                    [(c, one)] if *one == Ball::power(0) => Ball::exact(part.w2.get(*c, *j)),
                    _ => real_sum(block.writes(*j).filter_map(read)),
                };
                if gain.is_zero() {
                    continue;
                }
                terms.push(Term::product(gain, *given));
                for (along, w) in along.iter_mut().zip(weights.iter().flatten()) {
                    along.push(Term::weighted(*w, gain));
                }
                for (shared, g) in shared.iter_mut().zip(&block.gains[*j]).filter(|_| weights.is_some()) {
                    shared.push(Term::product(gain, *g));
                }
            }
        }
        let of = |terms: Vec<Term>| real_sum(terms.into_iter());
        terms.extend(along.into_iter().zip(&self.inexact).map(|(a, c)| Term::product(of(a), token.own[*c])));
        terms.extend(shared.into_iter().zip(&token.shared).map(|(g, s)| Term::product(of(g), *s)));
        of(terms)
    }

    /// The output with the coordinates that some columns name bounded by themselves, where that is sharper.
    pub fn sharpened(&self, columns: impl Iterator<Item = usize>) -> Vec<Ball> {
        let mut y = self.output.whole.clone();
        for c in columns {
            let own = self.reading(&[(c, Ball::power(0))]);
            if own.spread().size().is_below(y[c].spread().size()) {
                y[c] = own;
            }
        }
        y
    }
}
