//! A model as edits see it: its numbers, the ids that there can be, and the gates of its words and places.

use super::along::Ids;
use super::gate::GateFinder;
use crate::arithmetic::float_model::{FloatFormat, Up, sum_above, sum_below};
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Orderings, Tokens, Vocabulary};
use crate::error::{Error, Result};
use crate::memorize::gated::stored::Stored;
use crate::memorize::id_rounding::IdReader;
use crate::model::{AnyModel, Model};
use crate::paper::attention::AttentionKind;
use crate::paper::mask::Mask;

/// Where a model has no positions, sequences are taken to be no longer than this: the sums over longer ones may be rounded by
/// more than any gate has room for.
pub const LONGEST: usize = 1 << 20;

/// A model as edits see it.
pub struct Site {
    pub stored: Stored,
    pub gates: GateFinder,
    pub reader: IdReader,
    /// All ids that a program can compute, for sequences up to the longest.
    pub range: Ids,
    pub format: FloatFormat,
    pub round: fn(f64) -> f64,
    /// The codes of words and places.
    pub vectors: TokenVectors,
    pub mask: Mask,
    pub vocabulary: Vocabulary,
    pub labels: Vec<String>,
    /// How many hidden units are stored, spare ones included.
    pub hidden: usize,
}

impl Site {
    /// What edits need of a model; an error that says why not, where it cannot be edited.
    pub fn new(model: &AnyModel) -> Result<Self> {
        match model {
            AnyModel::F32(model) => Self::of(model),
            AnyModel::F64(model) => Self::of(model),
            AnyModel::Exact(_) => Err(refused("its numbers are exact")),
        }
    }

    fn of<R: Real>(model: &Model<R>) -> Result<Self> {
        let (columns, stored) = compiled(model)?;
        let words = model.words.as_ref().ok_or_else(|| refused("its inputs are vectors"))?;
        let format = FloatFormat::of::<R>();
        let round = |x: f64| R::from_f64(x).to_f64();
        let (reader, d) = (IdReader::new(&stored), model.transformer.d);
        let longest = model.positions.as_ref().map_or(LONGEST, |p| p.rows);
        let range = id_range(reader.values(&format), longest, &format)
            .ok_or_else(|| refused("the ids of its contexts may be any numbers"))?;
        let codes =
            |m: &Matrix<R>| Matrix::from_fn(m.rows, d, |i, j| if j < columns.1 { m.row(i)[j].to_f64() } else { 0.0 });
        let embedding = codes(&words.embedding);
        let vectors = TokenVectors {
            start: words.start.map(|start| embedding.row(start as usize).to_vec()),
            words: embedding,
            positions: model.positions.as_ref().map(codes),
            word_columns: columns.0,
            used: columns.1,
        };
        let attention = model.transformer.layers[0].attention.as_ref().expect("a compiled model has attention");
        Ok(Self {
            gates: GateFinder::new(&stored, format, round),
            stored,
            reader,
            range,
            format,
            round,
            vectors,
            mask: attention.mask.clone(),
            vocabulary: words.vocabulary.clone(),
            hidden: model.transformer.layers[0].feed_forward.as_ref().map_or(0, |block| block.b1.len()),
            labels: model.head.as_ref().map_or_else(Vec::new, |head| head.labels.clone()),
        })
    }

    /// The row of positions of the token at a place of its sequence; 0 where there are none.
    pub fn row(&self, place: usize) -> usize {
        if self.vectors.positions.is_some() { self.vectors.first_place() + place } else { 0 }
    }

    /// The most tokens of a sequence.
    pub fn longest(&self) -> usize {
        self.vectors.positions.as_ref().map_or(LONGEST, |p| p.rows - self.vectors.first_place())
    }

    /// Sequences of rows of the embedding as a dataset, which has no names for them.
    pub fn dataset(name: &str, sequences: &[Vec<u32>]) -> Dataset {
        let mut offsets = vec![0];
        offsets.extend(sequences.iter().scan(0, |end, sequence| {
            *end += sequence.len();
            Some(*end)
        }));
        Dataset {
            name: name.to_owned(),
            tokens: Tokens::Words { word_ids: sequences.concat(), vocabulary: Vocabulary::default() },
            labels: Labels::None,
            offsets,
            lines: Vec::new(),
            warnings: Vec::new(),
            written: crate::data::Written::default(),
            orderings: Orderings::Given,
        }
    }
}

/// How many coordinates words use, and how many words and places together; and the numbers.
fn compiled<R: Real>(model: &Model<R>) -> Result<((usize, usize), Stored)> {
    if model.words.is_none() {
        return Err(refused("its inputs are vectors, and edits are for words"));
    }
    if model.head.is_none() {
        return Err(refused("its outputs are vectors, and edits are for labels"));
    }
    let [layer] = &model.transformer.layers[..] else {
        return Err(refused(&format!("it has {} layers, and edits are for one", model.transformer.layers.len())));
    };
    if model.transformer.pre_feed_forward.is_some() {
        return Err(refused("it has a block before attention"));
    }
    let attention = layer.attention.as_ref().ok_or_else(|| refused("it has no attention"))?;
    if attention.kind != AttentionKind::Softmax || attention.heads.len() != 1 || attention.heads[0].w_q.rows != 1 {
        return Err(refused("its attention is not one softmax head of size 1"));
    }
    columns(model)
        .and_then(|columns| Some((columns, Stored::new(model, columns.0, columns.1)?)))
        .ok_or_else(|| refused("it is no compiled model: no gate tells its words and places apart"))
}

/// The coordinates of codes end at the one that attention writes to. Words use the first of them, places the rest.
fn columns<R: Real>(model: &Model<R>) -> Option<(usize, usize)> {
    let w_o = &model.transformer.layers[0].attention.as_ref()?.heads[0].w_o.data;
    let used = w_o.iter().position(|&x| x != R::ZERO)?;
    let Some(positions) = &model.positions else { return Some((used, used)) };
    let zero = |i: &usize| positions.iter_rows().all(|row| row[*i] == R::ZERO);
    Some(((0..used).take_while(zero).count(), used))
}

/// Ids are means of values, under weights that add up to 1 but for rounding: keys and weights have errors of their own, but
/// weights are never negative, so the mean stays between the values but for the rounding of two sums and a quotient.
fn id_range((low, high): Ids, longest: usize, format: &FloatFormat) -> Option<Ids> {
    let size = Up::size(low).max(Up::size(high));
    let lost = Up::count(longest + 64) * Up::new(format.subnormal()) * (Up::count(2) + size);
    let pad = Up::count(2) * format.gamma(2 * longest + 64) * size + lost;
    let range = (sum_below(low, -pad.get()), sum_above(high, pad.get()));
    (range.0.is_finite() && range.1.is_finite() && range.0 < range.1).then_some(range)
}

fn refused(why: &str) -> Error {
    Error::mismatch(
        format!("the model cannot be edited: {why}"),
        "edits are for models that were compiled from words with classes",
    )
}
