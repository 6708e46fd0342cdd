//! Contexts, and the tokens that no weights can get right.
//!
//! Attention sees a token and the normalized multiset of visible tokens, nothing else. Where one context carries several
//! labels, the majority is the possible one (a tie goes to the label that comes first); the other tokens are impossible.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::dataset::{Dataset, Labels};

/// A context, by the hash of its canonical form.
pub type Context = [u8; 32];

/// The context of every token.
pub fn contexts(dataset: &Dataset, positions: bool, causal: bool) -> Vec<Context> {
    let mut contexts = Vec::with_capacity(dataset.tokens());
    for i in 0..dataset.sequences() {
        let ids = &dataset.ids[dataset.range(i)];
        let tokens: Vec<(u32, u32)> =
            ids.iter().enumerate().map(|(place, &id)| (id, if positions { place as u32 } else { 0 })).collect();
        let whole = measure(&tokens);
        for (at, token) in tokens.iter().enumerate() {
            let visible = if causal { measure(&tokens[..=at]) } else { whole };
            let mut hasher = blake3::Hasher::new();
            hasher.update(&token.0.to_le_bytes()).update(&token.1.to_le_bytes()).update(&visible);
            contexts.push(*hasher.finalize().as_bytes());
        }
    }
    contexts
}

/// The hash of a normalized multiset: distinct tokens in order, multiplicities divided by their greatest common divisor.
fn measure(tokens: &[(u32, u32)]) -> [u8; 32] {
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable();
    let runs: Vec<&[(u32, u32)]> = sorted.chunk_by(|a, b| a == b).collect();
    let common = runs.iter().fold(0, |divisor, run| gcd(run.len(), divisor));
    let mut hasher = blake3::Hasher::new();
    for run in runs {
        hasher.update(&run[0].0.to_le_bytes()).update(&run[0].1.to_le_bytes());
        hasher.update(&(run.len() / common).to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether each token is impossible: its label is not the majority label of its context.
pub fn impossible(contexts: &[Context], labels: &Labels) -> Vec<bool> {
    let (Labels::Classes(ids, _) | Labels::Vectors(ids, ..)) = labels else { return vec![false; contexts.len()] };
    let mut counts: HashMap<(&Context, u32), (usize, usize)> = HashMap::new();
    for (t, (context, &label)) in contexts.iter().zip(ids).enumerate() {
        counts.entry((context, label)).or_insert((0, t)).0 += 1;
    }
    let mut majority: HashMap<&Context, (usize, Reverse<usize>, u32)> = HashMap::new();
    for ((context, label), (count, first)) in counts {
        let rank = (count, Reverse(first), label);
        majority.entry(context).and_modify(|best| *best = rank.max(*best)).or_insert(rank);
    }
    contexts.iter().zip(ids).map(|(context, label)| majority[context].2 != *label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Format, parse};

    fn impossible_tokens(text: &str, positions: bool, causal: bool) -> Vec<usize> {
        let dataset = parse("x", text.as_bytes(), Format::Conll).unwrap();
        let flags = impossible(&contexts(&dataset, positions, causal), &dataset.labels);
        (0..flags.len()).filter(|&t| flags[t]).collect()
    }

    #[test]
    fn majority_and_first_come() {
        assert_eq!(impossible_tokens("a X\n\na Y\n\na Y\n", false, false), [0]);
        assert_eq!(impossible_tokens("a X\n\na Y\n", false, false), [1]);
    }

    #[test]
    fn multisets_are_normalized_and_places_tell_words_apart() {
        assert_eq!(impossible_tokens("a X\nb X\n\nb X\na Y\nb X\na Y\n", false, false), [0]);
        assert!(impossible_tokens("a X\nb X\n\nb X\na Y\nb X\na Y\n", true, false).is_empty());
        assert_eq!(impossible_tokens("a X\nb X\n\na X\nb Y\nc X\n", false, true), [3]);
        assert!(impossible_tokens("a X\nb X\n\na X\nb Y\nc X\n", false, false).is_empty());
    }
}
