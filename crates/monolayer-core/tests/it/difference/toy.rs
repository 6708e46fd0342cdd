//! Small models with a gate or two, and programs that run them with sums in any order.

use monolayer_core::model::{Attention, Dtype, FeedForward, Head, Layer, Mask, Model, Numbers, Tensor};
use monolayer_core::{Dyadic, Format, Stored};

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ x >> 31) % n as u64) as usize
    }

    pub fn unit(&mut self) -> f64 {
        self.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the format, often a short one.
    pub fn number(&mut self, single: bool) -> f64 {
        let x = 2.0 * self.unit() - 1.0;
        let x = match self.below(4) {
            0 => (x * 4.0).round() / 4.0,
            1 => (x * 64.0).round() / 64.0,
            _ => x,
        };
        round(x, single)
    }
}

pub fn round(x: f64, single: bool) -> f64 {
    if single { f64::from(x as f32) } else { x }
}

/// A model: codes of words and places, a coordinate for the id, and one for each label.
#[derive(Clone)]
pub struct Toy {
    pub single: bool,
    pub d: usize,
    pub labels: usize,
    pub hidden: usize,
    pub words: Vec<Vec<f64>>,
    pub places: Option<Vec<Vec<f64>>>,
    pub start: Option<usize>,
    pub mask: Mask,
    pub attention: [Vec<f64>; 4],
    pub w1: Vec<Vec<f64>>,
    pub b1: Vec<f64>,
    /// By units.
    pub w2: Vec<Vec<f64>>,
    pub b2: Vec<f64>,
    pub head: Vec<Vec<f64>>,
    pub bias: Vec<f64>,
}

impl Toy {
    pub fn format(&self) -> Format {
        if self.single { Format::F32 } else { Format::F64 }
    }

    fn tensor(&self, shape: &[usize], entries: impl Iterator<Item = f64>) -> Numbers {
        let bytes = |x: f64| if self.single { (x as f32).to_le_bytes().to_vec() } else { x.to_le_bytes().to_vec() };
        let stored = if self.single { Stored::F32 } else { Stored::F64 };
        Numbers::Floats(Tensor::dense(shape.to_vec(), stored, entries.flat_map(bytes).collect()))
    }

    pub fn model(&self) -> Model {
        let d = self.d;
        let flat = |rows: &[Vec<f64>]| rows.concat().into_iter();
        let [w_q, w_k, w_v, w_o] = &self.attention;
        let row = |x: &Vec<f64>, shape: &[usize]| self.tensor(shape, x.iter().copied());
        let attention = Attention {
            hard: false,
            heads: 1,
            size: 1,
            mask: self.mask.clone(),
            w_q: row(w_q, &[1, 1, d]),
            w_k: row(w_k, &[1, 1, d]),
            w_v: row(w_v, &[1, 1, d]),
            w_o: row(w_o, &[1, d, 1]),
        };
        let w2 = (0..d).flat_map(|c| self.w2.iter().map(move |unit| unit[c]));
        let feed_forward = FeedForward {
            hidden: self.hidden,
            w1: self.tensor(&[self.hidden, d], flat(&self.w1)),
            b1: row(&self.b1, &[self.hidden]),
            w2: self.tensor(&[d, self.hidden], w2),
            b2: row(&self.b2, &[d]),
        };
        Model {
            d,
            dtype: Dtype::Float(self.format()),
            max_length: self.places.as_ref().map(Vec::len),
            vocabulary: Some((0..self.words.len()).map(|w| (name(w), w)).collect()),
            start: self.start,
            embedding: Some(self.tensor(&[self.words.len(), d], flat(&self.words))),
            positions: self.places.as_ref().map(|places| self.tensor(&[places.len(), d], flat(places))),
            pre_feed_forward: None,
            layers: vec![Layer { attention: Some(attention), feed_forward: Some(feed_forward) }],
            head: Some(Head {
                labels: Some((0..self.labels).map(|l| format!("L{l}")).collect()),
                weight: self.tensor(&[self.labels, d], flat(&self.head)),
                bias: row(&self.bias, &[self.labels]),
            }),
        }
    }

    /// A new unit at the end, or in place of a unit of zeros.
    pub fn add(&mut self, w1: Vec<f64>, b1: f64, w2: Vec<f64>) {
        let zero = |j: &usize| self.b1[*j] == 0.0 && self.w1[*j].iter().chain(&self.w2[*j]).all(|w| *w == 0.0);
        if let Some(j) = (0..self.hidden).find(zero) {
            (self.w1[j], self.b1[j], self.w2[j]) = (w1, b1, w2);
            return;
        }
        self.w1.push(w1);
        self.b1.push(b1);
        self.w2.push(w2);
        self.hidden += 1;
    }

    pub fn input(&self, word: usize, place: usize) -> Vec<f64> {
        let sum = |c: usize| {
            self.places.as_ref().map_or(self.words[word][c], |p| round(self.words[word][c] + p[place][c], self.single))
        };
        (0..self.d).map(sum).collect()
    }

    fn sees(&self, i: usize, j: usize) -> bool {
        match &self.mask {
            Mask::None => true,
            Mask::Causal => j <= i,
            Mask::Prefix(k) => j < *k || j <= i,
            Mask::Band(before, after) => i <= j + before && j <= i + after,
            Mask::Matrix(n, bytes) => bytes[i * n + j] == 1,
        }
    }
}

pub fn name(w: usize) -> String {
    char::from(b'a' + w as u8).to_string()
}

/// A program: how it adds up is drawn anew for every sum, from a seed, so that two models are run in the same way.
pub struct Program {
    pub seed: u64,
    pub single: bool,
}

impl Program {
    /// A sum of products in some order, along some tree; products are rounded or fused.
    pub fn sum(&self, which: u64, terms: &[(f64, f64)]) -> f64 {
        let single = self.single;
        let mut random = Random(self.seed ^ which.wrapping_mul(0xD134_2543_DE82_EF95));
        let mut order: Vec<usize> = (0..terms.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, random.below(i + 1));
        }
        let fused = random.below(2) == 0;
        let product = |i: usize| round(terms[i].0 * terms[i].1, single);
        if random.below(2) == 0 {
            // A tree: two neighbors become one, until one is left.
            let mut sums: Vec<f64> = order.iter().map(|i| product(*i)).collect();
            while sums.len() > 1 {
                let at = random.below(sums.len() - 1);
                sums[at] = round(sums[at] + sums[at + 1], single);
                sums.remove(at + 1);
            }
            return sums.first().copied().unwrap_or(0.0);
        }
        let step = |sum: f64, i: &usize| {
            let (a, b) = terms[*i];
            match (fused, single) {
                (true, true) => f64::from((a as f32).mul_add(b as f32, sum as f32)),
                (true, false) => a.mul_add(b, sum),
                _ => round(sum + product(*i), single),
            }
        };
        order.iter().fold(0.0, step)
    }

    fn dot(&self, which: u64, a: &[f64], b: &[f64]) -> f64 {
        self.sum(which, &a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>())
    }

    /// What the head reads for every token of a sequence, the start token left out.
    pub fn reads(&self, toy: &Toy, sequence: &[usize]) -> Vec<f64> {
        let start = usize::from(toy.start.is_some());
        let all: Vec<usize> = toy.start.into_iter().chain(sequence.iter().copied()).collect();
        let x: Vec<Vec<f64>> = all.iter().enumerate().map(|(k, w)| toy.input(*w, k)).collect();
        let project = |m: usize| -> Vec<f64> {
            let one = |(i, x): (usize, &Vec<f64>)| self.dot((m * 1000 + i) as u64, &toy.attention[m], x);
            x.iter().enumerate().map(one).collect()
        };
        let [q, k, v] = [0, 1, 2].map(project);
        let read = |i: usize| {
            let sees = |j: &usize| *j < start || toy.sees(i - start, j - start);
            let seen: Vec<usize> = (0..all.len()).filter(sees).collect();
            let scores: Vec<f64> = seen.iter().map(|j| round(k[*j] * q[i], self.single)).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> =
                scores.iter().map(|s| round(round(s - most, self.single).exp(), self.single)).collect();
            let ones: Vec<(f64, f64)> = weights.iter().map(|w| (*w, 1.0)).collect();
            let total = self.sum(5000 + i as u64, &ones);
            if self.seed.is_multiple_of(2) {
                let terms: Vec<(f64, f64)> = weights.iter().zip(&seen).map(|(w, j)| (*w, v[*j])).collect();
                return round(self.sum(6000 + i as u64, &terms) / total, self.single);
            }
            let terms = weights.iter().zip(&seen).map(|(w, j)| (round(w / total, self.single), v[*j]));
            self.sum(7000 + i as u64, &terms.collect::<Vec<_>>())
        };
        (start..all.len()).map(read).collect()
    }

    /// The scores of a token where the head reads z; with so many units, those that are not there giving nothing.
    pub fn scores(&self, toy: &Toy, x: &[f64], z: f64, units: usize) -> Vec<f64> {
        let skip = |c: usize| self.sum(8000 + c as u64, &[(x[c], 1.0), (toy.attention[3][c], z)]);
        let h: Vec<f64> = (0..toy.d).map(skip).collect();
        let unit = |j: usize| {
            if j >= toy.hidden {
                return 0.0;
            }
            let terms = h.iter().zip(&toy.w1[j]).map(|(h, w)| (*w, *h)).chain([(toy.b1[j], 1.0)]);
            let before = self.sum(9000 + j as u64, &terms.collect::<Vec<_>>());
            if before > 0.0 { before } else { 0.0 * before }
        };
        let units: Vec<f64> = (0..units).map(unit).collect();
        let output = |c: usize| {
            let on = units.iter().enumerate().map(|(j, a)| (if j < toy.hidden { toy.w2[j][c] } else { 0.0 }, *a));
            let terms = on.chain([(h[c], 1.0), (toy.b2[c], 1.0)]);
            self.sum(10_000 + c as u64, &terms.collect::<Vec<_>>())
        };
        let y: Vec<f64> = (0..toy.d).map(output).collect();
        let score = |l: usize| {
            let terms = y.iter().zip(&toy.head[l]).map(|(y, w)| (*w, *y)).chain([(toy.bias[l], 1.0)]);
            self.sum(11_000 + l as u64, &terms.collect::<Vec<_>>())
        };
        (0..toy.labels).map(score).collect()
    }
}

/// The first of the greatest scores.
pub fn label(scores: &[f64]) -> usize {
    (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best })
}

pub fn float(x: Dyadic) -> f64 {
    let half = x.e / 2;
    x.m as f64 * 2_f64.powi(half) * 2_f64.powi(x.e - half)
}

pub fn dyadic(x: f64) -> Dyadic {
    Dyadic::from_bits(Format::F64, x.to_bits()).unwrap()
}
