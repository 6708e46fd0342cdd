//! Random architectures with numbers at all scales.

use super::case::{Attention, Block, Data, Head, Layer, Mask, Model, Token};
use super::random::Random;

/// What the numbers of a model look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Between about 1/4 and 4.
    Ordinary,
    /// An exponent per tensor, over the whole range.
    Wild,
    /// An exponent per entry, over the whole range.
    Mixed,
    /// Extreme tensors whose products are ordinary again.
    Balanced,
    /// Balanced, with scores so large that the softmax saturates.
    Saturated,
    /// Balanced, with one stage at the end of the range.
    Edge,
}

pub const SCALES: [(Scale, &str); 6] = [
    (Scale::Ordinary, "ordinary"),
    (Scale::Wild, "wild"),
    (Scale::Mixed, "mixed"),
    (Scale::Balanced, "balanced"),
    (Scale::Saturated, "saturated"),
    (Scale::Edge, "edge"),
];

/// How entries of one scale differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entries {
    Uniform,
    /// Integers from -3 to 3.
    Grid,
    /// Powers of two.
    Powers,
    /// Half of them 0.
    Sparse,
    /// In pairs of opposite sign, up to a little.
    Canceling,
    /// Exponents differ by a few tens.
    Spread,
    /// A few last bits from a power of two, and little more or less than half of such a bit.
    Halfway,
}

pub struct Draw<'a> {
    pub random: &'a mut Random,
    pub single: bool,
    pub scale: Scale,
    entries: Entries,
    /// The range of exponents.
    low: i64,
    high: i64,
    /// The exponent of tokens.
    x: i64,
    /// The mask of a file.
    matrix: u64,
    /// Whether models may be so wide that long sums go in fixed point.
    wide: bool,
}

impl<'a> Draw<'a> {
    pub fn new(random: &'a mut Random, single: bool, scale: Scale) -> Self {
        use Entries::{Canceling, Grid, Halfway, Powers, Sparse, Spread, Uniform};
        let entries = [Uniform, Uniform, Grid, Powers, Sparse, Canceling, Spread, Halfway][random.below(8)];
        let (low, high) = if single { (-149, 127) } else { (-1074, 1023) };
        let matrix = random.bits() | 0x8040_2010_0804_0201;
        Self { random, single, scale, entries, low, high, x: 0, matrix, wide: false }
    }

    pub fn wide(self, wide: bool) -> Self {
        Self { wide, ..self }
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.random.below((high - low + 1) as usize) as i64
    }

    /// To the nearest finite number of the format.
    pub fn fit(&self, x: f64) -> f64 {
        if self.single { f64::from((x as f32).clamp(f32::MIN, f32::MAX)) } else { x.clamp(f64::MIN, f64::MAX) }
    }

    /// Some numbers of about 2^exponent; `width` is the length of a row.
    pub fn numbers(&mut self, n: usize, exponent: i64, width: usize) -> Vec<f64> {
        let exponent = match self.scale {
            Scale::Wild => self.between(self.low, self.high),
            _ => exponent.clamp(self.low - 3, self.high),
        };
        let entries = if self.random.once_in(6) { Entries::Uniform } else { self.entries };
        let mut out: Vec<f64> = (0..n).map(|_| self.entry(exponent, entries)).collect();
        if entries == Entries::Canceling && width > 1 {
            for row in out.chunks_mut(width) {
                for pair in row.chunks_exact_mut(2) {
                    let little = if self.random.once_in(2) { 0.0 } else { self.random.signed() * pair[0] * 1e-6 };
                    pair[1] = little - pair[0];
                }
            }
        }
        out.into_iter().map(|x| self.fit(x)).collect()
    }

    fn entry(&mut self, exponent: i64, entries: Entries) -> f64 {
        let exponent = if self.scale == Scale::Mixed { self.between(self.low, self.high) } else { exponent };
        let (x, exponent) = match entries {
            Entries::Grid => (self.between(-3, 3) as f64, exponent),
            Entries::Powers => {
                let sign = if self.random.once_in(2) { 1.0 } else { -1.0 };
                (sign, exponent + self.between(-2, 2))
            }
            Entries::Sparse if self.random.once_in(2) => (0.0, 0),
            Entries::Halfway => (self.halfway(), exponent),
            Entries::Spread => (self.random.signed(), exponent + self.between(-24, 4)),
            _ => (self.random.signed(), exponent),
        };
        scaled(x, exponent)
    }

    fn halfway(&mut self) -> f64 {
        let bit = if self.single { 2_f64.powi(-24) } else { 2_f64.powi(-53) };
        let sign = if self.random.once_in(4) { -1.0 } else { 1.0 };
        sign * match self.random.below(4) {
            0 => 0.0,
            1 => 1.0 + bit * self.between(-4, 4) as f64,
            _ => bit / 2.0 * (1.0 + [0.0, 1e-5, -1e-5, 1.0][self.random.below(4)]),
        }
    }

    /// An exponent over the whole range, or near its ends.
    fn anywhere(&mut self) -> i64 {
        match self.scale {
            Scale::Ordinary => self.between(-2, 2),
            Scale::Edge if self.random.once_in(2) => self.between(self.high - 6, self.high),
            Scale::Edge => self.between(self.low - 2, self.low + 30),
            _ if self.random.once_in(3) => self.between(-4, 4),
            _ => self.between(self.low, self.high),
        }
    }

    fn block(&mut self, d: usize, x: i64) -> Block {
        // So many that a checker may take its tables.
        let hidden = match self.random.below(24) {
            0 => 64 + self.random.below(8),
            1 if self.wide => 16 + self.random.below(17),
            _ => 1 + self.random.below(12),
        };
        let unit = self.anywhere();
        let out = x + self.between(-3, 3);
        Block {
            hidden,
            w1: self.numbers(hidden * d, unit - x, d),
            b1: self.numbers(hidden, unit, 1),
            w2: self.numbers(d * hidden, out - unit, hidden),
            b2: self.numbers(d, out, 1),
        }
    }

    fn attention(&mut self, d: usize, x: i64, second: bool) -> Attention {
        let (heads, size) = (1 + self.random.below(3), 1 + self.random.below(4));
        let score = match self.scale {
            Scale::Saturated => self.between(5, 40),
            // Products of keys and queries that are lost.
            Scale::Edge if self.random.once_in(3) => self.between(self.low - 40, self.low + 10),
            _ => self.between(-6, 7),
        };
        let (key, value) = (self.anywhere(), self.anywhere());
        let out = x + self.between(-3, 3);
        let n = heads * size * d;
        let w_k = self.numbers(n, key - x, d);
        let w_v = if self.random.once_in(3) { w_k.clone() } else { self.numbers(n, value - x, d) };
        let mask = match self.random.below(if second { 6 } else { 3 }) {
            0 => Mask::Causal,
            3 => Mask::Prefix(self.random.below(4)),
            4 => Mask::Band(self.random.below(3), self.random.below(3)),
            5 => Mask::Matrix(self.matrix),
            _ => Mask::None,
        };
        let (w_q, w_o) = (self.numbers(n, score - key - x, d), self.numbers(n, out - value, size));
        let mut attention = Attention { hard: self.random.once_in(4), heads, size, mask, w_q, w_k, w_v, w_o };
        if size > 1 && self.random.once_in(5) {
            self.cancel_scores(&mut attention, d);
        }
        attention
    }

    /// The first two products of every score cancel, all or nearly: what is left is rounding.
    fn cancel_scores(&mut self, a: &mut Attention, d: usize) {
        let little = [0.0, 0.0, 1e-7, 1e-4][self.random.below(4)];
        for head in 0..a.heads {
            let first = head * a.size * d;
            for c in first..first + d {
                a.w_k[c + d] = a.w_k[c];
                let nearly = 1.0 + little * self.random.signed();
                a.w_q[c + d] = self.fit(-a.w_q[c] * nearly);
            }
        }
    }

    /// A model; `second` allows what only the second format has.
    pub fn model(&mut self, labels: Option<usize>, second: bool) -> Model {
        let d = if self.wide && self.random.once_in(20) { 16 + self.random.below(9) } else { 1 + self.random.below(8) };
        let x = if self.random.once_in(2) { self.between(-3, 3) } else { self.anywhere() };
        self.x = x;
        let words = 2 + self.random.below(4);
        let reads_words = self.random.below(5) > 0;
        let embedding = reads_words.then(|| self.numbers(words * d, x, d));
        let positions = if self.random.once_in(2) { Some(self.numbers(6 * d, x, d)) } else { None };
        let start = (second && reads_words && self.random.once_in(3)).then(|| self.random.below(words));
        let pre = if self.random.once_in(4) { Some(self.block(d, x)) } else { None };
        let mut layers = Vec::new();
        for _ in 0..=[0, 0, 0, 1, 1, 2][self.random.below(6)] {
            let attention = if self.random.once_in(6) { None } else { Some(self.attention(d, x, second)) };
            let block = if attention.is_some() && self.random.once_in(3) { None } else { Some(self.block(d, x)) };
            layers.push(Layer { attention, block });
        }
        let score = self.anywhere();
        let mut head = labels.map(|rows| Head {
            labels: true,
            rows,
            weight: self.numbers(rows * d, score - x, d),
            bias: self.numbers(rows, score, 1),
        });
        if let Some(head) = head.as_mut().filter(|_| self.random.once_in(4)) {
            self.tie(head, d);
        }
        Model { single: self.single, d, embedding, start, positions, pre, layers, head }
    }

    /// Makes two labels nearly equal: their rows are the same, but for one last bit in half of the cases.
    fn tie(&mut self, head: &mut Head, d: usize) {
        let (a, b) = (self.random.below(head.rows), self.random.below(head.rows));
        let row = head.weight[a * d..(a + 1) * d].to_vec();
        head.weight[b * d..(b + 1) * d].copy_from_slice(&row);
        head.bias[b] = head.bias[a];
        if self.random.once_in(2) {
            let x = &mut head.weight[b * d + self.random.below(d)];
            *x = if self.single { f64::from((*x as f32).next_up()) } else { x.next_up() };
            *x = self.fit(*x);
        }
    }

    /// Sequences of words, or of vectors out of a few.
    pub fn sequences(&mut self, model: &Model) -> Data {
        let longest = 5;
        let vectors: Vec<Vec<f64>> = (0..4).map(|_| self.numbers(model.d, self.x, model.d)).collect();
        let mut data = Data::default();
        for _ in 0..=self.random.below(4) {
            let mut sequence = Vec::new();
            for _ in 0..=self.random.below(longest) {
                sequence.push(match model.words() {
                    0 => Token::Vector(vectors[self.random.below(4)].clone()),
                    words => Token::Word(self.random.below(words)),
                });
            }
            data.sequences.push(sequence);
        }
        data
    }
}

/// x 2^exponent in f64, without overflow on the way.
pub fn scaled(x: f64, exponent: i64) -> f64 {
    let half = exponent / 2;
    x * 2_f64.powi(half as i32) * 2_f64.powi((exponent - half) as i32)
}
