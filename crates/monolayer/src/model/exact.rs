//! Exact evaluation of a model with rational weights.
//!
//! Softmax makes irrational numbers of rational ones, so a token after attention is kept as d unknowns, each known to lie
//! in a ball. What feed-forward blocks make of it is a sum of rational multiples of the unknowns and a rational constant, and
//! each relu is decided by bounds. Where plateaus cancel the multiples exactly, a rational number is left: an output
//! that is proved to be exactly that.

use dashu_base::{Abs as _, Signed as _};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::arithmetic::Ball;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::{arg_max, rational};
use crate::data::{Dataset, Tokens};
use crate::error::{Error, Result};
use crate::model::{LabelHead, Model, OutputHead, Words};
use crate::paper::attention::{Attention, AttentionHead};
use crate::paper::feed_forward::FeedForward;
use crate::paper::transformer::{Layer, Transformer};

/// Bits that attention is evaluated with at first; doubled until every relu is decided, up to [`MOST_BITS`].
const BITS: usize = 64;
const MOST_BITS: usize = 4096;

/// The constant plus the sum of slopes times unknowns; no slopes where all are 0.
#[derive(Debug, Clone, PartialEq)]
struct Affine {
    constant: RBig,
    slopes: Vec<RBig>,
}

/// Lower and upper bounds of the unknowns.
type Bounds = [(RBig, RBig)];

impl Affine {
    fn constant(constant: RBig) -> Self {
        Self { constant, slopes: Vec::new() }
    }

    fn unknown(i: usize, d: usize) -> Self {
        let slopes = (0..d).map(|j| if i == j { RBig::ONE } else { RBig::ZERO }).collect();
        Self { constant: RBig::ZERO, slopes }
    }

    /// Adds `factor` times `other`.
    fn add(&mut self, factor: &RBig, other: &Self) {
        self.constant += factor * &other.constant;
        if other.slopes.is_empty() {
            return;
        }
        self.slopes.resize(other.slopes.len(), RBig::ZERO);
        for (slope, other) in self.slopes.iter_mut().zip(&other.slopes).filter(|(_, other)| !other.is_zero()) {
            *slope += factor * other;
        }
        if self.slopes.iter().all(RBig::is_zero) {
            self.slopes.clear();
        }
    }

    /// The larger of it and 0, unless the bounds leave open which that is.
    fn relu(self, bounds: &Bounds) -> Option<Self> {
        let end = |upper: bool| {
            let terms = self.slopes.iter().zip(bounds);
            terms.fold(self.constant.clone(), |sum, (slope, (lo, hi))| {
                sum + slope * if slope.is_negative() == upper { lo } else { hi }
            })
        };
        if !end(false).is_negative() {
            return Some(self);
        }
        (!end(true).is_positive()).then(|| Self::constant(RBig::ZERO))
    }
}

/// The outputs of a model, or the scores of its labels, for each token of a dataset: exact, or an error that names a token for
/// which the model's output is not a rational number that can be proved.
pub fn outputs(model: &Model<RBig>, data: &Dataset) -> Result<Vec<Vec<RBig>>> {
    let (inputs, start) = inputs(model, data)?;
    let of_sequence = |i: usize| -> Result<Vec<Vec<RBig>>> {
        let range = data.range(i);
        let mut bits = BITS;
        loop {
            match run(model, start.as_ref(), &inputs[range.clone()], bits) {
                Ok(rows) => return Ok(rows),
                Err(Stuck { place, what }) if bits >= MOST_BITS || what == IRRATIONAL => {
                    let help = "only plateaus around the ids, or exact inputs, have rational outputs";
                    return Err(Error::data(data.location(range.start + place), what, help));
                }
                Err(_) => bits *= 2,
            }
        }
    };
    let rows = parallel::try_map(data.sequences(), of_sequence)?;
    Ok(rows.into_iter().flatten().collect())
}

/// The labels of a model with a head: the largest score, the lowest index on ties.
pub fn labels(model: &Model<RBig>, data: &Dataset) -> Result<Vec<u32>> {
    let scores = outputs(model, data)?;
    Ok(scores.iter().map(|row| arg_max(row) as u32).collect())
}

/// A vector of rational numbers.
type Row = Vec<RBig>;

/// The tokens of a dataset with their places, exactly, and the start token where there is one.
fn inputs(model: &Model<RBig>, data: &Dataset) -> Result<(Vec<Row>, Option<Row>)> {
    // The checks of words, dimensions and lengths are those of the model in floats.
    let shape = map_model(model, |x| x.to_f64().value());
    shape.inputs(data)?;
    let mut rows: Vec<Vec<RBig>> = match (&data.tokens, &model.words) {
        (Tokens::Words { word_ids: ids, vocabulary }, Some(words)) => {
            let unknown = words.vocabulary.get(crate::model::UNKNOWN);
            let row = |&id: &u32| words.vocabulary.get(vocabulary.name(id)).or(unknown).expect("checked");
            ids.iter().map(|id| words.embedding.row(row(id) as usize).to_vec()).collect()
        }
        (Tokens::Vectors { d, data }, _) => {
            data.chunks_exact(*d).map(|x| x.iter().map(|&x| rational(x)).collect()).collect()
        }
        (Tokens::Words { .. }, None) => unreachable!("checked"),
    };
    let mut start = model.words.as_ref().and_then(|words| Some(words.embedding.row(words.start? as usize).to_vec()));
    if let Some(positions) = &model.positions {
        let add = |row: &mut Vec<RBig>, place: usize| {
            row.iter_mut().zip(positions.row(place)).for_each(|(x, p)| *x += p);
        };
        let first = start.iter_mut().map(|start| add(start, 0)).count();
        for range in data.ranges() {
            rows[range].iter_mut().zip(first..).for_each(|(row, place)| add(row, place));
        }
    }
    Ok((rows, start))
}

/// Why a sequence could not be evaluated, and the place of the token at fault.
struct Stuck {
    place: usize,
    what: &'static str,
}

const UNDECIDED: &str = "a hidden unit of the model is neither surely active nor surely silent";
const IRRATIONAL: &str = "the model's output depends on an irrational number";

/// A sequence in the middle of a model: each token's coordinates, the start token's first where there is one, and bounds of
/// their unknowns.
struct State {
    start: bool,
    tokens: Vec<Vec<Affine>>,
    bounds: Vec<Vec<(RBig, RBig)>>,
}

fn run(
    model: &Model<RBig>,
    start: Option<&Vec<RBig>>,
    inputs: &[Vec<RBig>],
    bits: usize,
) -> std::result::Result<Vec<Vec<RBig>>, Stuck> {
    let inputs = start.into_iter().chain(inputs);
    let tokens: Vec<Vec<Affine>> = inputs.map(|x| x.iter().cloned().map(Affine::constant).collect()).collect();
    let mut state = State { start: start.is_some(), bounds: vec![Vec::new(); tokens.len()], tokens };
    if let Some(block) = &model.transformer.pre_feed_forward {
        state.feed_forward(block)?;
    }
    let reads = model.transformer.layers.iter().rposition(|layer| layer.attention.is_some());
    for (i, layer) in model.transformer.layers.iter().enumerate() {
        if let Some(attention) = &layer.attention {
            state.attend(attention, bits)?;
        }
        if reads.is_none_or(|last| last == i) {
            state.leave_start();
        }
        if let Some(block) = &layer.feed_forward {
            state.feed_forward(block)?;
        }
    }
    state.leave_start();
    let labels = model.head.as_ref().map(|head| (&head.weight, &head.bias));
    if let Some((weight, bias)) = labels.or(model.outputs.as_ref().map(|head| (&head.weight, &head.bias))) {
        for token in &mut state.tokens {
            *token = weight.iter_rows().zip(bias).map(|(w, b)| combine(w, token, b)).collect();
        }
    }
    state.constants()
}

impl State {
    /// Goes on without the start token: nobody sees it any more, and nothing is said of it.
    fn leave_start(&mut self) {
        let starts = usize::from(std::mem::take(&mut self.start));
        self.tokens.drain(..starts);
        self.bounds.drain(..starts);
    }

    /// The values of all coordinates, if none depends on an unknown.
    fn constants(&self) -> std::result::Result<Vec<Vec<RBig>>, Stuck> {
        let starts = usize::from(self.start);
        let value = |token: usize, x: &Affine| {
            let place = token.saturating_sub(starts);
            if x.slopes.is_empty() { Ok(x.constant.clone()) } else { Err(Stuck { place, what: IRRATIONAL }) }
        };
        let row = |(place, token): (usize, &Vec<Affine>)| token.iter().map(|x| value(place, x)).collect();
        self.tokens.iter().enumerate().map(row).collect()
    }

    /// Attention in balls: the coordinates of its outputs are new unknowns.
    fn attend(&mut self, attention: &Attention<RBig>, bits: usize) -> std::result::Result<(), Stuck> {
        let inputs = self.constants()?;
        let d = inputs[0].len();
        let z = Matrix::new(inputs.len(), d, inputs.concat()).map(|x| ball(x, bits));
        let attention = map_attention(attention, |x| ball(x, bits));
        let out = if self.start {
            attention.apply_masked(&z, |query, key| attention.mask.visible_from_start(query, key))
        } else {
            attention.apply(&z)
        };
        let out = out.map_err(|_| Stuck { place: 0, what: UNDECIDED })?;
        self.bounds = out
            .iter_rows()
            .map(|row| row.iter().map(bounds).collect::<Option<_>>())
            .collect::<Option<_>>()
            .ok_or(Stuck { place: 0, what: UNDECIDED })?;
        self.tokens = vec![(0..d).map(|i| Affine::unknown(i, d)).collect(); inputs.len()];
        Ok(())
    }

    fn feed_forward(&mut self, block: &FeedForward<RBig>) -> std::result::Result<(), Stuck> {
        let starts = usize::from(self.start);
        for (place, (token, bounds)) in self.tokens.iter_mut().zip(&self.bounds).enumerate() {
            let place = place.saturating_sub(starts);
            let mut out = token.clone();
            for (unit, (w1, b1)) in block.w1.iter_rows().zip(&block.b1).enumerate() {
                let hidden = combine(w1, token, b1).relu(bounds).ok_or(Stuck { place, what: UNDECIDED })?;
                if hidden.slopes.is_empty() && hidden.constant.is_zero() {
                    continue;
                }
                for (i, out) in out.iter_mut().enumerate() {
                    let w2 = &block.w2.row(i)[unit];
                    if !w2.is_zero() {
                        out.add(w2, &hidden);
                    }
                }
            }
            out.iter_mut().zip(&block.b2).for_each(|(x, b)| x.constant += b);
            *token = out;
        }
        Ok(())
    }
}

/// `weights . token + bias`.
fn combine(weights: &[RBig], token: &[Affine], bias: &RBig) -> Affine {
    let mut sum = Affine::constant(bias.clone());
    for (w, x) in weights.iter().zip(token).filter(|(w, _)| !w.is_zero()) {
        sum.add(w, x);
    }
    sum
}

/// A ball around a rational number.
pub(crate) fn ball(x: &RBig, bits: usize) -> Ball {
    let integer = |n: &UBig| {
        let limb = |limb: &[u8]| limb.iter().rev().fold(0.0, |sum, &b| sum * 256.0 + f64::from(b));
        let digit = Ball::new(f64::from(1_u32 << 24), bits);
        let bytes = n.to_le_bytes();
        bytes.chunks(3).rev().fold(Ball::new(0.0, bits), |sum, chunk| sum * &digit + Ball::new(limb(chunk), bits))
    };
    let magnitude = integer(&x.numerator().clone().abs().try_into().expect("not negative"));
    let magnitude = if x.denominator().is_one() { magnitude } else { magnitude / integer(x.denominator()) };
    if x.is_negative() { -magnitude } else { magnitude }
}

/// Rational bounds of a ball; none if it is unbounded.
fn bounds(x: &Ball) -> Option<(RBig, RBig)> {
    if !x.is_bounded() {
        return None;
    }
    let center = center(x);
    let (fraction, exponent) = x.radius().parts();
    let radius = rational(fraction) * power_of_two(exponent);
    Some((&center - &radius, center + radius))
}

/// The midpoint of a ball.
pub(crate) fn center(x: &Ball) -> RBig {
    let (mantissa, exponent) = x.midpoint_parts();
    RBig::from(mantissa.clone()) * power_of_two(exponent)
}

fn power_of_two(exponent: i64) -> RBig {
    let power = IBig::ONE << exponent.unsigned_abs() as usize;
    if exponent >= 0 { RBig::from(power) } else { RBig::ONE / RBig::from(power) }
}

/// The same model over other numbers.
pub fn map_model<T: Clone, S: Clone>(model: &Model<T>, f: impl Fn(&T) -> S + Copy) -> Model<S> {
    let transformer = &model.transformer;
    let layer = |layer: &Layer<T>| Layer {
        attention: layer.attention.as_ref().map(|a| map_attention(a, f)),
        feed_forward: layer.feed_forward.as_ref().map(|b| map_block(b, f)),
    };
    Model {
        words: model.words.as_ref().map(|w| Words {
            vocabulary: w.vocabulary.clone(),
            embedding: w.embedding.map(f),
            start: w.start,
        }),
        positions: model.positions.as_ref().map(|p| p.map(f)),
        transformer: Transformer {
            d: transformer.d,
            pre_feed_forward: transformer.pre_feed_forward.as_ref().map(|b| map_block(b, f)),
            layers: transformer.layers.iter().map(layer).collect(),
        },
        head: model.head.as_ref().map(|h| map_head(h, f)),
        outputs: model.outputs.as_ref().map(|h| map_output_head(h, f)),
        source: model.source.clone(),
    }
}

/// The same head over other numbers.
pub fn map_head<T: Clone, S: Clone>(head: &LabelHead<T>, f: impl Fn(&T) -> S + Copy) -> LabelHead<S> {
    LabelHead { labels: head.labels.clone(), weight: head.weight.map(f), bias: head.bias.iter().map(f).collect() }
}

/// The same head of outputs over other numbers.
pub fn map_output_head<T: Clone, S: Clone>(head: &OutputHead<T>, f: impl Fn(&T) -> S + Copy) -> OutputHead<S> {
    OutputHead { weight: head.weight.map(f), bias: head.bias.iter().map(f).collect() }
}

/// The same block over other numbers.
pub fn map_block<T: Clone, S: Clone>(block: &FeedForward<T>, f: impl Fn(&T) -> S + Copy) -> FeedForward<S> {
    FeedForward {
        w1: block.w1.map(f),
        b1: block.b1.iter().map(f).collect(),
        w2: block.w2.map(f),
        b2: block.b2.iter().map(f).collect(),
    }
}

/// The same attention over other numbers.
pub fn map_attention<T: Clone, S: Clone>(attention: &Attention<T>, f: impl Fn(&T) -> S + Copy) -> Attention<S> {
    let head = |h: &AttentionHead<T>| AttentionHead {
        w_q: h.w_q.map(f),
        w_k: h.w_k.map(f),
        w_v: h.w_v.map(f),
        w_o: h.w_o.map(f),
    };
    Attention { kind: attention.kind, mask: attention.mask.clone(), heads: attention.heads.iter().map(head).collect() }
}
