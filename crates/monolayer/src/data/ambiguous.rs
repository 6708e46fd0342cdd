//! A made-up corpus of any size in which labels depend on words and on their neighbors, as those of a language do.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

use super::{Dataset, Labels, Orderings, Tokens, Vocabulary, Written};

const LABELS: u32 = 8;
/// The most frequent words have one label each, as function words do.
const FUNCTION_WORDS: u32 = 32;
/// Of the others one in so many has a second label,
const AMBIGUOUS: u64 = 8;
/// which it has behind one word in so many.
const TRIGGERS: u64 = 8;

/// Zipf's law over a vocabulary that grows like the square root of the tokens, in sentences of 1 to 30 words. Seven words in ten
/// have the first label, as most words have "O" in a corpus of names. One word in eight that is not among the 32 most frequent is
/// ambiguous: it has a second label, behind one word in eight. So the context of a token decides its label, and about one token
/// in a hundred has another label than its word has most often.
pub fn ambiguous_corpus(tokens: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let words = (50.0 * (tokens as f64).sqrt()).ceil() as u32;
    // The word of rank r has probability proportional to 1 / r: ranks grow like e^x.
    let top = f64::from(words).ln();
    let mut vocabulary = Vocabulary::default();
    let mut names = Vocabulary::default();
    (0..LABELS).for_each(|label| {
        names.add(&format!("L{label}"));
    });
    let mut numbers = vec![None; words as usize + 1];
    let (mut word_ids, mut label_ids, mut offsets) = (Vec::with_capacity(tokens), Vec::with_capacity(tokens), vec![0]);
    while word_ids.len() < tokens {
        let mut before = None;
        for _ in 0..rng.random_range(1..=30).min(tokens - word_ids.len()) {
            let rank = (rng.random::<f64>() * top).exp() as u32;
            let number = numbers[rank as usize].get_or_insert_with(|| vocabulary.add(&format!("w{rank}")));
            word_ids.push(*number);
            label_ids.push(Some(label(rank, before, seed)));
            before = Some(rank);
        }
        offsets.push(word_ids.len());
    }
    Dataset {
        name: format!("ambiguous:{tokens}"),
        tokens: Tokens::Words { word_ids, vocabulary },
        labels: Labels::Classes { label_ids, names },
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
        orderings: Orderings::Given,
    }
}

/// The label of the word of a rank behind another.
fn label(rank: u32, before: Option<u32>, seed: u64) -> u32 {
    let own = mixed(u64::from(rank), seed);
    let usual = if own % 10 < 7 { 0 } else { 1 + (own >> 8) as u32 % (LABELS - 1) };
    let ambiguous = rank > FUNCTION_WORDS && (own >> 16).is_multiple_of(AMBIGUOUS);
    match before {
        Some(before) if ambiguous && mixed(u64::from(before), own).is_multiple_of(TRIGGERS) => {
            (usual + 1 + (own >> 32) as u32 % (LABELS - 1)) % LABELS
        }
        _ => usual,
    }
}

/// A number that looks random, the same for the same two numbers (the finalizer of SplitMix64).
fn mixed(x: u64, seed: u64) -> u64 {
    let mut z = x.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::word_majority;

    #[test]
    fn labels_depend_on_the_word_before_and_on_nothing_else() {
        let data = ambiguous_corpus(50_000, 3);
        let (Tokens::Words { word_ids, .. }, Labels::Classes { label_ids, .. }) = (&data.tokens, &data.labels) else {
            panic!("words with classes");
        };
        let mut seen = std::collections::HashMap::new();
        for range in data.ranges() {
            for t in range.clone() {
                let before = (t > range.start).then(|| word_ids[t - 1]);
                assert_eq!(*seen.entry((word_ids[t], before)).or_insert(label_ids[t]), label_ids[t]);
            }
        }
        let share = word_majority(&data, &data).unwrap();
        let exceptions = (50_000.0 * (1.0 - share)).round() as usize;
        assert!((250..1000).contains(&exceptions), "{exceptions}");
    }
}
