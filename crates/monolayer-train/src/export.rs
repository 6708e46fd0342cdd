//! From the list of trained numbers to a model directory's tensors, and back.

use monolayer::arithmetic::kernels::Real;
use monolayer::arithmetic::matrix::Matrix;
use monolayer::model::Model;
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::transformer::{Layer, Transformer};

use crate::architecture::Architecture;
use crate::engine::Parameters;

/// The layers of a model; positions and head follow from [`positions`] and [`head`].
pub fn transformer<R: Real>(architecture: &Architecture, parameters: &Parameters<R>) -> Transformer<R> {
    let (a, d, q) = (architecture, architecture.dim, architecture.hidden);
    let numbers = |range: &std::ops::Range<usize>| parameters.dense[range.clone()].to_vec();
    let layers = a.layout().layers.into_iter().map(|layer| {
        let project = numbers(&layer.project);
        let w_o = numbers(&layer.w_o);
        let heads = (0..a.heads).map(|head| {
            let rows = |part: usize| {
                let start = (part * a.mixed() + head * a.head_size) * d;
                Matrix::new(a.head_size, d, project[start..start + a.head_size * d].to_vec())
            };
            AttentionHead {
                w_q: rows(0),
                w_k: rows(1),
                w_v: rows(if a.tied { 1 } else { 2 }),
                w_o: Matrix::from_fn(d, a.head_size, |i, c| w_o[(head * a.head_size + c) * d + i]),
            }
        });
        let mask = if a.causal { Mask::Causal } else { Mask::None };
        Layer {
            attention: Some(Attention { kind: AttentionKind::Softmax, mask, heads: heads.collect() }),
            feed_forward: (q > 0).then(|| FeedForward {
                w1: Matrix::new(q, d, numbers(&layer.w1)),
                b1: numbers(&layer.b1),
                w2: Matrix::new(d, q, numbers(&layer.w2)),
                b2: numbers(&layer.b2),
            }),
        }
    });
    Transformer { d, pre_feed_forward: None, layers: layers.collect() }
}

/// The vectors of the places, where there are some.
pub fn positions<R: Real>(architecture: &Architecture, parameters: &Parameters<R>) -> Option<Matrix<R>> {
    let range = architecture.layout().positions;
    architecture.positions.map(|places| Matrix::new(places, architecture.dim, parameters.dense[range].to_vec()))
}

/// Weight and bias of the head, where there is one.
pub fn head<R: Real>(architecture: &Architecture, parameters: &Parameters<R>) -> Option<(Matrix<R>, Vec<R>)> {
    let layout = architecture.layout();
    architecture.labels.map(|labels| {
        let weight = parameters.dense[layout.head_weight].to_vec();
        (Matrix::new(labels, architecture.dim, weight), parameters.dense[layout.head_bias].to_vec())
    })
}

/// A model's sizes and numbers, to go on training from; `None` if its layers differ in size, have no attention, or come after a quantizer.
pub fn parameters<R: Real>(model: &Model<R>) -> Option<(Architecture, Parameters<R>)> {
    let transformer = &model.transformer;
    let attention = |layer: &Layer<R>| layer.attention.clone();
    let first = attention(transformer.layers.first()?)?;
    let heads: Option<Vec<_>> = transformer.layers.iter().map(attention).collect();
    let heads = heads?;
    let causal = match first.mask {
        Mask::None => false,
        Mask::Causal => true,
        // The trainer knows no others.
        Mask::Prefix(_) | Mask::Band(..) | Mask::Matrix(_) => return None,
    };
    let architecture = Architecture {
        words: model.words.as_ref().map(|w| w.embedding.rows),
        dim: transformer.d,
        layers: transformer.layers.len(),
        hidden: transformer.layers[0].feed_forward.as_ref().map_or(0, |f| f.b1.len()),
        heads: first.heads.len(),
        head_size: first.heads.first()?.w_q.rows,
        tied: heads.iter().flat_map(|a| &a.heads).all(|head| head.w_k == head.w_v),
        causal,
        positions: model.positions.as_ref().map(|p| p.rows),
        layer_norm: false,
        labels: model.head.as_ref().map(|h| h.labels.len()),
    };
    let mut dense = Vec::new();
    dense.extend(model.positions.iter().flat_map(|p| &p.data));
    for (layer, attention) in transformer.layers.iter().zip(&heads) {
        let rows = |part: fn(&AttentionHead<R>) -> &Matrix<R>| {
            attention.heads.iter().flat_map(move |head| part(head).data.clone())
        };
        dense.extend(rows(|head| &head.w_q).chain(rows(|head| &head.w_k)));
        if !architecture.tied {
            dense.extend(rows(|head| &head.w_v));
        }
        for head in &attention.heads {
            for c in 0..head.w_o.cols {
                dense.extend((0..head.w_o.rows).map(|i| head.w_o.row(i)[c]));
            }
        }
        if let Some(block) = &layer.feed_forward {
            dense.extend(block.w1.data.iter().chain(&block.b1).chain(&block.w2.data).chain(&block.b2));
        }
    }
    dense.extend(model.head.iter().flat_map(|head| head.weight.data.iter().chain(&head.bias)));
    let same = |a: &Attention<R>| a.kind == AttentionKind::Softmax && a.mask == first.mask;
    let fits =
        transformer.pre_feed_forward.is_none() && heads.iter().all(same) && dense.len() == architecture.layout().len();
    let embedding = model.words.as_ref().map_or_else(Vec::new, |w| w.embedding.data.clone());
    fits.then_some((architecture, Parameters { embedding, dense }))
}
