//! A whole model in real arithmetic (eqs. 2, 3 and 5): intervals with more and more bits until a token is decided.
//!
//! Numbers of files are dyadic, so that everything but softmax, division by counts and fractions p/q is exact as soon as there
//! are bits enough: ties of labels and of hardmax are then decided, not guessed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::successors;
use std::ptr::from_ref;

use super::real::{Rational, Real, Scaled};
use crate::model::{Attention, FeedForward, Mask, Model, Numbers};
use crate::number::Dyadic;
use crate::rules::attention::Seen;

/// What reading the fractions of a model may cost (see [`Rational::parse`]): some seconds.
const READING: u64 = 1 << 28;
/// Models of more layers are not run.
const MOST_LAYERS: usize = 1 << 14;
/// The first number of bits, and how many times more are tried next.
const FIRST: usize = 128;
const MORE: usize = 4;
/// Pairs of tokens times the square of the bits, beyond which a sequence is not decided: some seconds.
const WORK: usize = 1 << 36;

/// A token of a sequence, before positions are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A row of the embedding.
    Row(usize),
    /// A vector.
    Vector(&'a [Dyadic]),
}

/// What is known of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is as wanted, certainly.
    Right,
    /// It is not, certainly: the label that wins over the wanted one, or the coordinate that is too far.
    Wrong(usize),
    /// Neither was shown.
    Unknown,
}

/// What is asked of a token.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// This label has the greatest score, and no lower label an equal one.
    Label(usize),
    /// Every coordinate of the output is at most this far from these numbers.
    Near(&'a [Dyadic], &'a Rational),
}

/// A token: an interval per coordinate.
pub type Vector = Vec<Real>;

/// The weights of scores, up to a common factor. Lemma (hardmax): a token whose score is certainly below another's has no weight;
/// where the others' scores are points, they are equal; otherwise each may have weight or not. Lemma (softmax): a shift common to all
/// scores does not matter.
fn weights(hard: bool, scores: &[Real], bits: usize) -> Vector {
    if !hard {
        let top = scores.iter().filter_map(|score| score.ends().map(|(lo, _)| lo)).max();
        let shift = Real::point(top.unwrap_or(&Scaled::ZERO).clone());
        return scores.iter().map(|score| score.minus(&shift, bits).exp(bits)).collect();
    }
    let best = scores.iter().max_by_key(|score| score.ends().map(|(lo, _)| lo));
    let beaten = |score: &Real| best.is_some_and(|best| score.compare(best) == Some(Ordering::Less));
    let may: Vec<&Real> = scores.iter().filter(|score| !beaten(score)).collect();
    let known = may.len() == 1 || may.iter().all(|score| score.only().is_some());
    let weight = if known { Real::whole(1) } else { Real::ZERO.hull(&Real::whole(1)) };
    scores.iter().map(|score| if beaten(score) { Real::ZERO } else { weight.clone() }).collect()
}

/// The mean of values with weights. Lemma: it lies between those with weight, whatever their weights are.
fn mean(weights: &[Real], values: &[&Real], bits: usize) -> Real {
    let (mut above, mut below, mut all) = (Real::ZERO, Real::ZERO, None);
    for (weight, value) in weights.iter().zip(values).filter(|(weight, _)| **weight != Real::ZERO) {
        above = above.plus(&weight.times(value, bits), bits);
        below = below.plus(weight, bits);
        all = Some(all.map_or((*value).clone(), |all: Real| all.hull(value)));
    }
    above.over(&below, bits).meet(&all.unwrap_or(Real::UNBOUNDED))
}

/// A model that can be run in real arithmetic.
pub struct Exact<'a> {
    model: &'a Model,
    /// By where they stand in the model.
    fractions: BTreeMap<usize, Vec<Rational>>,
}

/// All numbers of a model, by name (docs/format.md), and how many there are; nothing where there must be more or less.
pub(crate) fn all(model: &Model) -> Option<Vec<(String, &Numbers, usize)>> {
    let (d, mut all) = (model.d, Vec::new());
    let rows = |numbers: &Numbers| Some(numbers.len()).filter(|count| d > 0 && count.is_multiple_of(d));
    for (name, numbers) in [("embedding.weight", &model.embedding), ("positions.weight", &model.positions)] {
        if let Some(numbers) = numbers {
            all.push((name.to_owned(), numbers, rows(numbers)?));
        }
    }
    let mut add = |name: &str, tensors: [(&str, _, usize); 4]| {
        all.extend(tensors.map(|(which, numbers, size)| (format!("{name}.{which}"), numbers, size)));
    };
    let mut parts = vec![("pre_feed_forward".to_owned(), &model.pre_feed_forward)];
    for (i, layer) in model.layers.iter().enumerate() {
        parts.push((format!("layers.{i}.feed_forward"), &layer.feed_forward));
        if let Some(Attention { heads, size, w_q, w_k, w_v, w_o, .. }) = &layer.attention {
            let size = heads.checked_mul(*size)?.checked_mul(d)?;
            let tensors = [("w_q", w_q, size), ("w_k", w_k, size), ("w_v", w_v, size), ("w_o", w_o, size)];
            add(&format!("layers.{i}.attention"), tensors);
        }
    }
    for (name, part) in parts {
        if let Some(FeedForward { hidden, w1, b1, w2, b2 }) = part {
            let size = hidden.checked_mul(d)?;
            add(&name, [("w1", w1, size), ("b1", b1, *hidden), ("w2", w2, size), ("b2", b2, d)]);
        }
    }
    if let Some(head) = &model.head {
        let size = rows(&head.weight)?;
        all.push(("head.weight".to_owned(), &head.weight, size));
        all.push(("head.bias".to_owned(), &head.bias, size / d));
    }
    all.iter().all(|(_, numbers, size)| numbers.len() == *size).then_some(all)
}

impl<'a> Exact<'a> {
    /// Takes a model; nothing where its shapes do not fit together, or its fractions take too long to read.
    pub fn new(model: &'a Model) -> Option<Self> {
        (model.layers.len() <= MOST_LAYERS).then_some(())?;
        let (mut budget, mut exact) = (READING, Self { model, fractions: BTreeMap::new() });
        for (_, numbers, _) in all(model)? {
            if let Numbers::Exact(_, texts) = numbers {
                let read = texts.iter().map(|text| Rational::parse(text, &mut budget)).collect::<Option<_>>()?;
                exact.fractions.insert(from_ref(numbers).addr(), read);
            }
        }
        Some(exact)
    }

    fn get(&self, numbers: &Numbers, i: usize, bits: usize) -> Real {
        match numbers {
            Numbers::Floats(tensor) => Real::point(tensor.get(i).into()),
            Numbers::Exact(..) => self.fractions[&from_ref(numbers).addr()][i].enclosure(bits),
        }
    }

    /// Number i minus number j: zero where they are equal.
    fn difference(&self, numbers: &Numbers, i: usize, j: usize, bits: usize) -> Real {
        match self.fractions.get(&from_ref(numbers).addr()) {
            Some(all) => all[i].minus(&all[j]).enclosure(bits),
            None => self.get(numbers, i, bits).minus(&self.get(numbers, j, bits), bits),
        }
    }

    /// bias + the sum over c of `x_c` times number `first + c`.
    fn dot(&self, w: &Numbers, first: usize, x: &[Real], bias: Real, bits: usize) -> Real {
        let fractions = self.fractions.get(&from_ref(w).addr());
        let zero = |i: usize| match (w, fractions) {
            (Numbers::Floats(tensor), _) => tensor.get(i).is_zero(),
            (_, fractions) => fractions.is_some_and(|all| all[i].is_zero()),
        };
        let add = |sum: Real, (c, x): (usize, &Real)| sum.plus(&x.times(&self.get(w, first + c, bits), bits), bits);
        x.iter().enumerate().filter(|(c, x)| !zero(first + c) && **x != Real::ZERO).fold(bias, add)
    }

    /// Decides tokens of a sequence (their positions are counted without the start token), with up to so many bits.
    pub fn decide(&self, tokens: &[Token], asked: &[(usize, Wanted)], most: usize) -> Vec<Decision> {
        let mut found = vec![Decision::Unknown; asked.len()];
        let pairs = (tokens.len() + 1).saturating_mul(tokens.len() + 1);
        let most = most.min((WORK / pairs).isqrt());
        let tries = successors(Some(FIRST.min(most)), |bits| bits.checked_mul(MORE));
        for bits in tries.take_while(|bits| (1..=most).contains(bits)) {
            let open: Vec<usize> = (0..asked.len()).filter(|&i| found[i] == Decision::Unknown).collect();
            let positions: Vec<usize> = open.iter().map(|&i| asked[i].0).collect();
            let outputs = if open.is_empty() { None } else { self.outputs(tokens, &positions, bits) };
            for (i, output) in open.iter().zip(outputs.into_iter().flatten()) {
                let decision = match asked[*i].1 {
                    Wanted::Label(label) => self.label(&output, label, bits),
                    Wanted::Near(target, tolerance) => self.near(&output, target, tolerance, bits),
                };
                found[*i] = decision.unwrap_or(Decision::Unknown);
            }
        }
        found
    }

    /// Tokens after the last layer, before the head; nothing where the sequence is not one of this model.
    pub fn outputs(&self, tokens: &[Token], positions: &[usize], bits: usize) -> Option<Vec<Vector>> {
        self.run((tokens, positions), (self.model.layers.len(), false), bits)
    }

    /// A token after the attention of a layer, the token itself included (eq. 2); nothing where the layer has none.
    pub fn attended(&self, layer: usize, tokens: &[Token], position: usize, bits: usize) -> Option<Vector> {
        self.model.layers.get(layer)?.attention.as_ref()?;
        self.run((tokens, &[position]), (layer + 1, true), bits)?.pop()
    }

    /// Tokens behind some layers, the last one perhaps without its feed-forward part.
    fn run(&self, at: (&[Token], &[usize]), until: (usize, bool), bits: usize) -> Option<Vec<Vector>> {
        let ((count, cut), mut tokens) = (until, self.input(at.0, bits)?);
        let at: Vec<usize> = at.1.iter().map(|at| at + usize::from(self.model.start.is_some())).collect();
        at.iter().all(|at| *at < tokens.len()).then_some(())?;
        let layers = &self.model.layers[..count];
        // From the last attention on, only the asked positions matter.
        let last = layers.iter().rposition(|layer| layer.attention.is_some()).unwrap_or(0);
        for (i, layer) in layers.iter().enumerate() {
            let asked: Vec<usize> = if i < last { (0..tokens.len()).collect() } else { at.clone() };
            let mut after: Vec<Vector> = asked.iter().map(|&i| tokens[i].clone()).collect();
            if let Some(attention) = &layer.attention {
                after = self.attend(attention, &tokens, &asked, bits)?;
            }
            if let Some(part) = layer.feed_forward.as_ref().filter(|_| !(i + 1 == count && cut)) {
                after = after.iter().map(|h| self.feed_forward(part, h, bits)).collect();
            }
            for (i, token) in asked.into_iter().zip(after) {
                tokens[i] = token;
            }
        }
        Some(at.iter().map(|&at| tokens[at].clone()).collect())
    }

    /// All tokens, the start token first, after positions and the block before the first layer.
    fn input(&self, tokens: &[Token], bits: usize) -> Option<Vec<Vector>> {
        let d = self.model.d;
        let row = |numbers: &Numbers, row: usize| {
            let end = row.checked_add(1)?.checked_mul(d).filter(|end| *end <= numbers.len())?;
            Some((end - d..end).map(|i| self.get(numbers, i, bits)).collect::<Vector>())
        };
        let mut all = Vec::new();
        for (place, token) in self.model.start.map(Token::Row).iter().chain(tokens).enumerate() {
            let mut x = match token {
                Token::Row(number) => row(self.model.embedding.as_ref()?, *number)?,
                Token::Vector(x) => x.iter().map(|x| Real::point((*x).into())).collect(),
            };
            if let Some(positions) = &self.model.positions {
                let p = row(positions, place)?;
                x = x.iter().zip(&p).map(|(x, p)| x.plus(p, bits)).collect();
            }
            let part = self.model.pre_feed_forward.as_ref().filter(|_| x.len() == d);
            all.push(part.map_or(x.clone(), |part| self.feed_forward(part, &x, bits)));
        }
        all.iter().all(|x| x.len() == d).then_some(all)
    }

    /// H + W2 relu(W1 H + b1) + b2 (eq. 3).
    fn feed_forward(&self, part: &FeedForward, h: &[Real], bits: usize) -> Vector {
        let (d, q) = (self.model.d, part.hidden);
        let unit = |j: usize| self.dot(&part.w1, j * d, h, self.get(&part.b1, j, bits), bits).relu();
        let units: Vector = (0..q).map(unit).collect();
        let add = |(c, h): (usize, &Real)| {
            let bias = h.plus(&self.get(&part.b2, c, bits), bits);
            self.dot(&part.w2, c * q, &units, bias, bits)
        };
        h.iter().enumerate().map(add).collect()
    }

    /// X + the sum over heads of W_O times what the head makes of the visible tokens (eqs. 2 and 5), for the tokens that are
    /// asked for.
    pub fn attend(&self, layer: &Attention, tokens: &[Vector], asked: &[usize], bits: usize) -> Option<Vec<Vector>> {
        let (d, n, size, start) = (self.model.d, tokens.len(), layer.size, self.model.start.is_some());
        let mut after: Vec<Vector> = asked.iter().map(|&i| tokens[i].clone()).collect();
        Some(()).filter(|()| !matches!(layer.mask, Mask::Matrix(most, _) if n - usize::from(start) > most))?;
        for head in 0..layer.heads {
            let project = |w: &Numbers, x: &Vector| -> Vector {
                (0..size).map(|s| self.dot(w, (head * size + s) * d, x, Real::ZERO, bits)).collect()
            };
            let keys: Vec<Vector> = tokens.iter().map(|x| project(&layer.w_k, x)).collect();
            let values: Vec<Vector> = tokens.iter().map(|x| project(&layer.w_v, x)).collect();
            for (&i, out) in asked.iter().zip(&mut after) {
                let query = project(&layer.w_q, &tokens[i]);
                let visible: Vec<usize> = Seen::new(&layer.mask, i, n, start).iter().collect();
                let score = |j: &usize| Real::sum(keys[*j].iter().zip(&query).map(|(k, q)| k.times(q, bits)), bits);
                let weights = weights(layer.hard, &visible.iter().map(score).collect::<Vector>(), bits);
                let value = |s: usize| visible.iter().map(|&j| &values[j][s]).collect::<Vec<_>>();
                let found: Vector = (0..size).map(|s| mean(&weights, &value(s), bits)).collect();
                for (c, out) in out.iter_mut().enumerate() {
                    *out = self.dot(&layer.w_o, (head * d + c) * size, &found, out.clone(), bits);
                }
            }
        }
        Some(after)
    }

    /// Margins are formed from the differences of rows: equal rows tie exactly.
    fn label(&self, output: &[Real], label: usize, bits: usize) -> Option<Decision> {
        let head = self.model.head.as_ref().filter(|head| label < head.bias.len())?;
        let right = |other: usize| {
            let mut margin = self.difference(&head.bias, label, other, bits);
            for (c, x) in output.iter().enumerate() {
                let by = self.difference(&head.weight, label * output.len() + c, other * output.len() + c, bits);
                margin = margin.plus(&x.times(&by, bits), bits);
            }
            margin.compare(&Real::ZERO).map(|order| order.then(other.cmp(&label)).is_ge())
        };
        Some(decision((0..head.bias.len()).map(right)))
    }

    fn near(&self, output: &[Real], target: &[Dyadic], tolerance: &Rational, bits: usize) -> Option<Decision> {
        let mut rows = output.to_vec();
        if let Some(head) = &self.model.head {
            let bias = |r: usize| self.get(&head.bias, r, bits);
            let row = |r: usize| self.dot(&head.weight, r * output.len(), output, bias(r), bits);
            rows = (0..head.bias.len()).map(row).collect();
        }
        let right = |(found, wanted): (&Real, &Dyadic)| {
            let apart = found.minus(&Real::point((*wanted).into()), bits).abs();
            apart.compare(&tolerance.enclosure(bits)).map(Ordering::is_le)
        };
        (rows.len() == target.len()).then(|| decision(rows.iter().zip(target).map(right)))
    }
}

/// What is known of a token, from what is known of its rows.
fn decision(rows: impl Iterator<Item = Option<bool>>) -> Decision {
    let rows: Vec<Option<bool>> = rows.collect();
    match rows.iter().position(|row| *row == Some(false)) {
        Some(row) => Decision::Wrong(row),
        None if rows.contains(&None) => Decision::Unknown,
        None => Decision::Right,
    }
}

/// The Euclidean norm of a vector against 2^log2, where that is certain: for contextual mappings. Few bits of the power tell mostly.
pub fn compare_norm(vector: &[Real], log2: &Rational, bits: usize) -> Option<Ordering> {
    let square = Real::sum(vector.iter().map(|x| x.power(2, bits)), bits);
    let power = |bits: usize| log2.enclosure(bits + 64).times(&Real::whole(2), bits + 64).exp2(bits);
    [FIRST.min(bits), bits].into_iter().find_map(|bits| square.compare(&power(bits)))
}

#[cfg(test)]
pub(crate) mod tests;
