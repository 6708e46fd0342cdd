//! A model run on a block of sequences, in enclosures.

use crate::attention::{Attended, Tokens, attend};
use crate::big::weight::Weight;
use crate::dataset::{Alphabet, Dataset};
use crate::dot::{Care, Dot, dot};
use crate::error::{Error, Result};
use crate::feed_forward::{Output, Prepared, norm};
use crate::interval::Interval;
use crate::kernel::products;
use crate::model::{Layer, Model};
use crate::readout::Readout;
use crate::rounding::{Precision, Rounding, two_sum_error, up};

/// A read-out of more directions than this is not tabulated.
const DIRECTIONS: usize = 4;

/// A model prepared for one arithmetic.
pub struct Network<'a> {
    model: &'a Model,
    rounding: &'a Rounding,
    pre: Option<Prepared<'a>>,
    layers: Vec<(&'a Layer, Option<Prepared<'a>>)>,
    /// The norm of each row of the head, from above.
    head_norms: Vec<f64>,
}

/// Some tokens of one sequence, by position.
#[derive(Debug, Clone)]
pub struct Query {
    /// The sequence.
    pub sequence: usize,
    /// The positions asked for.
    pub positions: Vec<usize>,
}

impl<'a> Network<'a> {
    /// Prepares a model (whose numbers are already those that the arithmetic works with).
    pub fn new(model: &'a Model, rounding: &'a Rounding) -> Self {
        let prepare = |part, outer| Prepared::new(part, model.d, outer, rounding);
        let pre = model.pre_feed_forward.as_ref().map(|part| prepare(part, &[]));
        let layers = model
            .layers
            .iter()
            .map(|layer| {
                let outer = layer.attention.as_ref().map_or(&[][..], |a| &a.w_o);
                (layer, layer.feed_forward.as_ref().map(|part| prepare(part, outer)))
            })
            .collect();
        let rows = model.head.iter().flat_map(|head| head.weight.chunks_exact(model.d));
        let head_norms = rows.map(|row| norm(row.iter().copied())).collect();
        Self { model, rounding, pre, layers, head_norms }
    }

    /// The outputs of all queried tokens, query after query.
    pub fn run(&self, dataset: &Dataset, rows: &Rows, queries: &[Query], care: Care) -> Vec<Output> {
        let d = self.model.d;
        let mut states: Vec<Tokens> = queries.iter().map(|q| self.input(dataset, rows, q.sequence)).collect();
        if let Some(pre) = &self.pre {
            states = split(&states, d, pre.run(states.iter().flat_map(|s| plain(s, d, None)).collect(), care));
        }
        for (at, (layer, feed_forward)) in self.layers.iter().enumerate() {
            let last = at + 1 == self.layers.len();
            let mut attended = Vec::new();
            for (query, tokens) in queries.iter().zip(&states) {
                let all: Vec<usize> = (0..tokens.mid.len() / d).collect();
                let asked = if last { &query.positions } else { &all };
                match &layer.attention {
                    Some(a) => attended.extend(attend(a, d, tokens, asked, self.rounding, care)),
                    None => attended.extend(plain(tokens, d, Some(asked))),
                }
            }
            let outputs = if let Some(part) = feed_forward {
                part.run(attended, care)
            } else {
                let outer = layer.attention.as_ref().map_or(&[][..], |a| &a.w_o);
                attended.into_iter().map(|t| passed(t.folded(outer))).collect()
            };
            if last {
                return outputs;
            }
            states = split(&states, d, outputs);
        }
        let asked = queries.iter().zip(&states).flat_map(|(q, s)| plain(s, d, Some(&q.positions)));
        asked.map(passed).collect()
    }

    /// The scores of all labels as midpoints, with radii from norms: |`w_l`| (|radius| + gamma |F(X)|) + gamma |`b_l`|.
    pub fn rough_scores(&self, output: &Output) -> Vec<(f64, f64)> {
        let d = self.model.d;
        let Some(head) = &self.model.head else { return vec![] };
        let (mut scores, rounding) = (Vec::new(), self.rounding);
        products(&output.mid, &head.weight, d, &mut scores);
        let (gamma, tiny) = (rounding.gamma(d + 1), (d + 1) as f64 * rounding.tiny);
        let spread = norm(output.radius.iter().copied());
        let size = norm(output.mid.iter().zip(&output.radius).map(|(m, r)| m.abs() + r));
        let score = |(l, product): (usize, f64)| {
            let reach = up(self.head_norms[l] * size + head.bias[l].abs());
            let radius = up(self.head_norms[l] * spread + gamma * reach + tiny);
            let fits = up(reach + radius) <= rounding.largest;
            (product + head.bias[l], if fits { radius } else { f64::INFINITY })
        };
        scores.into_iter().enumerate().map(score).collect()
    }

    /// The score of a label.
    pub fn score(&self, output: &Output, label: usize, care: Care) -> Dot {
        let (d, head) = (self.model.d, self.model.head.as_ref());
        let (weight, bias) = head.map_or((&[][..], 0.0), |h| (&h.weight[label * d..(label + 1) * d], h.bias[label]));
        dot(weight, &output.mid, &output.radius, bias, self.rounding, care)
    }

    /// How far sum over c of `a_c` F(X)_c of a program may be from that of the midpoints. What is not `enough` of a bound is
    /// made sharper in the careful pass.
    pub fn functional(&self, output: &Output, a: &[f64], care: Care, enough: f64) -> f64 {
        let plain = dot(a, &output.mid, &output.radius, 0.0, self.rounding, Care::Coarse).spread;
        match (care, self.layers.last()) {
            (Care::Fine, Some((_, Some(part)))) if plain > enough || plain.is_nan() => {
                part.functional(output, a).filter(|linear| *linear < plain).unwrap_or(plain)
            }
            _ => plain,
        }
    }

    /// The last feed-forward layer, where its units read few different numbers.
    pub fn readout(&self) -> Option<Readout<'a>> {
        let (layer, _) = self.layers.last()?;
        Readout::with_few_directions(layer.feed_forward.as_ref()?, self.model.d, DIRECTIONS)
    }

    /// The token that the last feed-forward layer read, shared errors included.
    pub fn before_readout(&self, output: &Output) -> Vec<Interval> {
        let directions = self.layers.last().and_then(|(_, part)| part.as_ref()).map_or(&[][..], |part| part.directions);
        let radii = output.input.whole_radius(directions);
        let interval = |(mid, radius): (&f64, f64)| Interval::point(*mid) + Interval::new(-radius, radius);
        output.input.mid.iter().zip(radii).map(interval).collect()
    }

    /// Embedding plus positions. In binary32 and binary64 that is one rounding, which every program makes alike.
    fn input(&self, dataset: &Dataset, rows: &Rows, sequence: usize) -> Tokens {
        let d = self.model.d;
        let mut tokens = Tokens::default();
        let range = dataset.range(sequence);
        for (place, t) in range.enumerate() {
            let row = rows.row(dataset.ids[t], d);
            let Some(positions) = &self.model.positions else {
                tokens.mid.extend_from_slice(row);
                continue;
            };
            for (&x, &p) in row.iter().zip(&positions[place * d..(place + 1) * d]) {
                let (mid, radius) = match self.rounding.precision {
                    Precision::F32 => (f64::from(x as f32 + p as f32), 0.0),
                    Precision::F64 => (x + p, 0.0),
                    Precision::Real => (x + p, two_sum_error(x, p)),
                };
                // An overflow is an infinite radius: nothing can be said about what follows.
                let (mid, radius) = if mid.is_finite() { (mid, radius) } else { (0.0, f64::INFINITY) };
                tokens.mid.push(mid);
                tokens.radius.push(radius);
            }
        }
        if tokens.radius.iter().all(|r| *r == 0.0) {
            tokens.radius.clear();
        }
        tokens
    }
}

/// Tokens as the feed-forward layer reads them, without attention.
fn plain(tokens: &Tokens, d: usize, positions: Option<&[usize]>) -> Vec<Attended> {
    let all: Vec<usize> = (0..tokens.mid.len() / d).collect();
    let token = |&i: &usize| {
        let (mid, radius) = tokens.row(i, d);
        let radius = if radius.is_empty() { vec![0.0; d] } else { radius.to_vec() };
        Attended { mid: mid.to_vec(), radius, noise: vec![] }
    };
    positions.unwrap_or(&all).iter().map(token).collect()
}

/// An output without a feed-forward layer.
fn passed(token: Attended) -> Output {
    let (mid, radius) = (token.mid.clone(), token.radius.clone());
    Output { mid, round: vec![0.0; radius.len()], radius, input: token, units: Some(vec![]) }
}

/// Outputs of all tokens, back into sequences of the same lengths.
fn split(states: &[Tokens], d: usize, outputs: Vec<Output>) -> Vec<Tokens> {
    let mut outputs = outputs.into_iter();
    let mut next = Vec::with_capacity(states.len());
    for state in states {
        let mut tokens = Tokens::default();
        for output in outputs.by_ref().take(state.mid.len() / d) {
            tokens.mid.extend(output.mid);
            tokens.radius.extend(output.radius);
        }
        next.push(tokens);
    }
    next
}

/// The vector of every distinct token of a dataset, as the model reads it.
pub struct Rows<T = f64> {
    data: Vec<T>,
    row_of: Option<Vec<u32>>,
}

impl<T: Weight> Rows<T> {
    /// Looks up words, or takes the vectors of the dataset (rounded to f32 for programs in binary32).
    pub fn new(model: &Model<T>, dataset: &Dataset, precision: Precision) -> Result<Self> {
        let fault = |what: String, help: &str| Err(Error::new(dataset.name.clone(), what, help));
        match (&model.embedding, &dataset.alphabet) {
            (Some(embedding), Alphabet::Words(words)) => {
                let unknown = embedding.vocabulary.get("<unk>").copied();
                let mut row_of = Vec::with_capacity(words.len());
                for (id, word) in words.iter().enumerate() {
                    let Some(row) = embedding.vocabulary.get(word).copied().or(unknown) else {
                        let first = dataset.ids.iter().position(|&i| i as usize == id).unwrap_or(0);
                        let what = format!("the word {word:?} is not in the vocabulary, which has no \"<unk>\"");
                        return Err(Error::new(dataset.place(first), what, "use the data that the model was made for"));
                    };
                    row_of.push(row);
                }
                Ok(Self { data: embedding.weight.clone(), row_of: Some(row_of) })
            }
            (None, Alphabet::Vectors { d, data }) if *d == model.d => {
                let narrow = |x: &f64| if precision == Precision::F32 { f64::from(*x as f32) } else { *x };
                let data: Vec<f64> = data.iter().map(narrow).collect();
                if data.iter().any(|x| !x.is_finite()) {
                    return fault("an entry does not fit f32".into(), "verify in f64 or real");
                }
                Ok(Self { data: data.into_iter().map(T::from_f64).collect(), row_of: None })
            }
            (None, Alphabet::Vectors { d, .. }) => fault(
                format!("tokens have dimension {d}, the model's is {}", model.d),
                "use data of the same dimension",
            ),
            (Some(_), _) => fault("tokens are vectors, but the model reads words".into(), "use a dataset of words"),
            (None, _) => fault("tokens are words, but the model reads vectors".into(), "use a dataset of vectors"),
        }
    }

    /// The vector of a distinct token.
    pub fn row(&self, id: u32, d: usize) -> &[T] {
        let row = self.row_of.as_ref().map_or(id, |rows| rows[id as usize]) as usize;
        &self.data[row * d..(row + 1) * d]
    }
}
