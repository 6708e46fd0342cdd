//! Programs in binary32 and binary64 that sum in a random order, fuse at random, and have an exp of random error.

use std::ops::{Add, Div, Mul, Sub};

use monolayer_check::model::{Attention, FeedForward, Model};

use crate::random::Random;

pub trait Float:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn of(x: f64) -> Self;
    fn fused(self, b: Self, c: Self) -> Self;
    /// exp, off by up to `ulps` units in the last place.
    fn exp_off(self, ulps: i64) -> Self;
}

impl Float for f32 {
    fn of(x: f64) -> Self {
        x as f32
    }
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
    fn exp_off(self, ulps: i64) -> Self {
        let exact = core_math::expf(self);
        f32::from_bits((i64::from(exact.to_bits()) + ulps).max(0) as u32)
    }
}

impl Float for f64 {
    fn of(x: f64) -> Self {
        x
    }
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
    fn exp_off(self, ulps: i64) -> Self {
        f64::from_bits((core_math::exp(self).to_bits() as i64 + ulps).max(0) as u64)
    }
}

pub struct Program<'a, F> {
    pub random: &'a mut Random,
    pub zero: F,
}

impl<F: Float> Program<'_, F> {
    /// A sum along a random tree.
    fn sum(&mut self, mut terms: Vec<F>) -> F {
        while terms.len() > 1 {
            let a = terms.swap_remove(self.random.below(terms.len()));
            let b = self.random.below(terms.len());
            terms[b] = terms[b] + a;
        }
        terms.pop().unwrap_or(self.zero)
    }

    /// A dot product: products first and a random tree, or fused in a random order.
    fn dot(&mut self, mut pairs: Vec<(F, F)>, extra: Vec<F>) -> F {
        if self.random.once_in(2) {
            let mut terms: Vec<F> = pairs.iter().map(|&(a, b)| a * b).collect();
            terms.extend(extra);
            return self.sum(terms);
        }
        let mut sum = self.sum(extra);
        while !pairs.is_empty() {
            let (a, b) = pairs.swap_remove(self.random.below(pairs.len()));
            sum = a.fused(b, sum);
        }
        sum
    }

    fn row(&mut self, w: &[f64], x: &[F], extra: Vec<F>) -> F {
        self.dot(w.iter().zip(x).map(|(&w, &x)| (F::of(w), x)).collect(), extra)
    }

    fn feed_forward(&mut self, part: &FeedForward, h: &[F]) -> Vec<F> {
        let d = h.len();
        let units: Vec<F> = (0..part.hidden)
            .map(|j| {
                let unit = self.row(&part.w1[j * d..(j + 1) * d], h, vec![F::of(part.b1[j])]);
                if unit > self.zero { unit } else { self.zero }
            })
            .collect();
        (0..d)
            .map(|c| {
                let column: Vec<f64> = (0..part.hidden).map(|j| part.w2[j * d + c]).collect();
                self.row(&column, &units, vec![h[c], F::of(part.b2[c])])
            })
            .collect()
    }

    fn attend(&mut self, a: &Attention, tokens: &[Vec<F>]) -> Vec<Vec<F>> {
        let d = tokens[0].len();
        let width = a.heads * a.size;
        let mut project = |w: &[f64]| -> Vec<Vec<F>> {
            tokens.iter().map(|x| (0..width).map(|k| self.row(&w[k * d..(k + 1) * d], x, vec![])).collect()).collect()
        };
        let (queries, keys, values) = (project(&a.w_q), project(&a.w_k), project(&a.w_v));
        (0..tokens.len())
            .map(|i| {
                let visible = if a.causal { i + 1 } else { tokens.len() };
                let mut z = Vec::new();
                for head in 0..a.heads {
                    let columns = head * a.size..(head + 1) * a.size;
                    let scores: Vec<F> = (0..visible)
                        .map(|j| self.dot(columns.clone().map(|k| (keys[j][k], queries[i][k])).collect(), vec![]))
                        .collect();
                    let weights = self.weights(&scores, a.hard);
                    let total = self.sum(weights.clone());
                    let before = self.random.once_in(2);
                    for k in columns {
                        let pairs = |scale: bool| {
                            (0..visible)
                                .map(|j| (if scale { weights[j] / total } else { weights[j] }, values[j][k]))
                                .collect()
                        };
                        z.push(if before {
                            self.dot(pairs(true), vec![])
                        } else {
                            self.dot(pairs(false), vec![]) / total
                        });
                    }
                }
                (0..d)
                    .map(|c| {
                        let column: Vec<f64> = (0..width).map(|k| a.w_o[k * d + c]).collect();
                        self.row(&column, &z, vec![tokens[i][c]])
                    })
                    .collect()
            })
            .collect()
    }

    fn weights(&mut self, scores: &[F], hard: bool) -> Vec<F> {
        let top = scores.iter().copied().reduce(|a, b| if b > a { b } else { a }).expect("some token is visible");
        if hard {
            return scores.iter().map(|&s| F::of(f64::from(u8::from(s == top)))).collect();
        }
        scores.iter().map(|&s| (s - top).exp_off(self.random.below(9) as i64 - 4)).collect()
    }

    /// The labels of all tokens of a sequence.
    pub fn labels(&mut self, model: &Model, ids: &[u32]) -> Vec<usize> {
        let arg_max = |s: Vec<F>| (1..s.len()).fold(0, |best, label| if s[label] > s[best] { label } else { best });
        self.scores(model, ids).into_iter().map(arg_max).collect()
    }

    /// The scores of all tokens of a sequence.
    pub fn scores(&mut self, model: &Model, ids: &[u32]) -> Vec<Vec<F>> {
        let d = model.d;
        let embedding = &model.embedding.as_ref().expect("words").weight;
        let mut tokens: Vec<Vec<F>> = ids
            .iter()
            .enumerate()
            .map(|(place, &id)| {
                let row = (0..d).map(|c| F::of(embedding[id as usize * d + c]));
                match &model.positions {
                    Some(p) => row.enumerate().map(|(c, x)| x + F::of(p[place * d + c])).collect(),
                    None => row.collect(),
                }
            })
            .collect();
        if let Some(part) = &model.pre_feed_forward {
            tokens = tokens.iter().map(|t| self.feed_forward(part, t)).collect();
        }
        for layer in &model.layers {
            if let Some(a) = &layer.attention {
                tokens = self.attend(a, &tokens);
            }
            if let Some(part) = &layer.feed_forward {
                tokens = tokens.iter().map(|t| self.feed_forward(part, t)).collect();
            }
        }
        let head = model.head.as_ref().expect("labels");
        let score = |program: &mut Self, l: usize, t: &[F]| {
            program.row(&head.weight[l * d..(l + 1) * d], t, vec![F::of(head.bias[l])])
        };
        tokens.iter().map(|t| (0..head.bias.len()).map(|l| score(self, l, t)).collect()).collect()
    }
}
