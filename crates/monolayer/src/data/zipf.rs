//! A made-up corpus of any size.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

use super::{Dataset, Labels, Orderings, Tokens, Vocabulary, Written};

/// A made-up corpus: Zipf's law over a vocabulary that grows like the square root of the tokens, sentences of 1 to 30 words, a
/// label fixed per word but for one token in twenty.
pub fn zipf_corpus(tokens: usize, seed: u64) -> Dataset {
    const LABELS: u32 = 8;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let words = (50.0 * (tokens as f64).sqrt()).ceil() as u32;
    // The word of rank r has probability proportional to 1 / r: ranks grow like e^x.
    let top = f64::from(words).ln();
    let mut vocabulary = Vocabulary::default();
    let mut names = Vocabulary::default();
    (0..LABELS).for_each(|label| {
        names.add(&format!("L{label}"));
    });
    // Seven words in ten have the first label, as most words have "O" in a corpus of names.
    let usual: Vec<u32> =
        (0..words).map(|_| if rng.random_range(0..10) < 7 { 0 } else { rng.random_range(1..LABELS) }).collect();
    let (mut ids, mut labels, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
    while ids.len() < tokens {
        for _ in 0..rng.random_range(1..=30).min(tokens - ids.len()) {
            let rank = ((rng.random::<f64>() * top).exp() as u32).min(words - 1);
            ids.push(vocabulary.add(&format!("w{rank}")));
            let exception = rng.random_range(0..20) == 0;
            labels.push(Some(if exception { rng.random_range(0..LABELS) } else { usual[rank as usize] }));
        }
        offsets.push(ids.len());
    }
    Dataset {
        name: format!("zipf:{tokens}"),
        tokens: Tokens::Words { word_ids: ids, vocabulary },
        labels: Labels::Classes { label_ids: labels, names },
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
        orderings: Orderings::Given,
    }
}
