//! The numbers of a gated model as they are stored: what a proof must speak of.

use super::Unit;
use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::model::Model;

/// The numbers of a gated model, widened to double precision, which changes none of them.
///
/// Words have coordinates of their own, places the next ones; then comes the id, which no code touches, then the
/// coordinates of labels. All other weights are 0, and `W_K = W_V`, or there is no such value.
pub struct Stored {
    /// The codes of words, their own coordinates only.
    pub words: Matrix<f64>,
    /// The word that is the start token, which has the first of the places, where there is one.
    pub start: Option<u32>,
    /// The codes of places, their own coordinates only; one empty row where there are no positions.
    pub places: Matrix<f64>,
    /// What words carry in the coordinates of labels.
    pub carried: Matrix<f64>,
    /// `W_K = W_V`, over the coordinates of codes.
    pub key: Vec<f64>,
    /// `W_Q`, over the coordinates of codes.
    pub query: Vec<f64>,
    /// The hidden units, but for spare ones at the end, all of whose weights are 0: they add exactly nothing.
    pub units: Vec<Unit>,
    /// The head's rows, over the coordinates of labels.
    pub head: Matrix<f64>,
    /// The head's bias.
    pub bias: Vec<f64>,
}

impl Stored {
    /// The numbers of a model whose words use the first `word_columns` coordinates, and whose places those up to `used`.
    /// `None` where some number is not finite or some weight is not 0 that should be.
    pub fn new<R: Real>(model: &Model<R>, word_columns: usize, used: usize) -> Option<Self> {
        let d = model.transformer.d;
        let (id, labels) = (used, used + 1..d);
        let embedding = wide(&model.words.as_ref()?.embedding);
        let positions = model.positions.as_ref().map(wide);
        let [layer] = &model.transformer.layers[..] else { return None };
        let [attention] = &layer.attention.as_ref()?.heads[..] else { return None };
        let row = |m: &Matrix<R>| (m.data.len() == d).then(|| wide(m).data);
        let (key, query, value, w_o) =
            (row(&attention.w_k)?, row(&attention.w_q)?, row(&attention.w_v)?, row(&attention.w_o)?);
        let head = model.head.as_ref()?;
        let (weight, bias) = (wide(&head.weight), head.bias.iter().map(|x| x.to_f64()).collect::<Vec<_>>());
        let only = |x: &[f64], from: usize, to: usize| x[..from].iter().chain(&x[to..]).all(|&x| x == 0.0);
        let in_place = key == value
            && w_o[id] == 1.0
            && only(&w_o, id, id + 1)
            && only(&key, 0, used)
            && only(&query, 0, used)
            && embedding.iter_rows().all(|x| only(&x[..=id], 0, word_columns))
            && positions.iter().flat_map(Matrix::iter_rows).all(|x| only(x, word_columns, used))
            && weight.iter_rows().all(|x| only(x, labels.start, d));
        let tables = [&embedding, &weight].into_iter().chain(&positions).flat_map(|m| &m.data);
        let finite = tables.chain(&key).chain(&query).chain(&bias).all(|x| x.is_finite());
        let columns =
            |m: &Matrix<f64>, from: usize, to: usize| Matrix::from_fn(m.rows, to - from, |i, j| m.row(i)[from + j]);
        (in_place && finite).then_some(())?;
        Some(Self {
            words: columns(&embedding, 0, word_columns),
            start: model.start(),
            places: positions.map_or_else(|| Matrix::new(1, 0, Vec::new()), |p| columns(&p, word_columns, used)),
            carried: columns(&embedding, labels.start, d),
            key: key[..used].to_vec(),
            query: query[..used].to_vec(),
            units: units(model, used)?,
            head: columns(&weight, labels.start, d),
            bias,
        })
    }
}

/// The hidden units, if they read codes and the id only and write to labels only.
fn units<R: Real>(model: &Model<R>, used: usize) -> Option<Vec<Unit>> {
    let Some(block) = &model.transformer.layers[0].feed_forward else { return Some(Vec::new()) };
    let zero = |x: &R| *x == R::ZERO;
    let written = block.w2.iter_rows().enumerate();
    let silent = written.take_while(|&(i, _)| i <= used).all(|(_, row)| row.iter().all(zero));
    if !silent || !block.b2.iter().all(zero) {
        return None;
    }
    let output: Vec<&[R]> = block.w2.iter_rows().skip(used + 1).collect();
    let unit = |(j, row): (usize, &[R])| {
        let unit = Unit {
            code: row[..used].iter().map(|x| x.to_f64()).collect(),
            id: row[used].to_f64(),
            bias: block.b1[j].to_f64(),
            output: output.iter().map(|row| row[j].to_f64()).collect(),
        };
        (row[used + 1..].iter().all(zero) && unit.is_finite()).then_some(unit)
    };
    let used_units = block.b1.len() - block.spare_units();
    block.w1.iter_rows().enumerate().take(used_units).map(unit).collect()
}

fn wide<R: Real>(m: &Matrix<R>) -> Matrix<f64> {
    m.map(|x| x.to_f64())
}
