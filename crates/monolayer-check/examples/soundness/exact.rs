//! The forward pass to 2000 bits, written as plainly as possible and apart from the checker's own.

use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;
use monolayer_check::dataset::Dataset;
use monolayer_check::model::{Attention, FeedForward, Model};

type Real = FBig<HalfEven, 2>;

pub const BITS: usize = 2000;

pub fn real(x: f64) -> Real {
    Real::try_from(x).expect("finite").with_precision(BITS).value()
}

fn dot(w: &[f64], x: &[Real]) -> Real {
    w.iter().zip(x).filter(|(w, _)| **w != 0.0).fold(real(0.0), |sum, (&w, x)| sum + real(w) * x)
}

fn feed_forward(part: &FeedForward, h: &[Real]) -> Vec<Real> {
    let d = h.len();
    let mut out: Vec<Real> = h.iter().zip(&part.b2).map(|(h, &b)| h + real(b)).collect();
    for j in 0..part.hidden {
        let unit = dot(&part.w1[j * d..(j + 1) * d], h) + real(part.b1[j]);
        if unit > real(0.0) {
            for (out, &w) in out.iter_mut().zip(&part.w2[j * d..(j + 1) * d]) {
                *out += real(w) * &unit;
            }
        }
    }
    out
}

fn attend(a: &Attention, tokens: &[Vec<Real>], i: usize) -> Vec<Real> {
    let d = tokens[i].len();
    let visible = if a.causal { i + 1 } else { tokens.len() };
    let mut out = tokens[i].clone();
    for head in 0..a.heads {
        let row = |w: &[f64], s: usize, x: &[Real]| dot(&w[(head * a.size + s) * d..(head * a.size + s + 1) * d], x);
        let scores: Vec<Real> = (0..visible)
            .map(|j| {
                (0..a.size).fold(real(0.0), |sum, s| sum + row(&a.w_k, s, &tokens[j]) * row(&a.w_q, s, &tokens[i]))
            })
            .collect();
        let top = scores.iter().cloned().reduce(|a, b| if b > a { b } else { a }).expect("some token is visible");
        let weights: Vec<Real> = scores
            .iter()
            .map(|score| if a.hard { real(f64::from(u8::from(*score == top))) } else { (score - &top).exp() })
            .collect();
        let total = weights.iter().fold(real(0.0), |sum, w| sum + w);
        for s in 0..a.size {
            let z = (0..visible).fold(real(0.0), |sum, j| sum + &weights[j] * row(&a.w_v, s, &tokens[j])) / &total;
            for (c, out) in out.iter_mut().enumerate() {
                *out += real(a.w_o[(head * a.size + s) * d + c]) * &z;
            }
        }
    }
    out
}

/// The outputs of all tokens of a sequence.
pub fn sequence(model: &Model, ids: &[u32]) -> Vec<Vec<Real>> {
    let d = model.d;
    let embedding = &model.embedding.as_ref().expect("words").weight;
    let mut tokens: Vec<Vec<Real>> = ids
        .iter()
        .enumerate()
        .map(|(place, &id)| {
            let position = |c: usize| model.positions.as_ref().map_or(0.0, |p| p[place * d + c]);
            (0..d).map(|c| real(embedding[id as usize * d + c]) + real(position(c))).collect()
        })
        .collect();
    if let Some(part) = &model.pre_feed_forward {
        tokens = tokens.iter().map(|t| feed_forward(part, t)).collect();
    }
    for layer in &model.layers {
        if let Some(a) = &layer.attention {
            tokens = (0..tokens.len()).map(|i| attend(a, &tokens, i)).collect();
        }
        if let Some(part) = &layer.feed_forward {
            tokens = tokens.iter().map(|t| feed_forward(part, t)).collect();
        }
    }
    tokens
}

/// The scores of one output.
pub fn scores(model: &Model, output: &[Real]) -> Vec<Real> {
    let head = model.head.as_ref().expect("labels");
    (0..head.bias.len())
        .map(|l| dot(&head.weight[l * model.d..(l + 1) * model.d], output) + real(head.bias[l]))
        .collect()
}

/// The arg max; scores that agree to 1500 bits are equal.
pub fn arg_max(scores: &[Real]) -> usize {
    let close = Real::from_parts(1.into(), -1500);
    (1..scores.len()).fold(0, |best, l| if &scores[l] - &scores[best] > close { l } else { best })
}

/// The labels of all tokens of a dataset.
pub fn labels(model: &Model, dataset: &Dataset) -> Vec<usize> {
    let each = |i| sequence(model, &dataset.ids[dataset.range(i)]);
    (0..dataset.sequences()).flat_map(each).map(|output| arg_max(&scores(model, &output))).collect()
}

/// The outputs of all tokens of a dataset, rounded.
pub fn outputs(model: &Model, dataset: &Dataset) -> Vec<Vec<f64>> {
    let each = |i| sequence(model, &dataset.ids[dataset.range(i)]);
    (0..dataset.sequences()).flat_map(each).map(|o| o.iter().map(|x| x.to_f64().value()).collect()).collect()
}
