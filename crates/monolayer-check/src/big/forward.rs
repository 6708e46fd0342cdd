//! The forward pass in intervals of big floats: real arithmetic to as many bits as it takes.

use std::cmp::Ordering;

use super::number::{Big, Interval};
use super::weight::Weight;
use crate::model::{Attention, FeedForward, Layer, Model};

/// A model at a number of bits.
pub struct Exact<'a, T = f64> {
    /// The model.
    pub model: &'a Model<T>,
    /// The bits.
    pub bits: usize,
    /// The only units of the last feed-forward layer that can be on; none: all may be.
    pub last_units: Option<Vec<usize>>,
}

/// A token.
pub type Vector = Vec<Interval>;

impl<T: Weight> Exact<'_, T> {
    /// The output at one position of a sequence of tokens (embedding rows or vectors, before positions are added).
    pub fn run(&self, rows: &[&[T]], position: usize) -> Vector {
        let mut tokens = self.input(rows);
        let layers = &self.model.layers;
        // From the last attention on, only the asked position matters.
        let last_attention = layers.iter().rposition(|layer| layer.attention.is_some());
        for layer in &layers[..last_attention.unwrap_or(0)] {
            tokens = (0..tokens.len()).map(|i| self.layer(layer, &tokens, i, None)).collect();
        }
        let mut token = None;
        for (at, layer) in layers.iter().enumerate().skip(last_attention.unwrap_or(0)) {
            let units = if at + 1 == layers.len() { self.last_units.as_deref() } else { None };
            token = Some(match token {
                None => self.layer(layer, &tokens, position, units),
                Some(token) => self.layer(layer, &[token], 0, units),
            });
        }
        token.unwrap_or_else(|| tokens.swap_remove(position))
    }

    /// One layer at position i: attention, then feed-forward.
    fn layer(&self, layer: &Layer<T>, tokens: &[Vector], i: usize, units: Option<&[usize]>) -> Vector {
        let h = layer.attention.as_ref().map_or_else(|| tokens[i].clone(), |a| self.attend(a, tokens, i));
        match &layer.feed_forward {
            Some(part) => self.feed_forward(part, &h, units),
            None => h,
        }
    }

    fn input(&self, rows: &[&[T]]) -> Vec<Vector> {
        let (d, bits) = (self.model.d, self.bits);
        let add = |place: usize, c: usize, x: &T| match &self.model.positions {
            Some(p) => x.interval(bits).plus(&p[place * d + c].interval(bits), bits),
            None => x.interval(bits),
        };
        let token = |(place, row): (usize, &&[T])| row.iter().enumerate().map(|(c, x)| add(place, c, x)).collect();
        let mut tokens: Vec<Vector> = rows.iter().enumerate().map(token).collect();
        if let Some(part) = &self.model.pre_feed_forward {
            tokens = tokens.iter().map(|t| self.feed_forward(part, t, None)).collect();
        }
        tokens
    }

    /// Sum over c of `w_c` `x_c` + bias.
    pub fn dot(&self, w: &[T], x: &[Interval], bias: Interval) -> Interval {
        let bits = self.bits + 32;
        let terms = w.iter().zip(x).filter(|(w, _)| !w.is_zero());
        terms.fold(bias, |sum, (w, x)| sum.plus(&w.times(x, bits), bits))
    }

    fn feed_forward(&self, part: &FeedForward<T>, h: &[Interval], units: Option<&[usize]>) -> Vector {
        let (d, bits) = (self.model.d, self.bits);
        let mut out: Vector = h.iter().zip(&part.b2).map(|(h, b)| h.plus(&b.interval(bits), bits)).collect();
        let every: Vec<usize> = (0..part.hidden).collect();
        for &j in units.unwrap_or(&every) {
            let unit = self.dot(row(&part.w1, j, d), h, part.b1[j].interval(bits + 32)).relu();
            if unit.hi.sign() == Ordering::Equal {
                continue;
            }
            for (out, w) in out.iter_mut().zip(row(&part.w2, j, d)).filter(|(_, w)| !w.is_zero()) {
                *out = out.plus(&w.times(&unit, bits), bits);
            }
        }
        out
    }

    /// Attention at one position.
    pub fn attend(&self, layer: &Attention<T>, tokens: &[Vector], i: usize) -> Vector {
        let (d, bits) = (self.model.d, self.bits);
        let visible = if layer.causal { &tokens[..=i] } else { tokens };
        let mut out = tokens[i].clone();
        for h in 0..layer.heads {
            let rows = |w: &[T], x: &[Interval]| -> Vector {
                (0..layer.size).map(|s| self.dot(row(w, h * layer.size + s, d), x, Interval::from_f64(0.0))).collect()
            };
            let query = rows(&layer.w_q, &tokens[i]);
            let scores: Vec<Interval> = visible
                .iter()
                .map(|x| {
                    let products = rows(&layer.w_k, x).into_iter().zip(&query).map(|(k, q)| k.times(q, bits));
                    products.reduce(|a, b| a.plus(&b, bits)).expect("a head has a size")
                })
                .collect();
            let values: Vec<Vector> = visible.iter().map(|x| rows(&layer.w_v, x)).collect();
            for s in 0..layer.size {
                let values: Vector = values.iter().map(|v| v[s].clone()).collect();
                let g = if layer.hard { self.hardmax(&scores, &values) } else { self.softmax(&scores, &values) };
                for (out, w) in out.iter_mut().zip(row(&layer.w_o, h * layer.size + s, d)).filter(|(_, w)| !w.is_zero())
                {
                    *out = out.plus(&w.times(&g, bits), bits);
                }
            }
        }
        out
    }

    fn softmax(&self, scores: &[Interval], values: &[Interval]) -> Interval {
        let bits = self.bits;
        let top = scores.iter().map(|a| &a.lo).fold(&scores[0].lo, |m, a| if a > m { a } else { m });
        let shift = Interval::point(top.clone());
        let (mut above, mut below) = (Interval::from_f64(0.0), Interval::from_f64(0.0));
        for (a, v) in scores.iter().zip(values) {
            let e = a.minus(&shift, bits).exp(bits);
            above = above.plus(&e.times(v, bits), bits);
            below = below.plus(&e, bits);
        }
        let hull = values[1..].iter().fold(values[0].clone(), |hull, v| hull.hull(v));
        let g = above.over(&below, bits);
        // The mean never leaves the range of the values: that is sharper where scores are hardly known.
        let lo = if g.lo < hull.lo { hull.lo } else { g.lo };
        let hi = if g.hi > hull.hi { hull.hi } else { g.hi };
        Interval { lo, hi }
    }

    /// The mean over those with the greatest score; where that is uncertain, the hull of those that may have it.
    fn hardmax(&self, scores: &[Interval], values: &[Interval]) -> Interval {
        let least = scores.iter().map(|a| &a.lo).fold(&scores[0].lo, |m, a| if a > m { a } else { m });
        let may: Vec<usize> = (0..scores.len()).filter(|&j| scores[j].hi >= *least).collect();
        if may.iter().all(|&j| scores[j].lo == scores[j].hi || may.len() == 1) {
            let sum = may.iter().fold(Interval::from_f64(0.0), |sum, &j| sum.plus(&values[j], self.bits));
            return sum.over(&Interval::point(Big::new(may.len() as i64, 0)), self.bits);
        }
        may[1..].iter().fold(values[may[0]].clone(), |hull, &j| hull.hull(&values[j]))
    }
}

fn row<T>(w: &[T], i: usize, d: usize) -> &[T] {
    &w[i * d..(i + 1) * d]
}
