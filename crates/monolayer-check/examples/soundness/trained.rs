//! Models that gradient descent made: some steps of the trainer, from random weights.

use std::collections::HashMap;

use monolayer::Matrix;
use monolayer::arithmetic::kernels::Real;
use monolayer_check::dataset::{Dataset, Labels};
use monolayer_check::model::{Attention, Dtype, Embedding, FeedForward, Head, Layer, Model};
use monolayer_train::engine::Parameters;
use monolayer_train::{Architecture, Batch, Engine, Optimizer, Targets, Tokens, export};

use crate::random::Random;

/// A model of the dataset after up to 80 steps of Adam, each on all of it.
pub fn trained(random: &mut Random, dataset: &Dataset, words: usize, labels: usize, dtype: Dtype) -> Model {
    let architecture = Architecture {
        words: Some(words),
        dim: 2 + random.below(5),
        layers: 1 + random.below(2),
        hidden: 1 + random.below(12),
        heads: 1 + random.below(2),
        head_size: 1 + random.below(2),
        tied: random.once_in(2),
        causal: random.once_in(3),
        positions: random.once_in(2).then_some(5),
        layer_norm: false,
        labels: Some(labels),
    };
    let (seed, steps) = (random.bits(), random.below(81));
    if dtype == Dtype::F32 {
        run::<f32>(&architecture, dataset, dtype, seed, steps)
    } else {
        run::<f64>(&architecture, dataset, dtype, seed, steps)
    }
}

fn run<R: Real>(architecture: &Architecture, dataset: &Dataset, dtype: Dtype, seed: u64, steps: usize) -> Model {
    let Labels::Classes(classes, names) = &dataset.labels else { unreachable!() };
    let mut engine = Engine::<R>::new(architecture.clone(), Optimizer::default(), None, seed);
    let (tokens, targets) = (Tokens::Words(&dataset.ids), Targets::Labels(classes));
    for _ in 0..steps {
        engine.step(&Batch { offsets: &dataset.offsets, tokens, targets }, 0.05).expect("no divergence");
    }
    engine.catch_up();
    model(architecture, engine.parameters(), dtype, names)
}

/// The trained numbers as the checker has them.
fn model<R: Real>(architecture: &Architecture, parameters: &Parameters<R>, dtype: Dtype, names: &[String]) -> Model {
    let wide = |list: &[R]| list.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
    let transformer = export::transformer(architecture, parameters);
    let layers = transformer.layers.iter().map(|layer| {
        let heads = &layer.attention.as_ref().expect("trained layers have attention").heads;
        let stack = |part: fn(&monolayer::paper::attention::Head<R>) -> &Matrix<R>| -> Vec<f64> {
            heads.iter().flat_map(|head| wide(&part(head).data)).collect()
        };
        let attention = Attention {
            hard: false,
            causal: architecture.causal,
            heads: heads.len(),
            size: architecture.head_size,
            w_q: stack(|head| &head.w_q),
            w_k: stack(|head| &head.w_k),
            w_v: stack(|head| &head.w_v),
            w_o: heads.iter().flat_map(|head| transposed(&head.w_o)).collect(),
        };
        let feed_forward = layer.feed_forward.as_ref().map(|block| FeedForward {
            hidden: block.b1.len(),
            w1: wide(&block.w1.data),
            b1: wide(&block.b1),
            w2: transposed(&block.w2),
            b2: wide(&block.b2),
        });
        Layer { attention: Some(attention), feed_forward }
    });
    let words = architecture.words.unwrap_or(0);
    let vocabulary: HashMap<String, u32> = (0..words).map(|i| (format!("w{i}"), i as u32)).collect();
    let (weight, bias) = export::head(architecture, parameters).expect("a model with labels");
    Model {
        d: architecture.dim,
        dtype,
        max_length: architecture.positions,
        embedding: Some(Embedding { vocabulary, weight: wide(&parameters.embedding) }),
        positions: export::positions(architecture, parameters).map(|p| wide(&p.data)),
        pre_feed_forward: None,
        layers: layers.collect(),
        head: Some(Head { labels: names.to_vec(), weight: wide(&weight.data), bias: wide(&bias) }),
    }
}

/// Column after column: the checker keeps W_O and W2 by what they read.
fn transposed<R: Real>(matrix: &Matrix<R>) -> Vec<f64> {
    (0..matrix.cols).flat_map(|j| (0..matrix.rows).map(move |i| matrix.row(i)[j].to_f64())).collect()
}
