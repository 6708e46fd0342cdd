//! What the architecture can see: tokens that no weights can tell apart.
//!
//! Attention averages, so a token sees itself and the normalized multiset of what its mask shows it. Behind several layers it
//! sees the same of the contexts before: the context of layer l + 1 is the context of layer l and the normalized multiset of
//! visible contexts of layer l. Tokens of equal context get equal outputs from any weights, in real arithmetic.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::model::Mask;
use crate::parallel::in_order;
use crate::read::data::Data;
use crate::rules::attention::Seen;

/// 2^61 - 1.
pub(crate) const PRIME: u64 = (1 << 61) - 1;

/// A context's fingerprint.
pub type Context = [u8; 16];

/// Sequences whose contexts are found together, and so many times as many before they are kept.
const SEQUENCES: usize = 64;
const BATCH: usize = 64;

/// About so many contexts are sorted at a time.
const PART: usize = 1 << 21;

/// A fingerprint modulo two draws of 2^61 - 1.
type Print = [u64; 2];

/// Fingerprints of the contexts of all tokens.
///
/// A normalized multiset is sum of h(x) / n modulo the prime for pseudo-random h, keyed by the hash of the data: two different ones
/// agree with probability about 2^-122.
/// `names` has a number for each different token of the data, the same for those that no weights tell apart, and one for the
/// start token at its end, where there is one.
pub fn contexts(data: &Data, names: &[u64], positions: bool, masks: &[&Mask], threads: usize) -> Vec<Context> {
    let (own, first) = names.split_at(data.different());
    let start = !first.is_empty();
    let key = blake3::hash(data.hash.as_bytes());
    let one = |at: usize| {
        let (mut all, mut inverses) = (Vec::new(), HashMap::new());
        let ends = &data.offsets[at * SEQUENCES..data.offsets.len().min((at + 1) * SEQUENCES + 1)];
        for range in ends.windows(2) {
            let words = data.tokens[range[0]..range[1]].iter().map(|id| own[*id as usize]);
            let words = first.iter().copied().chain(words).enumerate();
            let tokens: Vec<[u64; 2]> = words.map(|(at, word)| [word, if positions { at as u64 } else { 0 }]).collect();
            let contexts = sequence(&tokens, masks, start, key.as_bytes(), &mut inverses);
            all.extend(contexts[usize::from(start)..].iter().map(cut));
        }
        all
    };
    let mut all = Vec::with_capacity(data.tokens.len());
    let jobs = (data.offsets.len() - 1).div_ceil(SEQUENCES);
    in_order(threads, jobs, BATCH, one, |more: Vec<Context>| all.extend(more));
    all
}

/// The first half of a hash.
fn cut(hash: &[u8; 32]) -> Context {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

/// `inverses` has those modulo the prime that were found before.
fn sequence(
    tokens: &[[u64; 2]],
    masks: &[&Mask],
    start: bool,
    key: &[u8; 32],
    inverses: &mut HashMap<u64, u64>,
) -> Vec<[u8; 32]> {
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
        let mut next = |i: usize| {
            let (mut seen, mut count) = ([0; 2], 0);
            for range in Seen::new(mask, i, n, start).ranges() {
                for lane in 0..2 {
                    let part = add(sums[range.end][lane], PRIME - sums[range.start][lane]);
                    seen[lane] = add(seen[lane], part);
                }
                count += range.len() as u64;
            }
            let inverse = *inverses.entry(count).or_insert_with(|| power(count % PRIME, PRIME - 2));
            let mut hasher = blake3::Hasher::new_keyed(key);
            hasher.update(&now[i]);
            for lane in seen {
                hasher.update(&multiply(lane, inverse).to_le_bytes());
            }
            *hasher.finalize().as_bytes()
        };
        now = (0..n).map(&mut next).collect();
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

/// Tells of every token whose label is not that of most tokens of its context (of two as frequent ones, the one that comes first), with
/// its own label and that one. Tokens whose label is free take no part.
///
/// Contexts are sorted, a part of them at a time: those that begin with the same bits.
pub fn disagree(contexts: &[Context], labels: &[Option<u32>], mut told: impl FnMut(usize, u32, u32)) {
    let parts = (contexts.len() / PART + 1).next_power_of_two().min(256);
    for part in 0..parts {
        let own = |t: &usize| contexts[*t][0] as usize % parts == part;
        let labelled = (0..contexts.len()).filter(own).filter_map(|t| Some((contexts[t], labels[t]?, t)));
        let mut tokens: Vec<(Context, u32, usize)> = labelled.collect();
        tokens.sort_unstable();
        for group in tokens.chunk_by(|a, b| a.0 == b.0) {
            if group[0].1 == group[group.len() - 1].1 {
                continue;
            }
            // More tokens first, then the earlier one.
            let rank = |same: &[(Context, u32, usize)]| (same.len(), Reverse(same[0].2), same[0].1);
            let favored = group.chunk_by(|a, b| a.1 == b.1).map(rank).max().map_or(0, |(.., label)| label);
            group.iter().filter(|(_, label, _)| *label != favored).for_each(|&(_, own, t)| told(t, own, favored));
        }
    }
}
