//! The forward pass in intervals of big floats: real arithmetic to as many bits as it takes.

use std::cmp::Ordering;

use super::number::{Big, Interval};
use crate::model::{Attention, FeedForward, Model};

/// A model at a number of bits.
pub struct Exact<'a> {
    /// The model.
    pub model: &'a Model,
    /// The bits.
    pub bits: usize,
    /// The only units of the last feed-forward layer that can be on; none: all may be.
    pub last_units: Option<Vec<usize>>,
}

/// A token.
pub type Vector = Vec<Interval>;

impl Exact<'_> {
    /// The output at one position of a sequence of tokens (embedding rows or vectors, before positions are added).
    pub fn run(&self, rows: &[&[f64]], position: usize) -> Vector {
        let mut tokens = self.input(rows);
        let all: Vec<usize> = (0..tokens.len()).collect();
        for (at, layer) in self.model.layers.iter().enumerate() {
            // In the last layer only the asked position matters.
            let last = at + 1 == self.model.layers.len();
            let units = if last { self.last_units.as_deref() } else { None };
            let step = |&i: &usize| {
                let h = layer.attention.as_ref().map_or_else(|| tokens[i].clone(), |a| self.attend(a, &tokens, i));
                layer.feed_forward.as_ref().map_or(h.clone(), |part| self.feed_forward(part, &h, units))
            };
            if last {
                return step(&position);
            }
            let next = all.iter().map(step).collect();
            tokens = next;
        }
        tokens.swap_remove(position)
    }

    fn input(&self, rows: &[&[f64]]) -> Vec<Vector> {
        let d = self.model.d;
        let add = |place: usize, c: usize, x: f64| match &self.model.positions {
            Some(p) => Interval::from_f64(x).plus(&Interval::from_f64(p[place * d + c]), self.bits),
            None => Interval::from_f64(x),
        };
        let token = |(place, row): (usize, &&[f64])| row.iter().enumerate().map(|(c, &x)| add(place, c, x)).collect();
        let mut tokens: Vec<Vector> = rows.iter().enumerate().map(token).collect();
        if let Some(part) = &self.model.pre_feed_forward {
            tokens = tokens.iter().map(|t| self.feed_forward(part, t, None)).collect();
        }
        tokens
    }

    /// Sum over c of `w_c` `x_c` + bias.
    pub fn dot(&self, w: &[f64], x: &[Interval], bias: f64) -> Interval {
        let bits = self.bits + 32;
        let terms = w.iter().zip(x).filter(|(w, _)| **w != 0.0);
        terms.fold(Interval::from_f64(bias), |sum, (&w, x)| sum.plus(&x.scaled_by(w, bits), bits))
    }

    fn feed_forward(&self, part: &FeedForward, h: &[Interval], units: Option<&[usize]>) -> Vector {
        let d = self.model.d;
        let mut out: Vector = h.iter().zip(&part.b2).map(|(h, b)| h.plus(&Interval::from_f64(*b), self.bits)).collect();
        let every: Vec<usize> = (0..part.hidden).collect();
        for &j in units.unwrap_or(&every) {
            let unit = self.dot(&part.w1[j * d..(j + 1) * d], h, part.b1[j]).relu();
            if unit.hi.sign() == Ordering::Equal {
                continue;
            }
            for (out, &w) in out.iter_mut().zip(&part.w2[j * d..(j + 1) * d]).filter(|(_, w)| **w != 0.0) {
                *out = out.plus(&unit.scaled_by(w, self.bits), self.bits);
            }
        }
        out
    }

    /// Attention at one position.
    pub fn attend(&self, layer: &Attention, tokens: &[Vector], i: usize) -> Vector {
        let (d, bits) = (self.model.d, self.bits);
        let visible = if layer.causal { &tokens[..=i] } else { tokens };
        let mut out = tokens[i].clone();
        for h in 0..layer.heads {
            let rows = |w: &[f64], x: &[Interval]| -> Vector {
                (0..layer.size).map(|s| self.dot(row(w, h * layer.size + s, d), x, 0.0)).collect()
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
                for (out, &w) in out.iter_mut().zip(row(&layer.w_o, h * layer.size + s, d)).filter(|(_, w)| **w != 0.0)
                {
                    *out = out.plus(&g.scaled_by(w, bits), bits);
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

fn row(w: &[f64], i: usize, d: usize) -> &[f64] {
    &w[i * d..(i + 1) * d]
}
