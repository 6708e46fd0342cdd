//! What is trained: the sizes of a Transformer, and where each of its tensors stands in one list of numbers.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The sizes of a Transformer (4), with rank-1 attention (20) where `head_size` is 1, `heads` is 1 and `tied` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Architecture {
    /// Words in the vocabulary, one embedding row each; `None` where inputs are vectors.
    pub words: Option<usize>,
    /// The embedding dimension d.
    pub dim: usize,
    /// Blocks of attention and feed-forward.
    pub layers: usize,
    /// Hidden units q of a feed-forward block.
    pub hidden: usize,
    /// Attention heads.
    pub heads: usize,
    /// Rows s of the key, query and value weights of a head: their rank.
    pub head_size: usize,
    /// Whether values use the weights of the keys, as in eq. 20.
    pub tied: bool,
    /// Whether a token sees only itself and those before it.
    pub causal: bool,
    /// Places with a trained vector each; `None` without positions.
    pub positions: Option<usize>,
    /// Layer norm after each sum with a skip, as in Transformers that are not the paper's.
    pub layer_norm: bool,
    /// Labels that a linear head scores; `None` where the output vectors are the answer.
    pub labels: Option<usize>,
}

/// A named part of the list of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// As in a model file, as far as that has it.
    pub name: String,
    /// Where its numbers are.
    pub range: Range<usize>,
    /// Inputs that an output sums over: numbers start uniform within 1 / sqrt(fan_in).
    pub fan_in: usize,
}

/// Where a layer's tensors are. All but `w_o` are laid out as in a model file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayerLayout {
    /// Rows of W_Q, then W_K, then, unless tied, W_V, all heads of each: `[rows, d]`.
    pub project: Range<usize>,
    /// `[heads * head_size, d]`: transposed, so that a component's row is the direction it is added along.
    pub w_o: Range<usize>,
    pub norm_1: Range<usize>,
    pub w1: Range<usize>,
    pub b1: Range<usize>,
    pub w2: Range<usize>,
    pub b2: Range<usize>,
    pub norm_2: Range<usize>,
}

/// Where all tensors but the embedding are, whose rows are kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The tensors in order, without gaps.
    pub tensors: Vec<Tensor>,
    pub(crate) positions: Range<usize>,
    pub(crate) layers: Vec<LayerLayout>,
    pub(crate) head_weight: Range<usize>,
    pub(crate) head_bias: Range<usize>,
}

impl Architecture {
    /// Rows of all key, query and value weights of a layer.
    pub(crate) fn projections(&self) -> usize {
        self.mixed() * if self.tied { 2 } else { 3 }
    }

    /// Components that attention adds to a token.
    pub(crate) fn mixed(&self) -> usize {
        self.heads * self.head_size
    }

    /// Where each tensor stands.
    pub fn layout(&self) -> Layout {
        let mut tensors: Vec<Tensor> = Vec::new();
        let mut add = |name: String, len: usize, fan_in: usize| {
            let start = tensors.last().map_or(0, |t: &Tensor| t.range.end);
            let range = start..start + len;
            if len > 0 {
                tensors.push(Tensor { name, range: range.clone(), fan_in });
            }
            range
        };
        let (d, q, mixed) = (self.dim, self.hidden, self.mixed());
        let norm = if self.layer_norm { 2 * d } else { 0 };
        let positions = add("positions.weight".into(), self.positions.unwrap_or(0) * d, 1);
        let layers = (0..self.layers)
            .map(|i| {
                let mut add = |name: &str, len, fan_in| add(format!("layers.{i}.{name}"), len, fan_in);
                let w_q = add("attention.w_q", mixed * d, d);
                let w_k = add("attention.w_k", mixed * d, d);
                let w_v = add("attention.w_v", if self.tied { 0 } else { mixed * d }, d);
                LayerLayout {
                    project: w_q.start..w_v.end.max(w_k.end),
                    w_o: add("attention.w_o", mixed * d, mixed),
                    norm_1: add("norm_1", norm, 1),
                    w1: add("feed_forward.w1", q * d, d),
                    b1: add("feed_forward.b1", q, d),
                    w2: add("feed_forward.w2", d * q, q),
                    b2: add("feed_forward.b2", if q > 0 { d } else { 0 }, q),
                    norm_2: add("norm_2", norm, 1),
                }
            })
            .collect();
        let labels = self.labels.unwrap_or(0);
        let head_weight = add("head.weight".into(), labels * d, d);
        let head_bias = add("head.bias".into(), labels, d);
        Layout { tensors, positions, layers, head_weight, head_bias }
    }

    /// Trained numbers, the embedding included.
    pub fn parameters(&self) -> usize {
        self.words.unwrap_or(0) * self.dim + self.layout().len()
    }
}

impl Layout {
    /// Numbers in all tensors.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |t| t.range.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The tensor that holds number `i`.
    pub fn tensor_at(&self, i: usize) -> &Tensor {
        &self.tensors[self.tensors.partition_point(|t| t.range.end <= i)]
    }
}
