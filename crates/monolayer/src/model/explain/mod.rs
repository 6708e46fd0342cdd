//! One sequence through a model with one layer: ids, units that fire, scores, and where the scores come from.
//!
//! - [`contributions`]: the parts that a score is the sum of.
//! - [`along_id`]: what a token's label would be in contexts of other ids.

pub mod along_id;
pub mod contributions;

use crate::arithmetic::kernels::{Real, dot};
use crate::arithmetic::parallel;
use crate::arithmetic::sorting;
use crate::data::{Dataset, Tokens};
use crate::error::{Error, Result};
use crate::model::{AttentionSums, Inputs, Model, forward};
use crate::paper::attention::{AttentionHead, AttentionKind};
use along_id::LabelRange;
use contributions::Contribution;

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

/// What happens to one token, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What happens.
    pub trace: Trace,
    /// The tokens that it sees, by place (0 is the start token, where there is one), and their attention weights; for models
    /// with one head.
    pub weights: Vec<(usize, f64)>,
    /// What each part of the model adds to each score.
    pub contributions: Vec<Contribution>,
    /// For each score how far it can be from the sum of its contributions, because floats round.
    pub rounding: Vec<f64>,
    /// For each unit that fires the ids at which it does, for this token; nothing where there are no ids.
    pub bounds: Vec<along_id::IdBound>,
    /// The ids around the token's own at which its label stays, and the labels beyond; nothing where there are no labels or no ids.
    pub range: Option<LabelRange>,
}

/// A token of a dataset with the same word, at the same place where positions are used, and another id.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbor {
    /// The token.
    pub token: usize,
    /// Its id.
    pub id: f64,
}

/// A sequence on its way through a model, `[tokens, d]` at each station, the start token included.
struct Pass<R> {
    /// The tokens' own vectors, positions added.
    embedded: Vec<R>,
    /// After the block before attention, where there is one.
    before: Vec<R>,
    /// After attention.
    attended: Vec<R>,
    /// For each token the hidden units that fire, as strongly as the scores are computed from.
    firing: Vec<Vec<(usize, R)>>,
    /// The scores, or the outputs.
    rows: Vec<R>,
    width: usize,
}

impl<R: Real> Pass<R> {
    fn new(model: &Model<R>, inputs: &Inputs<R>, i: usize) -> Result<Self> {
        let [layer] = &model.transformer.layers[..] else {
            return Err(Error::mismatch(
                format!("the model has {} layers", model.transformer.layers.len()),
                "only models with one layer can be explained",
            ));
        };
        let (embedded, before, attended) = model.attended(inputs, i);
        let d = model.transformer.d;
        let tokens = embedded.len() / d;
        let mut firing = vec![Vec::new(); tokens];
        let mut out = attended.clone();
        if let Some(block) = &layer.feed_forward {
            forward::feed_forward_seen(block, d, &mut out, |token, unit, values| {
                let fires = values.iter().enumerate().filter(|&(_, &x)| x > R::ZERO);
                firing[token].extend(fires.map(|(j, &x)| (unit + j, x)));
            });
        }
        let rows = model.read_out(out);
        Ok(Self { embedded, before, attended, firing, width: rows.len() / tokens, rows })
    }

    fn trace(&self, t: usize, id: Option<f64>) -> Trace {
        let row = &self.rows[t * self.width..(t + 1) * self.width];
        Trace {
            id,
            firing: self.firing[t].iter().map(|&(j, x)| (j, x.to_f64())).collect(),
            scores: row.iter().map(|x| x.to_f64()).collect(),
        }
    }
}

impl<R: Real> Model<R> {
    /// What happens to each token of a dataset's sequence `i`.
    pub fn trace(&self, data: &Dataset, i: usize) -> Result<Vec<Trace>> {
        let inputs = self.inputs(data)?;
        let pass = Pass::new(self, &inputs, i)?;
        let ids = self.ids(&pass.before, &pass.attended);
        let tokens = usize::from(inputs.start)..pass.firing.len();
        Ok(tokens.map(|t| pass.trace(t, ids.as_ref().map(|ids| ids[t]))).collect())
    }

    /// What happens to each token of a dataset's sequence `i`, and why.
    pub fn explain(&self, data: &Dataset, i: usize) -> Result<Vec<Explanation>> {
        let inputs = self.inputs(data)?;
        let pass = Pass::new(self, &inputs, i)?;
        let ids = self.ids(&pass.before, &pass.attended);
        let first = usize::from(inputs.start);
        let reach = self.reach();
        let explained = |t: usize| {
            let trace = pass.trace(t, ids.as_ref().map(|ids| ids[t]));
            let (contributions, rounding) = self.contributions(&inputs, i, &pass, t);
            let (bounds, range) = self.along_id(&pass, t, &trace, reach);
            Explanation { weights: self.weights(&pass, t, inputs.start), trace, contributions, rounding, bounds, range }
        };
        Ok(parallel::map(pass.firing.len() - first, |t| explained(first + t)))
    }

    /// A sequence's tokens as they are, before attention, and after it.
    fn attended(&self, inputs: &Inputs<R>, i: usize) -> (Vec<R>, Vec<R>, Vec<R>) {
        let d = self.transformer.d;
        let offsets = [inputs.offsets[i], inputs.offsets[i + 1]];
        let embedded = self.embed(inputs, offsets[0], offsets[1]);
        let mut before = embedded.clone();
        if let Some(block) = &self.transformer.pre_feed_forward {
            forward::feed_forward(block, d, &mut before);
        }
        let mut attended = before.clone();
        if let Some(attention) = &self.transformer.layers[0].attention {
            forward::attend_from(attention, d, (&offsets, inputs.start), AttentionSums::Plain, &mut attended);
        }
        (embedded, before, attended)
    }

    /// The only head, if it is of size 1, and the entry of its `W_O` that is largest; nothing where all are 0.
    fn only_head(&self) -> Option<(&AttentionHead<R>, usize)> {
        let [head] = &self.transformer.layers[0].attention.as_ref()?.heads[..] else { return None };
        let magnitude = |i: &usize| head.w_o.data[*i].to_f64().abs();
        let largest = (0..head.w_o.data.len()).max_by(|a, b| magnitude(a).total_cmp(&magnitude(b)))?;
        (head.w_q.rows == 1 && magnitude(&largest) > 0.0).then_some((head, largest))
    }

    /// The ids of packed tokens before and after attention with one head of size 1: what was added, over the largest entry of
    /// `W_O`.
    fn ids(&self, before: &[R], after: &[R]) -> Option<Vec<f64>> {
        let (head, largest) = self.only_head()?;
        let (d, weight) = (self.transformer.d, head.w_o.data[largest].to_f64());
        let added = |(x, h): (&[R], &[R])| (h[largest] - x[largest]).to_f64() / weight;
        Some(before.chunks_exact(d).zip(after.chunks_exact(d)).map(added).collect())
    }

    /// What a token attends to.
    fn weights(&self, pass: &Pass<R>, t: usize, start: bool) -> Vec<(usize, f64)> {
        let Some(attention) = &self.transformer.layers[0].attention else { return Vec::new() };
        let [head] = &attention.heads[..] else { return Vec::new() };
        let (d, tokens) = (self.transformer.d, pass.firing.len());
        let seen = if start { attention.mask.seen_from_start(t, tokens) } else { attention.mask.seen(t, tokens) };
        let project = |w: &crate::arithmetic::matrix::Matrix<R>, i: usize| -> Vec<R> {
            w.iter_rows().map(|row| dot(row, &pass.before[i * d..(i + 1) * d])).collect()
        };
        let query = project(&head.w_q, t);
        let scores: Vec<(usize, f64)> =
            seen.places().map(|i| (i, dot(&query, &project(&head.w_k, i)).to_f64())).collect();
        let top = scores.iter().fold(f64::NEG_INFINITY, |top, &(_, s)| top.max(s));
        let power = |s: f64| match attention.kind {
            AttentionKind::Softmax => (s - top).exp(),
            AttentionKind::Hardmax => f64::from(u8::from(s == top)),
        };
        let total: f64 = scores.iter().map(|&(_, s)| power(s)).sum();
        scores.into_iter().map(|(i, s)| (i, power(s) / total)).collect()
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
        let inputs = self.inputs(data)?;
        let first = usize::from(inputs.start);
        let in_sequence = |i: usize| -> Vec<Neighbor> {
            let range = data.range(i);
            let here = |u: &usize| ids[*u] == word && (self.positions.is_none() || *u - range.start == t);
            let mut places = range.clone().filter(here).peekable();
            if places.peek().is_none() {
                return Vec::new();
            }
            let (_, before, attended) = self.attended(&inputs, i);
            let Some(ids) = self.ids(&before, &attended) else { return Vec::new() };
            places.map(|token| Neighbor { token, id: ids[token - range.start + first] }).collect()
        };
        let mut found: Vec<Neighbor> = parallel::map(data.sequences(), in_sequence).into_iter().flatten().collect();
        found.retain(|other| other.id != id);
        sorting::sort_by(&mut found, |a, b| (a.id - id).abs().total_cmp(&(b.id - id).abs()));
        found.dedup_by(|a, b| a.id == b.id);
        Ok(found)
    }
}
