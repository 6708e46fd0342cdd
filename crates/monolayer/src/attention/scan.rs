//! Sums over all chunks before a chunk, for one chunk after another, on several threads.

use std::ops::Range;

use rayon::prelude::*;

/// Tokens of a chunk: a thread takes one after another.
pub(super) const CHUNK: usize = 2048;
/// Bytes that the sums of chunks may take together.
const MOST_BYTES: usize = 1 << 28;

/// What sums up tokens.
pub(super) trait TokenSums: Send + Sync {
    /// Adds the tokens of another.
    fn join(&mut self, other: &Self);
}

/// The chunks of a range, in order.
pub(super) fn chunks(range: Range<usize>) -> Vec<Range<usize>> {
    let end = range.end;
    range.step_by(CHUNK).map(|start| start..(start + CHUNK).min(end)).collect()
}

/// Shows `visit` each chunk with the sums over `state` and all chunks before it, and ends with the sums over all. As many chunks
/// at a time as there is memory for, by their size alone, so that no sum depends on the number of threads.
pub(super) fn scan<S: TokenSums>(
    chunks: &[Range<usize>],
    bytes: usize,
    mut state: S,
    sum: impl Fn(Range<usize>) -> S + Sync,
    visit: impl Fn(Range<usize>, S) + Sync,
) -> S {
    for some in chunks.chunks((MOST_BYTES / bytes.max(1)).clamp(4, 4096)) {
        let mut before: Vec<S> = some.par_iter().cloned().map(&sum).collect();
        for part in &mut before {
            std::mem::swap(part, &mut state);
            state.join(part);
        }
        before.into_par_iter().zip(some).for_each(|(state, range)| visit(range.clone(), state));
    }
    state
}

/// The sums over all chunks.
pub(super) fn total<S: TokenSums>(
    chunks: &[Range<usize>],
    bytes: usize,
    mut state: S,
    sum: impl Fn(Range<usize>) -> S + Sync,
) -> S {
    for some in chunks.chunks((MOST_BYTES / bytes.max(1)).clamp(4, 4096)) {
        some.par_iter().cloned().map(&sum).collect::<Vec<_>>().iter().for_each(|part| state.join(part));
    }
    state
}
