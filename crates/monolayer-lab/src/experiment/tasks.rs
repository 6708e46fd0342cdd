//! Generated data: random words with random labels, where there is nothing to understand and everything to memorize.

use std::collections::HashSet;

use monolayer::Dataset;
use monolayer::data::{Labels, Orderings, Tokens, Vocabulary, Written};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// A random number generator of its own for each purpose.
pub fn random(seed: u64, purpose: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose);
    rng
}

/// `count` sequences of `length` words out of `vocabulary`, each token with one of `labels` labels, all at random.
pub fn random_labels(count: usize, length: usize, vocabulary: usize, labels: usize, seed: u64) -> Dataset {
    let mut rng = random(seed, 1);
    let sequences: Vec<Vec<usize>> =
        (0..count).map(|_| (0..length).map(|_| rng.random_range(0..vocabulary)).collect()).collect();
    labeled(&sequences, labels, seed)
}

/// The same with no two sequences equal: fewer where there are not so many.
pub fn distinct(count: usize, length: usize, vocabulary: usize, labels: usize, seed: u64) -> Dataset {
    let mut rng = random(seed, 1);
    let mut seen = HashSet::new();
    let mut sequences = Vec::new();
    // The last of all sequences would take long to come up.
    for _ in 0..20 * count {
        let sequence: Vec<usize> = (0..length).map(|_| rng.random_range(0..vocabulary)).collect();
        if sequences.len() < count && seen.insert(sequence.clone()) {
            sequences.push(sequence);
        }
    }
    labeled(&sequences, labels, seed)
}

/// Sequences of words, by number, with random labels.
pub fn labeled(sequences: &[Vec<usize>], labels: usize, seed: u64) -> Dataset {
    let mut rng = random(seed, 2);
    let classes = sequences.iter().map(|s| s.iter().map(|_| rng.random_range(0..labels)).collect()).collect();
    dataset(sequences, classes)
}

/// Sequences of words with labels, both by number.
pub fn dataset(sequences: &[Vec<usize>], classes: Vec<Vec<usize>>) -> Dataset {
    let (mut vocabulary, mut names) = (Vocabulary::default(), Vocabulary::default());
    let ids: Vec<u32> = sequences.iter().flatten().map(|w| vocabulary.add(&format!("w{w}"))).collect();
    let labels = classes.into_iter().flatten().map(|l| Some(names.add(&format!("y{l}")))).collect();
    let mut offsets = vec![0];
    for sequence in sequences {
        offsets.push(offsets[offsets.len() - 1] + sequence.len());
    }
    Dataset {
        name: "generated".to_owned(),
        tokens: Tokens::Words { word_ids: ids, vocabulary },
        labels: Labels::Classes { label_ids: labels, names },
        offsets,
        lines: Vec::new(),
        warnings: Vec::new(),
        written: Written::default(),
        orderings: Orderings::Given,
    }
}

/// The first `count` sequences of a dataset.
pub fn prefix(data: &Dataset, count: usize) -> Dataset {
    let count = count.min(data.sequences());
    let end = data.offsets[count];
    let mut part = data.clone();
    part.offsets.truncate(count + 1);
    part.lines.truncate(end);
    match &mut part.tokens {
        Tokens::Words { word_ids, .. } => word_ids.truncate(end),
        Tokens::Vectors { d, data } => data.truncate(end * *d),
    }
    match &mut part.labels {
        Labels::Classes { label_ids, .. } => label_ids.truncate(end),
        Labels::Vectors { d, data } => data.truncate(end * *d),
        Labels::None => {}
    }
    part
}
