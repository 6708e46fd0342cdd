//! A whole model in real arithmetic (eqs. 2, 3 and 5): intervals with more and more bits until a token is decided.
//!
//! Numbers of files are dyadic, so that everything but softmax, division by counts and fractions p/q is exact as soon as there
//! are bits enough: ties of labels and of hardmax are then decided, not guessed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ptr::from_ref;

use super::real::{Rational, Real, Scaled};
use crate::model::{Attention, FeedForward, Mask, Model, Numbers};
use crate::number::Dyadic;

/// What reading the fractions of a model may cost (see [`Rational::parse`]): some seconds.
const READING: u64 = 1 << 28;
/// The first number of bits, and how many times more are tried next.
const FIRST: usize = 128;
const MORE: usize = 4;

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

/// Hidden units of the last feed-forward part that can be on, where the caller has proved it of all others; or none: all can.
pub type Units<'a> = Option<&'a [usize]>;

/// A token: an interval per coordinate.
pub type Vector = Vec<Real>;

fn hull(values: &[Real], which: &[usize]) -> Real {
    which.iter().fold(values[which[0]].clone(), |hull, &j| hull.hull(&values[j]))
}

/// The mean over the tokens with the greatest score. Lemma: a token whose score is certainly below another's has no weight; where
/// the others' scores are points, they are equal; otherwise the mean over some of them lies between their values.
fn hardmax(scores: &[Real], values: &[Vector], bits: usize) -> Vector {
    let beaten = |j: &usize| scores.iter().any(|other| scores[*j].compare(other) == Some(Ordering::Less));
    let may: Vec<usize> = (0..scores.len()).filter(|j| !beaten(j)).collect();
    if may.len() > 1 && may.iter().any(|&j| scores[j].only().is_none()) {
        return values.iter().map(|values| hull(values, &may)).collect();
    }
    let sum = |values: &Vector| may.iter().fold(Real::ZERO, |sum, &j| sum.plus(&values[j], bits));
    values.iter().map(|values| sum(values).over(&Real::whole(may.len() as i64), bits)).collect()
}

/// The mean with weights e^score over their sum. Lemma: a shift common to all scores does not matter, and a mean lies between
/// the least and the greatest value, whatever the weights are.
fn softmax(scores: &[Real], values: &[Vector], bits: usize) -> Vector {
    let top = scores.iter().filter_map(|score| score.ends().map(|(lo, _)| lo)).max();
    let shift = Real::point(top.unwrap_or(&Scaled::ZERO).clone());
    let weights: Vector = scores.iter().map(|score| score.minus(&shift, bits).exp(bits)).collect();
    let below = weights.iter().fold(Real::ZERO, |sum, weight| sum.plus(weight, bits));
    let all: Vec<usize> = (0..scores.len()).collect();
    let mean = |values: &Vector| {
        let products = weights.iter().zip(values).map(|(weight, value)| weight.times(value, bits));
        let above = products.fold(Real::ZERO, |sum, product| sum.plus(&product, bits));
        above.over(&below, bits).meet(&hull(values, &all))
    };
    values.iter().map(mean).collect()
}

/// A model that can be run in real arithmetic.
pub struct Exact<'a> {
    model: &'a Model,
    /// By where they stand in the model.
    fractions: BTreeMap<usize, Vec<Rational>>,
}

fn count(numbers: &Numbers) -> usize {
    match numbers {
        Numbers::Floats(tensor) => tensor.len(),
        Numbers::Exact(_, texts) => texts.len(),
    }
}

/// All numbers of a model, by name (docs/format.md), and how many there must be.
pub(super) fn all(model: &Model) -> Option<Vec<(String, &Numbers, usize)>> {
    let (d, mut all) = (model.d, Vec::new());
    let rows = |numbers: &Numbers| Some(count(numbers)).filter(|count| d > 0 && count.is_multiple_of(d));
    for (name, numbers) in [("embedding.weight", &model.embedding), ("positions.weight", &model.positions)] {
        if let Some(numbers) = numbers {
            all.push((name.to_owned(), numbers, rows(numbers)?));
        }
    }
    let layers = || model.layers.iter().enumerate();
    let parts = layers().map(|(i, layer)| (format!("layers.{i}.feed_forward"), &layer.feed_forward));
    for (name, part) in parts.chain([("pre_feed_forward".to_owned(), &model.pre_feed_forward)]) {
        let Some(part) = part else { continue };
        let (q, size) = (part.hidden, part.hidden.checked_mul(d)?);
        let tensors = [("w1", &part.w1, size), ("b1", &part.b1, q), ("w2", &part.w2, size), ("b2", &part.b2, d)];
        all.extend(tensors.map(|(which, numbers, size)| (format!("{name}.{which}"), numbers, size)));
    }
    for (i, layer) in layers() {
        let Some(part) = &layer.attention else { continue };
        let size = part.heads.checked_mul(part.size)?.checked_mul(d)?;
        let tensors = [("w_q", &part.w_q), ("w_k", &part.w_k), ("w_v", &part.w_v), ("w_o", &part.w_o)];
        all.extend(tensors.map(|(which, numbers)| (format!("layers.{i}.attention.{which}"), numbers, size)));
    }
    if let Some(head) = &model.head {
        let size = rows(&head.weight)?;
        all.extend(
            [("weight", &head.weight, size), ("bias", &head.bias, size / d)]
                .map(|(which, numbers, size)| (format!("head.{which}"), numbers, size)),
        );
    }
    Some(all)
}

/// Whether token i sees token j (the start token is -1); nothing where the mask does not say.
fn sees(mask: &Mask, i: i64, j: i64) -> Option<bool> {
    let long = |k: usize| i64::try_from(k).unwrap_or(i64::MAX);
    Some(match mask {
        _ if i == j || j < 0 => true,
        Mask::None => true,
        Mask::Causal => j <= i,
        Mask::Prefix(k) => j < long(*k) || j <= i,
        Mask::Band(before, after) => i.saturating_sub(long(*before)) <= j && j <= i.saturating_add(long(*after)),
        // The matrix has no row for the start token: it sees no other.
        Mask::Matrix(..) if i < 0 => false,
        Mask::Matrix(n, bytes) => {
            let (i, j) = (i as usize, j as usize);
            *bytes.get(i.checked_mul(*n)?.checked_add(j)?).filter(|_| j < *n)? == 1
        }
    })
}

impl<'a> Exact<'a> {
    /// Takes a model; nothing where its shapes do not fit together, or its fractions take too long to read.
    pub fn new(model: &'a Model) -> Option<Self> {
        let (mut budget, mut exact) = (READING, Self { model, fractions: BTreeMap::new() });
        for (_, numbers, len) in all(model)? {
            if let Numbers::Exact(_, texts) = numbers {
                let read = texts.iter().map(|text| Rational::parse(text, &mut budget)).collect::<Option<_>>()?;
                exact.fractions.insert(from_ref(numbers).addr(), read);
            }
            if count(numbers) != len {
                return None;
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
        match numbers {
            Numbers::Exact(..) => {
                let all = &self.fractions[&from_ref(numbers).addr()];
                all[i].minus(&all[j]).enclosure(bits)
            }
            Numbers::Floats(_) => self.get(numbers, i, bits).minus(&self.get(numbers, j, bits), bits),
        }
    }

    /// bias + the sum over c of `x_c` times number `first + c`.
    fn dot(&self, w: &Numbers, first: usize, x: &[Real], bias: Real, bits: usize) -> Real {
        let add = |sum: Real, (c, x): (usize, &Real)| sum.plus(&x.times(&self.get(w, first + c, bits), bits), bits);
        x.iter().enumerate().fold(bias, add)
    }

    /// Decides a token of a sequence (counted without the start token), with up to `most_bits` bits.
    pub fn decide(
        &self,
        tokens: &[Token],
        position: usize,
        wanted: Wanted,
        most_bits: usize,
        units: Units,
    ) -> Decision {
        let mut bits = FIRST.min(most_bits);
        while bits > 0 && bits <= most_bits {
            let found = self.output(tokens, position, bits, units);
            let decision = found.and_then(|output| match wanted {
                Wanted::Label(label) => self.label(&output, label, bits),
                Wanted::Near(target, tolerance) => self.near(&output, target, tolerance, bits),
            });
            match decision {
                Some(Decision::Unknown) => bits = bits.saturating_mul(MORE),
                Some(decision) => return decision,
                None => return Decision::Unknown,
            }
        }
        Decision::Unknown
    }

    /// A token after the last layer, before the head; nothing where the sequence is not one of this model.
    pub fn output(&self, tokens: &[Token], position: usize, bits: usize, units: Units) -> Option<Vector> {
        self.run((tokens, position), (self.model.layers.len(), false), bits, units)
    }

    /// A token after the attention of a layer, the token itself included (eq. 2); nothing where the layer has none.
    pub fn attended(&self, layer: usize, tokens: &[Token], position: usize, bits: usize) -> Option<Vector> {
        self.model.layers.get(layer)?.attention.as_ref()?;
        self.run((tokens, position), (layer + 1, true), bits, None)
    }

    /// Runs some layers, the last one perhaps without its feed-forward part.
    fn run(&self, at: (&[Token], usize), until: (usize, bool), bits: usize, units: Units) -> Option<Vector> {
        let ((count, cut), mut tokens) = (until, self.input(at.0, bits)?);
        let at = at.1.checked_add(usize::from(self.model.start.is_some())).filter(|at| *at < tokens.len())?;
        let layers = &self.model.layers[..count];
        // From the last attention on, only the asked position matters.
        let last = layers.iter().rposition(|layer| layer.attention.is_some()).unwrap_or(0);
        for (i, layer) in layers.iter().enumerate() {
            let asked: Vec<usize> = if i < last { (0..tokens.len()).collect() } else { vec![at] };
            let mut after: Vec<Vector> = asked.iter().map(|&i| tokens[i].clone()).collect();
            if let Some(attention) = &layer.attention {
                after = self.attend(attention, &tokens, &asked, bits)?;
            }
            let end = i + 1 == count;
            if let Some(part) = layer.feed_forward.as_ref().filter(|_| !(end && cut)) {
                let units = units.filter(|_| end);
                after = after.iter().map(|h| self.feed_forward(part, h, units, bits)).collect::<Option<_>>()?;
            }
            for (i, token) in asked.into_iter().zip(after) {
                tokens[i] = token;
            }
        }
        Some(tokens.swap_remove(at))
    }

    /// All tokens, the start token first, after positions and the block before the first layer.
    fn input(&self, tokens: &[Token], bits: usize) -> Option<Vec<Vector>> {
        let d = self.model.d;
        let row = |numbers: &Numbers, row: usize| {
            let end = row.checked_add(1)?.checked_mul(d).filter(|end| *end <= count(numbers))?;
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
            all.push(if let Some(part) = part { self.feed_forward(part, &x, None, bits)? } else { x });
        }
        all.iter().all(|x| x.len() == d).then_some(all)
    }

    /// H + W2 relu(W1 H + b1) + b2 (eq. 3).
    fn feed_forward(&self, part: &FeedForward, h: &[Real], units: Units, bits: usize) -> Option<Vector> {
        let (d, q) = (self.model.d, part.hidden);
        let mut out: Vector = h.iter().enumerate().map(|(c, h)| h.plus(&self.get(&part.b2, c, bits), bits)).collect();
        let every: Vec<usize> = if units.is_none() { (0..q).collect() } else { Vec::new() };
        for &j in units.unwrap_or(&every) {
            if j >= q {
                return None;
            }
            let unit = self.dot(&part.w1, j * d, h, self.get(&part.b1, j, bits), bits).relu();
            for (c, out) in out.iter_mut().enumerate().filter(|_| unit != Real::ZERO) {
                *out = out.plus(&unit.times(&self.get(&part.w2, c * q + j, bits), bits), bits);
            }
        }
        Some(out)
    }

    /// X + the sum over heads of W_O times what the head makes of the visible tokens (eqs. 2 and 5), for the tokens that are
    /// asked for.
    pub fn attend(&self, layer: &Attention, tokens: &[Vector], asked: &[usize], bits: usize) -> Option<Vec<Vector>> {
        let (d, size, start) = (self.model.d, layer.size, i64::from(self.model.start.is_some()));
        let mut after: Vec<Vector> = asked.iter().map(|&i| tokens[i].clone()).collect();
        for head in 0..layer.heads {
            let project = |w: &Numbers, x: &Vector| -> Vector {
                (0..size).map(|s| self.dot(w, (head * size + s) * d, x, Real::ZERO, bits)).collect()
            };
            let keys: Vec<Vector> = tokens.iter().map(|x| project(&layer.w_k, x)).collect();
            let values: Vec<Vector> = tokens.iter().map(|x| project(&layer.w_v, x)).collect();
            for (&i, out) in asked.iter().zip(&mut after) {
                let query = project(&layer.w_q, &tokens[i]);
                let mut visible = Vec::new();
                for j in 0..tokens.len() {
                    if sees(&layer.mask, i as i64 - start, j as i64 - start)? {
                        visible.push(j);
                    }
                }
                let score = |j: &usize| {
                    let products = keys[*j].iter().zip(&query).map(|(k, q)| k.times(q, bits));
                    products.fold(Real::ZERO, |sum, product| sum.plus(&product, bits))
                };
                let scores: Vector = visible.iter().map(score).collect();
                let of = |s: usize| visible.iter().map(|&j| values[j][s].clone()).collect();
                let seen: Vec<Vector> = (0..size).map(of).collect();
                let found = if layer.hard { hardmax } else { softmax }(&scores, &seen, bits);
                for (c, out) in out.iter_mut().enumerate() {
                    *out = self.dot(&layer.w_o, (head * d + c) * size, &found, out.clone(), bits);
                }
            }
        }
        Some(after)
    }

    /// Margins are formed from the differences of rows: equal rows tie exactly.
    fn label(&self, output: &[Real], label: usize, bits: usize) -> Option<Decision> {
        let head = self.model.head.as_ref()?;
        let (rows, d) = (count(&head.bias), self.model.d);
        let mut decision = (label < rows).then_some(Decision::Right)?;
        for other in (0..rows).filter(|&other| other != label) {
            let mut margin = self.difference(&head.bias, label, other, bits);
            for (c, x) in output.iter().enumerate() {
                let by = self.difference(&head.weight, label * d + c, other * d + c, bits);
                margin = margin.plus(&x.times(&by, bits), bits);
            }
            match margin.compare(&Real::ZERO) {
                Some(Ordering::Less) => return Some(Decision::Wrong(other)),
                Some(Ordering::Equal) if other < label => return Some(Decision::Wrong(other)),
                Some(_) => (),
                None => decision = Decision::Unknown,
            }
        }
        Some(decision)
    }

    fn near(&self, output: &[Real], target: &[Dyadic], tolerance: &Rational, bits: usize) -> Option<Decision> {
        let mut rows = output.to_vec();
        if let Some(head) = &self.model.head {
            let bias = |r: usize| self.get(&head.bias, r, bits);
            let row = |r: usize| self.dot(&head.weight, r * self.model.d, output, bias(r), bits);
            rows = (0..count(&head.bias)).map(row).collect();
        }
        let mut decision = (rows.len() == target.len()).then_some(Decision::Right)?;
        for (c, (found, wanted)) in rows.iter().zip(target).enumerate() {
            let apart = found.minus(&Real::point((*wanted).into()), bits).abs();
            match apart.compare(&tolerance.enclosure(bits)) {
                Some(Ordering::Greater) => return Some(Decision::Wrong(c)),
                Some(_) => (),
                None => decision = Decision::Unknown,
            }
        }
        Some(decision)
    }
}

/// The Euclidean norm of a vector against 2^log2, where that is certain: for contextual mappings.
pub fn compare_norm(vector: &[Real], log2: &Rational, bits: usize) -> Option<Ordering> {
    let squares = vector.iter().map(|x| x.power(2, bits));
    let square = squares.fold(Real::ZERO, |sum, square| sum.plus(&square, bits));
    let log2 = log2.enclosure(bits + 64);
    square.compare(&log2.plus(&log2, bits + 64).exp2(bits))
}

#[cfg(test)]
pub(crate) mod tests;
