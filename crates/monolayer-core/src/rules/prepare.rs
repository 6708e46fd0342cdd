//! The numbers of a model as the rules use them.

use super::sum::Arithmetic;
use crate::model::{self, Mask, Model, Numbers};
use crate::number::Dyadic;

/// A row without its zeros: (column, weight).
pub type Row = Vec<(usize, Dyadic)>;

/// A layer adds at most some thousands to an exponent: after so many, exponents of balls are far from the ends of an i32.
const MOST_LAYERS: usize = 1 << 14;

/// One attention layer.
pub struct Attention {
    /// Hardmax instead of softmax.
    pub hard: bool,
    /// Heads.
    pub heads: usize,
    /// Head size.
    pub size: usize,
    /// Who sees whom.
    pub mask: Mask,
    /// Rows of `W_Q`, all heads.
    pub w_q: Vec<Row>,
    /// Rows of `W_K`.
    pub w_k: Vec<Row>,
    /// Rows of `W_V`.
    pub w_v: Vec<Row>,
    /// For each coordinate of a token, what it gets from each coordinate of the heads' values.
    pub w_o: Vec<Row>,
}

/// One feed-forward layer.
pub struct FeedForward {
    /// Rows of W1, a row per unit.
    pub w1: Vec<Row>,
    /// b1.
    pub b1: Vec<Dyadic>,
    /// W2 transposed, dense: what unit j adds to coordinate c is number j d + c.
    pub w2: Vec<Dyadic>,
    /// b2.
    pub b2: Vec<Dyadic>,
}

/// Attention and feed-forward; either may be absent.
pub struct Layer {
    /// The attention.
    pub attention: Option<Attention>,
    /// The feed-forward part.
    pub feed_forward: Option<FeedForward>,
}

/// Scores of labels, or outputs.
pub struct Head {
    /// A row per label or output.
    pub weight: Vec<Row>,
    /// A number per label or output.
    pub bias: Vec<Dyadic>,
}

/// A model of floats, rounded to the format that is judged.
pub struct Prepared<'a> {
    /// The model.
    pub model: &'a Model,
    /// The arithmetic.
    pub arithmetic: Arithmetic,
    /// The block before the first layer.
    pub pre: Option<FeedForward>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// The head.
    pub head: Option<Head>,
}

/// The numbers of a tensor in the arithmetic that is judged; nothing for exact models and for what overflows.
struct Reader(Arithmetic);

impl Reader {
    fn number(&self, numbers: &Numbers, i: usize) -> Option<Dyadic> {
        let Numbers::Floats(tensor) = numbers else { return None };
        match self.0 {
            Arithmetic::Real => Some(tensor.get(i)),
            Arithmetic::Float { format, .. } => tensor.get(i).nearest(format),
        }
    }

    fn list(&self, numbers: &Numbers) -> Option<Vec<Dyadic>> {
        let Numbers::Floats(tensor) = numbers else { return None };
        (0..tensor.len()).map(|i| self.number(numbers, i)).collect()
    }

    /// Rows of a matrix; with `place` (row, column) -> index.
    fn rows(
        &self,
        numbers: &Numbers,
        rows: usize,
        columns: usize,
        place: impl Fn(usize, usize) -> usize,
    ) -> Option<Vec<Row>> {
        let row = |r: usize| {
            let mut row = Row::new();
            for c in 0..columns {
                let w = self.number(numbers, place(r, c))?;
                if !w.is_zero() {
                    row.push((c, w));
                }
            }
            Some(row)
        };
        (0..rows).map(row).collect()
    }

    fn feed_forward(&self, part: &model::FeedForward, d: usize) -> Option<FeedForward> {
        let q = part.hidden;
        Some(FeedForward {
            w1: self.rows(&part.w1, q, d, |j, c| j * d + c)?,
            b1: self.list(&part.b1)?,
            w2: (0..q * d).map(|i| self.number(&part.w2, i % d * q + i / d)).collect::<Option<_>>()?,
            b2: self.list(&part.b2)?,
        })
    }

    fn attention(&self, part: &model::Attention, d: usize) -> Option<Attention> {
        let (heads, size) = (part.heads, part.size);
        let width = heads * size;
        let rows = |numbers| self.rows(numbers, width, d, |k, c| k * d + c);
        let (hard, mask) = (part.hard, part.mask.clone());
        let (w_q, w_k, w_v) = (rows(&part.w_q)?, rows(&part.w_k)?, rows(&part.w_v)?);
        let w_o = self.rows(&part.w_o, d, width, |c, k| (k / size * d + c) * size + k % size)?;
        Some(Attention { hard, heads, size, mask, w_q, w_k, w_v, w_o })
    }
}

impl<'a> Prepared<'a> {
    /// Prepares a model of floats; nothing for an exact one, for too many layers, and where a number overflows the format.
    pub fn new(model: &'a Model, arithmetic: Arithmetic) -> Option<Self> {
        // So few layers that no exponent leaves the range of an i32.
        if model.layers.len() > 1 << 14 {
            return None;
        }
        let (read, d) = (Reader(arithmetic), model.d);
        if model.layers.len() > MOST_LAYERS {
            return None;
        }
        let pre = match &model.pre_feed_forward {
            Some(part) => Some(read.feed_forward(part, d)?),
            None => None,
        };
        let mut layers = Vec::new();
        for layer in &model.layers {
            let attention = match &layer.attention {
                Some(part) => Some(read.attention(part, d)?),
                None => None,
            };
            let feed_forward = match &layer.feed_forward {
                Some(part) => Some(read.feed_forward(part, d)?),
                None => None,
            };
            layers.push(Layer { attention, feed_forward });
        }
        let head = match &model.head {
            Some(head) => {
                let bias = read.list(&head.bias)?;
                Some(Head { weight: read.rows(&head.weight, bias.len(), d, |l, c| l * d + c)?, bias })
            }
            None => None,
        };
        Some(Self { model, arithmetic, pre, layers, head })
    }

    /// A vector in the arithmetic that is judged; nothing where it overflows.
    pub fn rounded(&self, token: &[Dyadic]) -> Option<Vec<Dyadic>> {
        match self.arithmetic {
            Arithmetic::Real => Some(token.to_vec()),
            Arithmetic::Float { format, .. } => token.iter().map(|x| x.nearest(format)).collect(),
        }
    }

    /// The vector of a word (or a given vector) at a place, as a program computes it: one addition, rounded to nearest.
    pub fn input(&self, token: &[Dyadic], place: usize) -> Option<Vec<Dyadic>> {
        let (read, token) = (Reader(self.arithmetic), self.rounded(token)?);
        let Some(positions) = &self.model.positions else { return Some(token) };
        let one = |(c, x): (usize, &Dyadic)| {
            let y = read.number(positions, place * self.model.d + c)?;
            match self.arithmetic {
                Arithmetic::Real => x.plus_exactly(y),
                Arithmetic::Float { format, .. } => x.plus(y, format),
            }
        };
        token.iter().enumerate().map(one).collect()
    }
}
