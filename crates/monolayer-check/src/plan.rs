//! What to evaluate: equal tokens in equal sequences once, in blocks that fill a matrix product.

use std::collections::HashMap;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::forward::Query;
use crate::model::Model;

/// Tokens per block.
const BLOCK: usize = 256;

/// One evaluation and the tokens of the dataset that it answers for, by wanted label.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The distinct wanted labels (ids of the dataset), each with its tokens in order.
    pub wanted: Vec<(u32, Vec<usize>)>,
}

/// Queries that are evaluated together; `asked` runs over all positions of all queries.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// The sequences and positions.
    pub queries: Vec<Query>,
    /// What each position answers for.
    pub asked: Vec<Asked>,
}

/// Cuts a dataset into blocks, in the order of the file; `label` gives the wanted label of a token.
pub fn blocks<T>(model: &Model<T>, dataset: &Dataset, label: impl Fn(usize) -> u32) -> Result<Vec<Block>> {
    let causal = model.layers.iter().any(|l| l.attention.as_ref().is_some_and(|a| a.causal));
    let ordered = causal || model.positions.is_some();
    let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut jobs: Vec<(Query, Vec<Asked>)> = Vec::new();
    for sequence in 0..dataset.sequences() {
        let range = dataset.range(sequence);
        if let Some(limit) = model.max_length.filter(|&limit| range.len() > limit) {
            let what = format!("a sequence of {} tokens, but the model reads at most {limit}", range.len());
            return Err(Error::new(dataset.place(range.start + limit), what, "use shorter sequences or another model"));
        }
        let ids = &dataset.ids[range.clone()];
        let mut key = ids.to_vec();
        if !ordered {
            key.sort_unstable();
        }
        let next = jobs.len();
        let job = *known.entry(key).or_insert(next);
        if job == next {
            jobs.push((Query { sequence, positions: distinct(ids, ordered) }, vec![]));
        }
        let (query, asked) = &mut jobs[job];
        let of = &dataset.ids[dataset.range(query.sequence)];
        asked.resize(query.positions.len(), Asked { wanted: vec![] });
        let at: HashMap<u32, usize> = query.positions.iter().enumerate().map(|(i, &p)| (of[p], i)).collect();
        for (place, t) in range.enumerate() {
            let slot = if ordered { place } else { at[&ids[place]] };
            let wanted = &mut asked[slot].wanted;
            let label = label(t);
            match wanted.iter_mut().find(|(known, _)| *known == label) {
                Some((_, tokens)) => tokens.push(t),
                None => wanted.push((label, vec![t])),
            }
        }
    }
    Ok(pack(jobs))
}

/// The positions to ask: all of them, or the first of each distinct token where equal tokens have equal outputs.
fn distinct(ids: &[u32], ordered: bool) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    (0..ids.len()).filter(|&p| ordered || seen.insert(ids[p])).collect()
}

fn pack(jobs: Vec<(Query, Vec<Asked>)>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (query, asked) in jobs {
        if blocks.last().is_none_or(|block| block.asked.len() >= BLOCK) {
            blocks.push(Block::default());
        }
        let block = blocks.last_mut().expect("just pushed");
        block.queries.push(query);
        block.asked.extend(asked);
    }
    blocks
}
