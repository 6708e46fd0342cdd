//! What the score of a label is the sum of.
//!
//! With the token's vector x, what attention adds to it, the values a of the hidden units that fire, and the head's row w,
//!
//! `score = w.x + w.attention + sum_j (w.W2_j) a_j + w.b2 + bias`,
//!
//! up to the rounding of the sums, which is bounded beside it.

use super::Pass;
use crate::arithmetic::float_model::{DOUBLE, FloatFormat, Up};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::model::{InputTokens, Inputs, Model};

/// A part of a model that adds to scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The token's own vector: the word's, where inputs are words.
    Token,
    /// The vector of its place.
    Place,
    /// The feed-forward block before attention.
    Quantizer,
    /// What attention adds.
    Attention,
    /// A hidden unit.
    Unit(usize),
    /// The bias of the feed-forward block.
    Bias,
    /// The bias of the head.
    Head,
}

/// What a part adds to each score.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// The part.
    pub part: Part,
    /// A number for each label, or for each coordinate of the output.
    pub adds: Vec<f64>,
}

/// What scores are read with: rows of weights, or each coordinate by itself.
pub(super) struct ReadOut<'a, R> {
    rows: Option<&'a Matrix<R>>,
    bias: Option<&'a [R]>,
    width: usize,
}

impl<'a, R: Real> ReadOut<'a, R> {
    pub(super) fn of(model: &'a Model<R>) -> Self {
        let label = model.head.as_ref().map(|head| (&head.weight, &head.bias[..]));
        let head = label.or(model.outputs.as_ref().map(|head| (&head.weight, &head.bias[..])));
        let width = head.map_or(model.transformer.d, |(_, bias)| bias.len());
        Self { rows: head.map(|(rows, _)| rows), bias: head.map(|(_, bias)| bias), width }
    }

    /// The weights of score `l` that are not 0, with their coordinates.
    fn weights(&self, l: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let row = self.rows.map(|rows| rows.row(l));
        let own = row.is_none().then_some((l, 1.0));
        row.into_iter().flatten().enumerate().map(|(i, w)| (i, w.to_f64())).filter(|&(_, w)| w != 0.0).chain(own)
    }

    /// What a vector adds to each score.
    pub(super) fn read(&self, vector: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..self.width).map(|l| self.weights(l).map(|(i, w)| w * vector(i)).sum()).collect()
    }
}

impl<R: Real> Model<R> {
    /// What each part adds to the scores of token `t` of a pass, and how far each sum can be from its score.
    pub(super) fn contributions(
        &self,
        inputs: &Inputs<R>,
        i: usize,
        pass: &Pass<R>,
        t: usize,
    ) -> (Vec<Contribution>, Vec<f64>) {
        let d = self.transformer.d;
        let [embedded, before, attended] =
            [&pass.embedded, &pass.before, &pass.attended].map(|rows| &rows[t * d..(t + 1) * d]);
        let block = self.transformer.layers[0].feed_forward.as_ref();
        let place = self.positions.as_ref().map(|positions| positions.row(t));
        // With positions inputs are words or vectors as given, without them the token is what was embedded.
        let token: &[R] = match (&inputs.tokens, &self.words) {
            (InputTokens::Words(ids), Some(words)) => words.embedding.row(ids[inputs.offsets[i] + t] as usize),
            (InputTokens::Vectors(data), _) => &data[(inputs.offsets[i] + t) * d..][..d],
            (InputTokens::Words(_), None) => embedded,
        };
        let read = ReadOut::of(self);
        let mut parts = vec![Contribution { part: Part::Token, adds: read.read(|c| token[c].to_f64()) }];
        let mut add = |part, vector: &dyn Fn(usize) -> f64| parts.push(Contribution { part, adds: read.read(vector) });
        if let Some(place) = place {
            add(Part::Place, &|c| place[c].to_f64());
        }
        if self.transformer.pre_feed_forward.is_some() {
            add(Part::Quantizer, &|c| before[c].to_f64() - embedded[c].to_f64());
        }
        if self.transformer.layers[0].attention.is_some() {
            add(Part::Attention, &|c| attended[c].to_f64() - before[c].to_f64());
        }
        for &(j, value) in &pass.firing[t] {
            let w2 = &block.expect("units that fire").w2;
            add(Part::Unit(j), &|c| w2.row(c)[j].to_f64() * value.to_f64());
        }
        if let Some(block) = block {
            add(Part::Bias, &|c| block.b2[c].to_f64());
        }
        if let Some(bias) = read.bias {
            parts.push(Contribution { part: Part::Head, adds: bias.iter().map(|b| b.to_f64()).collect() });
        }
        let size = |c: usize| {
            let own = Up::size(token[c].to_f64()) + place.map_or(Up::ZERO, |place| Up::size(place[c].to_f64()));
            let stations = [embedded, before, attended].map(|row| Up::size(row[c].to_f64()));
            let units = block.into_iter().flat_map(|block| {
                let unit = |&(j, a): &(usize, R)| Up::size(block.w2.row(c)[j].to_f64()) * Up::size(a.to_f64());
                pass.firing[t].iter().map(unit).chain([Up::size(block.b2[c].to_f64())])
            });
            (own + stations[0] + Up::count(2) * stations[1] + stations[2], stations[2] + units.sum())
        };
        let sizes: Vec<(Up, Up)> = (0..d).map(size).collect();
        // A number that overflows takes scores with it that do not even read it: 0 times infinity is no number.
        let row = &pass.rows[t * pass.width..(t + 1) * pass.width];
        let bound =
            |l: usize| if row[l].finite() { rounding::<R>(&read, l, &sizes, parts.len()) } else { f64::INFINITY };
        let rounding = (0..read.width).map(bound).collect();
        (parts, rounding)
    }
}

/// How far score `l`, computed in `R`, can be from the sum of its contributions, computed in double precision and added up in any
/// order. `sizes`: for each coordinate the sizes of what goes into the block and of the sum that comes out of it.
fn rounding<R: Real>(read: &ReadOut<R>, l: usize, sizes: &[(Up, Up)], parts: usize) -> f64 {
    let own = FloatFormat::of::<R>();
    let bias = read.bias.map_or(Up::ZERO, |bias| Up::size(bias[l].to_f64()));
    let (mut terms, mut read_size, mut moved, mut wide) = (1, bias, Up::ZERO, bias);
    for (c, w) in read.weights(l) {
        let (before, after) = sizes[c];
        // Positions are added, then the sum over units is formed: at most one term for each part.
        let lost = own.gamma(1) * before + own.sum_error(parts + 1, after);
        terms += 1;
        moved = moved + Up::size(w) * lost;
        read_size = read_size + Up::size(w) * (after + lost);
        wide = wide + Up::size(w) * (before + after);
    }
    // In double precision: a product of three numbers, sums over coordinates, then over the parts.
    let double = DOUBLE.sum_error(terms + parts + 3, wide);
    (moved + own.sum_error(terms, read_size) + double + double).get()
}
