//! New units in the feed-forward block of a model: in the place of spare ones first, then behind all others.

use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::memorize::gated::Unit;
use crate::model::{AnyModel, Model};
use crate::paper::feed_forward::FeedForward;

/// Adds units to a model whose codes use the first `used` coordinates, before that of the id and those of labels.
pub fn add_units(model: &mut AnyModel, units: &[Unit], used: usize) {
    match model {
        AnyModel::F32(model) => add(model, units, used),
        AnyModel::F64(model) => add(model, units, used),
        AnyModel::Exact(_) => unreachable!("exact models are not edited"),
    }
}

fn add<R: Real>(model: &mut Model<R>, units: &[Unit], used: usize) {
    let d = model.transformer.d;
    let block = &mut model.transformer.layers[0].feed_forward;
    let hidden = block.as_ref().map_or(0, |block| block.b1.len());
    let first = block.as_ref().map_or(0, |block| hidden - block.spare_units());
    let after = hidden.max(first + units.len());
    if after > hidden {
        *block = Some(resized(block.as_ref(), d, after));
    }
    if let Some(block) = block {
        for (j, unit) in (first..).zip(units) {
            let row = block.w1.row_mut(j);
            row.iter_mut().zip(&*unit.code).for_each(|(w, &x)| *w = R::from_f64(x));
            row[used] = R::from_f64(unit.id);
            block.b1[j] = R::from_f64(unit.bias);
            for (c, &x) in unit.output.iter().enumerate() {
                block.w2.row_mut(used + 1 + c)[j] = R::from_f64(x);
            }
        }
    }
}

/// Takes units out again: those that were filled are spare again, and those behind the first `hidden` are gone.
pub fn remove_units(model: &mut AnyModel, filled: &[usize], hidden: usize) {
    match model {
        AnyModel::F32(model) => remove(model, filled, hidden),
        AnyModel::F64(model) => remove(model, filled, hidden),
        AnyModel::Exact(_) => (),
    }
}

fn remove<R: Real>(model: &mut Model<R>, filled: &[usize], hidden: usize) {
    let d = model.transformer.d;
    let block = &mut model.transformer.layers[0].feed_forward;
    *block = block.as_ref().filter(|_| hidden > 0).map(|block| resized(Some(block), d, hidden));
    if let Some(block) = block {
        for &j in filled.iter().filter(|&&j| j < hidden) {
            block.w1.row_mut(j).fill(R::ZERO);
            block.b1[j] = R::ZERO;
            (0..d).for_each(|i| block.w2.row_mut(i)[j] = R::ZERO);
        }
    }
}

/// The block with another number of units: the first of its own, then units of zeros.
pub fn resized<R: Real>(block: Option<&FeedForward<R>>, d: usize, hidden: usize) -> FeedForward<R> {
    let old = block.map_or(0, |block| block.b1.len());
    let unit = |j: usize| block.filter(|_| j < old);
    FeedForward {
        w1: Matrix::from_fn(hidden, d, |j, i| unit(j).map_or(R::ZERO, |block| block.w1.row(j)[i])),
        b1: (0..hidden).map(|j| unit(j).map_or(R::ZERO, |block| block.b1[j])).collect(),
        w2: Matrix::from_fn(d, hidden, |i, j| unit(j).map_or(R::ZERO, |block| block.w2.row(i)[j])),
        b2: block.map_or_else(|| vec![R::ZERO; d], |block| block.b2.clone()),
    }
}
