//! A model as its directory has it (docs/format.md): parts, masks, and numbers that are not yet interpreted.

use std::sync::Arc;

use crate::number::{Dyadic, Format, Stored};

/// A tensor, kept as the bytes of the file; every number is finite (the reader has refused others).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its shape.
    pub shape: Vec<usize>,
    /// How its numbers are stored.
    pub stored: Stored,
    /// The numbers, little-endian, row-major; of a sparse matrix those that are stored.
    pub bytes: Arc<Vec<u8>>,
    /// Where the numbers of a sparse matrix stand.
    pub sparse: Option<Arc<Sparse>>,
}

/// Compressed rows: row i has numbers `rows[i]..rows[i + 1]` of those stored, in these columns, which rise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sparse {
    /// The column of every number that is stored.
    pub columns: Vec<u32>,
    /// Where each row starts, and the number of numbers at the end.
    pub rows: Vec<u32>,
}

impl Tensor {
    /// A tensor all of whose numbers are stored.
    pub fn dense(shape: Vec<usize>, stored: Stored, bytes: Vec<u8>) -> Self {
        Self { shape, stored, bytes: Arc::new(bytes), sparse: None }
    }

    /// How many numbers it has.
    pub fn len(&self) -> usize {
        if self.sparse.is_some() { self.shape.iter().product() } else { self.bytes.len() / self.stored.width() }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number `k` of those stored.
    fn stored(&self, k: usize) -> Dyadic {
        let width = self.stored.width();
        let mut bits = [0; 8];
        bits[..width].copy_from_slice(&self.bytes[k * width..(k + 1) * width]);
        Dyadic::from_stored(self.stored, u64::from_le_bytes(bits)).expect("the reader has refused infinities and NaN")
    }

    /// Columns of a matrix; the size of a vector.
    fn columns(&self) -> usize {
        self.shape.last().map_or(1, |columns| (*columns).max(1))
    }

    /// Number `i`, row by row.
    pub fn get(&self, i: usize) -> Dyadic {
        let Some(sparse) = &self.sparse else { return self.stored(i) };
        let (row, column) = (i / self.columns(), (i % self.columns()) as u32);
        let first = sparse.rows[row] as usize;
        let own = &sparse.columns[first..sparse.rows[row + 1] as usize];
        own.binary_search(&column).map_or(Dyadic::ZERO, |at| self.stored(first + at))
    }

    /// The numbers of a row that are not zero, with their columns.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, Dyadic)> + Clone + '_ {
        let sparse = self.sparse.as_deref();
        let first = i * self.columns();
        let stored = sparse.map_or(first..first + self.columns(), |s| s.rows[i] as usize..s.rows[i + 1] as usize);
        let column = move |k: usize| sparse.map_or_else(|| k - first, |sparse| sparse.columns[k] as usize);
        stored.map(move |k| (column(k), self.stored(k))).filter(|(_, x)| !x.is_zero())
    }
}

/// The numbers of a model: floats, or rationals as written in weights.json.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Numbers {
    /// f32 or f64.
    Floats(Tensor),
    /// Decimal numbers or quotients p/q, as text, row-major, with their shape.
    Exact(Vec<usize>, Vec<String>),
}

impl Numbers {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Floats(tensor) => tensor.len(),
            Self::Exact(_, texts) => texts.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which tokens of its own sequence token i sees (both counted from 0, the start token apart). Every token sees itself and
/// the start token. The start token sees what a token at place -1 would see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mask {
    /// All.
    None,
    /// j <= i.
    Causal,
    /// j < k, or j <= i.
    Prefix(usize),
    /// i - before <= j <= i + after.
    Band(usize, usize),
    /// Entry (i, j) of a square matrix of bytes, row-major: 1 where i sees j. (mask.safetensors, tensor "mask", U8 [n, n].)
    Matrix(usize, Vec<u8>),
}

/// One attention layer (eq. 2, eq. 5), its matrices in one form or another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention<M = Numbers> {
    /// Hardmax instead of softmax.
    pub hard: bool,
    /// Heads.
    pub heads: usize,
    /// Head size s.
    pub size: usize,
    /// Who sees whom.
    pub mask: Mask,
    /// `[heads, s, d]`.
    pub w_q: M,
    /// `[heads, s, d]`.
    pub w_k: M,
    /// `[heads, s, d]`.
    pub w_v: M,
    /// `[heads, d, s]`.
    pub w_o: M,
}

impl Attention {
    /// The same layer with its matrices in another form; nothing where one has none.
    pub fn map<M>(&self, to: impl Fn(&Numbers) -> Option<M>) -> Option<Attention<M>> {
        let Self { hard, heads, size, ref mask, .. } = *self;
        let (w_q, w_k, w_v, w_o) = (to(&self.w_q)?, to(&self.w_k)?, to(&self.w_v)?, to(&self.w_o)?);
        Some(Attention { hard, heads, size, mask: mask.clone(), w_q, w_k, w_v, w_o })
    }
}

/// One feed-forward layer (eq. 3), dense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedForward<M = Numbers> {
    /// Hidden units q.
    pub hidden: usize,
    /// `[q, d]`.
    pub w1: M,
    /// `[q]`.
    pub b1: M,
    /// `[d, q]`.
    pub w2: M,
    /// `[d]`.
    pub b2: M,
}

impl FeedForward {
    /// The same layer with its matrices in another form; nothing where one has none.
    pub fn map<M>(&self, to: impl Fn(&Numbers) -> Option<M>) -> Option<FeedForward<M>> {
        let (w1, b1, w2, b2) = (to(&self.w1)?, to(&self.b1)?, to(&self.w2)?, to(&self.b2)?);
        Some(FeedForward { hidden: self.hidden, w1, b1, w2, b2 })
    }
}

/// Attention, then feed-forward; either may be absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The attention.
    pub attention: Option<Attention>,
    /// The feed-forward part.
    pub feed_forward: Option<FeedForward>,
}

/// The head: scores of labels, or outputs of another dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The label names; none for outputs.
    pub labels: Option<Vec<String>>,
    /// `[rows, d]`.
    pub weight: Numbers,
    /// `[rows]`.
    pub bias: Numbers,
}

/// What a model computes with. Its numbers are of that kind, though they may be stored in fewer bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// Floats of one format.
    Float(Format),
    /// Rationals.
    Exact,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Dimension of a token.
    pub d: usize,
    /// What it computes with.
    pub dtype: Dtype,
    /// How many places have a vector; none without positions. A start token takes place 0.
    pub max_length: Option<usize>,
    /// The word of each row of the embedding, when inputs are words: (word, row), sorted by word.
    pub vocabulary: Option<Vec<(String, usize)>>,
    /// The row of the start token.
    pub start: Option<usize>,
    /// `[words, d]`, when inputs are words.
    pub embedding: Option<Numbers>,
    /// `[max_length, d]`, when positions are used.
    pub positions: Option<Numbers>,
    /// The block before the first layer.
    pub pre_feed_forward: Option<FeedForward>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// The head, if there is one.
    pub head: Option<Head>,
}
