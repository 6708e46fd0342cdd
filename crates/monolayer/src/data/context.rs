//! Contexts (Definition 2, made precise) and the labels they allow.
//!
//! Attention sees exactly a token and the normalized multiset of the tokens visible to it: the sequences `(x, y)` and
//! `(x, y, x, y)` look alike to every layer, whatever its weights. So a context here is (token, normalized multiset of
//! visible tokens); with positions, tokens are (word, place) and nothing repeats.

use std::collections::HashMap;

use crate::paper::attention::Mask;

/// The context of every token of a dataset, contexts numbered in order of first appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contexts {
    /// The context of each token.
    pub of_token: Vec<u32>,
    /// How many contexts there are.
    pub count: usize,
}

impl Contexts {
    /// The contexts of ragged sequences of token ids; `offsets` as in [`crate::Dataset`].
    pub fn new(ids: &[u32], offsets: &[usize], mask: Mask, positions: bool) -> Self {
        let mut inverses = Inverses::default();
        let mut numbers = HashMap::new();
        let mut of_token = Vec::with_capacity(ids.len());
        for window in offsets.windows(2) {
            let sequence = &ids[window[0]..window[1]];
            let token = |place: usize| (sequence[place], if positions { place as u32 + 1 } else { 0 });
            let mut visible = Measure::default();
            if mask == Mask::None {
                (0..sequence.len()).for_each(|place| visible.add(token(place)));
            }
            for place in 0..sequence.len() {
                if mask == Mask::Causal {
                    visible.add(token(place));
                }
                let key = (token(place), visible.normalized(&mut inverses));
                let next = numbers.len() as u32;
                of_token.push(*numbers.entry(key).or_insert(next));
            }
        }
        Self { of_token, count: numbers.len() }
    }

    /// Each token is its own context, whatever stands around it: what a model without attention sees.
    pub fn of_words(ids: &[u32]) -> Self {
        let offsets: Vec<usize> = (0..=ids.len()).collect();
        Self::new(ids, &offsets, Mask::None, false)
    }

    /// Which labels the contexts allow.
    pub fn agree(&self, labels: &[u32]) -> Agreement {
        let mut counts: HashMap<(u32, u32), (u32, usize)> = HashMap::new();
        for (t, (&context, &label)) in self.of_token.iter().zip(labels).enumerate() {
            counts.entry((context, label)).or_insert((0, t)).0 += 1;
        }
        // The commonest label of each context; among equals the one that comes first in the file.
        let mut best = vec![(0, std::cmp::Reverse(usize::MAX), 0); self.count];
        for ((context, label), (count, first)) in counts {
            let slot = &mut best[context as usize];
            *slot = (*slot).max((count, std::cmp::Reverse(first), label));
        }
        let label: Vec<u32> = best.into_iter().map(|(_, _, label)| label).collect();
        let impossible =
            (0..labels.len()).filter(|&t| labels[t] != label[self.of_token[t] as usize]).collect::<Vec<_>>();
        Agreement { label, impossible }
    }
}

/// What labels a dataset's contexts allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// The commonest label of each context; among equals the one that comes first in the dataset.
    pub label: Vec<u32>,
    /// The tokens with another label than their context's: no weights get them right.
    pub impossible: Vec<usize>,
}

/// Numbers the rows of a row-major `[rows, d]` array so that equal rows (`0.0` equals `-0.0`) get equal numbers, in order
/// of first appearance. Returns the number of each row and the first row of each number.
pub fn distinct_rows(d: usize, data: &[f64]) -> (Vec<u32>, Vec<usize>) {
    let mut numbers: HashMap<Vec<u64>, u32> = HashMap::new();
    let mut first = Vec::new();
    let of_row = data
        .chunks_exact(d)
        .enumerate()
        .map(|(i, row)| {
            *numbers.entry(row.iter().map(|x| (x + 0.0).to_bits()).collect()).or_insert_with(|| {
                first.push(i);
                first.len() as u32 - 1
            })
        })
        .collect();
    (of_row, first)
}

/// The prime 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

/// A fingerprint of a multiset of tokens: the sum of a random number per token, modulo two primes of 61 bits each.
/// Divided by the multiset's size it depends on the normalized multiset alone, and different ones agree with
/// probability about 2^-122.
#[derive(Default)]
struct Measure {
    sums: [u64; 2],
    size: usize,
}

impl Measure {
    fn add(&mut self, (id, place): (u32, u32)) {
        let bytes = (u64::from(id) << 32 | u64::from(place)).to_le_bytes();
        let hash = blake3::hash(&bytes);
        for (sum, half) in self.sums.iter_mut().zip(hash.as_bytes().chunks_exact(8)) {
            let number = u64::from_le_bytes(half.try_into().expect("eight bytes")) % PRIME;
            *sum = (*sum + number) % PRIME;
        }
        self.size += 1;
    }

    fn normalized(&self, inverses: &mut Inverses) -> [u64; 2] {
        let inverse = inverses.of(self.size);
        self.sums.map(|sum| times(sum, inverse))
    }
}

/// Inverses of small numbers modulo the prime.
#[derive(Default)]
struct Inverses(Vec<u64>);

impl Inverses {
    fn of(&mut self, n: usize) -> u64 {
        while self.0.len() <= n {
            // Fermat: n^(p-2) is the inverse of n.
            let (mut power, mut base, mut exponent) = (1, self.0.len() as u64, PRIME - 2);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    power = times(power, base);
                }
                base = times(base, base);
                exponent >>= 1;
            }
            self.0.push(power);
        }
        self.0[n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contexts(sequences: &[&[u32]], mask: Mask, positions: bool) -> Vec<u32> {
        let mut offsets = vec![0];
        sequences.iter().for_each(|s| offsets.push(offsets.last().unwrap() + s.len()));
        Contexts::new(&sequences.concat(), &offsets, mask, positions).of_token
    }

    #[test]
    fn a_context_is_a_normalized_multiset() {
        assert_eq!(contexts(&[&[1, 2], &[2, 1, 2, 1]], Mask::None, false), [0, 1, 1, 0, 1, 0]);
        assert_eq!(contexts(&[&[1, 2], &[1, 2, 2]], Mask::None, false), [0, 1, 2, 3, 3]);
    }

    #[test]
    fn positions_and_masks() {
        assert_eq!(contexts(&[&[1, 1]], Mask::None, true), [0, 1]);
        assert_eq!(contexts(&[&[1, 2], &[1, 3]], Mask::Causal, false), [0, 1, 0, 2]);
        assert_eq!(contexts(&[&[1, 1, 1]], Mask::Causal, false), [0, 0, 0]);
        assert_eq!(contexts(&[&[1, 2, 1], &[2, 1, 1]], Mask::Causal, true), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn majority_with_ties_to_the_first() {
        let contexts = Contexts::of_words(&[7, 7, 7, 8, 8]);
        let agreement = contexts.agree(&[4, 3, 3, 9, 2]);
        assert_eq!(agreement, Agreement { label: vec![3, 9], impossible: vec![0, 4] });
    }

    #[test]
    fn equal_rows_share_a_number() {
        let (of_row, first) = distinct_rows(2, &[0.0, 1.0, 2.0, 1.0, -0.0, 1.0]);
        assert_eq!((of_row, first), (vec![0, 1, 0], vec![0, 1]));
    }

    /// The definition, word for word: sorted tokens with multiplicities divided by their greatest common divisor.
    fn plain_key(sequence: &[u32]) -> Vec<(u32, usize)> {
        let mut counts = std::collections::BTreeMap::new();
        sequence.iter().for_each(|&id| *counts.entry(id).or_insert(0) += 1);
        let gcd = counts.values().fold(0, |mut a: usize, &b| {
            let mut b: usize = b;
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        });
        counts.into_iter().map(|(id, count)| (id, count / gcd)).collect()
    }

    proptest! {
        #[test]
        fn fingerprints_agree_with_the_definition(
            a in prop::collection::vec(0_u32..3, 1..9),
            b in prop::collection::vec(0_u32..3, 1..9),
            causal: bool,
        ) {
            let mask = if causal { Mask::Causal } else { Mask::None };
            let numbers = contexts(&[&a, &b], mask, false);
            for i in 0..a.len() {
                for j in 0..b.len() {
                    let seen = |s: &[u32], place: usize| plain_key(if causal { &s[..=place] } else { s });
                    let same = a[i] == b[j] && seen(&a, i) == seen(&b, j);
                    prop_assert_eq!(numbers[i] == numbers[a.len() + j], same);
                }
            }
        }
    }
}
