//! A model: its parts and their numbers, which are floats or exact rationals.

mod file;

use std::collections::HashMap;

use crate::error::{Error, Result};

pub use file::{Fault, File, Hashes, Stored, open, parse, parse_exact, read};

/// How the numbers of a model are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Rationals, as text.
    Exact,
}

/// One attention layer (eq. 2); matrices row-major, heads one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention<T = f64> {
    /// Hardmax (eq. 5) instead of softmax.
    pub hard: bool,
    /// Whether a token sees only itself and those before it.
    pub causal: bool,
    /// The number of heads.
    pub heads: usize,
    /// The head size s.
    pub size: usize,
    /// `[heads, s, d]`
    pub w_q: Vec<T>,
    /// `[heads, s, d]`
    pub w_k: Vec<T>,
    /// `[heads, s, d]`
    pub w_v: Vec<T>,
    /// `W_O` transposed, `[heads, s, d]`: row k is where coordinate k of the heads' values goes.
    pub w_o: Vec<T>,
}

/// One feed-forward layer (eq. 3).
#[derive(Debug, Clone, PartialEq)]
pub struct FeedForward<T = f64> {
    /// The number of hidden units q.
    pub hidden: usize,
    /// `[q, d]`
    pub w1: Vec<T>,
    /// `[q]`
    pub b1: Vec<T>,
    /// `W2` transposed, `[q, d]`: row j is what unit j adds.
    pub w2: Vec<T>,
    /// `[d]`
    pub b2: Vec<T>,
}

/// One layer: attention, then feed-forward; either may be absent.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer<T = f64> {
    /// The attention.
    pub attention: Option<Attention<T>>,
    /// The feed-forward part.
    pub feed_forward: Option<FeedForward<T>>,
}

/// The head: scores per label.
#[derive(Debug, Clone, PartialEq)]
pub struct Head<T = f64> {
    /// The label names.
    pub labels: Vec<String>,
    /// `[labels, d]`
    pub weight: Vec<T>,
    /// `[labels]`
    pub bias: Vec<T>,
}

/// Word rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding<T = f64> {
    /// The row of each word.
    pub vocabulary: HashMap<String, u32>,
    /// `[words, d]`
    pub weight: Vec<T>,
}

/// A model; f64 holds every f32 exactly.
#[derive(Debug, Clone, PartialEq)]
pub struct Model<T = f64> {
    /// Embedding dimension.
    pub d: usize,
    /// How the numbers are stored.
    pub dtype: Dtype,
    /// The longest sequence it can read, if there is a limit.
    pub max_length: Option<usize>,
    /// Word rows, when inputs are words.
    pub embedding: Option<Embedding<T>>,
    /// `[max_length, d]`, when used.
    pub positions: Option<Vec<T>>,
    /// The quantizer of the universal approximator.
    pub pre_feed_forward: Option<FeedForward<T>>,
    /// The layers.
    pub layers: Vec<Layer<T>>,
    /// The head, when outputs are labels.
    pub head: Option<Head<T>>,
}

impl Model {
    /// Every tensor of the model, to be changed in place.
    fn tensors_mut(&mut self) -> impl Iterator<Item = &mut Vec<f64>> {
        let mut all: Vec<&mut Vec<f64>> = Vec::new();
        all.extend(self.embedding.as_mut().map(|e| &mut e.weight));
        all.extend(self.positions.as_mut());
        let mut feed_forwards: Vec<&mut FeedForward> = self.pre_feed_forward.iter_mut().collect();
        for layer in &mut self.layers {
            if let Some(a) = &mut layer.attention {
                all.extend([&mut a.w_q, &mut a.w_k, &mut a.w_v, &mut a.w_o]);
            }
            feed_forwards.extend(&mut layer.feed_forward);
        }
        for f in feed_forwards {
            all.extend([&mut f.w1, &mut f.b1, &mut f.w2, &mut f.b2]);
        }
        if let Some(h) = &mut self.head {
            all.extend([&mut h.weight, &mut h.bias]);
        }
        all.into_iter()
    }

    /// The model that a program in binary32 runs: every number rounded to nearest. An error names an overflow.
    pub fn rounded_to_f32(mut self) -> Result<Self> {
        for x in self.tensors_mut().flatten() {
            let rounded = *x as f32;
            if rounded.is_infinite() {
                return Err(Error::new("model.safetensors", format!("{x} does not fit f32"), "verify in f64 or real"));
            }
            *x = f64::from(rounded);
        }
        Ok(self)
    }
}

impl<T> Model<T> {
    /// Whether every attention layer is causal, so that a token's visible tokens are those up to it.
    pub fn causal(&self) -> bool {
        let mut attentions = self.layers.iter().filter_map(|layer| layer.attention.as_ref()).peekable();
        attentions.peek().is_some() && attentions.all(|a| a.causal)
    }
}
