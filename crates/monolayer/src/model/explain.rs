//! One sequence through a model with one layer: ids, units that fire, scores.

use crate::arithmetic::kernels::{Real, dot};
use crate::data::{Dataset, Tokens};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::forward;

/// What happens to one token.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The context id g, for a head of size 1: the mixture of values that attention adds to the token along `W_O`.
    pub id: Option<f64>,
    /// The hidden units that fire, and how strongly.
    pub firing: Vec<(usize, f64)>,
    /// The score of each label, or the output.
    pub scores: Vec<f64>,
}

/// A token of a dataset with the same word, at the same place where positions are used, and another id.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbor {
    /// The token.
    pub token: usize,
    /// Its id.
    pub id: f64,
}

impl<R: Real> Model<R> {
    /// What happens to each token of a dataset's sequence `i`.
    pub fn trace(&self, data: &Dataset, i: usize) -> Result<Vec<Trace>> {
        let [layer] = &self.transformer.layers[..] else {
            return Err(Error::mismatch(
                format!("the model has {} layers", self.transformer.layers.len()),
                "only models with one layer can be explained",
            ));
        };
        let inputs = self.inputs(data)?;
        let offsets = [inputs.offsets[i], inputs.offsets[i + 1]];
        let d = self.transformer.d;
        let mut before = self.embed(&inputs, offsets[0], offsets[1]);
        if let Some(block) = &self.transformer.pre_feed_forward {
            forward::feed_forward(block, d, &mut before);
        }
        let mut h = before.clone();
        if let Some(attention) = &layer.attention {
            forward::attend_from(attention, d, &offsets, inputs.start, &mut h);
        }
        let ids = self.ids(&before, &h);
        let mut out = h.clone();
        if let Some(block) = &layer.feed_forward {
            forward::feed_forward(block, d, &mut out);
        }
        let rows = self.read_out(out);
        let width = rows.len() / (offsets[1] - offsets[0]);
        let firing = |h: &[R]| -> Vec<(usize, f64)> {
            let Some(block) = &layer.feed_forward else { return Vec::new() };
            let value = |j: usize| (dot(block.w1.row(j), h) + block.b1[j]).to_f64();
            (0..block.b1.len()).map(|j| (j, value(j))).filter(|&(_, x)| x > 0.0).collect()
        };
        Ok((usize::from(inputs.start)..offsets[1] - offsets[0])
            .map(|t| Trace {
                id: ids.as_ref().map(|ids| ids[t]),
                firing: firing(&h[t * d..(t + 1) * d]),
                scores: rows[t * width..(t + 1) * width].iter().map(|x| x.to_f64()).collect(),
            })
            .collect())
    }

    /// The ids of packed tokens before and after attention with one head of size 1: what was added, over the largest entry of
    /// `W_O`.
    fn ids(&self, before: &[R], after: &[R]) -> Option<Vec<f64>> {
        let attention = self.transformer.layers[0].attention.as_ref()?;
        let [head] = &attention.heads[..] else { return None };
        let magnitude = |x: &R| x.to_f64().abs();
        let column = &head.w_o.data;
        let largest = (0..column.len()).max_by(|&a, &b| magnitude(&column[a]).total_cmp(&magnitude(&column[b])))?;
        let weight = column[largest].to_f64();
        if head.w_q.rows != 1 || weight == 0.0 {
            return None;
        }
        let d = self.transformer.d;
        let added = |(x, h): (&[R], &[R])| (h[largest] - x[largest]).to_f64() / weight;
        Some(before.chunks_exact(d).zip(after.chunks_exact(d)).map(added).collect())
    }

    /// The tokens of a dataset that have the same word as token `t` of `sequence`, at the same place where positions are used,
    /// nearest to it by id first, and no two with the same id.
    pub fn neighbors(&self, sequence: &Dataset, t: usize, id: f64, data: &Dataset) -> Result<Vec<Neighbor>> {
        let (Tokens::Words { word_ids: own, vocabulary: known }, Tokens::Words { word_ids: ids, vocabulary }) =
            (&sequence.tokens, &data.tokens)
        else {
            return Ok(Vec::new());
        };
        let Some(word) = vocabulary.get(known.name(own[t])) else { return Ok(Vec::new()) };
        let mut found: Vec<Neighbor> = Vec::new();
        for (i, range) in data.ranges().enumerate() {
            let places: Vec<usize> = range
                .clone()
                .filter(|&u| ids[u] == word && (self.positions.is_none() || u - range.start == t))
                .collect();
            if places.is_empty() {
                continue;
            }
            let traces = self.trace(data, i)?;
            for u in places {
                if let Some(other) = traces[u - range.start].id.filter(|&other| other != id) {
                    found.push(Neighbor { token: u, id: other });
                }
            }
        }
        found.sort_by(|a, b| (a.id - id).abs().total_cmp(&(b.id - id).abs()));
        found.dedup_by(|a, b| a.id == b.id);
        Ok(found)
    }
}
