//! What the architecture can see: tokens that no weights can tell apart.
//!
//! Attention averages, so a token sees itself and the normalized multiset of what its mask shows it. Behind several layers it
//! sees the same of the contexts before: the context of layer l + 1 is the context of layer l and the normalized multiset of
//! visible contexts of layer l. Tokens of equal context get equal outputs from any weights, in real arithmetic.

use std::collections::HashMap;

use crate::model::Mask;
use crate::read::data::Data;
use crate::rules::attention::Seen;

/// 2^61 - 1.
pub(crate) const PRIME: u64 = (1 << 61) - 1;

/// A fingerprint modulo two draws of 2^61 - 1.
type Print = [u64; 2];

/// Fingerprints of the contexts of all tokens.
///
/// A normalized multiset is sum of h(x) / n modulo the prime for pseudo-random h, keyed by the hash of the data: two different ones
/// agree with probability about 2^-122.
/// `names` has a number for each different token of the data, the same for those that no weights tell apart, and one for the
/// start token at its end, where there is one.
pub fn contexts(data: &Data, names: &[u64], positions: bool, masks: &[&Mask]) -> Vec<[u8; 32]> {
    let (own, first) = names.split_at(data.different());
    let start = !first.is_empty();
    let key = blake3::hash(data.hash.as_bytes());
    let mut all = Vec::with_capacity(data.tokens.len());
    for range in data.offsets.windows(2) {
        let words = data.tokens[range[0]..range[1]].iter().map(|id| own[*id as usize]);
        let words = first.iter().copied().chain(words).enumerate();
        let tokens: Vec<[u64; 2]> = words.map(|(at, word)| [word, if positions { at as u64 } else { 0 }]).collect();
        all.extend(sequence(&tokens, masks, start, key.as_bytes()).drain(usize::from(start)..));
    }
    all
}

fn sequence(tokens: &[[u64; 2]], masks: &[&Mask], start: bool, key: &[u8; 32]) -> Vec<[u8; 32]> {
    let first = |token: &[u64; 2]| {
        let bytes: Vec<u8> = token.iter().flat_map(|x| x.to_le_bytes()).collect();
        *blake3::keyed_hash(key, &bytes).as_bytes()
    };
    let mut now: Vec<[u8; 32]> = tokens.iter().map(first).collect();
    for mask in masks {
        let n = now.len();
        let mut sums = vec![[0; 2]];
        for context in &now {
            let print = print(context, key);
            let last: Print = sums[sums.len() - 1];
            sums.push([add(last[0], print[0]), add(last[1], print[1])]);
        }
        let next = |i: usize| {
            let (mut seen, mut count) = ([0; 2], 0);
            for range in Seen::new(mask, i, n, start).ranges() {
                for lane in 0..2 {
                    let part = add(sums[range.end][lane], PRIME - sums[range.start][lane]);
                    seen[lane] = add(seen[lane], part);
                }
                count += range.len() as u64;
            }
            let inverse = power(count % PRIME, PRIME - 2);
            let mut hasher = blake3::Hasher::new_keyed(key);
            hasher.update(&now[i]);
            for lane in seen {
                hasher.update(&multiply(lane, inverse).to_le_bytes());
            }
            *hasher.finalize().as_bytes()
        };
        now = (0..n).map(next).collect();
    }
    now
}

fn print(context: &[u8; 32], key: &[u8; 32]) -> Print {
    let hash = blake3::keyed_hash(key, context);
    let lane = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[at..at + 8]);
        u64::from_le_bytes(bytes) % PRIME
    };
    [lane(0), lane(8)]
}

pub(crate) fn add(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

pub(crate) fn multiply(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

pub(crate) fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut base, mut result) = (base, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

/// The label of most tokens of each token's context (of two as frequent ones, the one that comes first). Tokens whose label is free
/// take no part.
pub fn favored(contexts: &[[u8; 32]], labels: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut counts: HashMap<(&[u8; 32], u32), (usize, usize)> = HashMap::new();
    for (t, (context, label)) in contexts.iter().zip(labels).enumerate() {
        if let Some(label) = label {
            counts.entry((context, *label)).or_insert((0, t)).0 += 1;
        }
    }
    let mut best: HashMap<&[u8; 32], (usize, usize, u32)> = HashMap::new();
    for ((context, label), (count, first)) in counts {
        // More tokens first, then the earlier one.
        let rank = (count, usize::MAX - first, label);
        best.entry(context).and_modify(|best| *best = rank.max(*best)).or_insert(rank);
    }
    contexts.iter().map(|context| best.get(context).map(|best| best.2)).collect()
}
