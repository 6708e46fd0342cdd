//! Random Transformers and sequences for them.

pub mod mixed_codes;

use monolayer::arithmetic::matrix::Matrix;
use monolayer::paper::attention::{Attention, AttentionHead, AttentionKind, Mask};
use monolayer::paper::feed_forward::FeedForward;
use monolayer::paper::transformer::{Layer, Transformer};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// What a Transformer is made of, and sequences of tokens out of a small vocabulary, so that tokens repeat.
#[derive(Debug, Clone)]
pub struct Case {
    pub d: usize,
    pub pre: Option<usize>,
    pub layers: Vec<Shape>,
    pub lengths: Vec<usize>,
    pub vocabulary: usize,
    pub seed: u64,
}

/// One layer: its attention and its number of hidden units.
#[derive(Debug, Clone)]
pub struct Shape {
    pub attention: Option<(AttentionKind, Mask, usize, usize)>,
    pub hidden: usize,
}

fn shape(matrix: Mask) -> impl Strategy<Value = Shape> {
    let kind = prop_oneof![3 => Just(AttentionKind::Softmax), 1 => Just(AttentionKind::Hardmax)];
    let mask = prop_oneof![
        2 => Just(Mask::None),
        2 => Just(Mask::Causal),
        1 => (0..20_usize).prop_map(Mask::Prefix),
        1 => (0..9_usize, 0..9_usize).prop_map(|(before, after)| Mask::Band(before, after)),
        2 => Just(matrix),
    ];
    let attention = (kind, mask, 1..=4_usize, 1..=8_usize);
    prop_oneof![
        7 => (attention.clone().prop_map(Some), 1..40_usize),
        1 => (attention.prop_map(Some), Just(0)),
        1 => (Just(None), 1..40_usize),
    ]
    .prop_map(|(attention, hidden)| Shape { attention, hidden })
}

pub fn case(longest: usize) -> impl Strategy<Value = Case> {
    let length = prop_oneof![Just(1), 1..=(longest / 10).max(2), 1..=longest];
    (
        1..=12_usize,
        prop::option::weighted(0.3, 1..30_usize),
        // A model has one matrix at most.
        any::<u64>()
            .prop_flat_map(move |seed| prop::collection::vec(shape(mixed_codes::mask_matrix(longest, seed)), 1..=4)),
        prop::collection::vec(length, 1..=5),
        1..=12_usize,
        any::<u64>(),
    )
        .prop_map(|(d, pre, layers, lengths, vocabulary, seed)| Case { d, pre, layers, lengths, vocabulary, seed })
}

/// A matrix of normal numbers with variance `1 / cols`, so that products keep their size; single precision holds them.
fn matrix(rng: &mut ChaCha8Rng, rows: usize, cols: usize) -> Matrix<f64> {
    let scale = (cols as f64).sqrt().recip();
    Matrix::from_fn(rows, cols, |_, _| {
        let x: f64 = StandardNormal.sample(&mut *rng);
        f64::from((x * scale) as f32)
    })
}

pub fn feed_forward(rng: &mut ChaCha8Rng, q: usize, d: usize) -> FeedForward<f64> {
    let (w1, w2) = (matrix(rng, q, d), matrix(rng, d, q).map(|x| x / 2.0));
    FeedForward { w1, b1: matrix(rng, q, 1).data, w2, b2: matrix(rng, d, 1).data.iter().map(|x| x / 4.0).collect() }
}

pub fn attention(
    rng: &mut ChaCha8Rng,
    (kind, mask, heads, size): (AttentionKind, Mask, usize, usize),
    d: usize,
) -> Attention<f64> {
    let head = |rng: &mut ChaCha8Rng| AttentionHead {
        w_q: matrix(rng, size, d),
        w_k: matrix(rng, size, d),
        w_v: matrix(rng, size, d),
        w_o: matrix(rng, d, size).map(|x| x / 4.0),
    };
    Attention { kind, mask, heads: (0..heads).map(|_| head(rng)).collect() }
}

impl Case {
    /// The Transformer and its sequences.
    pub fn draw(&self) -> (Transformer<f64>, Vec<Matrix<f64>>) {
        let rng = &mut ChaCha8Rng::seed_from_u64(self.seed);
        let d = self.d;
        let pre_feed_forward = self.pre.map(|q| feed_forward(rng, q, d));
        let layer = |shape: &Shape, rng: &mut ChaCha8Rng| Layer {
            attention: shape.attention.clone().map(|a| attention(rng, a, d)),
            feed_forward: (shape.hidden > 0).then(|| feed_forward(rng, shape.hidden, d)),
        };
        let layers = self.layers.iter().map(|shape| layer(shape, rng)).collect();
        let words = matrix(rng, self.vocabulary, d).map(|x| f64::from((x * (d as f64).sqrt()) as f32));
        let mut sequence = |&n: &usize| {
            let ids: Vec<usize> = matrix(rng, n, 1).data.iter().map(|x| x.to_bits() as usize >> 29).collect();
            Matrix::new(n, d, ids.iter().flat_map(|id| words.row(id % self.vocabulary)).copied().collect())
        };
        let sequences = self.lengths.iter().map(&mut sequence).collect();
        (Transformer { d, pre_feed_forward, layers }, sequences)
    }
}

/// The Transformer with each number replaced.
pub fn map<T: Clone, U: Clone>(transformer: &Transformer<T>, change: impl Fn(&T) -> U) -> Transformer<U> {
    let list = |numbers: &[T]| numbers.iter().map(&change).collect::<Vec<U>>();
    let feed_forward = |f: &FeedForward<T>| FeedForward {
        w1: f.w1.map(&change),
        b1: list(&f.b1),
        w2: f.w2.map(&change),
        b2: list(&f.b2),
    };
    let head = |h: &AttentionHead<T>| AttentionHead {
        w_q: h.w_q.map(&change),
        w_k: h.w_k.map(&change),
        w_v: h.w_v.map(&change),
        w_o: h.w_o.map(&change),
    };
    let attention =
        |a: &Attention<T>| Attention { kind: a.kind, mask: a.mask.clone(), heads: a.heads.iter().map(head).collect() };
    let layer = |l: &Layer<T>| Layer {
        attention: l.attention.as_ref().map(attention),
        feed_forward: l.feed_forward.as_ref().map(feed_forward),
    };
    Transformer {
        d: transformer.d,
        pre_feed_forward: transformer.pre_feed_forward.as_ref().map(feed_forward),
        layers: transformer.layers.iter().map(layer).collect(),
    }
}
