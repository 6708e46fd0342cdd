//! What certificates say of the whole of the data, from passes over its parts: the hash of its canonical form, and the
//! sequences that it covers.
//!
//! BLAKE3 is a tree over chunks of 1,024 bytes: the subtrees inside of a shard's part of the canonical form are hashed with the
//! shard, and the bytes of chunks at the seams are sent. The result is the hash of all bytes in order.

use std::collections::HashMap;

use blake3::hazmat::{self, ChainingValue, HasherExt as _, Mode};

use super::passes::{Runner, ShardPass};
use super::shard::Shard;
use super::wire::{Wire, fields};
use crate::data::{CanonicalNames, CoveredSequences, Dataset, Labels, Multisets, Tokens};
use crate::error::{Error, Result};

/// Bytes of a leaf of the tree.
const CHUNK: u64 = 1024;

/// The hash of a dataset whose tokens are where passes run.
pub fn hash(data: &Dataset, runner: &impl Runner) -> Result<String> {
    let (Tokens::Words { vocabulary, .. }, Labels::Classes { names, .. }) = (&data.tokens, &data.labels) else {
        return Err(Error::mismatch("data that is not words with classes", "give words with classes"));
    };
    let names = CanonicalNames::new(vocabulary, names, data.written);
    let lengths = LengthPass { names };
    let found = runner.pass(&lengths, &[])?;
    let mut total = 0;
    let starts = found.into_iter().map(|(first, length)| {
        total += length;
        (first, total - length)
    });
    let pass = HashPass { starts: starts.collect(), total, names: lengths.names };
    let pieces = runner.pass(&pass, &[])?;
    Ok(root(&pieces, total).to_hex().to_string())
}

fields!(CanonicalNames { words, labels });

impl CanonicalNames {
    fn of_shard(&self, shard: &Shard) -> String {
        self.text(shard.word_ids, shard.labels, shard.offsets.windows(2).map(|window| window[0]..window[1]))
    }
}

/// How long the canonical form of each shard is, by the number of its first token.
pub struct LengthPass {
    names: CanonicalNames,
}

fields!(LengthPass { names });

impl ShardPass for LengthPass {
    const NAME: &'static str = "lengths";
    type Part = Vec<(usize, u64)>;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Self::Part {
        vec![(shard.first, self.names.of_shard(shard).len() as u64)]
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        parts.concat()
    }
}

/// Hashes the canonical form of each shard.
pub struct HashPass {
    /// Where the part of each shard starts, by the number of its first token, in order.
    starts: Vec<(usize, u64)>,
    /// Bytes in all.
    total: u64,
    names: CanonicalNames,
}

fields!(HashPass { starts, total, names });

/// Some bytes of the whole: those before the first seam of chunks, subtrees by the chunk at which they start and how many they
/// have, and the bytes of the last chunk, which is not whole.
pub struct HashPiece {
    head: Vec<u8>,
    subtrees: Vec<(u64, u64, ChainingValue)>,
    tail: Vec<u8>,
}

fields!(HashPiece { head, subtrees, tail });

impl ShardPass for HashPass {
    const NAME: &'static str = "hash";
    type Part = Vec<HashPiece>;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Self::Part {
        let at = self.starts.partition_point(|&(first, _)| first < shard.first);
        vec![HashPiece::new(self.names.of_shard(shard).as_bytes(), self.starts[at].1, self.total)]
    }

    fn merged(parts: Vec<Self::Part>) -> Self::Part {
        parts.into_iter().flatten().collect()
    }
}

impl HashPiece {
    /// The bytes from `start` on, of `total` in all.
    fn new(bytes: &[u8], start: u64, total: u64) -> Self {
        let (head, mut rest) = bytes.split_at(bytes.len().min((start.next_multiple_of(CHUNK) - start) as usize));
        let mut chunk = start.div_ceil(CHUNK);
        let mut subtrees = Vec::new();
        loop {
            // As large as its place and its bytes allow; the root is none of them.
            let fits =
                |size: &u64| chunk.is_multiple_of(*size) && size * CHUNK <= rest.len() as u64 && size * CHUNK < total;
            let Some(size) = (0..40).map(|k| 1_u64 << k).take_while(fits).last() else { break };
            let (own, others) = rest.split_at((size * CHUNK) as usize);
            subtrees.push((chunk, size, chaining_value(own, chunk)));
            (rest, chunk) = (others, chunk + size);
        }
        Self { head: head.to_vec(), subtrees, tail: rest.to_vec() }
    }
}

fn chaining_value(bytes: &[u8], chunk: u64) -> ChainingValue {
    blake3::Hasher::new().set_input_offset(chunk * CHUNK).update(bytes).finalize_non_root()
}

/// The hash of all bytes, from their pieces in order.
fn root(pieces: &[HashPiece], total: u64) -> blake3::Hash {
    if total <= CHUNK {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.head.iter().chain(&piece.tail)).copied().collect();
        return blake3::hash(&bytes);
    }
    let (mut subtrees, mut open, mut chunk) = (HashMap::new(), Vec::new(), 0);
    for piece in pieces {
        open.extend_from_slice(&piece.head);
        if open.len() as u64 == CHUNK {
            subtrees.insert((chunk, 1), chaining_value(&open, chunk));
            open.clear();
            chunk += 1;
        }
        for &(first, size, value) in &piece.subtrees {
            subtrees.insert((first, size), value);
            chunk = first + size;
        }
        open.extend_from_slice(&piece.tail);
    }
    if !open.is_empty() {
        subtrees.insert((chunk, 1), chaining_value(&open, chunk));
    }
    let left = hazmat::left_subtree_len(total) / CHUNK;
    let chunks = total.div_ceil(CHUNK);
    hazmat::merge_subtrees_root(&subtree(&subtrees, 0, left), &subtree(&subtrees, left, chunks - left), Mode::Hash)
}

/// The value of a subtree, from those that are known.
fn subtree(known: &HashMap<(u64, u64), ChainingValue>, first: u64, size: u64) -> ChainingValue {
    if let Some(value) = known.get(&(first, size)) {
        return *value;
    }
    assert!(size > 1, "every chunk is known, by itself or with others");
    let left = 1 << (size - 1).ilog2();
    let (a, b) = (subtree(known, first, left), subtree(known, first + left, size - left));
    hazmat::merge_subtrees_non_root(&a, &b, Mode::Hash)
}

/// What sequences the data covers with every order of their tokens.
pub fn covered(data: &Dataset, words: usize, runner: &impl Runner) -> Result<CoveredSequences> {
    let multisets = runner.pass(&MultisetPass {}, &[])?;
    let shortest = data.ranges().map(|range| range.len()).min().unwrap_or(0);
    Ok(CoveredSequences::new(&multisets, words, (shortest, data.longest())))
}

/// Which multisets of tokens sequences have.
pub struct MultisetPass {}

fields!(MultisetPass {});

impl Wire for Multisets {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.is_some().put(out);
        self.0.iter().for_each(|list| list.put(out));
    }

    fn get(from: &mut &[u8]) -> Option<Self> {
        Some(Self(if bool::get(from)? { Some(Wire::get(from)?) } else { None }))
    }
}

impl ShardPass for MultisetPass {
    const NAME: &'static str = "multisets";
    const SHRINKS: bool = true;
    type Part = Multisets;

    fn of_shard(&self, shard: &Shard, _: &[usize]) -> Multisets {
        Multisets::of(shard.sequences().map(|(_, words)| words))
    }

    fn merged(parts: Vec<Multisets>) -> Multisets {
        Multisets::joined(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hash_as_the_whole() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for total in [0, 1, 500, 1023, 1024, 1025, 2048, 2049, 4096, 8192, 16_384, 50_000, 65_536, 70_000] {
            for size in [1, 7, 300, 1024, 1500, 4096, 10_000, 65_536, 70_000] {
                let whole = &bytes[..total];
                let pieces: Vec<HashPiece> = whole
                    .chunks(size)
                    .enumerate()
                    .map(|(i, part)| HashPiece::new(part, (i * size) as u64, total as u64))
                    .collect();
                assert_eq!(root(&pieces, total as u64), blake3::hash(whole), "{total} in {size}");
            }
        }
    }
}
