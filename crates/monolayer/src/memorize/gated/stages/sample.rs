//! The search for a projection (Theorem 2) on a sample: the largest groups, in which ids are closest.

use super::contexts::GroupContext;
use super::passes::{Runner, SequencePass};
use crate::context_map::search::Search;
use crate::context_map::{Groups, Member, Projection, View};
use crate::data::Dataset;
use crate::data::context::Contexts;
use crate::data::token_vectors::TokenVectors;
use crate::error::Result;
use crate::paper::mask::Mask;

/// Contexts of the sample, about.
const CONTEXTS: usize = 1 << 16;
/// Tokens at the start of the data that are in the sample whatever they are: what the search takes scales from.
const TOKENS: usize = 6_000;

/// Sequences of a dataset, and their contexts that must be told apart.
pub struct Sample {
    token_ids: Vec<u32>,
    offsets: Vec<usize>,
    groups: Groups,
}

impl Sample {
    /// The largest groups of contexts, whole, and the first sequences. `contexts` has those of one group together.
    pub fn new(data: &Dataset, runner: &impl Runner, contexts: &[GroupContext]) -> Result<Self> {
        let mut largest: Vec<&[GroupContext]> = contexts
            .chunk_by(|a, b| a.group == b.group)
            .filter(|group| group.iter().any(|context| context.label != group[0].label))
            .collect();
        // Sorting keeps the order of equals.
        largest.sort_by_key(|group| std::cmp::Reverse(group.len()));
        let mut total = 0;
        let within = largest.iter().take_while(|group| {
            total += group.len();
            total <= CONTEXTS
        });
        let taken = within.count().max(1).min(largest.len());
        largest.truncate(taken);
        let start = data.offsets.partition_point(|&start| start <= TOKENS).min(data.sequences());
        let sequence = |token: usize| data.offsets.partition_point(|&start| start <= token) - 1;
        let mut sequences: Vec<usize> = largest
            .iter()
            .flat_map(|group| group.iter())
            .map(|context| sequence(context.token))
            .chain(0..start)
            .collect();
        sequences.sort_unstable();
        sequences.dedup();
        let starts: Vec<usize> = sequences.iter().map(|&sequence| data.offsets[sequence]).collect();
        let (token_ids, _) = runner.pass(&SequencePass {}, &starts)?;
        let mut offsets = vec![0];
        for &sequence in &sequences {
            offsets.push(offsets[offsets.len() - 1] + data.range(sequence).len());
        }
        let member = |context: &GroupContext| {
            let own = sequence(context.token);
            let at = sequences.binary_search(&own).expect("a sequence of the sample");
            Member { token: offsets[at] + context.token - data.offsets[own], class: context.label }
        };
        let groups = Groups(largest.iter().map(|group| group.iter().map(member).collect()).collect());
        Ok(Self { token_ids, offsets, groups })
    }

    /// The best projection of a search, how many were tried, and its smallest gap on the sample over the spread of ids.
    pub fn search(
        &self,
        search: &Search,
        vectors: &TokenVectors,
        mask: &Mask,
        on_progress: &dyn Fn(usize, f64),
    ) -> (Projection, usize, f64) {
        let contexts = Contexts { of_token: Vec::new(), count: 0 };
        let view =
            View { token_ids: self.token_ids.clone(), offsets: &self.offsets, mask: mask.clone(), vectors, contexts };
        let found = search.run_with(&view, &self.groups, on_progress);
        let gap = found.progress.last().map_or(f64::INFINITY, |&(_, gap)| gap);
        (found.projection, found.candidates, gap)
    }
}
